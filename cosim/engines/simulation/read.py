"""Reading of a run's waveforms: states, readout, power, and how certain decisions were."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assembly import Carried, Shown
from cosim.engines.engine import Inference, Waveforms
from cosim.network.ir.states import States
from cosim.units.kind import SwitchingThresholds

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Meter:
    """A voltage source whose mean current is read from a simulation. one_way: what flows back into it does not count.

    A supply takes back what flows back. A driver does not: it delivers from its own supply and takes to ground.
    """

    source: str
    one_way: bool = False


@dataclass(frozen=True)
class Margin:
    """Measurement of a decision margin in a simulation.

    Measurement of a memory's margin, ampere: the current of `device`, when the share `close` of the frame is over, from
    the nearest of those at which a decision turns. thresholds: these, from the currents of `lines`, transistors;
    started: whether the state is not 0 before the first frame; pulse: what moves the memory behind the decision, in
    steps, where a quantiser does.
    """

    device: str
    close: float
    thresholds: Callable[[Sequence[Array]], SwitchingThresholds]
    lines: tuple[str, ...] = ()
    started: bool = False
    pulse: Carried | None = None


@dataclass(frozen=True)
class ReadPlan:
    """Plan of what to read from a simulated run.

    decisions: what shows each memory's state, a net is high above `threshold` volt; outputs: sources that
    the readout's currents flow through; supplies: every source that delivers power, with its volt; times: when to
    sample, s; window: (start, end) of the power mean, s.
    meters: sources whose current is read in each of `metered`, (windows, 2) begins and ends, s.
    margins: of each decision, None where there is none to read; closes: when they are read, (decisions, frames) s;
    pulsed: how long after that pulses are, s.
    lines: nets of the classes, read at `decided` second.
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


def find_stop(waves: Waveforms, plan: ReadPlan) -> str:
    """Return the time at which simulated waveforms end too early for a plan, in words; empty if they do not."""
    last, end = waves.time[-1], max(plan.window[1], plan.decided)
    return f"stopped at {last:.6g} s of {end:.6g} s" if last < end * (1 - 1e-6) else ""


def read_inference(waves: Waveforms, plan: ReadPlan) -> Inference:
    """Read what the plan asks for from a bench's simulated waveforms."""
    time, at = waves.time, _At(plan.times, waves.time)
    nets = dict.fromkeys(net for shown in plan.decisions if not isinstance(shown, Carried) for net in shown)
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
    found, at = np.full(states.shape, np.inf), dict[bytes, _At]()  # the cells of a stage close at once
    for k, margin in enumerate(plan.margins):
        if margin is not None:
            closes = plan.closes[k].tobytes()
            at[closes] = at.get(closes) or _At(plan.closes[k], waves.time)
            current, *lines = (at[closes].read(waves.drain(device)) for device in (margin.device, *margin.lines))
            thresholds, on = margin.thresholds(lines), np.concatenate([[margin.started], states[:-1, k] > 0])
            found[:, k] = np.where(on, _nearest(current, thresholds.while_on), _nearest(current, thresholds.while_off))
    return found


def _pulses(waves: Waveforms, plan: ReadPlan) -> Array:
    """Compute how far the net of each pulse is from its threshold, (frames, cells) volt: a pulse of half a step counts
    as a net at its threshold, one of whole steps as one at a rail. It is inf without a pulse."""
    found = np.full((len(plan.times), len(plan.margins)), np.inf)
    for k, margin in enumerate(plan.margins):
        if margin is not None and (pulse := margin.pulse) is not None:
            current = _At(plan.closes[k] + plan.pulsed, waves.time).read(waves.drain(pulse.device))
            found[:, k] = 2 * plan.threshold * np.abs((current - pulse.rest) / pulse.step % 1.0 - 0.5)
    return found


def _nearest(current: Array, thresholds: Sequence[Array]) -> Array:
    return np.min([np.abs(current - one) for one in thresholds], axis=0)


class _At:
    """Some `times` among the solver's steps, s."""

    def __init__(self, times: Array, time: Array) -> None:
        self._times = np.maximum(times, time[0])
        self._left = np.clip(np.searchsorted(time, self._times, side="right") - 1, 0, len(time) - 2)
        self._from, self._step = self._times - time[self._left], time[self._left + 1] - time[self._left]
        self._within = self._times < time[-1]

    def read(self, values: Array) -> Array:
        """Interpolate values (..., time) linearly, as np.interp does: (..., times); beyond an end the value there."""
        here, then = values[..., self._left], values[..., self._left + 1]
        return np.where(self._within, (then - here) / self._step * self._from + here, values[..., -1:])


def _state(waves: Waveforms, shown: Shown, at: _At, volts: Mapping[str, Array], threshold: float) -> States:
    if isinstance(shown, Carried):
        return (at.read(waves.drain(shown.device)) - shown.rest) / shown.step
    return np.asarray(sum(volts[net] > threshold for net in shown), dtype=np.int16)


def _latch(shown: Shown, volts: Mapping[str, Array], plan: ReadPlan) -> Array:
    """Return the distance of the nearest of a memory's nets from the threshold, V, (times,)."""
    if isinstance(shown, Carried):
        return np.full(len(plan.times), np.inf)
    return np.min([np.abs(volts[net] - plan.threshold) for net in shown], axis=0)


def drawn_power(waves: Waveforms, supplies: Sequence[tuple[Meter, float]]) -> Array:
    """Compute the power that these sources deliver at each of the simulator's steps, watt."""
    shape = next(iter(waves.probes.values())).shape
    return sum((volt * _current(waves, meter) for meter, volt in supplies), np.zeros(shape))


def _current(waves: Waveforms, meter: Meter) -> Array:
    current = waves.delivered(meter.source)
    return np.maximum(current, 0.0) if meter.one_way else current


def _mean(time: Array, values: Array, window: tuple[float, float]) -> Array:
    """Compute the time mean (...) of values (..., time) over a window, by the trapezoidal rule on the solver's own
    steps."""
    first, end = np.searchsorted(time, window[0], side="right"), np.searchsorted(time, window[1])
    at = np.concatenate([window[:1], time[first:end], window[1:]])
    ends = _At(np.array(window), time).read(values)
    whole = np.concatenate([ends[..., :1], values[..., first:end], ends[..., 1:]], axis=-1)
    return np.asarray(np.trapezoid(whole, at, axis=-1) / (window[1] - window[0]))
