"""Lower: a network becomes a graph of non-negative currents, in software units; each kind of unit lowers its layers.

A late source is a signal as it was some frames earlier. A row reads it from the cell itself, or from shift cells:

A cell keeps its state until its stage decides. So a row whose stage decides no later than the cell's still finds the
state of the frame before in the cell, at no cost. Every further frame costs a shift cell, a Schmitt trigger of its own
that takes over the bit that it reads when its stage decides:

    cells that decide with their source    the j-th holds, once it has decided, s[t - j], and until then s[t - j - 1]
    cells that decide behind it            the first reads the source's new state: s[t - j + 1], and s[t - j]

Rows that read one signal share its cells. A shift cell holds one bit, so only signals of two values can be later than
that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cosim.base.errors import MappingError
from cosim.network.ir.graph import GraphBuilder, LoweredGraph
from cosim.network.ir.nodes import And, InputCurrent, Memory, Node, Output, Rectifier, UnitCurrent, Weight
from cosim.network.layers import AndLayer, EpsilonLayer, Layer, RecurrentLayer, ReluLayer
from cosim.network.types import INPUT, Network, Readout
from cosim.units.epsilon import check_epsilon
from cosim.units.placement import Circuit, LayerPlacement, Parameter, Sources, Tap, read_sources
from cosim.units.reflector import Reflector
from cosim.units.schmitt import Schmitt, Shift, shift_cell
from cosim.units.table import unit_of_layer
from cosim.units.toggle import Toggle

MOST_CELLS = 256  # shift cells of a network: 20 transistors and some nanowatts for each bit
_SAME = 1e-9  # of numbers that are 1 or whole but for rounding
_BEFORE = -1  # the stage of inputs: they change before any stage decides


@dataclass(frozen=True)
class Taps:
    """The late sources of a network (signals of earlier frames) while the compiler lowers it to a graph.

    later_nodes: name -> node that is not in the graph yet; last: the last stage; origin: file, for messages.
    """

    graph: GraphBuilder
    later_nodes: Mapping[str, Node]
    last: int
    origin: str

    def tap(self, source: str, frames: int, until: int | None) -> Tap:
        """Return the tap that reads a signal `frames` frames late, and add the shift cells that this needs.

        until: the reading row counts until this stage decides; None for a readout, which is read after all stages.
        Raises MappingError if no cell can hold the signal.
        """
        node = self.graph.nodes.get(source) or self.later_nodes[source]
        stage = node.stage if isinstance(node, Memory) else _BEFORE
        if until is None:
            at = self.last if stage == _BEFORE else stage
            return Tap(self._cell(node, (stage, at), frames + (at > stage)))
        if frames == 1 and until <= stage:
            return Tap(source, late=True)
        at = max(stage, until)
        return Tap(self._cell(node, (stage, at), frames - (at == stage)), late=True)

    def _cell(self, node: Node, stages: tuple[int, int], count: int) -> str:
        """Return the name of the last of `count` shift cells in a chain, and add the cells that are missing.

        stages: (stage of the source, stage of the cells).
        """
        source, (stage, at), name = self._bit(node), stages, node.name
        for k in range(1, count + 1):
            before, late = name, k > 1 or at == stage
            name = f"{node.name}.shift{k}" if at == stage else f"{node.name}.shift{k}_{at}"
            if name not in self.graph.nodes:
                self.graph.add(shift_cell(name, source, at, k - (at > stage)))
                self.graph.connect(before, name, Weight(1.0, f"{before}, a frame later", late=late))
                self._check_count()
        return name

    def _bit(self, node: Node) -> InputCurrent | Memory:
        """Return the node if it has two values, so that shift cells can hold it; else raise MappingError."""
        where = f"{self.origin}: {node.name} is read late, through shift cells, which hold one bit each"
        match node:
            case InputCurrent(step=1.0) | Memory(tolerance=0.0, most=1):
                return node
            case InputCurrent():
                raise MappingError(
                    f"{where}, and so it must be 0 or 1: meta.input_levels must be 1; train with `input_levels=1`"
                )
            case _:
                raise MappingError(
                    f"{where}, and so it must have two values: an input of one bit, or a unit of two states, with "
                    "epsilon 0 or -1; read another signal, or this one a single frame late by a layer in front of it "
                    "or itself"
                )

    def _check_count(self) -> None:
        count = sum(isinstance(node, Shift) for node in self.graph.nodes.values())
        if count > MOST_CELLS:
            raise MappingError(
                f"{self.origin}: late sources must need at most {MOST_CELLS} shift cells, not more: that is a memory, "
                "for which a digital one takes less area and power; read fewer signals, or fewer frames late"
            )


def stages_of(network: Network) -> dict[str, int]:
    """Return layer -> stage: for a recurrent layer that in which it decides, else the first that may read it."""
    stages, found = {INPUT: 0}, dict[str, int]()
    for layer in network.layers:
        found[layer.name] = max((stages[source] for source in layer.sources if source not in network.late), default=0)
        stages[layer.name] = found[layer.name] + isinstance(layer, RecurrentLayer)
    return found


def read_until(network: Network) -> dict[str, int | None]:
    """Return for the lowering layer -> the last stage whose decision needs its inputs, None if a readout reads it."""
    stages, found = stages_of(network), dict[str, int | None]()
    for layer in reversed(network.layers):
        if isinstance(layer, RecurrentLayer):
            found[layer.name] = stages[layer.name]
            continue
        behind = [found[reader.name] for reader in network.layers if layer.name in reader.sources]
        read_out = layer.name in network.readout.sources or None in behind
        found[layer.name] = None if read_out else max((one for one in behind if one is not None), default=0)
    return found


HEADROOM = 1  # states beyond the range of the data, at either end
MOST_ZEROS = 10_000  # weights of 0 that have an edge each: no device is made of them, and they take time all the same


def lower(network: Network, origin: str = "network", cell: Circuit = "auto", headroom: int = HEADROOM) -> LoweredGraph:
    """Lower a network to its graph, a pass of the compiler.

    Weights of 0 get edges only if there are at most MOST_ZEROS. cell: circuit of the recurrent units; `auto` chooses by
    epsilon and the number of states; headroom: states of a ladder, counter or reflector beyond the network's state
    ranges, at either end. Raises MappingError for units that have no circuit, with the reason and the repair.
    """
    chosen = [layer for layer in network.recurrent_layers if isinstance(layer, EpsilonLayer)]
    if cell != "auto" and not chosen:
        raise MappingError(f"{origin}: `cell={cell}` is for layers with an epsilon, and there is none; leave it out")
    for layer in chosen:
        check_epsilon(layer, origin, cell)
    later_nodes = _lower(_without_late(network), origin, cell, headroom, {}).nodes if network.late else {}
    return _lower(network, origin, cell, headroom, later_nodes).lowered()


def _lower(
    network: Network, origin: str, cell: Circuit, headroom: int, later_nodes: Mapping[str, Node]
) -> GraphBuilder:
    """Build the graph of a network.

    later_nodes: nodes of all layers, if some are read late; a layer may read late from a layer behind it.
    """
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
        stage = stages[layer.name]
        placement = LayerPlacement(graph, sources, stage, ranges, headroom, cell, origin, later_nodes)
        if isinstance(layer, RecurrentLayer):
            unit_of_layer(layer, origin).lower_layer(layer, placement)
        elif isinstance(layer, AndLayer):
            _lower_and(layer, placement)
        else:
            _lower_relu(layer, placement)
    _lower_readout(network.readout, graph, read(network.readout.sources, None))
    return graph


def has_zeros(network: Network) -> bool:
    """Tell whether weights of 0 have edges in a compiled network's graph, and so rows in the mapping report."""
    return count_zeros(network) <= MOST_ZEROS


def count_zeros(network: Network) -> int:
    """Return how many of the weights that the compiler lowers are 0, without biases."""
    learned = (layer.arrays().items() for layer in (*network.layers, network.readout))
    weights = (array for arrays in learned for name, array in arrays if name.startswith("weight"))
    return int(sum(array.size - np.count_nonzero(array) for array in weights))


def _without_late(network: Network) -> Network:
    """Return the network without its late sources (signals of earlier frames); its nodes stay of the same kinds."""
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


def _lower_and(layer: AndLayer, placement: LayerPlacement) -> None:
    """Lower a layer of kind `and`, products of bits, to one And node a row (cosim.cells.steering).

    Raises MappingError if a row is no product of bits that the circuit has as voltages.
    """
    nodes, taps = {**placement.later_nodes, **placement.graph.nodes}, placement.sources.taps
    weight, bias = placement.sources.weights_on_currents(layer.weight, layer.bias)
    for i in range(layer.width):
        name, where = f"{layer.name}.{i}", f"{placement.origin}: {layer.name}"
        placement.graph.add(And(name, layer.name, i))
        columns = np.flatnonzero(layer.weight[i])
        for column in columns:
            tap, origin = taps[column], f"{layer.name}.weight[{i},{column}]"
            level = _bit_level(nodes[tap.name], f"{where}.weight[{i},{column}]")
            if abs((found := weight[i, column] * level) - 1) > _SAME:
                value = layer.weight[i, column]
                raise MappingError(
                    f"{where}.weight[{i},{column}] must be {value / found:g}, 1 over the level of {tap.name}, not "
                    f"{value:g}: an AND weighs no bits; use a layer of kind relu"
                )
            placement.graph.connect(tap.name, name, Weight(1.0, origin, "gate", tap.late))
        if abs(bias[i] - (1 - len(columns))) > _SAME:
            raise MappingError(
                f"{where}.bias[{i}] must be {layer.bias[i] - bias[i] + 1 - len(columns):g}, which makes an AND of its "
                f"{len(columns)} bits, not {layer.bias[i]:g}; use a layer of kind relu"
            )


def _bit_level(node: Node, where: str) -> float:
    """Return the level, in software units, of a node that an And reads as a bit.

    Raises MappingError for a node that is no bit. where: the weight, for the message.
    """
    match node:
        case InputCurrent(step=1.0):
            return 1.0
        case Schmitt() | Shift() | Toggle():
            return node.level
        case Reflector():
            raise MappingError(
                f"{where} reads {node.name}, which became a reflector, a unit of many states, and an AND reads bits: "
                f"ranges.{node.layer} shows more than two states, or has no third row; measure it with "
                "`ranges_from=FILE.npz`, or use a layer of kind relu"
            )
        case InputCurrent():
            raise MappingError(
                f"{where} reads {node.name}, which must be 0 or 1: meta.input_levels must be 1; train with "
                "`input_levels=1`"
            )
        case _:
            kind = "a unit of many states" if isinstance(node, Memory) else "no bit"
            raise MappingError(
                f"{where} reads {node.name}, {kind}, and an AND reads inputs of one bit and units of two states, "
                "with epsilon 0 or -1; use a layer of kind relu"
            )


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
        sources.add_row(graph, name, weight[k], bias[k], Parameter("readout", k))
