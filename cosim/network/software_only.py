"""Files of networks that are evaluated in software alone: how to recognise them, and which parts have no circuit.

They are backbones. docs/how-to/backbone.md has the reasons and the nearest forms. Needs no torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cosim.base.arrays import read_arrays, read_torch
from cosim.base.errors import InputError, MappingError
from cosim.base.text import is_file, parse_json, shown, typed

SOFTWARE_FORMAT = "cosim-software"
_REPAIR = "train it again with cosim backbone"


@dataclass(frozen=True)
class _Shape:
    cell: str
    width: int
    positions: bool
    levels: int | None = None


@dataclass(frozen=True)
class _Meta:
    shape: _Shape


@dataclass(frozen=True)
class PartWithoutCircuit:
    """A part of a backbone that has no circuit, the reason, and the nearest form that has one."""

    part: str
    reason: str
    nearest: str

    def __str__(self) -> str:
        return f"{self.part} ({self.reason}; nearest: {self.nearest})"


_CELLS = {
    "alphacmru": PartWithoutCircuit(
        "the alphaCMRU's level", "it takes any value, and a register holds one of some", "--levels 6"
    ),
    "lru": PartWithoutCircuit(
        "the LRU's complex state",
        "a rotation needs two cross-coupled filters, matched better than 1 - |lambda|",
        "cmru with epsilon 1, counted on a ladder",
    ),
    "mingru": PartWithoutCircuit(
        "the minGRU's logistic gate", "its state is an analog value that leaks", "bmru, which keeps or replaces a bit"
    ),
}


def unmapped_parts(cell: str, width: int, *, positions: bool, levels: int | None = None) -> list[PartWithoutCircuit]:
    """Return the parts of a backbone that have no circuit, the largest first.

    cell: kind of its recurrent cells, or several joined by `+`; width: features of its blocks; positions: whether it
    has sinusoidal positions; levels: those that an alphaCMRU stores, None for any value, which has no circuit.
    """
    parts = [
        PartWithoutCircuit(
            f"LayerNorm over {width} features",
            "mean and spread of that many currents come out 5 % wrong at best, and only up to 16 of them",
            "no normalisation, and weights on a grid that keep signals in range",
        ),
        PartWithoutCircuit("the GLU", "it multiplies two signals of either sign", "a ReLU layer"),
        PartWithoutCircuit("the sigmoid gate of eq. 25", "it multiplies, too", "an AND of two bits"),
    ]
    if positions:
        parts.append(
            PartWithoutCircuit("sinusoidal positions", "they need exact oscillators", "a chain of toggles that counts")
        )
    kinds = [one for one in cell.split("+") if one != "alphacmru" or levels is None]
    return parts + [_CELLS[one] for one in _CELLS if one in kinds]


def why_software(cell: str) -> str | None:
    """Return why a kind of cell has no circuit; None for a kind that has one."""
    return str(_CELLS[cell]) if cell in _CELLS else None


def refusal(meta: Mapping[str, object], origin: str) -> MappingError:
    """Return the error for a network that is evaluated in software alone, because parts of it have no circuit.

    meta: the JSON of its file. Raises InputError if that lacks a field.
    """
    shape = typed(dict(meta), _Meta, origin, _REPAIR, "meta").shape
    parts = "; ".join(map(str, unmapped_parts(shape.cell, shape.width, positions=shape.positions, levels=shape.levels)))
    return MappingError(
        f"{origin}: a model that stays software (cell {shown(shape.cell)}), without a circuit for {parts}. Train a "
        "network of parts that have one with cosim train, or have cosim compile and cosim compare cut this one at its "
        "cells (docs/how-to/backbone.md has both)"
    )


def stays_software(path: Path) -> bool:
    """Tell whether a file holds a network that is evaluated in software alone, a backbone of `cosim backbone`.

    False also for a file that `load_network` refuses.
    """
    return path.suffix != ".npz" and file_format(path) == SOFTWARE_FORMAT


def file_format(path: Path) -> object:
    """Return the format by which a software-only network's file is told, None without one or if it is unreadable."""
    if not is_file(path) or path.stat().st_size == 0:
        return None
    try:
        if path.suffix == ".npz":
            meta = parse_json(str(read_arrays(path, "", ("meta",)).get("meta", "")), "", "", finite=False)
        else:
            found = read_torch(path, "")
            meta = found.get("meta") if isinstance(found, dict) else None
    except InputError:
        return None
    return meta.get("format") if isinstance(meta, dict) else None
