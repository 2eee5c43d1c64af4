"""Figures of a trained network by the float64 reference: scores, distances from thresholds, ranges."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosim.network.layers import EpsilonLayer, FirstQuadrantLayer, RecurrentLayer, SignedLayer
from cosim.network.reference import Trace, read_sources, run_reference
from cosim.network.scores import balanced_accuracy
from cosim.network.types import Network
from cosim.tasks.task import Task

NEAR = (0.01, 0.02, 0.05)

Figures = dict[str, Any]  # JSON, as a checkpoint keeps it


def measure_figures(network: Network, task: Task) -> Figures:
    """Measure a trained network on the test samples, for JSON: score, threshold and decision margins, size."""
    trace = run_reference(network, task.x_test, task.len_test, "test data")
    figures: Figures = {"test_samples": len(task.x_test)}
    if task.labels:
        figures |= _classification(trace, task.y_test)
    else:
        figures["test_mae"] = float(np.abs(trace.scores - task.y_test).mean())
    if compared := [layer for layer in network.recurrent_layers if trace.layers[layer.name].window is not None]:
        figures["near_threshold"] = _near(compared, trace, deciding=False)
        figures["near_deciding_threshold"] = _near(compared, trace, deciding=True)
    arrays = [layer.arrays() for layer in (*network.layers, network.readout)]
    weights = [
        array for found in arrays for name, array in found.items() if name.startswith("weight") or name == "bias"
    ]
    figures["nonzero_weights"] = sum(int(np.count_nonzero(w)) for w in weights)
    return figures


def _classification(trace: Trace, y: np.ndarray) -> Figures:
    top = np.sort(trace.scores, axis=1)
    gap = top[:, -1] - top[:, -2]
    return {
        "test_accuracy": float((trace.decisions == y).mean()),
        "test_balanced_accuracy": balanced_accuracy(trace.decisions, y),
        "near_tie": {f"{limit:g}": float((gap < limit).mean()) for limit in NEAR},
    }


def _near(layers: Sequence[RecurrentLayer], trace: Trace, *, deciding: bool) -> dict[str, float]:
    """Fraction of (sample, valid step, unit) candidates closer to a threshold than each limit in NEAR."""
    valid = _valid(trace)
    distances = [_distance(layer, trace, deciding=deciding)[valid].ravel() for layer in layers]
    flat = np.concatenate(distances)
    return {f"{limit:g}": float((flat < limit).mean()) for limit in NEAR}


def _valid(trace: Trace) -> np.ndarray:
    """Return which steps lie within a sample's length, (n, time) bool."""
    return np.arange(trace.readout.shape[1])[None, :] < trace.lengths[:, None]


def _distance(layer: RecurrentLayer, trace: Trace, *, deciding: bool) -> np.ndarray:
    """Return the distance of the candidate to the nearer threshold, or to the nearest that decides, (n, time, width).

    A threshold decides where crossing it changes the next state by more than half a step, see cosim.training.cells;
    only those count with `deciding`. Infinite for a layer that compares nothing.
    """
    found = trace.layers[layer.name]
    if found.window is None or not isinstance(layer, EpsilonLayer):
        return np.full(found.candidate.shape, np.inf)
    to_lo, to_hi = (np.abs(found.candidate - threshold) for threshold in found.window)
    if not deciding:
        return np.minimum(to_lo, to_hi)
    states, start = found.h, layer.start
    if isinstance(layer, FirstQuadrantLayer):  # its q, which moves by 1
        states, step, start = 2 * states / layer.alpha - 1, np.ones(layer.width), -np.ones(layer.width)
    else:
        assert isinstance(layer, SignedLayer)
        step = layer.step(read_sources(layer.sources, trace.inputs, {**trace.signals, **trace.late}))
    before = np.concatenate([np.broadcast_to(start, states[:, :1].shape), states[:, :-1]], axis=1)
    kept, least = (1 - layer.epsilon) * before, np.abs(step) / 2
    decides_up, decides_down = np.abs(kept - step) > least, np.abs(kept + step) > least
    return np.minimum(np.where(decides_up, to_hi, np.inf), np.where(decides_down, to_lo, np.inf))
