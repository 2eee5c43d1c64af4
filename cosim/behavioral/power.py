"""Supply power of a compiled network from its currents: V_DD times every branch that starts at the supply.

    input and unit diodes        I
    line n of a signal           g_push I                      (the p copy into the n diode)
    summing node                 sum of its positive terms     (what is pulled comes from V_DD, directly or as push)
    9T cell, state 1             I_thresh + I_width + I_high   (decision branch, feedback, output)
    9T cell, state 0             u                             (the candidate copy into the sink)
    bias pins                    each once

A state changes in mid-frame, when its stage decides, so its mean over a frame mixes the old and the new one.
Static: charging gates at frame edges is left to ngspice; at 10 ms it is under 1 % (benchmarks/bench_simulator.py).
"""

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np

from cosim.behavioral.evaluate import Array, BehavioralTrace
from cosim.ir.nodes import (
    InputCurrent,
    Output,
    Pedestal,
    Rectifier,
    Schmitt,
    SchmittBias,
    UnitCurrent,
    edges_into,
    nodes_of,
)
from cosim.technology.calibration import Calibration


def estimate_power(
    graph: nx.DiGraph,
    calibration: Calibration,
    trace: BehavioralTrace,
    bias_total: float,
    closes: Sequence[float],
    rails: frozenset[str],
    strength: Mapping[str, float],
) -> dict[str, Array]:
    """Mean power per frame in watt, (n, time), per block: inputs, rails, rows, cells, bias.

    bias_total: sum of the bias-pin currents, A; closes: when each stage decides, fraction of a frame;
    rails: the signals that have a line n; strength: signal -> how much stronger its own diodes are built, if not 1.
    """
    mean = {name: _frame_mean(graph, name, current, trace, closes) for name, current in trace.currents.items()}
    shape = trace.readout.shape[:2]
    inputs = sum(
        (strength.get(node.name, 1) * mean[node.name] for node in nodes_of(graph, InputCurrent, UnitCurrent, Pedestal)),
        np.zeros(shape),
    )
    push = calibration.mirror.push
    rail_total = sum((strength.get(name, 1) * push * mean[name] for name in sorted(rails)), np.zeros(shape))
    rows = np.zeros(shape)
    for node in nodes_of(graph, Rectifier, Schmitt, Output):
        for source, _ in edges_into(graph, node.name):
            mirror = graph.edges[source, node.name]["mirror"]
            if mirror.count > 0:
                rows = rows + mirror.realised * mean[source]
    cells = sum(
        (_cell_current(graph, node, trace, closes, push, mean) for node in nodes_of(graph, Schmitt)), np.zeros(shape)
    )
    blocks = {"inputs": inputs, "rails": rail_total, "rows": rows, "cells": cells, "bias": np.full(shape, bias_total)}
    return {name: calibration.supply * current for name, current in blocks.items()}


def _frame_mean(graph: nx.DiGraph, name: str, current: Array, trace: BehavioralTrace, closes: Sequence[float]) -> Array:
    node = graph.nodes[name]["node"]
    if not isinstance(node, Schmitt):
        return current
    close = closes[node.stage]
    return close * _previous(current) + (1 - close) * current


def _previous(values: Array) -> Array:
    """The values one frame earlier; frame 0 is preceded by the reset, where a cell carries its least."""
    return np.concatenate([np.minimum.reduce(values, axis=1, keepdims=True), values[:, :-1]], axis=1)


def _cell_current(
    graph: nx.DiGraph,
    node: Schmitt,
    trace: BehavioralTrace,
    closes: Sequence[float],
    push: float,
    mean: dict[str, Array],
) -> Array:
    bias: SchmittBias = graph.nodes[node.name]["bias"]
    beta = sum((trace.currents[source] for source, _ in edges_into(graph, node.name, "beta")), np.float64(0.0))
    i_thresh = (bias.i_thresh + push * beta) / bias.trim_thresh
    i_width = (bias.i_width + 2 * push * beta) / bias.trim_width
    lines = 3 * push * beta  # the copies of beta into the threshold (1) and width (2) lines
    state = trace.states[node.name].astype(float)
    candidate = trace.candidates[node.name]
    now = np.where(state > 0, i_thresh + i_width, candidate)
    close = closes[node.stage]
    return close * _previous(now) + (1 - close) * now + mean[node.name] + lines
