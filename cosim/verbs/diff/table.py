"""A difference of two runs as text: what fits a terminal."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import TypeVar

from cosim.base.quantities import format_quantity, parse_quantity
from cosim.results.intervals import IntervalEnds
from cosim.results.paired import METHODS, Method
from cosim.verbs.diff.difference import Cause, Change, ChipFlip, ChipTurn, Difference, Flip, Moved, Pairing
from cosim.verbs.tables import percent

NOTHING = "nothing differs"
FEW = 8  # of samples on chips, most of which some chip decides otherwise
SHOWN = 20  # rows of a list, where there are more; --json and the page have all
_WIDTH = 79
_LEAST_P = 1e-4
T = TypeVar("T")


def format_difference(difference: Difference) -> list[str]:
    """Return the tables of a difference, under 100 columns."""
    lines = [f"A  {difference.a}", f"B  {difference.b}", "", say_verdict(difference)]
    lines += [line for pairing in difference.pairings for line in _wrapped(say_pairing(pairing))]
    lines += [line for note in difference.notes for line in _wrapped(note)]
    lines += _settings(difference)
    if difference.unchanged and not difference.points:
        lines.append(f"{len(difference.changes)} figures are the same")
    elif difference.changes:
        lines += ["", *_changes(difference.changes)]
    lines += _listed("chips that turned", difference.chips, say_turn)
    lines += _listed("decisions that differ", difference.flips, say_flip)
    lines += _listed("samples that chips decide otherwise", difference.chip_flips, say_chip_flip, FEW)
    lines += _listed(name_units(difference.units), difference.units, say_moved)
    for name, point in difference.points.items():
        lines += ["", f"{name}: {say_verdict(point)}", *_point(point)]
    return lines


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


def _wrapped(text: str) -> list[str]:
    return wrap(text, _WIDTH, subsequent_indent="  ")


def _settings(difference: Difference) -> list[str]:
    if not difference.settings:
        return []
    rows = [("", "A", "B"), *((one.name, one.a, one.b) for one in difference.settings)]
    name, first = (min(max(len(row[k]) for row in rows), limit) for k, limit in ((0, 34), (1, 26)))
    return ["", *(f"{row[0]:{name}}  {row[1]:{first}}  {row[2]}".rstrip() for row in rows)]


def _changes(changes: Sequence[Change]) -> list[str]:
    """Return one table, of figures that moved where there are many of them, and below it the methods of comparison."""
    shown = changes if len(changes) <= SHOWN else [change for change in changes if not change.contrast.same]
    width = max([len(title_of(change)) for change in shown], default=0)
    paired = any(change.contrast.pairs for change in shown)
    head = f"{'':{width}}  {'A':>9}  {'B':>9}  {'B - A':>12}  {'95 % interval':>19}  {'p':>7}"
    lines = [head + ("  pairs that moved" if paired else "")]
    for change in shown[:SHOWN]:
        a, b, moved, interval, p, pairs = cells_of(change)
        lines.append(
            f"{title_of(change):{width}}  {a:>9}  {b:>9}  {moved:>12}  {interval:>19}  {p:>7}  {pairs}".rstrip()
        )
    if len(shown) > SHOWN:
        lines.append(f"and {len(shown) - SHOWN} more; --json and the page of -o have all")
    if len(shown) < len(changes):
        lines.append(f"{len(changes) - len(shown)} other figures are the same")
    return lines + [line for text in say_methods(changes) for line in _wrapped(text)]


def title_of(change: Change) -> str:
    """Return a figure's name, with the condition."""
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
    """Return A, B, B - A with its interval and p, and how many pairs moved which way, as text."""
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


def _listed(title: str, rows: Sequence[T], say: Callable[[T], Iterator[str]], shown: int = SHOWN) -> list[str]:
    """Return a title with the number of rows, and the first of them; nothing without rows."""
    if not rows:
        return []
    lines = ["", f"{title}: {len(rows)}"]
    for row in rows[:shown]:
        lines += [f"  {line}" for line in say(row)]
    more = len(rows) - shown
    return lines + ([f"  and {more} more; --json and the page of -o have all"] if more > 0 else [])


def say_turn(turn: ChipTurn) -> Iterator[str]:
    """Yield a line on a chip that counts in one run and fails in the other, and one on the unit that turns it."""
    yield f"chip {turn.chip:<4} A {turn.a}, B {turn.b}: {turn.why}"
    if turn.cause is not None:
        yield f"{'':9} {say_cause(turn.cause)}"


def say_cause(cause: Cause) -> str:
    """Return the unit that turns a chip, and its transistor of the largest draw, as text."""
    draw = f"{cause.device} {1e3 * cause.shift_v:+.2f} mV"
    if cause.alone:
        return f"{cause.unit} turns it alone ({draw})"
    left = f", {', '.join(cause.unreset)} still not reset" if cause.unreset else ""
    return f"{cause.unit} comes nearest, accuracy {percent(cause.accuracy)} with it{left} ({draw})"


def say_flip(flip: Flip) -> Iterator[str]:
    """Yield a line on a sample that is decided otherwise."""
    where = f"{flip.where}: " if flip.where else ""
    yield f"{where}sample {flip.sample:<5} class {flip.y}  A {flip.a}, B {flip.b}"


def say_chip_flip(flip: ChipFlip) -> Iterator[str]:
    """Yield a line on a sample that chips decide otherwise."""
    right = f"right on {flip.right_a} in A, {flip.right_b} in B"
    yield f"sample {flip.sample:<5} class {flip.y}  otherwise on {flip.chips} of {flip.of} chips, {right}"


def name_units(units: Sequence[Moved]) -> str:
    """Return the title of a list of moved units, which says what moved in them."""
    kinds = Counter(one.what for one in units)
    if "cause" in kinds:
        return "units that turned chips"
    return "units whose states moved" if "states" in kinds else "units whose wrong states changed"


def say_moved(one: Moved) -> Iterator[str]:
    """Yield a line on a unit, and in how many frames, or on how many chips."""
    yield f"{one.unit:12} {one.count} of {one.of} {'chips that turned' if one.what == 'cause' else 'frames'}"


def _point(point: Difference) -> list[str]:
    """Return the lines on a point of a sweep, in short: settings that differ and figures that moved."""
    lines = [f"{one.name}: {one.a} -> {one.b}" for one in point.settings]
    moved = [change for change in point.changes if not change.contrast.same]
    lines += _changes(moved) if moved else []
    if point.chips:
        lines.append(f"chips that turned: {len(point.chips)}")
    if point.flips:
        lines.append(f"decisions that differ: {len(point.flips)}")
    if point.units:
        named = [text for one in point.units[:3] for text in say_moved(one)]
        lines += [f"{name_units(point.units)}: {'; '.join(' '.join(text.split()) for text in named)}"]
    return [f"  {line}" for line in lines]
