"""Parts that all recurrent units behind comparators share: windows, set-points, clocks and supply currents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cosim.cells.bias import beta_sink
from cosim.cells.blocks import BETAS
from cosim.network.ir.nodes import MemoryCurrents, ThresholdUnit
from cosim.network.ir.states import States
from cosim.technology.calibration import Calibration, ComparatorFit, MirrorFit
from cosim.units.beta import fit_line, moving_currents, push_beta
from cosim.units.builder import Builder, instance, net
from cosim.units.kind import (
    Array,
    B,
    CellDevices,
    CellEquations,
    CellSignals,
    Effect,
    F,
    SwitchingThresholds,
    UnitKind,
    effect,
    iterate_states,
    select_levels,
)
from cosim.units.sizing import CLEARANCE, SetPoint, SizingInput, threshold_set_points

REST = 0.25  # of i_unit; what the mirror that pulls beta out of a lower line carries when beta is 0
DECISION_FIT = "Decision"  # its name among a calibration's own
_LEAST = 1e-15  # A; what is left on a line out of which beta pulls all that its pin carries


@dataclass(frozen=True)
class WindowPins:
    """Bias-pin currents of both comparators of a recurrent unit, ampere.

    With an input-dependent threshold beta the pins carry the constant part. The diodes of the two lines then differ in
    length: they carry `trim_upper` and `trim_lower` times what the comparators take, so that beta arrives with the
    right slope. A mirror pulls beta out of the lower line; i_rest is the constant current that it pulls as well, 0
    without beta.
    """

    i_upper: float
    i_lower: float
    trim_upper: float = field(default=1.0, kw_only=True)
    trim_lower: float = field(default=1.0, kw_only=True)
    i_rest: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class WindowFactors:
    """The factors by which one chip's mismatch changes currents of a recurrent unit behind two comparators.

    upper, lower: the comparators' currents; pulled: the current of the mirror that pulls an input-dependent beta out of
    the lower comparator's line; levels: output currents of each rung, level or bit from the first on, () if all are 1.
    """

    upper: float = 1.0
    lower: float = 1.0
    pulled: float = 1.0
    levels: tuple[float, ...] = ()


Fits = tuple[ComparatorFit, ComparatorFit]  # of the upper and the lower comparator
P = TypeVar("P", bound=WindowPins)
W = TypeVar("W", bound=WindowFactors)


def decision_fits(calibration: Calibration) -> Fits:
    """Return a calibration's fits of the upper and lower comparator of a unit whose decisions a latch catches.

    The latch catches them as the pulse begins.
    """
    own = calibration.own[DECISION_FIT]
    fit = ComparatorFit(own["currents"], own["ratios"])
    return fit, fit


class ComparatorUnit(ThresholdUnit, UnitKind[B, F]):
    """A recurrent unit whose comparators decide about its sampled candidate; its state moves in a later pulse."""

    resumes_from_state = updates_in_pulse = samples_candidate = has_comparators = True

    def settled_state(self, candidate: float) -> int | None:
        """Return the unit's reset state if a constant candidate crosses no threshold, else None.

        Beyond a threshold the state changes in every frame. candidate: in software units.
        """
        above = self.rise - candidate > CLEARANCE and (not self.two_sided or candidate - self.fall > CLEARANCE)
        return self.start if above else None

    @property
    def clock_pins(self) -> tuple[str, str, str, str]:
        """Return the clock and pulse nets of the unit's stage: clk, clkb, pulse, pulseb."""
        clk, clkb, pulse, pulseb = (f"{name}{self.stage}" for name in ("clk", "clkb", "pulse", "pulseb"))
        return clk, clkb, pulse, pulseb


@dataclass(frozen=True)
class WindowUnit(ComparatorUnit[P, W]):
    """A recurrent unit behind two comparators: its state changes above the upper threshold and below the lower one.

    first: the state after the reset.
    """

    first: int = 0

    @property
    def start(self) -> int:
        return self.first

    @staticmethod
    def fits(calibration: Calibration) -> Fits:
        """Return a calibration's fits of the unit's upper and lower comparator, for decisions that a latch catches."""
        return decision_fits(calibration)

    def set_points(self, currents: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
        """Return the unit's lower and upper threshold and its level, with the limits of each, ampere."""
        return threshold_set_points(currents.i_fall, currents.i_rise, currents.i_high)

    def window_bias(self, sizing: SizingInput) -> WindowPins:
        """Return the bias currents of the unit's two comparators that make its thresholds as they arrive.

        With an input-dependent beta the result has trims as well, so that beta moves each line as it moves the
        threshold.
        """
        upper, lower = self.fits(sizing.calibration)
        if not sizing.graph.into(self.name, "beta"):
            rise, fall = sizing.arriving_thresholds(self, compared=True)
            return WindowPins(upper.solve(rise), lower.solve(fall))
        betas, rises, falls = moving_currents(sizing, self, compared=True)
        pushed, rest = sizing.calibration.mirror.pushed(betas), REST * sizing.graph.i_unit
        start_upper, slope_upper = fit_line(pushed, np.array([upper.solve(rise) for rise in rises]))
        start_lower, slope_lower = fit_line(pushed, np.array([lower.solve(fall) for fall in falls]))
        trim_upper, trim_lower = 1 / slope_upper, -1 / slope_lower
        return WindowPins(
            start_upper * trim_upper, start_lower * trim_lower + rest, trim_upper=trim_upper, trim_lower=trim_lower,
            i_rest=rest,
        )  # fmt: skip

    def line_currents(
        self, bias: P, mirror: MirrorFit, beta: tuple[Array, Array], pulled: float = 1.0
    ) -> tuple[Array, Array]:
        """Return the currents of the threshold lines of the unit's upper and lower comparator, ampere.

        beta: (pushed into the upper line, pushed into the mirror that pulls beta out of the lower line), ampere;
        pulled: the chip's mismatch factor of that mirror.
        """
        return (
            np.asarray(bias.i_upper + mirror.pushed(beta[0])),
            np.asarray(np.maximum(bias.i_lower - pulled * (bias.i_rest + mirror.pushed(beta[1])), _LEAST)),
        )

    def add_window_lines(self, builder: Builder, pins: WindowPins) -> tuple[str, str]:
        """Add the threshold lines of the unit's two comparators and return their nets, upper and lower.

        Units with the same current share a line; a unit whose beta depends on the input has lines of its own.
        """
        if not builder.graph.into(self.name, "beta"):
            return builder.comparator_line(pins.i_upper), builder.comparator_line(pins.i_lower)
        m = builder.comparator_devices
        upper = builder.own_line(self.name, "upper", pins.i_upper, pins.trim_upper, m=m)
        push_beta(builder, self, upper, "upper")
        lower = builder.own_line(self.name, "lower", pins.i_lower, pins.trim_lower, m=m)
        mirror = builder.own_line(self.name, "beta", pins.i_rest, 1.0)
        push_beta(builder, self, mirror, "beta")
        builder.add(beta_sink(builder.technology), f"beta_sink_{net(self.name)}", (lower, mirror), BETAS)
        return upper, lower

    def window_effects(self, pins: WindowPins, circuit: CellDevices, cell: str) -> Iterator[Effect]:
        """Yield the mismatch effects on the unit's two comparators, instances `upper` and `lower` in the cell `cell`.

        Their fields are `upper` and `lower`, and `pulled` where a mirror pulls beta out of the lower line.
        """
        for side, pin, current in zip(("upper", "lower"), circuit.pins, (pins.i_upper, pins.i_lower), strict=False):
            yield circuit.comparator_effect(side, current, instance(f"{cell}.{side}"), pin)
        if pins.i_rest:
            sink = circuit.roles[instance(f"beta_sink_{net(self.name)}"), "sink"]
            diode = circuit.bias_diode(f"bias_beta_{net(self.name)}")
            yield effect("pulled", self.name, pins.i_rest, (sink, 1), (diode, -1))

    def window(self, cell: CellEquations[P, W], lines: Sequence[Array] = ()) -> tuple[Array, Array]:
        """Return the unit's upper and lower threshold, ampere.

        lines: currents of the two threshold lines, ampere; if empty, they are computed from the bias pins and beta.
        """
        upper, lower = cell.factors.upper, cell.factors.lower
        if cell.ideal:
            i_rise, i_fall, _ = cell.set_points
            return np.asarray(upper * (i_rise + cell.beta[0])), np.asarray(lower * (i_fall - cell.beta[1]))
        bias, calibration = cell.bias, cell.calibration
        i_upper, i_lower = lines or self.line_currents(bias, calibration.mirror, cell.beta, cell.factors.pulled)
        i_lower = np.maximum(i_lower, _LEAST)  # as a simulation has it, the line may have none
        fits = self.fits(calibration)
        return (
            upper * fits[0].decides_at(i_upper / bias.trim_upper),
            lower * fits[1].decides_at(i_lower / bias.trim_lower),
        )

    def switching_thresholds(self, cell: CellEquations[P, W], lines: Sequence[Array]) -> SwitchingThresholds:
        """Return the thresholds at which the unit's decision changes: in state 0 only the upper one, else both."""
        rise, fall = self.window(cell, lines)
        return SwitchingThresholds((rise,), (rise, fall), own_devices=True)

    def compute_states(self, cell: CellEquations[P, W], candidate: Array) -> States:
        rise, fall = self.window(cell)
        sets, resets = candidate >= rise, candidate <= fall

        def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
            return np.clip(state + np.where(sets[:, t], 1, np.where(resets[:, t], -1, 0)), 0, self.most)

        return iterate_states(candidate, cell.states_before(candidate, self.start), step)

    def window_supply(self, cell: CellEquations[P, W], signals: CellSignals) -> Array:
        """Return the supply current of the unit's two comparators and of the rows that push beta, ampere, (n, time)."""
        mirror, beta = cell.calibration.mirror, np.asarray(signals.beta)
        i_upper, i_lower = self.line_currents(cell.bias, mirror, (beta, beta))
        compared = (i_upper / cell.bias.trim_upper, i_lower / cell.bias.trim_lower)
        total = sum(comparator_current(cell.calibration, signals.candidate, i_thresh) for i_thresh in compared)
        return np.asarray(total + 2 * mirror.pushed(beta))


def levels_current(cell: CellEquations[Any, Any], i_gain: float, most: int, states: States) -> Array:
    """Return the output current of a unit with `most` equal levels, ampere; its state says how many of them are on.

    i_gain: bias current of a level, ampere; states: (n, time).
    """
    factors = cell.factors.levels or (1.0,) * most
    return select_levels(np.concatenate([[0.0], np.cumsum(cell.level_current(i_gain) * np.array(factors))]), states)


def memory_current(
    calibration: Calibration,
    candidate: Array,
    state: NDArray[np.bool_],
    i_thresh: Array | float,
    i_width: Array | float,
) -> Array:
    """Return the supply current of a 9T cell's decision branch and feedback, ampere, (n, time).

    candidate, i_thresh, i_width: ampere; state: whether the cell is on, (n, time).
    """
    mirror = calibration.mirror
    feedback = calibration.schmitt.i_high(i_width) * state
    sunk = (mirror.sink + mirror.slope_n * calibration.v_node) * i_thresh
    return np.minimum(mirror.push * (candidate + feedback), sunk) + feedback


def comparator_current(calibration: Calibration, candidate: Array, i_thresh: Array | float) -> Array:
    """Return the supply current of a comparator, ampere, (n, time): a 9T cell's decision branch without feedback.

    candidate: ampere, (n, time); i_thresh: current of the threshold, ampere.
    """
    return memory_current(calibration, candidate, np.zeros(candidate.shape, dtype=bool), i_thresh, 0.0)
