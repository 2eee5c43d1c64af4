"""The equations of rows and memories by hand, with every deviation of a chip at once; and ties, to the bit.

Gains and slopes are made up, large and distinct, so that each of them shows; a product of numbers near 1 is exact to
some 1e-15, so 1e-12 is what rounding may do.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim.compiler.size import scale, size
from cosim.engines.behavioral.effects import Deviations
from cosim.engines.behavioral.evaluate import evaluate, evaluate_held
from cosim.network.ir.graph import GraphBuilder
from cosim.network.ir.nodes import (
    PEDESTAL,
    UNIT_CURRENT,
    InputCurrent,
    MemoryCurrents,
    Output,
    Rectifier,
    UnitCurrent,
    Weight,
)
from cosim.network.reference import EncodedInputs
from cosim.units.ladder import Ladder, LadderFactors
from cosim.units.reflector import Reflector
from cosim.units.schmitt import Schmitt, SchmittFactors
from cosim.units.toggle import Toggle, ToggleFactors

I_UNIT, I_PEDESTAL = 0.8e-9, 0.04e-9
CELL = {"rise": 0.9, "fall": 0.5, "level": 1.1, "zero": 0.0, "step": 1.1}
FIRST, SECOND = "layer0.0.beta_pos", "layer0.0.beta_neg"


@pytest.fixture
def steep(calibration):
    count = len(calibration.mirror.currents)
    gains = {"gain_n": tuple(np.linspace(1.2, 0.9, count)), "gain_p": tuple(np.linspace(0.85, 1.15, count))}
    mirror = replace(calibration.mirror, **gains, gain_push=(0.93,) * count, slope_n=0.31, slope_p=0.17, swing=0.037)
    mirror = replace(mirror, relu_above=0.11)
    schmitt = replace(
        calibration.schmitt,
        rise=(0.003, 0.97, 0.13, 0.005, 0.007, 0.011),
        fall=(0.005, 0.95, -0.91, 0.003, 0.011, 0.007),
        set_shift=(0.007, 0.011),
        reset_shift=(0.013, 0.017),
    )
    return replace(calibration, mirror=mirror, schmitt=schmitt)


def graph_of(nodes, edges, betas=()):
    """edges, betas: {(source, target): weight}."""
    graph = GraphBuilder()
    for node in (*(InputCurrent(f"in.{k}", k) for k in range(3)), UnitCurrent(), *nodes):
        graph.add(node)
    for role, weights in (("drive", edges), ("beta", dict.fromkeys(betas, 1.0))):
        for (source, target), weight in weights.items():
            graph.connect(source, target, Weight(weight, "", role))
    return graph.lowered()


@pytest.fixture
def sized(steep):
    def build(*arguments, i_unit=I_UNIT, **options):
        return size(scale(graph_of(*arguments), i_unit), steep, **options)

    return build


def drawn(samples=40, steps=25):
    return EncodedInputs(np.random.default_rng(3).uniform(size=(samples, steps, 3)))


def source_currents(inputs):
    """As drawn by the sources, by name: an input rides on its pedestal."""
    found = {f"in.{k}": I_UNIT * inputs.units[:, :, k] + I_PEDESTAL for k in range(3)}
    shape = inputs.units.shape[:2]
    return found | {UNIT_CURRENT: np.full(shape, I_UNIT), PEDESTAL: np.full(shape, I_PEDESTAL)}


@pytest.mark.parametrize("ideal", [False, True])
def test_a_row_with_every_deviation(sized, steep, ideal):
    """A rectifier and two outputs, the second added first: gains at each current, lines, weights, the node's swing."""
    counts = {"in.0": 3, "in.1": -5, "in.2": 1, UNIT_CURRENT: -1}
    nodes = [Output("readout.1", 1), Output("readout.0", 0), Rectifier("hidden.0", "hidden", 0)]
    edges = {(source, "hidden.0"): count / 8 for source, count in counts.items()}
    edges |= {("hidden.0", "readout.0"): 7 / 8, ("hidden.0", "readout.1"): -11 / 8, ("in.0", "readout.1"): 2 / 8}
    graph, inputs = sized(nodes, edges), drawn()
    lines_n = {"in.0": 1.07, "in.1": 1.13, "in.2": 0.81, UNIT_CURRENT: 0.7, "hidden.0": 1.31, PEDESTAL: 0.91}
    lines_p = {"in.0": 0.83, "in.1": 0.89, "in.2": 1.23, UNIT_CURRENT: 1.37, "hidden.0": 0.77, PEDESTAL: 1.17}
    weights = dict(zip(graph.weights, 1 + 0.01 * np.array([2, 3, 5, 7, 11, 13, 17, -19, -23, -29]), strict=True))
    trace = evaluate(graph, steep, inputs, Deviations(lines_p, lines_n, weights), ideal=ideal)
    mirror, currents = steep.mirror, source_currents(inputs)
    counts[PEDESTAL] = -(3 - 5 + 1)

    def by_hand(target, counts, swing):
        pull = push = 0.0
        for source, count in counts.items():
            gain_n, gain_p = (
                1.0 if ideal else np.interp(np.log(currents[source].clip(1e-18)), np.log(mirror.currents), gains)
                for gains in (mirror.gain_n, mirror.gain_p)
            )
            term = abs(count) / 8 * weights[source, target] * currents[source]
            pull = pull + (count > 0) * term * gain_n * lines_n[source]
            push = push + (count < 0) * term * gain_p * lines_p[source]
        drop = 0.037 * np.log(np.maximum(pull - push, mirror.currents[0]) / 1e-9) - 0.11
        drop = drop * (swing and not ideal)
        return np.where(pull > push, pull * (1 - 0.31 * drop) - push * (1 + 0.17 * drop), pull - push)

    currents["hidden.0"] = np.maximum(by_hand("hidden.0", counts, True), 0.0)
    expected = [by_hand("readout.0", {"hidden.0": 7}, False)]
    expected.append(by_hand("readout.1", {"hidden.0": -11, "in.0": 2, PEDESTAL: -2}, False))
    for name, current in currents.items():
        np.testing.assert_allclose(trace.currents[name], current, rtol=1e-12, atol=1e-24)
    np.testing.assert_allclose(trace.readout, np.stack(expected, axis=2), rtol=1e-11, atol=1e-21)
    assert (currents["hidden.0"] == 0).any() and (currents["hidden.0"] > 0).any()
    assert not trace.states and trace.ideal is ideal


def test_equal_pull_and_push_leave_nothing(sized, steep):
    """Exactly 0, where the swing of a node that carries nothing would leave something."""
    gains = (1.0,) * len(steep.mirror.currents)
    even = replace(steep, mirror=replace(steep.mirror, gain_n=gains, gain_p=gains))
    graph = sized(
        [Rectifier("hidden.0", "hidden", 0), Output("readout.0", 0)],
        {("in.0", "hidden.0"): 1.0, ("in.1", "hidden.0"): -1.0, ("hidden.0", "readout.0"): 1.0},
    )
    trace = evaluate(graph, even, EncodedInputs(np.full((1, 1, 3), 0.75)))
    assert trace.currents["hidden.0"].item() == 0.0


DEVIATIONS = Deviations(
    lines_p={FIRST: 0.89, SECOND: 1.12},
    cells={"layer0.0": SchmittFactors(compared=1.11, thresh=1.07, width=0.93, level=1.3)},
    betas={(FIRST, "layer0.0"): (1.19, 0.83), (SECOND, "layer0.0"): (0.79, 1.23)},
    pedestals={"layer0.0": 1.7},
)
WITHOUT_BETAS = replace(DEVIATIONS, lines_p={}, betas={})


@pytest.mark.parametrize("ideal", [False, True])
@pytest.mark.parametrize("deviations", [Deviations(), DEVIATIONS], ids=["nominal", "chip"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_cell_with_every_deviation(sized, steep, ideal, deviations, dynamic):
    """Thresholds from the bias currents and the sum of the betas, then the state frame by frame."""
    nodes = [Rectifier(FIRST, "layer0", 0), Rectifier(SECOND, "layer0", 0), Output("readout.0", 0)]
    nodes.append(Schmitt("layer0.0", "layer0", 0, 0, **CELL))
    betas = [(FIRST, "layer0.0"), (SECOND, "layer0.0")] if dynamic else []
    edges = {("in.0", "layer0.0"): 13 / 8, ("in.1", FIRST): 2 / 8, ("in.2", SECOND): 1 / 8}
    edges[UNIT_CURRENT, "layer0.0"] = -1 / 8
    graph, inputs = sized(nodes, edges | {("layer0.0", "readout.0"): 1.0}, betas), drawn()
    chip = deviations if dynamic else replace(deviations, betas={})
    trace = evaluate(graph, steep, inputs, chip, ideal=ideal)
    bias, asked, fit = graph.biases["layer0.0"], graph.currents["layer0.0"], steep.schmitt
    drawn_cell = chip.cells.get("layer0.0", SchmittFactors())
    thresh, width = drawn_cell.thresh, drawn_cell.width
    into_thresh = into_width = np.zeros(inputs.units.shape[:2])
    for part, _ in betas:
        beta = trace.currents[part] * chip.lines_p.get(part, 1.0)
        factors = chip.betas.get((part, "layer0.0"), (1.0, 1.0))
        into_thresh, into_width = into_thresh + beta * factors[0], into_width + beta * factors[1]
    if ideal:
        rise = thresh * (asked.i_rise + into_thresh)
        fall = rise - width * (asked.i_rise - asked.i_fall + 2 * into_width)
        high = asked.i_high
    else:
        pair = (
            thresh * (bias.i_thresh + 0.93 * into_thresh) / bias.trim_thresh,
            width * (bias.i_width + 2 * 0.93 * into_width) / bias.trim_width,
        )
        rise, fall = fit.set_in_frame(fit.i_rise(*pair)), fit.reset_in_frame(fit.i_fall(*pair))
        high = float(fit.i_high(bias.i_gain))
    candidate = trace.candidates["layer0.0"] * drawn_cell.compared
    state = np.zeros(len(candidate), bool)
    for t in range(candidate.shape[1]):
        state = (candidate[:, t] >= rise[:, t]) | (state & (candidate[:, t] > fall[:, t]))
        np.testing.assert_array_equal(trace.states["layer0.0"][:, t], state)
    level = drawn_cell.level * high
    expected = I_PEDESTAL * chip.pedestals.get("layer0.0", 1.0) + level * trace.states["layer0.0"]
    np.testing.assert_allclose(trace.currents["layer0.0"], expected, rtol=1e-12)
    assert candidate.min() == 0.0  # rectified
    near = [np.abs(candidate / limit - 1).min() for limit in (rise, fall)]
    assert max(near) < 0.01 and 0.2 < trace.states["layer0.0"].mean() < 0.8  # a threshold 1 % off would show


@pytest.mark.parametrize("ideal", [False, True])
@pytest.mark.parametrize("kind", [Ladder, Toggle])
@pytest.mark.parametrize("chip", [False, True])
def test_a_ladder_and_a_toggle_with_every_deviation(sized, steep, ideal, kind, chip):
    fields = {"rungs": 4, "first": 3} if kind is Ladder else {}
    nodes = [kind("layer0.0", "layer0", 0, 0, **CELL, **fields), Output("readout.0", 0)]
    edges = {("in.0", "layer0.0"): 13 / 8, ("layer0.0", "readout.0"): 1.0}
    graph, inputs = sized(nodes, edges), drawn(60)
    factors = (1.1, 0.8, 1.3, 0.9)[: 4 if kind is Ladder else 1] if chip else (1.0,) * 4
    upper, lower, pedestal = (1.09, 0.93, 1.7) if chip else (1.0, 1.0, 1.0)
    cell = LadderFactors(upper, lower, levels=factors) if kind is Ladder else ToggleFactors(upper, factors[0])
    deviations = Deviations(cells={"layer0.0": cell}, pedestals={"layer0.0": pedestal}) if chip else Deviations()
    trace = evaluate(graph, steep, inputs, deviations, ideal=ideal)
    bias, asked = graph.biases["layer0.0"], graph.currents["layer0.0"]
    gain = bias.ladder.i_gain if kind is Ladder else bias.i_gain
    rise = upper * (asked.i_rise if ideal else steep.upper.decides_at(bias.i_upper))
    high = asked.i_high if ideal else float(steep.schmitt.i_high(gain))
    fall = lower * (asked.i_fall if ideal else steep.lower.decides_at(bias.i_lower)) if kind is Ladder else 0.0
    candidate, state = trace.candidates["layer0.0"], np.full(60, 3 if kind is Ladder else 0)
    levels = high * np.cumsum([0.0, *factors]) + pedestal * I_PEDESTAL
    for t in range(candidate.shape[1]):
        if kind is Ladder:
            up, down = candidate[:, t] >= rise, candidate[:, t] <= fall
            state = np.clip(state + up.astype(int) - down.astype(int), 0, 4)
        else:
            state = np.where(candidate[:, t] >= rise, 1 - state, state)
        np.testing.assert_array_equal(trace.states["layer0.0"][:, t], state)
    np.testing.assert_allclose(trace.currents["layer0.0"], levels[trace.states["layer0.0"]], rtol=1e-12)
    assert set(np.unique(trace.states["layer0.0"])) == set(range(5 if kind is Ladder else 2))
    assert np.abs(candidate / rise - 1).min() < 0.01


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        (Schmitt, {}, [0, 1, 1, 1, 0, 1, 0]),
        (Ladder, {"rungs": 3, "first": 1}, [0, 1, 1, 2, 1, 2, 1]),
        (Toggle, {}, [0, 1, 1, 0, 0, 1, 1]),
        (Reflector, {"bits": 2, "first": 1}, [2, 3, 3, 2, 1, 2, 1]),
    ],
)
def test_a_candidate_on_a_threshold_is_decided(sized, steep, kind, fields, expected):
    """To the bit: with an i_unit of 2^-30 A and no pedestal every current is exact. Set at 0.5, reset at 0.25."""
    nodes = [kind("layer0.0", "layer0", 0, 0, **CELL | {"rise": 0.5, "fall": 0.25}, **fields), Output("readout.0", 0)]
    edges = {("in.0", "layer0.0"): 1.0, ("layer0.0", "readout.0"): 1.0}
    graph = sized(nodes, edges, i_unit=2.0**-30, pedestal=0.0)
    units = np.array([0.25, 0.5, 0.375, 0.5, 0.25, 0.625, 0.125])
    trace = evaluate(graph, steep, EncodedInputs(np.stack([units, units, units], axis=1)[None]), ideal=True)
    assert trace.states["layer0.0"].tolist() == [expected]
    np.testing.assert_allclose(trace.readout[0, :, 0], 1.1 * 2.0**-30 * np.array(expected), rtol=1e-12)


@pytest.mark.parametrize(("fall", "start"), [(-1e-12, 1), (0.0, 0), (1e-12, 0)])
def test_a_cell_that_a_candidate_of_0_does_not_reset_starts_on(sized, steep, fall, start):
    """0 <= 0 resets; a lower threshold below 0 is never reached. The candidate stands between the thresholds."""
    nodes = [Schmitt("layer0.0", "layer0", 0, 0, **CELL), Output("readout.0", 0)]
    graph = sized(nodes, {("in.0", "layer0.0"): 1.0, ("layer0.0", "readout.0"): 1.0})
    graph = replace(graph, currents={"layer0.0": MemoryCurrents(0.9e-9, fall, 1e-9)})
    trace = evaluate(graph, steep, EncodedInputs(np.full((2, 3, 3), 0.25)), ideal=True)
    assert (trace.states["layer0.0"] == start).all()


@pytest.mark.parametrize("ideal", [False, True])
def test_memories_held_on_states_deliver_those(sized, steep, ideal):
    """The same inputs and gains; held on its own states a trace is itself."""
    nodes = [Schmitt("layer0.0", "layer0", 0, 0, **CELL), Output("readout.0", 0)]
    graph = sized(nodes, {("in.0", "layer0.0"): 13 / 8, ("in.1", "readout.0"): 1.0, ("layer0.0", "readout.0"): 1.0})
    trace = evaluate(graph, steep, drawn(), WITHOUT_BETAS, ideal=ideal)
    again = evaluate_held(graph, steep, trace, trace.states, WITHOUT_BETAS)
    np.testing.assert_array_equal(again.readout, trace.readout)
    assert again.ideal is ideal
    on = evaluate_held(graph, steep, trace, {"layer0.0": np.ones_like(trace.states["layer0.0"])}, WITHOUT_BETAS)
    assert (on.states["layer0.0"] == 1).all()
    np.testing.assert_array_equal(on.currents["layer0.0"], trace.currents["layer0.0"].max())
    np.testing.assert_array_equal(on.candidates["layer0.0"], trace.candidates["layer0.0"])
