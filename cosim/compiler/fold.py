"""Explanations for the mapping report: how lowering folded parameters on their way from the network to the graph.

    weight        W'  = sign gain W                     gain: step over level of the state that it reads
    bias          b'  = sign (b + sum_j W_j zero_j) + c zero: h of a state's level 0; c: common-mode offset
    threshold     t'  = sign t + c, then in the middle between two candidates
    beside a row  -sum_j W_j on the pedestal            takes out again what inputs and states ride on

sign is -1 for the negative half of an input-dependent beta and for a toggle whose updates are negative. Inputs are not
folded: their encoding is that of the converters in front of the circuit.
"""

from collections.abc import Mapping

from cosim.network.ir.graph import Edge, Lowered, Sized
from cosim.network.ir.nodes import PEDESTAL, UNIT_CURRENT, Rectifier, ThresholdUnit, Weight
from cosim.network.types import Array, Network

_SAME = 1e-9
Arrays = Mapping[str, Array]


def learned_arrays(network: Network) -> Arrays:
    """Return the arrays of a network to compile by the name that `Weight.origin` has for each before its brackets."""
    layers = {**{layer.name: layer for layer in network.layers}, "readout": network.readout}
    return {f"{name}.{field}": array for name, layer in layers.items() for field, array in layer.arrays().items()}


def explain_weight(graph: Sized, edge: Edge, learned: Arrays, sign: int) -> str:
    """Return how the compiler built a learned weight or bias; empty where it is as asked.

    sign: `row_sign` of its row.
    """
    source, target = edge
    weight = graph.weights[source, target]
    value = _learned(weight, learned)
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
    """Return how the compiler made a threshold of the circuit from the learned one, both in units."""
    parts = [f"common-mode offset {offset:g} included"] if offset else []
    if abs(wanted - learned - offset) > _SAME:
        parts = [f"learned {learned:g}", *parts, f"{wanted - learned - offset:+.4g} to the middle between candidates"]
    return "; ".join(parts)


def row_sign(graph: Lowered, target: str, learned: Arrays) -> int:
    """Return -1 where a compiled row is the negative of what was learned, else 1."""
    for source, weight in graph.into(target):
        if source != UNIT_CURRENT and weight.target and (value := _learned(weight, learned)):
            return 1 if value * weight.target > 0 else -1
    return -1 if target.endswith("_neg") else 1


def _learned(weight: Weight, learned: Arrays) -> float | None:
    """Return the number in the checkpoint that a weight comes from; None for one that was not learned."""
    name, _, place = weight.origin.partition(" ")[0].rstrip("]").partition("[")
    array = learned.get(name)
    return None if array is None else float(array[tuple(map(int, place.split(",")))])
