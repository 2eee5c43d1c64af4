"""What a calibration measures at: currents in ampere, and how it searches; a change of any makes every file void."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Points:
    """The measuring points.

    trim_currents: where signals live, the trim centres the gain here. rises: thresholds beyond 8 nA are refused by the
    compiler. range_currents: 1 pA to 5 uA; range_spread: how far a usable gain may be off. trim_start: a smaller
    mismatch of gains needs no slope; largest_ln_trim: no mirror of one polarity needs twice the length. slope_step: V.
    shift_range: A, and of the threshold, how far beyond it and before it is searched; shift_steps: from the threshold
    to the furthest. comparator_spans: of the threshold, either way; the next where one holds no decision.
    """

    mirror_currents: tuple[float, ...] = (2e-11, 5e-11, 1e-10, 2e-10, 5e-10, 1e-9, 2e-9, 4e-9, 8e-9, 16e-9)
    range_currents: tuple[float, ...] = tuple(
        step * 10.0**decade for decade in range(-12, -6) for step in (1.0, 2.0, 5.0)
    )
    range_spread: float = 0.02
    trim_currents: tuple[float, ...] = (2e-10, 5e-10, 1e-9, 2e-9)
    trim_start: float = 1e-3
    largest_ln_trim: float = math.log(2)
    slope_step: float = 0.1
    swing_currents: tuple[float, float] = (1e-10, 2e-9)
    rises: tuple[float, ...] = (0.08e-9, 0.2e-9, 0.5e-9, 1e-9, 2e-9, 4e-9, 8e-9)
    width_fractions: tuple[float, ...] = (0.12, 0.35, 0.6, 0.85)
    levels: tuple[float, ...] = (0.08e-9, 0.2e-9, 0.5e-9, 1e-9, 2e-9, 4e-9, 8e-9, 16e-9)
    frame_thresholds: tuple[tuple[float, float], ...] = (
        (0.3e-9, 0.1e-9), (1e-9, 0.3e-9), (2e-9, 1e-9), (4e-9, 2.5e-9)
    )  # fmt: skip
    shift_range: tuple[float, float] = (8e-12, 0.015)
    shift_steps: int = 31
    comparator_steps: int = 32
    comparator_currents: tuple[float, ...] = (0.1e-9, 0.25e-9, 0.5e-9, 1e-9, 2e-9, 4e-9, 8e-9)
    comparator_spans: tuple[float, ...] = (0.06, 0.2)
    dpi_alphas: tuple[float, ...] = (0.1e-9, 0.25e-9, 0.5e-9, 1e-9, 2e-9)
    dpi_secants: int = 3


POINTS = Points()
