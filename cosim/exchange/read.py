"""A network from a graph of NIR's nodes: latches become units, chains of linear nodes between them one matrix each.

Which unit. With a lower threshold at 0 or above, the first-quadrant one, whose state is alpha q. Below, no rectified
candidate gets there: the signed one, candidate and window moved by the middle of the window, whose state is
alpha (2 q - 1). alpha is read off where all that reads the bits first makes levels of them, as `network_to_graph` does;
else it is 1, and what reads bits of a signed unit gets half its state and a half.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim.base.errors import NetworkError
from cosim.base.text import shown
from cosim.exchange.graph import Array, Graph
from cosim.exchange.wiring import CheckedGraph, is_diagonal
from cosim.network.layers import MOST_BITS, AndLayer, FirstQuadrantLayer, Layer, SignedLayer
from cosim.network.types import (
    INPUT,
    LAYER_NAME,
    RESERVED_NAMES,
    DelayedSignal,
    InputEncoding,
    Network,
    Pooling,
    Readout,
)
from cosim.network.types import check_network as check

DEEPEST = 200  # nodes in a row between two signals


def network_from_graph(
    graph: Graph,
    encoding: InputEncoding | None = None,
    pooling: Pooling = "mean",
    labels: tuple[str, ...] = (),
    origin: str = "NIR graph",
) -> Network:
    """Import the checked network in a NIR graph that is held as plain data.

    encoding: what makes the graph's inputs of raw ones, None for inputs in [0, 1] as they are; pooling and labels: what
    becomes of its outputs. NIR holds none of the three. Raises NetworkError naming the node, why it has no equivalent,
    and what comes nearest.
    """
    return _Reader(CheckedGraph(graph, origin), encoding).read(pooling, labels)


@dataclass(frozen=True)
class _Sum:
    """sum over signals of M s, plus a bias; parts: signal -> M (width, its width), in the order in which it is read."""

    parts: dict[str, Array]
    bias: Array

    def mapped(self, turn: Callable[[Array], Array]) -> "_Sum":
        """Return the sum behind a linear map."""
        return _Sum({name: turn(part) for name, part in self.parts.items()}, turn(self.bias))


@dataclass(frozen=True)
class _Levels:
    """Levels that a latch delivers: alpha, of a signed unit or not; nodes: those that make it of bits."""

    alpha: Array
    signed: bool
    nodes: frozenset[str]


class _Reader:
    def __init__(self, wiring: CheckedGraph, encoding: InputEncoding | None) -> None:
        self.wiring = wiring
        features = wiring.width(wiring.input)
        self.encoding = encoding or InputEncoding(np.zeros(features), np.ones(features))
        if self.encoding.width != features:
            raise wiring.fail(
                wiring.input, f"takes {features} inputs, but the encoding makes {self.encoding.width}; give another"
            )
        self.latches = wiring.latches()
        inner = frozenset[str]().union(*(latch.inner for latch in self.latches.values()))
        thresholds = [name for name in wiring.of_kind("Threshold") if name not in inner]
        self.names = {wiring.input: INPUT} | _named(thresholds, "layer", {INPUT})
        delays = [name for name in wiring.of_kind("Delay") if name not in inner]
        self.late_names = _named(delays, "late", set(self.names.values()))
        self.late = {name: self._late(node) for node, name in self.late_names.items()}
        self.levels = {node: self._levels(node) for node in self.latches}
        self.found: dict[str, _Sum] = {}
        self.open: list[str] = []
        self._check_inner()

    def read(self, pooling: Pooling, labels: tuple[str, ...]) -> Network:
        layers = [self._layer(node) for node in self.names if node != self.wiring.input]
        output = self.wiring.output
        readout = self._sum(self.wiring.before[output], output)
        if self.wiring.width(output) != len(readout.bias):
            raise self.wiring.fail(output, f"takes {self.wiring.width(output)} values, but gets {len(readout.bias)}")
        sources, weight = _joined(readout)
        used = {source for layer in layers for source in layer.sources} | set(sources)
        late = {name: one for name, one in self.late.items() if name in used}
        ordered = self._in_order(layers)
        last = Readout(sources, weight, readout.bias, pooling)
        network = Network(self.encoding, ordered, last, labels=labels, late=late)
        return check(network, self.wiring.origin)

    def _late(self, node: str) -> DelayedSignal:
        """Return the late source that a Delay makes; Delays in a row add up."""
        frames, at = self.wiring.frames(node), node
        seen = {node}
        while True:
            before = self.wiring.before[at]
            if len(before) == 1 and before[0] in self.names:
                return DelayedSignal(self.names[before[0]], frames)
            if len(before) != 1 or before[0] not in self.late_names or before[0] in seen:
                raise self.wiring.fail(
                    node, "must follow the Input, a Threshold or another Delay alone: put what is between behind it"
                )
            at = before[0]
            seen.add(at)
            frames += self.wiring.frames(at)

    def _levels(self, node: str) -> _Levels:
        """alpha of a latch, where all its readers agree on one."""
        wiring, latch = self.wiring, self.latches[node]
        signed = bool((latch.low < 0).any())
        bits = [node, *(delay for delay, name in self.late_names.items() if self.late[name].signal == self.names[node])]
        delays = {*self.late_names, *latch.inner}
        readers = [reader for bit in bits for reader in wiring.behind[bit] if reader not in delays]
        levels = [_level(wiring, reader, signed=signed) for reader in readers]
        first = levels[0] if levels else None
        ones = np.ones(wiring.width(node))
        if first is None or any(level is None or not np.array_equal(level, first) for level in levels):
            return _Levels(ones, signed, frozenset())
        return _Levels(first, signed, frozenset(readers))

    def _check_inner(self) -> None:
        """Nobody else may read what is a latch's own."""
        for node, latch in self.latches.items():
            for inner in latch.inner:
                stranger = next((name for name in self.wiring.behind[inner] if name not in {node, *latch.inner}), None)
                if stranger is not None:
                    raise self.wiring.fail(
                        inner, f"belongs to {shown(node)}, but {shown(stranger)} reads it; give that a node of its own"
                    )

    def _layer(self, node: str) -> Layer:
        name = self.names[node]
        if node not in self.latches:
            return self._and(node)
        latch, levels = self.latches[node], self.levels[node]
        if not (latch.high > latch.low).all():
            raise self.wiring.fail(node, "has a unit whose window is closed: its thresholds are equal")
        drive = self._sum(latch.drive, node)
        sources, weight = _joined(drive)
        if not levels.signed:
            return FirstQuadrantLayer(name, sources, weight, drive.bias, latch.low, latch.high, levels.alpha)
        middle = (latch.high + latch.low) / 2
        return SignedLayer(name, sources, weight, drive.bias - middle, (latch.high - latch.low) / 2, levels.alpha)

    def _and(self, node: str) -> AndLayer:
        """Return the AND of bits that a Threshold without memory is; raises NetworkError where it is no AND."""
        drive = self._sum(self.wiring.before[node], node)
        theta = self.wiring.nodes[node].values["threshold"]
        bits = [part != 0 for part in drive.parts.values()]
        count = np.sum([part.sum(axis=1) for part in bits], axis=0)
        ones = all(
            np.allclose(part[part != 0], np.broadcast_to(1 / self._level_of(name), part.shape)[part != 0])
            for name, part in drive.parts.items()
        )
        few = bool(((count >= 1) & (count <= MOST_BITS)).all())
        if not (ones and few and np.allclose(drive.bias, 1 - count) and ((theta >= 0) & (theta < 1)).all()):
            raise self.wiring.fail(
                node,
                "has no way back to itself through a Delay, so it keeps nothing, and is no AND of one to "
                f"{MOST_BITS} bits (weights 1 over their level, bias 1 less their number, threshold 0.5): there is no "
                "such layer here; nearest: a Threshold with hysteresis, in a loop with a Delay of 1 frame",
            )
        sources, weight = _joined(drive)
        return AndLayer(self.names[node], sources, weight, drive.bias)

    def _level_of(self, signal: str) -> Array:
        """Return the value of a signal's 1, (width,); inf for one that is no bit."""
        signal = self.late[signal].signal if signal in self.late else signal
        node = next(node for node, name in self.names.items() if name == signal)
        if node == self.wiring.input:
            return np.full(self.encoding.width, 1.0 if self.encoding.levels == 1 else np.inf)
        if node in self.levels:
            levels = self.levels[node]
            return np.full(len(levels.alpha), np.inf) if levels.signed else levels.alpha
        return np.ones(self.wiring.width(node))

    def _value(self, node: str) -> _Sum:
        """Return a node's output as a sum over signals."""
        if node not in self.found:
            if node in self.open:
                raise self.wiring.fail(node, "reads itself in the same frame; put a Delay of 1 frame into the loop")
            if len(self.open) > DEEPEST:
                raise self.wiring.fail(node, f"follows more than {DEEPEST} linear nodes in a row; multiply them first")
            self.open.append(node)
            self.found[node] = self._evaluate(node)
            self.open.pop()
        return self.found[node]

    def _evaluate(self, node: str) -> _Sum:
        signal = self.names.get(node) or self.late_names.get(node)
        if signal is not None:
            return self._bits(node, signal)
        origin = self.wiring.before[node][0] if self.wiring.before[node] else ""
        if any(node in levels.nodes for levels in self.levels.values()):
            return _plain(self.names.get(origin) or self.late_names[origin], self.wiring.width(node))
        inputs, values = self._sum(self.wiring.before[node], node), self.wiring.nodes[node].values
        kind, width = self.wiring.nodes[node].kind, len(inputs.bias)
        if kind == "Flatten":
            return inputs
        if kind == "Output":
            raise self.wiring.fail(node, "is the end of the graph and cannot be read; read what stands before it")
        wanted = values["weight"].shape[1] if "weight" in values else self.wiring.width(node)
        if wanted != width:
            raise self.wiring.fail(node, f"takes {wanted} values, but gets {width}")
        if kind == "Scale":
            scale = values["scale"]
            return inputs.mapped(lambda part: (scale * part.T).T)
        found = inputs.mapped(lambda part: values["weight"] @ part)
        return _Sum(found.parts, found.bias + values["bias"]) if kind == "Affine" else found

    def _bits(self, node: str, signal: str) -> _Sum:
        owner = self.late[signal].signal if signal in self.late else signal
        latch = next(name for name, found in self.names.items() if found == owner)
        width = self.wiring.width(latch)
        if self.wiring.width(node) != width:
            raise self.wiring.fail(node, f"has {self.wiring.width(node)} elements, but gets {width} values")
        signed = latch in self.levels and self.levels[latch].signed
        return _Sum({signal: 0.5 * np.eye(width)}, np.full(width, 0.5)) if signed else _plain(signal, width)

    def _sum(self, nodes: list[str] | tuple[str, ...], reader: str) -> _Sum:
        if not nodes:
            raise self.wiring.fail(reader, "reads nothing; connect it")
        parts: dict[str, Array] = {}
        width, bias = 0, np.zeros(1)
        for k, node in enumerate(nodes):
            value = self._value(node)
            if k and len(value.bias) != width:
                raise self.wiring.fail(reader, f"adds up {width} and {len(value.bias)} values; they must be as many")
            width = len(value.bias)
            bias = value.bias if not k else bias + value.bias
            for name, part in value.parts.items():
                parts[name] = parts[name] + part if name in parts else part
        kind = self.wiring.nodes[reader].kind
        if kind == "Threshold" and self.wiring.width(reader) != width:
            raise self.wiring.fail(reader, f"has {self.wiring.width(reader)} elements, but gets {width} values")
        return _Sum(parts, bias)

    def _in_order(self, layers: list[Layer]) -> tuple[Layer, ...]:
        """Layers behind what they read in the same frame, else in the order of the graph's edges."""
        left, known, found = list(layers), {INPUT, *self.late}, list[Layer]()
        while left:
            ready = next((layer for layer in left if known.issuperset(layer.sources)), None)
            if ready is None:
                names = ", ".join(layer.name for layer in left)
                raise NetworkError(
                    f"{self.wiring.origin}: {names} read each other in the same frame; put a Delay of 1 frame between"
                )
            left.remove(ready)
            known.add(ready.name)
            found.append(ready)
        return tuple(found)


def _plain(signal: str, width: int) -> _Sum:
    return _Sum({signal: np.eye(width)}, np.zeros(width))


def _joined(value: _Sum) -> tuple[tuple[str, ...], Array]:
    """Sources, and their matrices side by side."""
    return tuple(value.parts), np.concatenate(list(value.parts.values()), axis=1)


def _named(nodes: list[str], stem: str, taken: set[str]) -> dict[str, str]:
    """Node -> its own name where a signal may have it, else a number."""
    kept = {node: node for node in nodes if LAYER_NAME.fullmatch(node) and node not in {*RESERVED_NAMES, *taken}}
    used, found = {*taken, *kept}, dict[str, str]()
    for node in nodes:
        name, k = kept.get(node, ""), 0
        while not name or (node not in kept and name in used):
            k += 1
            name = f"{stem}{k}"
        used.add(name)
        found[node] = name
    return found


def _level(wiring: CheckedGraph, reader: str, *, signed: bool) -> Array | None:
    """alpha of a node that makes levels of bits: a q, or of a signed unit a (2 q - 1); None for any other."""
    node = wiring.nodes[reader]
    if len(wiring.before[reader]) != 1:
        return None
    if not signed:
        return node.values["scale"] if node.kind == "Scale" else None
    if node.kind != "Affine" or not is_diagonal(node.values["weight"]):
        return None
    alpha = np.diag(node.values["weight"]) / 2
    return alpha if np.array_equal(node.values["bias"], -alpha) else None
