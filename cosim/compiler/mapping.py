"""Mapping report: every learned parameter, the circuit element that it became, and what was lost on the way.

Its notes explain how lowering folded other values into a parameter on the way from the network to the graph:

    weight        W'  = sign gain W                     gain: step over level of the state that it reads
    bias          b'  = sign (b + sum_j W_j zero_j) + c zero: h of a state's level 0; c: common-mode offset
    threshold     t'  = sign t + c, then in the middle between two candidates
    beside a row  -sum_j W_j on the pedestal            subtracts the pedestals that inputs and states carry

sign is -1 for the negative half of an input-dependent beta and for a toggle whose updates are negative. Inputs are not
folded: their encoding is that of the converters in front of the circuit.
"""

from collections.abc import Mapping, Sequence

from cosim.compiler.design import Design, once_per_design
from cosim.network.ir.graph import Edge, LoweredGraph, SizedGraph
from cosim.network.ir.nodes import PEDESTAL, UNIT_CURRENT, Memory, Mirror, Rectifier, ThresholdUnit, Weight
from cosim.network.layers import RecurrentLayer
from cosim.network.types import Array, Network
from cosim.units.kind import LearnedParameters, MappingRow
from cosim.units.table import unit_of

_SAME = 1e-9
Arrays = Mapping[str, Array]


def learned_arrays(network: Network) -> Arrays:
    """Return the learned arrays that the compiler lowers, by the names that `Weight.origin` has before its brackets."""
    layers = {**{layer.name: layer for layer in network.layers}, "readout": network.readout}
    return {f"{name}.{field}": array for name, layer in layers.items() for field, array in layer.arrays().items()}


def explain_weight(graph: SizedGraph, edge: Edge, learned: Arrays, sign: int) -> str:
    """Explain how the compiler changed a learned weight or bias on its way into the graph; "" if it is unchanged.

    learned: of `learned_arrays`; sign: `row_sign` of the weight's row.
    """
    source, target = edge
    weight = graph.weights[source, target]
    value = _learned_weight(weight, learned)
    if value is None:
        return ""
    parts = ["sign turned"] if sign < 0 else []
    if source == UNIT_CURRENT:
        node = graph.nodes[target]
        offset = node.offset if isinstance(node, ThresholdUnit | Rectifier) else 0.0
        zeros = weight.target - sign * value - offset
        parts += [f"common-mode offset {offset:+g}"] if offset else []
        if abs(zeros) > _SAME:
            left_out = ", and cells left out" if any(graph.left_out.states.values()) else ""
            parts.append(f"{zeros:+g} for level 0 of the states it reads (W zero){left_out}")
        pedestal = graph.mirrors[PEDESTAL, target].realised if (PEDESTAL, target) in graph.mirrors else 0.0
        beside = [f"beside it {pedestal:+g} on the pedestal of its sources"] if pedestal else []
    else:
        gain = sign * weight.target / value if value else 1.0
        parts += [f"times {gain:g}, step over level of the state it reads"] if abs(gain - 1) > _SAME else []
        beside = []
    return "; ".join(([f"learned {value:g}", *parts] if parts else []) + beside)


def explain_threshold(wanted: float, learned: float, offset: float) -> str:
    """Explain how the compiler changed a learned threshold to the `wanted` one, in software units; offset: added."""
    parts = [f"common-mode offset {offset:g} included"] if offset else []
    if abs(wanted - learned - offset) > _SAME:
        parts = [f"learned {learned:g}", *parts, f"{wanted - learned - offset:+.4g} to the middle between candidates"]
    return "; ".join(parts)


def row_sign(graph: LoweredGraph, target: str, learned: Arrays) -> int:
    """Return -1 if the compiled row of node `target` is the negative of the learned one, else 1."""
    for source, weight in graph.into(target):
        if source != UNIT_CURRENT and weight.target and (value := _learned_weight(weight, learned)):
            return 1 if value * weight.target > 0 else -1
    return -1 if target.endswith("_neg") else 1


def _learned_weight(weight: Weight, learned: Arrays) -> float | None:
    """Return the learned number from which a weight of the graph was lowered; None if the weight was not learned."""
    name, _, place = weight.origin.partition(" ")[0].rstrip("]").partition("[")
    array = learned.get(name)
    return None if array is None else float(array[tuple(map(int, place.split(",")))])


ROUNDED, ZERO, CUT, EXACT = "rounded", "rounds to zero", "cut at the largest mirror", "exact"
LEFT_OUT = "left out"


@once_per_design
def map_parameters(design: Design) -> Sequence[MappingRow]:
    """Return the mapping report of a compiled design: rows for weights, biases, thresholds and levels, in graph order.

    Weights of 0 have rows if they have edges in the graph, see `has_zeros`.
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
        rows += unit_of(node).report_pins(graph.biases[node.name], about)
    return [*rows, *_left_out_rows(graph, layers)]


def _left_out_rows(graph: SizedGraph, layers: Mapping[str, RecurrentLayer]) -> list[MappingRow]:
    """Return the mapping report's rows for cells that are not built because no input changes their state."""
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
    node: Memory, layer: RecurrentLayer | None, sign: int, graph: SizedGraph, pins: tuple[str, ...]
) -> LearnedParameters:
    """Return the names of a compiled unit's learned parameters, and notes on how its thresholds came from them.

    layer None: the unit's own name takes the place of the layer's parameter names. sign: `row_sign` of the unit.
    """
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
