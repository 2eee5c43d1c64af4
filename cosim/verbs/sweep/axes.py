"""The axes of a sweep: an option of a verb, and the values that it takes, read by that option's own type."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

import click

from cosim.base.errors import InputError
from cosim.cli.config import NO_SETTING, setting_name
from cosim.verbs.sweep.study import SweepAxis, Value, spaced

MOST_AXES, MOST_POINTS = 2, 1000
_FORM = "NAME=VALUES, such as area=0.25,0.5,1 or supply=1.6:2.0:5 or area=0.25:4:5:log"
_RANGE = re.compile(r"([^:]+):([^:]+):([^:]+)(?::([^:]+))?")


def read_axes(texts: Sequence[str], name: str, verb: click.Command) -> tuple[SweepAxis, ...]:
    """Read the axes behind the values of --over. Raises InputError that says what they must be."""
    if not 1 <= len(texts) <= MOST_AXES:
        raise InputError(f"--over must be given once or twice, {_FORM}; it is given {len(texts)} times")
    axes = tuple(_read_axis(text, name, verb) for text in texts)
    if len({axis.option for axis in axes}) < len(axes):
        raise InputError(f"--over {axes[0].option} is given twice; put its values into one --over, with commas")
    points = 1
    for axis in axes:
        points *= len(axis.values)
    if points > MOST_POINTS:
        raise InputError(f"--over must give at most {MOST_POINTS} points, not {points}; give fewer values")
    return axes


def option_named(option: str, name: str, verb: click.Command) -> click.Option:
    """Return the option of a verb by its long name. Raises InputError for one that it does not have, or that is no
    axis."""
    there = {setting_name(one): one for one in verb.params if isinstance(one, click.Option)}
    if option in there and there[option].name in NO_SETTING:
        raise InputError(f"--over {option}: --{option} changes no figure; sweep another option")
    if option not in there:
        near = get_close_matches(option, [name for name, one in there.items() if one.name not in NO_SETTING], n=1)
        meant = "".join(f"; did you mean {one}?" for one in near) or f"; see: cosim {name} --help"
        raise InputError(f"--over {option}: cosim {name} has no option --{option}{meant}")
    return there[option]


def _read_axis(text: str, name: str, verb: click.Command) -> SweepAxis:
    option, equals, values = (part.strip() for part in text.partition("="))
    option = option.removeprefix("--")
    if not equals or not option:
        raise InputError(f"--over must be {_FORM}, not {text!r}")
    param = option_named(option, name, verb)
    words = [word.strip() for word in values.split(",")]
    if not all(words):
        raise InputError(f"--over {option} has an empty value; give values with commas between them, {_FORM}")
    match = _RANGE.fullmatch(values)
    if match is None and ":" in values and "," not in values:
        raise InputError(
            f"--over {option}: a range is first:last:count, :log at its end for equal factors, not {values}"
        )
    found = [_read(word, param, option) for word in words] if match is None else _range(match, param, option)
    twice = next((value for k, value in enumerate(found) if value in found[:k]), None)
    if twice is not None:
        raise InputError(f"--over {option} has {twice} twice; give each value once")
    return SweepAxis(option, getattr(param.type, "unit", ""), tuple(found))


def _read(word: str, param: click.Option, option: str) -> Value:
    """Read one value by the option's own type; a flag's is yes or no, a number stays one, and others are words."""
    try:
        value = param.type(word, param)
    except click.BadParameter as error:
        raise InputError(f"--over {option}: {error.message}") from None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, int | float) else word


def _range(match: re.Match[str], param: click.Option, option: str) -> list[Value]:
    """Return the values of a range, first:last:count or first:last:count:log. Raises InputError where it is none."""
    first, last = (_as_number(_read(word, param, option), option) for word in match.group(1, 2))
    count, spacing = match.group(3), match.group(4)
    if not count.isascii() or not count.isdigit() or not 2 <= int(count) <= MOST_POINTS:
        raise InputError(f"--over {option}: a range is first:last:count, count from 2 to {MOST_POINTS}, not {count!r}")
    if spacing not in (None, "log"):
        raise InputError(f"--over {option}: a range may end with :log for equal factors, not with :{spacing}")
    if spacing and min(first, last) <= 0:
        raise InputError(f"--over {option}: a range with :log must have positive ends, not {match.group()}")
    found = spaced(first, last, int(count), log=bool(spacing))
    if len(found) < int(count):
        raise InputError(f"--over {option}: a range must end elsewhere than it begins; {match.group()} is empty")
    if not all(isinstance(end, int) for end in (first, last)):
        return [_read(repr(value), param, option) for value in found]
    if any(value != round(value) for value in found):
        raise InputError(f"--over {option}: {match.group()} gives {found[1]:g}, which is no whole number; list them")
    return [_read(str(round(value)), param, option) for value in found]


def _as_number(value: Value, option: str) -> float:
    """Return an end of a range as a number; text may be a whole number, too."""
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        raise InputError(f"--over {option}: takes words, so it has no ranges; list them with commas") from None
