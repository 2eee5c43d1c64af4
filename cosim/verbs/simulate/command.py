"""Command `cosim simulate`: run test samples through a circuit simulator."""

from dataclasses import dataclass, replace
from pathlib import Path

from cosim.base.bounds import NUMBER
from cosim.base.errors import InputError
from cosim.cli.progress import progress_bar
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer
from cosim.cli.verb import Result, group_of, option, switch, verb
from cosim.verbs.common import (
    Compiling,
    Running,
    check_outputs,
    chosen_engine,
    engine_option,
    load_run,
    network_argument,
    output_option,
    probe_option,
    target_technology,
)


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """Options of `cosim simulate`: samples, simulator, and whether decks and waveforms are kept."""

    network_file: Path = network_argument()
    output: Path = output_option("runs/simulate")
    engine: str | None = engine_option("Simulator of the transistors.")
    keep_decks: bool = switch("Write the deck of every sample, too.")
    sample: int | None = option("Run this test sample alone, by its number in the test set.", Integer(NUMBER))
    waveforms: bool = switch("Keep the waveforms of the first sample, too.")
    probe: tuple[str, ...] = probe_option()
    compiling: Compiling = group_of(Compiling)
    running: Running = group_of(Running)


def run(options: SimulateOptions, session: VerbSession) -> Result:
    """Run test samples of NETWORK through a simulator at transistor level.

    The folder receives simulation.npz (states, readout in A, power in W), report.html and the decks of failed runs.
    Finished samples are kept: the same command continues an interrupted run. With --waveforms or --probe it receives
    waveforms.png, waveforms.npz for numpy, waveforms.raw for viewers of SPICE's raw files, and waveforms.vcd for
    viewers of logic.
    """
    from cosim.base.store import write_texts
    from cosim.engines.engine import Failure
    from cosim.engines.simulation.simulated import engine_named
    from cosim.results.kept_page import REPORT_FILE, read_page
    from cosim.verbs.simulate.samples import FAILED, run_samples
    from cosim.verbs.simulate.waveforms import choose

    output, running = options.output, replace(options.running, sample=options.sample)
    check_outputs("simulate", output)
    if options.sample is not None and running.samples is not None:
        raise InputError("--sample runs one sample and --samples a draw of them; give one of the two")
    name = chosen_engine(options.engine, target_technology(options.compiling))
    engine = engine_named(name)
    if not options.keep_decks:  # decks can be written without it
        engine.check()
    design, test_set, run = load_run(options.network_file, output, options.compiling, running, name)
    watched = choose(design, options.probe) if options.waveforms or options.probe else None
    session.take_folder("simulate", output)
    if options.keep_decks:
        decks = zip(test_set.indices, engine.decks(design, test_set, run), strict=True)
        write_texts(output / "decks", {f"sample_{index}.sp": deck for index, deck in decks})
    with progress_bar(name) as progress:
        outcomes = run_samples(design, test_set, run, progress, watched)
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    drawn = watched is not None and len(failures) < len(outcomes)
    beside = ", with waveforms.png, .npz, .raw and .vcd" if drawn else ""
    written = f"written: {output / 'simulation.npz'}{beside}\nreport: {output / REPORT_FILE}"
    fault = None
    if failures:
        reason = f"the first: {failures[0]}"
        fault = f"failed runs: {reason}; their decks are in {output / FAILED}"
    return Result(page=read_page(output), report=written, fault=fault)


command = verb(SimulateOptions, run, KeepingVerb)
