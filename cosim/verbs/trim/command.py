"""cosim trim: what converters at the bias pins take back of a chip's mismatch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.base.bounds import CHIPS
from cosim.base.errors import InputError
from cosim.cli.fresh import is_fresh
from cosim.cli.options import collecting, data_option, jobs_option, network_argument
from cosim.cli.progress import progress_bar, say
from cosim.cli.settings import KeepingVerb, keep_settings
from cosim.cli.types import Integer
from cosim.verbs.common import (
    Compiling,
    Destination,
    check_outputs,
    compile_options,
    destination_options,
    write_json,
)
from cosim.verbs.montecarlo.command import (
    ChipOptions,
    area_option,
    chip_engine_option,
    chip_samples_option,
    chip_seed_option,
    load_trial,
    spec_option,
)

if TYPE_CHECKING:
    from cosim.verbs.montecarlo.trial import Trial

MAX_BITS = 12


@dataclass(frozen=True)
class Trimming:
    """Bits of the converters, what chips must do, and how many processes run them."""

    bits: str
    specs: tuple[str, ...]
    jobs: int


@click.command(cls=KeepingVerb)
@network_argument
@click.option("--bits", default="2-8", help="Bits of the converters: a number, 4,6 or 2-8.")
@click.option("--chips", type=Integer(CHIPS), default=100, help="How many chips.")
@chip_engine_option
@spec_option
@chip_samples_option
@area_option
@destination_options("runs/trim")
@data_option
@chip_seed_option
@jobs_option
@compile_options
@collecting(drawing=ChipOptions, trimming=Trimming)
def command(
    *, network_file: Path, to: Destination, drawing: ChipOptions, trimming: Trimming, compiling: Compiling
) -> None:
    """Measure the cells of drawn chips of NETWORK, set each bias pin's converter, and count the chips again.

    The chips are those of `cosim montecarlo --variation local` with the same seed. The folder receives trim.json,
    trim.png and report.html. Every finished chip is kept: the same command continues an interrupted run.
    """
    from cosim.base.store import write_results
    from cosim.engines.simulation.simulated import engine_named
    from cosim.results.figures import save_figure
    from cosim.results.kept_page import REPORT_FILE, write_page
    from cosim.verbs.montecarlo.figures import draw_trim
    from cosim.verbs.montecarlo.run import default_spec, run_settings
    from cosim.verbs.montecarlo.spec_file import read_specs, without_yield
    from cosim.verbs.montecarlo.store import CHIPS_FILE, open_records
    from cosim.verbs.tables import format_trim
    from cosim.verbs.trim.run import TRIMMED, run_trim, summarize_trim, trim_page
    from cosim.verbs.trim.trim import check_trimmable

    output = to.output
    specs, of_all = without_yield(read_specs(trimming.specs))
    if of_all:
        raise InputError("--spec yield: trim prints the yield of every number of bits; leave it out")
    counts = parse_bits(trimming.bits)
    check_outputs("trim", output, to.json_file)
    trial = load_trial(network_file, drawing, compiling)
    check_trimmable(trial.design, str(network_file))
    wanted = specs.at(trial.technology) or (default_spec(trial),)
    engine_named(trial.engine).check()  # said before the folder is there
    with open_records(output, {**run_settings(trial), "bits": list(counts)}, TRIMMED, fresh=is_fresh()) as store:
        keep_settings(output)
        if store.damaged:
            say(f"{store.damaged} damaged lines of {output / CHIPS_FILE}: their chips run again")
        with progress_bar("chips") as progress:
            records = run_trim(trial, counts, store, trimming.jobs, progress)
        summary = summarize_trim(trial, counts, records, wanted)
        write_results(output, {"trim.json": summary})
        save_figure(draw_trim(summary), output / "trim.png")
        write_page(output, trim_page(trial.design, summary, _drawn(trial)))
    click.echo("\n".join(format_trim(summary)))
    write_json(to.json_file, summary)
    click.echo(f"\nreport: {output / REPORT_FILE}")


def _drawn(trial: "Trial") -> dict[str, str]:
    """Return the settings that chips were drawn with, in words: name -> value."""
    from cosim.verbs.words import worded

    plan = {"seed": trial.plan.seed, "area": trial.plan.area, "t_step_s": trial.timing.t_step}
    return dict(worded(plan))


def parse_bits(text: str) -> tuple[int, ...]:
    """Parse numbers of bits: `4`, `4,6` or `2-8`. Raises InputError that says what it must be."""
    try:
        if "-" in text:
            first, last = map(int, text.split("-"))
            found = tuple(range(first, min(last, MAX_BITS + 1) + 1))
        else:
            found = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        found = ()
    if not found or found[0] < 1 or found[-1] > MAX_BITS:
        raise InputError(f"--bits must be numbers from 1 to {MAX_BITS}, such as 4, 4,6 or 2-8, not {text!r}")
    return found
