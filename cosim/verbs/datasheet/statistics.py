"""Statistics of a datasheet: measures over conditions and over chips, yield, causes of the spread, and the worst chip.

mean         Student's interval
sigma        of a normal distribution: s sqrt((n - 1) / chi^2), exact for one; the page says so
yield        Clopper and Pearson, Biometrika 26 (1934) 404: exact for independent chips
causes       a linear regression of the measure on the drawn deviations z, independent and normal with sigma 1:
             y = y0 + sum b_j z_j + rest, var(y) = sum b_j^2 + var(rest). The share of z_j is b_j^2 over that, where
             b_j^2 is estimated without bias, less its standard error squared; a transistor's is the sum of those of its
             threshold and its current factor. The rest is what no straight line explains.
             N. Draper, H. Smith, Applied Regression Analysis (1998), chapters 4 and 5.

A chip without a value of a measure, such as a crossing that never comes, fails; it is no part of mean and sigma.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.results.intervals import CONFIDENCE, Interval, IntervalEnds, interval, mean_interval
from cosim.verbs.datasheet.sheet import Datasheet, SheetMeasure
from cosim.verbs.datasheet.study import DatasheetChip, DatasheetStudy, draw_study_chips

Array = NDArray[np.float64]
_STILL = 1e-9  # of the largest value: what differs by less does not vary
SPARE = 20  # chips beyond two for each number of a regression, at least


@dataclass(frozen=True)
class ConditionColumn:
    """A measure over the conditions of a datasheet, without mismatch.

    nominal: value in the nominal condition; low, high: least and greatest value, None where no condition has one;
    low_at, high_at: numbers of these conditions; missing: conditions without a value; failing: conditions outside the
    limits, with those without a value.
    """

    nominal: float | None
    low: float | None
    high: float | None
    low_at: int | None
    high_at: int | None
    missing: int
    failing: int


@dataclass(frozen=True)
class SpreadCause:
    """A cause of a measure's spread.

    name: a transistor, or the process of n or p devices; share: of the variance; sigma_vt, sigma_beta: what one
    standard deviation of its threshold and of its current factor adds to the measure, None for a process's other one.
    """

    name: str
    share: float
    sigma_vt: float
    sigma_beta: float | None


@dataclass(frozen=True)
class SpreadCauses:
    """All causes of a measure's spread, the largest first; unexplained: share of the variance that they leave."""

    causes: tuple[SpreadCause, ...]
    unexplained: float


@dataclass(frozen=True)
class MeasureSpread:
    """A measure over chips.

    chips: how many have a value; missing: how many have none; mean with its interval; sigma: standard deviation;
    sigma_interval: for a normal distribution; low, high: extremes; passed: chips within the limits; yield_interval:
    of their fraction, exact; causes: None where too few chips were drawn. Numbers are None without enough chips.
    """

    chips: int
    missing: int
    mean: Interval | None
    sigma: float | None
    sigma_interval: IntervalEnds | None
    low: float | None
    high: float | None
    passed: int
    yield_: float
    yield_interval: IntervalEnds
    causes: SpreadCauses | None = None


@dataclass(frozen=True)
class DatasheetYield:
    """The yield of all measures together: chips that keep all limits, of how many, with the exact interval."""

    passed: int
    chips: int
    value: float
    interval: IntervalEnds


@dataclass(frozen=True)
class AuditedMeasure:
    """The difference between two engines on the same chips, over the measure's sigma.

    chips: with a value in both; only_one: with a value in one of them; largest, rms: of the difference; mean: of it.
    """

    chips: int
    only_one: int
    largest: float | None
    rms: float | None
    mean: float | None


def column_of(measure: SheetMeasure, values: Sequence[float | None]) -> ConditionColumn:
    """Return a measure's column over conditions; values: in their order, the nominal condition first."""
    known = [(value, k) for k, value in enumerate(values) if value is not None]
    low, high = (min(known), max(known)) if known else ((None, None), (None, None))
    failing = sum(not measure.meets(value) for value in values)
    return ConditionColumn(values[0], low[0], high[0], low[1], high[1], len(values) - len(known), failing)


def spread_of(measure: SheetMeasure, values: Sequence[float | None], causes: SpreadCauses | None) -> MeasureSpread:
    """Return the statistics of a measure over chips; values: of each chip, None for none."""
    x = np.array([value for value in values if value is not None])
    passed = sum(map(measure.meets, values))
    share, *ends = interval(passed, len(values))
    mean, sigma, bounds = (mean_interval(x) if len(x) else None), None, None
    if len(x) > 1:
        sigma = float(x.std(ddof=1)) if _varies(x) else 0.0
        bounds = sigma_interval(sigma, len(x))
    low, high = (float(x.min()), float(x.max())) if len(x) else (None, None)
    return MeasureSpread(
        len(x), len(values) - len(x), mean, sigma, bounds, low, high, passed, share, IntervalEnds(*ends), causes
    )


def _varies(x: Array) -> bool:
    """Tell whether values differ by more than the digits of a simulation."""
    return bool(np.ptp(x) > _STILL * np.abs(x).max())


def sigma_interval(sigma: float, count: int, confidence: float = CONFIDENCE) -> IntervalEnds:
    """Return the interval of the standard deviation of a normal distribution, from that of `count` values."""
    from scipy.stats import chi2  # a second to load

    tail = (1 - confidence) / 2
    low, high = (sigma * ((count - 1) / chi2.ppf(share, count - 1)) ** 0.5 for share in (1 - tail, tail))
    return IntervalEnds(float(low), float(high))


def chips_for_causes(study: DatasheetStudy) -> int:
    """Return how many chips with a value the causes of a spread need at least."""
    return _needed(len(draw_study_chips(study, [0]).names))


def _needed(numbers: int) -> int:
    return 2 * numbers + SPARE


def causes_of(names: Sequence[str], normal: Array, values: Sequence[float | None]) -> SpreadCauses | None:
    """Return the causes of a measure's spread by linear regression, None for too few chips or no spread.

    names: of the columns of `normal`, (chips, numbers); where two have one name, the first is the transistor's
    threshold and the second its current factor; values: of each chip.
    """
    known = np.array([value is not None for value in values])
    y, z = np.array([value for value in values if value is not None], dtype=np.float64), normal[known]
    moving = np.ptp(z, axis=0) > 0 if len(z) else np.zeros(z.shape[1], dtype=bool)
    if len(y) < _needed(int(moving.sum())) or not _varies(y):
        return None
    matrix = np.column_stack([np.ones(len(y)), z[:, moving]])
    scale = y.std(ddof=1)
    solution, _, rank, _ = np.linalg.lstsq(matrix, (y - y.mean()) / scale, rcond=None)
    rest = (y - y.mean()) / scale - matrix @ solution
    residual = float(rest @ rest) / (len(y) - rank)
    errors = residual * np.diag(np.linalg.pinv(matrix.T @ matrix))
    slopes, shares = np.zeros(z.shape[1]), np.zeros(z.shape[1])
    slopes[moving] = solution[1:]
    shares[moving] = solution[1:] ** 2 - errors[1:]
    whole = max(float(shares.sum()) + residual, 0.1 * residual)  # with twice as many chips as numbers, never below
    shares /= whole
    found = dict[str, list[int]]()
    for k, name in enumerate(names):
        found.setdefault(name, []).append(k)
    causes = [
        SpreadCause(
            name, float(shares[places].sum()), float(scale * slopes[places[0]]),
            float(scale * slopes[places[1]]) if len(places) > 1 else None,
        )
        for name, places in found.items()
    ]  # fmt: skip
    return SpreadCauses(tuple(sorted(causes, key=lambda one: (-one.share, one.name))), residual / whole)


def yield_of(measures: Sequence[SheetMeasure], chips: Sequence[Mapping[str, float | None]]) -> DatasheetYield:
    """Return the yield of all measures together; chips: measure -> value of each chip."""
    passed = sum(all(one.meets(chip[one.name]) for one in measures) for chip in chips)
    share, *ends = interval(passed, len(chips))
    return DatasheetYield(passed, len(chips), share, IntervalEnds(*ends))


def worst_chip(
    measures: Sequence[SheetMeasure], chips: Sequence[Mapping[str, float | None]], spreads: Sequence[MeasureSpread]
) -> int:
    """Return the number of the chip that is farthest outside a limit, or nearest to one, in standard deviations.

    A chip without a value is the worst of all. Where no measure has a limit, it is the chip farthest from a mean.
    """
    limited = any(one.is_limited for one in measures)

    def room(chip: Mapping[str, float | None]) -> float:
        found = [np.inf]
        for one, spread in zip(measures, spreads, strict=True):
            value, sigma = chip[one.name], spread.sigma
            if value is None:
                found.append(-np.inf)
            elif not sigma:
                continue  # it is the same on all chips
            elif limited:
                found.append(one.room(value) / sigma)
            elif spread.mean is not None:
                found.append(-abs(value - spread.mean.mean) / sigma)
        return min(found)

    return min(range(len(chips)), key=lambda number: (room(chips[number]), number))


def audit_of(own: Sequence[float | None], other: Sequence[float | None], sigma: float | None) -> AuditedMeasure:
    """Compare a measure of the same chips in two engines; sigma: the measure's standard deviation over chips."""
    pairs = [(a, b) for a, b in zip(own, other, strict=True) if a is not None and b is not None]
    only = sum((a is None) != (b is None) for a, b in zip(own, other, strict=True))
    if not pairs or not sigma:
        return AuditedMeasure(len(pairs), only, None, None, None)
    difference = np.array([a - b for a, b in pairs]) / sigma
    largest, rms = float(np.abs(difference).max()), float(np.sqrt((difference**2).mean()))
    return AuditedMeasure(len(pairs), only, largest, rms, float(difference.mean()))


def named_values(sheet: Datasheet, chip: DatasheetChip) -> dict[str, float | None]:
    """Return measure -> value of a chip, for the measures of the sheet."""
    there = dict(zip((one.name for one in sheet.nominal.netlist.measures), chip.values, strict=True))
    return {one.name: there[one.name] for one in sheet.measures}
