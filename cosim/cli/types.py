"""Types of command-line values that several verbs share; each converts text and checks its bounds."""

import math
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from cosim.base.bounds import EPSILON, GUARD, Bounds
from cosim.base.quantities import ZERO_CELSIUS, parse_quantity

T = TypeVar("T", int, float)

_TEMPERATURE = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+))\s*(C|c|°C|degC|deg C|celsius|K)\s*")


class Integer(click.IntRange):
    """Type of a command-line value: a whole number within bounds."""

    name = "integer"

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(int(bounds.low), int(bounds.high))
        self.bounds = bounds

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(str(value))
        except ValueError:
            self.fail(f"{str(value)!r} is not a valid integer.", param, ctx)
        return _bounded(self, number, param, ctx)

    def _describe_range(self) -> str:
        return _described(self.bounds)


def _read_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a valid float.") from None


def read_celsius(text: str) -> float:
    """Return a temperature in degree Celsius, typed as 27, 27C or 27degC.

    Raises ValueError for other text and for another unit; for kelvin the message gives the value in C.
    """
    match = _TEMPERATURE.fullmatch(text)
    if match is not None and match[2] == "K":
        raise ValueError(f"must be in celsius, not {text}; {text} is {float(match[1]) - ZERO_CELSIUS:g} C")
    try:
        return float(text if match is None else match[1])
    except ValueError:
        raise ValueError(f"must be a temperature in celsius such as 27 or -40, not {text}") from None


class Number(click.FloatRange):
    """Type of a command-line value: a number within bounds; nan is refused.

    read: converts the text; the message of its ValueError is that of a usage error.
    """

    name = "float"

    def __init__(self, bounds: Bounds, read: Callable[[str], float] = _read_float) -> None:
        super().__init__(bounds.low, bounds.high, bounds.open_low, bounds.open_high)
        self.bounds, self.unit, self._read = bounds, bounds.unit, read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = self._read(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return _bounded(self, number, param, ctx)

    def _describe_range(self) -> str:
        return _described(self.bounds)


class Quantity(click.ParamType):
    """Type of a command-line value: a number with an SI prefix, such as 1n or 10m, converted to SI, within bounds."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.unit = bounds, bounds.unit
        self.name = bounds.unit

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if not isinstance(value, float):
            value = parse_quantity(str(value), self.unit, param.opts[-1] if param else "value")
        return _bounded(self, value, param, ctx)


class QuantityList(click.ParamType):
    """Type of a command-line value: numbers with SI prefixes, separated by commas, converted to SI, within bounds."""

    name = "list"

    def __init__(self, bounds: Bounds) -> None:
        self.bounds, self.unit = bounds, bounds.unit

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        name = param.opts[-1] if param else "value"
        parts = map(str, value) if isinstance(value, tuple) else str(value).split(",")
        numbers = (parse_quantity(part, self.unit, name) for part in parts)
        return tuple(_bounded(self, number, param, ctx) for number in numbers)


class Text(click.ParamType):
    """Type of a command-line value: text that a function converts.

    name: of the type in the help text; read: converts the text; the message of its ValueError is that of a usage error;
    converted: type of values that come converted already, and are kept, () for none.
    """

    def __init__(self, name: str, read: Callable[[str], object], converted: type | tuple[()] = ()) -> None:
        self.name, self._read, self._converted = name, read, converted

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if isinstance(value, self._converted):
            return value
        try:
            return self._read(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def read_epsilon(text: str) -> float | None:
    """Return the number from -1 to 1 that a text gives, or None for `anneal`. Raises ValueError for other text."""
    if text == "anneal":
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if number not in EPSILON:
        raise ValueError(f"must be 'anneal' or a number in [-1, 1], not {text}.")
    return number


EPSILON_TYPE = Text("text", read_epsilon)


def read_names(text: str) -> tuple[str, ...]:
    """Return the names in a text, typed with commas between them, such as tt,ss. Raises ValueError for an empty one."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError(f"must be names with commas between them, such as tt,ss, not {text!r}")
    return names


NAMES_TYPE = Text("names", read_names, tuple)


def read_share(text: str) -> tuple[int, int]:
    """Return (i, n) for part i of n equal parts, typed as i/n, such as 3/8. Raises ValueError for other text."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    part, parts = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part <= parts:
        raise ValueError(f"must be i/n with i from 1 to n, such as 3/8, not {text}")
    return part, parts


class EngineName(click.ParamType):
    """Type of a command-line value: the name of a simulation engine, one of `names()`, called at each use."""

    name = "engine"

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names

    @property
    def _choice(self) -> "click.Choice[str]":
        return click.Choice(self._names())

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return self._choice.convert(str(value), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self._choice.get_metavar(param, ctx)


Bounded = Integer | Number | Quantity | QuantityList


def _described(bounds: Bounds) -> str:
    """Return bounds as help shows them, such as 0<x<=1; a bound of GUARD or more only catches slips and is left out."""
    low = f"{bounds.low:g}{'<' if bounds.open_low else '<='}" if abs(bounds.low) < GUARD else ""
    high = f"{'<' if bounds.open_high else '<='}{bounds.high:g}" if abs(bounds.high) < GUARD else ""
    if low and not high:
        return f"x{'>' if bounds.open_low else '>='}{bounds.low:g}"
    return f"{low}x{high}"


def _bounded(kind: "Bounded", value: T, param: click.Parameter | None, ctx: click.Context | None) -> T:
    """Return the value unchanged; fail with a usage error if it lies outside the bounds of its type."""
    if value not in kind.bounds:
        kind.fail(f"{kind.bounds.refuse(value)}.", param, ctx)
    return value
