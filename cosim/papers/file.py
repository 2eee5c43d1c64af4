"""Backbones on disk: a .pt with JSON `meta`, format "cosim-software", and the tensors of the state dict.

Equal models give equal bytes; nothing in a file is ever executed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from cosim.base.arrays import read_torch, torch_bytes
from cosim.base.errors import InputError
from cosim.base.text import check_plain, listed, shown, shown_path, typed
from cosim.base.write import write_atomically
from cosim.network.software_only import SOFTWARE_FORMAT
from cosim.papers.backbone import Backbone
from cosim.papers.shape import BackboneShape, check_shape, count_parameters

VERSION, LEVELS_VERSION = 1, 2  # plain, with levels, which an earlier cosim would not see
_REPAIR = "train it again with cosim backbone"
Plain = dict[str, object]  # JSON
_BYTES = 4  # of a number, at least
_TYPES = (torch.float32, torch.float64)


@dataclass(frozen=True)
class Model:
    """A trained backbone, with what it was trained for and how; labels: of its outputs, empty for a regression."""

    backbone: Backbone
    task: str
    labels: tuple[str, ...]
    epsilon: float
    history: Plain = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class _Meta:
    format: str
    version: int
    shape: BackboneShape
    task: str
    labels: tuple[str, ...]
    epsilon: float
    history: Plain


def model_bytes(model: Model) -> bytes:
    """Return the content of a trained backbone's file."""
    meta = {
        "format": SOFTWARE_FORMAT,
        "version": VERSION if model.backbone.shape.levels is None else LEVELS_VERSION,
        "shape": asdict(model.backbone.shape),
        "task": model.task,
        "labels": list(model.labels),
        "epsilon": model.epsilon,
        "history": model.history,
    }
    arrays = {name: value.detach().cpu().clone() for name, value in model.backbone.state_dict().items()}
    return torch_bytes(arrays, meta)


def save_model(path: Path, model: Model) -> None:
    """Write a backbone's file atomically; raises InputError for another suffix than .pt or what cannot be written."""
    if path.suffix != ".pt":
        raise InputError(
            f"{path}: a model that stays software must be named .pt, not {path.suffix or 'without suffix'!r}"
        )
    write_atomically(path, model_bytes(model))


def load_model(path: Path) -> Model:
    """Read a backbone's file, on the CPU, for evaluation. Raises InputError that names the file, field and repair."""
    where = shown_path(path)
    found = read_torch(path, _REPAIR)
    if not isinstance(found, dict) or found.keys() != {"meta", "arrays"}:
        held = listed(found) if isinstance(found, dict) else f"a {type(found).__name__}"
        raise InputError(f"{where}: a model of cosim backbone holds 'meta' and 'arrays', not {held}; {_REPAIR}")
    meta = _read_meta(found["meta"], where)
    shape = check_shape(meta.shape, f"{where}: meta.shape")
    if _BYTES * count_parameters(shape) > path.stat().st_size:  # before any memory is taken
        count = count_parameters(shape)
        raise InputError(f"{where}: meta.shape needs {count} numbers, more than a file of this size holds; {_REPAIR}")
    with torch.random.fork_rng(devices=[]):
        backbone = Backbone(shape)
    backbone.load_state_dict(_fitting(found["arrays"], backbone.state_dict(), where), assign=True)
    backbone.set_epsilon(meta.epsilon)
    return Model(backbone.eval(), meta.task, meta.labels, meta.epsilon, meta.history)


def _read_meta(meta: object, where: str) -> _Meta:
    if not isinstance(meta, dict):
        raise InputError(f"{where}: meta must be a table, not {shown(meta)}; {_REPAIR}")
    shape = meta.get("shape")
    version = LEVELS_VERSION if isinstance(shape, dict) and shape.get("levels") is not None else VERSION
    for key, wanted, repair in (("format", SOFTWARE_FORMAT, _REPAIR), ("version", version, "use its cosim")):
        if meta.get(key) != wanted:
            raise InputError(f"{where}: meta.{key} must be {wanted!r}, not {shown(meta.get(key))}; {repair}")
    plain = check_plain(dict(meta), f"{where}: meta", _REPAIR, finite=False)
    known = typed(plain, _Meta, where, _REPAIR, "meta")
    if not -1 <= known.epsilon <= 1:
        raise InputError(f"{where}: meta.epsilon must lie in [-1, 1], not {known.epsilon:g}; {_REPAIR}")
    if known.labels and len(known.labels) != known.shape.outputs:
        raise InputError(f"{where}: meta.labels must be {known.shape.outputs}, as many as outputs; {_REPAIR}")
    return known


def _fitting(arrays: object, wanted: Mapping[str, Tensor], where: str) -> dict[str, Tensor]:
    """Copy the tensors from a file of the seed paper's backbone, if they are those that are wanted.

    Names, shapes, one real type, finite. Raises InputError for others.
    """
    if not isinstance(arrays, dict) or arrays.keys() != wanted.keys():
        names = arrays if isinstance(arrays, dict) else ()
        other = [*(name for name in wanted if name not in names), *(name for name in names if name not in wanted)]
        raise InputError(f"{where}: arrays must be those of its shape, but differ in {listed(other[:3])}; {_REPAIR}")
    dtype = getattr(next(iter(arrays.values())), "dtype", None)
    copies = {}
    for name, form in wanted.items():
        value = arrays[name]
        # of other devices a file can hold "meta", which has no numbers
        plain = isinstance(value, Tensor) and value.layout == torch.strided and value.device.type == "cpu"
        if not plain or value.dtype != dtype or dtype not in _TYPES:
            raise InputError(f"{where}: {name} must be a dense tensor of float32 on the CPU, as all are; {_REPAIR}")
        if value.shape != form.shape:
            raise InputError(
                f"{where}: {name} must have shape {tuple(form.shape)}, not {tuple(value.shape)}; {_REPAIR}"
            )
        if not bool(value.isfinite().all()):
            raise InputError(f"{where}: {name} must hold finite numbers; {_REPAIR}")
        copies[name] = value.clone()
    return copies
