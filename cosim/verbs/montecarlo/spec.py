"""Specs of `cosim montecarlo`: limits that the figures of a chip must keep for the chip to count as working.

All cells of a working chip must reset as well. A TOML file gives specs for all conditions and for some of them:

[spec]
accuracy = ">= 80 %"
power = "<= 500 nW"

[[at]]            # in these conditions these limits replace the ones above
corner = "ff"
temp = 60
power = "<= 600 nW"
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.quantities import format_quantity, parse_quantity
from cosim.base.text import read_toml, shown, shown_path
from cosim.results.metrics import AREA_UNIT, METRICS, Estimate
from cosim.results.page import Table, format_columns
from cosim.technology.types import Technology
from cosim.verbs.montecarlo.chips import Figures, NominalFigures, SpecVerdict

TOLERATED = 0.05
_ALIASES = {"agreement": "task_agreement"}
_SPEC = re.compile(r"\s*(\w+)\s*(>=|<=)\s*(.+?)\s*")
_AREA = re.compile(r"(.+?)\s*(um2|mm2)?")
_REPAIR = 'write metric = ">= number", such as accuracy = ">= 0.8"'
_PLACES = ("corner", "temp", "supply")


@dataclass(frozen=True)
class Spec:
    """A limit on a figure: `metric` must be at least or at most `limit`, a fraction or in the unit of METRICS.

    text: the spec as typed, without spaces; at_least: True for `>=`. Metrics with a special meaning: energy of an
    inference; latency of the longest inference, its frames times their duration; area of the gates; margin of the least
    certain decision; rmse of real-valued answers; yield of all chips, not of one.
    """

    text: str
    metric: str
    at_least: bool
    limit: float

    def holds(self, figures: NominalFigures) -> bool:
        """Tell whether a chip's figures meet the spec. Raises InputError where the figures do not have its metric."""
        return self.met_by(figures[self.metric])

    def met_by(self, value: float) -> bool:
        """Tell whether a value of the spec's metric keeps its limit."""
        return value >= self.limit if self.at_least else value <= self.limit


def passes_specs(found: Figures | None, specs: Sequence[Spec]) -> bool:
    """Tell whether a chip works: it was simulated (`found` is not None), all its cells reset, every spec is met.

    A cell that the reset does not turn off keeps an old state, so the figures of its chip depend on the chip's past.
    """
    return found is not None and not found.unreset and meets_specs(found, specs)


def meets_specs(found: Figures, specs: Sequence[Spec]) -> bool:
    """Tell whether the figures of a simulated chip meet every spec, no matter whether its cells reset."""
    return all(spec.holds(found) for spec in specs)


def parse_spec(text: str, where: str = "--spec") -> Spec:
    """Parse a spec such as `accuracy>=0.9`, `state_agreement>=99%`, `power<=400nW` or `area<=0.05 mm2`.

    Raises InputError that says what the text must be. where: source of the text, at the beginning of the message.
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
    """Return the spec that the accuracy is at most TOLERATED (5 points) below `right`, the accuracy of `what`.

    Raises InputError where `right` is so low that every chip would meet the spec.
    """
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


Place = Mapping[str, str | float]  # those of corner, temp and supply under which some specs hold


@dataclass(frozen=True)
class Specs:
    """Specs that hold in all conditions (`common`), and specs that replace them in some conditions (`places`).

    places: pairs (corner, temp and supply where the specs hold, specs); later pairs have priority.
    """

    common: tuple[Spec, ...] = ()
    places: tuple[tuple[Place, tuple[Spec, ...]], ...] = ()

    def at(self, there: Technology) -> tuple[Spec, ...]:
        """Return the specs that hold in one condition: corner, temperature and supply of the technology `there`."""
        found = {(spec.metric, spec.at_least): spec for spec in self.common}
        condition = {"corner": there.corner, "temp": there.celsius, "supply": there.supply}
        for place, specs in self.places:
            if place.items() <= condition.items():
                found |= {(spec.metric, spec.at_least): spec for spec in specs}
        return tuple(found.values())

    @property
    def all(self) -> tuple[Spec, ...]:
        """Return the specs of all conditions together."""
        return (*self.common, *(spec for _, specs in self.places for spec in specs))


def read_specs(texts: Sequence[str]) -> Specs:
    """Read the specs of a command line: texts such as `accuracy>=0.9`, and names of .toml files.

    Of two specs on one metric the tighter holds. Raises InputError that names file, field, value and repair.
    """
    own = [parse_spec(text) for text in texts if not text.endswith(".toml")]
    files = [_read(Path(text)) for text in texts if text.endswith(".toml")]
    common = _tightest([spec for file in files for spec in file.common] + own)
    return Specs(common, tuple(place for file in files for place in file.places))


def _tightest(specs: Sequence[Spec]) -> tuple[Spec, ...]:
    found: dict[tuple[str, bool], Spec] = {}
    for spec in specs:
        key = spec.metric, spec.at_least
        if key not in found or not spec.met_by(found[key].limit) or spec.limit == found[key].limit:
            found[key] = spec
    return tuple(found.values())


def _read(path: Path) -> Specs:
    where = shown_path(path)
    content = read_toml(path, "write [spec] with a line for each metric")
    if strange := [name for name in content if name not in ("spec", "at")]:
        raise InputError(f"{where}: {shown(strange[0])} must be [spec] or [[at]]; {_REPAIR} below one of them")
    common, places = content.get("spec", {}), content.get("at", [])
    if not isinstance(common, dict) or not isinstance(places, list) or not all(isinstance(one, dict) for one in places):
        raise InputError(f"{where}: spec must be a table [spec], at a list of tables [[at]]; {_REPAIR}")
    found = Specs(
        _specs(common, f"{where}: spec"), tuple(_place(one, f"{where}: at[{k}]") for k, one in enumerate(places))
    )
    if not found.all:
        raise InputError(f"{where}: must hold at least one spec; {_REPAIR}")
    return found


def _place(table: Mapping[str, object], where: str) -> tuple[Place, tuple[Spec, ...]]:
    place = dict[str, str | float]()
    for name in _PLACES:
        value = table.get(name)
        if name == "corner" and isinstance(value, str):
            place[name] = value
        elif name == "corner" and value is not None:
            raise InputError(f'{where}.corner must be the name of a corner, such as "ff", not {shown(value)}')
        elif isinstance(value, int | float) and not isinstance(value, bool):
            place[name] = float(value)
        elif value is not None:
            raise InputError(f"{where}.{name} must be a number, not {shown(value)}; write {name} = 60 or 1.71")
    if not place:
        raise InputError(f"{where} must say where it holds, by corner, temp or supply; for all conditions use [spec]")
    others = {name: value for name, value in table.items() if name not in _PLACES}
    return place, _specs(others, where)


def _specs(table: Mapping[str, object], where: str) -> tuple[Spec, ...]:
    found: list[Spec] = []
    for name, value in table.items():
        if not isinstance(value, str) or not value.strip().startswith((">=", "<=")):
            raise InputError(f"{where}.{name} must be a text that begins with >= or <=, not {shown(value)}; {_REPAIR}")
        found.append(parse_spec(f"{name} {value}", f"{where}.{name}:"))
    return tuple(found)


def format_spec(texts: Sequence[str]) -> str:
    """Format specs for people: shares in per cent, and `>=` and `<=` as one sign each."""
    return " and ".join(map(_format_limit, texts))


def _format_limit(text: str) -> str:
    metric, sign, limit = text.partition(">=") if ">=" in text else text.partition("<=")
    try:
        value = format_quantity(parse_quantity(limit, "W"), "W", 4) if metric == "power" else _share(limit)
    except (InputError, ValueError):
        value = limit
    mark = {">=": "\N{GREATER-THAN OR EQUAL TO}", "<=": "\N{LESS-THAN OR EQUAL TO}"}.get(sign, "")
    return f"{metric.replace('_', ' ')} {mark} {value}".strip()


def _share(limit: str) -> str:
    return f"{float(limit[:-1]):g} %" if limit.endswith("%") else f"{100 * float(limit):g} %"


def judge(specs: Sequence[Spec], measured: Mapping[str, Estimate]) -> tuple[SpecVerdict, ...]:
    """Judge every spec of chips by the measured value of its metric. Raises InputError for a metric without one."""
    verdicts: list[SpecVerdict] = []
    for spec in specs:
        found = measured.get(spec.metric)
        if found is None:
            there = ", ".join(metric for metric in METRICS if metric in measured)
            raise InputError(f"--spec {spec.metric}: not a figure of this run; take one of {there}")
        ends = () if found.low is None or found.high is None else (found.low, found.high)
        met = spec.met_by(found.value)
        sure = all(spec.met_by(end) == met for end in ends)
        verdicts.append(SpecVerdict(spec.text, spec.metric, found.value, found.low, found.high, met, sure))
    return tuple(verdicts)


def verdict_table(verdicts: Sequence[SpecVerdict]) -> Table:
    """Return a table with one row for each spec: measured value, interval, and whether the spec is met."""
    return Table(("spec", "measured", "95 % interval", "verdict"), tuple(map(_verdict_row, verdicts)), (1, 2))


def _verdict_row(one: SpecVerdict) -> tuple[str, ...]:
    known, ends = METRICS[one.metric], "-"
    if one.low is not None and one.high is not None:
        ends = f"[{known.format(one.low)}, {known.format(one.high)}]"
    said = ("met" if one.met else "missed") + ("" if one.sure else ", unsure")
    return one.spec, known.format(one.value), ends, said


def format_verdicts(verdicts: Sequence[SpecVerdict]) -> list[str]:
    """Format the verdicts on specs as lines of a table for the terminal; no lines without verdicts."""
    table = verdict_table(verdicts)
    return ["", *format_columns(table.head, table.rows, table.numbers)] if verdicts else []


def without_yield(specs: Specs) -> tuple[Specs, tuple[Spec, ...]]:
    """Split the specs of `cosim montecarlo` into those on one chip and those on the yield of all chips."""
    own = replace(
        specs,
        common=tuple(spec for spec in specs.common if spec.metric != "yield"),
        places=tuple((place, tuple(s for s in found if s.metric != "yield")) for place, found in specs.places),
    )
    return own, tuple(spec for spec in specs.all if spec.metric == "yield")
