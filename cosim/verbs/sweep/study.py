"""Results of a sweep, that is one verb at many points: its axes, its points, and the figures in the verb's results.

Fields of `SweepSummary` are the keys of sweep.json, see `json_object`. Axis values are in SI units, figures in the unit
of the verb's own results. Further functions return the results as text with units, and as sweep.csv.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Literal, TypeGuard

from cosim.base.errors import InputError
from cosim.base.quantities import format_quantity, parse_quantity
from cosim.base.text import format_csv
from cosim.engines.table import BEHAVIORAL
from cosim.results.metrics import AREA_UNIT, METRICS, PERCENT, Estimate, percent

DEFAULTS = {
    "montecarlo": ("yield", "accuracy"),
    "trim": ("rows.0.yield", "rows.-1.yield"),
    "compare": ("state_agreement", "task_agreement", "accuracy"),
    "power": ("total.power_w", "total.static_w", "total.dynamic_frame_j", "total.energy_inference_j"),
    "compile": ("transistors", "gate_area_um2", "largest_rounding", "lost"),
}
PAIRED = {
    "montecarlo": "chip k is the same draw at every point",
    "trim": "chip k is the same draw at every point",
    "compare": "the same test samples at every point",
    "power": "the same test samples at every point",
}
_SOFTWARE = "software"
_BOUNDS = ("interval", "mean_interval", "low", "high")
_DECADE = 10.0
_DIGITS = 6
Value = int | float | str  # a whole number is read back as one
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


@dataclass(frozen=True)
class SweepAxis:
    """A swept option: its long name, the unit of its values ('' without one), and the values in order."""

    option: str
    unit: str
    values: tuple[Value, ...]

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """Return the axis values as numbers; None where one is a word."""
        try:
            return tuple(float(value) for value in self.values)
        except ValueError:
            return None

    @property
    def geometric(self) -> bool:
        """Tell whether the axis values are positive numbers that span a decade or more."""
        numbers = self.numbers
        return numbers is not None and min(numbers) > 0 and max(numbers) >= _DECADE * min(numbers)

    def label(self, value: Value) -> str:
        """Return an axis value as text, with its unit."""
        if isinstance(value, str):
            return value
        return format_quantity(value, self.unit, _DIGITS) if self.unit else f"{value:.{_DIGITS}g}"


@dataclass(frozen=True)
class SweptPoint:
    """A point of a sweep: one run of the verb.

    folder: of the run, below the sweep's; values: option -> value; status: incomplete if the verb had figures and a
    complaint, failed if it had no figures; figures: None for one that the results did not have; reason: the complaint.
    """

    folder: str
    values: dict[str, Value]
    status: Literal["ok", "incomplete", "failed"]
    figures: dict[str, Estimate | None]
    reason: str | None = None


@dataclass(frozen=True)
class SweepSummary:
    """The content of sweep.json; options: of the swept verb, without defaults; paired: what the points share."""

    verb: str
    network: str
    network_hash: str
    file: str
    options: Mapping[str, object]
    axes: tuple[SweepAxis, ...]
    paired: str
    figures: tuple[str, ...]
    points: tuple[SweptPoint, ...]
    notes: tuple[str, ...]
    made_with: Mapping[str, str]


def find_figures(content: object, path: str = "") -> Iterator[tuple[str, Estimate | None]]:
    """Yield (name, figure) of all numbers that a sweep finds in the JSON object of the verb that it ran.

    The name joins the keys with dots. A mean or value with an interval beside it is one figure, named after both. A
    list of texts counts as its length; the last of a list of objects also has the index -1. A figure is None where the
    object has null.
    """
    if isinstance(content, Mapping):
        yield from _of_mapping(content, path)
    elif isinstance(content, list):
        if all(isinstance(item, str) for item in content):
            yield path, Estimate(float(len(content)))
        elif all(isinstance(item, Mapping) for item in content):
            for index, item in (*enumerate(content), (-1, content[-1])):
                yield from find_figures(item, _join(path, str(index)))
    elif content is None or _is_number(content):
        yield path, _figure(content, None)


def _of_mapping(content: Mapping[str, object], path: str) -> Iterator[tuple[str, Estimate | None]]:
    main = next((key for key in ("value", "mean") if _is_number(content.get(key))), None)
    if main is not None:
        bounds = content.get("interval", content.get("mean_interval")) or [content.get("low"), content.get("high")]
        yield path, _figure(content[main], bounds)
    for key, value in content.items():
        beside = content.get(f"{key}_interval")
        if key.endswith("_interval") or (main is not None and key in (main, *_BOUNDS)):
            continue
        name = _join(path, key)
        if isinstance(beside, Mapping) and isinstance(value, Mapping):
            yield from ((_join(name, part), _figure(one, beside.get(part))) for part, one in value.items())
        elif isinstance(beside, list) and _is_number(value):
            yield name, _figure(value, beside)
        else:
            yield from find_figures(value, name)


def _figure(value: object, bounds: object) -> Estimate | None:
    if not _is_number(value):
        return None
    low, high = bounds if isinstance(bounds, list) and all(map(_is_number, bounds)) else (None, None)
    return Estimate(float(value), low, high)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def pick_figure(found: Mapping[str, Estimate | None], name: str) -> Estimate | None:
    """Return a figure of a verb's results by its name.

    If the name has one figure for each engine, returns that of the simulator, or of the equations if none ran. Raises
    InputError for a name that the results do not have.
    """
    if name in found:
        return found[name]
    below = {key: one for key, one in found.items() if key.rpartition(".")[0] == name}
    engines = sorted(below, key=lambda key: key.endswith((f".{_SOFTWARE}", f".{BEHAVIORAL}")) and 1 + ("soft" in key))
    if not engines:
        near = get_close_matches(name, found, n=3)
        meant = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(list(found)[:20])}"
        raise InputError(f"--figure {name}: the results have no figure of this name; {meant}")
    return next((below[key] for key in engines if below[key] is not None), None)


def extremes(points: Sequence[SweptPoint], name: str) -> tuple[tuple[SweptPoint, float], ...]:
    """Return (point, value) where a figure is least and where it is largest; () where no point has the figure."""
    there = [(point, found.value) for point in points if (found := point.figures.get(name)) is not None]
    ranked = sorted(there, key=lambda pair: pair[1])
    return (ranked[0], ranked[-1]) if ranked else ()


def spaced(first: float, last: float, count: int, *, log: bool) -> tuple[float, ...]:
    """Return `count` numbers from first to last, by equal steps, or with `log` by equal factors.

    Those between the ends have six digits. Returns only the first where two numbers would be equal.
    """
    shares = [k / (count - 1) for k in range(1, count - 1)]
    inner = [first * (last / first) ** share if log else first + (last - first) * share for share in shares]
    found = (first, *(float(f"{value:.{_DIGITS}g}") for value in inner), last)
    return found if all(one != other for one, other in pairwise(found)) else (first,)


def name_axis(axis: SweepAxis) -> str:
    """Return the name of an axis in words: what its option sets."""
    return _AXES.get(axis.option, axis.option)


def unit_of(name: str) -> str:
    """Return a figure's unit, found from its name: % for a fraction, an SI unit, um2, or ''."""
    parts = name.split(".")
    while len(parts) > 1 and (parts[-1] in _INSIDE or parts[-1].isdigit()):
        parts.pop()
    if (metric := METRICS.get(parts[-1])) is not None:
        return metric.unit
    if parts[-1] in _FRACTIONS:
        return PERCENT
    return next((unit for end, unit in _UNITS.items() if parts[-1].endswith(end)), "")


def name_figure(name: str) -> str:
    """Return a figure's name in words, without the unit and without parts that are obvious."""
    parts = [part for part in name.split(".") if part not in _UNSAID]
    words = " ".join(part.removesuffix(next((end for end in _UNITS if part.endswith(end)), "")) for part in parts)
    return _WORDS.get(words, words.replace("_", " "))


def format_one(name: str, value: float) -> str:
    """Format a value of a figure with its unit; name: of the figure."""
    unit = unit_of(name)
    if unit == PERCENT:
        return percent(value, 2 if "state" in name else 1)
    if unit not in ("", AREA_UNIT):
        return format_quantity(value, unit)
    digits = f"{value:.0f}" if unit or value == round(value) else f"{value:.3g}"
    return f"{digits} {unit}".strip()


def format_figure_of(name: str, figure: Estimate | None) -> str:
    """Format a figure with its interval; "-" for None; name: of the figure."""
    if figure is None:
        return "-"
    text = format_one(name, figure.value)
    if figure.low is None or figure.high is None:
        return text
    return f"{text} [{format_one(name, figure.low)}, {format_one(name, figure.high)}]"


def scale_of(name: str, largest: float) -> tuple[float, str]:
    """Return (factor from a figure's values to an axis, unit of the axis); largest: the largest value on the axis."""
    unit = unit_of(name)
    if unit == PERCENT:
        return 100.0, PERCENT
    if unit in ("", AREA_UNIT) or largest == 0:
        return 1.0, unit
    prefixed = format_quantity(abs(largest), unit).rpartition(" ")[2]
    return 1 / parse_quantity(f"1{prefixed}", unit), prefixed


def labels(summary: SweepSummary, point: SweptPoint) -> list[str]:
    """Return the axis values of a point as text."""
    return [axis.label(point.values[axis.option]) for axis in summary.axes]


def remarks(summary: SweepSummary) -> list[str]:
    """Return sentences on what the intervals of a sweep mean, and what its points share."""
    figures = [found for point in summary.points for found in point.figures.values()]
    found = ["95 % intervals in brackets"] if any(one and one.low is not None for one in figures) else []
    return [*found, *([f"paired: {summary.paired}"] if summary.paired else []), *summary.notes]


def format_sweep_csv(summary: SweepSummary) -> bytes:
    """Return a sweep as CSV: axis values in SI, each figure with the ends of its interval, empty without one."""
    columns = [f"{name}{end}" for name in summary.figures for end in ("", "_low", "_high")]
    rows = list[list[object]]()
    for point in summary.points:
        figures = [point.figures.get(name) or None for name in summary.figures]
        ends = [end for one in figures for end in ((one.value, one.low, one.high) if one else (None, None, None))]
        rows.append([*point.values.values(), *ends, point.status, point.reason, point.folder])
    return format_csv([*map(_head, summary.axes), *columns, "status", "reason", "folder"], rows).encode()


def _head(axis: SweepAxis) -> str:
    return f"{axis.option}_{axis.unit}" if axis.unit else axis.option
