"""The graph of currents at each stage of the compiler: every pass returns the next type, with what it has added.

    LoweredGraph   nodes and weights in software units
    ScaledGraph    + i_unit, and the set-points of the memories in ampere
    SizedGraph     + bias currents, whole counts of unit devices, the pedestal

A graph is data and never changes; a pass makes another one. A node is behind the nodes that it reads, except those that
it reads a frame late. The edges into a node are in the order of their sources, so the circuit is built in one order
only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from cosim.network.ir.nodes import Memory, MemoryCurrents, Mirror, Node, Role, Weight

Edge = tuple[str, str]  # source, target
Kind = TypeVar("Kind", bound=Node)
Bias = TypeVar("Bias")


@dataclass(frozen=True)
class LeftOut:
    """Parts of a network's graph that are not built, because no input changes them.

    nodes: by name; states: memory among them -> its constant state; weights: the edges into and out of these nodes.
    """

    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    states: Mapping[str, int] = field(default_factory=dict[str, int])
    weights: Mapping[Edge, Weight] = field(default_factory=dict[Edge, Weight])


@dataclass(frozen=True)
class LoweredGraph:
    """The graph of a network in software units: first stage of the graph of currents.

    nodes: by name; weights: edge (source, target) -> weight; left_out: parts of the network that are not built.
    """

    nodes: Mapping[str, Node]
    weights: Mapping[Edge, Weight]
    left_out: LeftOut = field(default=LeftOut(), kw_only=True)

    @cached_property
    def _arriving(self) -> Mapping[tuple[str, Role], tuple[tuple[str, Weight], ...]]:
        arriving: dict[tuple[str, Role], list[tuple[str, Weight]]] = {}
        for (source, target), weight in self.weights.items():
            arriving.setdefault((target, weight.role), []).append((source, weight))
        return {end: tuple(edges) for end, edges in arriving.items()}

    @cached_property
    def _leaving(self) -> Mapping[str, tuple[Edge, ...]]:
        leaving: dict[str, list[Edge]] = {name: [] for name in self.nodes}
        for edge in self.weights:
            leaving[edge[0]].append(edge)
        return {name: tuple(edges) for name, edges in leaving.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Return the names of the graph's nodes, each behind all that it reads.

        In a graph with feedback a node is behind only those that it does not read late.
        """
        return self._sorted(late=False) if self.feeds_back else self._with_late

    @cached_property
    def feeds_back(self) -> bool:
        """Tell whether a state in the graph depends on its own value of earlier frames, by edges of the graph."""
        return len(self._with_late) < len(self.nodes)

    @cached_property
    def _with_late(self) -> tuple[str, ...]:
        return self._sorted(late=True)

    @cached_property
    def read_late(self) -> frozenset[int]:
        """Return the stages of the graph that have a memory whose state of the frame before is read."""
        sources = (self.nodes[source] for (source, _), weight in self.weights.items() if weight.late)
        return frozenset(node.stage for node in sources if isinstance(node, Memory))

    def _sorted(self, *, late: bool) -> tuple[str, ...]:
        """Return the names of the graph's nodes, each behind its sources, without those on cycles and those behind.

        late: whether edges that read the frame before count. Kahn's algorithm, Communications of the ACM 5 (1962) 558.
        """
        edges = [edge for edge, weight in self.weights.items() if not weight.late]
        edges += [edge for edge, weight in self.weights.items() if weight.late and late]
        waits, readers = dict.fromkeys(self.nodes, 0), {name: list[str]() for name in self.nodes}
        for source, target in edges:
            waits[target] += 1
            readers[source].append(target)
        found = [name for name, count in waits.items() if not count]
        for name in found:  # which grows
            for reader in readers[name]:
                waits[reader] -= 1
                if not waits[reader]:
                    found.append(reader)
        return tuple(found)

    def into(self, name: str, role: Role = "drive") -> list[tuple[str, Weight]]:
        """Return (source, weight) of each edge into a node of the graph that has this role."""
        return list(self._arriving.get((name, role), ()))

    def out_of(self, name: str) -> tuple[Edge, ...]:
        """Return the edges, (source, target) each, out of a node of the graph."""
        return self._leaving[name]

    def of(self, *kinds: type[Kind]) -> Iterator[Kind]:
        """Yield the graph's nodes of the given types, in the order in which they were added."""
        return (node for node in self.nodes.values() if isinstance(node, kinds))

    @property
    def memories(self) -> Iterator[Memory]:
        """Yield the nodes of the recurrent units in a network's graph of currents, in order."""
        return self.of(Memory)


@dataclass(frozen=True)
class ScaledGraph(LoweredGraph):
    """The graph of a network with currents in ampere: second stage of the graph of currents.

    i_unit: ampere per software 1.0; currents: memory -> its thresholds and level; comparator_devices: devices in
    parallel in each comparator, and in the candidate diode before it.
    """

    i_unit: float
    currents: Mapping[str, MemoryCurrents]
    comparator_devices: int = field(default=1, kw_only=True)


@dataclass(frozen=True)
class SizedGraph(ScaledGraph):
    """The graph of a network with weights in unit devices and bias currents: last stage of the graph of currents.

    units: unit devices per weight 1.0; i_pedestal: ampere; mirrors: each weight as built; biases: memory -> the bias
    currents of its kind of unit; steered: edge from an And node -> the bias current that makes its weight, ampere.
    """

    units: int
    i_pedestal: float
    mirrors: Mapping[Edge, Mirror]
    biases: Mapping[str, object]
    steered: Mapping[Edge, float]

    def half(self, name: str) -> float | None:
        """Return the threshold of a node's symbol comparator, ampere; None if the node has none.

        The threshold is half of the signal's level, plus the pedestal.
        """
        if not any(self.weights[edge].role == "gate" for edge in self.out_of(name)):
            return None
        node = self.nodes[name]
        level = node.level if isinstance(node, Memory) else 1.0
        return level * self.i_unit / 2 + self.i_pedestal

    def bias(self, name: str, kind: type[Bias]) -> Bias:
        """Return the bias currents of a memory in the graph; they must be of type `kind`."""
        found = self.biases[name]
        assert isinstance(found, kind), f"{name}: {type(found).__name__} is no {kind.__name__}"
        return found


class GraphBuilder:
    """A builder of a network's graph, which collects nodes and weights.

    zeros: whether learned weights of 0 get edges.
    """

    def __init__(self, *, zeros: bool = True) -> None:
        self.zeros = zeros
        self.nodes: dict[str, Node] = {}
        self.weights: dict[Edge, Weight] = {}
        self._sources: dict[str, list[str]] = {}

    def add(self, *nodes: Node) -> None:
        """Add nodes to the network's graph; a node must come after its sources."""
        self.nodes |= {node.name: node for node in nodes}

    def connect(self, source: str, target: str, weight: Weight) -> None:
        """Add an edge from `source` to `target`; an edge between the two that exists already is replaced."""
        if (source, target) not in self.weights:
            self._sources.setdefault(target, []).append(source)
        self.weights[source, target] = weight

    def terms(self, name: str) -> list[tuple[str, float]]:
        """Return (source, weight wanted) of each edge into a node of the unfinished graph."""
        return [(source, self.weights[source, name].target) for source in self._sources.get(name, ())]

    def lowered(self) -> LoweredGraph:
        """Return the finished graph of the network; edges into a node are in the order of their sources."""
        place = {name: k for k, name in enumerate(self.nodes)}
        return LoweredGraph(self.nodes, dict(sorted(self.weights.items(), key=lambda edge: place[edge[0][0]])))
