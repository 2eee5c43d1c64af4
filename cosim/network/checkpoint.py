"""Trained networks on disk: model.pt (torch) and the same arrays as .npz (no torch needed).

Both hold named arrays plus JSON `meta` with `format` "cosim-checkpoint" and `version` 1. A bare state dict (arrays
without meta) loads as well, see cosim.network.state_dict. Nothing in a file is ever executed.
"""

import io
import json
import os
import pickle
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cosim.errors import InputError, MissingToolError, NetworkError
from cosim.files.write import write_atomically
from cosim.network.state_dict import network_from_state_dict
from cosim.network.types import (
    FirstQuadrantLayer,
    InputEncoding,
    Layer,
    Network,
    Readout,
    ReluLayer,
    SignedLayer,
    check_network,
    layer_arrays,
)

FORMAT = "cosim-checkpoint"
VERSION = 1
RANGES = "ranges."  # prefix of the arrays of Network.state_ranges, optional
KINDS: dict[str, type[Layer]] = {"relu": ReluLayer, "first-quadrant": FirstQuadrantLayer, "signed": SignedLayer}
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time stamp, so that equal networks give equal bytes


def load_network(path: str | os.PathLike[str]) -> Network:
    """The checked network in a .pt or .npz file.

    Raises InputError when the file cannot be read, NetworkError when what it holds is no sound network, and
    MissingToolError for a .pt without torch installed; each names the file and the repair.
    """
    path = Path(path)
    arrays, meta = _read(path)
    if meta is None:
        return network_from_state_dict(arrays, str(path))
    return network_from_arrays(arrays, meta, str(path))


def save_checkpoint(path: str | os.PathLike[str], network: Network, extra: Mapping[str, Any] | None = None) -> None:
    """Write a network atomically; `extra` (JSON-able) joins its history. The suffix, .pt or .npz, chooses the form.

    Equal networks give equal bytes. Raises NetworkError for an unsound network, InputError for another suffix or a
    folder that does not exist.
    """
    path = Path(path)
    check_network(network, str(path))
    arrays, meta = network_to_arrays(replace(network, history={**network.history, **(extra or {})}))
    if path.suffix == ".pt":
        content = _torch_bytes(arrays, meta)
    elif path.suffix == ".npz":
        content = _npz_bytes({**arrays, "meta": np.array(json.dumps(meta, sort_keys=True))})
    else:
        raise InputError(f"{path}: a checkpoint must be named .pt or .npz, not {path.suffix or 'without suffix'!r}")
    write_atomically(path, content)


def network_to_arrays(network: Network) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Named float64 arrays and the JSON meta that together hold a network; the inverse of `network_from_arrays`."""
    arrays = {"input.offset": network.encoding.offset, "input.scale": network.encoding.scale}
    layers = []
    for i, layer in enumerate(network.layers):
        arrays |= {f"layers.{i}.{name}": array for name, array in layer_arrays(layer).items()}
        kind = next(kind for kind, cls in KINDS.items() if isinstance(layer, cls))
        entry: dict[str, Any] = {"name": layer.name, "kind": kind, "sources": list(layer.sources)}
        layers.append(entry if isinstance(layer, ReluLayer) else {**entry, "epsilon": layer.epsilon})
    arrays |= {f"readout.{name}": array for name, array in layer_arrays(network.readout).items()}
    arrays |= {f"{RANGES}{name}": array for name, array in network.state_ranges.items()}
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "task": network.task,
        "labels": list(network.labels),
        "weight_grid": network.weight_grid,
        "ramp_steps": network.encoding.ramp_steps,
        "input_levels": network.encoding.levels,
        "layers": layers,
        "readout": {"sources": list(network.readout.sources), "pooling": network.readout.pooling},
        "history": dict(network.history),
    }
    return {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in arrays.items()}, meta


def network_from_arrays(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], origin: str) -> Network:
    """The network in named arrays and meta; raises NetworkError naming `origin` and the key."""
    if meta.get("format") != FORMAT:
        raise NetworkError(
            f"{origin}: meta.format must be {FORMAT!r}, not {meta.get('format')!r}; train it with cosim train"
        )
    if meta.get("version") != VERSION:
        raise NetworkError(
            f"{origin}: meta.version must be {VERSION}, not {meta.get('version')!r}: use the cosim that wrote it"
        )
    entries = _Entries(arrays, {"input_levels": None, **meta}, origin)
    layers = tuple(entries.layer(i, entry) for i, entry in enumerate(entries.meta("layers", list)))
    readout = entries.meta("readout", dict)
    network = Network(
        InputEncoding(
            entries.array("input.offset"),
            entries.array("input.scale"),
            entries.meta("ramp_steps", int | None),
            entries.meta("input_levels", int | None),
        ),
        layers,
        Readout(
            _sources(readout, f"{origin}: meta.readout"),
            entries.array("readout.weight"),
            entries.array("readout.bias"),
            readout.get("pooling", "mean"),
        ),
        entries.meta("task", str),
        tuple(str(label) for label in entries.meta("labels", list)),
        entries.meta("weight_grid", float | int | None),
        entries.meta("history", dict),
        {name.removeprefix(RANGES): array for name, array in arrays.items() if name.startswith(RANGES)},
    )
    entries.check_all_read()
    return check_network(network, origin)


class _Entries:
    """Typed access to one file's arrays and meta, so that every complaint names the file and the key."""

    def __init__(self, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], origin: str) -> None:
        self._arrays, self._meta, self._origin = arrays, meta, origin
        self._read: set[str] = set()

    def meta(self, key: str, kind: Any) -> Any:
        if key not in self._meta or not isinstance(self._meta[key], kind):
            wanted = getattr(kind, "__name__", str(kind))
            found = repr(self._meta[key]) if key in self._meta else "nothing"
            raise NetworkError(f"{self._origin}: meta.{key} must be a {wanted}, not {found}; export the network again")
        return self._meta[key]

    def array(self, key: str) -> np.ndarray:
        if key not in self._arrays:
            raise NetworkError(
                f"{self._origin}: array {key!r} is missing; the file has {', '.join(sorted(self._arrays))}"
            )
        self._read.add(key)
        return self._arrays[key]

    def check_all_read(self) -> None:
        """Refuse arrays that mean nothing: a misspelt optional one would be another network."""
        strange = sorted(key for key in self._arrays if key not in self._read and not key.startswith(RANGES))
        if strange:
            raise NetworkError(
                f"{self._origin}: array {strange[0]!r} belongs to no layer; known here are "
                f"{', '.join(sorted(self._read))} and {RANGES}NAME; rename or remove it"
            )

    def layer(self, i: int, entry: Any) -> Layer:
        where = f"meta.layers[{i}]"
        kind = entry.get("kind") if isinstance(entry, dict) else entry
        if not isinstance(entry, dict) or not isinstance(kind, str) or kind not in KINDS:
            raise NetworkError(f"{self._origin}: {where}.kind must be one of {', '.join(KINDS)}, not {kind!r}")
        optional = {"signed": ("weight_beta", "weight_alpha")}.get(kind, ())
        names = {"relu": (), "first-quadrant": ("beta_lo", "beta_hi", "alpha"), "signed": ("bias_beta", "alpha")}[kind]
        fields = {name: self.array(f"layers.{i}.{name}") for name in ("weight", "bias", *names)}
        fields |= {name: self.array(key) for name in optional if (key := f"layers.{i}.{name}") in self._arrays}
        cls: Any = KINDS[kind]
        settings = (
            {} if kind == "relu" else {"epsilon": _number(entry.get("epsilon"), self._origin, f"{where}.epsilon")}
        )
        return cls(
            name=str(entry.get("name", f"layer{i}")),
            sources=_sources(entry, f"{self._origin}: {where}"),
            **fields,
            **settings,
        )


def _sources(entry: Mapping[str, Any], where: str) -> tuple[str, ...]:
    sources = entry.get("sources")
    if not isinstance(sources, list | tuple) or not all(isinstance(source, str) for source in sources):
        raise NetworkError(f"{where}.sources must be a list of layer names, not {sources!r}; export the network again")
    return tuple(sources)


def _number(value: Any, origin: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NetworkError(f"{origin}: {where} must be a number, not {value!r}; export the network again")
    try:
        return float(value)
    except OverflowError:
        raise NetworkError(f"{origin}: {where} must be a number of a sensible size; export the network again") from None


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    if path.is_dir():
        raise InputError(f"{path}: a checkpoint file is needed, not a folder; give the model.pt inside it")
    if not path.is_file():
        raise InputError(f"{path}: no such file; train one with `cosim train digits -o {path.name}`")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: a checkpoint is needed, but the file is empty; train it again")
    return _read_npz(path) if path.suffix == ".npz" else _read_torch(path)


def _read_npz(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, TypeError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"{path}: an .npz checkpoint is needed, but it is cut off or something else ({error})"
        ) from error
    if "meta" not in found:
        return _floats(found, path), None
    text = found.pop("meta")
    try:
        meta = json.loads(str(text))
    except json.JSONDecodeError as error:
        raise NetworkError(f"{path}: meta must be one JSON text ({error}); export the network again") from error
    if not isinstance(meta, dict):
        raise NetworkError(f"{path}: meta must be a JSON object, not {meta!r}; export the network again")
    return _floats(found, path), meta


def _read_torch(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    try:
        import torch
    except ImportError as error:
        raise MissingToolError(
            f"{path}: reading a .pt needs torch; pip install 'cosim-analog[train]', or save it as .npz where torch is"
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about foreign pickle protocols; such a file is refused below anyway
            found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{path}: only tensors and plain values are loaded, but this file is no checkpoint or asks to run code; "
            "save a state dict with torch.save(network.state_dict(), path)"
        ) from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
        raise InputError(
            f"{path}: a checkpoint is needed, but it is cut off or something else; train it again"
        ) from error
    if not isinstance(found, dict) or not found:
        raise InputError(
            f"{path}: a checkpoint or a state dict is needed, not a {type(found).__name__}; save a state dict"
        )
    if "meta" not in found:
        return _floats(found, path), None
    meta, arrays = found["meta"], found.get("arrays")
    if not isinstance(meta, dict) or not isinstance(arrays, dict):
        raise NetworkError(
            f"{path}: a checkpoint holds 'meta' and 'arrays', not {', '.join(map(str, found))}; export it again"
        )
    return _floats(arrays, path), meta


def _floats(found: Mapping[Any, Any], path: Path) -> dict[str, np.ndarray]:
    arrays = {}
    for name, value in found.items():
        if not isinstance(value, np.ndarray):
            if not hasattr(value, "detach"):
                raise NetworkError(
                    f"{path}: {name} must be a tensor, not a {type(value).__name__}; save a plain state dict"
                )
            value = _tensor_array(value, f"{path}: {name}")
        if value.dtype.kind not in "fiu":
            raise NetworkError(f"{path}: {name} must hold real numbers, not {value.dtype}")
        arrays[str(name)] = value.astype(np.float64)
    return arrays


def _tensor_array(tensor: Any, where: str) -> np.ndarray:
    """A tensor's numbers; raises NetworkError where it holds none (`meta`), or no plain real ones."""
    import torch

    if tensor.layout != torch.strided or tensor.is_complex() or tensor.device.type != "cpu":
        layout, dtype = (str(word).removeprefix("torch.") for word in (tensor.layout, tensor.dtype))
        raise NetworkError(
            f"{where} must be a dense tensor of real numbers on the CPU, not {layout} of {dtype} on {tensor.device}; "
            "save it as one"
        )
    return tensor.detach().double().numpy()


def _torch_bytes(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> bytes:
    import torch

    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    buffer = io.BytesIO()
    # A JSON round trip leaves only plain values, which is all that weights_only=True accepts.
    torch.save({"meta": json.loads(json.dumps(meta, sort_keys=True)), "arrays": tensors}, buffer)
    return buffer.getvalue()


def _npz_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asanyarray(arrays[name]), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", ZIP_EPOCH), member.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
