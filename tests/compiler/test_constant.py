"""Cells whose state no input changes are not built; what is left computes what the network computes."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from cosim.compiler.constant import leave_out_constants
from cosim.compiler.lower import lower
from cosim.compiler.mapping import LEFT_OUT, map_parameters
from cosim.compiler.passes import compile_network, constant_cells
from cosim.engines.behavioral.effects import chip_deviations, effects_of
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.network.ir.nodes import UNIT_CURRENT
from cosim.network.ir.states import software_states
from cosim.network.layers import FirstQuadrantLayer
from cosim.network.reference import run_reference
from cosim.network.types import DelayedSignal, InputEncoding, Network, Readout
from cosim.results.page import format_text
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
from cosim.verbs.compare.agreement import cell_distances
from cosim.verbs.compile.outputs import format_design, summarize
from cosim.verbs.compile.page import design_page
from cosim.verbs.inspect.page import describe_network, network_page
from cosim.verbs.words import say_constant

SEED = 5


def with_rows(network, layer, **biases):
    """The network with rows of a layer that read nothing: unit3=0.25 has this bias."""
    place = [one.name for one in network.layers].index(layer)
    found = network.layers[place]
    weight, bias = found.weight.copy(), found.bias.copy()
    for name, value in biases.items():
        weight[int(name[4:])], bias[int(name[4:])] = 0.0, value
    layers = list(network.layers)
    layers[place] = replace(found, weight=weight, bias=bias)
    return replace(network, layers=tuple(layers))


def inputs(network, n=6, steps=9):
    return np.random.default_rng(3).random((n, steps, network.encoding.features))


def check_equal(network, design):
    """Ideal currents of the circuit give the states of all its cells and the readout of the network."""
    x = inputs(network)
    reference = run_reference(network, x)
    trace = run_behavioral(design, x, ideal=True)
    states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
    np.testing.assert_array_equal(states, software_states(design.graph, reference))
    # sums of some tens of terms in float64
    np.testing.assert_allclose(trace.readout / design.i_unit, reference.readout, atol=1e-9)
    return states


@pytest.mark.parametrize("kind", ["first", "signed"])
def test_a_dead_cell_is_not_built(make_network, technology, calibration, kind):
    network = make_network(SEED, kind, hidden=3, widths=(5, 4))
    dead = with_rows(with_rows(network, "layer0", unit1=0.0), "layer1", unit3=0.0)
    assert constant_cells(network) == {}
    assert constant_cells(dead) == {"layer0.1": 0, "layer1.3": 0}
    design, whole = (compile_network(one, technology, calibration) for one in (dead, network))
    assert [node.name for node in design.graph.memories] == [
        f"layer{k}.{i}" for k, i in ((0, 0), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2))
    ]
    assert design.assembly.transistors < whole.assembly.transistors
    assert not any("layer0_1" in pin or "layer1_3" in pin for pin in design.assembly.bias_pins)
    check_equal(dead, design)
    assert cell_distances(design, run_reference(dead, inputs(dead))).shape[2] == 7


def test_a_cell_that_is_always_on_joins_the_biases(make_network, technology, calibration):
    """Its level times its readers' weights, whole unit devices."""
    network = with_rows(make_network(SEED, widths=(5, 4)), "layer0", unit2=3.0)
    assert constant_cells(network) == {"layer0.2": 1}
    design = compile_network(network, technology, calibration)
    states = check_equal(network, design)
    assert states.shape[2] == 8
    level = network.layers[0].alpha[2]
    column = list(network.readout.sources).index("layer0") * 5 + 2
    for k, bias in enumerate(network.readout.bias):
        built = design.graph.mirrors[UNIT_CURRENT, f"readout.{k}"].realised
        assert built == pytest.approx(bias + network.readout.weight[k, column] * level, abs=1e-12)
    notes = [row.note for row in map_parameters(design) if "cells left out" in row.note]
    assert notes and all(note.startswith("learned ") for note in notes)


def test_what_is_no_whole_number_of_devices_stays(make_network):
    """A level of 1.01: as a bias it would be rounded, as a cell's level it is exact."""
    network = with_rows(make_network(SEED, widths=(5, 4)), "layer0", unit2=3.0)
    first = network.layers[0]
    alpha = np.where(np.arange(5) == 2, 1.01, first.alpha)
    assert constant_cells(replace(network, layers=(replace(first, alpha=alpha), *network.layers[1:]))) == {}


def test_what_reads_only_constants_is_constant(make_network, technology, calibration):
    """layer1.0 reads the cell that is always on, and nothing else; 0.5 of 1.0 is above its threshold."""
    network = with_rows(make_network(SEED, widths=(5, 4), alphas=(1.0,)), "layer0", unit2=3.0)
    network = with_rows(network, "layer1", unit0=0.0)
    second = network.layers[1]
    second.weight[0, network.encoding.features + 2] = 1.25
    assert constant_cells(network) == {"layer0.2": 1, "layer1.0": 1}
    check_equal(network, compile_network(network, technology, calibration))
    second.weight[0, 0] = 0.25  # an input moves it
    assert constant_cells(network) == {"layer0.2": 1}


@pytest.mark.parametrize(("bias", "state"), [(0.0, {"layer0.2": 0}), (0.3, {}), (0.35, {"layer0.2": 0})])
def test_a_candidate_on_a_threshold_is_not_certain(make_network, bias, state):
    """Between the thresholds it keeps the reset's 0; on one of them rounding decides."""
    network = with_rows(make_network(SEED, widths=(5,)), "layer0", unit2=bias)
    layer = network.layers[0]
    layer.beta_lo[2], layer.beta_hi[2] = 0.3, 0.4
    assert constant_cells(network) == state


def test_thresholds_that_move_are_not_certain(make_network):
    network = with_rows(make_network(SEED, "signed_input", widths=(5,)), "layer0", unit2=0.0)
    assert constant_cells(network) == {}


@pytest.mark.parametrize(("bias", "left_out"), [(0.0, True), (2.0, False)])
def test_who_reads_it_late_sees_the_reset_first(technology, calibration, bias, left_out):
    """One that is on from the first frame is off before it, which a reader of the frame before sees."""
    ones = np.ones(2)
    first = FirstQuadrantLayer(
        "a", ("input",), np.array([[1.0], [0.0]]), np.array([0.0, bias]), 0.2 * ones, 0.45 * ones, ones
    )
    second = FirstQuadrantLayer("b", ("input", "late"), np.array([[0.5, 0.25, 0.5]]), np.zeros(1), *(
        value * np.ones(1) for value in (0.2, 0.55, 1.0)
    ))  # fmt: skip
    readout = Readout(("b",), np.array([[1.0], [-1.0]]), np.zeros(2))
    encoding = InputEncoding(np.zeros(1), np.ones(1), levels=1)
    network = Network(encoding, (first, second), readout, labels=("no", "yes"), late={"late": DelayedSignal("a")})
    assert ("a.1" in constant_cells(network)) == left_out
    check_equal(replace(network), compile_network(network, technology, calibration))


def test_stages_that_are_left_have_clocks_without_gaps(make_network, technology, calibration):
    network = make_network(SEED, widths=(2, 3, 2))
    network = with_rows(network, "layer1", unit0=0.0, unit1=0.0, unit2=0.0)
    design = compile_network(network, technology, calibration)
    assert [node.stage for node in design.graph.memories] == [0, 0, 1, 1]
    assert len(design.assembly.clocks) == 2
    check_equal(network, design)


def test_a_circuit_keeps_a_cell(make_network, technology, calibration):
    """Where all are constant, all are built."""
    network = with_rows(make_network(SEED, widths=(2,)), "layer0", unit0=0.0, unit1=0.0)
    assert constant_cells(network) == {}
    check_equal(network, compile_network(network, technology, calibration))


def test_without_constant_cells_nothing_changes(make_network):
    graph = lower(make_network(SEED))
    assert leave_out_constants(graph, 8) is graph


def test_it_is_said_everywhere(make_network, technology, calibration):
    network = with_rows(make_network(SEED, widths=(5, 4)), "layer0", unit1=0.0, unit2=3.0)
    said = "2 cells are always in the same state, whatever the input: layer0.1, layer0.2 (state 1)"
    assert say_constant(constant_cells(network)) == said
    assert f"{said}; cosim compile leaves them out" in " ".join(format_text(network_page(network, "net.npz")))
    assert describe_network(network)["constant_cells"] == {"layer0.1": 0, "layer0.2": 1}
    design = compile_network(network, technology, calibration)
    summary = summarize(design)
    assert summary["left_out"] == {"layer0.1": 0, "layer0.2": 1}
    assert any(said in str(block) for section in design_page(design).sections for block in section.blocks)
    texts = format_design(design)
    rows = {row["parameter"]: row for row in csv.DictReader(io.StringIO(texts["mapping.csv"]))}
    learned = {f"layer0.{name}" for name in ("weight[1,0]", "bias[2]", "beta_hi[1]", "beta_lo[2]", "alpha[1]")}
    assert {rows[name]["status"] for name in learned} == {LEFT_OUT}
    assert rows["layer0.bias[2]"]["note"] == "layer0.2 is always in state 1"
    whole = compile_network(make_network(SEED, widths=(5, 4)), technology, calibration)
    assert len(rows) == len(map_parameters(whole))  # every learned parameter stands in it
    assert "left_out" not in summarize(whole)


def test_chips_of_it_vary(make_network, technology, calibration):
    """Every factor of its mismatch finds its transistors, and power is that of what is built."""
    network = with_rows(make_network(SEED, widths=(5, 4)), "layer0", unit1=0.0, unit2=3.0)
    design = compile_network(network, technology, calibration)
    plan = VariationPlan("local", 3, 4)
    chip = draw_chip(varying_devices(design.assembly.circuit, technology, plan), technology, plan, 1)
    deviations = chip_deviations(effects_of(design), chip, technology)
    assert set(deviations.cells) == {node.name for node in design.graph.memories}
    trace = run_behavioral(design, inputs(network), chip=chip)
    assert set(trace.states) == set(deviations.cells)
    assert sum(behavioral_power(design, trace).values()).min() > 0
