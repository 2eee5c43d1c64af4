"""A difference of two runs in words and cells of a table."""

from collections import Counter
from collections.abc import Sequence

from cosim.base.quantities import format_quantity, parse_quantity
from cosim.results.intervals import IntervalEnds
from cosim.results.metrics import percent
from cosim.results.paired import METHODS, Method
from cosim.verbs.diff.difference import Cause, Change, Difference, Moved, Pairing

NOTHING = "nothing differs"
_LEAST_P = 1e-4


def say_verdict(difference: Difference) -> str:
    """Say in one line whether anything differs: set, found, or both."""
    if difference.nothing:
        return NOTHING
    if difference.unchanged:
        return "the settings differ, the results are the same"
    return "the results differ" + ("" if difference.settings or difference.points else ", the settings do not")


def say_pairing(pairing: Pairing) -> str:
    """Return how many samples, chips or points are paired, and why others are not."""
    if not pairing.paired:
        return f"no {pairing.things} are paired, intervals are those of runs apart: {pairing.apart}"
    text = f"{pairing.paired} {pairing.things} paired"
    if pairing.only_a or pairing.only_b:
        text += f"; {pairing.only_a} only in A, {pairing.only_b} only in B: {pairing.apart}"
    return text


def title_of(change: Change) -> str:
    """Return the name of a figure that `cosim diff` compares, with the condition."""
    return f"{change.where}: {change.name}" if change.where else change.name


def say_methods(changes: Sequence[Change]) -> list[str]:
    """Return the methods behind intervals and tests of the figures that moved, a line each."""
    names: dict[Method, str] = {}
    for change in changes:
        method = change.contrast.method
        if not change.contrast.same and method not in names:
            same = dict.fromkeys(other.name for other in changes if other.contrast.method == method)
            names[method] = ", ".join(same)
    used = tuple(names)
    return [f"{names[method] if len(used) > 1 else 'intervals'}: {METHODS[method]}" for method in used]


def cells_of(change: Change) -> tuple[str, str, str, str, str, str]:
    """Return a row of `cosim diff`: A, B, B - A with interval and p, and how many pairs moved which way, as text."""
    found, unit = change.contrast, change.unit
    ends = _value(found.a, unit), _value(found.b, unit)
    if found.same:
        return *ends, "equal", "", "", ""
    moved, interval = _moved(found.difference, found.interval, unit)
    p = "" if found.p is None else "<0.0001" if found.p < _LEAST_P else f"{found.p:.4f}"
    pairs = f"{found.up} up, {found.down} down of {found.pairs}" if found.pairs else ""
    return *ends, moved, interval, p, pairs


def _value(value: float, unit: str) -> str:
    return format_quantity(value, "W") if unit == "W" else percent(value, 1 if value < 0.995 else 2)


def _moved(difference: float, interval: IntervalEnds | None, unit: str) -> tuple[str, str]:
    """Return the difference and its interval in one unit, as text."""
    if unit == "%":
        scale, name = 0.01, "points"
    else:
        largest = max(map(abs, (difference, *(interval or ()))))
        name = format_quantity(largest, "W").split(" ")[1]
        scale = parse_quantity(f"1 {name}", "W")
    bounds = "" if interval is None else f"[{_signed(interval.low / scale)}, {_signed(interval.high / scale)}]"
    return f"{_signed(difference / scale)} {name}", bounds


def _signed(value: float) -> str:
    digits = 1 if abs(value) >= 10 else 2
    text = f"{value:+.{digits}f}"
    return text if float(text) else text.replace("-", "+")


def say_cause(cause: Cause) -> str:
    """Return the unit that turns a chip, and its transistor of the largest draw, as text."""
    draw = f"{cause.device} {1e3 * cause.shift_v:+.2f} mV"
    if cause.alone:
        return f"{cause.unit} turns it alone ({draw})"
    left = f", {', '.join(cause.unreset)} still not reset" if cause.unreset else ""
    return f"{cause.unit} comes nearest, accuracy {percent(cause.accuracy)} with it{left} ({draw})"


def name_units(units: Sequence[Moved]) -> str:
    """Return the title of a list of moved units, which says what moved in them."""
    kinds = Counter(one.what for one in units)
    if "cause" in kinds:
        return "units that turned chips"
    return "units whose states moved" if "states" in kinds else "units whose wrong states changed"
