"""The figures by which circuits are judged: the name, unit, direction and bounds of each, declared once.

Specs, sweeps, searches, sign-off, comparisons of runs, tables and pages read them here. A new figure needs an entry in
METRICS, and a value from the code that measures it (for `cosim compare`:
`cosim.verbs.compare.agreement.Comparison.measured`).
"""

from dataclasses import dataclass
from typing import Literal

from cosim.base.quantities import format_quantity

PERCENT, AREA_UNIT = "%", "um2"


def percent(value: float, digits: int = 1) -> str:
    """Format a fraction in per cent, as in all tables and pages of results: 0.9512 -> '95.1 %'."""
    return f"{100 * value:.{digits}f} %"


def within(bounds: tuple[float, float]) -> str:
    """Format the ends of a fraction's interval: '[93.0 %, 96.7 %]'."""
    return f"[{percent(bounds[0])}, {percent(bounds[1])}]"


@dataclass(frozen=True)
class Estimate:
    """A measured value with the ends of its 95 % interval, all in the metric's unit; None without an interval."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Metric:
    """A figure of a circuit.

    name: identifier in specs and files; words: name in a sentence; unit: an SI unit, um2, % for a fraction of 1 shown
    in percent, or '' for the unit of the targets; most: the largest limit that a spec may set; better: 1 if more is
    better, -1 if less is; meaning: definition on a page about chips, '' if no such page shows it; digits: decimals of a
    percentage; hint: example of how to type a limit.
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
        """Return the figure's name as the head of a table's column: the name with spaces for underscores."""
        return self.name.replace("_", " ")

    @property
    def is_share(self) -> bool:
        """Tell whether the figure's values are fractions of 1, which are shown in percent."""
        return self.unit == PERCENT

    def format(self, value: float, digits: int | None = None) -> str:
        """Return a value of the figure as text with its unit; digits: decimals in percent, by default the metric's."""
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
