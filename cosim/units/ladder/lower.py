"""From a layer to ladders, and from their thresholds to bias currents."""

from cosim.errors import MappingError
from cosim.network.layers import EpsilonLayer, RecurrentLayer
from cosim.technology.calibration import Calibration
from cosim.units.epsilon import EitherLayer, lattices, lifting_offset
from cosim.units.ladder.node import Ladder, LadderPins
from cosim.units.ladder.points import ALPHA, check_ladder, ladder_currents, ladder_timing, solve_ladder
from cosim.units.native import comparator_bias
from cosim.units.placing import Parameter, Placing
from cosim.units.sizing import SizingInput

MAX_RUNGS = 32


def takes(layer: RecurrentLayer) -> bool:
    """Tell whether a layer becomes ladders: its update adds to the state (epsilon 1)."""
    return isinstance(layer, EpsilonLayer) and layer.epsilon == 1


def lower_ladder(layer: EitherLayer, placing: Placing) -> None:
    """A ladder for every unit of a layer with epsilon 1, with rungs for its states over the data and headroom."""
    weight, bias = placing.sources.folded(layer.weight, layer.bias)
    for unit in lattices(layer, placing):
        offset = lifting_offset(-unit.fall)
        rungs = max(unit.high - unit.low + 2 * placing.headroom, 1)
        start = placing.headroom - unit.low
        if rungs > MAX_RUNGS:
            raise MappingError(
                f"{unit.where}: a ladder may have {MAX_RUNGS} rungs at most, not {rungs}: over the training data its "
                f"state spans {unit.high - unit.low} steps of alpha; train with --range-max "
                f"{MAX_RUNGS * unit.step / 2:g}, on shorter sequences or with wider thresholds"
            )
        node = Ladder(
            unit.name, layer.name, unit.index, placing.stage, ALPHA, unit.first - start * unit.step, unit.step,
            unit.rise + offset, unit.fall + offset, offset, rungs, start,
        )  # fmt: skip
        placing.graph.add(node)
        placing.add_row(node.name, weight[unit.index], bias[unit.index] + offset, Parameter(layer.name, unit.index))


def solve_pins(node: Ladder, sizing: SizingInput) -> LadderPins:
    """Comparator thresholds as they arrive, and the set-points that all ladders share."""
    asked = sizing.asked(node)
    shared = ladder_currents(sizing.graph.i_unit)
    upper = comparator_bias(sizing, node, asked.i_rise)
    lower = comparator_bias(sizing, node, asked.i_fall, upper=False)
    bias = solve_ladder(shared, sizing.calibration)
    return LadderPins(upper, lower, shared.i_reset, shared.i_retain - shared.i_reset, bias)


def check_frame(i_unit: float, t_step: float, tau: float, calibration: Calibration, origin: str) -> None:
    """Raises MappingError for a frame in which ladders would skip or double a step."""
    dpi = calibration.dpi
    check_ladder(ladder_currents(i_unit), ladder_timing(t_step, tau), origin, dpi.rise, dpi.fall)
