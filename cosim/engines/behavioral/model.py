"""A design's equations as an engine: every sample at once, and power from its currents.

Supply power of a compiled network from its currents: V_DD times every branch that starts at the supply.

    input and unit diodes        I
    symbol comparator            the less of g_push I and its threshold
    line n of a signal           g_push I                      (the p copy into the n diode)
    summing node                 sum of its positive terms     (what is pulled comes from V_DD, through the diode or
                                                                as push)
    output                       the same, or what is pushed if that is more: the readout stage delivers what an output
                                 pulls, and sinks to ground what it pushes
    memory                       the equations of its kind, cosim.units
    bias pins                    each once
    decision on the chip         what outputs pull; the idle current of each average and of their replica; four times
                                 its bias: followers, their copies, winner-take-all, its line

g_push: a p copy into an nMOS diode; g_sink: an n copy onto a pMOS diode; g_n = g_sink + slope_n v_node: an n copy with
its drain at V_DD. The decision branch of a memory or comparator carries the less of what M1 and M9 source and M2 sinks,
because the other side leaves saturation; v0 is then at a rail. Feedback and output branch of the 9T cell are alike (M6,
M8, M7 and M3, M5, M4 in cosim.cells.schmitt), so the calibrated level i_high serves both, as alpha in a rung.

A frame has a span from each moment at which something decides to the next: a stage at its close, its ladders and
toggles in their pulse. In each span the circuit stands still, with the states as they are by then (`evaluate_held`).
Static: the lag of currents behind their edges is left to ngspice (cosim.engines.simulation.read).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cosim.base.version import __version__
from cosim.cells.assembly import Assembly
from cosim.cells.blocks import BLOCKS
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design
from cosim.engines.behavioral.evaluate import (
    BehavioralTrace,
    cell_of,
    evaluate,
    evaluate_held,
    evaluate_noisy,
)
from cosim.engines.behavioral.noise import noise_model
from cosim.engines.chip import deviations_of, standing
from cosim.engines.engine import Description, Inference, Progress, Run
from cosim.network.ir.graph import SizedGraph
from cosim.network.ir.nodes import (
    PEDESTAL,
    PEDESTAL_STRENGTH,
    InputCurrent,
    Memory,
    Output,
    Pedestal,
    Rectifier,
    UnitCurrent,
)
from cosim.network.ir.states import States
from cosim.network.reference import encode_inputs, later, valid_steps
from cosim.tasks.testset import TestSet
from cosim.technology.calibration import Calibration
from cosim.technology.types import Technology
from cosim.units.kind import Array, CellSignals
from cosim.units.sizing import PULSE_BEGIN
from cosim.units.table import unit_of
from cosim.variation.draws import Chip
from cosim.variation.noise import NoiseSimulation

_STRENGTH = {PEDESTAL: PEDESTAL_STRENGTH}  # signal -> how much stronger its own diodes are built, if not 1


def _at(now: States, first: int, *, arrived: bool) -> States:
    """Return a behavioral memory's states (n, time) at a moment: this frame's if `arrived`, else the last one's."""
    return now if arrived else later(now, 1, first)


def _update(trace: BehavioralTrace, node: Memory, *, decided: bool) -> NDArray[np.int16]:
    """Return 1 where the last decision of a memory in a behavioral run changed its state, else 0: (n, time)."""
    now = trace.states[node.name]
    changed = (now != _at(now, node.start, arrived=False)).astype(np.int16)
    return changed if decided else later(changed, 1, 0)


def _moments(graph: SizedGraph, closes: Sequence[float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return when each behavioral memory decides, and when its state changes, as fractions of a frame.

    The state of a memory with a pulse changes in its pulse. closes: when each stage closes.
    """
    memories = list(graph.memories)
    decides = {node.name: closes[node.stage] for node in memories}
    waits = {node.name: PULSE_BEGIN if unit_of(node).updates_in_pulse else 0.0 for node in memories}
    return decides, {name: decides[name] + waits[name] for name in decides}


def _cell_current(
    graph: SizedGraph,
    calibration: Calibration,
    node: Memory,
    trace: BehavioralTrace,
    updated: Callable[[], NDArray[np.int16]],
) -> Array:
    """Return the supply current of a behavioral memory's cell, (n, time) in ampere."""
    name = node.name
    moving = [*graph.into(name, "beta"), *graph.into(name, "rate")]
    beta = sum((trace.currents[source] for source, _ in moving), np.float64(0.0))
    signals = CellSignals(trace.candidates[name], trace.states[name], trace.currents[name], updated, beta)
    values = tuple(trace.currents[source] for source, _ in graph.into(name, "value"))
    return unit_of(node).supply_current(replace(cell_of(graph, node, calibration), values=values), signals)


def _block_currents(design: Design, trace: BehavioralTrace) -> dict[str, Array]:
    """Compute the supply current of every block but bias and cells in a behavioral run, (n, time) in ampere."""
    graph, push, around = design.graph, design.calibration.mirror.push, design.assembly.around
    current, nothing = trace.currents, np.zeros(trace.readout.shape[:2])
    sources = graph.of(InputCurrent, UnitCurrent, Pedestal)
    rows = (_pulled(graph, node.name, trace) for node in graph.of(Rectifier, Memory))
    outputs = [node.name for node in graph.of(Output)]
    readout = sum((_pulled(graph, name, trace) + np.maximum(-current[name], 0.0) for name in outputs), nothing)
    decision = {}
    if "decision" in around.blocks:
        decision = {"decision": sum((np.maximum(current[name], 0.0) for name in outputs), nothing)}
        readout = readout - decision["decision"]
    return decision | {
        "inputs": sum((_STRENGTH.get(node.name, 1) * current[node.name] for node in sources), nothing),
        "rails": sum(
            (_STRENGTH.get(name, 1) * push * current[name] for name in sorted(design.assembly.rails)),
            _compared(graph, trace, push),
        ),
        "rows": sum(rows, nothing),
        "readout": readout,
    }


def _compared(graph: SizedGraph, trace: BehavioralTrace, push: float) -> Array:
    """Return the supply current of the symbol comparators, ampere, (n, time)."""
    total = np.zeros(trace.readout.shape[:2])
    for name in graph.nodes:
        if (half := graph.half(name)) is not None:
            total = total + np.minimum(push * trace.currents[name], half)
    return total


def _pulled(graph: SizedGraph, name: str, trace: BehavioralTrace) -> Array:
    """Compute the sum of a row's positive terms in a behavioral run, ampere, (n, time)."""
    total = np.zeros(trace.readout.shape[:2])
    for source, _ in graph.into(name):
        mirror = graph.mirrors[source, name]
        if mirror.realised > 0:
            total = total + mirror.realised * trace.currents[source]
    return total


def run_behavioral(
    design: Design, x: Array, condition: Condition | None = None, chip: Chip | None = None, *, ideal: bool = False
) -> BehavioralTrace:
    """Evaluate a design's behavioral equations on raw inputs x (n, time, features).

    condition: None for the nominal one; chip: None for transistors that do not deviate; ideal: only rounding of weights
    is left as an error. All currents of the trace are divided by the condition's `bias_scale`.
    """
    there = standing(design, condition, chip)
    inputs = encode_inputs(design.network.encoding, x).scaled(1.0 if ideal else there.input_scale / there.bias_scale)
    return evaluate(design.graph, design.calibration, inputs, deviations_of(design, there, chip), ideal=ideal)


def run_noisy(
    design: Design, x: Array, noise: NoiseSimulation, condition: Condition | None = None, chip: Chip | None = None
) -> BehavioralTrace:
    """Evaluate a design's behavioral equations on raw inputs x (n, time, features), with noise at every decision.

    Raises InputError that names a unit whose noise is not modelled.
    """
    there = standing(design, condition, chip)
    inputs = encode_inputs(design.network.encoding, x).scaled(there.input_scale / there.bias_scale)
    model = noise_model(design, noise, there.technology.thermal_voltage, there.bias_scale)
    return evaluate_noisy(model, inputs, deviations_of(design, there, chip))


def run_samples(design: Design, test_set: TestSet, run: Run) -> BehavioralTrace:
    """Evaluate a design's behavioral equations for a test set, with the condition, chip and noise of a run."""
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
    """Compute the mean power of each block in each frame of a behavioral run, watt: block -> (n, time)."""
    there, assembly, graph = standing(design, condition, chip), design.assembly, design.graph
    deviations, pins = deviations_of(design, there, chip), design.bias_pins(there)
    supply, shape = there.technology.supply, trace.readout.shape[:2]
    constant = dict.fromkeys(BLOCKS, 0.0) | around_currents(assembly, pins)
    total = {block: np.full(shape, supply * amp) for block, amp in constant.items()}
    bias = sum(current for pin, current in pins.items() if pin not in assembly.around.pins)
    total["bias"] += supply * (bias + sum(pins[pin] for pin in assembly.pushed))
    decides, changes = _moments(graph, timing.closes(len(assembly.clocks)))
    begins = sorted({0.0, *decides.values(), *changes.values()})
    for begin, duration in zip(begins, np.diff([*begins, 1.0]), strict=True):
        still = trace
        if begin < begins[-1]:
            states = {
                node.name: _at(trace.states[node.name], node.start, arrived=changes[node.name] <= begin)
                for node in graph.memories
            }
            still = evaluate_held(graph, design.calibration, trace, states, deviations)
        currents = _block_currents(design, still)
        currents["cells"] = np.zeros(shape)
        for node in graph.memories:
            updated = partial(_update, trace, node, decided=decides[node.name] <= begin)
            currents["cells"] = currents["cells"] + _cell_current(graph, design.calibration, node, still, updated)
        for block, current in currents.items():
            total[block] = total[block] + supply * duration * current
    return {name: there.bias_scale * power for name, power in total.items()}


def supply_current(design: Design, frames: int = 8) -> float:
    """Evaluate by the behavioral equations the largest supply current, ampere, with all inputs off or all on.

    frames: number of frames with each.
    """
    encoding = design.network.encoding
    ends = [np.broadcast_to(encoding.offset + k * encoding.scale, (frames, encoding.features)) for k in (0, 1)]
    blocks = behavioral_power(design, run_behavioral(design, np.stack(ends)))
    return float(np.max(sum(blocks.values(), np.zeros(())))) / design.technology.supply


def around_currents(assembly: Assembly, pins: Mapping[str, float]) -> dict[str, float]:
    """Return the constant currents of the blocks around the network in the behavioral engine: block -> A.

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
        """Yield the behavioral engine's result of each sample, in the order of the samples; none fails."""
        trace = run_samples(design, test_set, run)
        states: States = np.stack([trace.states[cell] for cell in design.assembly.decisions], axis=2)
        readout = run.standing(design).bias_scale * trace.readout
        lengths: NDArray[np.int64] = test_set.lengths
        valid = valid_steps(lengths, test_set.x.shape[1])
        blocks = behavioral_power(design, trace, run.timing, run.condition, run.chip)
        total: Array = sum(blocks.values(), np.zeros(valid.shape))
        power: Array = (total * valid).sum(axis=1) / lengths
        progress(len(power), len(power))
        for k, length in enumerate(lengths.tolist()):
            yield Inference(states[k, :length], readout[k, :length], float(power[k]))

    def unreset(self, design: Design, test_set: TestSet, run: Run) -> tuple[str, ...]:
        """Return the 9T cells that by the behavioral equations stay on at a candidate of 0.

        Cells whose thresholds depend on the input are left out.
        """
        graph, factors = design.graph, deviations_of(design, run.standing(design), run.chip).cells
        fixed = (node for node in graph.memories if not graph.into(node.name, "beta"))
        cells = ((node, cell_of(graph, node, design.calibration, factors.get(node.name))) for node in fixed)
        return tuple(node.name for node, cell in cells if unit_of(node).stays_on_through_reset(cell))

    def decks(self, design: Design, test_set: TestSet, run: Run) -> Iterator[str]:
        """Yield no deck, because no simulator runs."""
        yield from ()

    def check(self) -> None:
        """Do nothing: the behavioral engine needs no tool."""

    def describe(self, technology: Technology) -> Description:
        """Return the behavioral engine's description: the version of cosim, without options."""
        return Description(__version__, {})
