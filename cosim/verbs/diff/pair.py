"""Comparison of two folders: read both runs, compare settings and results; two sweeps are compared point by point."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cosim.base.claim import owner_of
from cosim.base.errors import InputError
from cosim.base.quantities import format_quantity
from cosim.base.settings import RunSettings
from cosim.base.text import shown_path
from cosim.engines.engine import Progress
from cosim.verbs.diff.chips import diff_drawn
from cosim.verbs.diff.difference import Difference, Setting, diff_metered, diff_sampled, pair_things
from cosim.verbs.diff.runs import VERBS, ChipRun, DecisionRun, PowerRun, Run, RunFacts, read_run
from cosim.verbs.montecarlo.keep import Places

SWEEP = "sweep"


def diff_folders(
    a: Path,
    b: Path,
    specs: Sequence[str] = (),
    places: Places = Places(),
    progress: Progress = lambda done, total: None,
) -> Difference:
    """Compare the runs in two folders.

    specs: for chips, in place of each run's own; places: where the technology is now. Raises InputError for a folder
    without a finished run, for a damaged one, and for runs of two verbs.
    """
    if SWEEP in (owner_of(a), owner_of(b)):
        return _diff_sweeps(a, b, specs, places, progress)
    return diff_runs(read_run(a), read_run(b), specs, places, progress)


def diff_runs(a: Run, b: Run, specs: Sequence[str], places: Places, progress: Progress) -> Difference:
    """Compare two runs that were read. Raises InputError where they have nothing in common."""
    match a, b:
        case DecisionRun(), DecisionRun() if a.tables.keys() & b.tables.keys():
            found = diff_sampled(a, b)
        case PowerRun(), PowerRun():
            found = diff_metered(a, b)
        case ChipRun(), ChipRun():
            found = diff_drawn(a, b, specs, places, progress)
        case _:
            why = f"one is of cosim {a.facts.verb}, the other of cosim {b.facts.verb}"
            if isinstance(a, DecisionRun) and isinstance(b, DecisionRun):
                why = "one is of all conditions (--pvt), the other of one; or they have no condition in common"
            raise InputError(f"{a.facts.name} and {b.facts.name}: {why}; give two runs of the same kind")
    settings, notes = diff_settings(a.facts, b.facts)
    return replace(found, settings=settings, notes=(*notes, *found.notes))


def _diff_sweeps(a: Path, b: Path, specs: Sequence[str], places: Places, progress: Progress) -> Difference:
    """Compare two sweeps at every point that both have; points are matched by their folder's name."""
    names = shown_path(a), shown_path(b)
    if owner_of(a) != owner_of(b):
        verbs = [owner_of(folder) or "nobody" for folder in (a, b)]
        raise InputError(f"{' and '.join(names)}: one is of cosim {verbs[0]}, the other of {verbs[1]}; give two sweeps")
    first, second = _points(a), _points(b)
    common = [name for name in first if name in second]
    if not common:
        raise InputError(f"{' and '.join(names)}: no point of one has a name of the other's; give two of one option")
    points = {name: diff_folders(a / name, b / name, specs, places, progress) for name in common}
    pairing = pair_things("points", first, second, "the sweeps have other values")
    return Difference(SWEEP, *names, settings=(), pairings=(pairing,), changes=(), points=points)


def _points(folder: Path) -> Sequence[str]:
    """Return the names of the points of a sweep that were run."""
    return [one.name for one in sorted(folder.iterdir()) if one.is_dir() and owner_of(one) in VERBS]


ABSENT = "-"
_WIDEST, _DIGITS = 60, 6
_UNITS = {"i-unit": "A", "supply": "V", "t-step": "s", "tau": "s", "temp": "C"}  # of options, which are in SI


def diff_settings(a: RunFacts, b: RunFacts) -> tuple[tuple[Setting, ...], tuple[str, ...]]:
    """Return (settings that differ between two runs, notes); first options and inputs, then facts in the results."""
    without = dict.fromkeys(one.name for one in (a, b) if one.settings is None)
    notes = [f"no run.toml in {' and '.join(without)}: settings are those that the results hold"] if without else []
    first, second = a.settings, b.settings
    asked = _differences(_options(first), _options(second)) if first and second else ()
    known = {(setting.name.rpartition(".")[2], setting.a, setting.b) for setting in asked}
    made = [
        setting
        for setting in _differences(dict(_flat(a.made)), dict(_flat(b.made)))
        if (setting.name.rpartition(".")[2], setting.a, setting.b) not in known
    ]
    return (*asked, *made), tuple(notes)


def _options(settings: RunSettings) -> dict[str, object]:
    verb = {"verb": settings.verb, "cosim": settings.version}
    return {**verb, **settings.arguments, **settings.options, **settings.inputs}


def _differences(a: Mapping[str, object], b: Mapping[str, object]) -> tuple[Setting, ...]:
    names = [*a, *(name for name in b if name not in a)]
    return tuple(Setting(name, _text(a, name), _text(b, name)) for name in names if a.get(name) != b.get(name))


def _text(values: Mapping[str, object], name: str) -> str:
    if name not in values:
        return ABSENT
    value = values[name]
    if name in _UNITS and isinstance(value, int | float):
        return format_quantity(value, _UNITS[name], _DIGITS)
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _flat(values: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
