"""Thresholds that depend on the input: beta = |W_beta x + b_beta| of signed units (arXiv 2605.11855, eq. 3).

beta = max(v, 0) + max(-v, 0) with v = W_beta x + b_beta. Two rectifiers a unit make the two terms, and their currents
flow into the lines of the unit's thresholds. Candidate and thresholds ride on a common-mode offset c: the unit sets at
c + h_hat >= c + beta and resets at c + h_hat <= c - beta.

    9T cell       it has a line for I_thresh and one for I_width: beta is pushed into the first once, into the second
                  twice
    comparators   each has a line: beta is pushed into the upper one's, and pulled out of the lower one's by a mirror.
                  The mirror carries a constant current beside beta, because a line without current settles late
    toggle        it has an upper threshold alone, so beta is a part of its candidate, with weights of -1

The diode of such a line is drawn longer or shorter, so that beta arrives with the slope of the compared current.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from cosim.base.errors import MappingError
from cosim.cells.blocks import BETAS
from cosim.cells.linear import Term, linear_row
from cosim.network.ir.nodes import Memory, Rectifier, ThresholdUnit, Weight
from cosim.network.layers import SignedLayer, common_mode_offset
from cosim.network.types import Array
from cosim.units.builder import NETWORK, Builder, net
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.sizing import SizingInput

BETAS_OF_OFFSET = np.linspace(0.1, 0.75, 5)  # where hysteresis of a 9T cell is 18 to 86 % of the rise, as calibrated


def offset_on_cell(layer: SignedLayer, index: int, placement: LayerPlacement) -> float:
    """Return the common-mode offset of a 9T cell whose beta depends on the input, in software units.

    The offset covers the largest beta at which the unit can reset, h_hat <= -beta. For each sign of v: maximise |v|
    subject to |v| + h_hat <= 0. Beta at x = 0 is covered too, because the reset in front of frame 0 holds the inputs at
    0. Where beta is larger than that, the lower threshold is below 0, where no candidate can be, and the unit rightly
    never resets.
    """
    (weight, bias), (weight_beta, bias_beta), tops = _drives(layer, index, placement)
    largest = abs(bias_beta)
    for sign in (1.0, -1.0):
        v, v_0 = sign * weight_beta, sign * bias_beta
        constraints = np.stack([v + weight, -v]), [-(v_0 + bias), v_0]
        found = _largest(v, constraints, [(0.0, float(top)) for top in tops])
        largest = max(largest, -np.inf if found is None else found + v_0)
    return float(common_mode_offset(largest))


def offset_on_comparators(layer: SignedLayer, index: int, placement: LayerPlacement) -> float:
    """Return the common-mode offset of a unit behind comparators whose beta depends on the input, in software units.

    A lower threshold of 0 or less leaves its line without current, and a candidate without current must not be compared
    with such a line. So the offset exceeds min(beta, -h_hat) for every input: maximise t subject to t <= |v| and
    t <= -h_hat.
    """
    (weight, bias), (weight_beta, bias_beta), tops = _drives(layer, index, placement)
    largest = 0.0
    for sign in (1.0, -1.0):
        v, v_0 = sign * weight_beta, sign * bias_beta
        constraints = np.stack([np.append(-v, 1.0), np.append(weight, 1.0)]), [v_0, -bias]
        ends = [*((0.0, float(top)) for top in tops), (0.0, None)]
        largest = max(largest, _largest(np.append(np.zeros_like(v), 1.0), constraints, ends) or 0.0)
    return float(common_mode_offset(largest))


def _drives(
    layer: SignedLayer, index: int, placement: LayerPlacement
) -> tuple[tuple[Array, float], tuple[Array, float], Array]:
    """Return (weights, bias) of a unit's h_hat and of its v, and the largest value of each signal that they read.

    The smallest value of every signal is 0.
    """
    assert layer.weight_beta is not None
    weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
    weight_beta, bias_beta = placement.sources.weights_on_currents(layer.weight_beta, layer.bias_beta)
    tops = placement.largest_signals()
    return (weight[index], float(bias[index])), (weight_beta[index], float(bias_beta[index])), tops


def _largest(
    gain: Array, constraints: tuple[Array, list[float]], ends: Sequence[tuple[float, float | None]]
) -> float | None:
    """Maximise a unit's gain @ x over its signals x by a linear program; return the maximum, None without a solution.

    constraints: A and b of A x <= b; ends: smallest and largest value of each x, None for no limit.
    """
    # loaded where a beta has limits to meet, so that other processes start sooner
    from scipy.optimize import linprog  # pyright: ignore[reportUnknownVariableType, reportMissingTypeStubs]

    found: Any = linprog(-gain, A_ub=constraints[0], b_ub=constraints[1], bounds=ends)
    return float(gain @ found.x) if found.status == 0 else None


def add_beta(
    node: Memory, layer: SignedLayer, placement: LayerPlacement, role: Literal["beta", "drive"] = "beta"
) -> None:
    """Add the two rectifiers of a unit's input-dependent beta to the graph and connect them to the unit.

    role: `beta` connects them to the unit's thresholds, `drive` to its candidate with weight -1. Raises MappingError
    where beta reads a signal of the frame before.
    """
    _, (weight, bias), _ = _drives(layer, node.index, placement)
    if (moved := placement.sources.read_late(weight)) is not None:
        raise MappingError(
            f"{placement.origin}: {node.layer}.weight_beta[{node.index},*] reads {moved} late, which turns while the "
            "unit decides, and a threshold must not change then; let the threshold read what is not late, or train "
            "with `beta=fixed`"
        )
    for sign, label in ((1.0, "pos"), (-1.0, "neg")):
        part = f"{node.name}.beta_{label}"
        placement.graph.add(Rectifier(part, node.layer, node.index))
        placement.add_row(part, sign * weight, sign * bias, Parameter(node.layer, node.index, "_beta", f" ({label})"))
        target, origin = 1.0 if role == "beta" else -1.0, f"{node.layer}.beta[{node.index}] ({label})"
        placement.graph.connect(part, node.name, Weight(target, origin, role))


def moving_currents(sizing: SizingInput, node: ThresholdUnit, *, compared: bool = False) -> tuple[Array, Array, Array]:
    """Return five betas as a unit's rectifiers deliver them, and the candidates at its two thresholds for each.

    (betas, candidates at the upper threshold, at the lower one), (5,) each, ampere. compared: see `arriving_current`.
    """
    currents = sizing.set_points(node)
    betas = BETAS_OF_OFFSET * currents.i_fall
    rises, falls = (
        np.array([sizing.arriving_current(node.name, current, compared=compared) for current in line])
        for line in (currents.i_rise + betas, currents.i_fall - betas)
    )
    rows = [source for source, _ in sizing.graph.into(node.name, "beta")]
    arriving = np.array([[sizing.arriving_current(row, beta) for row in rows] for beta in betas]).mean(axis=1)
    return arriving, rises, falls


def fit_line(x: Array, y: Array) -> tuple[float, float]:
    """Fit y = start + slope x by least squares with start >= 0; return (start, slope).

    x: current of a unit's beta; y: current of the threshold line that beta flows into, both ampere.
    """
    slope, start = np.polyfit(x, y, 1)
    return (float(start), float(slope)) if start >= 0 else (0.0, float(x @ y / (x @ x)))


def push_beta(builder: Builder, node: Memory, line: str, purpose: str, copies: int = 1) -> None:
    """Add the row of weights that pushes a unit's beta, `copies` times, into a threshold line that the unit alone has.

    line: net of that line; purpose: what the line is for, part of the row's name.
    """
    stem, betas = net(node.name), [source for source, _ in builder.graph.into(node.name, "beta")]
    origin = f"{node.layer}.beta[{node.index}] x {copies}"
    terms = [Term(net(source), -copies * builder.units, origin) for source in betas]
    summary = f"beta into the {purpose} line of {node.name}"
    row = linear_row(f"{purpose}_row_{stem}", terms, builder.technology, summary)
    builder.add(row, row.name, (line, "vdd", *row.ports[2:]), BETAS)
    for index, source in enumerate(betas):
        device = f"x{NETWORK}.x{row.name}.mw{index}"
        earlier = builder.weights.get((source, node.name))
        builder.weights[source, node.name] = f"{earlier} and {device}" if earlier else device
