"""Figures of a sweep as text, with their units, and sweep.csv."""

import csv
import io

from cosim.base.quantities import format_quantity, parse_quantity
from cosim.results.metrics import AREA_UNIT, METRICS, PERCENT, Estimate, percent
from cosim.verbs.sweep.study import SweepAxis, SweepSummary, SweptPoint

_FRACTIONS = ("without_failed", "state_agreement_behavioral")  # beside METRICS
_UNITS = {"_w": "W", "_j": "J", "_a": "A", "_v": "V", "_s": "s", "_um2": "um2"}
_INSIDE = ("sd", "quantiles", "software", "behavioral", "ngspice", "vacask", "batch", "cuda", "without_failed")
_UNSAID = ("total", "measured")
_WORDS = {
    "rows 0 yield": "yield as fabricated",
    "rows -1 yield": "yield trimmed",
    "lost": "weights lost",
    "static": "static power",
    "dynamic_frame": "dynamic energy a frame",
    "energy": "energy an inference",
    "energy_frame": "energy a frame",
    "energy_inference": "energy an inference",
}
_AXES = {
    "area": "device area",
    "i-unit": "unit current",
    "temp": "temperature",
    "t-step": "frame",
    "units": "units per weight",
}


def name_axis(axis: SweepAxis) -> str:
    """Return an axis as a picture names it: what its option sets."""
    return _AXES.get(axis.option, axis.option)


def unit_of(name: str) -> str:
    """Return the unit of a figure by its name: % of a fraction, SI, um2, or ''."""
    parts = name.split(".")
    while len(parts) > 1 and (parts[-1] in _INSIDE or parts[-1].isdigit()):
        parts.pop()
    if (metric := METRICS.get(parts[-1])) is not None:
        return metric.unit
    if parts[-1] in _FRACTIONS:
        return PERCENT
    return next((unit for end, unit in _UNITS.items() if parts[-1].endswith(end)), "")


def name_figure(name: str) -> str:
    """Return a figure's name as people read it: without its unit, and without what goes without saying."""
    parts = [part for part in name.split(".") if part not in _UNSAID]
    words = " ".join(part.removesuffix(next((end for end in _UNITS if part.endswith(end)), "")) for part in parts)
    return _WORDS.get(words, words.replace("_", " "))


def format_one(name: str, value: float) -> str:
    """Format a value of a figure with its unit."""
    unit = unit_of(name)
    if unit == PERCENT:
        return percent(value, 2 if "state" in name else 1)
    if unit not in ("", AREA_UNIT):
        return format_quantity(value, unit)
    digits = f"{value:.0f}" if unit or value == round(value) else f"{value:.3g}"
    return f"{digits} {unit}".strip()


def format_figure_of(name: str, figure: Estimate | None) -> str:
    """Format a figure with its interval; - for one that is not there."""
    if figure is None:
        return "-"
    text = format_one(name, figure.value)
    if figure.low is None or figure.high is None:
        return text
    return f"{text} [{format_one(name, figure.low)}, {format_one(name, figure.high)}]"


def scale_of(name: str, largest: float) -> tuple[float, str]:
    """Return the factor of a figure's values on an axis, and the unit that the axis names."""
    unit = unit_of(name)
    if unit == PERCENT:
        return 100.0, PERCENT
    if unit in ("", AREA_UNIT) or largest == 0:
        return 1.0, unit
    prefixed = format_quantity(abs(largest), unit).rpartition(" ")[2]
    return 1 / parse_quantity(f"1{prefixed}", unit), prefixed


def labels(summary: SweepSummary, point: SweptPoint) -> list[str]:
    """Return the axis values of a point of `cosim sweep` as text."""
    return [axis.label(point.values[axis.option]) for axis in summary.axes]


def remarks(summary: SweepSummary) -> list[str]:
    """Return sentences of a sweep's page on what its intervals mean and what its points share."""
    figures = [found for point in summary.points for found in point.figures.values()]
    found = ["95 % intervals in brackets"] if any(one and one.low is not None for one in figures) else []
    return [*found, *([f"paired: {summary.paired}"] if summary.paired else []), *summary.notes]


def format_sweep_csv(summary: SweepSummary) -> bytes:
    """Return the sweep as CSV: axis values in SI, every figure with the ends of its interval, empty where there is
    none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [f"{name}{end}" for name in summary.figures for end in ("", "_low", "_high")]
    writer.writerow([*map(_head, summary.axes), *columns, "status", "reason", "folder"])
    for point in summary.points:
        figures = [point.figures.get(name) or None for name in summary.figures]
        ends = [end for one in figures for end in ((one.value, one.low, one.high) if one else (None, None, None))]
        writer.writerow([*point.values.values(), *ends, point.status, point.reason, point.folder])
    return text.getvalue().encode()


def _head(axis: SweepAxis) -> str:
    return f"{axis.option}_{axis.unit}" if axis.unit else axis.option
