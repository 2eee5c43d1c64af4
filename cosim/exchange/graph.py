"""A graph of NIR, the Neuromorphic Intermediate Representation (Pedersen et al., Nature Communications 15, 8122, 2024),
as plain data: nodes by name, each of a kind with parameters; edges carry values, and a node that several edges lead to
gets their sum. NIR's own package is needed for its files alone, cosim.exchange.nir.

What is used of it, x and y vectors:

    Input, Output                     the graph's own
    Affine    y = W x + b             Linear   y = W x             Scale   y = s x, element by element
    Threshold y = 1 where x > theta, else 0                        Delay   y(t) = x(t - tau), 0 before that
    Flatten   of a vector: itself

NIR's time is continuous and has no unit. Here it is counted in frames, so Delay(1) is the frame before.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
