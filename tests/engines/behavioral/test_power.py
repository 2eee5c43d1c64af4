"""Power: blocks by hand, their sum, and how they scale."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.cells.blocks import BLOCKS
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.network.ir.nodes import PEDESTAL, UNIT_CURRENT, Output


@pytest.fixture(scope="module")
def network(make_network):
    return make_network(26, hidden=5)


@pytest.fixture(scope="module")
def inputs():
    return np.random.default_rng(9).uniform(size=(5, 7, 3))


def power(design, inputs, timing=Timing(), ideal=False, condition=None):
    return behavioral_power(design, run_behavioral(design, inputs, condition, ideal=ideal), timing, condition)


class Immediate(Timing):
    """States change at the beginning of their frame."""

    def closes(self, stages):
        return (0.0,) * stages


class Late(Timing):
    """States change at the end of their frame."""

    def closes(self, stages):
        return (1.0,) * stages


@pytest.fixture(scope="module")
def design(network, technology, calibration):
    return compile_network(network, technology, calibration, CompilerSettings(0.5e-9))


def test_blocks_are_positive_and_per_frame(design, inputs):
    blocks = power(design, inputs)
    assert tuple(blocks) == BLOCKS
    for values in blocks.values():
        assert values.shape == (5, 7)
        assert (values > 0).all()


def test_input_block_is_the_input_current(design, inputs):
    """Inputs with their pedestals, the unit current, and the pedestal's own rail, whatever its strength."""
    found = power(design, inputs)["inputs"] / 1.8
    pedestal = design.graph.i_pedestal
    constant = found - inputs.sum(axis=2) * 0.5e-9 - 3 * pedestal - 0.5e-9
    strength = constant / pedestal
    np.testing.assert_allclose(strength, np.round(strength), rtol=0, atol=1e-6)
    assert np.round(strength).min() >= 1


def test_bias_block_is_the_sum_of_the_pins(design, inputs):
    np.testing.assert_allclose(power(design, inputs)["bias"], 1.8 * sum(design.assembly.bias_pins.values()), rtol=1e-12)


def test_row_block_by_hand(design, inputs):
    """What a row pulls comes from V_DD: positive counts times their source's current; states last whole frames here."""
    trace = run_behavioral(design, inputs)
    total = np.zeros((5, 7))
    for source, target in design.graph.weights:
        if design.graph.weights[source, target].role == "drive" and not isinstance(design.graph.nodes[target], Output):
            total += max(design.graph.mirrors[source, target].count, 0) / 8 * trace.currents[source]
    np.testing.assert_allclose(power(design, inputs, Immediate())["rows"], 1.8 * total, rtol=1e-12)


def test_readout_block_by_hand(design, inputs):
    """An output draws the larger of what its row pulls and what it pushes; in ideal mirrors, whose gains are 1."""
    trace, outputs = run_behavioral(design, inputs, ideal=True), {}
    for source, target in design.graph.weights:
        if isinstance(design.graph.nodes[target], Output):
            term = design.graph.mirrors[source, target].count / 8 * trace.currents[source]
            pull, push = outputs.get(target, (0.0, 0.0))
            outputs[target] = (
                (pull + term, push) if design.graph.mirrors[source, target].count > 0 else (pull, push - term)
            )
    pulled, pushed = (np.stack([pair[k] for pair in outputs.values()]) for k in (0, 1))
    assert (pulled > pushed).any() and (pulled < pushed).any()
    found = power(design, inputs, Immediate(), ideal=True)["readout"]
    np.testing.assert_allclose(found, 1.8 * np.maximum(pulled, pushed).sum(axis=0), rtol=1e-12)


def test_cell_block_by_hand(design, inputs):
    """The decision branch carries what M1 and M9 source or what M2 sinks, whichever is less."""
    trace, calibration = run_behavioral(design, inputs), design.calibration
    mirror, total = calibration.mirror, np.zeros((5, 7))
    limits = set()
    for name in design.assembly.decisions:
        bias = design.graph.biases[name]
        feedback = float(calibration.schmitt.i_high(bias.i_width)) * trace.states[name]
        sourced = mirror.push * (trace.candidates[name] + feedback)
        sunk = (mirror.sink + mirror.slope_n * calibration.v_node) * bias.i_thresh
        limits |= set((sourced < sunk).ravel().tolist())
        total += np.where(sourced < sunk, sourced, sunk) + feedback + trace.currents[name]
    assert limits == {True, False}
    assert 1.01 < mirror.push < 1.03 and 1.02 < mirror.sink + mirror.slope_n * calibration.v_node < 1.05  # 3 %/V
    np.testing.assert_allclose(power(design, inputs, Immediate())["cells"], 1.8 * total, rtol=1e-12)


def test_spans_before_a_decision_have_the_old_states(design, inputs):
    """With stages that decide at the end of their frame, a frame's readout is that of the states before."""
    late = power(design, inputs, Late(), ideal=True)["readout"]
    trace, rows = run_behavioral(design, inputs, ideal=True), {}
    rest = dict.fromkeys(design.assembly.decisions, design.graph.i_pedestal)
    total = np.zeros((5, 7))
    for source, target in design.graph.weights:
        if isinstance(design.graph.nodes[target], Output):
            current = trace.currents[source]
            if source in rest:
                current = np.concatenate([np.full((5, 1), rest[source]), current[:, :-1]], axis=1)
            rows[target] = rows.get(target, 0.0) + design.graph.mirrors[source, target].count / 8 * current
            total += max(design.graph.mirrors[source, target].count, 0) / 8 * current
    total += sum(np.maximum(-row, 0.0) for row in rows.values())
    np.testing.assert_allclose(late, 1.8 * total, rtol=1e-12)


def test_state_changes_in_mid_frame(design, inputs):
    """The new state counts from the decision of its stage on, not for the whole frame."""
    clocked, plain = power(design, inputs), power(design, inputs, Immediate())
    assert not np.array_equal(clocked["cells"], plain["cells"])
    constant = np.repeat(inputs[:, :1], 7, axis=1)
    clocked, plain = power(design, constant), power(design, constant, Immediate())
    # with constant inputs nothing changes any more after each layer has decided once
    np.testing.assert_allclose(clocked["cells"][:, 3:], plain["cells"][:, 3:], rtol=1e-12)


def test_power_is_proportional_to_the_unit_current(network, inputs, technology, calibration):
    """All currents scale with i_unit: exactly but for gains and fits, which vary by 1 % and 2 % over a factor of 2."""
    small, large = (
        power(compile_network(network, technology, calibration, CompilerSettings(i_unit)), inputs, ideal=True)
        for i_unit in (0.5e-9, 1e-9)
    )
    for name in BLOCKS:
        np.testing.assert_allclose(large[name], 2 * small[name], rtol=0.03, err_msg=name)
    for name in ("inputs", "rows"):  # no calibration in these, and ideal currents
        np.testing.assert_allclose(large[name], 2 * small[name], rtol=1e-9, err_msg=name)


def test_supply_scales_all_blocks(design, inputs):
    half = Condition(replace(design.technology, supply=0.9))
    for name, values in power(design, inputs).items():
        np.testing.assert_allclose(power(design, inputs, condition=half)[name], values / 2, rtol=1e-12)


def test_names_used_here():
    assert (PEDESTAL, UNIT_CURRENT) == ("zero", "one")
