"""Lower: a network becomes a graph of non-negative currents, in software units. What a layer becomes, its unit says."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cosim.base.errors import MappingError
from cosim.compiler.late import Taps, read_until, stages_of
from cosim.compiler.steer import lower_and
from cosim.network.ir.graph import GraphBuilder, Lowered
from cosim.network.ir.nodes import InputCurrent, Node, Output, Rectifier, UnitCurrent
from cosim.network.layers import AndLayer, EpsilonLayer, Layer, RecurrentLayer, ReluLayer
from cosim.network.types import INPUT, Network, Readout
from cosim.units.epsilon import Circuit, check_epsilon
from cosim.units.placement import LayerPlacement, Parameter, Sources, Tap, add_row, read_sources
from cosim.units.table import unit_of_layer

HEADROOM = 1  # states beyond the range of the data, at either end
MOST_ZEROS = 10_000  # weights of 0 that have an edge each: no device is made of them, and they take time all the same


def lower(network: Network, origin: str = "network", cell: Circuit = "auto", headroom: int = HEADROOM) -> Lowered:
    """Lower a network to its graph; weights of 0 have edges only while there are at most MOST_ZEROS.

    `cell`: what recurrent units become, auto chooses by epsilon; `headroom`: rungs of a ladder beyond the network's
    state ranges. Raises MappingError for units that have no circuit, with the reason and the repair.
    """
    chosen = [layer for layer in network.recurrent_layers if isinstance(layer, EpsilonLayer)]
    if cell != "auto" and not chosen:
        raise MappingError(f"{origin}: `cell={cell}` is for layers with an epsilon, and there is none; leave it out")
    for layer in chosen:
        check_epsilon(layer, origin, cell)
    later_nodes = _lower(_without_late(network), origin, headroom, {}).nodes if network.late else {}
    return _lower(network, origin, headroom, later_nodes).lowered()


def _lower(network: Network, origin: str, headroom: int, later_nodes: Mapping[str, Node]) -> GraphBuilder:
    """later_nodes: the nodes of all layers, where some are read late, perhaps by layers in front of them."""
    graph, stages, until = GraphBuilder(zeros=has_zeros(network)), stages_of(network), read_until(network)
    inputs = [f"in.{j}" for j in range(network.encoding.width)]
    step = None if network.encoding.levels is None else 1.0 / network.encoding.levels
    graph.add(*(InputCurrent(name, j, step) for j, name in enumerate(inputs)), UnitCurrent())
    signals = {layer.name: [f"{layer.name}.{i}" for i in range(layer.width)] for layer in network.layers}
    signals[INPUT] = inputs
    late = Taps(graph, later_nodes, max(stages[layer.name] for layer in network.recurrent_layers), origin)

    def read(sources: tuple[str, ...], last: int | None) -> Sources:
        taps: list[Tap] = []
        for source in sources:
            if found := network.late.get(source):
                taps += [late.tap(name, found.frames, last) for name in signals[found.signal]]
            else:
                taps += map(Tap, signals[source])
        return read_sources({**later_nodes, **graph.nodes}, taps)

    for layer in network.layers:
        ranges = network.state_ranges.get(layer.name)
        sources = read(layer.sources, until[layer.name])
        placement = LayerPlacement(graph, sources, stages[layer.name], ranges, headroom, origin, later_nodes)
        if isinstance(layer, RecurrentLayer):
            unit_of_layer(layer, origin).lower_layer(layer, placement)
        elif isinstance(layer, AndLayer):
            lower_and(layer, placement)
        else:
            _lower_relu(layer, placement)
    _lower_readout(network.readout, graph, read(network.readout.sources, None))
    return graph


def has_zeros(network: Network) -> bool:
    """Tell whether a compiled network's weights of 0 have edges in its graph, and so rows in the mapping report."""
    return count_zeros(network) <= MOST_ZEROS


def count_zeros(network: Network) -> int:
    """Return how many weights of a network to compile are 0, biases not among them."""
    learned = (layer.arrays().items() for layer in (*network.layers, network.readout))
    weights = (array for arrays in learned for name, array in arrays if name.startswith("weight"))
    return int(sum(array.size - np.count_nonzero(array) for array in weights))


def _without_late(network: Network) -> Network:
    """Return the network without its late sources, on which the kinds of its nodes do not depend."""
    widths = {INPUT: network.encoding.width, **{layer.name: layer.width for layer in network.layers}}
    widths |= {name: widths[late.signal] for name, late in network.late.items()}

    def reduced(layer: Layer) -> Layer:
        kept = np.concatenate([np.full(widths[source], source not in network.late) for source in layer.sources])
        sources = tuple(source for source in layer.sources if source not in network.late)
        if not sources:  # a row reads something
            sources, kept = (INPUT,), np.zeros(0, dtype=bool)
        columns = {
            name: array[:, kept] if kept.size else np.zeros((layer.width, widths[INPUT]))
            for name, array in layer.arrays().items()
            if name.startswith("weight")
        }
        if isinstance(layer, AndLayer):  # with fewer bits it is none
            return ReluLayer(layer.name, sources, columns["weight"], layer.bias)
        return replace(layer, sources=sources, **columns)

    readout = Readout((network.layers[-1].name,), np.zeros((1, network.layers[-1].width)), np.zeros(1))
    return replace(network, layers=tuple(map(reduced, network.layers)), readout=readout, late={})


def _lower_relu(layer: Layer, placement: LayerPlacement) -> None:
    weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
    for i in range(layer.width):
        name = f"{layer.name}.{i}"
        placement.graph.add(Rectifier(name, layer.name, i))
        placement.add_row(name, weight[i], bias[i], Parameter(layer.name, i))


def _lower_readout(readout: Readout, graph: GraphBuilder, sources: Sources) -> None:
    weight, bias = sources.weights_on_currents(readout.weight, readout.bias)
    for k in range(readout.width):
        name = f"readout.{k}"
        graph.add(Output(name, k))
        add_row(graph, name, sources, (weight[k], bias[k]), Parameter("readout", k))
