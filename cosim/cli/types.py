"""Types of command-line values that several verbs share; each converts text and checks its bounds."""

import math
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from cosim.base.bounds import CELSIUS, EPSILON, GUARD, Bounds
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


class Number(click.FloatRange):
    """Type of a command-line value: a number within bounds; nan is refused."""

    name = "float"

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(bounds.low, bounds.high, bounds.open_low, bounds.open_high)
        self.bounds, self.unit = bounds, bounds.unit

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(str(value))
        except ValueError:
            self.fail(f"{str(value)!r} is not a valid float.", param, ctx)
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
        if isinstance(value, tuple):
            return value
        name = param.opts[-1] if param else "value"
        numbers = (parse_quantity(part, self.unit, name) for part in str(value).split(","))
        return tuple(_bounded(self, number, param, ctx) for number in numbers)


class Epsilon(click.ParamType):
    """Type of a command-line value: a number from -1 to 1, or `anneal`, which is None."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if value == "anneal":
            return None
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
        if number not in EPSILON:
            self.fail(f"must be 'anneal' or a number in [-1, 1], not {value}.", param, ctx)
        return number


class Celsius(Number):
    """Type of a command-line value: a temperature in degree Celsius, such as 27, 27C or 27degC."""

    def __init__(self) -> None:
        super().__init__(CELSIUS)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of degrees Celsius. Fails for another unit; for kelvin the message gives the value in C."""
        match = _TEMPERATURE.fullmatch(str(value))
        if match is None:
            try:
                return _bounded(self, float(str(value)), param, ctx)
            except ValueError:
                self.fail(f"must be a temperature in celsius such as 27 or -40, not {value}", param, ctx)
        if match[2] == "K":
            celsius = float(match[1]) - ZERO_CELSIUS
            self.fail(f"must be in celsius, not {value}; {value} is {celsius:g} C", param, ctx)
        return _bounded(self, float(match[1]), param, ctx)


class ShareType(click.ParamType):
    """Type of a command-line value: part i of n equal parts as i/n, such as 3/8, converted to (i, n)."""

    name = "i/n"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(value))
        part, parts = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= part <= parts:
            self.fail(f"must be i/n with i from 1 to n, such as 3/8, not {value}", param, ctx)
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
