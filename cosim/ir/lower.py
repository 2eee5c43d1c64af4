"""Lower: a network becomes a graph of non-negative currents, in software units.

First-quadrant unit (arXiv 2605.15216): u = max(W x + b, 0), thresholds beta_hi and beta_lo, level alpha.

Signed unit of the seed paper (arXiv 2605.11855, eq. 2-5) on one cell: add a common-mode offset c to the candidate and
to both thresholds, rise = c + beta, fall = c - beta. With c above every beta at which the unit may reset, fall is
positive there, and rectifying c + h_hat changes no decision: where it is negative, it is below fall. The signed state
h = 2 alpha s - alpha folds into what reads it: W h + b = W (2 alpha s) + (b - W alpha).
beta = |W_b x + b_b| = max(v, 0) + max(-v, 0): two rectifiers per unit.
"""

import networkx as nx
import numpy as np
from scipy.optimize import linprog

from cosim.errors import MappingError
from cosim.ir.nodes import UNIT_CURRENT, InputCurrent, Output, Rectifier, Schmitt, UnitCurrent, Weight, edges_into
from cosim.network.types import INPUT, Array, FirstQuadrantLayer, Layer, Network, Readout, ReluLayer, SignedLayer

OFFSET_MARGIN = 0.25  # software units between the largest beta and the offset, so that fall stays off the leakage floor
OFFSET_STEP = 0.125


def lower(network: Network, origin: str = "network") -> nx.DiGraph:
    """Graph with `node` on nodes and `weight` on edges; every learned weight has its edge, zeros included.

    Raises MappingError for epsilon != 0 and for the alphaCMRU, which have no Schmitt-trigger form.
    """
    graph = nx.DiGraph()
    _check_schmitt_form(network, origin)
    signals: dict[str, list[str]] = {INPUT: [f"in.{j}" for j in range(network.encoding.width)]}
    state_offset: dict[str, Array] = {INPUT: np.zeros(network.encoding.width)}
    step = None if network.encoding.levels is None else 1.0 / network.encoding.levels
    for j, name in enumerate(signals[INPUT]):
        graph.add_node(name, node=InputCurrent(name, j, step))
    graph.add_node(UNIT_CURRENT, node=UnitCurrent())

    stages: dict[str, int] = {INPUT: 0}
    for layer in network.layers:
        stage = max(stages[source] for source in layer.sources)
        sources = [name for source in layer.sources for name in signals[source]]
        fold = np.concatenate([state_offset[source] for source in layer.sources])
        _add_layer(graph, layer, sources, fold, stage, network)
        signals[layer.name] = [f"{layer.name}.{i}" for i in range(layer.width)]
        state_offset[layer.name] = -layer.alpha if isinstance(layer, SignedLayer) else np.zeros(layer.width)
        stages[layer.name] = stage + (not isinstance(layer, ReluLayer))
    _add_readout(graph, network.readout, signals, state_offset)
    return graph


def _check_schmitt_form(network: Network, origin: str) -> None:
    for layer in network.recurrent_layers:
        if layer.epsilon != 0:
            raise MappingError(
                f"{origin}: {layer.name}.epsilon must be 0 for a Schmitt trigger, not {layer.epsilon:g}; anneal it to "
                "0 in training (cosim train --epsilon anneal)"
            )
        if isinstance(layer, SignedLayer) and layer.weight_alpha is not None:
            raise MappingError(
                f"{origin}: {layer.name} is an alphaCMRU, whose level depends on the input; a Schmitt trigger has a "
                "constant level: train with --cell cmru or bmru"
            )


def _add_layer(graph: nx.DiGraph, layer: Layer, sources: list[str], fold: Array, stage: int, network: Network) -> None:
    bias = layer.bias + layer.weight @ fold
    if isinstance(layer, ReluLayer):
        for i in range(layer.width):
            name = f"{layer.name}.{i}"
            graph.add_node(name, node=Rectifier(name, layer.name, i))
            _add_row(graph, name, sources, layer.weight[i], bias[i], layer.name, "", i)
        return
    if isinstance(layer, FirstQuadrantLayer):
        for i in range(layer.width):
            name = f"{layer.name}.{i}"
            rise, fall, level = float(layer.beta_hi[i]), float(layer.beta_lo[i]), float(layer.alpha[i])
            graph.add_node(name, node=Schmitt(name, layer.name, i, stage, rise, fall, level))
            _add_row(graph, name, sources, layer.weight[i], bias[i], layer.name, "", i)
        return
    _add_signed_layer(graph, layer, sources, fold, bias, stage)


def _add_signed_layer(
    graph: nx.DiGraph, layer: SignedLayer, sources: list[str], fold: Array, bias: Array, stage: int
) -> None:
    if layer.weight_beta is None:
        bias_beta = np.zeros(layer.width)
    else:
        bias_beta = layer.bias_beta + layer.weight_beta @ fold
    tops = _largest_signals(graph, sources)
    for i in range(layer.width):
        name = f"{layer.name}.{i}"
        if layer.weight_beta is None:
            beta = largest = abs(float(layer.bias_beta[i]))
        else:
            beta = 0.0
            largest = _largest_beta_at_reset(layer.weight[i], bias[i], layer.weight_beta[i], bias_beta[i], tops)
        offset = float(np.ceil((largest + OFFSET_MARGIN) / OFFSET_STEP) * OFFSET_STEP)
        level = 2.0 * float(layer.alpha[i])
        node = Schmitt(name, layer.name, i, stage, offset + beta, offset - beta, level, offset)
        graph.add_node(name, node=node)
        _add_row(graph, name, sources, layer.weight[i], bias[i] + offset, layer.name, "", i)
        if layer.weight_beta is not None:
            for sign, label in ((1.0, "pos"), (-1.0, "neg")):
                part = f"{name}.beta_{label}"
                graph.add_node(part, node=Rectifier(part, layer.name, i))
                weights, constant = sign * layer.weight_beta[i], sign * bias_beta[i]
                _add_row(graph, part, sources, weights, constant, layer.name, "_beta", i, f" ({label})")
                graph.add_edge(part, name, weight=Weight(1.0, f"{layer.name}.beta[{i}] ({label})", "beta"))


def _largest_beta_at_reset(weight: Array, bias: float, weight_beta: Array, bias_beta: float, tops: Array) -> float:
    """Largest beta at which h_hat <= -beta can happen, over signals in [0, top]: the offset must reach that far.

    beta = |v| with v = W_beta x + b_beta; for each sign of v: maximise |v| subject to |v| + h_hat <= 0. Also beta at
    x = 0, where the reset in front of frame 0 holds the inputs.
    """
    largest = abs(bias_beta)
    for sign in (1.0, -1.0):
        v, v_0 = sign * weight_beta, sign * bias_beta
        found = linprog(
            -v,
            A_ub=np.stack([v + weight, -v]),
            b_ub=[-(v_0 + bias), v_0],
            bounds=list(zip(np.zeros_like(tops), tops, strict=True)),
        )
        if found.status == 0:
            largest = max(largest, float(v @ found.x + v_0))
    return largest


def _largest_signals(graph: nx.DiGraph, sources: list[str]) -> Array:
    """Upper bound of each signal in units: 1 for an input, the level of a state, what can drive a rectifier."""
    found: dict[str, float] = {UNIT_CURRENT: 1.0}

    def largest(name: str) -> float:
        if name not in found:
            match graph.nodes[name]["node"]:
                case Schmitt(level=level):
                    found[name] = level
                case Rectifier():
                    terms = ((source, weight.target) for source, weight in edges_into(graph, name))
                    drive = sum(
                        target if source == UNIT_CURRENT else max(target, 0.0) * largest(source)
                        for source, target in terms
                    )
                    found[name] = max(drive, 0.0)
                case _:
                    found[name] = 1.0
        return found[name]

    return np.array([largest(source) for source in sources])


def _add_readout(
    graph: nx.DiGraph, readout: Readout, signals: dict[str, list[str]], state_offset: dict[str, Array]
) -> None:
    sources = [name for source in readout.sources for name in signals[source]]
    bias = readout.bias + readout.weight @ np.concatenate([state_offset[source] for source in readout.sources])
    for k in range(readout.width):
        name = f"readout.{k}"
        graph.add_node(name, node=Output(name, k))
        _add_row(graph, name, sources, readout.weight[k], bias[k], "readout", "", k)


def _add_row(
    graph: nx.DiGraph,
    name: str,
    sources: list[str],
    weights: Array,
    bias: float,
    layer: str,
    suffix: str,
    row: int,
    part: str = "",
) -> None:
    for column, (source, value) in enumerate(zip(sources, weights, strict=True)):
        graph.add_edge(source, name, weight=Weight(float(value), f"{layer}.weight{suffix}[{row},{column}]{part}"))
    graph.add_edge(UNIT_CURRENT, name, weight=Weight(float(bias), f"{layer}.bias{suffix}[{row}]{part}"))
