"""Supply power of a compiled network from its currents: V_DD times every branch that starts at the supply.

    input and unit diodes        I
    line n of a signal           g_push I                      (the p copy into the n diode)
    summing node                 sum of its positive terms     (what is pulled comes from V_DD, directly or as push)
    9T cell, state 1             I_thresh + I_width + I_high   (decision branch, feedback, output)
    9T cell, state 0             u                             (the candidate copy into the sink)
    comparator                   min(u, I_thresh)
    driver                       2 I_in                        (the tails, and their copy into line n)
    rung, state 1                u_k + I_thresh + I_width + 3 alpha     (own state, DPI, output)
    rung, state 0                2 u_k                         u_k = I_in + alpha (s_{k-1} + s_{k+1})
    toggle                       its comparator, its drive, its 9T cell
    bias pins                    each once

A state changes in mid-frame, when its stage decides, so its mean over a frame mixes the old and the new one.
Static: charging gates at frame edges is left to ngspice; at 10 ms it is under 1 % (benchmarks/bench_simulator.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import networkx as nx
import numpy as np

from cosim.behavioral.evaluate import Array, BehavioralTrace
from cosim.ir.nodes import (
    InputCurrent,
    Ladder,
    LadderPins,
    Memory,
    Output,
    Pedestal,
    Rectifier,
    Schmitt,
    SchmittBias,
    Toggle,
    TogglePins,
    UnitCurrent,
    edges_into,
    nodes_of,
)
from cosim.technology.calibration import Calibration


def estimate_power(
    graph: nx.DiGraph,
    calibration: Calibration,
    trace: BehavioralTrace,
    supply: float,
    bias_total: float,
    closes: Sequence[float],
    rails: frozenset[str],
    strength: Mapping[str, float],
) -> dict[str, Array]:
    """Mean power per frame in watt, (n, time), per block: inputs, rails, rows, cells, bias.

    supply: V; bias_total: sum of the bias-pin currents, A; closes: when each stage decides, fraction of a frame;
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
    for node in nodes_of(graph, Rectifier, Schmitt, Ladder, Toggle, Output):
        for source, _ in edges_into(graph, node.name):
            mirror = graph.edges[source, node.name]["mirror"]
            if mirror.count > 0:
                rows = rows + mirror.realised * mean[source]
    cells = sum(
        (_cell_current(graph, node, trace, closes, push, mean) for node in nodes_of(graph, Schmitt)), np.zeros(shape)
    )
    for memory in nodes_of(graph, Ladder, Toggle):
        now = _native_current(graph, memory, trace)
        close = closes[memory.stage]
        rest = _native_current(graph, memory, _at_rest(memory, trace))[:, :1]
        cells = cells + close * _previous(now, rest) + (1 - close) * now + mean[memory.name]
    blocks = {"inputs": inputs, "rails": rail_total, "rows": rows, "cells": cells, "bias": np.full(shape, bias_total)}
    return {name: supply * current for name, current in blocks.items()}


def _frame_mean(graph: nx.DiGraph, name: str, current: Array, trace: BehavioralTrace, closes: Sequence[float]) -> Array:
    node = graph.nodes[name]["node"]
    if not isinstance(node, Memory):
        return current
    close = closes[node.stage]
    i_pedestal: float = graph.graph["i_pedestal"]
    rest = np.full_like(current[:, :1], i_pedestal)
    if isinstance(node, Ladder):
        rest += node.start * graph.nodes[name]["currents"].i_high
    return close * _previous(current, rest) + (1 - close) * current


def _previous(values: Array, rest: Array) -> Array:
    """The values (n, time) one frame earlier; frame 0 is preceded by the reset, whose values are `rest` (n, 1)."""
    return np.concatenate([rest, values[:, :-1]], axis=1)


def _at_rest(node: Memory, trace: BehavioralTrace) -> BehavioralTrace:
    """The trace with one memory as the reset holds it: no candidate, its first state."""
    start = node.start if isinstance(node, Ladder) else 0
    states = {**trace.states, node.name: np.full_like(trace.states[node.name], start)}
    candidates = {**trace.candidates, node.name: np.zeros_like(trace.candidates[node.name])}
    return replace(trace, states=states, candidates=candidates)


def _native_current(graph: nx.DiGraph, node: Memory, trace: BehavioralTrace) -> Array:
    """A ladder or a toggle without its output, ampere, (n, time)."""
    pins: LadderPins | TogglePins = graph.nodes[node.name]["bias"]
    candidate, state = trace.candidates[node.name], trace.states[node.name]
    total = np.minimum(candidate, pins.i_upper)
    retain = pins.i_base + pins.i_delta
    if isinstance(pins, TogglePins):
        return total + retain + np.where(state > 0, pins.i_thresh + pins.i_width, retain)
    total = total + np.minimum(candidate, pins.i_lower) + 2 * retain
    assert isinstance(node, Ladder)
    alpha, bias = pins.ladder.i_gain, pins.ladder
    for k in range(1, node.rungs + 1):
        below = alpha * (state >= k - 1) * (k > 1)
        above = alpha * (state >= k + 1)
        u, thresh, width = retain + below + above, bias.i_thresh, bias.i_width
        if k == 1:
            thresh, width = bias.i_thresh_1, bias.i_width_1
        # The output's own alpha is counted with the state line, by the caller.
        total = total + u + np.where(state >= k, thresh + width + 2 * alpha, u)
    return total


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
    rest = np.zeros_like(now[:, :1])
    return close * _previous(now, rest) + (1 - close) * now + mean[node.name] + lines
