"""Products of bits: what becomes a steering AND, what is refused, and the same states as in software."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.automata.automaton import modulo
from cosim.automata.network import network_of, one_hot
from cosim.base.errors import MappingError, NetworkError
from cosim.compiler.lower import lower
from cosim.compiler.mapping import map_parameters
from cosim.compiler.passes import check_mapping, compile_network
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.engines.chip import deviations_of
from cosim.network.ir.nodes import And
from cosim.network.ir.states import software_states
from cosim.network.layers import AndLayer, FirstQuadrantLayer, ReluLayer, SignedLayer
from cosim.network.reference import run_reference
from cosim.network.types import DelayedSignal, InputEncoding, check_network
from cosim.units.schmitt import Shift
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices


def product(late, weight, bias, levels=1):
    """A cell that follows the AND of two inputs."""
    encoding = InputEncoding(np.zeros(2), np.ones(2), levels=levels)
    layer = AndLayer("both", ("input",), np.array([weight], dtype=float), np.array([bias], dtype=float))
    return late.network_of(layer, late.cells("it", "both", weight=[[1.0]]), encoding=encoding)


def test_an_and_and_its_gates(late, technology, calibration):
    """Two switches and a source, one comparator an input; no rectifier, no line of its own."""
    design = compile_network(product(late, (1, 1), -1), technology, calibration)
    assert [node.name for node in design.graph.of(And)] == ["both.0"]
    assert [source for source, _ in design.graph.into("both.0", "gate")] == ["in.0", "in.1"]
    names = [
        mos.name for mos in design.assembly.circuit.flatten() if mos.name.startswith(("network.and_", "network.relu_"))
    ]
    assert names == ["network.and_it_0_1.bit0", "network.and_it_0_1.bit1", "network.and_it_0_1.source"]
    rows = {row.parameter: row for row in map_parameters(design)}
    assert rows["it.weight[0,0]"].status == "exact"
    assert rows["both.weight[0,1]"].element == "xnetwork.xand_it_0_1.mbit1"


@pytest.mark.parametrize("reset", [0, 1])
def test_ands_and_states_that_begin_on(late, technology, calibration, reset):
    """A unit that begins on, its late states among the bits, and a shift cell that begins as it does."""
    start = np.array([1.0, 0.0])
    follow = replace(late.cells("a", "input", weight=[[1.0], [1.0]]), initial=start)
    both = AndLayer("both", ("a_1", "a_2"), np.array([[1.0, 0, 0, 1.0]]), np.array([-1.0]))
    network = late.network_of(
        follow,
        both,
        late.cells("b", "both", weight=[[1.0]]),
        late={"a_1": DelayedSignal("a"), "a_2": DelayedSignal("a", 2)},
    )
    design = compile_network(network, technology, calibration)
    assert all(node.on == bool(start[node.index]) for node in design.graph.of(Shift))
    x = late.bits(reset)
    reference = run_reference(network, x)
    for ideal in (True, False):
        trace = run_behavioral(design, x, ideal=ideal)
        states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
        np.testing.assert_array_equal(states, software_states(design.graph, reference))
    power = sum(behavioral_power(design, trace).values())
    assert (power > 1e-9).all() and (power < 1e-6).all()


def test_the_level_of_a_bit_is_in_its_weight(late):
    """A signed unit of 0.5: bits are 0 and 1 of its state, -0.5 and 0.5 in software."""
    one = np.ones(1)
    signed = SignedLayer("s", ("input",), np.array([[2.0]]), -one, 0.5 * one, 0.5 * one)
    both = AndLayer("both", ("input", "s_1"), np.array([[1.0, 1.0]]), np.array([-0.5]))
    network = late.network_of(signed, both, late.cells("it", "both", weight=[[1.0]]), late={"s_1": DelayedSignal("s")})
    graph = lower(network)
    assert graph.weights["s.0", "both.0"].role == "gate" and graph.weights["s.0", "both.0"].late
    x = late.bits(3)
    trace = run_reference(network, x)
    before = np.concatenate([np.zeros((len(x), 1)), x[:, :-1, 0]], axis=1)
    np.testing.assert_array_equal(trace.signals["both"][:, :, 0], x[:, :, 0] * before)
    wrong = replace(network, layers=(signed, replace(both, weight=np.array([[1.0, 2.0]])), *network.layers[2:]))
    with pytest.raises(MappingError, match=r"both.weight\[0,1\] must be 1, 1 over the level of s.0, not 2"):
        lower(wrong)


def test_what_is_no_product_of_bits(late):
    for network, text in (
        (product(late, (1, 1), -0.5), r"both.bias\[0\] must be -1, .*2 bits, not -0.5; use a layer of kind relu"),
        (product(late, (1, 0.5), -1), r"both.weight\[0,1\] must be 1, .* not 0.5"),
        (product(late, (1, -1), -1), r"both.weight\[0,1\] must be 1, .* not -1"),
        (product(late, (1, 1), -1, levels=16), r"reads in.0, which must be 0 or 1: meta.input_levels must be 1"),
    ):
        with pytest.raises(MappingError, match=text):
            lower(network)
    hidden = ReluLayer("hidden", ("input",), np.eye(2), np.zeros(2))
    layers = product(late, (1, 1), -1).layers
    network = late.network_of(
        hidden, replace(layers[0], sources=("hidden",)), layers[1], encoding=InputEncoding(np.zeros(2), np.ones(2))
    )
    with pytest.raises(MappingError, match="reads hidden.0, no bit"):
        lower(network)


def test_a_toggle_whose_states_were_not_all_measured_is_no_bit(late):
    """With two rows of ranges a unit may have states between its ends; with the third it is a toggle."""
    one = np.ones(1)
    toggle = SignedLayer("s", ("input",), np.array([[2.0]]), -one, 0.5 * one, 0.5 * one, epsilon=-1.0)
    both = AndLayer("both", ("s",), np.array([[1 / 1.5]]), np.array([1 / 3]))
    network = late.network_of(toggle, both, late.cells("it", "both", weight=[[1.0]]))
    rows = np.array([[-0.5], [1.0], [1.0]])
    lower(replace(network, state_ranges={"s": rows}))
    with pytest.raises(MappingError, match=r"reads s.0, which became a reflector, .* ranges.s .* `ranges_from=FILE"):
        lower(replace(network, state_ranges={"s": rows[:2]}))


def test_only_what_pulls_may_read_it(late):
    network = product(late, (1, 1), -1)
    layers = network.layers[0], replace(network.layers[1], weight=np.array([[-1.0]]))
    with pytest.raises(MappingError, match=r"it.weight\[0,0\] reads both.0, an AND, .* must not be negative, not -1"):
        check_mapping(replace(network, layers=layers))


def test_rows_without_bits_or_with_too_many():
    for width, count in ((5, 0), (5, 5)):
        layer = AndLayer("both", ("input",), np.eye(1, width) * 0 + (np.arange(width) < count), np.zeros(1))
        with pytest.raises(NetworkError, match=rf"both.weight\[0,\*\] must read 1 to 4 bits, not {count}; split"):
            layer.check("network")


def test_a_start_is_on_or_off(late):
    cells = replace(late.cells("a", "input", weight=[[1.0]]), initial=np.array([0.5]))
    with pytest.raises(NetworkError, match=r"a.initial\[0\] must be 0 \(off\) or 1 \(on\), not 0.5"):
        late.network_of(cells)


def test_only_a_schmitt_trigger_begins_on(late):
    one = np.ones(1)
    layer = FirstQuadrantLayer("a", ("input",), np.ones((1, 1)), 0 * one, 0.35 * one, 0.55 * one, one, 1.0, one)
    network = check_network(replace(late.network_of(late.cells("a", "input", weight=[[1.0]])), layers=(layer,)))
    with pytest.raises(MappingError, match=r"a.initial must be 0 everywhere where epsilon is 1: .* leave it out"):
        lower(network)


def test_mismatch_moves_a_product(technology, calibration):
    """A chip's factors of products are those of the source and of the bias diode; comparators stand."""
    automaton = modulo(3)
    design = compile_network(network_of(automaton, "it"), technology, calibration)
    plan = VariationPlan("local", 0, 6)
    chip = draw_chip(varying_devices(design.assembly.circuit, technology, plan), technology, plan, 5)
    found = deviations_of(design, design.nominal, chip)
    products = [found.weights[edge] for edge in design.assembly.steering]
    assert len(products) == 9 and len(set(products)) == 9
    assert set(found.symbols) == {f"{kind}.{k}" for kind in ("in", "state") for k in range(3)}
    string = np.random.default_rng(0).integers(0, 3, 50)
    x, _ = one_hot(3, [string])
    nominal, drawn = run_behavioral(design, x), run_behavioral(design, x, chip=chip)
    name, source = "state.0", next(edge for edge in design.assembly.steering if edge[1] == "state.0")[0]
    alone = nominal.currents[source][0] > 0
    ratio = drawn.candidates[name][0, alone] / nominal.candidates[name][0, alone]
    # a candidate of 1 nA stands where calibration has drop 0: pull (1 - slope drop) = pull to second order, (3 %)^2
    np.testing.assert_allclose(ratio, found.weights[source, name], rtol=1e-3)
