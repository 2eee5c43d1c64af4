"""Lowering: the graph of currents does exactly what the network does, and refuses what has no Schmitt trigger."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from cosim.base.errors import MappingError
from cosim.circuit.deck import format_circuit
from cosim.compiler.lower import lower
from cosim.compiler.passes import assemble, compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.compiler.size import scale, size
from cosim.engines.behavioral.evaluate import evaluate
from cosim.network.ir.nodes import UNIT_CURRENT, InputCurrent, Output, Rectifier
from cosim.network.ir.states import software_states
from cosim.network.layers import ReluLayer
from cosim.network.reference import encode_inputs, run_reference, threshold_distances
from cosim.network.types import InputEncoding, check_network
from cosim.units.schmitt import Schmitt

I_UNIT = 0.25e-9  # so that every threshold of a random network lies in the calibrated range

KINDS = [
    {"kind": "first"},
    {"kind": "first", "hidden": 5},
    {"kind": "first", "widths": (7,), "pooling": "last"},
    {"kind": "first", "widths": (2, 3, 5)},
    {"kind": "signed"},
    {"kind": "signed", "hidden": 5},
    {"kind": "signed_input"},
    {"kind": "signed_input", "hidden": 11},
]


def ids(options):
    return "-".join(f"{value}" for value in options.values())


@pytest.fixture(params=KINDS, ids=ids)
def options(request):
    return request.param


@pytest.mark.parametrize("seed", range(5))
def test_ideal_circuit_equals_the_network(make_network, technology, calibration, options, seed):
    """Weights round exactly, so states, candidates and readouts of the ideal circuit are the reference's.

    Readouts differ by float64 rounding alone: sums of up to 20 terms of about 1 unit, 1e-15 each.
    """
    network = check_network(make_network(seed, **options))
    # Beyond [0, 1] the encoding clips. With thresholds on the grid, clipped inputs put candidates exactly onto them.
    low, high = (0.0, 1.0) if options["kind"] == "signed_input" else (-0.2, 1.2)
    reference = run_reference(network, np.random.default_rng(seed + 100).uniform(low, high, (13, 11, 3)))
    assert threshold_distances(network, reference).min() > 1e-9
    sized = size(scale(lower(network), I_UNIT), calibration)
    for (source, target), weight in sized.weights.items():
        assert sized.mirrors[source, target].realised == pytest.approx(weight.target, abs=1e-12), weight.origin
    trace = evaluate(sized, calibration, reference.inputs, ideal=True)
    states = software_states(sized, reference)
    assert 0.02 < states.mean() < 0.98  # a network that does nothing would prove nothing
    np.testing.assert_array_equal(np.stack(list(trace.states.values()), axis=2), states)
    np.testing.assert_allclose(trace.readout / I_UNIT, reference.readout, atol=1e-12, rtol=0)


def test_offset_shifts_both_thresholds_of_a_signed_unit(make_network):
    network = make_network(5, "signed")
    graph = lower(network)
    for layer in network.recurrent_layers:
        for i in range(layer.width):
            node = graph.nodes[f"{layer.name}.{i}"]
            assert node.rise == node.offset + abs(layer.bias_beta[i])
            assert node.fall == node.offset - abs(layer.bias_beta[i])
            assert node.fall > 0
            assert node.level == 2 * layer.alpha[i]


def test_signed_states_fold_into_the_biases_of_their_readers(make_network):
    """h = 2 alpha s - alpha: the bias of a reader becomes b - W alpha."""
    network = make_network(5, "signed")
    graph = lower(network)
    alpha = np.concatenate([layer.alpha for layer in network.recurrent_layers])
    expected = network.readout.bias - network.readout.weight @ alpha
    found = [graph.weights[UNIT_CURRENT, f"readout.{k}"].target for k in range(network.readout.width)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def test_every_weight_has_its_edge_zeros_included(make_network):
    network = make_network(3, hidden=5)
    weight = network.layers[0].weight
    weight[2, 1] = 0.0
    graph = lower(network)
    assert graph.weights["in.1", "hidden.2"].target == 0.0
    for i, row in enumerate(weight):
        for j, value in enumerate(row):
            edge = graph.weights[f"in.{j}", f"hidden.{i}"]
            assert (edge.target, edge.origin) == (value, f"hidden.weight[{i},{j}]")


def test_node_kinds_and_stages(make_network):
    graph = lower(make_network(3, "signed_input", hidden=5, widths=(3, 2)))
    assert sum(1 for _ in graph.of(InputCurrent)) == 3
    assert sum(1 for _ in graph.of(Output)) == 7
    assert sum(1 for _ in graph.of(Rectifier)) == 5 + 2 * (3 + 2)  # hidden, and both signs of each beta
    assert [node.stage for node in graph.of(Schmitt)] == [0, 0, 0, 1, 1]
    assert len(graph.into("layer1.0", "beta")) == 2
    assert nx.is_directed_acyclic_graph(nx.DiGraph(list(graph.weights)))


def test_time_ramp_is_one_more_input(make_network):
    network = make_network(3, features=4)
    encoding = InputEncoding(np.zeros(3), np.ones(3), ramp_steps=7)
    graph = lower(check_network(replace(network, encoding=encoding)))
    assert [node.index for node in graph.of(InputCurrent)] == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["first", "signed"])
def test_epsilon_is_refused(make_network, kind):
    network = make_network(3, kind)
    layers = (network.layers[0], replace(network.layers[1], epsilon=0.25))
    text = (
        r"model\.pt: layer1\.epsilon must be 0 \(Schmitt trigger\), 1 \(ladder\) or -1 \(toggle\), not 0\.25: between "
        r"them an update multiplies the stored state by epsilon, so it has no finite set of levels"
    )
    with pytest.raises(MappingError, match=text):
        lower(replace(network, layers=layers), "model.pt")


def test_alpha_by_input_is_refused(make_network):
    network = make_network(3, "signed")
    layers = (replace(network.layers[0], weight_alpha=np.ones_like(network.layers[0].weight)), network.layers[1])
    text = "model.pt: layer0 is an alphaCMRU without a grid: .*; train with `levels=8`, or with `cell=cmru` or bmru"
    with pytest.raises(MappingError, match=text):
        lower(replace(network, layers=layers), "model.pt")


@pytest.fixture
def permuted(make_network):
    """A network and the same one with the hidden units and the cells of layer0 in another order."""
    network = make_network(8, hidden=5, widths=(7, 2))
    hidden, first, second = network.layers
    a, b = np.random.default_rng(1).permutation(5), np.random.default_rng(2).permutation(7)
    assert (a != np.arange(5)).any() and (b != np.arange(7)).any()
    moved = [replace(hidden, weight=hidden.weight[a], bias=hidden.bias[a])]
    names = ("bias", "beta_lo", "beta_hi", "alpha")
    moved.append(replace(first, weight=first.weight[np.ix_(b, a)], **{name: getattr(first, name)[b] for name in names}))
    columns = np.concatenate([a, 5 + b])
    moved.append(replace(second, weight=second.weight[:, columns]))
    readout = network.readout
    order = np.concatenate([b, [7, 8]])
    moved_readout = replace(readout, weight=readout.weight[:, order])
    return network, replace(network, layers=tuple(moved), readout=moved_readout), b


def test_permuting_units_changes_no_output(permuted, technology, calibration):
    network, other, order = permuted
    x = np.random.default_rng(4).uniform(size=(5, 9, 3))
    traces = []
    for candidate in (network, other):
        sized = size(scale(lower(candidate), I_UNIT), calibration)
        traces.append(evaluate(sized, calibration, encode_inputs(candidate.encoding, x)))
    # Sums in another order: float64 rounding of currents of 1e-9 A.
    np.testing.assert_allclose(traces[0].readout, traces[1].readout, rtol=0, atol=1e-21)
    for k, source in enumerate(order):
        np.testing.assert_array_equal(traces[1].states[f"layer0.{k}"], traces[0].states[f"layer0.{source}"])


def test_permuting_units_permutes_the_deck(permuted, technology, calibration):
    """Same devices, other names: the multiset of (polarity, size, units) is the same, the text is not."""
    decks, devices = [], []
    for candidate in permuted[:2]:
        assembly = compile_network(candidate, technology, calibration, CompilerSettings(I_UNIT)).assembly
        decks.append(format_circuit(assembly.circuit, technology))
        devices.append(sorted((m.polarity, m.w, m.l, m.m) for m in assembly.circuit.flatten()))
    assert devices[0] == devices[1]
    assert decks[0] != decks[1]


def test_graphs_and_decks_are_deterministic(make_network, technology, calibration):
    def deck():
        network = make_network(6, "signed_input", hidden=2)
        sized = size(scale(lower(network), I_UNIT), calibration)
        return format_circuit(assemble(sized, technology, calibration).circuit, technology)

    assert deck() == deck()


def test_loud_rectified_signals_still_reset_a_signed_unit(make_network, technology, calibration):
    """A ReLU layer has no fixed bound: at 7 units h_hat = -7 and beta = 3.5, which only a large offset can show."""
    network = make_network(4, "signed_input", hidden=2, widths=(3,))
    layer = network.layers[1]
    loud = ReluLayer("hidden", ("input",), np.full((2, 3), 2.0), np.array([1.0, 0.5]))  # up to 7 units
    weight, weight_beta = np.array([[-1.0, 0], [0, -1], [1, -1]]), np.array([[0.5, 0], [0, 0.5], [0.25, 0.25]])
    bias = np.array([2.5, 2.0, 0.5])
    layer = replace(layer, weight=weight, weight_beta=weight_beta, bias=bias, bias_beta=np.full(3, 0.125))
    network = check_network(replace(network, layers=(loud, layer)))
    rng = np.random.default_rng(3)
    silent = rng.random((7, 9, 1)) < 0.4  # frames that set the cells, between loud ones that reset them
    reference = run_reference(network, np.where(silent, 0.0, rng.uniform(size=(7, 9, 3))))
    sized = size(scale(lower(network), I_UNIT), calibration)
    trace = evaluate(sized, calibration, reference.inputs, ideal=True)
    states = software_states(sized, reference)
    assert 0.1 < states.mean() < 0.9
    np.testing.assert_array_equal(np.stack(list(trace.states.values()), axis=2), states)
