"""Products of bits: a layer of kind `and` becomes steering ANDs, cosim.cells.steering."""

import numpy as np

from cosim.base.errors import MappingError, UnitCurrentError
from cosim.network.ir.graph import Edge, Scaled
from cosim.network.ir.nodes import And, InputCurrent, Memory, Node, Weight
from cosim.network.layers import AndLayer
from cosim.technology.calibration import Calibration
from cosim.technology.scale import MAX_RISE
from cosim.units.placement import LayerPlacement
from cosim.units.schmitt import Schmitt, Shift
from cosim.units.toggle import Toggle

_SAME = 1e-9


def lower_and(layer: AndLayer, placement: LayerPlacement) -> None:
    """Lower a layer of kind `and`, not a recurrent one, in the compiler: add an And for each row to the graph.

    Raises MappingError where a row is no product of bits that are voltages.
    """
    nodes, taps = {**placement.later_nodes, **placement.graph.nodes}, placement.sources.taps
    weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
    for i in range(layer.width):
        name, where = f"{layer.name}.{i}", f"{placement.origin}: {layer.name}"
        placement.graph.add(And(name, layer.name, i))
        columns = np.flatnonzero(layer.weight[i])
        for column in columns:
            tap, origin = taps[column], f"{layer.name}.weight[{i},{column}]"
            level = _level(nodes[tap.name], f"{where}.weight[{i},{column}]")
            if abs((found := weight[i, column] * level) - 1) > _SAME:
                value = layer.weight[i, column]
                raise MappingError(
                    f"{where}.weight[{i},{column}] must be {value / found:g}, 1 over the level of {tap.name}, not "
                    f"{value:g}: an AND weighs no bits; use a layer of kind relu"
                )
            placement.graph.connect(tap.name, name, Weight(1.0, origin, "gate", tap.late))
        if abs(bias[i] - (1 - len(columns))) > _SAME:
            raise MappingError(
                f"{where}.bias[{i}] must be {layer.bias[i] - bias[i] + 1 - len(columns):g}, which makes an AND of its "
                f"{len(columns)} bits, not {layer.bias[i]:g}; use a layer of kind relu"
            )


def steer(graph: Scaled, calibration: Calibration, origin: str) -> dict[Edge, float]:
    """Return the bias current that the compiler gives each weight on an And, ampere.

    Raises UnitCurrentError beyond the calibrated range.
    """
    found: dict[Edge, float] = {}
    for (source, target), weight in graph.weights.items():
        if isinstance(graph.nodes[source], And) and weight.target:
            level = weight.target * graph.i_unit
            if level > MAX_RISE:
                raise UnitCurrentError(
                    f"{origin}: {weight.origin} must be at most {MAX_RISE / graph.i_unit:g} at {graph.i_unit:.3g} A, "
                    f"not {weight.target:g}: an AND is a source of at most {MAX_RISE * 1e9:g} nA",
                    where=weight.origin, value=weight.target, limit=MAX_RISE / graph.i_unit,
                )  # fmt: skip
            found[source, target] = calibration.schmitt.solve_gain(level)
    return found


def _level(node: Node, where: str) -> float:
    """Return the level of a bit, units, where the compiler lowers an AND that reads it.

    Raises MappingError for a node that is no bit.
    """
    match node:
        case InputCurrent(step=1.0):
            return 1.0
        case Schmitt() | Shift() | Toggle():
            return node.level
        case InputCurrent():
            raise MappingError(
                f"{where} reads {node.name}, which must be 0 or 1: meta.input_levels must be 1; train with "
                "`input_levels=1`"
            )
        case _:
            kind = "a ladder" if isinstance(node, Memory) else "no bit"
            raise MappingError(
                f"{where} reads {node.name}, {kind}, and an AND reads inputs of one bit and units with epsilon 0 or "
                "-1; use a layer of kind relu"
            )
