"""The discrete-time reference: the network's own equations, one time step after the other, in float64.

Every comparison with "software" means this one: no circuit effect, no calibration, no scan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.base.errors import InputError
from cosim.network.layers import Array, EpsilonLayer, LayerTrace, RecurrentLayer, SignedLayer, turn_distance
from cosim.network.types import INPUT, InputEncoding, Network

T = TypeVar("T", bound=np.generic)
# the signals, layers and late sources of a `Trace`
Found = tuple[dict[str, Array], dict[str, LayerTrace], dict[str, Array]]


@dataclass(frozen=True)
class EncodedInputs:
    """Encoded inputs of a network in software units, (n, time, width), as `encode_inputs` makes them.

    They have a type of their own, because raw inputs have the same shape and could be taken for currents unnoticed.
    """

    units: Array

    def scaled(self, factor: float) -> "EncodedInputs":
        """Return the encoded inputs times a factor, as converters deliver them in a condition that is not nominal."""
        return EncodedInputs(factor * self.units)


@dataclass(frozen=True)
class Trace:
    """A software (reference) run of a network on n samples.

    inputs: encoded inputs, which the first layers read; signals: layer name -> its outputs, (n, time, width)
    layers: recurrent layer name -> its candidates (rectified in the first-quadrant form) and thresholds
    readout: (n, time, outputs) per step; scores: pooled over time, (n, outputs); lengths: valid steps, (n,)
    late: late source -> the signal as it was some frames earlier, (n, time, width)
    """

    inputs: EncodedInputs
    signals: dict[str, Array]
    layers: dict[str, LayerTrace]
    readout: Array
    scores: Array
    lengths: np.ndarray
    late: dict[str, Array] = field(default_factory=dict[str, Array])

    @property
    def candidates(self) -> dict[str, Array]:
        """Return recurrent layer -> its candidates (h_hat, or u where rectified), (n, time, width)."""
        return {name: trace.candidate for name, trace in self.layers.items()}

    def read(self, sources: tuple[str, ...]) -> Array:
        """Return the signals of these sources side by side, (n, time, inputs), as a layer that reads them has them."""
        return read_sources(sources, self.inputs, self.signals | self.late)

    @property
    def decisions(self) -> np.ndarray:
        """Return the class that the network decides for each sample, (n,): its largest pooled output."""
        return self.scores.argmax(axis=1)


def encode_inputs(encoding: InputEncoding, x: np.ndarray, origin: str = "data") -> EncodedInputs:
    """Encode raw inputs x (n, time, features) as a network's inputs, (n, time, width) in [0, 1].

    Raises InputError if x is encoded already, has another number of features, or a value is not finite.
    """
    if isinstance(x, EncodedInputs):
        raise InputError(f"{origin}: x must be raw inputs, not encoded ones, which would be encoded twice")
    x = np.asarray(x, dtype=np.float64)
    check_inputs(encoding, x, origin)
    encoded = np.clip((x - encoding.offset) / encoding.scale, 0.0, 1.0)
    if encoding.ramp_steps is not None:
        ramp = np.minimum((np.arange(x.shape[1]) + 1) / encoding.ramp_steps, 1.0)
        encoded = np.concatenate([encoded, np.broadcast_to(ramp[None, :, None], (*x.shape[:2], 1))], axis=2)
    return EncodedInputs(encoded if encoding.levels is None else np.rint(encoded * encoding.levels) / encoding.levels)


def check_inputs(encoding: InputEncoding, x: np.ndarray, origin: str) -> None:
    """Raise InputError if raw inputs x are not (n, time, features), or a value is not finite."""
    if x.ndim != 3 or x.shape[2] != encoding.features:
        raise InputError(
            f"{origin}: x must have shape (samples, time, {encoding.features}) for this network, not {x.shape}; "
            "use the data that the network was trained on or retrain it on this data"
        )
    if not np.isfinite(x).all():
        raise InputError(
            f"{origin}: x holds {np.count_nonzero(~np.isfinite(x))} values that are not finite; remove them"
        )


def symbols_in(encoding: InputEncoding, x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the symbol of each frame, (...): the index of the only feature that is 1 in raw inputs (..., features).

    -1 stands for a frame that is no symbol.
    """
    units = encode_inputs(encoding, x.reshape(1, -1, x.shape[-1])).units.reshape(*x.shape[:-1], -1)
    return one_on(units)


def check_symbols(network: Network, x: NDArray[np.float64], lengths: NDArray[np.int64], origin: str) -> None:
    """Raise InputError if a network follows an automaton and a frame of its raw inputs is no symbol.

    x: raw inputs, (n, time, features); lengths: valid frames of each sample, (n,).
    """
    if not isinstance(network.history.get("automaton"), Mapping):
        return
    strange = np.argwhere(valid_steps(lengths, x.shape[1]) & (symbols_in(network.encoding, x) < 0))
    if len(strange):
        i, t = (int(value) for value in strange[0])
        names = ", ".join(names_in(network, "symbols", network.encoding.features))
        raise InputError(
            f"{origin}: x_test[{i}, {t}] must be one of the symbols {names}, a 1 in its place and 0 elsewhere, not "
            f"{x[i, t].tolist()}; {len(strange)} such frame(s); write strings with cosim.automata.network.one_hot"
        )


def one_on(bits: Array) -> NDArray[np.int64]:
    """Return the index of the only 1 among zeros in each one-hot code (..., bits), -1 where a code is none; (...)."""
    one = (bits == 1).sum(axis=-1) == 1
    return np.where(one & ((bits == 0) | (bits == 1)).all(axis=-1), bits.argmax(axis=-1), -1)


def names_in(network: Network, key: str, count: int) -> tuple[str, ...]:
    """Return the names of a network's `count` symbols or states, from its automaton; else the numbers from 0 on.

    key: `symbols` or `states`, in the automaton of the network's history.
    """
    held = network.history.get("automaton")
    names = held.get(key) if isinstance(held, Mapping) else None
    if isinstance(names, list | tuple):
        known = [name for name in names if isinstance(name, str) and name and name.isprintable()]
        if len(known) == len(names) == len(set(known)) == count:
            return tuple(known)
    return tuple(map(str, range(count)))


def run_reference(network: Network, x: np.ndarray, lengths: np.ndarray | None = None, origin: str = "data") -> Trace:
    """Evaluate a network in software on raw inputs x (n, time, features).

    lengths: valid steps of each sample, (n,), None for all. Raises InputError if the number of features differs or a
    value is not finite.
    """
    encoded = encode_inputs(network.encoding, x, origin)
    signals, layers, late = _run_frames(network, encoded) if network.feeds_back else _run_layers(network, encoded)
    readout = read_sources(network.readout.sources, encoded, signals | late) @ network.readout.weight.T
    readout = readout + network.readout.bias
    lengths = np.full(len(x), x.shape[1]) if lengths is None else np.asarray(lengths)
    scores = pool_readout(readout, lengths, network.readout.pooling)
    return Trace(encoded, signals, layers, readout, scores, lengths, late)


def _run_layers(network: Network, encoded: EncodedInputs) -> Found:
    """Evaluate a network without feedback layer by layer, each for all time steps at once."""
    signals, layers, found_late = dict[str, Array](), dict[str, LayerTrace](), dict[str, Array]()

    def add_late(signal: str, values: Array) -> None:
        for name, late in network.late.items():
            if late.signal == signal:
                found_late[name] = later(values, late.frames, _start(network, signal))

    add_late(INPUT, encoded.units)
    for layer in network.layers:
        inputs = read_sources(layer.sources, encoded, signals | found_late)
        if isinstance(layer, RecurrentLayer):
            layers[layer.name] = layer.run(inputs)
            signals[layer.name] = layers[layer.name].h
        else:
            signals[layer.name] = np.maximum(layer.drive(inputs), 0.0)
        add_late(layer.name, signals[layer.name])
    return signals, layers, found_late


def _run_frames(network: Network, encoded: EncodedInputs) -> Found:
    """Evaluate a network with feedback frame by frame, all layers in each, so that earlier frames are known."""
    n, steps = encoded.units.shape[:2]
    widths = {INPUT: network.encoding.width, **{layer.name: layer.width for layer in network.layers}}
    signals = {name: np.empty((n, steps, width)) for name, width in widths.items() if name != INPUT}
    late = {name: np.empty((n, steps, widths[one.signal])) for name, one in network.late.items()}
    first = {one.signal: _start(network, one.signal) for one in network.late.values()}
    kept: dict[str, list[LayerTrace]] = {layer.name: [] for layer in network.recurrent_layers}
    for t in range(steps):
        now, units = slice(t, t + 1), EncodedInputs(encoded.units[:, t : t + 1])
        for name, one in network.late.items():
            then, before = t - one.frames, encoded.units if one.signal == INPUT else signals[one.signal]
            late[name][:, t] = before[:, then] if then >= 0 else first[one.signal]
        known = {name: values[:, now] for name, values in (signals | late).items()}
        for layer in network.layers:
            inputs = read_sources(layer.sources, units, known)
            if isinstance(layer, RecurrentLayer):
                traces = kept[layer.name]
                traces.append(layer.run(inputs, traces[-1].last if traces else None))
                signals[layer.name][:, now] = traces[-1].h
            else:
                signals[layer.name][:, now] = np.maximum(layer.drive(inputs), 0.0)
    return signals, {name: _join(traces) for name, traces in kept.items()}, late


def _start(network: Network, signal: str) -> Array:
    """Return the value of a signal before the first step: a recurrent layer's start, (width,), else 0."""
    layers = {layer.name: layer.start for layer in network.recurrent_layers}
    return layers.get(signal, np.zeros(()))


def _join(traces: Sequence[LayerTrace]) -> LayerTrace:
    """Join a layer's traces of successive steps; a window that is constant in time is kept once."""
    h, candidate = (np.concatenate([getattr(one, name) for one in traces], axis=1) for name in ("h", "candidate"))
    window = traces[0].window
    if window is not None and np.ndim(window[0]) > 1:
        sides = zip(*(one.window for one in traces if one.window is not None), strict=True)
        low, high = (
            np.concatenate([np.broadcast_to(one, traces[0].h.shape) for one in side], axis=1) for side in sides
        )
        window = low, high
    return LayerTrace(h, candidate, window, traces[-1].state)


def later(values: NDArray[T], frames: int, first: ArrayLike) -> NDArray[T]:
    """Delay signals (n, time, ...) by `frames` frames; `first`, broadcastable, fills the frames before."""
    if not frames:
        return values
    front = np.broadcast_to(np.asarray(first, dtype=values.dtype), values[:, :frames].shape)
    return np.concatenate([front, values[:, :-frames]], axis=1)


def padded(values: NDArray[T], steps: int) -> NDArray[T]:
    """Pad signals (time, width) of a shorter sample with 0 to `steps` frames; the padding never counts."""
    return np.pad(values, ((0, steps - len(values)), (0, 0)))


def read_sources(sources: tuple[str, ...], inputs: EncodedInputs, signals: Mapping[str, Array]) -> Array:
    """Return the signals of these sources side by side, (n, time, inputs), as a layer of the network reads them.

    signals: layer or late source -> (n, time, width).
    """
    return np.concatenate([inputs.units if source == INPUT else signals[source] for source in sources], axis=2)


def threshold_distances(network: Network, trace: Trace) -> Array:
    """Return each candidate's distance from the nearer threshold, software units, (n, time, recurrent units).

    Where a layer with levels stores a value, the value's distance from the nearest turn counts, if that is smaller.
    Infinite for layers that compare nothing.
    """
    return np.concatenate([threshold_distance(layer, trace) for layer in network.recurrent_layers], axis=2)


def threshold_distance(layer: RecurrentLayer, trace: Trace) -> Array:
    """Return one layer's part of `threshold_distances`, (n, time, width), from a software run."""
    found = trace.layers[layer.name]
    low, high = found.window or (np.full(layer.width, -np.inf), np.full(layer.width, np.inf))
    away = np.minimum(np.abs(found.candidate - low), np.abs(found.candidate - high))
    return np.minimum(away, value_distance(layer, trace))


def value_distance(layer: RecurrentLayer, trace: Trace) -> Array:
    """Return how far each value that a layer stores in a software run is from the nearest turn, (n, time, width).

    Infinite where the layer stores nothing or has no levels.
    """
    found = trace.layers[layer.name]
    if not isinstance(layer, SignedLayer) or layer.levels is None or found.window is None:
        return np.full(found.candidate.shape, np.inf)
    value = layer.step(trace.read(layer.sources))
    away = turn_distance(np.where(found.candidate >= 0, value, -value), layer.levels)
    low, high = found.window
    return np.where((found.candidate <= low) | (found.candidate >= high), away, np.inf)


def valid_steps(lengths: np.ndarray, steps: int) -> NDArray[np.bool_]:
    """Return booleans (n, steps): which time steps lie within each sample's length. lengths: (n,)."""
    return np.arange(steps)[None, :] < lengths[:, None]


def pool_readout(readout: Array, lengths: np.ndarray, pooling: str) -> Array:
    """Pool a readout (n, time, outputs) over the valid steps of each sample to scores (n, outputs).

    lengths: valid steps, (n,); pooling: mean, last or vote, see `Readout`.
    """
    n, steps, outputs = readout.shape
    if pooling == "last":
        return readout[np.arange(n), lengths - 1]
    if pooling == "vote":
        readout = np.eye(outputs)[readout.argmax(axis=2)]
    return (readout * valid_steps(lengths, steps)[:, :, None]).sum(axis=1) / lengths[:, None]


BATCH = 256  # samples in memory at once


def measure_state_ranges(
    network: Network, x: np.ndarray, lengths: np.ndarray, origin: str = "data"
) -> dict[str, Array]:
    """Return layer -> `range_of_states` of h over raw inputs x (n, time, features), (2 or 3, width).

    Only layers whose epsilon is not 0 are measured; at 0 a state has two levels. The state before the first step
    counts; steps beyond a sample's length do not. Raises InputError as `run_reference` does.
    """
    layers = [layer for layer in network.recurrent_layers if isinstance(layer, EpsilonLayer) and layer.epsilon != 0]
    ranges = {layer.name: range_of_states(layer.start[None], layer.increment, layer.epsilon) for layer in layers}
    for first in range(0, len(x) if ranges else 0, BATCH):
        part = slice(first, first + BATCH)
        trace = run_reference(network, x[part], lengths[part], origin)
        valid = valid_steps(lengths[part], x.shape[1])
        for layer in layers:
            states = np.concatenate([ranges[layer.name], trace.signals[layer.name][valid]])
            ranges[layer.name] = range_of_states(states, layer.increment, layer.epsilon)
    return ranges


def range_of_states(states: Array, step: Array, epsilon: float) -> Array:
    """Return the smallest and the largest state of each unit of a layer, (2, width), as `Network.state_ranges` has it.

    At epsilon -1 a third row follows, the smallest state above the smallest, which is this itself if there is no other.
    states: (any, width), that before the first step included; step: between neighbouring states, (width,).
    """
    low, high = states.min(axis=0), states.max(axis=0)
    if epsilon != -1:
        return np.stack([low, high])
    return np.stack([low, high, np.where(states > low + step / 2, states, high).min(axis=0)])
