"""The cache of measured device tables: a file for each kind of device, condition, card and version of the simulator.

A table that is absent, damaged or of other content is measured anew. It is not kept where the cache cannot be written,
or at a temperature that is not a whole degree, because that is a single chip's own.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.arrays import check_forms
from cosim.base.errors import InputError
from cosim.base.seal import seal_npz
from cosim.base.store import cached_files, find_kept, keep_in_cache, kept_arrays
from cosim.engines.batch.device_fit import FAST, STATIC, MeasurementSetup, fit_table, top_voltage
from cosim.engines.batch.device_tables import (
    DRAIN_COLUMNS,
    FOUR_TERMINAL_COLUMNS,
    GATE_COLUMNS,
    RESPONSES,
    DeviceKind,
    DeviceTable,
    FourTerminalTable,
    GridAxis,
    ThreeTerminalTable,
)
from cosim.engines.table import NGSPICE, simulator_named
from cosim.technology.foundry import Size, device_cards
from cosim.technology.types import Technology

FORMAT = 2  # raised whenever a table of the same device comes out differently
Progress = Callable[[str], None]
_Stored = Mapping[str, NDArray[Any]]
_REPAIR = "it is measured anew"
_THREE_TERMINAL = {
    "provenance": "text", "x": "real 3", "y": "real 3", "gate": f"real x {GATE_COLUMNS} 4",
    "drain": f"real y {DRAIN_COLUMNS} 4", "responses": f"real x {RESPONSES} 4", "c_gd": "real", "error": "real",
}  # fmt: skip


_FOUR_TERMINAL = {
    "provenance": "text", "gate": "real 3", "source": "real 3", "drain": "real 3",
    "values": f"real gate source drain {FOUR_TERMINAL_COLUMNS}", "thermal": "real", "shift": "real", "error": "real",
}  # fmt: skip


def device_tables(
    technology: Technology,
    kinds: Iterable[DeviceKind],
    progress: Progress = lambda text: None,
    simulator: str = NGSPICE,
) -> dict[DeviceKind, DeviceTable]:
    """Return the batched engine's table of each kind of device, from the cache or newly measured.

    Tables are for the technology's corner, temperature and supply. progress: is told what is measured, and of a cache
    that cannot be written. Raises InputError when the technology's library lacks a device or a size, SimulationError
    when the simulator fails on one, MissingToolError when a table must be measured and the simulator is missing.
    """
    setup = MeasurementSetup(technology, simulator_named(simulator))
    version = f"{simulator}-{setup.simulator.describe(technology).version}"
    found: dict[DeviceKind, DeviceTable] = {}
    for kind in dict.fromkeys(kinds):
        provenance = _provenance(technology, kind, version)
        name = table_name(provenance)
        table = find_kept(cached_files(name), partial(load_table, provenance=provenance), progress)
        if table is None:
            progress(f"device table: {technology.name}, {_format_kind(kind)}")
            table = found[kind] = fit_table(setup, kind)
            if not float(technology.celsius).is_integer():
                continue  # a chip's own temperature, which no other chip has
            keep_in_cache(name, table_bytes(table, provenance), "device table", progress)
        found[kind] = table
    return found


def table_name(provenance: str) -> str:
    """Return the name of a device table's file in the cache; provenance: the JSON of all that the table depends on."""
    name = json.loads(provenance)["technology"]
    return f"tables/{name}.{hashlib.sha256(provenance.encode()).hexdigest()[:16]}.npz"


def table_bytes(table: DeviceTable, provenance: str) -> bytes:
    """Return the content of a device table's file, with a checksum; equal tables give equal bytes."""
    arrays: dict[str, NDArray[Any]] = {"provenance": np.array(provenance)}
    for name, value in vars(table).items():
        match value:
            case GridAxis(start, step, count):
                arrays[name] = np.array([start, step, count])
            case _:
                arrays[name] = np.asarray(value)
    if isinstance(table, FourTerminalTable):
        arrays["values"] = table.values.astype(np.float32)
    return seal_npz(arrays, provenance)


def load_table(path: Path, provenance: str) -> DeviceTable:
    """Load the batched engine's device table in a file.

    Raises InputError where the file is damaged or has another provenance.
    """
    if (stored := kept_arrays(path, provenance)) is None:
        raise InputError(f"{path}: holds no device table of this provenance; {_REPAIR}")
    check_forms(stored, _FOUR_TERMINAL if "values" in stored else _THREE_TERMINAL, str(path), _REPAIR)
    try:
        return _four_terminal(stored) if "values" in stored else _three_terminal(stored)
    except ValueError:
        raise InputError(f"{path}: must hold axes that rise, and finite numbers; {_REPAIR}") from None


def _three_terminal(stored: _Stored) -> ThreeTerminalTable:
    x, y = _axis(stored["x"], len(stored["gate"]) + 1), _axis(stored["y"], len(stored["drain"]) + 1)
    gate, drain, responses = (_finite(stored[name]) for name in ("gate", "drain", "responses"))
    c_gd, error = (float(_finite(stored[name])) for name in ("c_gd", "error"))
    return ThreeTerminalTable(x, y, gate, drain, responses, c_gd, error)


def _four_terminal(stored: _Stored) -> FourTerminalTable:
    values, names = _finite(stored["values"]), ("gate", "source", "drain")
    gate, source, drain = (_axis(stored[name], values.shape[k] - 1) for k, name in enumerate(names))
    thermal, shift, error = (float(_finite(stored[name])) for name in ("thermal", "shift", "error"))
    return FourTerminalTable(gate, source, drain, values, thermal, shift, error)


def _axis(stored: NDArray[Any], count: int) -> GridAxis:
    """Return an axis of a device table as the batched engine keeps it.

    Raises ValueError where it is not of `count` points that rise.
    """
    start, step, stored_count = _finite(stored).tolist()
    if stored_count != count or count < 1 or step <= 0:
        raise ValueError
    return GridAxis(start, step, count)


def _finite(stored: NDArray[Any]) -> NDArray[np.float64]:
    """Return an array of a device table that the batched engine kept, in double precision.

    Raises ValueError where it is not finite.
    """
    if not np.isfinite(stored).all():
        raise ValueError
    return stored.astype(np.float64)


def _provenance(technology: Technology, kind: DeviceKind, version: str) -> str:
    """Return everything that a device table depends on, as JSON: process, condition, simulator, sizes and cards."""
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
            for card in device_cards(technology, sizes)
        ],
    }
    return json.dumps(content, sort_keys=True)


def _format_kind(kind: DeviceKind) -> str:
    sizes = [(kind.w, kind.l), *([kind.cascode] if kind.cascode else [])]
    drawn = " under ".join(f"{w * 1e6:.6g}u/{l * 1e6:.6g}u" for w, l in sizes)  # noqa: E741
    return f"{kind.polarity} {drawn}{', four-terminal' if kind.four_terminal else ''}"
