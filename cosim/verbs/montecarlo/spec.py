"""Specs: the limits that a chip's figures must keep for the chip to count; all of its cells must reset as well."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cosim.base.errors import InputError
from cosim.base.quantities import parse_quantity
from cosim.results.metrics import AREA_UNIT, METRICS
from cosim.verbs.montecarlo.chips import Figures, NominalFigures

TOLERATED = 0.05
_ALIASES = {"agreement": "task_agreement"}
_SPEC = re.compile(r"\s*(\w+)\s*(>=|<=)\s*(.+?)\s*")
_AREA = re.compile(r"(.+?)\s*(um2|mm2)?")


@dataclass(frozen=True)
class Spec:
    """`metric` must be at least (`>=`) or at most (`<=`) the limit; a fraction, or in the unit that METRICS has.

    energy: of an inference; latency: of the longest one, frames times their duration; area: of the gates; margin: of
    the least sure decision; rmse: of real-valued answers; yield: of all chips, not of one.
    """

    text: str
    metric: str
    at_least: bool
    limit: float

    def holds(self, figures: NominalFigures) -> bool:
        """Tell whether a chip's figures meet the spec. Raises InputError where they do not have its metric."""
        return self.met_by(figures[self.metric])

    def met_by(self, value: float) -> bool:
        """Tell whether a value of the metric keeps the limit."""
        return value >= self.limit if self.at_least else value <= self.limit


def passes_specs(found: Figures | None, specs: Sequence[Spec]) -> bool:
    """Tell whether a chip counts by its figures: simulated (not None), reset, every spec met.

    A cell that its reset does not turn off keeps the state that it once had, so such a chip's figures are those of its
    history, whatever they are.
    """
    return found is not None and not found.unreset and meets_specs(found, specs)


def meets_specs(found: Figures, specs: Sequence[Spec]) -> bool:
    """Tell whether the figures of a chip that was simulated keep every limit."""
    return all(spec.holds(found) for spec in specs)


def parse_spec(text: str, where: str = "--spec") -> Spec:
    """Parse a spec such as `accuracy>=0.9`, `state_agreement>=99%`, `power<=400nW` or `area<=0.05 mm2`.

    Raises InputError that says what it must be, after `where`.
    """
    match = _SPEC.fullmatch(text)
    metric = _ALIASES.get(match[1], match[1]) if match else ""
    if match is None or metric not in METRICS:
        raise InputError(
            f"{where} must be one of {', '.join(METRICS)}, then >= or <=, then a number, such as "
            f"'accuracy>=0.9', not {text!r}"
        )
    limit = _limit(metric, match[3], f"{where} {metric}")
    return Spec(re.sub(r"\s", "", text), metric, match[2] == ">=", limit)


def spec_near(right: float, what: str) -> Spec:
    """Return the spec of an accuracy at most TOLERATED below `right`, which is that of `what`. Raises InputError where
    anything would do."""
    if right <= TOLERATED:
        raise InputError(
            f"{what} answers {100 * right:.3g} % right, and anything is within {100 * TOLERATED:g} points of that; say "
            "with --spec what a chip must do"
        )
    return parse_spec(f"accuracy>={right - TOLERATED:.3f}")


def _limit(metric: str, number: str, where: str) -> float:
    known = METRICS[metric]
    if known.is_share:
        share, scale = (number[:-1], 100) if number.endswith("%") else (number, 1)
        limit = parse_quantity(share, "", where) / scale
        if not 0 <= limit <= 1:
            raise InputError(f"{where} must be a fraction between 0 and 1, or a percentage, not {number}")
        return limit
    if known.unit == AREA_UNIT:
        match = _AREA.fullmatch(number)
        assert match is not None  # of any text
        limit = parse_quantity(match[1], "", where) * (1e6 if match[2] == "mm2" else 1.0)
    else:
        limit = parse_quantity(number, known.unit, where)
    if not 0 <= limit <= known.most:
        hint = f"; {known.hint}" if known.hint else ""
        raise InputError(f"{where} is in {known.unit or 'the unit of the targets'} and must be positive and at most "
                         f"{known.most:g} {known.unit}, not {number}{hint}")  # fmt: skip
    return limit
