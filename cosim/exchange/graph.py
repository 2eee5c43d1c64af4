"""A graph of NIR, the Neuromorphic Intermediate Representation (Pedersen et al., Nature Communications 15, 8122, 2024),
as plain data: nodes by name, each of a kind with parameters, and edges that carry values; a node with several incoming
edges gets the sum. NIR's own package is needed only for its files, see cosim.exchange.nir.

These kinds of node are used, with vectors x and y:

    Input, Output                     the graph's own
    Affine    y = W x + b             Linear   y = W x             Scale   y = s x, element by element
    Threshold y = 1 where x > theta, else 0                        Delay   y(t) = x(t - tau), 0 before that
    Flatten   of a vector: itself

NIR's time is continuous and has no unit. Here it is counted in frames, so Delay(1) is the frame before.

`network_to_graph` writes a network as such a graph. A unit with epsilon 0 keeps one bit q. It is on at u >= hi, off at
u <= lo and kept between, which is the majority of three bits:

    q_t = H(r_t + k_t + q_{t-1} > 1.5),   r_t = H(u_t >= hi),   k_t = H(u_t > lo)

because hi > lo, so r_t = 1 means k_t = 1. NIR's Threshold is on where x > theta, so r_t is a Threshold with theta the
largest double below hi, without rounding. Another form has one Threshold, q_t = H(u_t + (hi - lo) q_{t-1} >= hi). It is
read as well, see cosim.exchange.read, but u + (hi - lo) is rounded, so lo may change in its last bit.

The first-quadrant unit delivers alpha q, the signed one alpha (2 q - 1); q_{-1} = 0 is what a Delay begins with.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import MappingError
from cosim.network.layers import AndLayer, EpsilonLayer, FirstQuadrantLayer, Layer, ReluLayer, SignedLayer
from cosim.network.types import INPUT, Network, Readout, check_network

Array = NDArray[np.float64]

# kind -> its parameters, those of NIR's classes; `shape` of Input and Output
PARAMETERS: dict[str, tuple[str, ...]] = {
    "Input": ("shape",),
    "Output": ("shape",),
    "Affine": ("weight", "bias"),
    "Linear": ("weight",),
    "Scale": ("scale",),
    "Threshold": ("threshold",),
    "Delay": ("delay",),
    "Flatten": (),
}
ORIGIN = "NIR graph"  # by which errors name a graph that is read
_ANALOG = "a membrane takes any value between two frames, and no unit here keeps one"
_PLANE = "signals here are rows of numbers, not planes; write it as a Linear where that is small enough"
# kind -> why it has no equivalent here, and what comes nearest
REFUSED: dict[str, str] = {
    "LIF": f"{_ANALOG}, nor do spikes reset one; nearest: a unit with hysteresis, trained anew",
    "CubaLIF": f"{_ANALOG}, nor do spikes reset one; nearest: a unit with hysteresis, trained anew",
    "IF": f"{_ANALOG}, nor do spikes reset one; nearest: a unit with epsilon 1, which counts decisions, trained anew",
    "LI": f"{_ANALOG}; nearest: a readout pooled by the mean, or a unit with hysteresis, trained anew",
    "CubaLI": f"{_ANALOG}; nearest: a readout pooled by the mean, or a unit with hysteresis, trained anew",
    "I": "it adds up any value over time, where a unit with epsilon 1 counts decisions; train such a unit anew",
    "Conv1d": _PLANE,
    "Conv2d": _PLANE,
    "SumPool2d": _PLANE,
    "AvgPool2d": _PLANE,
    "NIRGraph": "a graph inside a graph; put its nodes and edges into the outer one",
}


@dataclass(frozen=True)
class Node:
    """A node of a NIR graph. kind: name of NIR's class; values: parameter -> array."""

    kind: str
    values: Mapping[str, Array]


@dataclass(frozen=True)
class Graph:
    """A NIR graph as plain data: nodes by name, and edges (from, to) in their order."""

    nodes: Mapping[str, Node]
    edges: tuple[tuple[str, str], ...]


MAJORITY = 1.5  # of three bits
HALF = 0.5  # of an AND, which is 1 or at most 0


def network_to_graph(network: Network) -> Graph:
    """Convert a network, without its input encoding and pooling, to a NIR graph in plain data.

    The Input node takes encoded inputs (units, with the ramp), the Output node gives the readout of every frame; Delays
    count frames. Raises MappingError naming a layer that NIR has no nodes for.
    """
    check_network(network, "network")
    for layer in network.layers:
        _check_layer(network, layer)
    return _Writer(network).write()


class _Writer:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.nodes: dict[str, Node] = {}
        self.edges: list[tuple[str, str]] = []
        self.taken = {INPUT, *(layer.name for layer in network.layers), *network.late}
        self.read_at = {INPUT: INPUT}  # signal -> node that delivers it

    def write(self) -> Graph:
        network = self.network
        width = np.array([network.encoding.width], dtype=np.float64)
        self.nodes[INPUT] = Node("Input", {"shape": width})
        layers = {layer.name: layer for layer in network.layers}
        for name, late in network.late.items():
            delays = layers[late.signal].width if late.signal in layers else network.encoding.width
            self.nodes[name] = Node("Delay", {"delay": np.full(delays, float(late.frames))})
            self.read_at[name] = self._level(name, layers.get(late.signal))
        for layer in network.layers:
            if isinstance(layer, AndLayer):
                self._threshold(layer.name, np.full(layer.width, HALF), self._drive(layer.name, layer))
            else:
                self._unit(layer)
            self.read_at[layer.name] = self._level(layer.name, layer)
        output = self._new("output")
        for node in self._drive("readout", network.readout):
            self.edges.append((node, output))
        self.nodes[output] = Node("Output", {"shape": np.array([network.readout.width], dtype=np.float64)})
        self.edges += [(late.signal, name) for name, late in network.late.items()]
        return Graph(self.nodes, tuple(self.edges))

    def _unit(self, layer: Layer) -> None:
        low, high = _window(layer)
        drive = self._drive(layer.name, layer)
        rise, keep, before = (self._new(f"{layer.name}_{part}") for part in ("rise", "keep", "before"))
        self._threshold(rise, np.nextafter(high, -np.inf), drive)
        self._threshold(keep, low, drive)
        self._threshold(layer.name, np.full(layer.width, MAJORITY), (rise, keep, before))
        self.nodes[before] = Node("Delay", {"delay": np.ones(layer.width)})
        self.edges.append((layer.name, before))

    def _drive(self, name: str, layer: Layer | Readout) -> list[str]:
        """Add NIR nodes whose sum is W x + b, one for each source, the first with the bias; return their names."""
        found = list[str]()
        first = 0
        for source in layer.sources:
            width = self._width(source)
            weight = layer.weight[:, first : first + width]
            node = self._new(f"{name}_from_{source}")
            bias = {} if first else {"bias": np.asarray(layer.bias, dtype=np.float64)}
            self.nodes[node] = Node("Linear" if first else "Affine", {"weight": np.ascontiguousarray(weight), **bias})
            self.edges.append((self.read_at[source], node))
            found.append(node)
            first += width
        return found

    def _width(self, source: str) -> int:
        signal = self.network.late[source].signal if source in self.network.late else source
        widths = {INPUT: self.network.encoding.width, **{layer.name: layer.width for layer in self.network.layers}}
        return widths[signal]

    def _threshold(self, name: str, threshold: Array, sources: Iterable[str]) -> None:
        self.nodes[name] = Node("Threshold", {"threshold": threshold})
        self.edges += [(source, name) for source in sources]

    def _level(self, name: str, layer: Layer | None) -> str:
        """Return the name of the NIR node that delivers the state values of the bits of node `name`.

        It is `name` itself where the values are 0 and 1, else a new node.
        """
        if isinstance(layer, SignedLayer):
            node = Node("Affine", {"weight": np.diag(2.0 * layer.alpha), "bias": -layer.alpha})
        elif isinstance(layer, FirstQuadrantLayer) and not (layer.alpha == 1).all():
            node = Node("Scale", {"scale": layer.alpha})
        else:
            return name
        level = self._new(f"{name}_level")
        self.nodes[level] = node
        self.edges.append((name, level))
        return level

    def _new(self, wanted: str) -> str:
        """Reserve and return a name for a new NIR node, `wanted` or with a number behind."""
        name, k = wanted, 2
        while name in self.taken:
            name, k = f"{wanted}_{k}", k + 1
        self.taken.add(name)
        return name


def _window(layer: Layer) -> tuple[Array, Array]:
    """Return the lower and upper threshold, (width,) each, of a layer that is written as NIR Thresholds."""
    if isinstance(layer, FirstQuadrantLayer):
        return layer.beta_lo, layer.beta_hi
    assert isinstance(layer, SignedLayer)
    beta = np.abs(layer.bias_beta)
    return -beta, beta


def _check_layer(network: Network, layer: Layer) -> None:
    """Raise MappingError naming a layer that NIR's nodes cannot represent exactly, with the reason."""
    why = ""
    if isinstance(layer, AndLayer):
        analog = next((source for source in layer.sources if not _is_bits(network, source)), None)
        if analog is not None:
            why = f"an AND of {analog}, which is no bit, is a rectifier, and NIR has none; let it read bits alone"
    elif isinstance(layer, ReluLayer):
        why = "NIR has no rectifier; train without --hidden"
    elif not isinstance(layer, EpsilonLayer):
        why = f"NIR has no node for a layer of kind {layer.kind}, whose state fades; share the checkpoint instead"
    elif layer.epsilon != 0:
        why = (
            f"with epsilon {layer.epsilon:g} a state goes by steps at frames, and what NIR adds up, the node I, ramps "
            "through them; train with --epsilon anneal or 0"
        )
    elif isinstance(layer, FirstQuadrantLayer):
        if layer.initial is not None and layer.initial.any():
            why = "a unit begins on, and what comes out of NIR's Delay begins with 0; leave `initial` out"
        elif (layer.beta_lo < 0).any():
            why = "a lower threshold is below 0, where the rectified candidate never goes; raise beta_lo to 0 or above"
    elif isinstance(layer, SignedLayer):
        if layer.weight_beta is not None or layer.weight_alpha is not None:
            moves = "level" if layer.weight_alpha is not None else "threshold"
            why = f"a {moves} follows the input, and NIR's stand still; train with --beta fixed and --cell cmru"
        elif not layer.bias_beta.all():
            why = "a threshold is 0, so the unit keeps nothing; train it anew with a larger --width-min"
    if why:
        raise MappingError(f"network: {layer.name} cannot be written as NIR: {why}")


def _is_bits(network: Network, source: str) -> bool:
    signal = network.late[source].signal if source in network.late else source
    if signal == INPUT:
        return network.encoding.levels == 1
    layer = next(layer for layer in network.layers if layer.name == signal)
    return isinstance(layer, FirstQuadrantLayer | AndLayer)
