"""Technologies by name, from `models/devices/<name>.toml` of the package, or from a file of the user by its path.

A TOML file of a few lines, a user's or one of the package, describes a technology with another supply or other sizes
than the one that it is based on:

    name = "small-mirrors"
    base = "generic180"            # or another name of the package
    supply = 1.5                   # V, nominal; left out: that of the base
    hold_capacitance = 0.2e-12     # F; left out: that of the base

    [area]                         # drawn W L over that of the base, its shape kept; left out: 1
    mirrors = 0.5
    cells = 1
    switches = 1

The second device of a self-cascode is not changed: it is short, and the first device alone determines mismatch.
"""

import importlib.util
import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosim.base.bounds import CELSIUS
from cosim.base.errors import InputError, MissingToolError
from cosim.base.resources import models_path
from cosim.base.text import is_file, read_toml, shown
from cosim.technology.types import (
    AREAS,
    CONDUCTORS,
    LAYERS,
    RULES,
    SHARES,
    VIAS,
    DeviceLibrary,
    DeviceModel,
    DeviceSizes,
    DrawingRules,
    Geometry,
    Layer,
    Technology,
    WireTable,
)

DEFAULT_TECHNOLOGY = "generic180"
GROUPS = {
    "mirrors": ("mirror_n", "mirror_p"),
    "cells": ("cell_n", "cell_p"),
    "switches": ("latch_switch", "sample_switch"),
}
HOLD = "hold_capacitance"
SMALLEST, LARGEST = 0.01, 100.0  # of an area over that of the base
LEAST_FARAD, MOST_FARAD = 1e-15, 1e-10
LEAST_VOLT = 0.1  # of a nominal supply: no transistor saturates below
_FIELDS = ("name", "summary", "base", "supply", HOLD, "area")
CORNERS = ("tt", "ff", "ss", "fs", "sf")
_NUMBERS = ("grid", "supply", "supply_max", "capacitor_density")
# 0 where a technology does not know them; bounds in V m, m, V and m, a hundred times those of any process
_MISMATCH = {
    "a_vt": (0.0, 1e-6),
    "a_beta": (0.0, 1e-5),
    "spread_vt": (0.0, 1.0),
    "mismatch_dw": (-1e-6, 1e-6),
    "mismatch_dl": (-1e-6, 1e-6),
    "sigma_w": (0.0, 1e-7),
    "sigma_l": (0.0, 1e-7),
}
_LENGTHS = 1e-8, 1e-3  # m: what is drawn; a length in micrometre lies outside
_ROLES = tuple(DeviceSizes.__dataclass_fields__)
_SWITCHES = ("latch_switch", "sample_switch")
_PARAMETER = re.compile(r"[a-z_]\w*=-?[\d.]+", re.ASCII)
_NAME = re.compile(r"\w[\w-]*", re.ASCII)  # it becomes part of a file name
_REPAIR = "docs/reference/technologies.md says what a technology is"
_WHAT_IT_IS = "docs/reference/technologies.md says what it is"


def technology_names() -> tuple[str, ...]:
    """Return the names of the technologies that come with the package."""
    return tuple(sorted(path.stem for path in (models_path() / "devices").glob("*.toml")))


def load_technology(name: str, pdk_root: Path | None = None) -> Technology:
    """Load a technology by its name, or from a user's TOML file (a name that ends in .toml).

    Such a file describes a whole technology, or its changes to another one, its `base`. pdk_root: folder of foundry
    kits, default $PDK_ROOT. Raises InputError for an unknown name, a file that is no technology or a wrong root, and
    MissingToolError if the kit is not installed.
    """
    names = technology_names()
    if not name.endswith(".toml") and name not in names:
        raise InputError(f"technology must be one of {', '.join(names)}, or a .toml file of your own, not {name!r}")
    path = Path(name) if name.endswith(".toml") else models_path() / "devices" / f"{name}.toml"
    content = read_toml(path, _REPAIR)
    base = content.get("base")
    if base is None:
        return _read_technology(path, content, pdk_root)
    if not isinstance(base, str) or base not in names:
        raise InputError(f"{path}: base must be one of {', '.join(names)}, not {shown(base)}")
    return _derive(path, content, load_technology(base, pdk_root))


def _derive(path: Path, content: Mapping[str, object], base: Technology) -> Technology:
    """Return the technology that a file derives from its base technology.

    Raises InputError that names file, field and what the field must be.
    """
    if unknown := sorted(set(content) - set(_FIELDS)):
        raise InputError(f"{path}: {unknown[0]} is no field beside base; known are {', '.join(_FIELDS)}")
    areas = content.get("area", {})
    if not isinstance(areas, Mapping):
        raise InputError(f"{path}: area must be a table, not {shown(areas)}")
    if unknown := sorted(set(areas) - set(GROUPS)):
        raise InputError(f"{path}: area.{unknown[0]} is no field; known are {', '.join(GROUPS)}")
    factors = {name: _number(path, f"area.{name}", areas[name], (SMALLEST, LARGEST)) for name in areas}
    farad = content.get(HOLD)
    hold = base.hold_capacitance if farad is None else _number(path, HOLD, farad, (LEAST_FARAD, MOST_FARAD))
    volt = content.get("supply")
    supply = base.supply if volt is None else _number(path, "supply", volt, (LEAST_VOLT, base.supply_max))
    summary = content.get("summary", f"{base.name} with another supply or other sizes")
    name = content.get("name")
    if not isinstance(name, str) or not name.replace("-", "_").isidentifier() or not name.isascii():
        raise InputError(f"{path}: name must consist of letters, digits, _ and -, not {shown(name)}")
    if not isinstance(summary, str) or not summary.isprintable():
        raise InputError(f"{path}: summary must be a text on one line, not {shown(summary)}")
    sizes = dict[str, Geometry]()
    for group, factor in factors.items():
        for role in GROUPS[group]:  # W and L alike, on the layout grid
            drawn: Geometry = getattr(base.sizing, role)
            w, l = (max(base.snap(side * factor**0.5), base.grid) for side in (drawn.w, drawn.l))  # noqa: E741
            sizes[role] = replace(drawn, w=w, l=l)
    sizing = replace(base.sizing, **sizes)
    return replace(base, name=name, summary=summary, supply=supply, hold_capacitance=hold, sizing=sizing)


def _number(path: Path, field: str, value: object, ends: tuple[float, float]) -> float:
    low, high = ends
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(f"{path}: {field} must be a number from {low:g} to {high:g}, not {shown(value)}")
    return float(value)


def _read_technology(path: Path, content: dict[str, object], pdk_root: Path | None) -> Technology:
    """Return the technology that a file describes, with its foundry kit if it needs one.

    Raises InputError that names the file, the field and what it must be, and MissingToolError without the kit.
    """
    table = _Table(path, "", content)
    grid, supply, supply_max, density = (table.number(key) for key in _NUMBERS)
    name, summary, celsius = table.text("name"), table.text("summary"), table.number("celsius", least=-math.inf)
    if not _NAME.fullmatch(name):
        raise InputError(f"{path}: name must consist of letters, digits, _ and -, not {shown(name)}")
    CELSIUS.check(f"{path}: celsius", celsius)
    nfet, pfet = (_device(table.table(key)) for key in ("nfet", "pfet"))
    sizing = table.table("sizing")
    roles = {role: _geometry(sizing.table(role), grid) for role in _ROLES}
    for role in _SWITCHES:
        if roles[role].cascode is not None:
            raise InputError(f"{path}: sizing.{role} is a switch and takes no cascode; leave it out")
    sizing.finish()
    library = _library(table.table("library"), table.table("corners"), path, pdk_root)
    drawing = _drawing(table.table("layout")) if "layout" in content else None
    table.finish()
    if supply > supply_max:
        raise InputError(f"{path}: supply must be at most supply_max {supply_max:g}, not {content['supply']}")
    numbers = grid, supply, supply_max, celsius, density
    return Technology(name, summary, library, nfet, pfet, DeviceSizes(**roles), *numbers, drawing=drawing)


def _device(table: "_Table") -> DeviceModel:
    mismatch = {
        key: table.number(key, low, high) if key in table.content else 0.0 for key, (low, high) in _MISMATCH.items()
    }
    slope_factor, response = table.number("slope_factor", 1.0), table.curve("response")
    return DeviceModel(table.text("device"), **mismatch, slope_factor=slope_factor, response=response)


def _drawing(table: "_Table") -> DrawingRules:
    mos, layers, rules, gradient = (table.table(key) for key in ("mos", "layers", "rules", "gradient"))
    resistance = table.table("resistance")
    sheet, via = resistance.table("sheet"), resistance.table("via")
    return DrawingRules(
        {polarity: mos.text(polarity) for polarity in ("n", "p")},
        table.text("capacitor"),
        table.text("variant"),
        table.text("decks"),
        {name: layers.layer(name) for name in LAYERS},
        {name: rules.rule(name, 1e6 if name in AREAS else 1 if name in SHARES else 1e3) for name in RULES},
        _wires(table.table("wires")),
        {layer: sheet.number(layer, 0.0) for layer in CONDUCTORS},
        {name: via.number(name, 0.0) for name in VIAS},
        (gradient.number("vt", 0.0), gradient.number("beta", 0.0)),
    )


def _wires(table: "_Table") -> WireTable:
    over, rim, beside, junctions = (table.table(key) for key in ("over", "rim", "beside", "junctions"))
    return WireTable(
        _below(over, 1e-6),
        _below(rim, 1e-12),
        {layer: (cap * 1e-18, offset * 1e-6) for layer in CONDUCTORS for cap, offset in [beside.pair(layer)]},
        {polarity: junctions.pair(polarity) for polarity in ("n", "p")},
        table.number("well", 0.0) * 1e-6,
    )


def _below(table: "_Table", unit: float) -> dict[str, dict[str, float]]:
    """Return layer -> (ground or a layer below it -> number in SI units), from a technology's file.

    unit: SI value of the file's unit, attofarad per square micrometre or per micrometre.
    """
    layers = {layer: table.table(layer) for layer in CONDUCTORS}
    return {
        layer: {name: below.number(name, 0.0) * unit for name in ("ground", *CONDUCTORS[:k])}
        for k, (layer, below) in enumerate(layers.items())
    }


def _geometry(table: "_Table", grid: float) -> Geometry:
    drawn = {key: table.number(key, *_LENGTHS) for key in ("w", "l")}
    if "cascode" in table.content:
        inner = table.table("cascode")
        drawn |= {f"cascode.{key}": inner.number(key, *_LENGTHS) for key in ("w", "l")}
    for key, value in drawn.items():
        if abs(value / grid - round(value / grid)) > 1e-6:
            raise InputError(
                f"{table.path}: {table.name}.{key} must be a multiple of the grid {grid:g} m, not {value:g}; "
                f"{max(round(value / grid), 1) * grid:g} is the nearest"
            )
    w, l, *cascode = drawn.values()  # noqa: E741
    return Geometry(w, l, (cascode[0], cascode[1]) if cascode else None)


def _library(table: "_Table", corners: "_Table", path: Path, pdk_root: Path | None) -> DeviceLibrary:
    file, also = table.text("file"), table.texts("also")
    install, package, worst = (table.text(key, "") for key in ("install", "package", "flicker_worst"))
    length_unit, diffusion = table.number("length_unit"), table.number("diffusion", least=0.0)
    table.finish()
    sections = {corner: corners.text(corner, "") for corner in CORNERS}
    corners.finish()
    if not sections["tt"]:
        raise InputError(f"{path}: corners.tt must name a section of the library")
    if worst and not _PARAMETER.fullmatch(worst):
        raise InputError(f"{path}: library.flicker_worst must be NAME=NUMBER, such as fnoicor=1, not {shown(worst)}")
    parts = Path(package).parts
    if package and (len(parts) < 2 or not parts[0].isidentifier()):
        raise InputError(f"{path}: library.package must be PACKAGE/PATH/IN/IT, not {shown(package)}")
    if pdk_root is not None and not install:
        raise InputError(f"--pdk-root is for a foundry's kit; {path.stem} brings its own library, so leave it out")
    main = find_kit(file, package, install, pdk_root) if install else path.parent / file
    if not is_file(main):
        raise InputError(f"{path}: library.file must be in the same folder; there is no {main}")
    return DeviceLibrary(
        main,
        tuple(main.parent / extra for extra in also),
        {corner: section for corner, section in sections.items() if section},
        length_unit,
        diffusion,
        worst,
    )


def find_kit(file: str, package: str, install: str, pdk_root: Path | None) -> Path:
    """Find the main file of a foundry kit: under `pdk_root`, under $PDK_ROOT, or in an installed Python package.

    file: its path below such a folder; install: command for the message. Raises InputError for a wrong `pdk_root`, and
    MissingToolError if no place has the kit.
    """
    if pdk_root is not None:
        if not is_file(pdk_root / file):
            raise InputError(f"--pdk-root {pdk_root}: there is no {file} under it; name the folder above, or {install}")
        return pdk_root / file
    root = os.environ.get("PDK_ROOT", "")
    if root and is_file(Path(root) / file):
        return Path(root) / file
    if package:
        try:
            found = importlib.util.find_spec(Path(package).parts[0])
        except ValueError:  # __main__ has none
            found = None
        for location in (found and found.submodule_search_locations) or ():
            if is_file(Path(location).parent / package):
                return Path(location).parent / package
    tried = f"PDK_ROOT is {root}, without {file}" if root else "neither --pdk-root nor PDK_ROOT is given"
    raise MissingToolError(f"foundry kit not found: {tried}; {install}")


class _Table:
    """A table of a technology's file, with its sub-tables: each field is read once; `finish` refuses unread ones."""

    def __init__(self, path: Path, name: str, content: dict[str, object]) -> None:
        self.path, self.name, self.content = path, name, content
        self.asked: set[str] = set()
        self.tables: list[_Table] = []

    def _get(self, key: str, default: object = None) -> object:
        self.asked.add(key)
        if key not in self.content and default is None:
            raise InputError(f"{self.path}: {self._full(key)} is missing; {_WHAT_IT_IS}")
        return self.content.get(key, default)

    def _full(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str) or not value.isprintable() or (not value and default is None):
            raise InputError(f"{self.path}: {self._full(key)} must be a text on one line, not {shown(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item.isprintable() for item in value):
            raise InputError(f"{self.path}: {self._full(key)} must be a list of file names, not {shown(value)}")
        return tuple(value)

    def number(self, key: str, least: float | None = None, most: float = sys.float_info.max) -> float:
        """Return a number of the technology's file, in SI: at least `least` (positive, if None) and at most `most`.

        Raises InputError for another value.
        """
        value = self._get(key)
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        if not -most <= number <= most or (number <= 0 if least is None else number < least):
            wanted = "a positive number" if least is None else "a number"
            wanted += f" of at least {least:g}" if least is not None and math.isfinite(least) else ""
            wanted += f" and at most {most:g}" if most < sys.float_info.max else ""
            raise InputError(f"{self.path}: {self._full(key)} must be {wanted} in SI units, not {shown(value)}")
        return float(number)

    def curve(self, key: str) -> tuple[tuple[float, float], ...]:
        """Return a field's number pairs (x, y), with positive rising x and y of at least 1; () if it is absent."""
        rows: Any = self._get(key, [])
        try:
            found = tuple((x + 0.0, y + 0.0) for x, y in rows)
            rising = sorted({x for x, _ in found}) == [x for x, _ in found]
            if not rising or not all(0 < x < math.inf and 1 <= y < math.inf for x, y in found):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"{self.path}: {self._full(key)} must be a list of [current in A, n], currents positive and rising, n "
                f"at least 1, not {shown(rows)}"
            ) from None
        return found

    def layer(self, key: str) -> Layer:
        """Return a layer of the technology's file, as GDS layer and datatype. Raises InputError for another value."""
        value: Any = self._get(key)
        if (
            not isinstance(value, list)
            or [type(one) for one in value] != [int, int]
            or not 0 <= min(value) <= max(value) < 65536
        ):
            raise InputError(f"{self.path}: {self._full(key)} must be [layer, datatype], not {shown(value)}")
        return value[0], value[1]

    def pair(self, key: str) -> tuple[float, float]:
        """Return two numbers of the technology's file. Raises InputError for another value."""
        value: Any = self._get(key)
        if not isinstance(value, list) or len(value) != 2 or not all(type(one) in (int, float) for one in value):
            raise InputError(f"{self.path}: {self._full(key)} must be two numbers, not {shown(value)}")
        return float(value[0]), float(value[1])

    def rule(self, key: str, scale: float) -> int:
        """Return the value of a layout rule times `scale`, rounded; the file has the foundry's name of the rule, too.

        Raises InputError for another value.
        """
        value: Any = self._get(key)
        try:
            name, length = value
            if not isinstance(name, str) or not 0 < length * scale < 1e12:
                raise ValueError
        except (TypeError, ValueError):
            raise InputError(
                f"{self.path}: {self._full(key)} must be [name of the rule, micrometre], not {shown(value)}"
            ) from None
        return round(length * scale)

    def table(self, key: str) -> "_Table":
        value = self._get(key)
        if not isinstance(value, dict):
            raise InputError(f"{self.path}: {self._full(key)} must be a table, not {shown(value)}")
        self.tables.append(_Table(self.path, self._full(key), value))
        return self.tables[-1]

    def finish(self) -> None:
        """Raise InputError for a field of this table, or of a table in it, that nothing has read.

        Most often it is a typing error.
        """
        for table in self.tables:
            table.finish()
        if unknown := sorted(set(self.content) - self.asked):
            raise InputError(
                f"{self.path}: {self._full(unknown[0])} is no field; known are {', '.join(sorted(self.asked))}"
            )
