"""Supply power of a compiled network from its currents: V_DD times every branch that starts at the supply.

    input and unit diodes        I
    line n of a signal           g_push I                      (the p copy into the n diode)
    summing node                 sum of its positive terms     (what is pulled comes from V_DD, through the diode or
                                                                as push)
    output                       the same, or what is pushed if that is more: the readout stage delivers what an output
                                 pulls, and sinks to ground what it pushes
    9T cell, state s             min(g_push (u + I_w s), g_n I_thresh) + I_w s + I_high s     I_w = i_high(I_width)
                                 (decision branch, feedback, output)
    comparator                   min(g_push u, g_n I_thresh)
    driver                       (1 + g_push) g_sink I_retain  (the tails, and their copy into line n)
    rung, state s                u_k + min(g_push (u_k + I_w s), g_n I_thresh) + I_w s + 2 alpha s     (own state, DPI)
                                 u_k = g_sink I_in + alpha (s_{k-1} + s_{k+1});  the output's alpha is in its signal
    toggle, update z             its comparator, its drive g_sink (I_base + I_delta (1 + z)), 2 I_delta z s, its 9T cell
    bias pins                    each once

g_push: a p copy into an nMOS diode; g_sink: an n copy onto a pMOS diode; g_n = g_sink + slope_n v_node: an n copy with
its drain at V_DD. The decision branch of a memory or comparator carries the less of what M1 and M9 source and M2 sinks,
because the other side leaves saturation; v0 is then at a rail. Feedback and output branch of the 9T cell are alike (M6,
M8, M7 and M3, M5, M4 in cosim.cells.schmitt), so the calibrated level i_high serves both, as alpha in a rung.

A frame has a span from each moment at which something decides to the next: a stage at its close, its ladders and
toggles in their pulse. In each span the circuit stands still, with the states as they are by then (`evaluate_held`).
Static: the lag of currents behind their edges is left to ngspice (cosim.simulation.metering).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.cells.blocks import BLOCKS
from cosim.engines.behavioral.evaluate import Array, BehavioralTrace, Deviations, evaluate_held, first_state
from cosim.ir.graph import Sized
from cosim.ir.ladder import PULSE_BEGIN
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
)
from cosim.technology.calibration import Calibration


def estimate_power(
    graph: Sized,
    calibration: Calibration,
    trace: BehavioralTrace,
    supply: float,
    bias_total: float,
    closes: Sequence[float],
    rails: frozenset[str],
    strength: Mapping[str, float],
    deviations: Deviations = Deviations(),
) -> dict[str, Array]:
    """Mean power per frame in watt, (n, time), for each of BLOCKS.

    supply: V; bias_total: sum of the bias-pin currents, A; closes: when each stage decides, fraction of a frame;
    rails: the signals that have a line n; strength: signal -> how much stronger its own diodes are built, if not 1;
    deviations: those that the trace was evaluated with.
    """
    total = {block: np.zeros(trace.readout.shape[:2]) for block in BLOCKS}
    total["bias"] += supply * bias_total
    decides, changes = _moments(graph, closes)
    begins = sorted({0.0, *decides.values(), *changes.values()})
    for begin, duration in zip(begins, np.diff([*begins, 1.0]), strict=True):
        standing = trace
        if begin < begins[-1]:
            states = _standing(graph, trace.states, changes, begin)
            standing = evaluate_held(graph, calibration, trace, states, deviations)
        updates = _standing(graph, _updates(graph, trace), decides, begin)
        for block, current in _block_currents(graph, calibration, standing, updates, rails, strength).items():
            total[block] = total[block] + supply * duration * current
    return total


States = Mapping[str, NDArray[np.int16]]


def _moments(graph: Sized, closes: Sequence[float]) -> tuple[dict[str, float], dict[str, float]]:
    """When each memory decides and when its state changes, fraction of a frame: a ladder's or toggle's in its pulse."""
    memories = list(graph.memories)
    decides = {node.name: closes[node.stage] for node in memories}
    waits = {node.name: 0.0 if isinstance(node, Schmitt) else PULSE_BEGIN for node in memories}
    return decides, {name: decides[name] + waits[name] for name in decides}


def _standing(graph: Sized, values: States, moments: Mapping[str, float], begin: float) -> dict[str, NDArray[np.int16]]:
    """Values of memories as they stand from `begin` on: this frame's where their moment has come, else the last one's.

    values: (n, time), each from its moment on.
    """
    return {
        node.name: values[node.name] if moments[node.name] <= begin else _previous(node, values[node.name])
        for node in graph.memories
        if node.name in values
    }


def _previous(node: Memory, now: NDArray[np.int16]) -> NDArray[np.int16]:
    return np.concatenate([np.full_like(now[:, :1], first_state(node)), now[:, :-1]], axis=1)


def _updates(graph: Sized, trace: BehavioralTrace) -> dict[str, NDArray[np.int16]]:
    """z of each toggle: whether the frame's decision changed it."""
    states = {node.name: (node, trace.states[node.name]) for node in graph.of(Toggle)}
    return {name: (now != _previous(node, now)).astype(np.int16) for name, (node, now) in states.items()}


def _block_currents(
    graph: Sized,
    calibration: Calibration,
    trace: BehavioralTrace,
    updates: States,
    rails: frozenset[str],
    strength: Mapping[str, float],
) -> dict[str, Array]:
    """Supply current, (n, time) in ampere, of every block but bias."""
    push, current = calibration.mirror.push, trace.currents
    nothing = np.zeros(trace.readout.shape[:2])
    sources = graph.of(InputCurrent, UnitCurrent, Pedestal)
    cells = [_cell_current(graph, node, trace, calibration) for node in graph.of(Schmitt)]
    cells += [_ladder_current(graph, node, trace, calibration) for node in graph.of(Ladder)]
    cells += [_toggle_current(graph, node, trace, updates, calibration) for node in graph.of(Toggle)]
    rows = [_pulled(graph, node.name, trace) for node in graph.of(Rectifier, Schmitt, Ladder, Toggle)]
    return {
        "inputs": sum((strength.get(node.name, 1) * current[node.name] for node in sources), nothing),
        "rails": sum((strength.get(name, 1) * push * current[name] for name in sorted(rails)), nothing),
        "rows": sum(rows, nothing),
        "readout": sum((_output_current(graph, node.name, trace) for node in graph.of(Output)), nothing),
        "cells": sum(cells, nothing),
    }


def _pulled(graph: Sized, name: str, trace: BehavioralTrace) -> Array:
    """The positive terms of a row, ampere, (n, time)."""
    total = np.zeros(trace.readout.shape[:2])
    for source, _ in graph.into(name):
        mirror = graph.mirrors[source, name]
        if mirror.count > 0:
            total = total + mirror.realised * trace.currents[source]
    return total


def _output_current(graph: Sized, name: str, trace: BehavioralTrace) -> Array:
    """What an output pulls, or pushes if that is more, ampere, (n, time)."""
    return _pulled(graph, name, trace) + np.maximum(-trace.currents[name], 0.0)


def _cell_current(graph: Sized, node: Schmitt, trace: BehavioralTrace, calibration: Calibration) -> Array:
    """A clocked 9T cell with its output, its pedestal and the copies of beta into its lines, ampere, (n, time)."""
    bias = graph.bias(node.name, SchmittBias)
    mirror = calibration.mirror
    beta = sum((trace.currents[source] for source, _ in graph.into(node.name, "beta")), np.float64(0.0))
    i_thresh = (bias.i_thresh + mirror.push * beta) / bias.trim_thresh
    i_width = (bias.i_width + 2 * mirror.push * beta) / bias.trim_width
    lines = 3 * mirror.push * beta  # the copies of beta into the threshold (1) and width (2) lines
    state, candidate = trace.states[node.name] > 0, trace.candidates[node.name]
    return _memory_current(calibration, candidate, state, i_thresh, i_width) + trace.currents[node.name] + lines


def _memory_current(
    calibration: Calibration,
    candidate: Array,
    state: NDArray[np.bool_],
    i_thresh: Array | float,
    i_width: Array | float,
) -> Array:
    """Decision branch and feedback of a 9T cell, ampere, (n, time)."""
    mirror = calibration.mirror
    feedback = calibration.schmitt.i_high(i_width) * state
    sunk = (mirror.sink + mirror.slope_n * calibration.v_node) * i_thresh
    return np.minimum(mirror.push * (candidate + feedback), sunk) + feedback


def _comparator_current(calibration: Calibration, candidate: Array, i_thresh: float) -> Array:
    """A 9T cell's decision branch without its feedback."""
    return _memory_current(calibration, candidate, np.zeros(candidate.shape, dtype=bool), i_thresh, 0.0)


def _ladder_current(graph: Sized, node: Ladder, trace: BehavioralTrace, calibration: Calibration) -> Array:
    """A quantiser and its ladder, with output and pedestal, ampere, (n, time)."""
    pins = graph.bias(node.name, LadderPins)
    mirror, bias = calibration.mirror, pins.ladder
    candidate, state = trace.candidates[node.name], trace.states[node.name]
    total = trace.currents[node.name] + sum(
        _comparator_current(calibration, candidate, i_thresh) for i_thresh in (pins.i_upper, pins.i_lower)
    )
    tails = mirror.sink * (pins.i_base + pins.i_delta)
    total = total + (1 + mirror.push) * tails
    alpha = float(calibration.schmitt.i_high(np.float64(bias.i_gain)))
    for k in range(1, node.rungs + 1):
        below = alpha * (state >= k - 1) * (k > 1)
        above = alpha * (state >= k + 1)
        u = mirror.sink * mirror.push * tails + below + above
        thresh, width = (bias.i_thresh_1, bias.i_width_1) if k == 1 else (bias.i_thresh, bias.i_width)
        total = total + u + _memory_current(calibration, u, state >= k, thresh, width) + 2 * alpha * (state >= k)
    return total


def _toggle_current(
    graph: Sized, node: Toggle, trace: BehavioralTrace, updates: States, calibration: Calibration
) -> Array:
    """A toggle with output and pedestal, ampere, (n, time)."""
    pins = graph.bias(node.name, TogglePins)
    update, state = updates[node.name], trace.states[node.name]
    pulled = calibration.mirror.sink * (pins.i_base + pins.i_delta * (1 + update))
    pushed = 2 * pins.i_delta * update * state
    total = trace.currents[node.name] + _comparator_current(calibration, trace.candidates[node.name], pins.i_upper)
    slave = _memory_current(calibration, np.maximum(pulled - pushed, 0.0), state > 0, pins.i_thresh, pins.i_width)
    return total + pulled + pushed + slave
