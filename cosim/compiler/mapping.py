"""Mapping report: every learned parameter, what it became, and what was lost on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cosim.compiler.design import Design, once_per_design
from cosim.compiler.fold import explain_threshold, explain_weight, learned_arrays, row_sign
from cosim.network.ir.graph import Sized
from cosim.network.ir.nodes import PEDESTAL, Memory, Mirror, ThresholdUnit, Weight
from cosim.network.layers import RecurrentLayer
from cosim.units.kind import LearnedParameters
from cosim.units.table import unit_of

ROUNDED, ZERO, CUT, EXACT = "rounded", "rounds to zero", "cut at the largest mirror", "exact"
LEFT_OUT = "left out"


@dataclass(frozen=True)
class MappingRow:
    """A row of the mapping report: one learned parameter and the circuit element that it was compiled to.

    target and realised in `unit`. A weight (unit 1): wanted and built. A threshold or level (unit A, status
    calibrated): the current wanted at the cell, and the bias current on the pin that makes it. `status`: exact,
    rounded, rounds to zero, cut at the largest mirror, left out (with a cell that is constant); `note`: what was folded
    in (cosim.compiler.fold).
    """

    parameter: str
    element: str
    target: float
    realised: float
    unit: str
    status: str
    note: str = ""


@once_per_design
def map_parameters(design: Design) -> Sequence[MappingRow]:
    """Return the mapping report of a compiled design: rows for weights, biases, thresholds and levels, in graph order.

    Weights of 0 have rows where they have edges.
    """
    network, graph, weights = design.network, design.graph, design.assembly.weights
    learned = learned_arrays(network)
    # Once a row, not once a weight: a row of n weights that are zero is searched to its end.
    signs = {target: row_sign(graph, target, learned) for target in {target for _, target in graph.weights}}
    rows = [
        _weight_row(
            weight,
            graph.mirrors[source, target],
            weights.get((source, target), "none"),
            explain_weight(graph, (source, target), learned, signs[target]),
        )
        for (source, target), weight in graph.weights.items()
        if source != PEDESTAL
    ]
    layers = {layer.name: layer for layer in network.recurrent_layers}
    for node in graph.memories:
        sign = row_sign(graph, node.name, learned)
        layer = layers[node.layer] if unit_of(node).layer_types else None
        about = _learned(node, layer, sign, graph, design.assembly.cell_bias[node.name])
        rows += [
            MappingRow(pin.parameter, pin.pin, pin.target, pin.realised, "A", "calibrated", pin.note)
            for pin in unit_of(node).report_pins(node, graph.biases[node.name], about)
        ]
    return [*rows, *_left_out_rows(graph, layers)]


def _left_out_rows(graph: Sized, layers: Mapping[str, RecurrentLayer]) -> list[MappingRow]:
    """Return the mapping rows of cells that are left out because no input changes their state."""
    left_out, rows = graph.left_out, list[MappingRow]()
    notes = {name: f"{name} is always in state {state}" for name, state in left_out.states.items()}
    for (source, target), weight in left_out.weights.items():
        note = notes.get(target) or notes.get(source, "no cell that is built reads it")
        rows.append(MappingRow(weight.origin, "none", weight.target, 0.0, "1", LEFT_OUT, note))
    for name in left_out.states:
        node = left_out.nodes[name]
        if isinstance(node, ThresholdUnit) and node.layer in layers and not node.behind:
            names = (*layers[node.layer].threshold_names, "alpha{}")
            for field, value in zip(names, (node.rise, node.fall, node.level), strict=True):
                parameter = f"{node.layer}.{field.format(f'[{node.index}]')}"
                rows.append(MappingRow(parameter, "none", value * graph.i_unit, 0.0, "A", LEFT_OUT, notes[name]))
    return rows


def _weight_row(weight: Weight, mirror: Mirror, element: str, note: str) -> MappingRow:
    difference = abs(mirror.realised - weight.target)
    if weight.target != 0 and mirror.realised == 0:
        status = ZERO
    elif mirror.count and difference > 0.5001 * mirror.realised / mirror.count:  # more than half a unit device
        status = CUT
    else:
        status = EXACT if difference < 1e-9 else ROUNDED
    return MappingRow(weight.origin, element, weight.target, mirror.realised, "1", status, note)


def _learned(
    node: Memory, layer: RecurrentLayer | None, sign: int, graph: Sized, pins: tuple[str, ...]
) -> LearnedParameters:
    """Names of a unit's learned parameters, and how its thresholds came from them; without a layer its own name."""
    if layer is None:
        upper, lower, level = (f"{node.name} ({side})" for side in ("upper", "lower", "level"))
        return LearnedParameters(upper, lower, level, "", "", graph.currents[node.name], pins)
    above = below = ""
    if isinstance(node, ThresholdUnit):
        upper, lower = layer.thresholds(node.index)
        upper, lower = (upper, lower) if sign > 0 else (-lower, -upper)
        above = explain_threshold(node.rise, upper, node.offset)
        below = explain_threshold(node.fall, lower, node.offset)
    where = f"[{node.index}]"
    first, second = (f"{layer.name}.{name.format(where)}" for name in layer.threshold_names)
    return LearnedParameters(
        first, second, f"{layer.name}.alpha{where}", above, below,
        graph.currents[node.name], pins,
    )  # fmt: skip
