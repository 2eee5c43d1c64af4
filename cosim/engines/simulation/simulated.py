"""Engines by name; a simulator becomes an engine that simulates and reads the bench of each sample."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cosim.base.bounds import check_memory
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import Bench, TransientNoise, held
from cosim.compiler.design import Design
from cosim.engines.engine import (
    DEFAULT_TIMEOUT,
    Batched,
    Description,
    Engine,
    Failure,
    Outcome,
    Progress,
    Run,
    Simulator,
    Starting,
)
from cosim.engines.simulation.inference import infer_tile, run_benches, run_inferences, split_tiles
from cosim.engines.simulation.read import (
    ReadPlan,
    decision_margins,
    metered_plan,
    read_plan,
    with_candidates,
    with_margins,
)
from cosim.engines.simulation.testbench import inference_bench, inference_benches, meter, saved_probes
from cosim.engines.table import engine_entry
from cosim.tasks.testset import TestSet
from cosim.technology.types import Technology

NOISE_POINTS = 2000  # of the noise of a frame: 5 us, a third of the lag of a candidate of 1 nA


@dataclass(frozen=True)
class SimulatorEngine:
    """An engine made of a simulator: each sample's bench is simulated, and its waveforms are read."""

    simulator: Simulator

    @property
    def name(self) -> str:
        """Return the simulator's name, which is the engine's."""
        return self.simulator.name

    def infer(self, design: Design, test_set: TestSet, run: Run, progress: Progress) -> Iterator[Outcome]:
        """Yield the simulator's outcome of each sample in order; with `run.jobs` 0 no worker processes are used."""
        benches, plans = (measured_samples if isinstance(self.simulator, Batched) else planned_samples)(
            design, test_set, run
        )
        if run.jobs:
            yield from run_inferences(list(benches), list(plans), run, progress)
            return
        for tile in split_tiles(benches, plans, self.simulator.lanes):
            yield from infer_tile(self.simulator, tile, run.timeout)

    def unreset(self, design: Design, test_set: TestSet, run: Run) -> tuple[str, ...] | Failure:
        """Return the 9T cells that are on after a simulated reset, although their candidate is 0; or a Failure.

        A cell that resets has only one state at a candidate of 0. A short run from the samples' resting point, in which
        a chip's bench sets every cell, shows the others.
        """
        bench = inference_bench(design, test_set.x[0, :1], run.timing, run.condition, run.chip)
        ((waves, _),) = run_benches(self.simulator, [held(bench, run.timing.reset_end)], DEFAULT_TIMEOUT)
        if isinstance(waves, Failure):
            return waves
        threshold = STATE_LEVEL * run.standing(design).technology.supply
        held_at = design.assembly.held
        return tuple(cell for cell, nets in held_at.items() if waves.voltage(nets[0])[-1] > threshold)

    def decks(self, design: Design, test_set: TestSet, run: Run) -> Iterator[str]:
        """Yield each sample's deck for the simulator, in the form in which it runs fastest."""
        benches = sample_benches(design, test_set, run)
        if isinstance(self.simulator, Starting):
            benches = map(self.simulator.begun, benches)
        yield from map(self.simulator.write, benches)

    def check(self) -> None:
        """Raise MissingToolError where the simulator is not installed."""
        self.simulator.check()

    def describe(self, technology: Technology) -> Description:
        """Return the version and options of this engine's simulator."""
        return self.simulator.describe(technology)


def engine_named(name: str) -> Engine:
    """Return the engine of this name. Raises InputError for a name that ENGINES does not have."""
    entry = engine_entry(name)
    found = entry.load()
    return SimulatorEngine(found) if entry.simulator else found


def sample_benches(design: Design, test_set: TestSet, run: Run) -> Iterator[Bench]:
    """Return an iterator over the samples' benches to simulate, each as long as its valid steps.

    Benches have the stress and the device noise of the run. Raises OutOfMemoryError where the waveforms of the longest
    one have no room.
    """
    frames = int(test_set.lengths.max())
    numbers = frames / run.timing.t_max_step * (1 + len(saved_probes(design.assembly)))
    check_memory(8 * numbers, f"simulating a sample of {frames} frames", "cut it into shorter samples")
    samples = (x[:length] for x, length in zip(test_set.x, test_set.lengths, strict=True))
    benches = inference_benches(design, samples, run.timing, run.condition, run.chip)
    if run.stress is not None:
        benches = map(run.stress, benches)
    if (noise := run.noise) is None:
        return benches
    step, slopes = run.timing.t_step / NOISE_POINTS, noise.slopes
    return (
        replace(bench, noise=TransientNoise(step, noise.key(int(index)), slopes=slopes))
        for bench, index in zip(benches, test_set.indices, strict=True)
    )


def planned_samples(design: Design, test_set: TestSet, run: Run) -> tuple[Iterator[Bench], Iterator[ReadPlan]]:
    """Return the samples' benches to simulate, and for each the plan of what to read from its waveforms."""
    there = run.standing(design)
    plans = (read_plan(design, int(length), run.timing, there) for length in test_set.lengths)
    return sample_benches(design, test_set, run), plans


def measured_samples(design: Design, test_set: TestSet, run: Run) -> tuple[Iterator[Bench], Iterator[ReadPlan]]:
    """Return the samples' benches to simulate and their plans to read them, both with the margins of decisions."""
    margins, (benches, plans) = decision_margins(design, run), planned_samples(design, test_set, run)
    return (
        (with_candidates(bench, margins) for bench in benches),
        (with_margins(plan, margins, run) for plan in plans),
    )


def simulate_samples(
    design: Design, test_set: TestSet, run: Run = Run(), progress: Progress = lambda done, total: None
) -> list[Outcome]:
    """Simulate every sample by the run's engine and return the outcomes in the order of the test set."""
    return list(engine_named(run.engine).infer(design, test_set, run, progress))


def meter_samples(
    design: Design, test_set: TestSet, run: Run, progress: Progress = lambda done, total: None
) -> list[Outcome]:
    """Simulate samples in testbenches that have a supply for each block; return what `metered_plan` reads."""
    benches = [meter(bench, design.assembly) for bench in sample_benches(design, test_set, run)]
    there = run.standing(design)
    plans = [metered_plan(design, int(length), run.timing, there) for length in test_set.lengths]
    return run_inferences(benches, plans, run, progress)
