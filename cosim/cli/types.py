"""Types of options that several verbs share."""

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from cosim.quantities import ZERO_CELSIUS, parse_quantity

if TYPE_CHECKING:
    from cosim.engines.table import Entry


_TEMPERATURE = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+))\s*(C|c|°C|degC|deg C|celsius|K)\s*")


class Quantity(click.ParamType):
    """A number with a unit prefix, such as 1n or 10m, in SI."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.name = unit

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        number = parse_quantity(str(value), self.unit, param.opts[-1] if param else "value")
        if number <= 0:
            self.fail(f"must be positive, not {value}", param, ctx)
        return number


class Range(click.FloatRange):
    """A float range that nan is not in."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Celsius(click.types.FloatParamType):
    """A temperature, such as 27, 27C or 27degC."""

    unit = "C"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of degrees. Fails on another unit, of kelvin with the celsius that they are."""
        match = _TEMPERATURE.fullmatch(str(value))
        if match is None:
            try:
                return float(str(value))
            except ValueError:
                self.fail(f"must be a temperature in celsius such as 27 or -40, not {value}", param, ctx)
        if match[2] == "K":
            celsius = float(match[1]) - ZERO_CELSIUS
            self.fail(f"must be in celsius, not {value}; {value} is {celsius:g} C", param, ctx)
        return float(match[1])


class Share(click.ParamType):
    """One of n equal parts, such as 3/8: the third of eight."""

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
    """The name of one of `entries`, which are read from the table of engines whenever they are asked for."""

    name = "engine"

    def __init__(self, entries: "Callable[[], tuple[Entry, ...]]") -> None:
        self._entries = entries

    @property
    def _choice(self) -> "click.Choice[str]":
        return click.Choice([entry.name for entry in self._entries()])

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return self._choice.convert(str(value), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self._choice.get_metavar(param, ctx)
