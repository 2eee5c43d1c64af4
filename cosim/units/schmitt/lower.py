"""From a layer to Schmitt triggers, and from their thresholds to bias currents.

First-quadrant unit (arXiv 2605.15216): u = max(W x + b, 0), thresholds beta_hi and beta_lo, level alpha.

Signed unit of the seed paper (arXiv 2605.11855, eq. 2-5) on one cell: add a common-mode offset c to the candidate and
to both thresholds, rise = c + beta, fall = c - beta. With c above every beta at which the unit may reset, fall is
positive there, and rectifying c + h_hat changes no decision: where it is negative, it is below fall.
beta = |W_b x + b_b| = max(v, 0) + max(-v, 0): two rectifiers per unit.
"""

from typing import Any

import numpy as np
from scipy.optimize import linprog  # pyright: ignore[reportUnknownVariableType, reportMissingTypeStubs]

from cosim.errors import MappingError
from cosim.ir.nodes import MemoryCurrents, Rectifier, Weight
from cosim.network.layers import EpsilonLayer, RecurrentLayer, SignedLayer
from cosim.network.offset import common_mode_offset
from cosim.network.types import Array
from cosim.units.epsilon import EitherLayer
from cosim.units.limits import MIN_WIDTH, SetPoint, cell_points
from cosim.units.placing import Parameter, Placing
from cosim.units.schmitt.node import Schmitt, SchmittBias
from cosim.units.sizing import SizingInput

_BETAS = np.linspace(0.1, 0.75, 5)  # of the offset: there hysteresis is 18 to 86 % of the rise, as it is calibrated


def lower_schmitt(layer: EitherLayer, placing: Placing) -> None:
    """A cell for every unit of a layer with epsilon 0."""
    if isinstance(layer, SignedLayer):
        _lower_signed(layer, placing)
        return
    weight, bias = placing.sources.folded(layer.weight, layer.bias)
    for i in range(layer.width):
        name = f"{layer.name}.{i}"
        rise, fall, level = float(layer.beta_hi[i]), float(layer.beta_lo[i]), float(layer.alpha[i])
        on = layer.initial is not None and bool(layer.initial[i])
        placing.graph.add(Schmitt(name, layer.name, i, placing.stage, level, 0.0, level, rise, fall, on=on))
        placing.add_row(name, weight[i], bias[i], Parameter(layer.name, i))


def takes(layer: RecurrentLayer) -> bool:
    """Tell whether a layer becomes Schmitt triggers: its update replaces the state by a constant (epsilon 0)."""
    return isinstance(layer, EpsilonLayer) and layer.epsilon == 0 and getattr(layer, "weight_alpha", None) is None


def _lower_signed(layer: SignedLayer, placing: Placing) -> None:
    weight, bias = placing.sources.folded(layer.weight, layer.bias)
    weight_beta, bias_beta = np.zeros_like(weight), layer.bias_beta
    if layer.weight_beta is not None:
        weight_beta, bias_beta = placing.sources.folded(layer.weight_beta, layer.bias_beta)
    tops = placing.largest_signals()
    for i in range(layer.width):
        name = f"{layer.name}.{i}"
        if layer.weight_beta is None:
            beta = largest = abs(float(layer.bias_beta[i]))
        else:
            beta = 0.0
            largest = _largest_beta_at_reset((weight[i], bias[i]), (weight_beta[i], bias_beta[i]), tops)
        offset, alpha = float(common_mode_offset(largest)), float(layer.alpha[i])
        node = Schmitt(
            name, layer.name, i, placing.stage, 2 * alpha, -alpha, 2 * alpha, offset + beta, offset - beta, offset
        )
        placing.graph.add(node)
        placing.add_row(name, weight[i], bias[i] + offset, Parameter(layer.name, i))
        if layer.weight_beta is not None:
            _add_beta(node, weight_beta[i], bias_beta[i], placing)


def _add_beta(node: Schmitt, weight: Array, bias: float, placing: Placing) -> None:
    """Add both halves of an input-dependent beta, and their edges into the cell."""
    moved = next((tap.name for tap, w in zip(placing.sources.taps, weight, strict=True) if tap.late and w), None)
    if moved is not None:
        raise MappingError(
            f"{placing.origin}: {node.layer}.weight_beta[{node.index},*] reads {moved} late, which turns while the "
            "unit decides, and a threshold must stand still then; let the threshold read what is not late, or train "
            "with --beta fixed"
        )
    for sign, label in ((1.0, "pos"), (-1.0, "neg")):
        part = f"{node.name}.beta_{label}"
        placing.graph.add(Rectifier(part, node.layer, node.index))
        placing.add_row(part, sign * weight, sign * bias, Parameter(node.layer, node.index, "_beta", f" ({label})"))
        placing.graph.connect(part, node.name, Weight(1.0, f"{node.layer}.beta[{node.index}] ({label})", "beta"))


def _largest_beta_at_reset(candidate: tuple[Array, float], beta: tuple[Array, float], tops: Array) -> float:
    """Largest beta at which h_hat <= -beta can happen, over signals in [0, top]: the offset must reach that far.

    candidate, beta: weights and bias of h_hat and of v. beta = |v| with v = W_beta x + b_beta; for each sign of v:
    maximise |v| subject to |v| + h_hat <= 0. Also beta at x = 0, where the reset in front of frame 0 holds the inputs.
    """
    (weight, bias), (weight_beta, bias_beta) = candidate, beta
    largest = abs(bias_beta)
    for sign in (1.0, -1.0):
        v, v_0 = sign * weight_beta, sign * bias_beta
        found: Any = linprog(
            -v,
            A_ub=np.stack([v + weight, -v]),
            b_ub=[-(v_0 + bias), v_0],
            bounds=list(zip(np.zeros_like(tops), tops, strict=True)),
        )
        if found.status == 0:
            largest = max(largest, float(v @ found.x + v_0))
    return largest


def schmitt_points(node: Schmitt, asked: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
    """Thresholds, level and, where they stand still, the hysteresis between them."""
    points = cell_points(asked.i_fall, asked.i_rise, asked.i_high)
    width = SetPoint("hysteresis width", asked.i_rise - asked.i_fall, least=MIN_WIDTH, repair="swap the thresholds")
    return points if moving else (width, *points)


def solve_schmitt(node: Schmitt, sizing: SizingInput) -> SchmittBias:
    """Bias currents for thresholds that are what the candidate really is where the ideal one crosses them."""
    asked, betas = sizing.asked(node), bool(sizing.graph.into(node.name, "beta"))
    calibration = sizing.calibration
    fit = calibration.schmitt
    i_gain = fit.solve_gain(asked.i_high)
    traffic = sizing.traffic(node.name)
    if not betas:
        rise, fall = (sizing.arriving(current, traffic) for current in (asked.i_rise, asked.i_fall))
        i_thresh, i_width = fit.solve_clocked(rise, fall)
        return SchmittBias(i_thresh, i_width, i_gain)
    betas = _BETAS * asked.i_fall
    rises, falls = (
        np.array([sizing.arriving(current, traffic) for current in line])
        for line in (asked.i_rise + betas, asked.i_fall - betas)
    )
    threshes, widths = np.array([fit.solve_clocked(*pair) for pair in zip(rises, falls, strict=True)]).T
    around = max(sizing.traffic(source) for source, _ in sizing.graph.into(node.name, "beta"))
    pushed = calibration.mirror.pushed([sizing.arriving(beta, around, relu=True) for beta in betas])
    start_width, slope_width = _line(pushed, widths)
    # The upper threshold moves a little with the width, too: what is left of it where the width is on its line.
    threshes += rises - fit.set_in_frame(fit.i_rise(threshes, start_width + slope_width * pushed))
    start_thresh, slope_thresh = _line(pushed, threshes)
    trim_thresh, trim_width = 1 / slope_thresh, 2 / slope_width
    return SchmittBias(start_thresh * trim_thresh, start_width * trim_width, i_gain, trim_thresh, trim_width)


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Start, which no pin can make negative, and slope of the straight line next to y, by least squares."""
    slope, start = np.polyfit(x, y, 1)
    return (float(start), float(slope)) if start >= 0 else (0.0, float(x @ y / (x @ x)))
