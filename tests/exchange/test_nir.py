"""NIR out and in: against an interpreter of NIR that knows nothing of cosim, and back to the same arrays."""

import sys
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.base.errors import InputError, MappingError, MissingToolError, NetworkError
from cosim.base.resources import trained_network_path
from cosim.exchange.checkpoint import load_network
from cosim.exchange.graph import PARAMETERS, REFUSED
from cosim.exchange.nir import network_from_nir, network_to_nir
from cosim.network.layers import AndLayer, FirstQuadrantLayer, ReluLayer, SignedLayer
from cosim.network.reference import encode_inputs, run_reference
from cosim.network.types import DelayedSignal, InputEncoding, Network, Readout, check_network, network_to_arrays

WRITTEN = ("digits_d4", "digits_d8", "digits_robust_d8", "digits_signed_d8", "flip_flop_d2", "speech_yes_d16")
ENCODING = InputEncoding(np.zeros(2), np.ones(2))


def back(graph, network):
    """What comes in again, with what NIR does not hold taken from the network that went out."""
    found = network_from_nir(graph, network.encoding, network.readout.pooling, network.labels)
    return replace(found, task=network.task, weight_grid=network.weight_grid, history=network.history)


def assert_same(found, network):
    """Every array and every word of what a checkpoint would hold; beta of a signed unit is its size."""
    (arrays, meta), (wanted, words) = network_to_arrays(found), network_to_arrays(network)
    for name, array in wanted.items():
        np.testing.assert_array_equal(arrays[name], abs(array) if name.endswith("bias_beta") else array, err_msg=name)
    assert (set(arrays), meta) == (set(wanted), words)


def assert_decides_alike(nir, graph, network, x):
    """States of every layer and the readout, frame by frame; states are bits, so they are equal or wrong."""
    trace = run_reference(network, x)
    outputs = next(name for name, node in graph.nodes.items() if isinstance(node, nir.Output))
    for sample, inputs in enumerate(encode_inputs(network.encoding, x).units):
        values = nir.run(graph, inputs)
        for layer in network.layers:
            on = trace.signals[layer.name][sample] > 0
            np.testing.assert_array_equal(np.array(values[layer.name]) > 0, on, err_msg=layer.name)
        # the two sum in another order: some 50 terms of size 4 at most, each with a rounding of 2^-52 of the sum so far
        np.testing.assert_allclose(values[outputs], trace.readout[sample], atol=50 * 200 * 2**-52)


def signed(name, sources, weight, beta, alpha=1.0):
    weight = np.atleast_2d(np.array(weight, dtype=float))
    ones = np.ones(len(weight))
    return SignedLayer(name, sources, weight, -0.1 * ones, beta * ones, alpha * ones)


def memory(name="memory", sources=("input",), weight=((1.0, -0.5),), low=0.2, high=0.7, alpha=1.0):
    weight = np.array(weight)
    ones = np.ones(len(weight))
    return FirstQuadrantLayer(name, sources, weight, 0.1 * ones, low * ones, high * ones, alpha * ones)


def network_of(*layers, late=None, encoding=ENCODING, sources=None):
    sources = sources or (layers[-1].name,)
    widths = {layer.name: layer.width for layer in layers} | {"input": encoding.width}
    widths |= {name: widths[one.signal] for name, one in (late or {}).items()}
    columns = sum(widths[name] for name in sources)
    readout = Readout(sources, np.arange(2.0 * columns).reshape(2, columns) / 8, np.array([0.5, -0.25]), "last")
    return check_network(Network(encoding, layers, readout, labels=("no", "yes"), late=late or {}))


def feeding_back(level=1.0):
    """Layers that read each other late, the signed one itself too, the input three frames before, and their own."""
    front = memory("front", ("input", "behind_1", "input_3"), [[1, -0.5, 0.25, -1, 0.5, 0], [0, 1, -1, 0.5, 0, 0.25]])
    behind = signed("behind", ("front", "behind_2"), [[1.0, -0.5, 0.25, 0.5], [0.5, 0.5, -0.5, 0.25]], 0.2, level)
    late = {
        "behind_1": DelayedSignal("behind"),
        "behind_2": DelayedSignal("behind", 2),
        "input_3": DelayedSignal("input", 3),
    }
    return network_of(front, behind, late={**late, "front_1": DelayedSignal("front")}, sources=("behind", "front_1"))


def noise(network, samples=4, frames=60, seed=0):
    x = np.random.default_rng(seed).random((samples, frames, network.encoding.features))
    return network.encoding.offset + x * network.encoding.scale


@pytest.mark.parametrize("name", WRITTEN)
def test_networks_of_the_package_go_out_and_come_back(nir, name):
    pytest.importorskip("torch")
    network = load_network(trained_network_path(name))
    graph = network_to_nir(network, nir)
    assert_same(back(nir.as_from_a_file(graph), network), network)
    assert_decides_alike(nir, graph, network, noise(network, samples=2, frames=40))


@pytest.mark.parametrize("level", [1.0, 0.3])
def test_feedback_late_sources_and_levels(nir, level):
    network = feeding_back(level)
    graph = network_to_nir(network, nir)
    assert_same(back(nir.as_from_a_file(graph), network), network)
    assert_decides_alike(nir, graph, network, noise(network))


@settings(max_examples=200, deadline=None)
@given(
    low=st.floats(0.0, 3.0), width=st.floats(1e-12, 3.0), bias=st.floats(-2.0, 2.0), weight=st.floats(-4.0, 4.0),
    signed_too=st.booleans(),
)  # fmt: skip
def test_any_window_comes_back_to_the_bit_and_decides_ties_alike(nir, low, width, bias, weight, signed_too):
    """Candidates on both thresholds, and one double to either side of them: a ramp through the window and back."""
    high = low + width
    if not high > low:
        return
    layer = memory(low=low, high=high, weight=[[weight, 1.0]])
    layer = replace(layer, bias=np.array([bias]))
    if signed_too:
        layer = SignedLayer("memory", ("input",), layer.weight, layer.bias, np.array([high]), np.ones(1))
        low = -high
    network = network_of(layer)
    graph = network_to_nir(network, nir)
    assert_same(back(graph, network), network)
    ties = network_of(replace(layer, weight=np.array([[0.0, 1.0]]), bias=np.zeros(1)))
    on_edge = [value for edge in (high, low) for value in (np.nextafter(edge, 9), edge, np.nextafter(edge, -9))]
    # encoded inputs are given straight away: they may be of any size and sign there
    u = np.array([[0.0, value] for value in (*on_edge, *on_edge[::-1])])
    values = nir.run(network_to_nir(ties, nir), u)
    expected = ties.layers[0].run(u[None]).h
    np.testing.assert_array_equal(np.array(values["memory"]) > 0, expected[0] > 0)


def test_an_automaton_goes_out_and_comes_back(nir):
    """ANDs of bits that were states a frame before."""
    encoding = InputEncoding(np.zeros(2), np.ones(2), levels=1)
    both = AndLayer("both", ("input", "state_1"), np.array([[1.0, 0, 1, 0], [0, 1.0, 0, 2]]), np.array([-1.0, -1.0]))
    state = memory("state", ("both", "input"), [[1.0, 0, 0, 1], [0, 1.0, 1, 0]], 0.35, 0.55)
    state = replace(state, alpha=np.array([1.0, 0.5]), bias=np.zeros(2))
    network = network_of(both, state, late={"state_1": DelayedSignal("state")}, encoding=encoding)
    x = np.random.default_rng(3).integers(0, 2, (4, 80, 2)).astype(float)
    graph = network_to_nir(network, nir)
    assert_same(back(nir.as_from_a_file(graph), network), network)
    assert_decides_alike(nir, graph, network, x)
    assert len(np.unique(run_reference(network, x).signals["state"].reshape(-1, 2), axis=0)) == 4


def loop(nir, theta=0.7, w=0.5, order="scale behind"):
    """A Schmitt trigger as one Threshold that gets w of its state back."""
    value = np.array([theta, theta])
    back_node = nir.Linear(np.diag([w, w])) if order == "linear in front" else nir.Scale(np.array([w, w]))
    first, second = ("back", "wait") if order == "linear in front" else ("wait", "back")
    nodes = {
        "in": nir.Input({"input": np.array([2])}),
        "drive": nir.Affine(np.array([[1.0, -0.25], [0.5, 1.0]]), np.array([0.0, 0.125])),
        "Memory.1": nir.Threshold(value),
        "wait": nir.Delay(np.ones(2)),
        "back": back_node,
        "read": nir.Linear(np.array([[1.0, -1.0], [0.5, 0.25]])),
        "out": nir.Output({"output": np.array([2])}),
    }
    edges = [("in", "drive"), ("drive", "Memory.1"), ("Memory.1", first), (first, second), (second, "Memory.1")]
    return nir.NIRGraph(nodes, [*edges, ("Memory.1", "read"), ("read", "out")])


@pytest.mark.parametrize("order", ["scale behind", "linear in front"])
def test_a_threshold_in_a_loop_is_a_unit(nir, order):
    graph = loop(nir, order=order)
    network = network_from_nir(graph)
    (layer,) = network.layers
    assert isinstance(layer, FirstQuadrantLayer) and layer.name == "layer1"
    # 0.7 - 0.5 with one rounding, and the next double above 0.7
    np.testing.assert_allclose(layer.beta_lo, 0.2, atol=2**-53)
    np.testing.assert_array_equal(layer.beta_hi, np.nextafter(0.7, 1))
    x = noise(network, samples=1, frames=400)
    expected = run_reference(network, x)
    found = np.array(nir.run(graph, x[0])["Memory.1"])
    np.testing.assert_array_equal(found, expected.signals["layer1"][0])
    assert 0.05 < found.mean() < 0.95
    assert (np.diff(found, axis=0) != 0).sum() > 20


def test_a_window_below_zero_is_a_signed_unit(nir):
    """lo = -0.1, hi = 0.75: the middle goes into the bias, and 0 and 1 become half of -1 and 1, and a half."""
    graph = loop(nir, theta=0.75, w=0.85)
    graph.nodes["drive"].bias = np.array([0.0, -0.375])
    network = network_from_nir(graph)
    (layer,) = network.layers
    assert isinstance(layer, SignedLayer)
    np.testing.assert_allclose(layer.bias_beta, 0.425, atol=2**-53)
    np.testing.assert_allclose(layer.bias, [-0.325, -0.7], atol=2**-53)
    np.testing.assert_array_equal(network.readout.weight, [[0.5, -0.5], [0.25, 0.125]])
    np.testing.assert_array_equal(network.readout.bias, [0.0, 0.375])
    x = noise(network, samples=1, frames=400)
    values = nir.run(graph, x[0])
    trace = run_reference(network, x)
    np.testing.assert_array_equal(np.array(values["Memory.1"]) > 0, trace.signals["layer1"][0] > 0)
    np.testing.assert_allclose(values["out"], trace.readout[0], atol=1e-15)
    assert (np.diff(values["Memory.1"], axis=0) != 0).sum() > 20


def test_linear_nodes_in_a_row_are_one_matrix(nir):
    graph = loop(nir)
    nodes = graph.nodes | {
        "gain": nir.Scale(np.array([2.0, 0.5])),
        "turn": nir.Linear(np.array([[0.0, 1.0], [1.0, 0.0]])),
        "flat": nir.Flatten({"input": np.array([2])}),
        "skip": nir.Linear(np.array([[0.25, 0.0], [0.0, 0.5]])),
    }
    edges = [edge for edge in graph.edges if edge != ("in", "drive")]
    edges += [("in", "gain"), ("gain", "turn"), ("turn", "flat"), ("flat", "drive"), ("in", "skip")]
    graph.nodes, graph.edges = nodes, [*edges, ("skip", "Memory.1")]
    (layer,) = network_from_nir(graph).layers
    weight = np.array([[1.0, -0.25], [0.5, 1.0]]) @ np.array([[0.0, 0.5], [2.0, 0.0]]) + np.diag([0.25, 0.5])
    np.testing.assert_array_equal(layer.weight, weight)
    np.testing.assert_array_equal(layer.bias, [0.0, 0.125])


def one(*names):
    return [np.ones(2) for _ in names]


@pytest.mark.parametrize("kind", ["LIF", "IF", "I", "LI", "CubaLIF", "CubaLI", "Conv2d"])
def test_what_has_no_equivalent_is_refused_by_its_name(nir, kind):
    graph = loop(nir)
    cls = getattr(nir, kind)
    graph.nodes["strange"] = cls(*one(*cls.__dataclass_fields__))
    with pytest.raises(NetworkError, match=rf"node 'strange' is of kind {kind}, which has no equivalent here: \w+"):
        network_from_nir(graph)


def test_every_kind_is_known_or_refused_with_a_reason(nir):
    kinds = {name for name, cls in vars(nir).items() if hasattr(cls, "__dataclass_fields__") and name[0] != "_"}
    assert kinds - {"NIRGraph"} <= {*PARAMETERS, *REFUSED}
    assert not PARAMETERS.keys() & REFUSED.keys()


def cut(start, end):
    def change(graph, nir):
        graph.edges = [edge for edge in graph.edges if edge != (start, end)]

    return change


def put(name, make, *edges, without=()):
    def change(graph, nir):
        graph.nodes[name] = make(nir)
        graph.edges = [*(edge for edge in graph.edges if edge not in without), *edges]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("wait", lambda nir: nir.Delay(np.full(2, 2.0))), "through one Delay of 1 frame"),
        (put("wait", lambda nir: nir.Delay(np.full(2, 1e-3))), "same whole number of frames.*divide by their length"),
        (put("wait", lambda nir: nir.Delay(np.array([1.0, 2.0]))), "same whole number of frames"),
        (put("back", lambda nir: nir.Linear(np.ones((2, 2)))), "must be a Scale or a diagonal Linear"),
        (put("back", lambda nir: nir.Scale(np.array([0.5, -0.5]))), "gets -0.5 of its own state back at unit 1"),
        (cut("back", "Memory.1"), "has no way back to itself through a Delay.*nearest: a Threshold with hysteresis"),
        (cut("drive", "Memory.1"), r"'Memory.1' \(Threshold\) reads nothing"),
        (cut("read", "out"), r"'out' \(Output\) reads nothing"),
        (put("x", lambda nir: nir.Input({"input": np.array([2])})), "must have one Input, not 2"),
        (put("x", lambda nir: nir.Scale(np.ones(2)), ("x", "nowhere")), "names 'nowhere', which is no node"),
        (put("x", lambda nir: nir.Scale(np.ones(2)), ("in", "x"), ("in", "x")), "in -> x is there 2 times"),
        (put("x", lambda nir: nir.Scale(np.ones(3)), ("in", "x"), ("x", "read")), "'x' .Scale. takes 3 values.*gets 2"),
        (put("x", lambda nir: nir.Linear(np.ones((3, 2))), ("in", "x"), ("x", "Memory.1")), "adds up 2 and 3 values"),
        (put("x", lambda nir: nir.Linear(np.eye(2)), ("read", "x"), ("x", "read")), "in the same frame"),
        (put("x", lambda nir: nir.Delay(np.ones(2)), ("drive", "x"), ("x", "read")), "must follow the Input"),
        (put("x", lambda nir: nir.Scale(np.ones(2)), ("back", "x"), ("x", "out")), "belongs to 'Memory.1'"),
        (put("drive", lambda nir: nir.Affine(np.full((2, 2), np.nan), np.ones(2))), "not finite"),
        (put("drive", lambda nir: nir.Affine(np.ones((2, 2, 2)), np.ones(2))), "weight of 2 axes, not"),
        (put("drive", lambda nir: nir.Affine(np.ones((2, 2)), np.array(["a", "b"]))), "array of real numbers"),
        (put("in", lambda nir: nir.Input({"input": np.array([2, 4, 4])})), "must be a vector"),
        (put("x", lambda nir: object()), "'x' is of kind object; known here are Input"),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_node_and_the_repair(nir, change, message):
    graph = loop(nir)
    change(graph, nir)
    with pytest.raises(NetworkError, match=message):
        network_from_nir(graph)


def test_what_is_no_graph_is_refused():
    with pytest.raises(NetworkError, match="not dict; read a file with nir.read"):
        network_from_nir({"nodes": {}})


def test_another_encoding_is_refused(nir):
    with pytest.raises(NetworkError, match="takes 2 inputs, but the encoding makes 3"):
        network_from_nir(loop(nir), InputEncoding(np.zeros(2), np.ones(2), ramp_steps=5))


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (ReluLayer("front", ("input",), np.eye(2), np.zeros(2)), "cannot be written as NIR: NIR has no rectifier"),
        (AndLayer("front", ("input",), np.eye(2), np.zeros(2)), "an AND of input, which is no bit"),
        (replace(memory("front"), epsilon=1.0), "with epsilon 1 a state goes by steps"),
        (replace(memory("front"), initial=np.ones(1)), "a unit begins on"),
        (memory("front", low=-0.1), "a lower threshold is below 0"),
        (replace(signed("front", ("input",), [[1.0, 1.0]], 0.2), weight_beta=np.ones((1, 2))), "a threshold follows"),
        (replace(signed("front", ("input",), [[1.0, 1.0]], 0.2), weight_alpha=np.ones((1, 2))), "a level follows"),
        (signed("front", ("input",), [[1.0, 1.0]], 0.0), "a threshold is 0"),
    ],
)  # fmt: skip
def test_what_nir_cannot_say_is_refused(nir, layer, message):
    behind = memory("behind", ("front",), np.ones((1, layer.width)))
    with pytest.raises(MappingError, match=message):
        network_to_nir(network_of(layer, behind), nir)


def test_writing_needs_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "nir", None)
    with pytest.raises(MissingToolError, match=r"python -m pip install .*\[nir\]"):
        network_to_nir(network_of(memory()))


def test_names_of_nodes_never_meet_those_of_layers(nir):
    """Layers named as nodes would be."""
    first = memory("output", ("input",), np.ones((1, 2)))
    second = memory("output_from_input", ("output",), np.ones((1, 1)))
    third = memory("output_rise", ("output_from_input",), np.ones((1, 1)), alpha=0.5)
    network = network_of(first, second, third)
    graph = network_to_nir(network, nir)
    assert_same(back(graph, network), network)
    assert_decides_alike(nir, graph, network, noise(network))


def test_the_output_has_no_reader(nir):
    graph = network_to_nir(feeding_back(0.3), nir)
    (source, first), *others = [edge for edge in graph.edges if edge[1] != "output"]
    graph.edges = [(source, "output"), ("output", first), *others]
    with pytest.raises(NetworkError, match="is the end of the graph and cannot be read"):
        network_from_nir(graph)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_changed_graph_is_a_network_or_an_input_error(nir, data):
    """No traceback: edges dropped, turned and doubled, parameters cut and exchanged."""
    graph = network_to_nir(feeding_back(0.3), nir)
    edges, nodes = list(graph.edges), dict(graph.nodes)
    for _ in range(data.draw(st.integers(1, 4))):
        edge = data.draw(st.integers(0, len(edges) - 1))
        match data.draw(st.sampled_from(["drop", "turn", "move", "swap"])):
            case "drop" if len(edges) > 1:
                del edges[edge]
            case "turn":
                edges[edge] = edges[edge][::-1]
            case "move":
                edges[edge] = (edges[edge][0], data.draw(st.sampled_from(sorted(nodes))))
            case "swap":
                nodes[edges[edge][0]] = nodes[edges[edge][1]]
    graph.nodes, graph.edges = nodes, edges
    with suppress(InputError):
        check_network(network_from_nir(graph))


@pytest.mark.parametrize("name", WRITTEN)
def test_files_of_the_package_itself(tmp_path, name):
    """Through HDF5, which keeps doubles as they are: the same arrays come back."""
    package = pytest.importorskip("nir")
    network = load_network(trained_network_path(name))
    package.write(tmp_path / "network.nir", network_to_nir(network))
    assert_same(back(package.read(tmp_path / "network.nir"), network), network)
