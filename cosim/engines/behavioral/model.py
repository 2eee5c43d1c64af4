"""A design's equations as an engine: every sample at once, and power from its currents."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.version import __version__
from cosim.cells.assembly import Assembly
from cosim.cells.builder import PEDESTAL_STRENGTH
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design
from cosim.engines.behavioral.evaluate import BehavioralTrace, evaluate, evaluate_noisy, unreset_cells
from cosim.engines.behavioral.noise import noise_model
from cosim.engines.behavioral.supply import Feed, estimate_power
from cosim.engines.chip import deviations_of, standing
from cosim.engines.engine import Description, Inference, Progress, Run
from cosim.network.ir.nodes import PEDESTAL
from cosim.network.ir.states import States
from cosim.network.reference import encode_inputs
from cosim.tasks.testset import TestSet
from cosim.technology.types import Technology
from cosim.variation.draws import Chip
from cosim.variation.noise import NoiseSimulation

Array = NDArray[np.float64]


def run_behavioral(
    design: Design, x: Array, condition: Condition | None = None, chip: Chip | None = None, *, ideal: bool = False
) -> BehavioralTrace:
    """Evaluate the design's equations on raw inputs x (n, time, features); `ideal` leaves rounding as the only error.

    All currents of the trace are divided by the condition's `bias_scale`.
    """
    there = standing(design, condition, chip)
    inputs = encode_inputs(design.network.encoding, x).scaled(1.0 if ideal else there.input_scale / there.bias_scale)
    return evaluate(design.graph, design.calibration, inputs, deviations_of(design, there, chip), ideal=ideal)


def run_noisy(
    design: Design, x: Array, noise: NoiseSimulation, condition: Condition | None = None, chip: Chip | None = None
) -> BehavioralTrace:
    """Evaluate a design's equations for samples with noise at every decision.

    x: (n, time, inputs), software numbers. Raises InputError that names a unit whose noise is not modelled.
    """
    there = standing(design, condition, chip)
    inputs = encode_inputs(design.network.encoding, x).scaled(there.input_scale / there.bias_scale)
    model = noise_model(design, noise, there.technology.thermal_voltage, there.bias_scale)
    return evaluate_noisy(model, inputs, deviations_of(design, there, chip))


def run_samples(design: Design, test_set: TestSet, run: Run) -> BehavioralTrace:
    """Evaluate a design's behavioral equations for a run's samples, with its noise where it has any."""
    if run.noise is None:
        return run_behavioral(design, test_set.x, run.condition, run.chip)
    noise = replace(run.noise, samples=test_set.indices, timing=run.timing)
    return run_noisy(design, test_set.x, noise, run.condition, run.chip)


def behavioral_power(
    design: Design,
    trace: BehavioralTrace,
    timing: Timing = Timing(),
    condition: Condition | None = None,
    chip: Chip | None = None,
) -> dict[str, Array]:
    """Compute the mean power per frame of each block from a behavioral trace, watt, (n, time)."""
    there, assembly = standing(design, condition, chip), design.assembly
    around, strength = around_currents(assembly, pins := design.bias_pins(there)), {PEDESTAL: PEDESTAL_STRENGTH}
    bias = sum(current for pin, current in pins.items() if pin not in assembly.around.pins)
    bias += sum(pins[pin] for pin in assembly.pushed)
    closes = timing.closes(len(assembly.clocks))
    feed = Feed(there.technology.supply, bias, closes, assembly.rails, strength, around)
    blocks = estimate_power(design.graph, design.calibration, trace, feed, deviations_of(design, there, chip))
    return {name: there.bias_scale * power for name, power in blocks.items()}


def supply_current(design: Design, frames: int = 8) -> float:
    """Return the largest supply current, ampere, over so many frames with all inputs off, and with all on."""
    encoding = design.network.encoding
    ends = [np.broadcast_to(encoding.offset + k * encoding.scale, (frames, encoding.features)) for k in (0, 1)]
    blocks = behavioral_power(design, run_behavioral(design, np.stack(ends)))
    return float(np.max(sum(blocks.values(), np.zeros(())))) / design.technology.supply


def around_currents(assembly: Assembly, pins: Mapping[str, float]) -> dict[str, float]:
    """Return block around the network -> its constant current in the behavioral engine, A.

    pins: current of each bias pin, A.
    """
    found = dict.fromkeys(assembly.around.blocks, 0.0) | assembly.around.constant
    for pin, block in assembly.around.pins.items():
        found[block] += pins[pin]
    return found


@dataclass(frozen=True)
class Behavioral:
    """The behavioral engine: a design's equations for all samples at once in this process."""

    name: str = "behavioral"

    def infer(self, design: Design, test_set: TestSet, run: Run, progress: Progress) -> Iterator[Inference]:
        """Yield the behavioral engine's outcomes in the order of the samples; none fails."""
        trace = run_samples(design, test_set, run)
        states: States = np.stack([trace.states[cell] for cell in design.assembly.decisions], axis=2)
        readout = run.standing(design).bias_scale * trace.readout
        lengths: NDArray[np.int64] = test_set.lengths
        valid: NDArray[np.bool_] = np.arange(len(test_set.x[0]))[None, :] < lengths[:, None]
        blocks = behavioral_power(design, trace, run.timing, run.condition, run.chip)
        total: Array = sum(blocks.values(), np.zeros(valid.shape))
        power: Array = (total * valid).sum(axis=1) / lengths
        progress(len(power), len(power))
        for k, length in enumerate(lengths.tolist()):
            yield Inference(states[k, :length], readout[k, :length], float(power[k]))

    def unreset(self, design: Design, test_set: TestSet, run: Run) -> tuple[str, ...]:
        """Return the 9T cells that by the behavioral equations stay on at a candidate of 0."""
        deviations = deviations_of(design, run.standing(design), run.chip)
        return unreset_cells(design.graph, design.calibration, deviations)

    def decks(self, design: Design, test_set: TestSet, run: Run) -> Iterator[str]:
        """Yield no deck, because no simulator runs."""
        yield from ()

    def check(self) -> None:
        """Do nothing: the behavioral engine needs no tool."""

    def describe(self, technology: Technology) -> Description:
        """Return the behavioral engine's description: the version of cosim, without options."""
        return Description(__version__, {})
