"""One inference as files: for numpy, for a viewer of analog waveforms, and for a viewer of logic.

waveforms.npz: `time_s`, every vector under its name, states and clocks likewise, and `units`, JSON. waveforms.raw: the
binary format of SPICE 3 as ngspice writes and loads it, doubles point by point (ngspice manual, chapter "Binary raw
file format"). waveforms.vcd: states and clocks as IEEE 1364 value changes.
"""

import json
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.base.seal import seal_npz
from cosim.verbs.simulate.probing import ProbedInference

FILES = ("waveforms.npz", "waveforms.raw", "waveforms.vcd")
_KINDS = {"A": "current", "W": "power", "1": "notype"}
_NANO = 1e9
_FIRST, _CODES = 33, 94  # printable characters, of which value changes make their identifiers


def format_waveforms(recorded: ProbedInference, title: str) -> dict[str, bytes]:
    """Return the content of FILES, name -> bytes; the same waveforms give the same bytes."""
    formats = (format_npz(recorded), format_raw(recorded, title), format_vcd(recorded).encode())
    return dict(zip(FILES, formats, strict=True))


def format_npz(recorded: ProbedInference) -> bytes:
    """Return all vectors by name, with `units`, as the content of an .npz file."""
    digital = {**recorded.states, **recorded.logic}
    units = {"time_s": "s", **recorded.units, **dict.fromkeys(digital, "1")}
    arrays = {"time_s": recorded.time, **recorded.vectors, **digital, "units": np.array(json.dumps(units))}
    return seal_npz(arrays)


def format_raw(recorded: ProbedInference, title: str) -> bytes:
    """Return a raw file of ngspice: time first, then vectors, states and clocks; names as `plain_names` writes them."""
    columns: dict[str, tuple[str, NDArray[np.float64]]] = {"time": ("time", recorded.time)}
    columns |= {name: (_KINDS[recorded.units[name]], values) for name, values in recorded.vectors.items()}
    columns |= {f"{name} s": (_KINDS["1"], values.astype(float)) for name, values in recorded.states.items()}
    columns |= {name: (_KINDS["1"], values.astype(float)) for name, values in recorded.logic.items()}
    names = plain_names(tuple(columns))
    lines = [
        f"Title: {_one_line(title)}",
        "Date: none",
        "Plotname: Transient Analysis",
        "Flags: real",
        f"No. Variables: {len(columns)}",
        f"No. Points: {len(recorded.time)}",
        "Variables:",
        *(f"\t{k}\t{names[name]}\t{kind}" for k, (name, (kind, _)) in enumerate(columns.items())),
        "Binary:",
    ]
    points = np.stack([values for _, values in columns.values()], axis=1)
    return ("\n".join(lines) + "\n").encode("ascii") + points.astype("<f8").tobytes()


def format_vcd(recorded: ProbedInference) -> str:
    """Return a VCD file with states and clocks in steps of a nanosecond, each change once."""
    signals = {**recorded.logic, **recorded.states}
    names = plain_names(tuple(signals))
    codes = {name: _code(k) for k, name in enumerate(signals)}
    widths = {name: max(1, int(values.max(initial=0)).bit_length()) for name, values in signals.items()}
    lines = ["$timescale 1 ns $end", "$scope module network $end"]
    lines += [f"$var wire {widths[name]} {codes[name]} {names[name]} $end" for name in signals]
    lines += ["$upscope $end", "$enddefinitions $end"]
    ticks = np.rint(_NANO * recorded.time).astype(np.int64)
    changes: dict[int, list[str]] = {}
    for name, values in signals.items():
        turns = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()]
        for turn in turns:
            changes.setdefault(int(ticks[turn]), []).append(_value(int(values[turn]), widths[name], codes[name]))
    for tick in sorted(changes):
        lines += [f"#{tick}", *changes[tick]]
    return "\n".join([*lines, f"#{int(ticks[-1])}", ""])


def plain_names(names: Sequence[str]) -> Mapping[str, str]:
    """Return names in letters, digits and _, as ngspice can take them in an expression: `layer1.weight[0,3]` is
    `layer1_weight_0_3`; those that would be one name are numbered."""
    found: dict[str, str] = {}
    used: set[str] = set()
    for name in names:
        stem = plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "vector"
        count = 1
        while plain in used:
            count += 1
            plain = f"{stem}_{count}"
        used.add(plain)
        found[name] = plain
    return found


def _value(value: int, width: int, code: str) -> str:
    return f"{value}{code}" if width == 1 else f"b{value:b} {code}"


def _code(number: int) -> str:
    """Return the short identifier of a number: !, ", ... then two characters."""
    code = chr(_FIRST + number % _CODES)
    return code if number < _CODES else _code(number // _CODES - 1) + code


def _one_line(text: str) -> str:
    return " ".join(ascii(text)[1:-1].split())
