"""Networks from NIR graphs: latches become units, chains of linear nodes between them become one matrix each.

A latch with lower thresholds of 0 or above becomes a first-quadrant unit, whose state is alpha q. A latch with a lower
threshold below 0, which no rectified candidate reaches, becomes a signed unit: candidate and window are moved by the
middle of the window, and the state is alpha (2 q - 1). alpha is taken from the nodes that read the bits, if all of them
first turn the bits into levels, as in a graph of `network_to_graph`. Otherwise alpha is 1, and readers of a signed
unit's bits get half its state plus a half.

A latch is a Threshold with a way back to itself through a Delay of one frame, in one of two forms:

    majority   q = H(r + k + q' > theta), 1 <= theta < 2, r and k Thresholds of the same drive:    lo, hi their thetas
    loop       q = H(u + w q' > theta), w > 0, a Scale or a diagonal Linear behind or before the Delay:
               hi = theta, lo = theta - w

A Threshold is on where its input exceeds theta; a unit is on from hi on. So hi is the next double above theta.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim.base.errors import NetworkError
from cosim.base.text import shown
from cosim.exchange.graph import ORIGIN, PARAMETERS, REFUSED, Array, Graph, Node
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


@dataclass(frozen=True)
class Latch:
    """Nodes of a NIR graph that keep bits: a Threshold with a way back to itself.

    low, high: thresholds, (width,) each; a bit turns off at u <= low and on at u >= high; drive: names of the nodes
    whose sum is u; inner: names of the nodes that belong to this latch alone.
    """

    low: Array
    high: Array
    drive: tuple[str, ...]
    inner: frozenset[str]

    @property
    def signed(self) -> bool:
        """Tell whether this latch of a NIR graph becomes a signed unit: one of its lower thresholds is below 0."""
        return bool((self.low < 0).any())


class CheckedGraph:
    """A checked NIR graph: every edge between nodes, one Input, one Output, every parameter of its shape."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = dict(graph.nodes)
        self.before: dict[str, list[str]] = {name: [] for name in self.nodes}
        self.behind: dict[str, list[str]] = {name: [] for name in self.nodes}
        self.rank: dict[str, int] = {}
        for name, node in self.nodes.items():
            self._check_node(name, node)
        for edge, count in Counter(graph.edges).items():
            for end in edge:
                if end not in self.nodes:
                    raise NetworkError(f"{ORIGIN}: edge {edge[0]} -> {edge[1]} names {shown(end)}, which is no node")
            if count > 1:
                raise NetworkError(f"{ORIGIN}: edge {edge[0]} -> {edge[1]} is there {count} times; leave one")
        for start, end in graph.edges:
            self.rank.setdefault(end, len(self.rank))
            self.before[end].append(start)
            self.behind[start].append(end)
        self.input, self.output = self._only("Input"), self._only("Output")

    def fail(self, name: str, what: str) -> NetworkError:
        """Return the error, for the caller to raise, that names a NIR node and says what is wrong with it."""
        return NetworkError(f"{ORIGIN}: node {shown(name)} ({self.nodes[name].kind}) {what}")

    def of_kind(self, kind: str) -> list[str]:
        """Return the names of the NIR graph's nodes of one kind, in the order of the edges that lead to them."""
        found = [name for name, node in self.nodes.items() if node.kind == kind]
        return sorted(found, key=lambda name: self.rank.get(name, -1))

    def width(self, name: str) -> int:
        """Return how many numbers a node of the NIR graph delivers."""
        node = self.nodes[name]
        if node.kind in ("Input", "Output"):
            return int(node.values["shape"][0])
        return len(next(iter(node.values.values())))

    def frames(self, name: str) -> int:
        """Return the delay of a NIR Delay node, frames.

        Raises NetworkError where it is not one whole number from 1 for all elements.
        """
        delay = self.nodes[name].values["delay"]
        frames = float(delay[0])
        if not (delay == frames).all() or frames != round(frames) or frames < 1:
            raise self.fail(
                name,
                f"must wait the same whole number of frames, 1 or more, everywhere, not {shown(delay.tolist())}; time "
                "is counted in frames here, so divide by their length, or split the node",
            )
        return round(frames)

    def factors(self, name: str) -> Array | None:
        """Return s, (width,), of a NIR node that computes y = s x element by element; None for any other node."""
        node = self.nodes[name]
        if node.kind == "Scale":
            return node.values["scale"]
        if node.kind not in ("Linear", "Affine"):
            return None
        weight = node.values["weight"]
        plain = node.kind == "Linear" or not node.values["bias"].any()
        return np.diag(weight) if plain and is_diagonal(weight) else None

    def latches(self) -> dict[str, Latch]:
        """Return the latches of the NIR graph by the name of their Threshold, those with a way back to themselves."""
        loops = {name: self._loop(name) for name in self.of_kind("Threshold")}
        plain = {name for name, loop in loops.items() if loop is None}
        return {name: self._latch(name, *loop, plain) for name, loop in loops.items() if loop is not None}

    def _latch(self, name: str, way: frozenset[str], weight: Array, plain: set[str]) -> Latch:
        theta = self.nodes[name].values["threshold"]
        others = tuple(node for node in self.before[name] if node not in way)
        if self._is_majority(others, theta, weight, plain):
            first, second = (self.nodes[node].values["threshold"] for node in others)
            low, high = np.minimum(first, second), np.maximum(first, second)
            return Latch(low, np.nextafter(high, np.inf), tuple(self.before[others[0]]), way | set(others))
        if not (weight > 0).all():
            unit = int(np.argmin(weight))
            raise self.fail(
                name,
                f"gets {weight[unit]:g} of its own state back at unit {unit}, where it must be positive to keep a bit; "
                "a unit that turns at every frame has no equivalent here",
            )
        return Latch(theta - weight, np.nextafter(theta, np.inf), others, way)

    def _is_majority(self, others: tuple[str, ...], theta: Array, weight: Array, plain: set[str]) -> bool:
        if len(others) != 2 or not plain.issuperset(others) or not (weight == 1).all():
            return False
        alike = set(self.before[others[0]]) == set(self.before[others[1]])
        return alike and bool(((theta >= 1) & (theta < 2)).all())

    def _loop(self, name: str) -> tuple[frozenset[str], Array] | None:
        """Return the nodes of a Threshold's way back to itself, and the weight of that way; None without a way.

        Raises NetworkError for several ways, or for one without a Delay.
        """
        found = list[tuple[frozenset[str], Array]]()
        for last in self.before[name]:
            way = [last]
            while self.nodes[way[-1]].kind != "Threshold" and len(way) < 3:
                before = self.before[way[-1]]
                if len(before) != 1 or before == [name]:
                    break
                way += before
            if self.before[way[-1]] == [name] and any(self.nodes[node].kind == "Delay" for node in way):
                found.append((frozenset(way), self._weight(name, way)))
            elif last == name or self.before[last] == [name]:
                raise self.fail(name, "reads itself without a Delay; put one of 1 frame between")
        if len(found) > 1:
            raise self.fail(name, f"has {len(found)} ways back to itself; add up their weights in one")
        return found[0] if found else None

    def _weight(self, name: str, way: list[str]) -> Array:
        weight = np.ones(self.width(name))
        delays = [node for node in way if self.nodes[node].kind == "Delay"]
        if len(delays) != 1 or self.frames(delays[0]) != 1:
            raise self.fail(name, "must get its state back through one Delay of 1 frame: a unit keeps its last state")
        for node in way:
            if node in delays:
                continue
            factors = self.factors(node)
            if factors is None or len(factors) != len(weight):
                raise self.fail(
                    name,
                    f"gets its state back by {shown(node)}, which must be a Scale or a diagonal Linear; let weights "
                    "between units lead from the Delay to a node of their own in front of both Thresholds",
                )
            weight = weight * factors
        return weight

    def _only(self, kind: str) -> str:
        found = self.of_kind(kind)
        if len(found) != 1:
            raise NetworkError(f"{ORIGIN}: a graph must have one {kind}, not {len(found)}; join them")
        return found[0]

    def _check_node(self, name: str, node: Node) -> None:
        if node.kind in REFUSED:
            raise self.fail(name, f"has no equivalent here: {REFUSED[node.kind]}")
        if node.kind not in PARAMETERS:
            raise self.fail(name, f"is of no known kind; known are {', '.join(PARAMETERS)}")
        for parameter in PARAMETERS[node.kind]:
            value = node.values[parameter]
            axes = 2 if parameter == "weight" else 1
            if value.ndim != axes or not value.size:
                raise self.fail(
                    name, f"must have a {parameter} of {axes} ax{'es' if axes > 1 else 'is'}, not {value.shape}"
                )
            if not np.isfinite(value).all():
                raise self.fail(name, f"has a {parameter} that is not finite; repair the graph")
        if node.kind == "Affine" and len(node.values["bias"]) != len(node.values["weight"]):
            raise self.fail(
                name, f"has {len(node.values['weight'])} rows of weights and {len(node.values['bias'])} biases"
            )
        if node.kind in ("Input", "Output") and node.values["shape"].shape != (1,):
            raise self.fail(name, f"must be a vector, not of shape {node.values['shape'].tolist()}; flatten it before")


def is_diagonal(weight: Array) -> bool:
    """Tell whether a NIR node's weight matrix is square with zeros off its diagonal."""
    return weight.shape[0] == weight.shape[1] and not (weight - np.diag(np.diag(weight))).any()


DEEPEST = 200  # nodes in a row between two signals


def network_from_graph(
    graph: Graph,
    encoding: InputEncoding | None = None,
    pooling: Pooling = "mean",
    labels: tuple[str, ...] = (),
) -> Network:
    """Convert a NIR graph of plain data to a checked network.

    encoding: turns raw inputs into those of the graph, None for inputs in [0, 1] that need no encoding; pooling,
    labels: of the network's readout; NIR holds none of the three. Raises NetworkError that names a node without
    equivalent, the reason, and the nearest kind of unit.
    """
    return _Reader(CheckedGraph(graph), encoding).read(pooling, labels)


@dataclass(frozen=True)
class _Sum:
    """The value of a node in a NIR graph as a sum over signals: M s of each signal s, plus a bias.

    parts: signal -> M, (width, width of the signal), in the order in which they are read; bias: (width,).
    """

    parts: dict[str, Array]
    bias: Array

    def mapped(self, turn: Callable[[Array], Array]) -> "_Sum":
        """Return the sum after the linear map `turn` of its matrices and bias."""
        return _Sum({name: turn(part) for name, part in self.parts.items()}, turn(self.bias))


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
        levels = {node: self._read_level(node) for node in self.latches}
        self.alpha = {node: alpha for node, (alpha, _) in levels.items()}
        self.level_nodes = {reader for _, readers in levels.values() for reader in readers}
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
        return check(network, ORIGIN)

    def _late(self, node: str) -> DelayedSignal:
        """Return the late source for a Delay node of the NIR graph; the frames of Delays in a row add up."""
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

    def _read_level(self, node: str) -> tuple[Array, list[str]]:
        """Return alpha of a NIR graph's latch, (width,), and the nodes that turn its bits into levels.

        Where readers of the bits do not all turn them into the same levels, alpha is 1, and there are no such nodes.
        """
        wiring, latch = self.wiring, self.latches[node]
        bits = [node, *(delay for delay, name in self.late_names.items() if self.late[name].signal == self.names[node])]
        delays = {*self.late_names, *latch.inner}
        readers = [reader for bit in bits for reader in wiring.behind[bit] if reader not in delays]
        levels = [_level(wiring, reader, signed=latch.signed) for reader in readers]
        first = levels[0] if levels else None
        ones = np.ones(wiring.width(node))
        if first is None or any(level is None or not np.array_equal(level, first) for level in levels):
            return ones, []
        return first, readers

    def _check_inner(self) -> None:
        """Raise NetworkError where a NIR node outside a latch reads a node that belongs to the latch alone."""
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
        latch, alpha = self.latches[node], self.alpha[node]
        if not (latch.high > latch.low).all():
            raise self.wiring.fail(node, "has a unit whose window is closed: its thresholds are equal")
        drive = self._sum(latch.drive, node)
        sources, weight = _joined(drive)
        if not latch.signed:
            return FirstQuadrantLayer(name, sources, weight, drive.bias, latch.low, latch.high, alpha)
        middle = (latch.high + latch.low) / 2
        return SignedLayer(name, sources, weight, drive.bias - middle, (latch.high - latch.low) / 2, alpha)

    def _and(self, node: str) -> AndLayer:
        """Return the AND layer for a NIR Threshold without memory.

        Raises NetworkError where the node is not an AND of bits.
        """
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
        """Return the higher value of a signal of the NIR graph, (width,); inf for one whose lower value is not 0."""
        node = self._owner(signal)
        if node == self.wiring.input:
            return np.full(self.encoding.width, 1.0 if self.encoding.levels == 1 else np.inf)
        if node in self.latches:
            alpha = self.alpha[node]
            return np.full(len(alpha), np.inf) if self.latches[node].signed else alpha
        return np.ones(self.wiring.width(node))

    def _owner(self, signal: str) -> str:
        """Return the NIR node whose values a signal has, for a late source the node before the Delay."""
        signal = self.late[signal].signal if signal in self.late else signal
        return next(node for node, name in self.names.items() if name == signal)

    def _value(self, node: str) -> _Sum:
        """Return the values that a NIR node delivers, as a sum over signals."""
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
        if node in self.level_nodes:
            return _plain(self.names.get(origin) or self.late_names[origin], self.wiring.width(node))
        inputs, values = self._sum(self.wiring.before[node], node), self.wiring.nodes[node].values
        kind, width = self.wiring.nodes[node].kind, len(inputs.bias)
        if kind == "Flatten":
            return inputs
        if kind == "Output":
            raise self.wiring.fail(node, "is the end of the graph and cannot be read; read what comes before it")
        wanted = values["weight"].shape[1] if "weight" in values else self.wiring.width(node)
        if wanted != width:
            raise self.wiring.fail(node, f"takes {wanted} values, but gets {width}")
        if kind == "Scale":
            scale = values["scale"]
            return inputs.mapped(lambda part: (scale * part.T).T)
        found = inputs.mapped(lambda part: values["weight"] @ part)
        return _Sum(found.parts, found.bias + values["bias"]) if kind == "Affine" else found

    def _bits(self, node: str, signal: str) -> _Sum:
        latch = self._owner(signal)
        width = self.wiring.width(latch)
        if self.wiring.width(node) != width:
            raise self.wiring.fail(node, f"has {self.wiring.width(node)} elements, but gets {width} values")
        signed = latch in self.latches and self.latches[latch].signed
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
        """Return a NIR graph's layers, each after all layers that it reads in the same frame.

        Raises NetworkError where layers read each other in one frame.
        """
        left, known, found = list(layers), {INPUT, *self.late}, list[Layer]()
        while left:
            ready = next((layer for layer in left if known.issuperset(layer.sources)), None)
            if ready is None:
                names = ", ".join(layer.name for layer in left)
                raise NetworkError(
                    f"{ORIGIN}: {names} read each other in the same frame; put a Delay of 1 frame between"
                )
            left.remove(ready)
            known.add(ready.name)
            found.append(ready)
        return tuple(found)


def _plain(signal: str, width: int) -> _Sum:
    return _Sum({signal: np.eye(width)}, np.zeros(width))


def _joined(value: _Sum) -> tuple[tuple[str, ...], Array]:
    """Return the sources of a NIR node's sum, and their matrices joined along the columns."""
    return tuple(value.parts), np.concatenate(list(value.parts.values()), axis=1)


def _named(nodes: list[str], stem: str, taken: set[str]) -> dict[str, str]:
    """Return a signal name for each NIR node: its own if allowed, else `stem` and a number; taken: names in use."""
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
    """Return alpha of a NIR node that turns bits into levels, alpha q or if signed alpha (2 q - 1), else None."""
    node = wiring.nodes[reader]
    if len(wiring.before[reader]) != 1:
        return None
    if not signed:
        return node.values["scale"] if node.kind == "Scale" else None
    if node.kind != "Affine" or not is_diagonal(node.values["weight"]):
        return None
    alpha = np.diag(node.values["weight"]) / 2
    return alpha if np.array_equal(node.values["bias"], -alpha) else None
