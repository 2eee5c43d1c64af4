"""Reading of a run's waveforms by a plan: states, readout, power, and how certain decisions were.

Certainty of decisions: a memory's candidate, when its stage closes, against the threshold that counts then.

The candidate is the current of its diode: in the cell itself the decision node takes whatever voltage makes the
currents into it cancel. The threshold is that of the unit's equations, as calibration measured it and as the chip's
draws move it; where it depends on the input, from the currents of the cell's own threshold lines. The error that
calibration leaves in a threshold is not counted. A quantiser's comparators have no memory: the size of its pulse says
whether they decided. Where a register writes a value, the distance of the value from the nearest turn of a level
counts, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assembly import Assembly, Shown, StateCurrent
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import Bench, DrainCurrent
from cosim.circuit.waveforms import DECIDE, Timing
from cosim.compiler.design import Condition, Design
from cosim.engines.behavioral.evaluate import cell_of
from cosim.engines.chip import deviations_of
from cosim.engines.engine import Inference, Run, Waveforms
from cosim.engines.simulation.testbench import run_time, supply_source
from cosim.network.ir.nodes import ThresholdUnit
from cosim.network.ir.states import States
from cosim.units.builder import instance, net
from cosim.units.kind import CellEquations, SwitchingThresholds
from cosim.units.sizing import PULSE_BEGIN, PULSE_END
from cosim.units.table import unit_of

SETTLED = 0.01  # of a frame: how long before an edge the circuit is taken to stand still
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Meter:
    """A voltage source whose mean current is read from a simulation; one_way: only current that it delivers counts.

    A supply takes back current that flows back into it. A driver does not: it delivers from its own supply and sinks to
    ground.
    """

    source: str
    one_way: bool = False


@dataclass(frozen=True)
class Margin:
    """The measurement of a memory's decision margins in a simulation, ampere.

    The margin is the distance of the candidate from the nearest threshold that counts. device: transistor with the
    candidate's current; close: when it is read, as a fraction of a frame; thresholds: function from the currents of the
    transistors `lines` to the thresholds; started: the state is not 0 before the first frame; pulse: current that moves
    a ladder or toggle after its decision, in steps; values: transistors with the values +v and -v, of which a register
    writes the first where the candidate is above both thresholds, and the second where it is below both.
    """

    device: str
    close: float
    thresholds: Callable[[Sequence[Array]], SwitchingThresholds]
    lines: tuple[str, ...] = ()
    started: bool = False
    pulse: StateCurrent | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReadPlan:
    """A plan of what to read from a simulated run.

    decisions: what shows each memory's state, where a net is high above `threshold` volt; outputs: sources through
    which the readout's currents flow; supplies: sources that deliver power, each with its voltage; times: when states
    and readout are sampled, s; window: (begin, end) of the mean power, s.
    meters: sources whose mean current is read in each window of `metered`, (windows, 2) begins and ends, s.
    margins: how to measure each decision's margin, None where there is none; closes: when, (decisions, frames), s;
    pulsed: time from there to the pulses, s.
    lines: nets of the classes of the chip's own decision, read at `decided`, s.
    """

    decisions: tuple[Shown, ...]
    outputs: tuple[str, ...]
    supplies: tuple[tuple[Meter, float], ...]
    threshold: float
    times: Array
    window: tuple[float, float]
    meters: tuple[Meter, ...] = ()
    metered: Array = field(default_factory=lambda: np.empty((0, 2)))
    margins: tuple[Margin | None, ...] = ()
    closes: Array = field(default_factory=lambda: np.empty((0, 0)))
    pulsed: float = 0.0
    lines: tuple[str, ...] = ()
    decided: float = 0.0


def meters_of(assembly: Assembly) -> dict[str, Meter]:
    """Return a simulated run's meters by name: each block, `vground`, every output, clock and pulse, and the reset.

    The virtual ground's source delivers the current that flows back through it. Outputs are those of `pushed_by`.
    """
    return {
        **{block: Meter(supply_source(block)) for block in assembly.blocks},
        "vground": Meter("ground"),
        **pushed_by(assembly),
        **{pin: Meter(pin, one_way=True) for pin in (*assembly.driven, assembly.reset)},
    }


def pushed_by(assembly: Assembly) -> dict[str, Meter]:
    """Return the meters of the currents that outputs push into the virtual ground of a simulation: output pin -> meter.

    The testbench's virtual ground returns that current to V_DD; a real stage sinks it to ground. There are no meters if
    the chip's own decision sinks the current.
    """
    if assembly.around.lines:
        return {}
    return {pin: Meter(pin, one_way=True) for pin in assembly.outputs}


def frame_windows(timing: Timing, frames: int) -> Array:
    """Return begin and end of each simulated frame, (frames, 2), second."""
    frame = np.arange(frames, dtype=np.float64)[:, None]
    return np.asarray(timing.start + timing.t_step * (frame + np.array([0.0, 1.0])), dtype=np.float64)


def settled_windows(timing: Timing, assembly: Assembly, frames: int) -> tuple[Array, Array]:
    """Return the windows in which a simulated circuit stands still, (windows, 2), s, and weights (frames, windows).

    The weights times the mean power in the windows give the static power of each frame; each row sums to 1. The circuit
    changes at a frame's edge, when a stage closes, and when a pulse begins or ends. Each span between the middles of
    two such edges has the power of its last SETTLED of a frame; the last span is read before the clock goes high again.
    """
    closes = timing.closes(len(assembly.clocks))
    pulses = (closes[stage] + edge for stage in assembly.pulses for edge in (PULSE_BEGIN, PULSE_END))
    inner = sorted({*closes, *pulses})
    looks = np.array([*inner, closes[-1] + DECIDE])  # where each span of a frame ends, and is looked at
    begins = np.array([timing.edge / 2, *(at + timing.clock_edge / 2 for at in inner)])
    spans = len(looks)
    ends = np.concatenate([[0.0], (np.arange(frames)[:, None] + looks).ravel()])
    windows = timing.start + timing.t_step * np.stack([ends - SETTLED, ends], axis=1)
    weights = np.zeros((frames, 1 + frames * spans))
    for k in range(frames):
        weights[k, k * spans : (k + 1) * spans + 1] = np.diff([0.0, *begins, 1.0])
    return windows, weights


def read_plan(design: Design, frames: int, timing: Timing = Timing(), condition: Condition | None = None) -> ReadPlan:
    """Return the plan of what to sample in a simulated inference of so many frames.

    condition: that of the bench, with a chip's supply; None for the nominal one.
    """
    assembly, supply = design.assembly, (condition or design.nominal).technology.supply
    return ReadPlan(
        decisions=tuple(assembly.decisions.values()),
        outputs=assembly.outputs,
        supplies=((Meter("dd"), supply), *((pushed, supply) for pushed in pushed_by(assembly).values())),
        threshold=STATE_LEVEL * supply,
        times=timing.sample_times(frames),
        window=(timing.start, timing.start + frames * timing.t_step),
        lines=assembly.around.lines,
        decided=run_time(assembly, frames, timing),
    )


def metered_plan(
    design: Design, frames: int, timing: Timing = Timing(), condition: Condition | None = None
) -> ReadPlan:
    """Return the plan for a metered inference: the currents of `meters_of` in each frame and each settled window.

    condition: as for `read_plan`.
    """
    plan, assembly = read_plan(design, frames, timing, condition), design.assembly
    ((_, supply), *pushed), (settled, _) = plan.supplies, settled_windows(timing, assembly, frames)
    return replace(
        plan,
        supplies=(*((Meter(supply_source(block)), supply) for block in assembly.blocks), *pushed),
        meters=tuple(meters_of(assembly).values()),
        metered=np.concatenate([frame_windows(timing, frames), settled]),
    )


def find_stop(waves: Waveforms, plan: ReadPlan) -> str:
    """Return when simulated waveforms stop, in words, if that is too early for the plan; else an empty text."""
    last, end = waves.time[-1], max(plan.window[1], plan.decided)
    return f"stopped at {last:.6g} s of {end:.6g} s" if last < end * (1 - 1e-6) else ""


def read_inference(waves: Waveforms, plan: ReadPlan) -> Inference:
    """Read what a plan asks for from a bench's simulated waveforms."""
    time, at = waves.time, _Interpolation(plan.times, waves.time)
    nets = dict.fromkeys(net for shown in plan.decisions if not isinstance(shown, StateCurrent) for net in shown)
    volts = {net: at.read(waves.voltage(net)) for net in nets}
    states = np.stack([_state(waves, shown, at, volts, plan.threshold) for shown in plan.decisions], axis=1)
    readout = np.stack([at.read(waves.through(name)) for name in plan.outputs], axis=1)
    power = float(_mean(time, drawn_power(waves, plan.supplies), plan.window))
    delivered = np.empty((len(plan.metered), len(plan.meters)))
    for j, meter in enumerate(plan.meters):
        current = _current(waves, meter)
        for i, (begin, end) in enumerate(plan.metered):
            delivered[i, j] = _mean(time, current, (begin, end))
    lines = np.array([waves.voltage(net)[-1] for net in plan.lines]) > plan.threshold
    found = Inference(states, readout, power, delivered, lines=lines)
    if not plan.margins:
        return found
    latches = np.stack([_latch(shown, volts, plan) for shown in plan.decisions], axis=1)
    return replace(found, margins=_margins(waves, plan, states), latches=np.minimum(latches, _pulses(waves, plan)))


def _margins(waves: Waveforms, plan: ReadPlan, states: States) -> Array:
    """Read the margin of each decision, (frames, cells) ampere; inf where a cell has none."""
    found, at = np.full(states.shape, np.inf), dict[bytes, _Interpolation]()  # the cells of a stage close at once
    for k, margin in enumerate(plan.margins):
        if margin is not None:
            closes = plan.closes[k].tobytes()
            at[closes] = at.get(closes) or _Interpolation(plan.closes[k], waves.time)
            current, *lines = (at[closes].read(waves.drain(device)) for device in (margin.device, *margin.lines))
            thresholds, on = margin.thresholds(lines), np.concatenate([[margin.started], states[:-1, k] > 0])
            found[:, k] = np.where(on, _nearest(current, thresholds.while_on), _nearest(current, thresholds.while_off))
            if margin.values:
                values = [at[closes].read(waves.drain(device)) for device in margin.values]
                found[:, k] = np.minimum(found[:, k], _written_margin(current, values, thresholds))
    return found


def _written_margin(candidate: Array, values: Sequence[Array], thresholds: SwitchingThresholds) -> Array:
    """Return the distance of the value that a register writes from the nearest turn of a level, ampere.

    It is inf where the register writes none. candidate, values: simulated currents, ampere.
    """
    rise, fall = thresholds.while_off
    positive, negative = (_nearest(value, [np.asarray(turn) for turn in thresholds.turns]) for value in values)
    return np.where(candidate >= rise, positive, np.where(candidate <= fall, negative, np.inf))


def _pulses(waves: Waveforms, plan: ReadPlan) -> Array:
    """Return the distance of each pulse's net from its threshold, (frames, cells), volt; inf without a pulse.

    A simulated pulse of half a step counts as a net at its threshold, one of whole steps as one at ground.
    """
    found = np.full((len(plan.times), len(plan.margins)), np.inf)
    for k, margin in enumerate(plan.margins):
        if margin is not None and (pulse := margin.pulse) is not None:
            current = _Interpolation(plan.closes[k] + plan.pulsed, waves.time).read(waves.drain(pulse.device))
            found[:, k] = 2 * plan.threshold * np.abs((current - pulse.rest) / pulse.step % 1.0 - 0.5)
    return found


def _nearest(current: Array, thresholds: Sequence[Array]) -> Array:
    return np.min([np.abs(current - one) for one in thresholds], axis=0)


class _Interpolation:
    """An interpolation of waveforms at some times, s; `time` has the solver's steps."""

    def __init__(self, times: Array, time: Array) -> None:
        self._times = np.maximum(times, time[0])
        self._left = np.clip(np.searchsorted(time, self._times, side="right") - 1, 0, len(time) - 2)
        self._from, self._step = self._times - time[self._left], time[self._left + 1] - time[self._left]
        self._within = self._times < time[-1]

    def read(self, values: Array) -> Array:
        """Interpolate values (..., time) linearly, as np.interp does: (..., times); beyond an end the value there."""
        here, then = values[..., self._left], values[..., self._left + 1]
        return np.where(self._within, (then - here) / self._step * self._from + here, values[..., -1:])


def _state(waves: Waveforms, shown: Shown, at: _Interpolation, volts: Mapping[str, Array], threshold: float) -> States:
    if isinstance(shown, StateCurrent):
        return (at.read(waves.drain(shown.device)) - shown.rest) / shown.step
    return np.asarray(sum(volts[net] > threshold for net in shown), dtype=np.int16)


def _latch(shown: Shown, volts: Mapping[str, Array], plan: ReadPlan) -> Array:
    """Return the distance of the nearest of a memory's nets from the threshold, V, (times,)."""
    if isinstance(shown, StateCurrent):
        return np.full(len(plan.times), np.inf)
    return np.min([np.abs(volts[net] - plan.threshold) for net in shown], axis=0)


def drawn_power(waves: Waveforms, supplies: Sequence[tuple[Meter, float]]) -> Array:
    """Compute from simulated waveforms the power that sources deliver at each time step, watt."""
    shape = next(iter(waves.probes.values())).shape
    return sum((volt * _current(waves, meter) for meter, volt in supplies), np.zeros(shape))


def _current(waves: Waveforms, meter: Meter) -> Array:
    current = waves.delivered(meter.source)
    return np.maximum(current, 0.0) if meter.one_way else current


def _mean(time: Array, values: Array, window: tuple[float, float]) -> Array:
    """Compute the time mean of values (..., time) over a window by the trapezoidal rule on the solver's steps."""
    first, end = np.searchsorted(time, window[0], side="right"), np.searchsorted(time, window[1])
    at = np.concatenate([window[:1], time[first:end], window[1:]])
    ends = _Interpolation(np.array(window), time).read(values)
    whole = np.concatenate([ends[..., :1], values[..., first:end], ends[..., 1:]], axis=-1)
    return np.asarray(np.trapezoid(whole, at, axis=-1) / (window[1] - window[0]))


def _scaled_thresholds(
    node: ThresholdUnit, cell: CellEquations[Any, Any], scale: float, lines: Sequence[Array] = ()
) -> SwitchingThresholds:
    """Return a cell's thresholds by the simulated currents of its lines, its bias currents `scale` times nominal."""
    found = unit_of(node).switching_thresholds(cell, [line / scale for line in lines])
    off, on = (tuple(one * scale for one in few) for few in (found.while_off, found.while_on))
    return SwitchingThresholds(off, on, turns=tuple(turn * scale for turn in found.turns))


def _fixed_thresholds(found: SwitchingThresholds, lines: Sequence[Array]) -> SwitchingThresholds:
    """Return a cell's thresholds that do not move, against which a simulation's decision margins are read."""
    return found


def decision_margins(design: Design, run: Run) -> tuple[Margin | None, ...]:
    """Return how to measure each memory's decision margin in a simulation, in the order of the plan's decisions.

    It is None for a memory that compares nothing. A ladder's margin is that of its quantiser, a toggle's that of its
    master, because both are followed by a pulse of full size.
    """
    there, graph, assembly = run.standing(design), design.graph, design.assembly
    roles, closes = assembly.circuit.roles(), run.timing.closes(len(assembly.clocks))
    fixed = deviations_of(design, there, run.chip)
    moving = deviations_of(design, replace(there, pins={}), run.chip)  # a line's current has its pin's trim in it
    found: dict[str, Margin] = {}
    for node in graph.of(ThresholdUnit):
        own = bool(graph.into(node.name, "beta"))
        factors = (moving if own else fixed).cells.get(node.name)
        cell = cell_of(graph, node, design.calibration, factors)
        if own:
            lines = tuple(roles[instance(pin), "bias"] for pin in assembly.cell_bias[node.name][:2])
            thresholds = partial(_scaled_thresholds, node, cell, there.bias_scale)
        else:
            lines, thresholds = (), partial(_fixed_thresholds, _scaled_thresholds(node, cell, there.bias_scale))
        diode = roles[instance(f"cand_{net(node.name)}"), "candidate"]
        pulse = assembly.drives.get(node.name)
        if pulse is not None:
            pulse = replace(pulse, rest=there.bias_scale * pulse.rest, step=there.bias_scale * pulse.step)
        written = tuple(roles[instance(f"relu_{net(value)}"), "diode"] for value, _ in graph.into(node.name, "value"))
        found[node.name] = Margin(diode, closes[node.stage], thresholds, lines, node.start > 0, pulse, written)
    return tuple(found.get(name) for name in assembly.decisions)


def with_candidates(bench: Bench, margins: tuple[Margin | None, ...]) -> Bench:
    """Return the bench with probes of the simulated currents from which decision margins are read."""
    known = set(bench.probes)
    asked = [margin for margin in margins if margin is not None]
    devices = [device for margin in asked for device in (margin.device, *margin.lines, *margin.values)]
    pulses = [margin.pulse.device for margin in asked if margin.pulse is not None]
    wanted = dict.fromkeys(map(DrainCurrent, (*devices, *pulses)))
    return replace(bench, probes=(*bench.probes, *(probe for probe in wanted if probe not in known)))


def with_margins(plan: ReadPlan, margins: tuple[Margin | None, ...], run: Run) -> ReadPlan:
    """Return the plan of what to read from a simulation with decision margins added."""
    closes = [run.timing.moments(len(plan.times), 0.0 if margin is None else margin.close) for margin in margins]
    return replace(plan, margins=margins, closes=np.array(closes), pulsed=PULSE_END * run.timing.t_step)
