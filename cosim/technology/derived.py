"""A technology with other sizes than the one that it is based on, as a TOML file of a few lines.

    name = "small-mirrors"
    base = "generic180"            # or gf180mcu, sky130
    hold_capacitance = 0.2e-12     # F; left out: that of the base

    [area]                         # drawn W L over that of the base, its shape kept; left out: 1
    mirrors = 0.5
    cells = 1
    switches = 1

The second device of a self-cascode stays as it is: it is short, and mismatch is that of the first.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.text import shown
from cosim.technology.types import Geometry, Technology

GROUPS = {
    "mirrors": ("mirror_n", "mirror_p"),
    "cells": ("cell_n", "cell_p"),
    "switches": ("latch_switch", "sample_switch"),
}
HOLD = "hold_capacitance"
SMALLEST, LARGEST = 0.01, 100.0  # of an area over that of the base
LEAST_FARAD, MOST_FARAD = 1e-15, 1e-10
_FIELDS = ("name", "summary", "base", HOLD, "area")


def derive(path: Path, content: Mapping[str, object], base: Technology) -> Technology:
    """Return the technology that a file derives from its base.

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
    summary = content.get("summary", f"{base.name} with other sizes")
    name = content.get("name")
    if not isinstance(name, str) or not name.replace("-", "_").isidentifier() or not name.isascii():
        raise InputError(f"{path}: name must consist of letters, digits, _ and -, not {shown(name)}")
    if not isinstance(summary, str) or not summary.isprintable():
        raise InputError(f"{path}: summary must be a text on one line, not {shown(summary)}")
    return resized(replace(base, name=name, summary=summary, hold_capacitance=hold), factors)


def resized(technology: Technology, factors: Mapping[str, float]) -> Technology:
    """Return the technology with the devices of some GROUPS scaled by factors, W and L alike, on the layout grid."""
    sizes = {
        role: _scaled(technology, getattr(technology.sizing, role), factors[group])
        for group, roles in GROUPS.items()
        if group in factors
        for role in roles
    }
    return replace(technology, sizing=replace(technology.sizing, **sizes))


def _scaled(technology: Technology, drawn: Geometry, factor: float) -> Geometry:
    w, l = (max(technology.snap(side * factor**0.5), technology.grid) for side in (drawn.w, drawn.l))  # noqa: E741
    return replace(drawn, w=w, l=l)


def _number(path: Path, field: str, value: object, ends: tuple[float, float]) -> float:
    low, high = ends
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(f"{path}: {field} must be a number from {low:g} to {high:g}, not {shown(value)}")
    return float(value)
