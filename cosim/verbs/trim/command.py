"""cosim trim: find how much of a chip's mismatch converters at the bias pins compensate."""

from dataclasses import dataclass
from pathlib import Path

from cosim.base.bounds import CHIPS
from cosim.base.errors import InputError
from cosim.cli.progress import progress_bar, say
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer
from cosim.cli.verb import Result, group_of, option, verb
from cosim.verbs.common import (
    Compiling,
    check_outputs,
    data_option,
    jobs_option,
    json_option,
    network_argument,
    output_option,
)
from cosim.verbs.montecarlo.command import (
    MonteCarloOptions,
    area_option,
    chip_engine_option,
    chip_samples_option,
    chip_seed_option,
    load_trial,
    spec_option,
)

MAX_BITS = 12


@dataclass(frozen=True, kw_only=True)
class TrimOptions:
    """Options of `cosim trim`: bits of the converters, how chips are drawn, and what a working chip must do."""

    network_file: Path = network_argument()
    bits: str = option("Bits of the converters: a number, 4,6 or 2-8.", None, "2-8")
    chips: int = option("How many chips.", Integer(CHIPS), 100)
    engine: str = chip_engine_option()
    specs: tuple[str, ...] = spec_option()
    samples: int | None = chip_samples_option()
    area: float = area_option()
    output: Path = output_option("runs/trim")
    json_file: Path | None = json_option()
    data: Path | None = data_option()
    seed: int = chip_seed_option()
    jobs: int = jobs_option()
    compiling: Compiling = group_of(Compiling)

    @property
    def drawing(self) -> MonteCarloOptions:
        """Return the options with which `cosim montecarlo` draws the same chips."""
        return MonteCarloOptions(
            network_file=self.network_file, chips=self.chips, engine=self.engine, samples=self.samples, area=self.area,
            data=self.data, seed=self.seed, compiling=self.compiling,
        )  # fmt: skip


def run(options: TrimOptions, session: VerbSession) -> Result:
    """Measure the cells of drawn chips of NETWORK, set the converters at the pins of
    thresholds and levels, and count again.

    The chips are those of `cosim montecarlo --variation local` with the same seed. The folder receives trim.json,
    trim.png and report.html. Every finished chip is kept: the same command continues an interrupted run.
    """
    from cosim.base.store import write_results
    from cosim.engines.simulation.simulated import engine_named
    from cosim.results.figures import save_figure
    from cosim.results.kept_page import REPORT_FILE, read_page, write_page
    from cosim.verbs.montecarlo.run import default_spec, run_settings
    from cosim.verbs.montecarlo.spec import read_specs, without_yield
    from cosim.verbs.montecarlo.store import open_records
    from cosim.verbs.trim.page import draw_trim, trim_page
    from cosim.verbs.trim.run import run_trim, summarize_trim, trimmed_format
    from cosim.verbs.trim.trim import check_trimmable
    from cosim.verbs.words import worded

    output = options.output
    specs, of_all = without_yield(read_specs(options.specs))
    if of_all:
        raise InputError("--spec yield: trim prints the yield of every number of bits; leave it out")
    counts = parse_bits(options.bits)
    check_outputs("trim", output, options.json_file)
    trial = load_trial(options.drawing)
    check_trimmable(trial.design, str(options.network_file))
    wanted = specs.at(trial.technology) or (default_spec(trial),)
    engine_named(trial.engine).check()  # said before the folder is there
    settings = {**run_settings(trial), "bits": list(counts)}
    with open_records(output, "trim", settings, trimmed_format(counts), fresh=session.fresh) as store:
        session.keep_settings(output)
        if store.damage:
            say(store.damage)
        with progress_bar("chips") as progress:
            records = run_trim(trial, counts, store, options.jobs, progress)
        summary = summarize_trim(trial, counts, records, wanted)
        write_results(output, {"trim.json": summary})
        save_figure(draw_trim(summary), output / "trim.png")
        drawn = {"seed": trial.plan.seed, "area": trial.plan.area, "t_step_s": trial.timing.t_step}
        write_page(output, trim_page(trial.design, summary, dict(worded(drawn))))
    return Result(summary, read_page(output), report=f"report: {output / REPORT_FILE}")


def parse_bits(text: str) -> tuple[int, ...]:
    """Parse the numbers of --bits, such as `4`, `4,6` or `2-8`. Raises InputError that says what the text must be."""
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


command = verb(TrimOptions, run, KeepingVerb)
