"""Lower: a network becomes a graph of non-negative currents, in software units. What a layer becomes, its unit says."""

from cosim.ir.graph import Lowered, Wiring
from cosim.ir.nodes import InputCurrent, Output, Rectifier, UnitCurrent
from cosim.network.layers import EpsilonLayer, Layer, RecurrentLayer
from cosim.network.types import INPUT, Network
from cosim.units.epsilon import Circuit, check_epsilon
from cosim.units.placing import Parameter, Placing, add_row, read_sources
from cosim.units.table import unit_for

HEADROOM = 1  # states beyond the range of the data, at either end


def lower(network: Network, origin: str = "network", cell: Circuit = "auto", headroom: int = HEADROOM) -> Lowered:
    """The graph of a network; every learned weight has its edge, zeros included.

    `cell`: what recurrent units become, auto chooses by epsilon; `headroom`: rungs of a ladder beyond the network's
    state ranges. Raises MappingError for units that have no circuit, with the reason and the repair.
    """
    graph = Wiring()
    for recurrent in network.recurrent_layers:
        if isinstance(recurrent, EpsilonLayer):
            check_epsilon(recurrent, origin, cell)
    signals: dict[str, list[str]] = {INPUT: [f"in.{j}" for j in range(network.encoding.width)]}
    step = None if network.encoding.levels is None else 1.0 / network.encoding.levels
    graph.add(*(InputCurrent(name, j, step) for j, name in enumerate(signals[INPUT])), UnitCurrent())

    stages: dict[str, int] = {INPUT: 0}
    for layer in network.layers:
        stage = max(stages[source] for source in layer.sources)
        sources = read_sources(graph, [name for source in layer.sources for name in signals[source]])
        ranges = network.state_ranges.get(layer.name)
        placing = Placing(graph, sources, stage, ranges, headroom, origin)
        if isinstance(layer, RecurrentLayer):
            unit_for(layer, origin).lower(layer, placing)
        else:
            _lower_relu(layer, placing)
        stages[layer.name] = stage + isinstance(layer, RecurrentLayer)
        signals[layer.name] = [f"{layer.name}.{i}" for i in range(layer.width)]
    _lower_readout(network, graph, signals)
    return graph.lowered()


def _lower_relu(layer: Layer, placing: Placing) -> None:
    weight, bias = placing.sources.folded(layer.weight, layer.bias)
    for i in range(layer.width):
        name = f"{layer.name}.{i}"
        placing.graph.add(Rectifier(name, layer.name, i))
        placing.add_row(name, weight[i], bias[i], Parameter(layer.name, i))


def _lower_readout(network: Network, graph: Wiring, signals: dict[str, list[str]]) -> None:
    readout = network.readout
    sources = read_sources(graph, [name for source in readout.sources for name in signals[source]])
    weight, bias = sources.folded(readout.weight, readout.bias)
    for k in range(readout.width):
        name = f"readout.{k}"
        graph.add(Output(name, k))
        add_row(graph, name, sources, (weight[k], bias[k]), Parameter("readout", k))
