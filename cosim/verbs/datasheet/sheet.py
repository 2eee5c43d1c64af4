"""The file of a datasheet: which netlist, under which conditions, which measures, and what limits they must keep.

    netlist = "ota.sp"            # beside this file
    technology = "generic180"
    supply_parameter = "supply"   # the netlist's .param that follows the conditions' supply
    [conditions]                  # each a list, of which the first value is nominal; every combination is run
    corner = ["tt", "ss", "ff"]
    celsius = [27, 0, 60]
    supply = [1.8, 1.62, 1.98]
    [parameters]                  # other .param of the netlist: a number, or a list whose combinations are run as well
    bias = "2n"
    [[measures]]                  # a .meas of the netlist, with its limits, which may be left out
    name = "offset"
    unit = "V"
    min = "-10m"
    max = "10m"

The form follows the specifications of CACE (Efabless, 2023): conditions, and least, typical and greatest values.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.quantities import format_quantity
from cosim.base.text import check_known, listed, read_bytes, read_toml, shown, shown_path, typed
from cosim.circuit.spice import Netlist, read_netlist
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.conditions import at
from cosim.technology.foundry import model_family
from cosim.technology.parameters import Parameters
from cosim.technology.types import Technology

MOST_CONDITIONS = 1000
_UNIT = re.compile(r"[A-Za-z%/]{0,10}")
_NETLIST_LIMIT = 16 << 20  # bytes
_REPAIR = "correct the sheet"
Number = float | str


@dataclass(frozen=True, kw_only=True)
class MeasureLimits:
    """A measure of a datasheet with its unit and its limits, each a number or text such as 10m, None for no limit."""

    name: str
    unit: str = ""
    min: Number | None = None
    typ: Number | None = None
    max: Number | None = None


@dataclass(frozen=True, kw_only=True)
class SheetConditions:
    """Conditions of a datasheet as its file lists them; empty: the technology's own."""

    corner: tuple[str, ...] = ("tt",)
    celsius: tuple[float, ...] = ()
    supply: tuple[Number, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SheetFile:
    """The content of a datasheet's file, field by field as the module's docstring describes it."""

    netlist: str
    measures: tuple[MeasureLimits, ...]
    technology: str = DEFAULT_TECHNOLOGY
    supply_parameter: str | None = None
    conditions: SheetConditions = field(default_factory=SheetConditions)
    parameters: dict[str, Number | tuple[Number, ...]] = field(default_factory=dict[str, Number | tuple[Number, ...]])


@dataclass(frozen=True)
class SheetMeasure:
    """A measure of a datasheet: its name, unit, and limits in that unit, None where there is none."""

    name: str
    unit: str
    low: float | None
    typical: float | None
    high: float | None

    @property
    def is_limited(self) -> bool:
        """Tell whether the measure has a lower or an upper limit."""
        return self.low is not None or self.high is not None

    def meets(self, value: float | None) -> bool:
        """Tell whether a value keeps the limits; None, a measure without a value, never does."""
        if value is None:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def room(self, value: float | None) -> float:
        """Return the distance of a value to the nearest limit, in the measure's unit, negative outside the limits.

        It is infinite without limits, and minus infinity without a value.
        """
        if value is None:
            return -math.inf
        ends = (
            (value - self.low) if self.low is not None else math.inf,
            math.inf if self.high is None else self.high - value,
        )
        return min(ends)


@dataclass(frozen=True)
class DatasheetCondition:
    """One condition of a datasheet, in which the netlist is simulated.

    technology: in its corner, at its temperature, and at a supply that no net of the circuit exceeds; supply: V, None
    where the sheet does not vary it; parameters: (name, value) that the sheet gives; netlist: read with these values.
    """

    technology: Technology
    supply: float | None
    parameters: tuple[tuple[str, float], ...]
    netlist: Netlist

    def describe(self) -> tuple[str, ...]:
        """Return the condition's corner, temperature, supply if any, and parameters, as texts."""
        supply = () if self.supply is None else (f"{self.supply:g} V",)
        return (
            self.technology.corner,
            f"{self.technology.celsius:g} C",
            *supply,
            *(f"{name} {format_quantity(value, '').replace(' ', '')}" for name, value in self.parameters),
        )


@dataclass(frozen=True)
class Datasheet:
    """A datasheet as it is run: its measures, and its conditions, of which the first is nominal."""

    name: str
    measures: tuple[SheetMeasure, ...]
    conditions: tuple[DatasheetCondition, ...]

    @property
    def nominal(self) -> DatasheetCondition:
        """Return the nominal condition, in which chips are drawn."""
        return self.conditions[0]


def read_sheet(path: Path, pdk_root: Path | None = None) -> Datasheet:
    """Read a datasheet's file and its netlist, under every condition that it lists.

    pdk_root: folder of the foundry kits. Raises InputError that names the file and the field, or the line of the
    netlist; MissingToolError if the technology's kit is not installed.
    """
    where = shown_path(path)
    if path.suffix == ".sp":
        raise InputError(f"{where}: must be a sheet (.toml), which names a netlist, not a netlist; write one beside it")
    content = read_toml(path, _REPAIR)
    check_known(content, SheetFile, where, _REPAIR)
    listed_measures = content.get("measures")
    for k, one in enumerate(listed_measures if isinstance(listed_measures, list) else ()):
        if isinstance(one, Mapping):
            check_known(one, MeasureLimits, where, _REPAIR, f"measures[{k}].")
    file = typed(content, SheetFile, where, _REPAIR)
    own = file.technology
    technology = load_technology(str(path.parent / own) if own.endswith(".toml") else own, pdk_root)
    if (family := model_family(technology)).osdi:
        raise InputError(
            f"{where}: technology must have models of BSIM4, because cosim datasheet runs ngspice, which has no "
            f"{family.name}, the models of {technology.name}; choose another"
        )
    conditions = tuple(_conditions(file, technology, path))
    measures = tuple(_measure(one, f"{where}: measures.{one.name}") for one in file.measures)
    _check_measures(measures, [one.name for one in conditions[0].netlist.measures], where)
    return Datasheet(path.stem, measures, conditions)


def _conditions(file: SheetFile, technology: Technology, path: Path) -> Iterable[DatasheetCondition]:
    """Yield every combination of a file's conditions and parameters, the nominal one first."""
    where, source = shown_path(path), path.parent / file.netlist
    text = read_bytes(source, _NETLIST_LIMIT, f"name a netlist beside {path.name}").decode("utf-8", "replace")
    axes = _axes(file, technology, where)
    if (count := math.prod(map(len, axes.values()))) > MOST_CONDITIONS:
        raise InputError(f"{where}: must have at most {MOST_CONDITIONS} conditions, not {count}; list fewer values")
    for corner, celsius, supply, *values in product(*axes.values()):
        given = tuple(zip(list(axes)[3:], values, strict=True))
        followed = {} if supply is None else {str(file.supply_parameter).lower(): supply}
        try:
            there = at(technology, corner, celsius, max(supply or 0.0, technology.supply))
        except InputError as error:
            raise InputError(f"{where}: conditions: {str(error).partition('; choose')[0]}; {_REPAIR}") from None
        netlist = read_netlist(text, shown_path(source), there, {**dict(given), **followed})
        if netlist.run is None or not netlist.measures:
            raise InputError(
                f"{shown_path(source)}: must have a .tran, .dc or .op and a .meas of it for a datasheet; add them"
            )
        yield DatasheetCondition(there, supply, given, netlist)


def _axes(file: SheetFile, technology: Technology, where: str) -> "dict[str, tuple]":  # pyright: ignore
    """Return what a file varies: corner, celsius, supply, and each parameter by name -> its values."""
    listed_values = file.conditions
    supplies = tuple(number(one, f"{where}: conditions.supply") for one in listed_values.supply)
    if bool(supplies) != bool(file.supply_parameter):
        raise InputError(
            f"{where}: conditions.supply and supply_parameter must be given together, as the supply is a .param of "
            "the netlist; give both, or neither"
        )
    axes = {
        "corner": listed_values.corner,
        "celsius": listed_values.celsius or (technology.celsius,),
        "supply": supplies or (None,),
    }
    for name, value in ((name.lower(), value) for name, value in file.parameters.items()):
        if name in axes or name == (file.supply_parameter or "").lower():
            raise InputError(f"{where}: parameters.{name} must be a parameter that no condition sets; rename it")
        several = value if isinstance(value, tuple) else (value,)
        axes[name] = tuple(number(one, f"{where}: parameters.{name}") for one in several)
    if empty := next((name for name, values in axes.items() if not values), None):
        raise InputError(f"{where}: {empty} must have at least one value, not an empty list; add its nominal value")
    if twice := next((name for name, values in axes.items() if len(set(values)) < len(values)), None):
        raise InputError(f"{where}: {twice} must have each value once; leave the second one out")
    return axes


def number(value: Number, where: str) -> float:
    """Return the number that a datasheet's file states, as a number or as text such as 10m, 2n or 3*4k.

    Raises InputError that begins with `where` for what is no finite number.
    """
    try:
        return Parameters({}).evaluate(str(value) if isinstance(value, str) else repr(float(value)))
    except InputError as error:
        raise InputError(f"{where} must be a number such as 0.5 or 10m: {error}") from None


def _measure(given: MeasureLimits, where: str) -> SheetMeasure:
    low, typical, high = (
        None if value is None else number(value, f"{where}.{name}")
        for name, value in (("min", given.min), ("typ", given.typ), ("max", given.max))
    )
    ordered = [one for one in (low, typical, high) if one is not None]
    if ordered != sorted(ordered):
        raise InputError(f"{where}: min, typ and max must not fall, not {', '.join(f'{one:g}' for one in ordered)}")
    if not _UNIT.fullmatch(given.unit):
        raise InputError(f"{where}.unit must be at most 10 letters, % or /, not {shown(given.unit)}; correct it")
    if given.name.lower() in ("chip", "passed", "reason"):
        raise InputError(f"{where}: datasheet_chips.csv has a column of this name already; rename the measure")
    return SheetMeasure(given.name.lower(), given.unit, low, typical, high)


def _check_measures(measures: tuple[SheetMeasure, ...], there: list[str], where: str) -> None:
    """Raise InputError for a sheet without measures, for one that the netlist lacks, and for two of one name."""
    names = [one.name for one in measures]
    if not names:
        raise InputError(f"{where}: must have at least one [[measures]]; the netlist has {listed(there)}")
    if missing := [name for name in names if name not in there]:
        raise InputError(
            f"{where}: measures.{missing[0]} must be a .meas of the netlist, not another name; it has {listed(there)}"
        )
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise InputError(f"{where}: measures.{twice} must be given once, not twice; leave one out")
