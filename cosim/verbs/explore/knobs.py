"""The knobs of a search: options that shape the circuit, and sizes that are drawn, each with a range or some values."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

import click

from cosim.base.bounds import AREA, Bounds
from cosim.base.errors import InputError
from cosim.cli.config import setting_name
from cosim.cli.types import Integer, Number, Quantity
from cosim.technology.types import HOLD_CAPACITANCE
from cosim.verbs.explore.study import BITS, DRAWN, HOLD, Knob
from cosim.verbs.sweep.study import Value

MAX_BITS = 12
OPTIONS = ("technology", "supply", "i-unit", "units", "t-step", "cell", "headroom", "tau", "saturate")
_OWN = {
    **{name: click.Option([f"--{name}"], type=Number(AREA), default=1.0) for name in DRAWN},
    HOLD: click.Option([f"--{HOLD}"], type=Quantity(Bounds(1e-18, 1e-6, "F")), default=HOLD_CAPACITANCE),
    BITS: click.Option([f"--{BITS}"], type=Integer(Bounds(0, MAX_BITS)), default=0),
}
NAMES = (*OPTIONS, *_OWN)
_LISTED = (*DRAWN, HOLD)
_FORM = "NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,C, such as i-unit=0.2n:2n:log or cell-area=0.5,1,2"
_RANGE = re.compile(r"([^:]+):([^:]+)(?::([^:]+))?")


def read_knobs(texts: Sequence[str], verb: click.Command) -> tuple[Knob, ...]:
    """Read the knobs behind the values of --vary; `verb` has the options. Raises InputError that says what they must
    be."""
    if not texts:
        raise InputError(f"--vary must be given at least once, {_FORM}; there are {', '.join(NAMES)}")
    knobs = tuple(_read_knob(text, verb) for text in texts)
    twice = next((knob.option for k, knob in enumerate(knobs) if knob.option in [one.option for one in knobs[:k]]), "")
    if twice:
        raise InputError(f"--vary {twice} is given twice; put its values into one --vary")
    return knobs


def _read_knob(text: str, verb: click.Command) -> Knob:
    name, equals, values = (part.strip() for part in text.partition("="))
    name = name.removeprefix("--")
    if not equals or not name:
        raise InputError(f"--vary must be {_FORM}, not {text!r}")
    if name == "area":
        raise InputError(f"--vary area: --area is for mismatch alone; vary what is drawn: {', '.join(DRAWN)}")
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
        raise InputError(f"--vary {name}: nothing of this name shapes the circuit; {meant}")
    param = _OWN.get(name) or next(
        one for one in verb.params if isinstance(one, click.Option) and setting_name(one) == name
    )
    match = _RANGE.fullmatch(values)
    return _listed(name, param, values.split(",")) if match is None else _ranged(name, param, match)


def _listed(name: str, param: click.Option, words: list[str]) -> Knob:
    """Return a knob of some values, numbers in rising order, so that neighbours are alike."""
    found = [_value(word.strip(), param, name) for word in words]
    if len(set(found)) < len(found):
        raise InputError(f"--vary {name} has a value twice; give each value once")
    numbers = [one for one in found if not isinstance(one, str)]
    values = tuple(sorted(numbers)) if len(numbers) == len(found) else tuple(found)
    usual = _usual(param)
    start = usual if usual is not None and usual in values else values[len(values) // 2]
    return Knob(name, _unit(param), start, values=values)


def _ranged(name: str, param: click.Option, match: re.Match[str]) -> Knob:
    """Read a range, LOW:HIGH or LOW:HIGH:log, as a knob; one of whole numbers has all between."""
    low, high = (_value(word.strip(), param, name) for word in match.group(1, 2))
    if isinstance(low, str) or isinstance(high, str):
        raise InputError(f"--vary {name}: takes words, so it has no ranges; list them with commas")
    if not low < high:
        raise InputError(f"--vary {name}: a range must end above where it begins, not {match.group()}")
    if match.group(3) not in (None, "log") or (match.group(3) and low <= 0):
        raise InputError(
            f"--vary {name}: a range may end with :log for equal factors, if it is positive, not {match.group()}"
        )
    if name in _LISTED:
        raise InputError(f"--vary {name}: every value is calibrated first; list a few, such as {name}=A,B,C")
    if isinstance(low, int) and isinstance(high, int):
        return _listed(name, param, [str(value) for value in range(low, high + 1)])
    usual, log = _usual(param), bool(match.group(3))
    middle = float(f"{(low * high) ** 0.5 if log else (low + high) / 2:.3g}")
    inside = isinstance(usual, float) and low <= usual <= high
    return Knob(name, _unit(param), usual if usual is not None and inside else middle, low, high, log)


def _value(word: str, param: click.Option, name: str) -> Value:
    """Convert a word by the option's own type; a flag's value is yes or no."""
    try:
        value = param.type(word, param)
    except click.BadParameter as error:
        raise InputError(f"--vary {name}: {error.message}") from None
    except InputError as error:
        raise InputError(f"--vary {error}") from None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, int | float) else word


def _usual(param: click.Option) -> Value | None:
    """Return the option's default; None where it has none of its own."""
    default = param.default
    if not isinstance(default, str | int | float):
        return None
    return _value(str(default), param, str(param.name)) if not isinstance(default, float) else default


def _unit(param: click.Option) -> str:
    return getattr(param.type, "unit", "")
