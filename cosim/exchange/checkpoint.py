"""Trained networks on disk: model.pt (torch) and the same arrays as .npz (no torch needed).

Both hold named arrays and JSON `meta` with `format` "cosim-checkpoint" and a `version`. The version is 1; 2 for a
network with late sources; 3 for one whose alphaCMRUs store values on a grid, so that an earlier cosim refuses it. A
bare state dict (arrays without meta) loads as well, see cosim.exchange.state_dict. Nothing in a file is ever executed.
"""

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from cosim.base.arrays import memory_limit, memory_of, read_arrays, read_torch, tensor_array, torch_bytes
from cosim.base.errors import InputError, NetworkError
from cosim.base.text import check_plain, is_file, listed, parse_json, shown, shown_name, shown_path, typed
from cosim.base.write import write_atomically
from cosim.exchange.state_dict import check_is_network, network_from_state_dict, unwrapped
from cosim.network.layers import AndLayer, EpsilonLayer, Layer, ReluLayer, SignedLayer
from cosim.network.software_only import SOFTWARE_FORMAT, file_format, refusal
from cosim.network.types import (
    FORMAT,
    RANGES,
    DelayedSignal,
    InputEncoding,
    Network,
    Readout,
    check_network,
    format_version,
    network_to_arrays,
)
from cosim.units.table import recurrent_kinds

ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time stamp, so that equal networks give equal bytes
_REPAIR = "export the network again"
_OTHERS = (
    ".md", ".txt", ".py", ".json", ".toml", ".csv", ".html", ".ipynb", ".png", ".yaml", ".yml", ".onnx",
    ".safetensors", ".h5", ".npy",
)  # fmt: skip
_NETLISTS = (".sp", ".cir", ".spice", ".net", ".ckt")
_NOT_A_CHECKPOINT = "give a checkpoint, or a state dict saved with torch.save(network.state_dict(), path)"


@dataclass(frozen=True)
class _LayerMeta:
    kind: str
    name: str
    sources: tuple[str, ...]
    epsilon: float | None = None
    levels: int | None = None
    ends: tuple[int, int] | None = None


@dataclass(frozen=True)
class _ReadoutMeta:
    sources: tuple[str, ...]
    pooling: str = "mean"


@dataclass(frozen=True)
class _Meta:
    task: str
    labels: tuple[str, ...]
    weight_grid: float | None
    ramp_steps: int | None
    layers: tuple[_LayerMeta, ...]
    readout: _ReadoutMeta
    history: dict[str, Any]
    input_levels: int | None = None
    late: dict[str, DelayedSignal] = field(default_factory=dict[str, DelayedSignal])
    regression: bool = False


def load_network(path: str | os.PathLike[str]) -> Network:
    """Load and check the network in a checkpoint file or a bare state dict, .pt or .npz.

    Its `name` is the file's name without suffix, with escapes for characters that cannot be printed. Raises InputError
    when the file cannot be read, NetworkError when it holds no sound network, MappingError for a model that stays
    software, MissingToolError for a .pt without torch installed; each names the file and the repair.
    """
    path = Path(path)
    origin = shown_path(path)
    arrays, meta = _read(path, origin)
    if meta is None:
        network = network_from_state_dict(arrays, origin)
    else:
        network = network_from_arrays(arrays, meta, origin)
    return replace(network, name=shown_path(Path(path.stem)))


def is_written_here(path: Path) -> bool:
    """Tell whether a file is a checkpoint that cosim has written, of a network or of a model that stays software.

    State dicts of other software are not. Raises MissingToolError for a .pt without torch.
    """
    return file_format(path) in (FORMAT, SOFTWARE_FORMAT)


def save_checkpoint(path: str | os.PathLike[str], network: Network, extra: Mapping[str, Any] | None = None) -> None:
    """Write a network atomically to a checkpoint file, .pt or .npz by its suffix.

    extra: JSON-able entries that are added to the history of the written network. Equal networks give equal bytes.
    Raises NetworkError for an unsound network, InputError for another suffix or a folder that does not exist.
    """
    path = Path(path)
    network = replace(network, history={**network.history, **(extra or {})})
    write_atomically(path, checkpoint_bytes(network, path.suffix, str(path)))


def checkpoint_bytes(network: Network, suffix: str, origin: str) -> bytes:
    """Return the content of a network's checkpoint file, .pt or .npz by `suffix`.

    Raises the errors of `save_checkpoint`, naming `origin`.
    """
    check_network(network, origin)
    arrays, meta = network_to_arrays(network)
    if suffix == ".pt":
        import torch

        return torch_bytes({name: torch.from_numpy(array.copy()) for name, array in arrays.items()}, meta)
    if suffix == ".npz":
        return npz_bytes({**arrays, "meta": np.array(json.dumps(meta, sort_keys=True))})
    raise InputError(f"{origin}: a checkpoint must be named .pt or .npz, not {suffix or 'without suffix'!r}")


def network_from_arrays(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], origin: str) -> Network:
    """Return the checked network of a checkpoint file's named arrays and JSON meta.

    Raises InputError for meta of a wrong form, NetworkError for an unsound network; both name `origin` and the key.
    """
    version = format_version(meta.get("layers"), arrays, late=bool(meta.get("late")))
    for key, wanted, repair in (("format", FORMAT, "train it with cosim train"), ("version", version, "use its cosim")):
        if meta.get(key) != wanted:
            raise NetworkError(f"{origin}: meta.{key} must be {wanted!r}, not {shown(meta.get(key))}; {repair}")
    plain = check_plain(dict(meta), f"{origin}: meta", _REPAIR, finite=False)  # a figure of the history may be nan
    known = typed(plain, _Meta, origin, _REPAIR, "meta")
    for part in ("settings", "figures"):
        if not isinstance(known.history.get(part, {}), dict):
            raise NetworkError(f"{origin}: meta.history.{part} must be a table; {_REPAIR}, or leave its history out")
    entries = _Arrays(arrays, origin)
    layers = tuple(_layer(entries, i, layer, f"{origin}: meta.layers[{i}]") for i, layer in enumerate(known.layers))
    pooling: Any = known.readout.pooling  # held against those that there are by check_network
    network = Network(
        InputEncoding(entries.need("input.offset"), entries.need("input.scale"), known.ramp_steps, known.input_levels),
        layers,
        Readout(known.readout.sources, entries.need("readout.weight"), entries.need("readout.bias"), pooling),
        known.task,
        known.labels,
        known.weight_grid,
        known.history,
        {name.removeprefix(RANGES): array for name, array in arrays.items() if name.startswith(RANGES)},
        known.late,
        known.regression,
    )
    entries.check_all_read()
    return check_network(network, origin)


class _Arrays:
    """The arrays of one checkpoint file by name, with errors that name the file and the key."""

    def __init__(self, arrays: Mapping[str, np.ndarray], origin: str) -> None:
        self._arrays, self._origin = arrays, origin
        self._read: set[str] = set()

    def get(self, key: str) -> np.ndarray | None:
        """Return the array of a key in the file, or None where there is none."""
        self._read.add(key)
        return self._arrays.get(key)

    def need(self, key: str) -> np.ndarray:
        """Return the array of a key; raises NetworkError where the file has none."""
        if (array := self.get(key)) is None:
            raise NetworkError(f"{self._origin}: array {key!r} is missing; the file has {listed(self._arrays)}")
        return array

    def check_all_read(self) -> None:
        """Raise NetworkError for an array that no layer has read, such as an optional one with a misspelt name."""
        strange = sorted(key for key in self._arrays if key not in self._read and not key.startswith(RANGES))
        if strange:
            raise NetworkError(
                f"{self._origin}: array {strange[0]!r} belongs to no layer; known here are {listed(self._read)} and "
                f"{RANGES}NAME; rename or remove it"
            )


def layer_kinds() -> dict[str, type[Layer]]:
    """Return the kinds of layer that a checkpoint file may hold, by their names there."""
    return {kind.kind: kind for kind in (ReluLayer, AndLayer, *recurrent_kinds())}


def _layer(arrays: _Arrays, i: int, meta: _LayerMeta, where: str) -> Layer:
    kinds = layer_kinds()
    if meta.kind not in kinds:
        raise NetworkError(f"{where}.kind must be one of {', '.join(kinds)}, not {shown(meta.kind)}")
    kind = kinds[meta.kind]
    needed = {field.name: field.default is MISSING for field in fields(kind)}
    values: dict[str, Any] = {}
    for name in sorted(kind.array_fields(), key=lambda name: not needed[name]):
        key = f"layers.{i}.{name}"
        values[name] = arrays.need(key) if needed[name] else arrays.get(key)
    if issubclass(kind, EpsilonLayer):
        if meta.epsilon is None:
            raise NetworkError(f"{where} must have the field epsilon; {_REPAIR}")
        values["epsilon"] = meta.epsilon
    for name, value in (("levels", meta.levels), ("ends", meta.ends)):
        if issubclass(kind, SignedLayer):
            values[name] = value
        elif value is not None:
            raise NetworkError(
                f"{where}.{name} is for layers of kind {SignedLayer.kind}, not {shown(meta.kind)}; leave it out"
            )
    return kind(meta.name, meta.sources, **values)


def _read(path: Path, origin: str) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    if path.is_dir():
        inside = sorted(one.name for one in path.iterdir() if one.suffix in (".pt", ".npz") and one.is_file())
        repair = f"give one of the files inside it: {listed(inside)}" if inside else "this one holds no .pt or .npz"
        raise InputError(f"{origin}: a checkpoint file is needed, not a folder; {repair}")
    if not is_file(path):
        name = path.name if path.suffix in (".pt", ".npz") else "model.pt"
        raise InputError(
            f"{origin}: no such file; give a trained network, for example of `cosim train digits -o {shown_name(name)}`"
        )
    if path.suffix in _NETLISTS:
        raise InputError(
            f"{origin}: a trained network is needed, not a netlist; cosim datasheet measures netlists over conditions "
            "and on chips"
        )
    if path.suffix in _OTHERS:
        raise InputError(f"{origin}: a trained network is needed, not a {path.suffix} file; {_NOT_A_CHECKPOINT}")
    if path.stat().st_size == 0:
        raise InputError(f"{origin}: a checkpoint is needed, but the file is empty; train it again")
    return _read_npz(path, origin) if path.suffix == ".npz" else _read_torch(path, origin)


def _read_npz(path: Path, origin: str) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    found = read_arrays(path, _NOT_A_CHECKPOINT)
    text = found.pop("meta", None)
    check_is_network(found, origin)
    for name, array in found.items():
        if array.dtype.kind not in "fiu":
            raise NetworkError(f"{origin}: {name} must hold real numbers, not {array.dtype}")
    meta = None
    if text is not None:
        meta = parse_json(str(text) if text.shape == () else "", f"{origin}: meta", _REPAIR, finite=False)
        if not isinstance(meta, dict):
            raise NetworkError(f"{origin}: meta must be a JSON object, not {shown(meta)}; {_REPAIR}")
    with np.errstate(over="ignore"):  # of numbers longer than 64 bits; what is infinite then is refused as that
        return {name: array.astype(np.float64) for name, array in found.items()}, meta


def _read_torch(path: Path, origin: str) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    found = read_torch(path, _NOT_A_CHECKPOINT)
    if not isinstance(found, dict) or not found:
        raise InputError(
            f"{origin}: a checkpoint or a state dict is needed, not a {type(found).__name__}; {_NOT_A_CHECKPOINT}"
        )
    meta, arrays = (found["meta"], found.get("arrays")) if "meta" in found else (None, unwrapped(found))
    if not isinstance(meta, dict | None) or not isinstance(arrays, dict):
        raise NetworkError(f"{origin}: a checkpoint holds 'meta' and 'arrays', not {listed(found)}; {_REPAIR}")
    if meta is not None and meta.get("format") == SOFTWARE_FORMAT:
        raise refusal(meta, origin)
    check_is_network(arrays, origin)
    left = memory_limit(path.stat().st_size)
    numbers = {}
    for name, value in arrays.items():
        if not hasattr(value, "detach"):
            raise NetworkError(
                f"{origin}: {name} must be a tensor, not a {type(value).__name__}; save a plain state dict"
            )
        numbers[name] = tensor_array(value, f"{origin}: {name}", left)
        left -= numbers[name].nbytes
    return numbers, meta


def npz_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays, such as those of a network's checkpoint, as the bytes of an .npz; equal arrays give equal bytes.

    They are compressed unless `read_arrays` would then refuse the file as too large for its size.
    """
    small = _zipped(arrays, zipfile.ZIP_DEFLATED)
    taken = sum(memory_of(array.itemsize, array.size) for array in map(np.asanyarray, arrays.values()))
    return small if taken <= memory_limit(len(small)) else _zipped(arrays, zipfile.ZIP_STORED)


def _zipped(arrays: Mapping[str, np.ndarray], method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asanyarray(arrays[name]), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", ZIP_EPOCH), member.getvalue(), method)
    return buffer.getvalue()
