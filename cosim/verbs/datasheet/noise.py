"""The noise of a datasheet's nominal circuit, without mismatch: runs in which transistors and resistors have noise.

The noise is white, without flicker, up to half of 1 / step, where `step` is the longest step of the batched engine, a
quarter of that of the netlist's .tran. A node with the time constant tau has all of it but the share 0.47 step / tau,
as the autocorrelation of noise that is linear between points is a cubic B-spline. It begins at time 0 with none.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cosim.base.errors import InputError
from cosim.circuit.bench import PRECISE, Tran, TransientNoise
from cosim.cli.progress import say
from cosim.engines.engine import Batched, Failure
from cosim.engines.simulation.workers import WorkerPool, run_tasks
from cosim.engines.table import BATCH, simulator_named
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.datasheet.outputs import DatasheetSummary, record_failures
from cosim.verbs.datasheet.sheet import Datasheet
from cosim.verbs.datasheet.statistics import named_values, spread_of
from cosim.verbs.datasheet.study import DatasheetChip, DatasheetStudy, datasheet_bench, record_of

_CHUNK = 64
_STEP = 0.25  # of the step of .tran: the distance of the points of noise, and the longest step of the engine / 4


def check_noise(sheet: Datasheet, engine: str) -> None:
    """Raise InputError for an engine without noise of transistors, and for a netlist without a transient."""
    if engine != BATCH:
        raise InputError(
            f"--noise needs --engine {BATCH}: {engine} has no noise of transistors in a transient; choose --engine "
            f"{BATCH}, or leave --noise out"
        )
    if not isinstance(sheet.nominal.netlist.run, Tran):
        raise InputError(
            f"--noise needs a netlist with .tran: that of {sheet.name} has an operating point or a sweep, which take "
            "no time; leave --noise out"
        )


def run_noise(study: DatasheetStudy, runs: int, jobs: int, progress: Callable[[int, int], None]) -> list[DatasheetChip]:
    """Run a study's nominal circuit with noise and return the records in order of the runs' numbers.

    The noise of a run depends on the study's seed and the run's number alone.
    """
    noise = NoiseSimulation(find_noise(study.technology, say), study.plan.seed)
    found, keys = dict[int, DatasheetChip](), [(number, noise.key(number)) for number in range(runs)]
    chunks = [tuple(keys[first : first + _CHUNK]) for first in range(0, runs, _CHUNK)]
    with WorkerPool(jobs) as pool:
        tasks = run_tasks(
            lambda chunk: pool.submit(_run_chunk, study, noise.slopes, chunk),
            chunks, 2 * jobs, lambda chunk: study.timeout * len(chunk),
        )  # fmt: skip
        for chunk, records in tasks:
            if isinstance(records, Failure):
                records = [record_of(number, study.netlist, records) for number, _ in chunk]
            found |= {one.chip: one for one in records}
            progress(len(found), runs)
    return [found[number] for number in range(runs)]


def _run_chunk(
    study: DatasheetStudy, slopes: tuple[float, float], keys: Sequence[tuple[int, int]]
) -> list[DatasheetChip]:
    """Run the nominal circuit with the noise of each key and return the records; keys: (number, 64-bit seed)."""
    bench = datasheet_bench(study.circuit, study.technology, study.netlist, BATCH)
    step = bench.transient.step * _STEP
    bench = replace(bench, analysis=Tran(step, bench.transient.end), tolerances=PRECISE)
    white = TransientNoise(step, 0, slopes=slopes, every=True)
    benches = [replace(bench, noise=replace(white, key=key)) for _, key in keys]
    simulator = simulator_named(BATCH)
    assert isinstance(simulator, Batched)
    outcomes = simulator.run_all(benches, study.timeout * len(benches))
    return [record_of(number, study.netlist, one) for (number, _), one in zip(keys, outcomes, strict=True)]


def with_noise(sheet: Datasheet, found: DatasheetSummary, runs: Sequence[DatasheetChip]) -> DatasheetSummary:
    """Return the figures of a datasheet with those of its runs with noise; as they are where there are no runs."""
    if not runs:
        return found
    values = [named_values(sheet, one) for one in runs]
    lines = tuple(
        replace(line, noise=spread_of(line.measure, [one[line.measure.name] for one in values], None))
        for line in found.lines
    )
    return replace(found, lines=lines, failed_noise=record_failures((one.chip, one) for one in runs))
