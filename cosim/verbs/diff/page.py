"""The page of the difference between two runs: sentences, tables, and a picture of paired figures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cosim.base.quantities import format_quantity, parse_quantity
from cosim.base.version import __version__
from cosim.results.figures import BLUE, GREY, Figure, picture_of, plain
from cosim.results.html import Picture
from cosim.results.intervals import IntervalEnds
from cosim.results.metrics import percent
from cosim.results.page import Block, Page, PageSubject, Section, Table
from cosim.results.paired import METHODS, Method
from cosim.verbs.diff.difference import Cause, Change, ChangedUnit, Difference, Pairing, Scatter
from cosim.verbs.montecarlo.page import watts_of
from cosim.verbs.simulate.samples import UNDECIDED

VERB = "diff"
_MANY = 20  # figures
_HEAD = ("figure", "A", "B", "B - A", "95 % interval", "p", "pairs that moved")
NOTHING = "nothing differs"
_LEAST_P = 1e-4


def difference_page(difference: Difference, *, picture: bool = True) -> Page:
    """Return the page of a difference between two runs; picture: draw it, which takes half a second."""
    verdict = say_verdict(difference)
    return Page(
        verb=VERB,
        subject=PageSubject(difference.verb),
        title=f"Two runs of cosim {difference.verb}: {verdict}",
        lead=f"A is {difference.a}, B is {difference.b}. Differences are B - A.",
        cards=tuple(_cards(difference.changes)),
        sections=tuple(_sections(difference, picture=picture)),
        provenance={"cosim": __version__},
        notes=(*map(say_pairing, difference.pairings), *difference.notes),
    )


def _cards(changes: Iterable[Change]) -> Iterator[tuple[str, str]]:
    """Yield up to four figures that changed, as (value, words); of many conditions, the most certain changes."""
    moved = [change for change in changes if not change.contrast.same]
    if any(change.where for change in moved):
        moved.sort(key=lambda change: 1.0 if change.contrast.p is None else change.contrast.p)
    for change in moved[:4]:
        _, _, difference, interval, _, _ = cells_of(change)
        number, unit = difference.split(" ")
        value, unit = (number, "points of ") if unit == "points" else (difference, "")
        yield value, f"{unit}{title_of(change)} {interval}"


def _sections(difference: Difference, *, picture: bool) -> Iterator[Section]:
    yield Section("What was set", tuple(_settings(difference)))
    if difference.changes:
        yield Section("By how much", tuple(_figures(difference, picture=picture)))
    chips = [
        (str(one.chip), one.a, one.b, one.why, say_cause(one.cause) if one.cause else "") for one in difference.chips
    ]
    yield _list("Chips that turned", ("chip", "A", "B", "why it fails", "unit"), chips)
    flips = [(one.where, str(one.sample), str(one.y), _class(one.a), _class(one.b)) for one in difference.flips]
    head = ("condition", "sample", "class", "A", "B")
    if not any(row[0] for row in flips):
        head, flips = head[1:], [row[1:] for row in flips]
    yield _list("Decisions that differ", head, flips)
    if difference.chip_flips:
        found = difference.chip_flips
        head = ("sample", "class", f"chips of {found[0].of}", "right in A", "right in B")
        rows = [tuple(map(str, (one.sample, one.y, one.chips, one.right_a, one.right_b))) for one in found]
        yield _list("Samples that chips decide otherwise", head, rows, (2, 3, 4))
    name = name_units(difference.units)
    of = "chips that turned" if "chips" in name else "frames"
    units = [(one.unit, str(one.count), str(one.of)) for one in difference.units]
    yield _list(f"{name[0].upper()}{name[1:]}", ("unit", of, "of"), units, (1, 2))
    for name, point in difference.points.items():
        yield Section(name, (f"{say_verdict(point)}.", *_settings(point), *_figures(point, picture=picture)))


def _class(decision: int) -> str:
    return "none" if decision == UNDECIDED else str(decision)


def _list(name: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]], numbers: tuple[int, ...] = ()) -> Section:
    """Return a section with a table and its number of rows in the heading; empty if there are no rows."""
    table = Table(head, tuple(rows), numbers, tall=len(rows) > 12)
    return Section(f"{name}: {len(rows)}", (table,) if rows else ())


def _settings(difference: Difference) -> Iterator[Block]:
    if difference.settings:
        yield Table(("setting", "A", "B"), tuple((one.name, one.a, one.b) for one in difference.settings))


def _figures(difference: Difference, *, picture: bool) -> Iterator[Block]:
    """Yield the table of both runs' figures, changed ones first if many, the methods behind it, and a picture."""
    changes = difference.changes
    if len(changes) > _MANY:
        changes = sorted(changes, key=lambda change: change.contrast.same)
    rows = tuple((title_of(change), *cells_of(change)) for change in changes)
    yield Table(_HEAD, rows, (1, 2, 3, 4, 5), tall=len(rows) > _MANY)
    yield from (f"{text[0].upper()}{text[1:]}." for text in say_methods(difference.changes))
    if picture and difference.scatter is not None:
        yield _picture(difference.scatter)


def _picture(scatter: Scatter) -> Picture:
    a, b = np.array(scatter.a), np.array(scatter.b)
    figure = draw_runs(scatter)
    above = int((b > a).sum())
    text = (
        f"{scatter.name[0].upper()}{scatter.name[1:]}, B against A: {above} of {len(a)} {scatter.things} above the line"
    )
    return picture_of(figure, f"{text}.", f"{text} of equal ones. The larger, the more.")


def draw_runs(scatter: Scatter) -> Figure:
    """Draw run B over run A: points above the diagonal are larger in B; a point's area is its number of pairs."""
    factor, unit = (100.0, "%") if scatter.unit == "%" else watts_of(float(np.mean([scatter.a, scatter.b])))
    points, counts = np.unique(factor * np.array([scatter.a, scatter.b]).T, axis=0, return_counts=True)
    low, high = float(points.min()), float(points.max())
    margin = 0.06 * (high - low) or 0.02 * abs(high) or 1.0
    ends = low - margin, high + margin
    figure = Figure(figsize=(4.2, 3.9), layout="constrained")
    axis = figure.subplots()
    plain(axis)
    axis.plot(ends, ends, color=GREY, lw=1, ls="--", label="equal")
    axis.scatter(*points.T, s=24 * counts, color=BLUE, alpha=0.7, lw=0, label=scatter.things)
    axis.set_title(scatter.name, fontsize=9, loc="left")
    axis.set_xlabel(f"A ({unit})")
    axis.set_ylabel(f"B ({unit})")
    axis.set_xlim(*ends)
    axis.set_ylim(*ends)
    axis.set_aspect("equal")
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def say_verdict(difference: Difference) -> str:
    """Return one line that says whether settings, results or both differ."""
    if difference.nothing:
        return NOTHING
    if difference.unchanged:
        return "the settings differ, the results are the same"
    return "the results differ" + ("" if difference.settings or difference.points else ", the settings do not")


def say_pairing(pairing: Pairing) -> str:
    """Return a sentence on how many samples, chips or points are paired, and why others are not."""
    if not pairing.paired:
        return f"no {pairing.things} are paired, intervals are those of runs apart: {pairing.apart}"
    text = f"{pairing.paired} {pairing.things} paired"
    if pairing.only_a or pairing.only_b:
        text += f"; {pairing.only_a} only in A, {pairing.only_b} only in B: {pairing.apart}"
    return text


def title_of(change: Change) -> str:
    """Return the name of a compared figure, with its condition if it has one."""
    return f"{change.where}: {change.name}" if change.where else change.name


def say_methods(changes: Sequence[Change]) -> list[str]:
    """Return the statistical methods behind the intervals and tests of changed figures, a sentence for each."""
    names: dict[Method, str] = {}
    for change in changes:
        method = change.contrast.method
        if not change.contrast.same and method not in names:
            same = dict.fromkeys(other.name for other in changes if other.contrast.method == method)
            names[method] = ", ".join(same)
    used = tuple(names)
    return [f"{names[method] if len(used) > 1 else 'intervals'}: {METHODS[method]}" for method in used]


def cells_of(change: Change) -> tuple[str, str, str, str, str, str]:
    """Return a figure's table cells: A, B, B - A, interval, p, and how many pairs moved up and down."""
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
    """Return a difference and its interval as text, both in the same unit."""
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
    """Return a sentence on the unit that turns a chip's verdict, with its transistor that differs most."""
    draw = f"{cause.device} {1e3 * cause.shift_v:+.2f} mV"
    if cause.alone:
        return f"{cause.unit} turns it alone ({draw})"
    left = f", {', '.join(cause.unreset)} still not reset" if cause.unreset else ""
    return f"{cause.unit} comes nearest, accuracy {percent(cause.accuracy)} with it{left} ({draw})"


def name_units(units: Sequence[ChangedUnit]) -> str:
    """Return the title of a list of units that moved, which says what moved."""
    kinds = Counter(one.what for one in units)
    if "cause" in kinds:
        return "units that turned chips"
    return "units whose states moved" if "states" in kinds else "units whose wrong states changed"
