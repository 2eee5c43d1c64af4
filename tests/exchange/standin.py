"""Stand-ins for the package `nir`: its classes with its fields, its check of shapes along edges, and an interpreter.

Nothing of cosim is used here: the interpreter is NIR's own meaning, with time counted in frames.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(eq=False)
class Input:
    input_type: dict

    def __post_init__(self):
        self.output_type = {"output": self.input_type["input"]}


@dataclass(eq=False)
class Output:
    output_type: dict

    def __post_init__(self):
        self.input_type = {"input": self.output_type["output"]}


@dataclass(eq=False)
class _Matrix:
    weight: np.ndarray

    def __post_init__(self):
        self.input_type = {"input": np.array(self.weight.shape[1:])}
        self.output_type = {"output": np.array(self.weight.shape[:1])}


@dataclass(eq=False)
class Linear(_Matrix):
    pass


@dataclass(eq=False)
class Affine(_Matrix):
    bias: np.ndarray


def _elementwise(value):
    return {"input": np.array(value.shape)}, {"output": np.array(value.shape)}


@dataclass(eq=False)
class Scale:
    scale: np.ndarray

    def __post_init__(self):
        self.input_type, self.output_type = _elementwise(self.scale)


@dataclass(eq=False)
class Threshold:
    threshold: np.ndarray

    def __post_init__(self):
        self.input_type, self.output_type = _elementwise(self.threshold)


@dataclass(eq=False)
class Delay:
    delay: np.ndarray

    def __post_init__(self):
        self.input_type, self.output_type = _elementwise(self.delay)


@dataclass(eq=False)
class Flatten:
    input_type: dict
    start_dim: int = 1
    end_dim: int = -1


@dataclass(eq=False)
class LIF:
    tau: np.ndarray
    r: np.ndarray
    v_leak: np.ndarray
    v_threshold: np.ndarray
    v_reset: np.ndarray


@dataclass(eq=False)
class IF:
    r: np.ndarray
    v_threshold: np.ndarray
    v_reset: np.ndarray


@dataclass(eq=False)
class I:  # noqa: E742
    r: np.ndarray


@dataclass(eq=False)
class LI:
    tau: np.ndarray
    r: np.ndarray
    v_leak: np.ndarray


@dataclass(eq=False)
class CubaLIF:
    tau_syn: np.ndarray
    tau_mem: np.ndarray
    r: np.ndarray
    v_leak: np.ndarray
    v_threshold: np.ndarray


@dataclass(eq=False)
class CubaLI:
    tau_syn: np.ndarray
    tau_mem: np.ndarray
    r: np.ndarray
    v_leak: np.ndarray


@dataclass(eq=False)
class Conv2d:
    input_shape: tuple
    weight: np.ndarray


@dataclass(eq=False)
class NIRGraph:
    nodes: dict
    edges: list

    def __post_init__(self):
        for start, end in self.edges:
            given, taken = self.nodes[start].output_type["output"], self.nodes[end].input_type["input"]
            assert np.array_equal(given, taken), f"{start} -> {end}: {given} and {taken}"


def as_from_a_file(graph, dtype=np.float64):
    """What comes back from a file: nodes in alphabetical order, edges in theirs, numbers of a type."""

    def copy(node):
        values = {
            name: value.astype(dtype) if isinstance(value, np.ndarray) else value
            for name, value in vars(node).items()
            if name in type(node).__dataclass_fields__
        }
        return type(node)(**values)

    return NIRGraph({name: copy(graph.nodes[name]) for name in sorted(graph.nodes)}, list(graph.edges))


def run(graph, x):
    """Values of all nodes over inputs x (time, width): name -> list over time."""
    before = {name: [start for start, end in graph.edges if end == name] for name in graph.nodes}
    values = {name: [] for name in graph.nodes}

    def now(name, t):
        """A node at t, which may ask for others at t; all earlier times are known."""
        if len(values[name]) == t:
            values[name].append(step(name, graph.nodes[name], t))
        return values[name][t]

    def step(name, node, t):
        match node:
            case Input():
                return x[t]
            case Delay():
                past = t - int(node.delay[0])
                return sum(now(start, past) for start in before[name]) if past >= 0 else np.zeros(node.delay.shape)
        given = sum(now(start, t) for start in before[name])
        match node:
            case Affine():
                return node.weight @ given + node.bias
            case Linear():
                return node.weight @ given
            case Scale():
                return node.scale * given
            case Threshold():
                return (given > node.threshold).astype(given.dtype)
            case Output() | Flatten():
                return given
        raise NotImplementedError(name)

    for t in range(len(x)):
        for name in graph.nodes:
            now(name, t)
    return values
