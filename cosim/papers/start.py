"""Begin a training at the weights of another backbone: what is learned from plenty helps where there is little."""

import hashlib
from dataclasses import asdict

from cosim.base.errors import InputError
from cosim.papers.backbone import Backbone
from cosim.papers.file import Model, model_bytes
from cosim.papers.shape import BackboneShape

_READOUT = "output."
_FREE = ("outputs", "pooling", "dropout", "start")  # of the shape, which no other weight depends on


def check_start(start: Model, shape: BackboneShape) -> None:
    """Raises InputError naming the first part of a shape that the backbone to start from has otherwise."""
    mine, its = asdict(shape), asdict(start.backbone.shape)
    for name, value in its.items():
        if name not in _FREE and value != mine[name]:
            repair = "take a task with as many" if name in ("inputs", "tokens") else f"give --{name} as there"
            raise InputError(f"--from: the backbone there has {name} {value}, and this one {mine[name]}; {repair}")


def begin(model: Backbone, start: Model) -> None:
    """Take over all of `start` but its last Linear, which stays as it is."""
    taken = {name: value for name, value in start.backbone.state_dict().items() if not name.startswith(_READOUT)}
    model.load_state_dict(model.state_dict() | taken)


def start_fingerprint(start: Model) -> str:
    """Return a text that differs where another start makes another training."""
    return hashlib.sha256(model_bytes(start)).hexdigest()
