"""Late sources on the chip: what they cost, and the same states as in software."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import MappingError
from cosim.compiler.lower import lower
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.network.ir.states import software_states
from cosim.network.layers import ReluLayer, SignedLayer
from cosim.network.reference import run_reference
from cosim.network.types import DelayedSignal
from cosim.units.schmitt import Shift


@pytest.mark.parametrize("modulo", [2, 3, 5])
def test_a_counter_counts(modulo, late, technology, calibration):
    """In software and by the equations of the cells, with the gains that calibration measured."""
    network, x = late.counter(modulo), late.bits(modulo)
    reference = run_reference(network, x)
    count = np.cumsum(x[:, :, 0], axis=1) % modulo
    held = np.concatenate(
        [1 - reference.signals["count"].sum(axis=2, keepdims=True), reference.signals["count"]], axis=2
    )
    np.testing.assert_array_equal(held.argmax(axis=2), count)
    design = compile_network(network, technology, calibration)
    assert design.graph.feeds_back and not any(design.graph.of(Shift))
    for ideal in (True, False):
        trace = run_behavioral(design, x, ideal=ideal)
        states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
        np.testing.assert_array_equal(states, software_states(design.graph, reference))
    power = sum(behavioral_power(design, trace).values())
    assert power.shape == x.shape[:2] and (power > 1e-9).all() and (power < 1e-6).all()


CASES = {
    "of a layer in front": (
        lambda n: n.network_of(n.cells("a", "input", weight=[[1]]), n.cells("b", "a", "a_1", weight=[[1, 1]]),
                               late={"a_1": DelayedSignal("a")}), 1),
    "its own": (
        lambda n: n.network_of(n.cells("a", "input", "a_1", weight=[[1, -1]]), late={"a_1": DelayedSignal("a")}), 0),
    "its own, three frames": (
        lambda n: n.network_of(n.cells("a", "input", "a_3", weight=[[1, -1]]), late={"a_3": DelayedSignal("a", 3)}), 2),
    "of the input": (
        lambda n: n.network_of(n.cells("a", "input", "input_2", weight=[[1, -1]]),
                               late={"input_2": DelayedSignal("input", 2)}),
        2),
    "of a layer behind": (
        lambda n: n.network_of(n.cells("a", "input", "b_1", weight=[[1, -1]]), n.cells("b", "a", weight=[[1]]),
                               late={"b_1": DelayedSignal("b")}), 0),
    "read out": (
        lambda n: n.network_of(n.cells("bit", "input", weight=[[1]]), read=("bit", "bit_1", "bit_4"),
                               late={"bit_1": DelayedSignal("bit"), "bit_4": DelayedSignal("bit", 4)}), 4),
    "of the input, read out": (
        lambda n: n.network_of(n.cells("bit", "input", weight=[[1]]), read=("bit", "input_1"),
                               late={"input_1": DelayedSignal("input")}), 2),
    "shared": (
        lambda n: n.network_of(n.cells("a", "input_2", "input_4", weight=[[1, 1]]),
                               n.cells("b", "input_3", weight=[[1]]),
                               late={f"input_{k}": DelayedSignal("input", k) for k in (2, 3, 4)}), 4),
}  # fmt: skip


@pytest.mark.parametrize(("build", "count"), CASES.values(), ids=CASES)
def test_what_late_sources_cost_and_do(build, count, late, technology, calibration):
    """Shift cells, shared by all rows of a signal; the states of all cells are those of the software."""
    network, x = build(late), late.bits(7)
    design = compile_network(network, technology, calibration)
    assert len(list(design.graph.of(Shift))) == count
    reference, trace = run_reference(network, x), run_behavioral(design, x, ideal=True)
    states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
    np.testing.assert_array_equal(states, software_states(design.graph, reference))
    np.testing.assert_allclose(trace.readout, reference.readout * design.i_unit, atol=1e-15)
    assert all(np.ptp(trace.states[node.name]) for node in design.graph.memories)


def test_what_is_read_late_decides_apart_from_the_clock(late, technology, calibration):
    """By lines of its stage alone, not by those of others."""
    network = late.network_of(
        late.cells("a", "input", weight=[[1]]),
        late.cells("b", "a", "b_1", weight=[[1, -1]]),
        late={"b_1": DelayedSignal("b")},
    )
    assembly = compile_network(network, technology, calibration).assembly
    assert assembly.decides == {1: ("dec1", "decb1")}
    assert [block.name for block in assembly.circuit.subcircuits if "clocked" in block.name] == [
        "schmitt_clocked", "schmitt_clocked_apart"
    ]  # fmt: skip


def test_signed_states_are_late_too(late, technology, calibration):
    """Their level of 0 stands for -alpha, before the first frame as well."""
    layer = SignedLayer(
        "s",
        ("input", "s_1", "s_2"),
        np.array([[1.0, -0.5, 0.25]]),
        np.array([-0.375]),
        np.array([0.25]),
        np.array([0.5]),
    )  # fmt: skip
    network, x = late.network_of(layer, late={"s_1": DelayedSignal("s"), "s_2": DelayedSignal("s", 2)}), late.bits(9)
    design = compile_network(network, technology, calibration)
    reference, trace = run_reference(network, x), run_behavioral(design, x, ideal=True)
    states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
    np.testing.assert_array_equal(states, software_states(design.graph, reference))
    assert np.ptp(states[:, :, 0]) == 1


def test_what_has_no_shift_cell(late):
    def one(reader, encoding=late.ENCODING, **sources):
        return late.network_of(*reader, late=sources, encoding=encoding)

    analog = replace(late.ENCODING, levels=16)
    with pytest.raises(MappingError, match="in.0 is read late, through shift cells.* train with `input_levels=1`"):
        lower(one([late.cells("a", "input_1", weight=[[1]])], analog, input_1=DelayedSignal("input")))
    rates = ReluLayer("rates", ("input",), np.ones((1, 1)), np.zeros(1))
    with pytest.raises(MappingError, match="rates.0 is read late.* must have two values"):
        lower(one([rates, late.cells("a", "rates_1", weight=[[1]])], rates_1=DelayedSignal("rates")))
    with pytest.raises(MappingError, match="at most 256 shift cells.* a digital one"):
        lower(one([late.cells("a", "input_300", weight=[[1]])], input_300=DelayedSignal("input", 300)))


def test_a_threshold_that_would_move_in_its_own_decision(late):
    one = np.ones(1)
    layer = SignedLayer(
        "a", ("input", "input_1"), np.array([[1.0, 1.0]]), -one, 0.5 * one, one, np.array([[0.5, 0.25]])
    )
    network = late.network_of(layer, late={"input_1": DelayedSignal("input")})
    with pytest.raises(
        MappingError, match=r"a.weight_beta\[0,\*\] reads in.0.shift1_0 late, .* train with `beta=fixed`"
    ):
        lower(network)
    lower(late.network_of(replace(layer, weight_beta=np.array([[0.5, 0.0]])), late={"input_1": DelayedSignal("input")}))
