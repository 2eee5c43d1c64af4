"""Wiring of a graph of NIR's nodes: what is connected to what, and which nodes keep a bit.

A latch is a Threshold with a way back to itself through a Delay of one frame, in one of two forms:

    majority   q = H(r + k + q' > theta), 1 <= theta < 2, r and k Thresholds of the same drive:    lo, hi their thetas
    loop       q = H(u + w q' > theta), w > 0, a Scale or a diagonal Linear behind or before the Delay:
               hi = theta, lo = theta - w

each theta a strict one, so hi is the next double above it.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from cosim.base.errors import NetworkError
from cosim.base.text import shown
from cosim.exchange.graph import PARAMETERS, REFUSED, Array, Graph, Node


@dataclass(frozen=True)
class Latch:
    """Nodes of a NIR graph that keep a bit: a Threshold with a way back to itself.

    low, high: (width,) each, off at u <= low, on at u >= high; drive: nodes, the sum of which is u; inner: nodes that
    are its own.
    """

    low: Array
    high: Array
    drive: tuple[str, ...]
    inner: frozenset[str]


class CheckedGraph:
    """A checked NIR graph: every edge between nodes, one Input, one Output, every parameter of its shape."""

    def __init__(self, graph: Graph, origin: str) -> None:
        self.origin, self.nodes = origin, dict(graph.nodes)
        self.before: dict[str, list[str]] = {name: [] for name in self.nodes}
        self.behind: dict[str, list[str]] = {name: [] for name in self.nodes}
        self.rank: dict[str, int] = {}
        for name, node in self.nodes.items():
            self._check_node(name, node)
        for edge, count in Counter(graph.edges).items():
            for end in edge:
                if end not in self.nodes:
                    raise NetworkError(f"{origin}: edge {edge[0]} -> {edge[1]} names {shown(end)}, which is no node")
            if count > 1:
                raise NetworkError(f"{origin}: edge {edge[0]} -> {edge[1]} is there {count} times; leave one")
        for start, end in graph.edges:
            self.rank.setdefault(end, len(self.rank))
            self.before[end].append(start)
            self.behind[start].append(end)
        self.input, self.output = self._only("Input"), self._only("Output")

    def fail(self, name: str, what: str) -> NetworkError:
        """Return the error that names the NIR node and says what is wrong with it, for the caller to raise."""
        return NetworkError(f"{self.origin}: node {shown(name)} ({self.nodes[name].kind}) {what}")

    def of_kind(self, kind: str) -> list[str]:
        """Return the names of the NIR graph's nodes of a kind, in the order in which edges lead to them."""
        found = [name for name, node in self.nodes.items() if node.kind == kind]
        return sorted(found, key=lambda name: self.rank.get(name, -1))

    def width(self, name: str) -> int:
        """Return how many numbers a node of the NIR graph gives; Flatten gives what it gets."""
        node = self.nodes[name]
        if node.kind in ("Input", "Output"):
            return int(node.values["shape"][0])
        return len(next(iter(node.values.values())))

    def frames(self, name: str) -> int:
        """Return the frames of a NIR Delay node.

        Raises NetworkError where they are not one whole number for all elements.
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
        """Return s of a NIR node y = s x, element by element; None for any other node."""
        node = self.nodes[name]
        if node.kind == "Scale":
            return node.values["scale"]
        if node.kind not in ("Linear", "Affine"):
            return None
        weight = node.values["weight"]
        plain = node.kind == "Linear" or not node.values["bias"].any()
        return np.diag(weight) if plain and is_diagonal(weight) else None

    def latches(self) -> dict[str, Latch]:
        """Return every Threshold of the NIR graph with a way back to itself, by its name."""
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
        """Return the nodes of a Threshold's way back to itself, and its weight; None without one.

        Raises NetworkError for several ways, or one without a Delay.
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
            raise NetworkError(f"{self.origin}: a graph must have one {kind}, not {len(found)}; join them")
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
    """Tell whether a NIR node's weight matrix is square and zero off its diagonal."""
    return weight.shape[0] == weight.shape[1] and not (weight - np.diag(np.diag(weight))).any()
