"""A trained network as data: encoding, layers (cosim.network.layers), readout, with no framework behind it.

Every signal is a row of non-negative numbers per time step, because on the chip it is a row of currents. A layer names
the signals that it reads (`sources`), so skip connections are data, not code. Columns of a weight matrix follow the
order of `sources`. A late source is a signal as it was some steps earlier. The signal may be the input or any layer's,
also the reader's own and that of a layer behind it, so a network may feed back. A network goes into files, and into its
hash, as named arrays and JSON.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from cosim.base.errors import NetworkError
from cosim.base.text import shown
from cosim.network.layers import Array, EpsilonLayer, Layer, RecurrentLayer, SignedLayer

Pooling = Literal["last", "mean", "vote"]
INPUT = "input"
LAYER_NAME = re.compile(r"[a-z][a-z0-9_]*")
LARGEST = 1e30  # size of any number of a network: beyond it sums and ratios of doubles overflow
RESERVED_NAMES = ("in", "readout")  # prefixes of the graph's own nodes
MOST_LATE = 4096  # frames
FORMAT = "cosim-checkpoint"
VERSION, LATE_VERSION, LEVELS_VERSION = 1, 2, 3  # plain, with late sources, with levels or ends of a count
RANGES = "ranges."  # prefix of the arrays of Network.state_ranges, optional


@dataclass(frozen=True)
class DelayedSignal:
    """A late source: a signal of a network as it was `frames` time steps earlier.

    Before the first step the value is a recurrent layer's own start, and 0 for any other signal.
    """

    signal: str
    frames: int = 1


@dataclass(frozen=True)
class InputEncoding:
    """A network's encoding of raw features to [0, 1]: clip((x - offset) / scale, 0, 1).

    offset, scale: (features,) each. With `ramp_steps` = T a time ramp min((t + 1) / T, 1), t = 0, 1, ..., follows the
    features as one more input. With `levels` = L all inputs come from converters and are rounded to multiples of 1 / L.
    """

    offset: Array
    scale: Array
    ramp_steps: int | None = None
    levels: int | None = None

    @property
    def features(self) -> int:
        """Return the number of features of a network's raw input."""
        return len(self.offset)

    @property
    def width(self) -> int:
        """Return the network's number of encoded inputs, the time ramp included."""
        return self.features + (self.ramp_steps is not None)


@dataclass(frozen=True)
class Readout:
    """The output layer of a network: y_t = W [sources] + b, pooled over time.

    weight: (outputs, inputs); bias: (outputs,); pooling: `last` takes y at the last valid step, `mean` the mean over
    the valid steps, `vote` the fraction of valid steps at which each output is the largest.
    """

    sources: tuple[str, ...]
    weight: Array
    bias: Array
    pooling: Pooling = "mean"

    @property
    def width(self) -> int:
        """Return the readout's number of outputs."""
        return len(self.bias)

    def arrays(self) -> dict[str, Array]:
        """Return name -> learned array of the readout."""
        return {"weight": self.weight, "bias": self.bias}


@dataclass(frozen=True)
class Network:
    """A whole trained network: encoding, layers in order, readout, and what it was trained for.

    regression: whether it was trained for real numbers; False for a network without labels leaves both possible. name:
    how its user calls it in reports, the name of its file; if empty, task and widths describe it. late: name of a late
    source -> the signal that it delays; weight_grid: step of its weights, None for none.
    """

    encoding: InputEncoding
    layers: tuple[Layer, ...]
    readout: Readout
    task: str = ""
    labels: tuple[str, ...] = ()
    weight_grid: float | None = None  # step of the weight grid that it was trained on; None: continuous weights
    history: Mapping[str, Any] = field(default_factory=dict)  # JSON: training settings and figures, never evaluated
    # recurrent layer name -> (2, width): smallest and largest h of each unit over the training set, the start included;
    # (3, width) at epsilon -1, with the smallest h above the smallest
    state_ranges: Mapping[str, Array] = field(default_factory=dict)
    late: Mapping[str, DelayedSignal] = field(
        default_factory=dict
    )  # name, among the sources of layers -> what it stands for
    regression: bool = False
    name: str = ""

    @property
    def recurrent_layers(self) -> tuple[RecurrentLayer, ...]:
        """Return the network's layers that have a state, in order."""
        return tuple(layer for layer in self.layers if isinstance(layer, RecurrentLayer))

    @property
    def feeds_back(self) -> bool:
        """Tell whether a layer of the network reads itself or a later layer, some frames late."""
        known = {INPUT}
        for layer in self.layers:
            if any(source in self.late and self.late[source].signal not in known for source in layer.sources):
                return True
            known.add(layer.name)
        return False


def check_network(network: Network, origin: str = "network") -> Network:
    """Return the network itself if its shapes, values and names are sound; else raise NetworkError.

    The error names origin, field and repair.
    """
    encoding = network.encoding
    if encoding.offset.ndim != 1 or encoding.features == 0 or encoding.offset.shape != encoding.scale.shape:
        raise NetworkError(
            f"{origin}: input.offset {encoding.offset.shape} and input.scale {encoding.scale.shape} must be equally "
            "long, one number per feature"
        )
    _check_finite(origin, "input.offset", encoding.offset)
    _check_finite(origin, "input.scale", encoding.scale)
    if not (encoding.scale > 0).all():
        raise NetworkError(f"{origin}: input.scale must be positive, not {encoding.scale.min():g}")
    if encoding.ramp_steps is not None and encoding.ramp_steps < 1:
        raise NetworkError(f"{origin}: input.ramp_steps must be at least 1, not {encoding.ramp_steps}")
    if encoding.levels is not None and encoding.levels < 1:
        raise NetworkError(f"{origin}: input.levels must be at least 1, not {encoding.levels}; leave it out for none")

    grid = network.weight_grid
    if grid is not None and not 0 < grid < np.inf:
        raise NetworkError(
            f"{origin}: meta.weight_grid must be positive and finite, not {grid:g}; leave it out for none"
        )
    if network.regression and network.labels:
        raise NetworkError(f"{origin}: meta.labels must be empty where meta.regression is true; leave one of them out")
    if not network.recurrent_layers:
        raise NetworkError(f"{origin}: a network needs at least one recurrent layer, found none")
    widths = {INPUT: encoding.width, **_late_widths(origin, network)}
    for layer in network.layers:
        if layer.name in widths:
            raise NetworkError(f"{origin}: layer name {shown(layer.name)} is used twice; rename one")
        _check_name(origin, layer.name)
        _check_layer(origin, layer.name, layer, widths)
        widths[layer.name] = layer.width
    _check_layer(origin, "readout", network.readout, widths)
    if network.readout.pooling not in ("last", "mean", "vote"):
        raise NetworkError(
            f"{origin}: readout.pooling must be last, mean or vote, not {shown(network.readout.pooling)}"
        )
    for where, text in (("task", network.task), *((f"labels[{k}]", label) for k, label in enumerate(network.labels))):
        if not text.isprintable():
            raise NetworkError(f"{origin}: meta.{where} must be printable text, not {shown(text)}; rename it")
    if network.labels and len(network.labels) != network.readout.width:
        raise NetworkError(
            f"{origin}: {len(network.labels)} labels for {network.readout.width} readout outputs; give one label each"
        )
    _check_ranges(origin, network)
    return network


def _late_widths(origin: str, network: Network) -> dict[str, int]:
    """Return late source -> its width. Raises NetworkError for a late source that cannot be."""
    # a bias that is no row is refused later, with its layer
    widths = {INPUT: network.encoding.width, **{layer.name: layer.bias.size for layer in network.layers}}
    readers = (network.readout, *network.layers)
    for name, late in network.late.items():
        _check_name(origin, name, "late")
        if name in widths:
            raise NetworkError(f"{origin}: late.{name} has the name of another signal; rename it")
        if late.signal not in widths:
            raise NetworkError(
                f"{origin}: late.{name}.signal must be 'input' or a layer, not {shown(late.signal)}; known: "
                f"{', '.join(widths)}"
            )
        if not 1 <= late.frames <= MOST_LATE:
            raise NetworkError(f"{origin}: late.{name}.frames must lie in 1 to {MOST_LATE}, not {late.frames}")
        if not any(name in reader.sources for reader in readers):
            raise NetworkError(f"{origin}: late.{name} is read by no layer; remove it, or name it among sources")
    return {name: widths[late.signal] for name, late in network.late.items()}


def _check_name(origin: str, name: str, where: str = "layers") -> None:
    """Raise NetworkError if a layer or late source has a name that cannot be part of a net name in a deck."""
    if LAYER_NAME.fullmatch(name) is None or name in RESERVED_NAMES:
        raise NetworkError(
            f"{origin}: meta.{where}: name must be a lower-case letter, then lower-case letters, digits or "
            f"underscores, and not {' or '.join(RESERVED_NAMES)}, but is {shown(name)}; rename "
            f"{'the layer' if where == 'layers' else 'it'}"
        )


def _check_layer(origin: str, name: str, layer: Layer | Readout, widths: Mapping[str, int]) -> None:
    for source in layer.sources:
        if source not in widths:
            raise NetworkError(
                f"{origin}: {name} reads {shown(source)}, which is not 'input', an earlier layer or a late source; "
                f"known: {', '.join(widths)}"
            )
    if not layer.sources or len(set(layer.sources)) < len(layer.sources):
        raise NetworkError(
            f"{origin}: {name}.sources must name at least one layer and each once, not {list(layer.sources)}; where "
            "one is read twice, add up its columns of the weights"
        )
    if layer.bias.ndim != 1 or not len(layer.bias):
        raise NetworkError(f"{origin}: {name}.bias must hold one number per unit, not shape {layer.bias.shape}")
    inputs = sum(widths[source] for source in layer.sources)
    for field_name, array in layer.arrays().items():
        where = f"{name}.{field_name}"
        expected = (layer.width, inputs) if field_name.startswith("weight") else (layer.width,)
        if array.shape != expected:
            raise NetworkError(f"{origin}: {where} must have shape {expected}, not {array.shape}")
        _check_finite(origin, where, array)
    if isinstance(layer, Layer):
        layer.check(origin)


def _check_ranges(origin: str, network: Network) -> None:
    layers = {layer.name: layer for layer in network.recurrent_layers}
    for name, ranges in network.state_ranges.items():
        if name not in layers:
            raise NetworkError(
                f"{origin}: ranges.{name} must be named after a recurrent layer, {' or '.join(layers)}; remove it"
            )
        layer = layers[name]
        shapes = [(2, layer.width)]
        if isinstance(layer, EpsilonLayer) and layer.epsilon == -1:
            shapes.append((3, layer.width))
        if ranges.shape not in shapes:
            wanted = " or ".join(map(str, shapes))
            raise NetworkError(f"{origin}: ranges.{name} must have shape {wanted}, not {ranges.shape}")
        _check_finite(origin, f"ranges.{name}", ranges)
        low, high = ranges[:2]
        if not (low <= high).all():
            unit = int(np.argmin(high - low))
            raise NetworkError(
                f"{origin}: ranges.{name}[0,{unit}] is the smallest state and must be at most ranges.{name}[1,{unit}], "
                f"{high[unit]:g}, not {low[unit]:g}; export the network again"
            )
        outside = (ranges < low) | (ranges > high)
        if outside.any():
            unit = int(np.argmax(outside[-1]))
            raise NetworkError(
                f"{origin}: ranges.{name}[2,{unit}] is the smallest state but one and must be from {low[unit]:g} to "
                f"{high[unit]:g}, not {ranges[-1][unit]:g}; export the network again"
            )


def _check_finite(origin: str, where: str, array: Array) -> None:
    bad = np.argwhere(~(np.abs(array) <= LARGEST))
    if len(bad):
        index = ",".join(str(i) for i in bad[0])
        value = array[tuple(bad[0])]
        wanted = f"at most {LARGEST:g} in size" if np.isfinite(value) else "finite"
        raise NetworkError(
            f"{origin}: {where}[{index}] must be {wanted}, not {value}; {len(bad)} such value(s); retrain or repair "
            "the file"
        )


def network_to_arrays(network: Network) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return a network as named float64 arrays and JSON meta data, the form in which files have it and it is hashed.

    It is the inverse of `network_from_arrays`.
    """
    arrays = {"input.offset": network.encoding.offset, "input.scale": network.encoding.scale}
    layers = []
    for i, layer in enumerate(network.layers):
        arrays |= {f"layers.{i}.{name}": array for name, array in layer.arrays().items()}
        entry: dict[str, Any] = {"name": layer.name, "kind": layer.kind, "sources": list(layer.sources)}
        entry |= {"epsilon": layer.epsilon} if isinstance(layer, EpsilonLayer) else {}
        if isinstance(layer, SignedLayer):
            entry |= {"levels": layer.levels} if layer.levels is not None else {}
            entry |= {"ends": list(layer.ends)} if layer.ends is not None else {}
        layers.append(entry)
    arrays |= {f"readout.{name}": array for name, array in network.readout.arrays().items()}
    arrays |= {f"{RANGES}{name}": array for name, array in network.state_ranges.items()}
    meta = {
        "format": FORMAT,
        "version": format_version(layers, arrays, late=bool(network.late)),
        "task": network.task,
        "labels": list(network.labels),
        "weight_grid": network.weight_grid,
        "ramp_steps": network.encoding.ramp_steps,
        "input_levels": network.encoding.levels,
        "layers": layers,
        "readout": {"sources": list(network.readout.sources), "pooling": network.readout.pooling},
        "history": dict(network.history),
        **({"late": {name: asdict(late) for name, late in network.late.items()}} if network.late else {}),
        **({"regression": True} if network.regression else {}),
    }
    return {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in arrays.items()}, meta


def hash_network(network: Network) -> str:
    """Return a hash of a network's arrays and meta data (weights, pooling, task, labels), but not of its history."""
    arrays, meta = network_to_arrays(replace(network, history={}, state_ranges={}))
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()[:16]


def format_version(layers: object, arrays: Iterable[str], *, late: bool) -> int:
    """Return the version of the file format that a network needs.

    layers: as its JSON meta describes them; arrays: names of its arrays; late: whether it has late sources.
    """
    described = layers if isinstance(layers, list | tuple) else ()
    begun = {
        f"layers.{i}.initial"
        for i, one in enumerate(described)
        if isinstance(one, dict) and one.get("kind") == SignedLayer.kind
    }
    if begun & set(arrays):
        return LEVELS_VERSION
    newer = ("levels", "ends")
    if any(isinstance(layer, dict) and layer.get(name) is not None for layer in described for name in newer):
        return LEVELS_VERSION
    return LATE_VERSION if late else VERSION
