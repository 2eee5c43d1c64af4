"""Placement of a layer in the graph: what it reads, and how its rows are written."""

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
    """A node that a row of a recurrent unit reads.

    late: its state of the frame before, which it still has when the row's stage decides.
    """

    name: str
    late: bool = False


@dataclass(frozen=True)
class Parameter:
    """A row of a recurrent unit's learned matrix: `layer0.weight_beta[3,*]` for layer0, _beta, 3.

    part: of what it is a part; bias: name of the biases, where it is not that of the weights.
    """

    layer: str
    row: int
    suffix: str = ""
    part: str = ""
    bias: str = ""


@dataclass(frozen=True)
class Sources:
    """The signals that a layer of recurrent units reads.

    A signal's value in the software is gain times its current plus zero, (sources,) each.
    """

    taps: tuple[Tap, ...]
    gains: Array
    zeros: Array

    def weights_on_currents(self, weight: Array, bias: Array) -> tuple[Array, Array]:
        """Return weight (rows, sources) and bias (rows,) as every kind of unit lowers them: on currents, not values."""
        return weight * self.gains, bias + weight @ self.zeros

    def add_row(self, graph: GraphBuilder, name: str, weights: Array, bias: float, parameter: Parameter) -> None:
        """Connect a unit's weights (sources,) into a node of the graph that is there, the bias as one on the unit
        current."""
        layer, row, suffix, part = parameter.layer, parameter.row, parameter.suffix, parameter.part
        for column in range(len(weights)) if graph.zeros else np.flatnonzero(weights).tolist():
            tap, origin = self.taps[column], f"{layer}.weight{suffix}[{row},{column}]{part}"
            graph.connect(tap.name, name, Weight(float(weights[column]), origin, late=tap.late))
        origin = f"{layer}.{parameter.bias or f'bias{suffix}'}[{row}]{part}"
        graph.connect(UNIT_CURRENT, name, Weight(float(bias), origin))

    def read_late(self, weights: Array) -> str | None:
        """Return the first signal that a row of these weights reads late; None for a unit's row without one."""
        return next((tap.name for tap, w in zip(self.taps, weights, strict=True) if tap.late and w), None)


def read_sources(nodes: Mapping[str, Node], taps: Sequence[Tap]) -> Sources:
    """Return the sources of a recurrent unit's taps, which are among the nodes."""
    gains, zeros = np.ones(len(taps)), np.zeros(len(taps))
    for k, tap in enumerate(taps):
        node = nodes[tap.name]
        if isinstance(node, Memory):
            gains[k] = 1.0 if node.step == node.level else node.step / node.level
            zeros[k] = node.zero
    return Sources(tuple(taps), gains, zeros)


@dataclass(frozen=True)
class LayerPlacement:
    """The place in the graph of a layer of recurrent units.

    stage: recurrent layers in front; ranges: (2, width) smallest and largest h of each unit, None where not known;
    headroom: states beyond these, either end; cell: the circuit that was asked for; origin: file, for messages;
    later_nodes: nodes that are not in the graph yet, of layers that this one reads late.
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
        """Connect a unit's weights into a node that is there, the bias as one on the unit current."""
        self.sources.add_row(self.graph, name, weights, bias, parameter)

    def largest_signals(self) -> Array:
        """Return an upper bound of each source of a layer of recurrent units, in units.

        It is 1 for an input, the top state's level, a rectifier's drive.
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
