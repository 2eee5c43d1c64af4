"""Placement of a recurrent layer in the graph: the signals that it reads, and how the rows of its weights are added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cosim.network.ir.graph import GraphBuilder
from cosim.network.ir.nodes import UNIT_CURRENT, Memory, Node, Rectifier, Weight
from cosim.network.types import Array

Circuit = Literal["auto", "schmitt", "ladder", "counter"]


@dataclass(frozen=True)
class Tap:
    """A node of the graph that a row of a recurrent layer reads.

    late: whether the row reads its state of the frame before, which the node still has when the row's stage decides.
    """

    name: str
    late: bool = False


@dataclass(frozen=True)
class Parameter:
    """A row of a layer's learned matrix, for names: layer0, _beta, 3 give `layer0.weight_beta[3,*]`.

    suffix: of the matrix's name; part: which part of the row a node is, such as ` (pos)`; bias: name of the biases,
    where it is not `bias` with the suffix.
    """

    layer: str
    row: int
    suffix: str = ""
    part: str = ""
    bias: str = ""


@dataclass(frozen=True)
class Sources:
    """The signals that a layer of recurrent units reads.

    gains, zeros: (sources,) each; a signal's value in the software is gain times its current plus zero.
    """

    taps: tuple[Tap, ...]
    gains: Array
    zeros: Array

    def weights_on_currents(self, weight: Array, bias: Array) -> tuple[Array, Array]:
        """Rewrite weight (rows, sources) and bias (rows,) on software values as weights and bias on currents."""
        return weight * self.gains, bias + weight @ self.zeros

    def add_row(self, graph: GraphBuilder, name: str, weights: Array, bias: float, parameter: Parameter) -> None:
        """Connect the sources to node `name` by weights (sources,), and the unit current by the weight `bias`.

        The node must be in the graph already. parameter: names the weights.
        """
        layer, row, suffix, part = parameter.layer, parameter.row, parameter.suffix, parameter.part
        for column in range(len(weights)) if graph.zeros else np.flatnonzero(weights).tolist():
            tap, origin = self.taps[column], f"{layer}.weight{suffix}[{row},{column}]{part}"
            graph.connect(tap.name, name, Weight(float(weights[column]), origin, late=tap.late))
        origin = f"{layer}.{parameter.bias or f'bias{suffix}'}[{row}]{part}"
        graph.connect(UNIT_CURRENT, name, Weight(float(bias), origin))

    def read_late(self, weights: Array) -> str | None:
        """Return the first signal of the frame before that a row of weights (sources,) reads; None if there is none."""
        return next((tap.name for tap, w in zip(self.taps, weights, strict=True) if tap.late and w), None)


def read_sources(nodes: Mapping[str, Node], taps: Sequence[Tap]) -> Sources:
    """Return the signals that a recurrent layer reads, from its taps. nodes: name -> node, with all taps among them."""
    gains, zeros = np.ones(len(taps)), np.zeros(len(taps))
    for k, tap in enumerate(taps):
        node = nodes[tap.name]
        if isinstance(node, Memory):
            gains[k] = 1.0 if node.step == node.level else node.step / node.level
            zeros[k] = node.zero
    return Sources(tuple(taps), gains, zeros)


@dataclass(frozen=True)
class LayerPlacement:
    """The place of a layer of recurrent units in the graph, and what its circuit must be like.

    stage: number of recurrent layers in front of it; ranges: states of each unit over the data, as
    `Network.state_ranges` has them, None where not known; headroom: states beyond these ranges, at either end; cell:
    circuit that the user asked for; origin: file, for messages; later_nodes: nodes not yet in the graph, of layers that
    this layer reads a frame late.
    """

    graph: GraphBuilder
    sources: Sources
    stage: int
    ranges: Array | None
    headroom: int
    cell: Circuit
    origin: str
    later_nodes: Mapping[str, Node]

    def add_row(self, name: str, weights: Array, bias: float, parameter: Parameter) -> None:
        """Connect the layer's sources to node `name`, already in the graph, by weights (sources,) and a bias."""
        self.sources.add_row(self.graph, name, weights, bias, parameter)

    def largest_signals(self) -> Array:
        """Return an upper bound of each signal that the layer reads, (sources,), in software units.

        It is 1 for an input, the level of its largest state for a memory, its largest sum for a rectifier.
        """
        nodes, found = {**self.later_nodes, **self.graph.nodes}, {UNIT_CURRENT: 1.0}

        def largest(name: str) -> float:
            if name not in found:
                match nodes[name]:
                    case Memory() as memory:
                        found[name] = memory.level * memory.most
                    case Rectifier():
                        terms = self.graph.terms(name)
                        drive = sum(
                            target if source == UNIT_CURRENT else max(target, 0.0) * largest(source)
                            for source, target in terms
                        )
                        found[name] = max(drive, 0.0)
                    case _:
                        found[name] = 1.0
            return found[name]

        return np.array([largest(tap.name) for tap in self.sources.taps])
