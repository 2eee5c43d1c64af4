"""One verb at many points: which figures its results hold, and what a sweep over one or two of its options found.

Fields of `SweepSummary` are the keys of sweep.json, see `json_object`; axis values are in SI, figures in the unit that
the verb's own results have them in.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Literal, TypeGuard

from cosim.base.errors import InputError
from cosim.base.quantities import format_quantity
from cosim.engines.table import BEHAVIORAL
from cosim.results.metrics import Estimate

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


@dataclass(frozen=True)
class SweepAxis:
    """An option of the verb by its long name, the unit of its values ('' without one), and those in order."""

    option: str
    unit: str
    values: tuple[Value, ...]

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The values as numbers; None where one is a word."""
        try:
            return tuple(float(value) for value in self.values)
        except ValueError:
            return None

    @property
    def geometric(self) -> bool:
        """Tell whether the values are positive numbers that span a decade or more."""
        numbers = self.numbers
        return numbers is not None and min(numbers) > 0 and max(numbers) >= _DECADE * min(numbers)

    def label(self, value: Value) -> str:
        """Return a value as people read it, with its unit."""
        if isinstance(value, str):
            return value
        return format_quantity(value, self.unit, _DIGITS) if self.unit else f"{value:.{_DIGITS}g}"


@dataclass(frozen=True)
class SweptPoint:
    """One run of the verb: its folder below the sweep's, its axis values, its figures (None for what it did not have).

    incomplete: the verb ended with its figures and a complaint, the reason; failed: without figures.
    """

    folder: str
    values: dict[str, Value]
    status: Literal["ok", "incomplete", "failed"]
    figures: dict[str, Estimate | None]
    reason: str | None = None


@dataclass(frozen=True)
class SweepSummary:
    """The content of sweep.json. options: those of the verb that are not defaults; paired: what the points share."""

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
    """Yield (name, figure) of all numbers in a JSON object; names are the keys on the way, joined by dots.

    A mean or value with its interval beside it is one figure under the name of both; a list of texts counts as how many
    they are, and the last of a list of objects is -1, too. A figure is None where the object has null.
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
    """Return the figure of a name; where it is by engine, that of the circuit: a simulator's where one ran.

    Raises InputError for a name that the results do not hold.
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
    """Return the points of the least and of the largest value of a figure, with these; none where no point has it."""
    there = [(point, found.value) for point in points if (found := point.figures.get(name)) is not None]
    ranked = sorted(there, key=lambda pair: pair[1])
    return (ranked[0], ranked[-1]) if ranked else ()


def spaced(first: float, last: float, count: int, *, log: bool) -> tuple[float, ...]:
    """Return the values of a range of --over: `count` numbers by equal steps, or with `log` by equal factors.

    Inner ones have six digits; only the first is returned where two would be equal.
    """
    shares = [k / (count - 1) for k in range(1, count - 1)]
    inner = [first * (last / first) ** share if log else first + (last - first) * share for share in shares]
    found = (first, *(float(f"{value:.{_DIGITS}g}") for value in inner), last)
    return found if all(one != other for one, other in pairwise(found)) else (first,)
