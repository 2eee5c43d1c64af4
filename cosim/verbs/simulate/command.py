"""cosim simulate: test samples through a simulator."""

from dataclasses import dataclass
from pathlib import Path

import click

from cosim.base.bounds import NUMBER
from cosim.base.errors import InputError
from cosim.cli.options import collecting, engine_option, network_argument, output_option, probe_option
from cosim.cli.progress import progress_bar
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer
from cosim.verbs.common import (
    Compiling,
    Running,
    check_outputs,
    compile_options,
    load_run,
    run_options,
    take_folder,
)


@dataclass(frozen=True)
class Simulating:
    """The simulator, and what it leaves beside the results."""

    engine: str
    keep_decks: bool
    waveforms: bool
    probe: tuple[str, ...]


@click.command(cls=KeepingVerb)
@network_argument
@output_option("runs/simulate")
@engine_option("Simulator of the transistors.")
@click.option("--keep-decks", is_flag=True, help="Write the deck of every sample, too.")
@click.option("--sample", type=Integer(NUMBER), help="Run this test sample alone, by its number in the test set.")
@click.option("--waveforms", is_flag=True, help="Keep the waveforms of the first sample, too. Not with vacask.")
@probe_option
@compile_options
@run_options
@collecting(how=Simulating)
def command(*, network_file: Path, output: Path, how: Simulating, compiling: Compiling, running: Running) -> None:
    """Run test samples of NETWORK through a simulator at transistor level.

    The folder receives simulation.npz (states, readout in A, power in W), report.html and the decks of failed runs.
    Finished samples are kept: the same command continues an interrupted run. With --waveforms or --probe it receives
    waveforms.png, waveforms.npz for numpy, waveforms.raw for viewers of SPICE's raw files, and waveforms.vcd for
    viewers of logic.
    """
    from cosim.base.store import write_texts
    from cosim.engines.engine import Failure, Inference
    from cosim.engines.simulation.simulated import engine_named
    from cosim.verbs.compare.agreement import count_elsewhere
    from cosim.verbs.pipeline import run_samples
    from cosim.verbs.simulate.probing import choose
    from cosim.verbs.trust import format_elsewhere

    check_outputs("simulate", output)
    if running.sample is not None and running.samples is not None:
        raise InputError("--sample runs one sample and --samples a draw of them; give one of the two")
    engine = engine_named(how.engine)
    if not how.keep_decks:  # decks can be written without it
        engine.check()
    design, test_set, run = load_run(network_file, output, compiling, running, how.engine)
    watched = choose(design, how.probe) if how.waveforms or how.probe else None
    take_folder("simulate", output)
    if how.keep_decks:
        decks = zip(test_set.indices, engine.decks(design, test_set, run), strict=True)
        write_texts(output / "decks", {f"sample_{index}.sp": deck for index, deck in decks})
    with progress_bar(how.engine) as progress:
        outcomes = run_samples(design, test_set, run, progress, watched)
    good = sum(isinstance(outcome, Inference) for outcome in outcomes)
    click.echo(f"{good} of {len(outcomes)} samples simulated, {design.assembly.transistors} transistors each")
    for line in format_elsewhere(count_elsewhere(outcomes)):
        click.echo(line)
    beside = ", with waveforms.png, .npz, .raw and .vcd" if watched is not None and good else ""
    click.echo(f"written: {output / 'simulation.npz'}{beside}\nreport: {output / 'report.html'}")
    if good < len(outcomes):
        first = next(outcome for outcome in outcomes if isinstance(outcome, Failure))
        reason = f"the first: {first.kind.value}: {first.detail}"
        click.echo(f"failed runs: {reason}; their decks are in {output / 'failed'}", err=True)
        raise SystemExit(1)
