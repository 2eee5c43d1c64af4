"""From a layer to toggles, and from their threshold to bias currents."""

from cosim.errors import MappingError
from cosim.ir.nodes import MemoryCurrents
from cosim.network.layers import EpsilonLayer, RecurrentLayer
from cosim.units.epsilon import EitherLayer, lattices, lifting_offset
from cosim.units.ladder.points import ladder_currents
from cosim.units.limits import SetPoint, cell_points
from cosim.units.native import comparator_bias
from cosim.units.placing import Parameter, Placing
from cosim.units.sizing import SizingInput
from cosim.units.toggle.node import Toggle, TogglePins


def takes(layer: RecurrentLayer) -> bool:
    """Tell whether a layer becomes toggles: its update turns the state over (epsilon -1)."""
    return isinstance(layer, EpsilonLayer) and layer.epsilon == -1


def lower_toggle(layer: EitherLayer, placing: Placing) -> None:
    """A toggle for every unit of a layer with epsilon -1; one whose updates are negative stands for the negative."""
    weight, bias = placing.sources.folded(layer.weight, layer.bias)
    for unit in lattices(layer, placing):
        sign, steps = _form(unit.low, unit.high, unit.where)
        threshold = unit.rise if sign > 0 else -unit.fall
        offset, step, i = lifting_offset(-threshold), steps * unit.step, unit.index
        node = Toggle(unit.name, layer.name, i, placing.stage, step, unit.first, step, threshold + offset, 0.0, offset)
        placing.graph.add(node)
        placing.add_row(node.name, sign * weight[i], sign * bias[i] + offset, Parameter(layer.name, i))


def _form(low: int, high: int, where: str) -> tuple[int, int]:
    """(sign of all updates, steps between the two levels): S = +1 alternates -alpha, 2 alpha; S = -1 -alpha, 0."""
    if low == 0 and high in (0, 3):
        return 1, 3
    if low == 0 and high == 1:
        return -1, 1
    raise MappingError(
        f"{where}: at epsilon -1 a toggle has two levels, which needs updates of one sign; over the training data the "
        f"state runs from {low:+d} to {high:+d} steps of alpha from its start, so both signs happen; train with "
        "another seed"
    )


def toggle_points(node: Toggle, asked: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
    """Return the set-points of a toggle: its one threshold and its level."""
    return cell_points(asked.i_rise, asked.i_rise, asked.i_high)


def solve_toggle(node: Toggle, sizing: SizingInput) -> TogglePins:
    """The comparator's threshold as it arrives, and the set-points that all ladders and toggles share."""
    asked, fit = sizing.asked(node), sizing.calibration.schmitt
    shared = ladder_currents(sizing.graph.i_unit)
    upper = comparator_bias(sizing, node, asked.i_rise)
    thresholds = fit.solve_clocked(shared.i_rise, shared.i_fall)
    delta = shared.i_retain - shared.i_reset
    return TogglePins(upper, shared.i_reset, delta, *thresholds, fit.solve_gain(asked.i_high))
