"""Differences in what two runs were asked for and made from."""

import json
from collections.abc import Iterator, Mapping

from cosim.base.quantities import format_quantity
from cosim.base.settings import RunSettings
from cosim.verbs.diff.difference import Setting
from cosim.verbs.diff.runs import RunFacts

ABSENT = "-"
_WIDEST, _DIGITS = 60, 6
_UNITS = {"i-unit": "A", "supply": "V", "t-step": "s", "tau": "s", "temp": "C"}  # of options, which are in SI


def diff_settings(a: RunFacts, b: RunFacts) -> tuple[tuple[Setting, ...], tuple[str, ...]]:
    """Return (settings that differ, notes): first options and inputs, then what the results say that no option has
    said."""
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
