"""Mapping report: every learned parameter, what it became, and what was lost on the way."""

from dataclasses import dataclass

from cosim.ir.fold import explain_threshold, explain_weight, learned_thresholds, learned_values, row_sign
from cosim.ir.graph import Sized
from cosim.ir.nodes import (
    PEDESTAL,
    Ladder,
    LadderPins,
    Memory,
    Mirror,
    SchmittBias,
    TogglePins,
    Weight,
)
from cosim.network.types import FirstQuadrantLayer, Network, RecurrentLayer

WIDTH_PIN = "pin carries the width, upper - lower"
ROUNDED, ZERO, CUT, EXACT = "rounded", "rounds to zero", "cut at the largest mirror", "exact"


@dataclass(frozen=True)
class MappingRow:
    """One parameter and its circuit element.

    target and realised in `unit`. A weight (unit 1): wanted and built. A threshold or level (unit A, status
    calibrated): the current wanted at the cell, and the bias current on the pin that makes it. `status`: exact,
    rounded, rounds to zero, cut at the largest mirror; `note`: what was folded in (cosim.ir.fold).
    """

    parameter: str
    element: str
    target: float
    realised: float
    unit: str
    status: str
    note: str = ""


def map_parameters(
    network: Network,
    graph: Sized,
    weights: dict[tuple[str, str], str],
    cell_bias: dict[str, tuple[str, ...]],
) -> list[MappingRow]:
    """Rows for all weights, biases, thresholds and levels, in graph order."""
    learned = learned_values(network)
    rows = [
        _weight_row(
            weight,
            graph.mirrors[source, target],
            weights.get((source, target), "none"),
            explain_weight(graph, source, target, learned),
        )
        for (source, target), weight in graph.weights.items()
        if source != PEDESTAL
    ]
    layers = {layer.name: layer for layer in network.recurrent_layers}
    for node in graph.memories:
        layer, sign = layers[node.layer], row_sign(graph, node.name, learned)
        rows += _cell_rows(node, layer, learned_thresholds(layer, node.index, sign), graph, cell_bias[node.name])
    return rows


def _weight_row(weight: Weight, mirror: Mirror, element: str, note: str) -> MappingRow:
    difference = abs(mirror.realised - weight.target)
    if weight.target != 0 and mirror.count == 0:
        status = ZERO
    elif mirror.count and difference > 0.5001 * mirror.realised / mirror.count:  # more than half a unit device
        status = CUT
    else:
        status = EXACT if difference < 1e-9 else ROUNDED
    return MappingRow(weight.origin, element, weight.target, mirror.realised, "1", status, note)


def _cell_rows(
    node: Memory, layer: RecurrentLayer, learned: tuple[float, float], graph: Sized, pins: tuple[str, ...]
) -> list[MappingRow]:
    currents = graph.currents[node.name]
    bias = graph.biases[node.name]
    above = explain_threshold(node.rise, learned[0], node.offset)
    below = explain_threshold(node.fall, learned[1], node.offset)
    level = "" if abs(node.zero) < 1e-12 else f"two levels, {node.step:g} apart; level 0 stands for {node.zero:g}"
    where = f"[{node.index}]"
    if isinstance(layer, FirstQuadrantLayer):
        upper, lower = f"{layer.name}.beta_hi{where}", f"{layer.name}.beta_lo{where}"
    elif layer.weight_beta is not None:  # beta arrives by its own weights; the pins carry the offset alone
        upper, lower = f"{layer.name}.offset{where} (upper)", f"{layer.name}.offset{where} (lower)"
    else:
        upper, lower = f"{layer.name}.bias_beta{where} (upper)", f"{layer.name}.bias_beta{where} (lower)"
    alpha = f"{layer.name}.alpha{where}"
    match bias:
        case SchmittBias():
            entries = [
                (upper, pins[0], currents.i_rise, bias.i_thresh, above),
                (lower, pins[1], currents.i_fall, bias.i_width, "; ".join(filter(None, (WIDTH_PIN, below)))),
                (alpha, pins[2], currents.i_high, bias.i_gain, level),
            ]
        case LadderPins():
            assert isinstance(node, Ladder)
            rungs = f"{node.rungs} rungs, starts on {node.start}; readers' weights times {node.step / node.level:g}"
            entries = [
                (upper, pins[0], currents.i_rise, bias.i_upper, above),
                (lower, pins[1], currents.i_fall, bias.i_lower, below),
                (alpha, pins[2], currents.i_high, bias.ladder.i_gain, rungs),
            ]
        case _:
            assert isinstance(bias, TogglePins)
            entries = [
                (upper, pins[0], currents.i_rise, bias.i_upper, above),
                (alpha, pins[1], currents.i_high, bias.i_gain, f"two levels, {node.step:g} apart"),
            ]
    return [
        MappingRow(name, pin, target, realised, "A", "calibrated", note)
        for name, pin, target, realised, note in entries
    ]
