"""The Schmitt trigger, a clocked 9T cell: the unit at epsilon = 0, whose state is replaced by a constant.

    s = 1 where u >= i_rise,  0 where u <= i_fall,  else kept          I_out = s i_high

First-quadrant unit (arXiv 2605.15216): u = max(W x + b, 0), thresholds beta_hi and beta_lo, level alpha.

Signed unit of the seed paper (arXiv 2605.11855, eq. 2-5) on one cell: add a common-mode offset c to the candidate and
to both thresholds, rise = c + beta, fall = c - beta. With c above every beta at which the unit may reset, fall is
positive at each of these. Rectifying c + h_hat then changes no decision: where c + h_hat is negative, it is below fall.
For a beta that depends on the input see cosim.units.beta.

Its supply current is min(g_push (u + I_w s), g_n I_thresh) + I_w s + I_high s with I_w = i_high(I_width): decision
branch, feedback and output, see cosim.engines.behavioral.model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.cells.blocks import CELLS
from cosim.cells.clocked import LATCH_NODE, clocked_schmitt
from cosim.cells.schmitt import DECISION_NODE
from cosim.network.ir.nodes import InputCurrent, Memory, MemoryCurrents, ThresholdUnit
from cosim.network.ir.states import States
from cosim.network.layers import FALL, RISE, EpsilonLayer, RecurrentLayer, SignedLayer, common_mode_offset
from cosim.network.types import INPUT
from cosim.technology.calibration import MirrorFit
from cosim.technology.scale import MIN_WIDTH
from cosim.units.beta import add_beta, fit_line, moving_currents, offset_on_cell, push_beta
from cosim.units.builder import NETWORK, Builder, net
from cosim.units.comparator import memory_current
from cosim.units.epsilon import EPSILON_LAYERS, EitherLayer
from cosim.units.kind import (
    Array,
    CellDevices,
    CellEquations,
    CellSignals,
    Effect,
    LearnedParameters,
    MappingRow,
    SwitchingThresholds,
    UnitKind,
    effect,
    pin_row,
    select_levels,
)
from cosim.units.placement import LayerPlacement, Parameter
from cosim.units.sizing import CLEARANCE, SetPoint, SizingInput, threshold_set_points


@dataclass(frozen=True)
class SchmittBias:
    """Bias-pin currents of a Schmitt trigger unit, ampere, that make its thresholds and level.

    With an input-dependent threshold beta the pins carry the constant part. The diodes of the two lines then differ in
    length: they carry `trim_thresh` and `trim_width` times what the cell compares, so that beta arrives with the right
    slope.
    """

    i_thresh: float
    i_width: float
    i_gain: float
    trim_thresh: float = 1.0
    trim_width: float = 1.0


@dataclass(frozen=True)
class SchmittFactors:
    """The factors by which one chip's mismatch changes currents of a Schmitt trigger unit.

    compared: candidate as the cell compares it; thresh, width: threshold and width currents; level: output in state 1.
    """

    compared: float = 1.0
    thresh: float = 1.0
    width: float = 1.0
    level: float = 1.0


SchmittCell = CellEquations[SchmittBias, SchmittFactors]


@dataclass(frozen=True)
class Schmitt(ThresholdUnit, UnitKind[SchmittBias, SchmittFactors]):
    """A Schmitt trigger, the recurrent unit at epsilon = 0, whose state an update replaces.

    s becomes 1 at u >= rise + beta, 0 at u <= fall - beta, and is kept else; s starts at 0, or at 1 if `on`. beta is
    the sum of the unit's beta edges, 0 without them.
    """

    factors_type = SchmittFactors
    layer_types = EPSILON_LAYERS
    resumes_from_state = samples_candidate = True
    trimmed = (0, "thresh"), (1, "width"), (2, "level")

    on: bool = False

    @property
    def start(self) -> int:
        return int(self.on)

    @property
    def schematics(self) -> tuple[str, ...]:
        return "9T cell", "clocked"

    def compute_states(self, cell: SchmittCell, candidate: Array) -> States:
        rise, fall = self._thresholds(cell)
        compared = candidate * cell.factors.compared
        sets, resets = compared >= rise, compared <= fall
        start = cell.states_before(candidate, int(self.on or self.stays_on_through_reset(cell)))
        # The state is what the latest set or reset left, in front of the first one the start.
        frames = np.arange(candidate.shape[1], dtype=np.int32)
        latest = np.maximum.accumulate(np.where(sets | resets, frames, -1), axis=1)
        left = np.take_along_axis(sets, np.maximum(latest, 0), axis=1)
        return np.where(latest < 0, start[:, None], left).astype(np.int16)

    def _thresholds(self, cell: SchmittCell) -> tuple[Array, Array]:
        """Return the unit's upper and lower threshold, ampere, (n, time) with an input-dependent beta, else scalar."""
        thresh, width = cell.factors.thresh, cell.factors.width
        if cell.ideal:
            # Written so that without deviations both are exact: software decides ties as these numbers do.
            (into_thresh, into_width), (i_rise, i_fall, _) = cell.beta, cell.set_points
            rise, fall = i_rise + into_thresh, i_fall - (2 * into_width - into_thresh)
            moved = (thresh - 1) * rise - (width - 1) * (i_rise - i_fall + 2 * into_width)
            return thresh * rise, fall + moved
        lines = self.line_currents(cell.bias, cell.calibration.mirror, cell.beta)
        return _measured_thresholds(cell, *_compared_currents(cell, lines))

    def line_currents(self, bias: SchmittBias, mirror: MirrorFit, beta: tuple[Array, Array]) -> tuple[Array, Array]:
        return (
            np.asarray(bias.i_thresh + mirror.pushed(beta[0])),
            np.asarray(bias.i_width + 2 * mirror.pushed(beta[1])),
        )

    def switching_thresholds(self, cell: SchmittCell, lines: Sequence[Array]) -> SwitchingThresholds:
        bias, compared = cell.bias, cell.factors.compared
        rise, fall = _measured_thresholds(
            cell, *_compared_currents(cell, lines or (np.asarray(bias.i_thresh), np.asarray(bias.i_width)))
        )
        return SwitchingThresholds((rise / compared,), (fall / compared,))

    def stays_on_through_reset(self, cell: SchmittCell) -> bool:
        """Tell whether a cell that was on stays on at a candidate of 0; False for a cell that should begin on."""
        _, fall = self._thresholds(cell)
        return not self.on and np.ndim(fall) == 0 and bool(fall < 0)

    def settled_state(self, candidate: float) -> int | None:
        """Return the state that the first frame decides at a constant candidate, in software units, and keeps.

        None if the candidate is too near to a threshold to say.
        """
        if min(abs(candidate - self.rise), abs(candidate - self.fall)) <= CLEARANCE:
            return None
        return 1 if candidate > self.rise else 0 if candidate < self.fall else self.start

    def output_current(self, cell: SchmittCell, states: States) -> Array:
        return select_levels(np.array([0.0, cell.level_current(cell.bias.i_gain) * cell.factors.level]), states)

    def supply_current(self, cell: SchmittCell, signals: CellSignals) -> Array:
        beta = np.asarray(signals.beta)
        i_thresh, i_width = _compared_currents(
            replace(cell, factors=SchmittFactors()),
            self.line_currents(cell.bias, cell.calibration.mirror, (beta, beta)),
        )
        lines = 3 * cell.calibration.mirror.push * signals.beta  # beta into the threshold (1) and width (2) lines
        memory = memory_current(cell.calibration, signals.candidate, signals.states > 0, i_thresh, i_width)
        return memory + signals.output_current + lines

    @staticmethod
    def accepts(layer: RecurrentLayer) -> bool:
        """Tell whether a constant replaces the layer's state at an update (epsilon 0)."""
        return isinstance(layer, EpsilonLayer) and layer.epsilon == 0 and getattr(layer, "weight_alpha", None) is None

    @staticmethod
    def lower_layer(layer: EitherLayer, placement: LayerPlacement) -> None:
        if isinstance(layer, SignedLayer):
            _lower_signed(layer, placement)
            return
        weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
        for i in range(layer.width):
            name = f"{layer.name}.{i}"
            rise, fall, level = float(layer.beta_hi[i]), float(layer.beta_lo[i]), float(layer.alpha[i])
            on = layer.initial is not None and bool(layer.initial[i])
            placement.graph.add(Schmitt(name, layer.name, i, placement.stage, level, 0.0, level, rise, fall, on=on))
            placement.add_row(name, weight[i], bias[i], Parameter(layer.name, i))

    def set_points(self, currents: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
        """Return the unit's thresholds and level with their limits and, if the thresholds are fixed, the hysteresis."""
        points = threshold_set_points(currents.i_fall, currents.i_rise, currents.i_high)
        width = currents.i_rise - currents.i_fall
        hysteresis = SetPoint("hysteresis width", width, least=MIN_WIDTH, repair="swap the thresholds")
        return points if moving else (hysteresis, *points)

    def solve_bias(self, sizing: SizingInput) -> SchmittBias:
        """Return the bias currents at which the cell switches where the ideal candidate crosses the thresholds."""
        calibration = sizing.calibration
        fit = calibration.schmitt
        i_gain = fit.solve_gain(sizing.set_points(self).i_high)
        if not sizing.graph.into(self.name, "beta"):
            return SchmittBias(*fit.solve_clocked(*sizing.arriving_thresholds(self)), i_gain)
        betas, rises, falls = moving_currents(sizing, self)
        threshes, widths = np.array([fit.solve_clocked(*pair) for pair in zip(rises, falls, strict=True)]).T
        pushed = calibration.mirror.pushed(betas)
        start_width, slope_width = fit_line(pushed, widths)
        # The upper threshold moves a little with the width, too: what is left of it where the width is on its line.
        threshes += rises - fit.set_in_frame(fit.i_rise(threshes, start_width + slope_width * pushed))
        start_thresh, slope_thresh = fit_line(pushed, threshes)
        trim_thresh, trim_width = 1 / slope_thresh, 2 / slope_width
        return SchmittBias(start_thresh * trim_thresh, start_width * trim_width, i_gain, trim_thresh, trim_width)

    def build_circuit(self, builder: Builder, bias: SchmittBias) -> None:
        stem = net(self.name)
        candidate = builder.add_candidate(self)
        if builder.graph.into(self.name, "beta"):
            thresh = builder.own_line(self.name, "thresh", bias.i_thresh, bias.trim_thresh)
            push_beta(builder, self, thresh, "thresh")
            width = builder.own_line(self.name, "width", bias.i_width, bias.trim_width)
            push_beta(builder, self, width, "width", copies=2)
        else:
            thresh, width = builder.bias_line("thresh", bias.i_thresh), builder.bias_line("width", bias.i_width)
        gain = builder.bias_line("gain", bias.i_gain)
        builder.cell_bias[self.name] = (thresh, width, gain)
        origin = f"{self.name}: rise {self.rise:.6g} fall {self.fall:.6g} level {self.level:.6g}"
        reset = builder.reset_line() if self.on else "resetb"
        apart, stage = self.stage in builder.apart, self.stage
        clocks = (f"clk{stage}", f"clkb{stage}", *((f"dec{stage}", f"decb{stage}") if apart else ()))
        cell = clocked_schmitt(builder.technology, builder.units, on=self.on, apart=apart)
        nets = (candidate, thresh, width, gain, f"{stem}_p", *clocks, reset, "vdd")
        builder.add(cell, f"cell_{stem}", nets, CELLS, origin)
        latch = f"x{NETWORK}.xcell_{stem}.{LATCH_NODE}"
        builder.decisions[self.name] = (latch,)
        if not self.on:
            builder.held[self.name] = (latch, f"x{NETWORK}.xcell_{stem}.{DECISION_NODE}")
        builder.add_state_line(self)

    def report_pins(self, bias: SchmittBias, learned: LearnedParameters) -> list[MappingRow]:
        currents, (thresh, width, gain) = learned.set_points, learned.pins
        below = "; ".join(filter(None, ("pin carries the width, upper - lower", learned.lower_note)))
        level = "" if abs(self.zero) < 1e-12 else f"two levels, {self.step:g} apart; level 0 stands for {self.zero:g}"
        return [
            pin_row(learned.upper, thresh, currents.i_rise, bias.i_thresh, learned.upper_note),
            pin_row(learned.lower, width, currents.i_fall, bias.i_width, below),
            pin_row(learned.alpha, gain, currents.i_high, bias.i_gain, level),
        ]

    def mismatch_effects(self, bias: SchmittBias, circuit: CellDevices) -> Iterator[Effect]:
        """Yield the mismatch effects on the unit; `a - b` is a against b.

        compared: M1 - candidate diode; thresh: M2 - bias diode; width: M8 - bias diode + M9 - M7; level: M5 - bias
        diode.
        """
        thresh, width, gain = map(circuit.bias_diode, circuit.pins)
        device, name = circuit.device, self.name
        yield effect("compared", name, circuit.set_points.i_rise, (device("compare"), 1), (circuit.candidate_diode, -1))
        yield effect("thresh", name, bias.i_thresh, (device("threshold"), 1), (thresh, -1))
        loop = (device("width"), 1), (width, -1), (device("loop out"), 1), (device("loop in"), -1)
        yield effect("width", name, bias.i_width, *loop)
        yield effect("level", name, bias.i_gain, (device("level"), 1), (gain, -1))


def _compared_currents(cell: SchmittCell, lines: Sequence[Array]) -> tuple[Array, Array]:
    """Return the threshold and width current that the cell compares on its chip, ampere.

    lines: currents of its threshold and width line, ampere.
    """
    bias, factors = cell.bias, cell.factors
    return factors.thresh * lines[0] / bias.trim_thresh, factors.width * lines[1] / bias.trim_width


def _measured_thresholds(cell: SchmittCell, i_thresh: Array, i_width: Array) -> tuple[Array, Array]:
    """Return the upper and lower threshold of a clocked 9T cell, ampere, from calibration, for these bias currents."""
    fit = cell.calibration.schmitt
    return fit.set_in_frame(fit.i_rise(i_thresh, i_width)), fit.reset_in_frame(fit.i_fall(i_thresh, i_width))


def static_thresholds(cell: SchmittCell) -> tuple[float, float]:
    """Return a Schmitt trigger unit's upper and lower threshold for slow ramps of its candidate, ampere."""
    fit, bias = cell.calibration.schmitt, cell.bias
    i_thresh, i_width = _compared_currents(cell, (np.asarray(bias.i_thresh), np.asarray(bias.i_width)))
    rise, fall = fit.i_rise(i_thresh, i_width), fit.i_fall(i_thresh, i_width)
    return float(rise) / cell.factors.compared, float(fall) / cell.factors.compared


def _lower_signed(layer: SignedLayer, placement: LayerPlacement) -> None:
    weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
    for i in range(layer.width):
        name, alpha = f"{layer.name}.{i}", float(layer.alpha[i])
        moving = layer.weight_beta is not None
        beta = 0.0 if moving else abs(float(layer.bias_beta[i]))
        offset = offset_on_cell(layer, i, placement) if moving else float(common_mode_offset(beta))
        node = Schmitt(
            name, layer.name, i, placement.stage, 2 * alpha, -alpha, 2 * alpha, offset + beta, offset - beta, offset
        )
        placement.graph.add(node)
        placement.add_row(name, weight[i], bias[i] + offset, Parameter(layer.name, i))
        if moving:
            add_beta(node, layer, placement)


@dataclass(frozen=True)
class Shift(Schmitt):
    """A shift cell: a Schmitt trigger that takes over a bit of another node, so that rows read the bit a frame later.

        u = s of the node that it reads;  set where u >= RISE level, reset where u <= FALL level

    The cell regenerates: its output has its own level, whatever arrived, so no error adds up along a chain. No layer
    becomes a shift cell: the compiler adds one where a source is late (cosim.compiler.lower).
    frames: by how many frames its state, once decided, is behind unit `index` of `layer`.
    """

    layer_types = ()

    frames: int = 0

    @property
    def behind(self) -> int:
        return self.frames

    @staticmethod
    def accepts(layer: RecurrentLayer) -> bool:
        return False


def shift_cell(name: str, source: InputCurrent | Memory, stage: int, frames: int) -> Shift:
    """Return a shift cell, which keeps a bit for a frame, behind an input or a memory of two states.

    frames: by how many frames its state is behind the source that the chain began with.
    """
    if isinstance(source, Memory):
        layer, level, zero, step = source.layer, source.level, source.zero, source.step
    else:
        layer, level, zero, step = INPUT, 1.0, 0.0, 1.0
    rise, fall = RISE * level, FALL * level
    on = isinstance(source, Memory) and source.start > 0
    return Shift(name, layer, source.index, stage, level, zero, step, rise, fall, on=on, frames=frames)
