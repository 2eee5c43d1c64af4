"""Bare state dicts, such as torch.save(module.state_dict()) of one's own module: arrays without any description.

Keys, with i counting the layers from 0 in order: `layers.{i}.weight`, `layers.{i}.bias` (both always), `beta_lo` and
`beta_hi` (first-quadrant unit), `bias_beta` and optionally `weight_beta` (signed unit), `weight_alpha`
(alphaCMRU), `alpha` (default 1); `readout.weight`, `readout.bias`; optional `input.offset`, `input.scale` (default 0
and 1) and `epsilon` (one number for all layers, default 0). A layer with weight and bias alone is a ReLU layer. Pooling
is the mean.

All keys may begin with one prefix, such as `model.`, as they do if the network is part of a larger module. The number
of columns of a layer's weight decides what the layer reads, the first of these that fits: the layer before; the input
and the layer before; the input and all earlier layers. The readout reads the last layer, all recurrent layers, or all
layers.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from cosim.base.errors import NetworkError
from cosim.base.text import listed, shown
from cosim.network.layers import FirstQuadrantLayer, Layer, ReluLayer, SignedLayer
from cosim.network.types import INPUT, InputEncoding, Network, Readout, check_network

_KEY = re.compile(
    r"^layers\.(0|[1-9][0-9]{0,5})\.(weight|bias|beta_lo|beta_hi|weight_beta|bias_beta|weight_alpha|alpha)$"
)
_OTHER = ("readout.weight", "readout.bias", "input.offset", "input.scale", "epsilon")

_FOREIGN = re.compile(r"(?:.*\.)?weight_hh(?:_l\d+)?(?:_reverse)?")  # torch.nn.LSTM, GRU, RNN and their cells
_GATES = {1: "an RNN", 3: "a GRU", 4: "an LSTM"}  # by rows of weight_hh over its columns
_WRAPPERS = ("state_dict", "model_state_dict")  # where PyTorch Lightning and many training loops keep a state dict
_DATA = ("x_train", "y_train", "x_test", "y_test")

Arrays = Mapping[str, np.ndarray]


def unwrapped(content: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the state dict in a torch training checkpoint, as of PyTorch Lightning; else the content itself."""
    found = [content[name] for name in _WRAPPERS if isinstance(content.get(name), dict)]
    return found[0] if len(found) == 1 else content


def without_prefix(arrays: Arrays, origin: str) -> dict[str, np.ndarray]:
    """Return a torch state dict's arrays without the prefix, such as `model.`, of its documented keys.

    Raises NetworkError where documented keys have several prefixes: there would be more than one network.
    """
    prefixes = {found for key in arrays if (found := _prefix(key)) is not None}
    if len(prefixes) > 1:
        names = " and ".join(repr(one) for one in sorted(prefixes)[:3])
        raise NetworkError(
            f"{origin}: must hold one network, but keys of its layers begin with {names}; save the state dict of one "
            "of the modules, torch.save(module.state_dict(), path)"
        )
    prefix = next(iter(prefixes), "")
    return {key.removeprefix(prefix): value for key, value in arrays.items()}


def _prefix(key: str) -> str | None:
    """Return the text before a documented key of a layer or the readout; None for any other key."""
    parts = key.split(".")
    tails = (".".join(parts[k:]) for k in range(len(parts)))
    found = next((tail for tail in tails if _KEY.fullmatch(tail) or tail.startswith("readout.")), None)
    return None if found is None else key.removesuffix(found)


def check_is_network(arrays: Mapping[Any, Any], origin: str) -> None:
    """Raise NetworkError for arrays that are not a network of ours but a data set, an LSTM, a GRU or an RNN."""
    for name in arrays:
        if not isinstance(name, str) or not name.isprintable():
            raise NetworkError(f"{origin}: key {shown(name)} must be printable text; save a plain state dict")
    if any(name in arrays for name in _DATA):
        raise NetworkError(
            f"{origin}: this is a data set ({listed(arrays)}), not a network; train one on it with `cosim train npz "
            "--data FILE`, or give it to compare and simulate with --data"
        )
    for name, value in arrays.items():
        if _FOREIGN.fullmatch(name):
            shape = getattr(value, "shape", ())
            rows, columns = shape if len(shape) == 2 else (0, 1)
            raise NetworkError(
                f"{origin}: {name} belongs to {_GATES.get(rows // max(columns, 1), 'a gated unit')}, which has no "
                "circuit here: only units with hysteresis do (BMRU, CMRU); train such a network with cosim train, or "
                "bring your own, docs/how-to/bring-my-network.md"
            )


def _check_has_layers(arrays: Arrays, origin: str) -> None:
    """Raise NetworkError where a state dict has no key of a network's layers, such as a feed-forward network."""
    if not arrays or any(_KEY.fullmatch(name) or name in _OTHER for name in arrays):
        return
    forward = all(name.rpartition(".")[2] in ("weight", "bias") for name in arrays)
    kind = "a feed-forward network such as an MLP, which keeps no state" if forward else "another kind of network"
    raise NetworkError(
        f"{origin}: {listed(arrays)} belong to {kind}; what becomes a circuit here are units with hysteresis (BMRU, "
        "CMRU): train such a network with cosim train, or bring your own with the keys of "
        "docs/how-to/bring-my-network.md"
    )


def network_from_state_dict(arrays: Arrays, origin: str) -> Network:
    """Return the checked network that a torch state dict with the documented keys holds.

    The keys are listed in cosim.exchange.state_dict. Raises NetworkError naming `origin`, key and repair.
    """
    arrays = without_prefix(arrays, origin)
    _check_has_layers(arrays, origin)
    groups = _layer_groups(arrays, origin)
    encoding = _encoding(arrays, _matrix(groups[0], "layers.0.weight", origin).shape[1], origin)
    epsilon = _epsilon(arrays, origin)
    widths = {INPUT: encoding.width}
    layers: list[Layer] = []
    for i, group in enumerate(groups):
        weight = _matrix(group, f"layers.{i}.weight", origin)
        previous = layers[-1].name if layers else INPUT
        choices = [(previous,), (INPUT, previous), tuple(widths)]
        sources = _fitting_sources(choices, widths, weight.shape[1], f"{origin}: layers.{i}.weight")
        layer = _layer(i, group, sources, epsilon, origin)
        layers.append(layer)
        widths[layer.name] = weight.shape[0]
    weight = _matrix({"weight": _required(arrays, "readout.weight", origin)}, "readout.weight", origin)
    recurrent = tuple(layer.name for layer in layers if not isinstance(layer, ReluLayer))
    choices = [(layers[-1].name,), recurrent, tuple(layer.name for layer in layers)]
    sources = _fitting_sources(choices, widths, weight.shape[1], f"{origin}: readout.weight")
    bias = arrays.get("readout.bias", np.zeros(len(weight)))
    return check_network(Network(encoding, tuple(layers), Readout(sources, weight, bias, "mean")), origin)


def _layer_groups(arrays: Arrays, origin: str) -> list[dict[str, np.ndarray]]:
    groups: dict[int, dict[str, np.ndarray]] = {}
    for key, array in arrays.items():
        match = _KEY.fullmatch(key)
        if match:
            groups.setdefault(int(match.group(1)), {})[match.group(2)] = array
        elif key not in _OTHER:
            raise NetworkError(
                f"{origin}: key {shown(key)} is not known; rename it to layers.<i>.weight|bias|beta_lo|beta_hi|"
                f"weight_beta|bias_beta|weight_alpha|alpha or {'|'.join(_OTHER)}"
            )
    if not groups:
        raise NetworkError(f"{origin}: key 'layers.0.weight' is missing; found {listed(arrays)}")
    for i in range(max(groups) + 1):
        if i not in groups:
            raise NetworkError(f"{origin}: key 'layers.{i}.weight' is missing; number the layers from 0 without gaps")
    return [groups[i] for i in range(len(groups))]


def _layer(i: int, group: Arrays, sources: tuple[str, ...], epsilon: float, origin: str) -> Layer:
    name, weight = f"layer{i}", group["weight"]
    bias = _required(group, "bias", f"{origin}: layers.{i}")
    ones = np.ones(len(weight))
    if "beta_lo" in group or "beta_hi" in group:
        lo, hi = (_required(group, beta, f"{origin}: layers.{i}") for beta in ("beta_lo", "beta_hi"))
        return FirstQuadrantLayer(name, sources, weight, bias, lo, hi, group.get("alpha", ones), epsilon)
    if set(group) <= {"weight", "bias"}:
        return ReluLayer(name, sources, weight, bias)
    beta = _required(group, "bias_beta", f"{origin}: layers.{i}")
    alpha = group.get("alpha", ones)
    return SignedLayer(
        name, sources, weight, bias, beta, alpha, group.get("weight_beta"), group.get("weight_alpha"), epsilon
    )


def _fitting_sources(
    choices: list[tuple[str, ...]], widths: Mapping[str, int], columns: int, where: str
) -> tuple[str, ...]:
    """Return the first choice of sources whose widths add up to `columns`.

    Raises NetworkError where none does.
    """
    tried = {
        tuple(dict.fromkeys(choice)): sum(widths[source] for source in dict.fromkeys(choice)) for choice in choices
    }
    for choice, width in tried.items():
        if width == columns:
            return choice
    widths_of = "; ".join(f"{' + '.join(choice)} = {width}" for choice, width in tried.items())
    raise NetworkError(
        f"{where} has {columns} columns, but must have: {widths_of}; save a checkpoint that names its sources"
    )


def _encoding(arrays: Arrays, inputs: int, origin: str) -> InputEncoding:
    given = [key for key in ("input.offset", "input.scale") if key in arrays]
    features = arrays[given[0]].size if given else inputs
    offset = np.atleast_1d(arrays.get("input.offset", np.zeros(features)))
    scale = np.atleast_1d(arrays.get("input.scale", np.ones(features)))
    if features != inputs:
        raise NetworkError(
            f"{origin}: {given[0]} has {features} numbers, layers.0.weight {inputs} columns; give one per feature"
        )
    return InputEncoding(offset, scale)


def _epsilon(arrays: Arrays, origin: str) -> float:
    epsilon = np.asarray(arrays.get("epsilon", 0.0))
    if epsilon.size != 1:
        raise NetworkError(f"{origin}: epsilon must be one number for all layers, not shape {epsilon.shape}")
    return float(epsilon.reshape(()))


def _required(arrays: Arrays, key: str, where: str) -> np.ndarray:
    if key not in arrays:
        raise NetworkError(f"{where}: key {key!r} is missing; found {listed(arrays)}")
    return arrays[key]


def _matrix(group: Arrays, where: str, origin: str) -> np.ndarray:
    if "weight" not in group:
        raise NetworkError(f"{origin}: key {where!r} is missing; each layer needs its weight")
    weight = group["weight"]
    if weight.ndim != 2:
        raise NetworkError(f"{origin}: {where} must have shape (outputs, inputs), not {weight.shape}")
    return weight
