"""Conversion of networks to and from objects of the package `nir`.

    graph = network_to_nir(network)      nir.write("network.nir", graph)
    network = network_from_nir(nir.read("network.nir"), encoding)

Objects are read by the names of their classes and fields, so any release of `nir` will do. The package itself is needed
only to make new objects.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from cosim.base.errors import NetworkError, importing
from cosim.base.resources import install_command
from cosim.base.text import shown
from cosim.exchange.graph import ORIGIN, PARAMETERS, REFUSED, Array, Graph, Node, network_to_graph
from cosim.exchange.read import network_from_graph
from cosim.network.types import InputEncoding, Network, Pooling

_SHAPES = {"Input": ("input_type", "input"), "Output": ("output_type", "output")}  # kind -> field, and its key


def network_to_nir(network: Network, package: ModuleType | None = None) -> Any:  # noqa: ANN401 - a class of `nir`
    """Convert a network, without its input encoding and pooling, to a nir.NIRGraph; see `network_to_graph`.

    package: the module `nir`, None to import it. Raises MappingError for a layer that NIR has no nodes for,
    MissingToolError without the package.
    """
    graph = network_to_graph(network)
    if package is None:
        with importing("writing NIR", f"install it with `{install_command('nir')}`"):
            package = import_module("nir")
    nodes = {name: _to_object(package, node) for name, node in graph.nodes.items()}
    return package.NIRGraph(nodes=nodes, edges=list(graph.edges))


def network_from_nir(
    graph: Any,  # noqa: ANN401 - a class of `nir`
    encoding: InputEncoding | None = None,
    pooling: Pooling = "mean",
    labels: tuple[str, ...] = (),
) -> Network:
    """Convert a nir.NIRGraph to a checked network.

    encoding, pooling, labels: NIR does not hold these, see `network_from_graph`. Raises NetworkError that names a node
    without equivalent, the reason, and the nearest kind of unit.
    """
    return network_from_graph(graph_of(graph), encoding, pooling, labels)


def graph_of(graph: Any) -> Graph:  # noqa: ANN401 - a class of `nir`
    """Convert a nir.NIRGraph to plain data, float64. Raises NetworkError for nodes without an equivalent."""
    nodes, edges = getattr(graph, "nodes", None), getattr(graph, "edges", None)
    if not isinstance(nodes, Mapping) or not isinstance(edges, list | tuple):
        raise NetworkError(
            f"{ORIGIN}: a NIRGraph with nodes by name and a list of edges is needed, not {type(graph).__name__}; "
            "read a file with nir.read"
        )
    found = {str(name): _from_object(node, f"{ORIGIN}: node {shown(name)}") for name, node in nodes.items()}
    pairs = [tuple(map(str, edge)) for edge in edges]
    return Graph(found, tuple((pair[0], pair[1]) for pair in pairs))


def _to_object(package: ModuleType, node: Node) -> Any:  # noqa: ANN401 - a class of `nir`
    make = getattr(package, node.kind)
    if node.kind in _SHAPES:
        field, key = _SHAPES[node.kind]
        return make(**{field: {key: node.values["shape"].astype(np.int64)}})
    return make(**{name: np.asarray(value) for name, value in node.values.items()})


def _from_object(node: Any, where: str) -> Node:  # noqa: ANN401 - a class of `nir`
    kind = type(node).__name__
    if kind in REFUSED:
        raise NetworkError(f"{where} is of kind {kind}, which has no equivalent here: {REFUSED[kind]}")
    if kind not in PARAMETERS:
        raise NetworkError(f"{where} is of kind {kind}; known here are {', '.join(PARAMETERS)}")
    if kind in _SHAPES:
        field, key = _SHAPES[kind]
        shape = getattr(node, field, None)
        shape = shape.get(key) if isinstance(shape, Mapping) else shape
        return Node(kind, {"shape": _numbers(shape, f"{where}.{field}")})
    return Node(kind, {name: _numbers(getattr(node, name, None), f"{where}.{name}") for name in PARAMETERS[kind]})


def _numbers(value: object, where: str) -> Array:
    try:
        found = np.asarray(value)
        if found.dtype.kind not in "biuf":
            raise ValueError
    except (TypeError, ValueError):
        raise NetworkError(f"{where} must be an array of real numbers, not {shown(value)}; export it again") from None
    return found.astype(np.float64)
