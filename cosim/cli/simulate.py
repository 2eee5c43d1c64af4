"""cosim simulate: test samples through ngspice."""

from pathlib import Path

import click

from cosim.cli.common import (
    Compiling,
    Running,
    check_outputs,
    compile_options,
    load_run,
    network_argument,
    output_option,
    run_options,
    take_folder,
)
from cosim.cli.progress import progress_bar


@click.command()
@network_argument
@output_option("runs/simulate")
@click.option("--keep-decks", is_flag=True, help="Write the deck of every sample, too.")
@compile_options
@run_options
def command(*, network_file: Path, output: Path, keep_decks: bool, compiling: Compiling, running: Running) -> None:
    """Run test samples of NETWORK through ngspice at transistor level.

    The folder receives simulation.npz (states, readout in A, power in W) and the decks of failed runs. Finished samples
    are kept: the same command continues an interrupted run.
    """
    from cosim.engines.engine import Failure, Inference
    from cosim.outputs import write_texts
    from cosim.pipeline import run_samples
    from cosim.simulation.simulated import engine_named

    check_outputs("simulate", output)
    design, test_set, run = load_run(network_file, output, compiling, running)
    take_folder("simulate", output)
    if keep_decks:
        decks = zip(test_set.indices, engine_named(run.engine).decks(design, test_set, run), strict=True)
        write_texts(output / "decks", {f"sample_{index}.sp": deck for index, deck in decks})
    with progress_bar("ngspice") as progress:
        outcomes = run_samples(design, test_set, run, progress)
    good = sum(isinstance(outcome, Inference) for outcome in outcomes)
    click.echo(f"{good} of {len(outcomes)} samples simulated, {design.assembly.transistors} transistors each")
    click.echo(f"written: {output / 'simulation.npz'}")
    if good < len(outcomes):
        first = next(outcome for outcome in outcomes if isinstance(outcome, Failure))
        reason = f"the first: {first.kind.value}: {first.detail}"
        click.echo(f"failed runs: {reason}; their decks are in {output / 'failed'}", err=True)
        raise SystemExit(1)
