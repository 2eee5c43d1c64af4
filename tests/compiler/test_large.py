"""Large networks: what costs nothing on the chip costs nothing in a compile, and nothing is done twice."""

import gc
import weakref
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from cosim.base.arrays import read_arrays
from cosim.compiler import lower, mapping
from cosim.compiler.design import once_per_design
from cosim.compiler.mapping import map_parameters
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral
from cosim.exchange.checkpoint import npz_bytes
from cosim.network.ir.graph import GraphBuilder, LoweredGraph
from cosim.network.ir.nodes import PEDESTAL, UNIT_CURRENT, Output, Weight
from cosim.results.page import format_text
from cosim.verbs.compile import outputs
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.compile.page import design_page

SEED = 5


def thinned(network):
    """The network with most of its weights 0, two a row."""
    rng = np.random.default_rng(SEED)

    def thin(layer):
        weight = np.where(rng.random(layer.weight.shape).argsort(axis=1) < 2, layer.weight, 0.0)
        return replace(layer, weight=weight)

    return replace(network, layers=tuple(map(thin, network.layers)), readout=thin(network.readout))


@pytest.fixture
def sparse(make_network):
    return thinned(make_network(SEED, widths=(6, 8), outputs=3))


def compiled(network, technology, calibration, monkeypatch, most):
    monkeypatch.setattr(lower, "MOST_ZEROS", most)
    return compile_network(network, technology, calibration)


def test_beyond_a_number_weights_of_0_have_neither_edges_nor_rows(sparse, technology, calibration, monkeypatch):
    zeros = lower.count_zeros(sparse)
    whole = compiled(sparse, technology, calibration, monkeypatch, zeros)
    design = compiled(sparse, technology, calibration, monkeypatch, zeros - 1)
    learned = [edge for edge in design.graph.weights if not {*edge} & {PEDESTAL, UNIT_CURRENT}]
    assert len(learned) == sum(np.count_nonzero(one.weight) for one in (*sparse.layers, sparse.readout)) < zeros
    assert len(whole.graph.weights) == len(design.graph.weights) + zeros
    assert len(map_parameters(whole)) == len(map_parameters(design)) + zeros
    assert [row for row in map_parameters(whole) if row.element != "none"] != []

    def named(row):  # transistors of a row are counted
        return row.parameter, row.target, row.realised, row.status, row.note

    assert {named(row) for row in map_parameters(design)} <= {named(row) for row in map_parameters(whole)}
    assert design.assembly.transistors == whole.assembly.transistors
    x = np.random.default_rng(SEED).random((5, 7, sparse.encoding.features))
    first, second = (run_behavioral(one, x) for one in (whole, design))
    assert np.array_equal(first.readout, second.readout)
    assert all(np.array_equal(first.states[name], second.states[name]) for name in first.states)


def test_a_summary_says_how_many_have_no_row(sparse, technology, calibration, monkeypatch):
    zeros = lower.count_zeros(sparse)
    design = compiled(sparse, technology, calibration, monkeypatch, zeros - 1)
    summary = summarize(design)
    assert summary["zero_weights"] == zeros
    assert f"{zeros} weights are 0, and have no row in the mapping." in format_text(design_page(design))
    whole = summarize(compiled(sparse, technology, calibration, monkeypatch, zeros))
    assert "zero_weights" not in whole
    assert whole["parameters"] == summary["parameters"] + zeros


def test_a_compile_maps_its_parameters_once(cosim_main, sparse, tmp_path, monkeypatch):
    from cosim.exchange.checkpoint import save_checkpoint

    save_checkpoint(tmp_path / "net.npz", sparse)
    calls, learned_arrays = [], mapping.learned_arrays

    def counted(network):
        calls.append(network)
        return learned_arrays(network)

    monkeypatch.setattr(mapping, "learned_arrays", counted)
    monkeypatch.setattr(outputs, "find_start", lambda *given: None)
    code, _, _ = cosim_main("compile", tmp_path / "net.npz", "--saturate", "-o", tmp_path / "netlist")
    assert code == 0 and len(calls) == 1


def test_what_is_kept_of_a_design_goes_with_it(sparse, technology, calibration):
    made = []

    @once_per_design
    def count(design):
        """Count."""
        made.append(0)
        return [len(made)]

    design = compile_network(sparse, technology, calibration)
    assert count(design) is count(design) and len(made) == 1
    assert count(compile_network(sparse, technology, calibration)) == [2]
    gone = weakref.ref(count(design) and design)
    del design
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("back", [0, 3])
def test_the_order_is_that_of_a_topological_sort(back):
    """networkx's, by generations; edges that are late count while no state depends on itself."""
    rng, count = np.random.default_rng(SEED), 30
    names = [f"n.{k}" for k in range(count)]
    pairs = {(int(a), int(b)) for a, b in np.sort(rng.integers(0, count, (70, 2)), axis=1) if a != b}
    pairs |= {(count - 1 - k, k) for k in range(back)} | ({(k, k) for k in range(back)})
    weights = {(names[a], names[b]): Weight(1.0, "", late=a >= b or rng.random() < 0.2) for a, b in sorted(pairs)}
    graph = LoweredGraph({name: Output(name, k) for k, name in enumerate(names)}, weights)
    known: nx.DiGraph = nx.DiGraph()
    known.add_nodes_from(names)
    known.add_edges_from(edge for edge, weight in weights.items() if not weight.late)
    with_late = known.copy()
    with_late.add_edges_from(edge for edge, weight in weights.items() if weight.late)
    assert graph.feeds_back == (back > 0)
    assert graph.order == tuple(nx.topological_sort(known if back else with_late))


def test_what_arrives_at_a_node_is_found_without_a_search():
    wiring = GraphBuilder()
    wiring.connect("a", "c", Weight(1.0, "first"))
    wiring.connect("b", "c", Weight(2.0, "second"))
    wiring.connect("a", "c", Weight(3.0, "in place of the first"))
    assert wiring.terms("c") == [("a", 3.0), ("b", 2.0)] and wiring.terms("a") == []


def test_a_file_of_zeros_is_read_back(tmp_path):
    """Compressed it would ask for more memory than a file of its size may."""
    (tmp_path / "zeros.npz").write_bytes(npz_bytes({"w": np.zeros((1100, 1000)), "b": np.ones(3, np.int8)}))
    found = read_arrays(tmp_path / "zeros.npz", "")
    assert found["w"].shape == (1100, 1000) and found["b"].tolist() == [1, 1, 1]
    assert len(npz_bytes({"w": np.zeros((1000, 1000))})) < 50_000
