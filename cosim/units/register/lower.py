"""From a layer to registers, and from their thresholds to bias currents.

The candidate and its window are those of a ladder's quantiser, on a common-mode offset. The value v = W_alpha x + alpha
stands on an offset of FULL_SCALE in two rectified rows, max(1 + v, 0) and max(1 - v, 0), of which S(h_hat) takes one;
turn k is (k - 1/2) steps of 2 / K. So s = 0 ... K stands for h = -1 + 2 s / K.
"""

from cosim.errors import MappingError, UnitCurrentError
from cosim.ir.nodes import Rectifier, Weight
from cosim.network.layers import FULL_SCALE, RecurrentLayer, SignedLayer
from cosim.network.offset import common_mode_offset
from cosim.network.types import Array
from cosim.units.limits import MIN_FALL, SetPoint
from cosim.units.native import comparator_bias
from cosim.units.placing import Parameter, Placing
from cosim.units.register.node import Register, RegisterPins, level_of
from cosim.units.sizing import SizingInput

KEEP = 0.04  # of i_unit: what a level sinks to stay off; twice that keeps it on
RELEASE = 0.5  # of i_unit: what ends a write; the keepers then have a part of the frame before it is read


def takes(layer: RecurrentLayer) -> bool:
    """Tell whether a layer becomes registers: its update stores a value on a grid (alphaCMRU at epsilon 0)."""
    return isinstance(layer, SignedLayer) and layer.levels is not None and layer.epsilon == 0


def lower_register(layer: SignedLayer, placing: Placing) -> None:
    """A register for every unit of an alphaCMRU layer with levels and epsilon 0."""
    assert layer.levels is not None
    assert layer.weight_alpha is not None
    weight, bias = placing.sources.folded(layer.weight, layer.bias)
    weight_alpha, alpha = placing.sources.folded(layer.weight_alpha, layer.alpha)
    _check_still(layer, placing)
    step = 2 * FULL_SCALE / layer.levels
    turns = tuple((k + 0.5) * step for k in range(layer.levels))
    for i in range(layer.width):
        beta = abs(float(layer.bias_beta[i]))
        offset, first = float(common_mode_offset(beta)), round((float(layer.start[i]) + FULL_SCALE) / step)
        node = Register(
            f"{layer.name}.{i}", layer.name, i, placing.stage, step, -FULL_SCALE, step, offset + beta, offset - beta,
            offset, turns, first,
        )  # fmt: skip
        placing.graph.add(node)
        placing.add_row(node.name, weight[i], bias[i] + offset, Parameter(layer.name, i))
        _add_values(node, weight_alpha[i], float(alpha[i]), placing)


def _add_values(node: Register, weight: Array, alpha: float, placing: Placing) -> None:
    """The value with either sign, and their edges into the register."""
    for sign, label in ((1.0, "pos"), (-1.0, "neg")):
        part = f"{node.name}.alpha_{label}"
        placing.graph.add(Rectifier(part, node.layer, node.index, FULL_SCALE))
        parameter = Parameter(node.layer, node.index, "_alpha", f" ({label})", "alpha")
        placing.add_row(part, sign * weight, sign * alpha + FULL_SCALE, parameter)
        placing.graph.connect(part, node.name, Weight(1.0, f"{node.layer}.value[{node.index}] ({label})", "value"))


def _check_still(layer: SignedLayer, placing: Placing) -> None:
    """Raises MappingError for a value that turns while it is written."""
    assert layer.weight_alpha is not None
    for i, row in enumerate(layer.weight_alpha):
        moved = next((tap.name for tap, w in zip(placing.sources.taps, row, strict=True) if tap.late and w), None)
        if moved is not None:
            raise MappingError(
                f"{placing.origin}: {layer.name}.weight_alpha[{i},*] reads {moved} late, which turns while the value "
                "is written, and a value must stand still then; let it read what is not late, or train "
                "without --feedback"
            )


def solve_register(node: Register, sizing: SizingInput) -> RegisterPins:
    """Bias currents of thresholds and turns as they arrive. Raises MappingError for what cannot be built."""
    asked, i_unit = sizing.asked(node), sizing.graph.i_unit
    upper = comparator_bias(sizing, node, asked.i_rise)
    lower = comparator_bias(sizing, node, asked.i_fall, upper=False)
    keep = KEEP * i_unit
    source = sizing.graph.into(node.name, "value")[0][0]
    traffic = sizing.traffic(source)
    fit = level_of(sizing.calibration)
    turns = tuple(fit.solve(sizing.arriving(turn * i_unit, traffic)) for turn in node.turns)
    if turns[0] < MIN_FALL:
        raise UnitCurrentError(str(SetPoint("lowest turn", turns[0], least=MIN_FALL)))
    return RegisterPins(
        upper, lower, sizing.calibration.schmitt.solve_gain(asked.i_high), keep, RELEASE * i_unit, turns
    )
