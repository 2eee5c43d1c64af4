"""The figures that a circuit is judged by: what each is called, its unit, its direction and its bounds, declared once.

Specs, sweeps, searches, sign-off, comparisons of runs, tables and pages read them here. A new figure is an entry of
METRICS, and a value in what measures it (`cosim.verbs.compare.agreement.Comparison.measured` for `cosim compare`).
"""

from dataclasses import dataclass
from typing import Literal

from cosim.base.quantities import format_quantity

PERCENT, AREA_UNIT = "%", "um2"


def percent(value: float, digits: int = 1) -> str:
    """Format a fraction in per cent, as all tables and pages of results have it: 0.9512 -> '95.1 %'."""
    return f"{100 * value:.{digits}f} %"


def within(bounds: tuple[float, float]) -> str:
    """Format the ends of a fraction's interval: '[93.0 %, 96.7 %]'."""
    return f"[{percent(bounds[0])}, {percent(bounds[1])}]"


@dataclass(frozen=True)
class Estimate:
    """A measured value with the ends of its 95 % interval, where it has one, in the unit of its metric."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Metric:
    """A figure of a circuit.

    words: its name in a sentence; unit: SI, um2, % for a fraction of 1 that people read in percent, '' for what is in
    the unit of the targets; most: the largest limit that a spec may have; better: 1 where more is better, else -1;
    meaning: its definition on a page of chips, '' where no such page shows it; digits: of a percentage; hint: how a
    limit is typed.
    """

    name: str
    words: str
    unit: str
    most: float
    better: Literal[-1, 1]
    meaning: str = ""
    digits: int = 1
    hint: str = ""

    @property
    def title(self) -> str:
        """Return the figure's name as the column of a table has it."""
        return self.name.replace("_", " ")

    @property
    def is_share(self) -> bool:
        """Tell whether the figure's values are fractions of 1, which people read in percent."""
        return self.unit == PERCENT

    def format(self, value: float, digits: int | None = None) -> str:
        """Return a figure's value as text with its unit; digits: of a percentage, in place of the metric's own."""
        if self.is_share:
            return percent(value, digits or self.digits)
        if self.unit in ("", AREA_UNIT):
            return f"{value:.4g} {self.unit}".strip()
        return format_quantity(value, self.unit)


_ALL = (
    Metric("accuracy", "accuracy", PERCENT, 1.0, 1, "samples that a chip decides right"),
    Metric(
        "task_agreement", "decisions as software", PERCENT, 1.0, 1, "samples that a chip decides as the software does"
    ),
    # often so near to 100 % that one digit would hide what is missing
    Metric("state_agreement", "states as software", PERCENT, 1.0, 1, "states that equal the software's", digits=2),
    Metric("yield", "chips that work", PERCENT, 1.0, 1),  # of all chips, not of one
    Metric("power", "power", "W", 1e-3, -1, "mean supply power", hint="400 nanowatt are 400nW"),
    Metric("energy", "energy of an inference", "J", 1.0, -1, hint="50 nanojoule are 50nJ"),
    Metric("margin", "smallest margin of a decision", "A", 1e-3, 1, hint="100 picoampere are 100pA"),
    Metric("latency", "latency", "s", 1e6, -1),  # of the longest inference: frames times their duration
    Metric("area", "area of the gates", AREA_UNIT, 1e12, -1),
    Metric("rmse", "error of answers", "", 1e30, -1, "rms error of real-valued answers"),
)
METRICS = {metric.name: metric for metric in _ALL}
AGREEMENTS = ("accuracy", "task_agreement", "state_agreement")  # of each chip, and of each engine beside software
CHIP_METRICS = (*AGREEMENTS, "power")  # that each chip has, and the nominal circuit
RMSE = "rmse"  # of each chip, too, where targets are real numbers
