"""The Schmitt trigger, a clocked 9T cell: the unit at epsilon = 0, whose state is replaced by a constant.

    s = 1 where u >= i_rise,  0 where u <= i_fall,  else kept          I_out = s i_high

First-quadrant unit (arXiv 2605.15216): u = max(W x + b, 0), thresholds beta_hi and beta_lo, level alpha.

Signed unit of the seed paper (arXiv 2605.11855, eq. 2-5) on one cell: add a common-mode offset c to the candidate and
to both thresholds, rise = c + beta, fall = c - beta. With c above every beta at which the unit may reset, fall is
positive there, and rectifying c + h_hat changes no decision: where it is negative, it is below fall.
beta = |W_b x + b_b| = max(v, 0) + max(-v, 0): two rectifiers per unit.

Its supply current is min(g_push (u + I_w s), g_n I_thresh) + I_w s + I_high s with I_w = i_high(I_width): decision
branch, feedback and output, see cosim.engines.behavioral.supply.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog  # pyright: ignore[reportUnknownVariableType, reportMissingTypeStubs]

from cosim.cells.blocks import BETAS, CELLS
from cosim.cells.builder import NETWORK, Builder, net
from cosim.cells.clocked import LATCH_NODE, clocked_schmitt
from cosim.cells.linear import Term, linear_row
from cosim.cells.schmitt import DECISION_NODE
from cosim.errors import MappingError
from cosim.ir.nodes import MemoryCurrents, Rectifier, ThresholdUnit, Weight
from cosim.ir.states import States
from cosim.network.layers import EpsilonLayer, RecurrentLayer, SignedLayer
from cosim.network.offset import common_mode_offset
from cosim.units.comparator import memory_current
from cosim.units.epsilon import EPSILON_LAYERS, EitherLayer
from cosim.units.kind import (
    Array,
    CellEquations,
    Effect,
    LearnedParameters,
    PinRow,
    Site,
    Standing,
    Turns,
    UnitKind,
    effect,
    pick,
)
from cosim.units.limits import CLEAR, MIN_WIDTH, SetPoint, cell_points
from cosim.units.placing import Parameter, Placing
from cosim.units.sizing import SizingInput


@dataclass(frozen=True)
class Schmitt(ThresholdUnit):
    """epsilon = 0: s becomes 1 at u >= rise + beta, 0 at u <= fall - beta, else kept; s starts at 0, or at 1 if `on`.

    beta = sum of the beta edges (0 without them).
    """

    on: bool = False

    @property
    def start(self) -> int:
        return int(self.on)


@dataclass(frozen=True)
class SchmittBias:
    """Bias-pin currents in ampere that realise the thresholds and the level.

    With an input-dependent threshold the pins carry the constant part, and the diodes of the two lines are
    of other lengths: they carry `trim_thresh` and `trim_width` times what the cell compares, so that beta arrives with
    the right slope.
    """

    i_thresh: float
    i_width: float
    i_gain: float
    trim_thresh: float = 1.0
    trim_width: float = 1.0


@dataclass(frozen=True)
class SchmittFactors:
    """compared: what the cell compares, over its candidate; thresh, width: its threshold and width currents; level: of
    its state."""

    compared: float = 1.0
    thresh: float = 1.0
    width: float = 1.0
    level: float = 1.0


SchmittCell = CellEquations[Schmitt, SchmittBias, SchmittFactors]


def decide_schmitt(cell: SchmittCell, candidate: Array) -> States:
    """States (n, time), 0 or 1."""
    rise, fall = _thresholds(cell)
    compared = candidate * cell.factors.compared
    sets, resets = compared >= rise, compared <= fall
    first = cell.node.on or stays_on(cell)
    start = np.full(len(candidate), int(first)) if cell.before is None else cell.before
    # The state is what the latest set or reset left, in front of the first one the start.
    frames = np.arange(candidate.shape[1], dtype=np.int32)
    latest = np.maximum.accumulate(np.where(sets | resets, frames, -1), axis=1)
    left = np.take_along_axis(sets, np.maximum(latest, 0), axis=1)
    return np.where(latest < 0, start[:, None], left).astype(np.int16)


def _thresholds(cell: SchmittCell) -> tuple[Array, Array]:
    """Upper and lower threshold, (n, time) or scalar, ampere."""
    thresh, width = cell.factors.thresh, cell.factors.width
    into_thresh, into_width = cell.beta
    if cell.ideal:
        # Written so that without deviations both are exact: software decides ties as these numbers do.
        i_rise, i_fall, _ = cell.asked
        rise, fall = i_rise + into_thresh, i_fall - (2 * into_width - into_thresh)
        moved = (thresh - 1) * rise - (width - 1) * (i_rise - i_fall + 2 * into_width)
        return thresh * rise, fall + moved
    return _crossed(cell, *_line_currents(cell, cell.beta, (thresh, width)))


def _line_currents(
    cell: SchmittCell, beta: tuple[Array | np.float64, Array | np.float64], factors: tuple[float, float]
) -> tuple[Array, Array]:
    """Return the currents of the threshold and the width line with beta on them: factors times currents, over the
    trims."""
    bias, pushed, (thresh, width) = cell.bias, cell.calibration.mirror.pushed, factors
    return (
        np.asarray(thresh * (bias.i_thresh + pushed(beta[0])) / bias.trim_thresh),
        np.asarray(width * (bias.i_width + 2 * pushed(beta[1])) / bias.trim_width),
    )


def _crossed(cell: SchmittCell, i_thresh: Array, i_width: Array) -> tuple[Array, Array]:
    """Upper and lower threshold of the clocked cell, as calibration measured them."""
    fit = cell.calibration.schmitt
    return fit.set_in_frame(fit.i_rise(i_thresh, i_width)), fit.reset_in_frame(fit.i_fall(i_thresh, i_width))


def turn_schmitt(cell: SchmittCell, lines: Sequence[Array]) -> Turns:
    """The upper threshold, then the lower one; lines: threshold and width line of a cell whose thresholds move."""
    bias, factors = cell.bias, cell.factors
    thresh, width = lines or (np.asarray(bias.i_thresh), np.asarray(bias.i_width))
    i_thresh, i_width = factors.thresh / bias.trim_thresh * thresh, factors.width / bias.trim_width * width
    rise, fall = _crossed(cell, np.asarray(i_thresh), np.asarray(i_width))
    return Turns((rise / factors.compared,), (fall / factors.compared,))


def stays_on(cell: SchmittCell) -> bool:
    """Tell whether a cell that was on stays on at a candidate of 0, so that the reset does not turn it off.

    False for a cell that is to begin on.
    """
    _, fall = _thresholds(cell)
    return not cell.node.on and np.ndim(fall) == 0 and bool(fall < 0)


def settle_schmitt(node: Schmitt, candidate: float) -> int | None:
    """The state of a constant candidate, in units: what the first frame decides stays."""
    if min(abs(candidate - node.rise), abs(candidate - node.fall)) <= CLEAR:
        return None
    return 1 if candidate > node.rise else 0 if candidate < node.fall else node.start


def deliver_schmitt(cell: SchmittCell, states: States) -> Array:
    """Output current (n, time), ampere."""
    high = cell.asked[2] if cell.ideal else float(cell.calibration.schmitt.i_high(np.float64(cell.bias.i_gain)))
    return pick(np.array([0.0, high * cell.factors.level]), states)


def supply_schmitt(cell: SchmittCell, standing: Standing) -> Array:
    """The cell with its output, its pedestal and the copies of beta into its lines, ampere, (n, time)."""
    i_thresh, i_width = _line_currents(cell, (standing.beta, standing.beta), (1.0, 1.0))
    lines = 3 * cell.calibration.mirror.push * standing.beta  # beta into the threshold (1) and width (2) lines
    state = standing.states > 0
    return memory_current(cell.calibration, standing.candidate, state, i_thresh, i_width) + standing.current + lines


def takes(layer: RecurrentLayer) -> bool:
    """Tell whether a layer becomes Schmitt triggers: its update replaces the state by a constant (epsilon 0)."""
    return isinstance(layer, EpsilonLayer) and layer.epsilon == 0 and getattr(layer, "weight_alpha", None) is None


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


_BETAS = np.linspace(0.1, 0.75, 5)  # of the offset: there hysteresis is 18 to 86 % of the rise, as it is calibrated


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


WIDTH_PIN = "pin carries the width, upper - lower"


def build_schmitt(builder: Builder, node: Schmitt, bias: SchmittBias) -> None:
    """Candidate, bias lines, cell, and the lines of its state."""
    stem = net(node.name)
    candidate = builder.add_candidate(node)
    betas = [source for source, _ in builder.graph.into(node.name, "beta")]
    if betas:
        thresh, width = _add_beta_lines(builder, node, bias, betas)
    else:
        thresh, width = builder.bias_line("thresh", bias.i_thresh), builder.bias_line("width", bias.i_width)
    gain = builder.bias_line("gain", bias.i_gain)
    builder.cell_bias[node.name] = (thresh, width, gain)
    origin = f"{node.name}: rise {node.rise:.6g} fall {node.fall:.6g} level {node.level:.6g}"
    reset = builder.reset_line() if node.on else "resetb"
    apart, stage = node.stage in builder.apart, node.stage
    clocks = (f"clk{stage}", f"clkb{stage}", *((f"dec{stage}", f"decb{stage}") if apart else ()))
    cell = clocked_schmitt(builder.technology, builder.units, on=node.on, apart=apart)
    nets = (candidate, thresh, width, gain, f"{stem}_p", *clocks, reset, "vdd")
    builder.add(cell, f"cell_{stem}", nets, CELLS, origin)
    latch = f"x{NETWORK}.xcell_{stem}.{LATCH_NODE}"
    builder.decisions[node.name] = (latch,)
    if not node.on:
        builder.held[node.name] = (latch, f"x{NETWORK}.xcell_{stem}.{DECISION_NODE}")
    builder.add_state_line(node)


def _add_beta_lines(builder: Builder, node: Schmitt, bias: SchmittBias, betas: list[str]) -> tuple[str, str]:
    """Threshold and width lines of an input-dependent unit: pin current plus beta. Both stand still in a decision."""
    stem, lines = net(node.name), list[str]()
    for purpose, current, trim, copies in (
        ("thresh", bias.i_thresh, bias.trim_thresh, 1),
        ("width", bias.i_width, bias.trim_width, 2),
    ):
        line = builder.own_line(node.name, purpose, current, trim)
        origin = f"{node.layer}.beta[{node.index}] x {copies}"
        terms = [Term(net(source), -copies * builder.units, origin) for source in betas]
        summary = f"beta into the {purpose} line of {node.name}"
        row = linear_row(f"{purpose}_row_{stem}", terms, builder.technology, summary)
        builder.add(row, row.name, (line, "vdd", *row.ports[2:]), BETAS)
        for index, source in enumerate(betas):
            device = f"x{NETWORK}.x{row.name}.mw{index}"
            earlier = builder.weights.get((source, node.name))
            builder.weights[source, node.name] = f"{earlier} and {device}" if earlier else device
        lines.append(line)
    return lines[0], lines[1]


def report_schmitt(node: Schmitt, bias: SchmittBias, learned: LearnedParameters) -> list[PinRow]:
    """Return the report's rows for both thresholds and the level."""
    asked, (thresh, width, gain) = learned.asked, learned.pins
    below = "; ".join(filter(None, (WIDTH_PIN, learned.below)))
    level = "" if abs(node.zero) < 1e-12 else f"two levels, {node.step:g} apart; level 0 stands for {node.zero:g}"
    return [
        PinRow(learned.upper, thresh, asked.i_rise, bias.i_thresh, learned.above),
        PinRow(learned.lower, width, asked.i_fall, bias.i_width, below),
        PinRow(learned.alpha, gain, asked.i_high, bias.i_gain, level),
    ]


def schmitt_effects(node: Schmitt, bias: SchmittBias, site: Site) -> Iterator[Effect]:
    """compared: M1 - candidate diode; thresh: M2 - bias diode; width: M8 - bias diode + M9 - M7; level: M5 - bias
    diode."""
    thresh, width, gain = map(site.bias, site.pins)
    device, name = site.device, node.name
    yield effect("compared", name, site.asked.i_rise, (device("compare"), 1), (site.candidate, -1))
    yield effect("thresh", name, bias.i_thresh, (device("threshold"), 1), (thresh, -1))
    loop = (device("width"), 1), (width, -1), (device("loop out"), 1), (device("loop in"), -1)
    yield effect("width", name, bias.i_width, *loop)
    yield effect("level", name, bias.i_gain, (device("level"), 1), (gain, -1))


SCHMITT = UnitKind[Schmitt, SchmittBias, SchmittFactors](
    node=Schmitt,
    factors=SchmittFactors,
    layers=EPSILON_LAYERS,
    takes=takes,
    lower=lower_schmitt,
    points=schmitt_points,
    bias=solve_schmitt,
    build=build_schmitt,
    report=report_schmitt,
    decide=decide_schmitt,
    deliver=deliver_schmitt,
    supply=supply_schmitt,
    effects=schmitt_effects,
    turns=turn_schmitt,
    resumes=True,
    settles=settle_schmitt,
    drawings=("9T cell", "clocked"),
    unreset=stays_on,
    samples=True,
)
