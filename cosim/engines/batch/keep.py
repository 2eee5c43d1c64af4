"""Tables of devices that are measured once: a file for each kind, condition, card and version, in the cache's folder.

What is absent, damaged or of another content is measured anew; where it cannot be written, or at a temperature that is
no whole degree, as one chip's own is, a table serves once.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from zlib import error as ZlibError

import numpy as np
from numpy.typing import NDArray

from cosim.engines.batch.fit import fit_table, top_voltage
from cosim.engines.batch.sweeps import FAST, STATIC, Laboratory
from cosim.engines.batch.tables import (
    DRAIN_COLUMNS,
    FLOAT_COLUMNS,
    GATE_COLUMNS,
    RESPONSES,
    Axis,
    Float,
    Kind,
    Table,
    Tied,
)
from cosim.engines.table import NGSPICE, simulator_named
from cosim.errors import InputError
from cosim.files.cache import cache_folder
from cosim.files.write import make_folder, write_atomically
from cosim.technology.devices import Size, device_cards
from cosim.technology.types import Technology

FORMAT = 2  # raised whenever a table of the same device comes out differently
Progress = Callable[[str], None]
_Stored = Mapping[str, NDArray[np.generic]]
_UNREADABLE = (OSError, EOFError, KeyError, ValueError, TypeError, zipfile.BadZipFile, ZlibError, NotImplementedError)


def device_tables(
    technology: Technology,
    kinds: Iterable[Kind],
    progress: Progress = lambda text: None,
    simulator: str = NGSPICE,
) -> dict[Kind, Table]:
    """The tables of these kinds at the technology's corner, temperature and supply: kept ones, or measured now.

    `progress` hears what is measured, and of a cache that cannot be written. Raises InputError when the technology's
    library does not have a device or a size, SimulationError when the simulator fails on one, MissingToolError when one
    must be measured and there is no simulator.
    """
    laboratory = Laboratory(technology, simulator_named(simulator))
    version = f"{simulator}-{laboratory.simulator.describe(technology).version}"
    found: dict[Kind, Table] = {}
    for kind in dict.fromkeys(kinds):
        provenance = _provenance(technology, kind, version)
        path = table_path(provenance)
        table = load_table(path, provenance)
        if table is None:
            progress(f"device table: {technology.name}, {_format_kind(kind)}")
            table = found[kind] = fit_table(laboratory, kind)
            if not float(technology.celsius).is_integer():
                continue  # a chip's own temperature, which no other chip has
            try:
                make_folder(path.parent)
                write_atomically(path, table_bytes(table, provenance))
            except InputError as error:
                progress(f"device table not kept: {error}, by setting XDG_CACHE_HOME")
        found[kind] = table
    return found


def table_path(provenance: str) -> Path:
    """Where the table of this provenance is kept."""
    name = json.loads(provenance)["technology"]
    return cache_folder() / "tables" / f"{name}.{hashlib.sha256(provenance.encode()).hexdigest()[:16]}.npz"


def table_bytes(table: Table, provenance: str) -> bytes:
    """A table as a file, the same bytes for the same table."""
    arrays: dict[str, NDArray[np.generic]] = {"provenance": np.array(provenance)}
    for name, value in vars(table).items():
        match value:
            case Axis(start, step, count):
                arrays[name] = np.array([start, step, count])
            case _:
                arrays[name] = np.asarray(value)
    if isinstance(table, Float):
        arrays["values"] = table.values.astype(np.float32)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def load_table(path: Path, provenance: str) -> Table | None:
    """The table in a file, or None where there is none that is whole and of this provenance."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        if str(stored["provenance"]) != provenance:
            return None
        table = _float(stored) if "values" in stored else _tied(stored)
    except _UNREADABLE:
        return None
    return table


def _tied(stored: _Stored) -> Tied:
    x, y = _axis(stored["x"]), _axis(stored["y"])
    return Tied(
        x,
        y,
        _array(stored["gate"], (x.count - 1, GATE_COLUMNS, 4)),
        _array(stored["drain"], (y.count - 1, DRAIN_COLUMNS, 4)),
        _array(stored["responses"], (x.count - 1, RESPONSES, 4)),
        float(stored["c_gd"]),
        float(stored["error"]),
    )


def _float(stored: _Stored) -> Float:
    axes = [_axis(stored[name]) for name in ("gate", "source", "drain")]
    values = _array(stored["values"], (*(axis.count + 1 for axis in axes), FLOAT_COLUMNS))
    gate, source, drain = axes
    thermal, shift, error = (float(stored[name]) for name in ("thermal", "shift", "error"))
    return Float(gate, source, drain, values, thermal, shift, error)


def _axis(stored: NDArray[np.generic]) -> Axis:
    start, step, count = stored.tolist()
    return Axis(start, step, int(count))


def _array(stored: NDArray[np.generic], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Raises ValueError where it is not finite or of another shape."""
    found = stored.astype(np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError
    return found


def _provenance(technology: Technology, kind: Kind, version: str) -> str:
    """What a table follows from, as JSON."""
    sizes: list[Size] = [(kind.polarity, kind.w, kind.l)]
    if kind.cascode is not None:
        sizes.append((kind.polarity, *kind.cascode))
    content = {
        "format": FORMAT,
        "technology": technology.name,
        "corner": technology.corner,
        "celsius": technology.celsius,
        "top": top_voltage(technology),
        "simulator": version,
        "tolerances": [asdict(one) for one in (STATIC, FAST)],
        "kind": kind,
        "diffusion": technology.library.diffusion,
        "cards": [
            {"name": card.name, "polarity": card.polarity, "version": card.version, **card.parameters}
            for card in device_cards(technology, sizes).cards
        ],
    }
    return json.dumps(content, sort_keys=True)


def _format_kind(kind: Kind) -> str:
    sizes = [(kind.w, kind.l), *([kind.cascode] if kind.cascode else [])]
    drawn = " under ".join(f"{w * 1e6:.6g}u/{l * 1e6:.6g}u" for w, l in sizes)  # noqa: E741
    return f"{kind.polarity} {drawn}{', source apart' if kind.floating else ''}"
