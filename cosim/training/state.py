"""The resume state of a training on disk: written whole, read only where it fits the run that asks for it."""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cosim.base.arrays import read_torch
from cosim.base.errors import InputError
from cosim.base.seal import is_whole, seal_zip
from cosim.base.text import check_plain, shown, shown_path
from cosim.base.write import check_writable, write_atomically
from cosim.tasks.task import Task

_GROWTH = 4  # two moments of the optimiser and the best network come to the weights
State = dict[str, Any]  # plain values and tensors, as torch.save writes them
_REPAIR = "begin anew with --fresh"


def write_state(path: Path, state: State) -> None:
    """Write a training's state, as `read_state` reads it: tensors and plain values, with a checksum."""
    write_atomically(path, _state_bytes(state))


def check_state(path: Path, state: State) -> None:
    """Check that the state of a training can be written, with `state`, that of its beginning; raises InputError."""
    check_writable(path, _GROWTH * len(_state_bytes(state)))


def _state_bytes(state: State) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return seal_zip(buffer.getvalue())


def read_state(path: Path, own: State, parameters: Sequence[Tensor]) -> State:
    """Read the state in a file, if it has the settings, data, parts, types and shapes of `own`, the state of this run.

    parameters: what the optimiser moves, in order. Raises InputError that says what differs.
    """
    if not is_whole(path):
        raise InputError(f"{path}: this training state is damaged or of an earlier cosim; {_REPAIR}")
    found = read_torch(path, _REPAIR)
    if not isinstance(found, dict) or found.keys() != own.keys():
        raise InputError(f"{path}: this training state has other parts than {', '.join(own)}; {_REPAIR}")
    if found["data"] != own["data"]:
        raise InputError(f"{path}: the training data has changed since; begin anew with --fresh")
    settings = check_plain(found["config"], f"{path}: config", _REPAIR, finite=False)
    if settings != own["config"]:
        raise InputError(
            f"{path}: the training state belongs to other settings: {_difference(settings, own['config'])}; "
            "go on with the settings of the first run, or begin anew with --fresh"
        )
    iteration = found["iteration"]
    if not isinstance(iteration, int) or not 0 <= iteration <= settings["iterations"]:
        raise InputError(f"{path}: iteration must be 0 to {settings['iterations']}, not {shown(iteration)}; {_REPAIR}")
    moments = {}
    if iteration > 0:
        step = torch.tensor(0.0)
        moments = {
            i: {"step": step, "exp_avg": one.data, "exp_avg_sq": one.data}
            for i, one in enumerate(parameters)
            if one.requires_grad
        }
    best = None if found["best"] is None else dict(own["model"])
    form = own | {"optimiser": own["optimiser"] | {"state": moments}, "best": best}
    state = _fitted(found, form, str(path))
    assert isinstance(state, dict)  # as `form` is
    state["optimiser"]["param_groups"] = own["optimiser"]["param_groups"]  # settings, which are this run's own
    return state


def other_training(path: Path) -> InputError:
    """Return the error for a finished network that another training has left where one of this training belongs."""
    return InputError(
        f"{shown_path(path)}: belongs to a training with other settings or data; go on with those of the first run, or "
        f"{_REPAIR}"
    )


def _fitted(found: object, wanted: object, where: str, name: str = "") -> object:
    """Return a copy of what was found, if keys, lengths, types and shapes are those of `wanted`; values may differ.

    Raises InputError that names the part.
    """
    fault = _misfit(found, wanted)
    if fault:
        raise InputError(f"{where}: {name} must {fault}; {_REPAIR}")
    if isinstance(found, Tensor):
        return found.clone()
    inside = f"{name}." if name else ""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return type(wanted)((key, _fitted(found[key], wanted[key], where, f"{inside}{key}")) for key in wanted)
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        parts = enumerate(zip(found, wanted, strict=True))
        return type(wanted)(_fitted(one, other, where, f"{inside}{i}") for i, (one, other) in parts)
    return found


def _misfit(found: object, wanted: object) -> str:
    if type(found) is not type(wanted):
        return f"be of type {type(wanted).__name__}, not {shown(type(found).__name__)}"
    if isinstance(wanted, Tensor) and isinstance(found, Tensor):
        (there, here) = ((tuple(one.shape), one.dtype, one.layout, one.device.type) for one in (found, wanted))
        return "" if there == here else f"have shape {here[0]} of {here[1]}, not {there[0]} of {there[1]}"
    if isinstance(wanted, dict) and isinstance(found, dict) and found.keys() != wanted.keys():
        return f"have the keys {shown(list(wanted))}, not {shown(list(found))}"
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple) and len(found) != len(wanted):
        return f"have length {len(wanted)}, not {len(found)}"
    return ""


def data_fingerprint(task: Task) -> str:
    """Return a hash of a task's training arrays, by which a training that goes on recognises its own data."""
    digest = hashlib.sha256(task.name.encode())
    for array in (task.x_train, task.y_train, task.len_train):
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _difference(found: object, wanted: State) -> str:
    old, new = _flatten(found), _flatten(wanted)
    devices = _table(_table(found).get("mismatch")) | _table(wanted.get("mismatch"))
    both = [key for key in new | old if key not in devices or (key in old and key in new)]
    changed = [key for key in both if old.get(key) != new.get(key)]
    return ", ".join(f"{key} {_setting(old, key)} not {_setting(new, key)}" for key in changed)


def _setting(settings: State, key: str) -> str:
    return shown(settings[key]) if key in settings else "left out"


def _flatten(settings: object) -> State:
    """Return a training's settings in one level; of a file's those that are where they belong."""
    table, inner = _table(settings), ("architecture", "mismatch")
    variation = "none" if table.get("mismatch") is None else "local"
    flat = table | _table(table.get("architecture")) | {"variation": variation}
    return {key: value for key, value in (flat | _table(table.get("mismatch"))).items() if key not in inner}


def _table(value: object) -> State:
    return value if isinstance(value, dict) else {}
