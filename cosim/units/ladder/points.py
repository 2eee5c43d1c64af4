"""Set-points of a ladder: input levels, thresholds and DPI biases, and the timing under which it counts exactly.

A rung's window is shifted by its neighbours' DPIs. A set pulse must end before the DPI of the rung that it has set
reaches alpha - (i_set - i_rise), where the next rung would follow; by the next pulse it must have been there. For a
reset the same holds for the fall to i_fall - i_reset. Derivation: docs/ladder.md.
"""

from dataclasses import dataclass
from itertools import pairwise

from cosim.cells.dpi import dpi_fall_time, dpi_rise_time
from cosim.cells.ladder import LadderBias
from cosim.errors import MappingError
from cosim.technology.calibration import Calibration
from cosim.units.pulse import PULSE_BEGIN, PULSE_END

# In units of i_unit. The windows are those of arXiv 2605.11855, Fig. 4, at 1 nA.
RISE, FALL, RETAIN, ALPHA = 0.35, 0.15, 0.25, 0.5
SWING = 0.2  # set = retain + SWING, reset = retain - SWING
TAU_SHARE = 0.02  # I_tau over alpha: dead time and gain error of a DPI grow with it
TAU_FRAMES = 0.25  # tau over the frame
_LEAST = 1e-6  # of alpha: what a DPI at rest still carries, the slowest case of its dead time


@dataclass(frozen=True)
class LadderCurrents:
    """Set-points of a ladder in ampere: input levels, thresholds of rung 1, alpha, and the bias of its DPIs."""

    i_set: float
    i_retain: float
    i_reset: float
    i_rise: float
    i_fall: float
    alpha: float
    i_tau: float


@dataclass(frozen=True)
class LadderTiming:
    """step: from one pulse to the next; pulse: how long set or reset lasts; tau: of the DPIs. All in second."""

    step: float
    pulse: float
    tau: float


def ladder_currents(i_unit: float) -> LadderCurrents:
    """The set-points at this i_unit."""
    return LadderCurrents(
        (RETAIN + SWING) * i_unit,
        RETAIN * i_unit,
        (RETAIN - SWING) * i_unit,
        RISE * i_unit,
        FALL * i_unit,
        ALPHA * i_unit,
        TAU_SHARE * ALPHA * i_unit,
    )


def ladder_timing(t_step: float, tau: float | None = None) -> LadderTiming:
    """The timing of one pulse a frame; tau None means TAU_FRAMES of the frame."""
    return LadderTiming(t_step, (PULSE_END - PULSE_BEGIN) * t_step, TAU_FRAMES * t_step if tau is None else tau)


def solve_ladder(currents: LadderCurrents, calibration: Calibration) -> LadderBias:
    """The bias currents that make the set-points, by the technology's calibration."""
    fit, c = calibration.schmitt, currents
    return LadderBias(
        *fit.solve_thresholds(c.i_rise, c.i_fall),
        *fit.solve_thresholds(c.i_rise + c.alpha, c.i_fall + c.alpha),
        fit.solve_gain(c.alpha),
        c.i_tau * calibration.dpi.ratio(c.alpha),
        c.i_tau,
    )


def check_ladder(
    currents: LadderCurrents, timing: LadderTiming, origin: str, rise: float = 1.0, fall: float = 1.0
) -> None:
    """Refuse a ladder that would skip or double a step; derivation in docs/ladder.md.

    rise, fall: times of the technology's DPIs over those of the equation.

    double: within one pulse the neighbour's window must not arrive, neither of a set nor of a reset.
    skip: until the next pulse it must have arrived. Both are times of the DPI equation, compared with the pulse and
    with the rest of the step. The levels must leave each other room: i_reset < i_fall < i_retain < i_rise < i_set.
    Raises MappingError with the numbers and the repair.
    """
    c = currents
    order = (c.i_reset, c.i_fall, c.i_retain, c.i_rise, c.i_set)
    if not all(a < b for a, b in pairwise(order)) or c.i_set - c.i_rise >= c.alpha:
        values = ", ".join(f"{1e9 * value:.3g}" for value in order)
        raise MappingError(
            f"{origin}: a ladder needs reset < lower threshold < retain < upper threshold < set < upper threshold + "
            f"alpha, not {values} nA with alpha {1e9 * c.alpha:.3g} nA; move the levels apart"
        )
    up, down = c.alpha - (c.i_set - c.i_rise), c.i_fall - c.i_reset  # D at which the neighbour trips
    rest = timing.step - timing.pulse
    cases = (
        ("double a set", rise * dpi_rise_time(c.i_tau, up, c.alpha, c.i_tau), timing.pulse, False),
        ("double a reset", fall * dpi_fall_time(c.alpha, down), timing.pulse, False),
        ("skip a set", rise * dpi_rise_time(_LEAST * c.alpha, up, c.alpha, c.i_tau), rest, True),
        ("skip a reset", fall * dpi_fall_time(c.alpha, down), rest, True),
    )
    for what, needed, available, must_arrive in cases:
        time = needed * timing.tau
        if (time >= available) if must_arrive else (time <= available):
            raise MappingError(
                f"{origin}: the ladder would {what}: the neighbour's window arrives after {1e3 * time:.3g} ms (tau "
                f"{1e3 * timing.tau:.3g} ms), which must be {'less' if must_arrive else 'more'} than "
                f"{1e3 * available:.3g} ms, the {'rest of the step' if must_arrive else 'pulse'}; "
                f"{'use a smaller' if must_arrive else 'use a larger'} tau"
            )
