"""Centre: each threshold moves to the middle of the gap between the two candidate values that it separates.

With inputs in steps of 1/16, weights in steps of 1/8 and constant levels, a candidate is a multiple of 1/128. Then the
position of a threshold within the gap changes no decision, and in the middle it is farthest from both values. A circuit
has half a step, 1/256 of full scale, for all its errors, where a threshold from training may be arbitrarily close to a
candidate. Continuous inputs or weights have no such gaps, and their thresholds stay.
"""

import math
from dataclasses import replace
from fractions import Fraction

from cosim.network.ir.graph import LoweredGraph
from cosim.network.ir.nodes import InputCurrent, LevelMemory, Memory, Node, ThresholdUnit, UnitCurrent, Weight

LARGEST_DENOMINATOR = 2**14  # a finer lattice leaves no room that a circuit could use
_SAME = 1e-9  # relative; how exactly a float must be the fraction


def centre(graph: LoweredGraph) -> LoweredGraph:
    """Centre the thresholds `rise` and `fall` of a graph, a pass of the compiler; no decision changes.

    A set needs u - beta >= rise, a reset u + beta <= fall, a turn v >= turn. Thresholds that lie within one gap, a
    comparator without hysteresis, stay as they are.
    """
    centred = dict(graph.nodes)
    steps: dict[str, Fraction | None] = {}
    for name in sorted(graph.order, key=lambda name: not isinstance(graph.nodes[name], Memory)):  # these may be late
        steps[name] = _output_step(graph, graph.nodes[name], steps)
    for node in graph.of(ThresholdUnit):
        dynamic = graph.into(node.name, "beta")
        if (step := _common_step([*graph.into(node.name), *dynamic], steps)) is not None:
            rise = (math.ceil(_ratio(node.rise, step)) - 0.5) * float(step)
            fall = (math.floor(_ratio(node.fall, step)) + 0.5) * float(step)
            if dynamic or fall < rise or not node.two_sided:
                centred[node.name] = replace(node, rise=rise, fall=fall)
    for node in graph.of(LevelMemory):
        values = [term for source, _ in graph.into(node.name, "value") for term in graph.into(source)]
        if (step := _common_step(values, steps)) is not None:
            turns = tuple((math.ceil(_ratio(turn, step)) - 0.5) * float(step) for turn in node.turns)
            centred[node.name] = replace(centred[node.name], turns=turns)
    return replace(graph, nodes=centred)


def _output_step(graph: LoweredGraph, node: Node, steps: dict[str, Fraction | None]) -> Fraction | None:
    """Return a step, in software units, of which every value of a node is a multiple; None for continuous values."""
    match node:
        case InputCurrent(step=step):
            return None if step is None else _fraction(step)
        case UnitCurrent():
            return Fraction(1)
        case Memory(level=level):
            return None if node.tolerance else _fraction(level)
        case _:
            return _common_step(graph.into(node.name), steps)


def _common_step(terms: list[tuple[str, Weight]], steps: dict[str, Fraction | None]) -> Fraction | None:
    """Return the greatest common divisor of weight times step over a node's nonzero terms; None if it has none."""
    common = Fraction(0)
    for source, weight in terms:
        if weight.target == 0:
            continue
        step, value = steps[source], _fraction(weight.target)
        if step is None or value is None:
            return None
        product = step * value
        common = Fraction(
            math.gcd(common.numerator * product.denominator, product.numerator * common.denominator),
            common.denominator * product.denominator,
        )
        if common.denominator > LARGEST_DENOMINATOR:
            return None
    return common or None


def _fraction(value: float) -> Fraction | None:
    found = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    return found if abs(float(found) - value) <= _SAME * abs(value) else None


def _ratio(value: float, step: Fraction) -> float:
    """Return a threshold over `step`, as a whole number if it is whole up to rounding errors."""
    ratio = value / float(step)
    return round(ratio) if abs(ratio - round(ratio)) < _SAME * max(abs(ratio), 1.0) else ratio
