"""Supply power of a compiled network from its currents: V_DD times every branch that starts at the supply.

    input and unit diodes        I
    line n of a signal           g_push I                      (the p copy into the n diode)
    summing node                 sum of its positive terms     (what is pulled comes from V_DD, directly or as push)
    9T cell, state 1             I_thresh + I_width + I_high   (decision branch, feedback, output)
    9T cell, state 0             u                             (the candidate copy into the sink)
    bias pins                    each once

A state changes in mid-frame, when its stage's switch opens, so its mean over a frame mixes the old and the new one.
Static: charging gates at frame edges is left to ngspice; at 10 ms it is under 1 % (benchmarks/bench_simulator.py).
"""

from collections.abc import Sequence

import networkx as nx
import numpy as np

from cosim.behavioral.evaluate import Array, BehavioralTrace
from cosim.ir.nodes import InputCurrent, Output, Rectifier, Schmitt, SchmittBias, UnitCurrent, edges_into, nodes_of
from cosim.technology.calibration import Calibration


def estimate_power(
    graph: nx.DiGraph,
    calibration: Calibration,
    trace: BehavioralTrace,
    bias_total: float,
    opens: Sequence[float],
    rails: frozenset[str],
) -> dict[str, Array]:
    """Mean power per frame in watt, (n, time), per block: inputs, rails, rows, cells, bias.

    bias_total: sum of the bias-pin currents, A; opens: when each stage's switch opens, fraction of a frame;
    rails: the signals that have a line n.
    """
    mean = {name: _frame_mean(graph, name, current, trace, opens) for name, current in trace.currents.items()}
    shape = trace.readout.shape[:2]
    inputs = sum((mean[node.name] for node in nodes_of(graph, InputCurrent, UnitCurrent)), np.zeros(shape))
    push = calibration.mirror.push
    rail_total = sum((push * mean[name] for name in sorted(rails)), np.zeros(shape))
    rows = np.zeros(shape)
    for node in nodes_of(graph, Rectifier, Schmitt, Output):
        for source, _ in edges_into(graph, node.name):
            mirror = graph.edges[source, node.name]["mirror"]
            if mirror.count > 0:
                rows = rows + mirror.realised * mean[source]
    cells = sum((_cell_current(graph, node, trace, opens, push, mean) for node in nodes_of(graph, Schmitt)), np.zeros(shape))
    blocks = {"inputs": inputs, "rails": rail_total, "rows": rows, "cells": cells, "bias": np.full(shape, bias_total)}
    return {name: calibration.supply * current for name, current in blocks.items()}


def _frame_mean(
    graph: nx.DiGraph, name: str, current: Array, trace: BehavioralTrace, opens: Sequence[float]
) -> Array:
    node = graph.nodes[name]["node"]
    if not isinstance(node, Schmitt):
        return current
    opening = opens[node.stage]
    return opening * _previous(current) + (1 - opening) * current


def _previous(values: Array) -> Array:
    return np.concatenate([np.zeros_like(values[:, :1]), values[:, :-1]], axis=1)


def _cell_current(
    graph: nx.DiGraph, node: Schmitt, trace: BehavioralTrace, opens: Sequence[float], push: float, mean: dict[str, Array]
) -> Array:
    bias: SchmittBias = graph.nodes[node.name]["bias"]
    beta = sum((trace.currents[source] for source, _ in edges_into(graph, node.name, "beta")), np.float64(0.0))
    i_thresh = (bias.i_thresh + push * beta) / bias.trim_thresh
    i_width = (bias.i_width + 2 * push * beta) / bias.trim_width
    lines = 3 * push * beta  # the copies of beta into the threshold (1) and width (2) lines
    state = trace.states[node.name].astype(float)
    candidate = trace.candidates[node.name]
    now = np.where(state > 0, i_thresh + i_width, candidate)
    opening = opens[node.stage]
    return opening * _previous(now) + (1 - opening) * now + mean[node.name] + lines
