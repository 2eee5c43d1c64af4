"""Sizing: integer counts, what is refused or cut, bias currents, the pedestal."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from cosim.base.errors import MappingError
from cosim.compiler.checks import check_set_points, check_signals, check_weights
from cosim.compiler.lower import lower
from cosim.compiler.settings import CompilerSettings, Target
from cosim.compiler.size import PEDESTAL_UNITS, scale
from cosim.compiler.size import size as size_alone
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
from cosim.technology.scale import MAX_COUNT, MAX_RISE, MIN_FALL, MIN_WIDTH
from cosim.units.ladder import Ladder, ladder_currents, solve_ladder
from cosim.units.schmitt import Schmitt
from cosim.units.sizing import MAX_BIAS_COUNT
from cosim.units.toggle import Toggle


def size(graph, calibration, *, origin="network", saturate=False, pedestal=PEDESTAL_UNITS):
    """The pass behind what is checked before it."""
    settings = CompilerSettings(saturate=saturate, pedestal=pedestal)
    target = Target(None, origin, settings, calibration.units, None, calibration)
    check_signals(graph, target)
    check_weights(graph, target)
    check_set_points(graph, target)
    return size_alone(graph, calibration, origin=origin, pedestal=pedestal)


def changed(network, **arrays):
    """The network with arrays of layer0 replaced."""
    return replace(network, layers=(replace(network.layers[0], **arrays), *network.layers[1:]))


@pytest.fixture
def network(make_network):
    return make_network(3)


@pytest.fixture
def sized(technology, calibration):
    def build(network, i_unit=1e-9, **options):
        return size(scale(lower(network), i_unit), calibration, origin="model.pt", **options)

    return build


def test_counts_are_rounded_and_realised(network, sized, calibration):
    rng = np.random.default_rng(7)
    weight = rng.normal(size=network.layers[0].weight.shape)
    graph = sized(changed(network, weight=weight))
    for i, j in np.ndindex(*weight.shape):
        mirror = graph.mirrors[f"in.{j}", f"layer0.{i}"]
        assert mirror.count == round(8 * weight[i, j])
        assert mirror.realised == mirror.count / calibration.units
        assert abs(mirror.realised - weight[i, j]) <= 0.5 / calibration.units


def test_large_weight_is_refused(network, sized):
    weight = network.layers[0].weight.copy()
    weight[3, 1] = -8.5
    text = (
        rf"model\.pt: layer0\.weight\[3,1\] must lie within \+-8 \({MAX_COUNT} unit devices at 1/8\), not -8\.5; "
        "clip it in training, or compile with `saturate`"
    )
    with pytest.raises(MappingError, match=text) as error:
        sized(changed(network, weight=weight))
    assert (error.value.where, error.value.value, error.value.limit) == ("layer0.weight[3,1]", -8.5, 8.0)


def test_large_weight_is_cut_on_demand(network, sized):
    weight = network.layers[0].weight.copy()
    weight[3, 1] = -8.5
    graph = sized(changed(network, weight=weight), saturate=True)
    assert graph.mirrors["in.1", "layer0.3"].count == -MAX_COUNT


def test_largest_weight_and_bias_pass(network, sized, calibration):
    weight, bias = network.layers[0].weight.copy(), network.layers[0].bias.copy()
    weight[3, 1], bias[2] = MAX_COUNT / calibration.units, MAX_BIAS_COUNT / calibration.units
    graph = sized(changed(network, weight=weight, bias=bias))
    assert graph.mirrors["in.1", "layer0.3"].count == MAX_COUNT
    assert graph.mirrors[UNIT_CURRENT, "layer0.2"].count == MAX_BIAS_COUNT
    bias[2] += 0.5
    with pytest.raises(MappingError, match=r"layer0\.bias\[2\] must lie within"):
        sized(changed(network, bias=bias))


def test_narrow_hysteresis_is_refused(network, sized):
    high = network.layers[0].beta_lo + 0.3
    high[4] = network.layers[0].beta_lo[4] + 0.9 * MIN_WIDTH / 1e-9
    text = r"model\.pt: layer0\.4: hysteresis width must be at least 12 pA, not 10\.8 pA"
    with pytest.raises(MappingError, match=text):
        sized(changed(network, beta_hi=high))


def test_low_threshold_is_refused(network, sized):
    low = network.layers[0].beta_lo.copy()
    low[1] = 0.9 * MIN_FALL / 1e-9
    with pytest.raises(MappingError, match=r"layer0\.1: lower threshold must be at least 10 pA, not 9 pA"):
        sized(changed(network, beta_lo=low))


def test_high_threshold_is_refused(network, sized):
    high = network.layers[0].beta_hi.copy()
    high[1] = 1.25 * MAX_RISE / 1e-9
    limit = 1e9 * MAX_RISE
    text = rf"layer0\.1: upper threshold must be at most {limit:g} nA, not {1.25 * limit:g} nA"
    with pytest.raises(MappingError, match=text):
        sized(changed(network, beta_hi=high))


@pytest.mark.parametrize(
    ("level", "repair"),
    [(-1.0, "flip the sign"), (0.0, "flip the sign"), (1.25e9 * MAX_RISE, "")],
)
def test_impossible_levels_are_refused(network, sized, level, repair):
    alpha = network.layers[0].alpha.copy()
    alpha[2] = level
    wanted = "" if level > 0 else "positive and "
    text = rf"layer0\.2: state level must be {wanted}at most {MAX_RISE * 1e9:g} nA, not {level:g} nA.*{repair}"
    with pytest.raises(MappingError, match=text):
        sized(changed(network, alpha=alpha))


def test_limits_are_currents_not_units(network, sized):
    """The same network at a tenth of the current has a tenth of the widths."""
    high = network.layers[0].beta_lo + 0.05
    sized(changed(network, beta_hi=high))
    with pytest.raises(MappingError, match="hysteresis width must be at least 12 pA, not 5 pA"):
        sized(changed(network, beta_hi=high), i_unit=0.1e-9)


@pytest.mark.parametrize("kind", ["first", "signed", "signed_input"])
def test_pedestal_is_taken_out_exactly(make_network, sized, kind):
    graph = sized(make_network(3, kind, hidden=5))
    for node in graph.of(Rectifier, Schmitt, Output):
        riding = [
            graph.mirrors[source, node.name].count
            for source, _ in graph.into(node.name)
            if isinstance(graph.nodes[source], InputCurrent | Schmitt)
        ]
        assert graph.mirrors[PEDESTAL, node.name].count == -sum(riding)
    assert any(graph.mirrors[edge].count for edge in graph.out_of(PEDESTAL))
    assert graph.i_pedestal == PEDESTAL_UNITS * 1e-9


def test_no_pedestal_on_demand(network, sized):
    graph = sized(network, pedestal=0.0)
    assert PEDESTAL not in graph.nodes
    assert graph.i_pedestal == 0


def test_gain_bias_gives_the_level(network, sized, calibration):
    graph = sized(network)
    for node in graph.of(Schmitt):
        level = float(calibration.schmitt.i_high(np.float64(graph.biases[node.name].i_gain)))
        assert level == pytest.approx(node.level * 1e-9, rel=1e-9, abs=0)  # the fixed point converges to float64


def test_thresholds_of_the_biases_are_those_asked_for(network, sized, calibration):
    """Forward through the fit. The candidate path has a gain within 1 % and up to 0.1 V of node swing at 2.5 %/V."""
    graph = sized(network)
    for node in graph.of(Schmitt):
        bias = graph.biases[node.name]
        fit, pair = calibration.schmitt, (np.float64(bias.i_thresh), np.float64(bias.i_width))
        traffic = sum(abs(weight.target) for _, weight in graph.into(node.name)) * 1e-9
        bound = 0.01 * node.rise * 1e-9 + 0.1 * 0.025 * traffic
        assert float(fit.set_in_frame(fit.i_rise(*pair))) == pytest.approx(node.rise * 1e-9, abs=bound)
        assert float(fit.reset_in_frame(fit.i_fall(*pair))) == pytest.approx(node.fall * 1e-9, abs=bound)


def test_stages_leave_the_earlier_graph_alone(network, sized):
    lowered = lower(network)
    scaled = scale(lowered, 1e-9)
    assert not hasattr(lowered, "i_unit") and not hasattr(lowered, "currents")
    assert scaled.currents["layer0.0"].i_rise == lowered.nodes["layer0.0"].rise * 1e-9


@pytest.mark.parametrize(
    ("i_unit", "text"),
    [
        (
            20e-12,
            r"`i_unit` must be at least 4e-11 A on generic180, not 2e-11 A: a signal of 0 carries 0\.05 of it, and "
            "mirrors need 2 pA$",
        ),
        (
            1e-7,
            "`i_unit` must be at most 9.52e-08 A on generic180, not 1e-07 A: mirrors keep their gain up to 100 nA$",
        ),
    ],
)
def test_signals_must_stay_where_mirrors_keep_their_gain(network, sized, i_unit, text):
    with pytest.raises(MappingError, match=text):
        sized(network, i_unit=i_unit)


# One memory, node by node: every current by hand, with gains and slopes so large and distinct that each of them shows.

THRESHOLDS = {"rise": 1.7, "fall": 0.7, "level": 1.1, "zero": 0.0, "step": 1.1}
TERMS = {"in.0": 3 / 8, "in.1": -5 / 8, UNIT_CURRENT: 7 / 8, "layer8.0": -11 / 8, "layer9.0": 13 / 8}
TOPS = {"in.0": 1.0, "in.1": 1.0, "layer8.0": 1.5, "layer9.0": 4 * 0.5}  # largest signal of what may change


@pytest.fixture
def steep(calibration):
    count = len(calibration.mirror.currents)
    gain_p = tuple(np.linspace(0.9, 1.1, count))
    mirror = replace(calibration.mirror, gain_n=(1.3,) * count, gain_p=gain_p, gain_push=(0.93,) * count)
    return replace(calibration, mirror=replace(mirror, slope_n=0.31, slope_p=0.17, swing=0.037, relu_above=0.11))


def row(kind=Schmitt, terms=TERMS, beta=(), **fields):
    """A graph of two inputs, the unit current, two memories, and `layer0.0` of a kind that reads them."""
    graph = GraphBuilder()
    nodes = [InputCurrent("in.0", 0), InputCurrent("in.1", 1), UnitCurrent(), Rectifier("hidden.0", "hidden", 0)]
    nodes.append(Schmitt("layer8.0", "layer8", 0, 0, 1.5, 0.0, 1.5, 0.5, 0.25))
    nodes.append(Ladder("layer9.0", "layer9", 0, 0, 0.5, 0.0, 1.0, 0.5, 0.25, rungs=4))
    nodes.append(kind("layer0.0", 0) if kind is Output else kind("layer0.0", "layer0", 0, 1, **THRESHOLDS | fields))
    for node in nodes:
        graph.add(node)
    for source, weight in terms.items():
        graph.connect(source, "layer0.0", Weight(weight, f"weight of {source}"))
    for source in beta:
        graph.connect(source, "layer0.0", Weight(1.0, "", "beta"))
    return graph.lowered()


def bias_of(graph, calibration, i_unit=1e-9, **options):
    return size(scale(graph, i_unit), calibration, **options).biases["layer0.0"]


def arrives(current, calibration, i_unit=1e-9, terms=TERMS, above=0.0):
    """What is there when `current` should be, at the signals nearest to 0.35 of their tops that give it.

    On every gate line there is a pedestal of 0.05 as well, which a weight on the pedestal takes away.
    """
    mirror = calibration.mirror

    def signals(step):
        return {one: top * np.clip(0.35 + step * terms[one] * top, 0, 1) for one, top in TOPS.items() if one in terms}

    def total(step):
        return sum(terms[one] * x for one, x in signals(step).items()) + terms.get(UNIT_CURRENT, 0.0)

    def missing(step):
        return total(step) - current / i_unit

    step = brentq(missing, -9, 9) if missing(-9) < 0 < missing(9) else 9 * np.sign(-missing(9))
    lines = {}
    for sign, gains in ((1, mirror.gain_n), (-1, mirror.gain_p)):

        def line(units, gains=gains):
            return i_unit * units * np.interp(np.log(i_unit * units), np.log(mirror.currents), gains)

        rest = {one: line(0.05) for one in TOPS}
        lines[sign] = {UNIT_CURRENT: line(1.0), "pedestal": rest["in.0"]}
        for one, x in signals(step).items():
            share = x / TOPS[one]
            switched = share * line(TOPS[one] + 0.05) + (1 - share) * rest[one]
            known = (terms[one] * TOPS[one]) ** 2 / sum((terms[k] * TOPS[k]) ** 2 for k in TOPS if k in terms)
            part = 1 if one == "layer8.0" else (1 - known) / 2
            lines[sign][one] = part * switched + (1 - part) * line(x + 0.05)
    weights = terms | {"pedestal": -sum(weight for one, weight in terms.items() if one in TOPS)}
    pull, push = (sum(max(sign * w, 0) * lines[sign][one] for one, w in weights.items()) for sign in (1, -1))
    beyond = (current - i_unit * total(step)) * np.interp(0.0, np.log(np.array(mirror.currents) / 1e-9), mirror.gain_p)
    drop = 0.037 * np.log((pull - push + beyond) / 1e-9) - above
    return pull * (1 - 0.31 * drop) - push * (1 + 0.17 * drop) + beyond


@pytest.mark.parametrize("i_unit", [1e-9, 0.6e-9])
def test_thresholds_stand_where_the_candidate_really_arrives(steep, i_unit):
    """By hand; the bias is solved to float64. The node of a current above 1 nA stands lower, so less arrives there."""
    bias, fit = bias_of(row(), steep, i_unit), steep.schmitt
    pair = bias.i_thresh, bias.i_width
    assert fit.set_in_frame(fit.i_rise(*pair)) == pytest.approx(arrives(1.7 * i_unit, steep, i_unit), rel=1e-8)
    assert fit.reset_in_frame(fit.i_fall(*pair)) == pytest.approx(arrives(0.7 * i_unit, steep, i_unit), rel=1e-8)
    assert fit.i_high(bias.i_gain) == pytest.approx(1.1 * i_unit, rel=1e-8)
    assert (bias.trim_thresh, bias.trim_width) == (1.0, 1.0)


def test_a_row_counts_as_it_can_be_built(steep):
    """Cut to 8 as a weight, to 32 as a bias: at most 24 units are taken away, and the threshold is 22 beyond that."""
    bias = bias_of(row(terms={"in.0": -20.0, UNIT_CURRENT: 40.0}), steep, saturate=True)
    found = steep.schmitt.set_in_frame(steep.schmitt.i_rise(bias.i_thresh, bias.i_width))
    expected = arrives(1.7e-9, steep, terms={"in.0": -8.0, UNIT_CURRENT: 32.0})
    assert found == pytest.approx(max(expected, 0.85e-9), rel=1e-8)


def test_at_least_half_of_a_candidate_arrives(calibration):
    """A correction beyond its linear range would ask for thresholds at or below 0."""
    calibration = replace(calibration, mirror=replace(calibration.mirror, slope_n=31.0, slope_p=17.0))
    bias, fit = bias_of(row(fall=1.3), calibration), calibration.schmitt
    assert fit.set_in_frame(fit.i_rise(bias.i_thresh, bias.i_width)) == pytest.approx(0.85e-9, rel=1e-8)
    assert fit.reset_in_frame(fit.i_fall(bias.i_thresh, bias.i_width)) == pytest.approx(0.65e-9, rel=1e-8)


@pytest.mark.parametrize("i_unit", [1e-9, 0.3e-9])  # below, beta is under the smallest measured current
def test_a_beta_moves_both_thresholds_by_itself(steep, i_unit):
    """Straight lines next to what rise + beta and fall - beta ask for, by least squares: nothing left, nor a slope.

    A beta arrives at a rectifier, 0.11 V above a candidate here, and through the gain of a push, once in the
    threshold line and twice in the width line. What is left of the width line moves the upper threshold.
    """
    graph = row(beta=["hidden.0"])
    edges = {("in.0", "hidden.0"): Weight(2.0, ""), ("in.1", "hidden.0"): Weight(-1.0, "")}
    graph = replace(graph, weights=graph.weights | edges)
    bias, fit, beta_row = bias_of(graph, steep, i_unit), steep.schmitt, {"in.0": 2.0, "in.1": -1.0}
    betas = 0.7 * i_unit * np.array([0.1, 0.2625, 0.425, 0.5875, 0.75])
    pushed = 0.93 * np.array([arrives(beta, steep, i_unit, beta_row, above=0.11) for beta in betas])
    width = (bias.i_width + 2 * pushed) / bias.trim_width
    thresh = (bias.i_thresh + pushed) / bias.trim_thresh
    rises, falls = (
        np.array([arrives(x, steep, i_unit) for x in line]) for line in (1.7 * i_unit + betas, 0.7 * i_unit - betas)
    )
    asked = np.array([fit.solve_clocked(*pair) for pair in zip(rises, falls, strict=True)]).T
    left = rises - fit.set_in_frame(fit.i_rise(asked[0], width))
    for rest in (asked[0] + left - thresh, asked[1] - width):
        assert np.abs(rest).max() < 0.01 * i_unit
        assert [rest.sum(), rest @ pushed / i_unit] == pytest.approx([0.0, 0.0], abs=1e-9 * i_unit)
    assert np.abs(rises - fit.set_in_frame(fit.i_rise(thresh, width))).max() < 0.01 * i_unit
    assert bias.trim_thresh != pytest.approx(bias.trim_width, rel=1e-4)


@pytest.mark.parametrize("i_unit", [1e-9, 0.25e-9])
def test_a_width_pin_gives_no_negative_current(calibration, i_unit):
    """Without a constant width the shifts of the clocked cell alone would ask for -4 pA and less."""
    bias = bias_of(row(rise=0.3, fall=0.3, beta=["hidden.0"]), calibration, i_unit)
    assert bias.i_width == 0.0
    assert bias.i_thresh == pytest.approx(0.3 * i_unit, rel=0.05)  # gains and shifts of 2 % each


def test_pins_of_a_ladder_and_a_toggle(steep):
    """Comparators at what arrives; the driver gives 0.05 i_unit and 0.2 more: reset, retain, set 0.05, 0.25, 0.45."""
    i_unit = 0.8e-9
    ladder, toggle = (bias_of(row(kind), steep, i_unit) for kind in (Ladder, Toggle))
    for bias in (ladder, toggle):
        expected = arrives(1.7 * i_unit, steep, i_unit)
        assert steep.upper.decides_at(bias.i_upper) == pytest.approx(expected, rel=1e-8)
        assert (bias.i_base, bias.i_delta) == pytest.approx((0.05 * i_unit, 0.2 * i_unit), rel=1e-12)
    expected = arrives(0.7 * i_unit, steep, i_unit)
    assert steep.lower.decides_at(ladder.i_lower) == pytest.approx(expected, rel=1e-8)
    assert ladder.ladder == solve_ladder(ladder_currents(i_unit), steep)
    fit, pair = steep.schmitt, (toggle.i_thresh, toggle.i_width)
    assert fit.set_in_frame(fit.i_rise(*pair)) == pytest.approx(0.35 * i_unit, rel=1e-8)
    assert fit.reset_in_frame(fit.i_fall(*pair)) == pytest.approx(0.15 * i_unit, rel=1e-8)
    assert fit.i_high(toggle.i_gain) == pytest.approx(1.1 * i_unit, rel=1e-8)


@pytest.mark.parametrize("kind", [Schmitt, Ladder, Toggle, Output])
def test_every_row_takes_its_pedestals_out_by_one_weight(calibration, kind):
    """Inputs and states ride on it, the unit current does not: 3 - 5 - 11 + 13 eighths."""
    graph = size(scale(row(kind), 1e-9), calibration)
    mirror = graph.mirrors[PEDESTAL, "layer0.0"]
    assert (mirror.count, mirror.realised) == (0, 0)
    graph = size(scale(row(kind, TERMS | {"in.1": 1 / 8}), 1e-9), calibration)
    mirror, weight = graph.mirrors[PEDESTAL, "layer0.0"], graph.weights[PEDESTAL, "layer0.0"]
    assert (mirror.count, mirror.realised, weight.target) == (-6, -0.75, -0.75)
    assert weight.origin == "layer0.0: pedestal of its sources"
    assert graph.units == 8
    assert graph.i_pedestal == pytest.approx(0.05e-9, rel=1e-12)


def with_currents(kind, calibration, *currents, beta=()):
    graph = scale(row(kind, beta=beta), 1e-9)
    graph = replace(graph, currents={**graph.currents, "layer0.0": MemoryCurrents(*currents)})
    return size(graph, calibration, origin="model.pt")


@pytest.mark.parametrize(
    ("kind", "currents"),
    [
        (Schmitt, (24e-12, 12e-12, 1e-9)),
        (Schmitt, (1e-9, 10e-12, 8e-9)),
        (Schmitt, (8e-9, 7e-9, 1e-9)),
        (Ladder, (8e-9, 10e-12, 8e-9)),
        (Toggle, (10e-12, 0.0, 8e-9)),
        (Toggle, (8e-9, 0.0, 1e-9)),
    ],
)
def test_currents_at_their_limits_pass(calibration, kind, currents):
    """12 pA wide, 10 pA up, 8 nA high; a toggle has no lower threshold."""
    with_currents(kind, calibration, *currents)


@pytest.mark.parametrize(
    ("kind", "currents", "text"),
    [
        (Schmitt, (1e-9, 0.9891e-9, 1e-9), "width must be at least 12 pA, not 10.9 pA"),
        (Schmitt, (1e-9, 1e-9, 1e-9), "width must be at least 12 pA, not 0 pA; swap the thresholds"),
        (Schmitt, (1e-9, 9.87e-12, 1e-9), "lower threshold must be at least 10 pA, not 9.87 pA"),
        (Schmitt, (1e-9, -1e-12, 1e-9), "lower threshold must be at least 10 pA, not -1 pA; raise beta_lo in training"),
        (Schmitt, (8.12e-9, 1e-9, 1e-9), "upper threshold must be at most 8 nA, not 8.12 nA"),
        (Schmitt, (2e-9, 1e-9, 8.12e-9), "level must be at most 8 nA, not 8.12 nA"),
        (Schmitt, (2e-9, 1e-9, -0.5e-9), "level must be positive and at most 8 nA, not -0.5 nA; flip the sign"),
        (Ladder, (2e-9, 9.87e-12, 1.7e-9), "lower threshold must be at least 10 pA, not 9.87 pA$"),
        (Ladder, (8.12e-9, 1e-9, 1.7e-9), "upper threshold must be at most 8 nA, not 8.12 nA$"),
        (Ladder, (2e-9, 1e-9, 8.12e-9), "state level must be at most 8 nA, not 8.12 nA$"),
        (Toggle, (9.87e-12, 1e-9, 1.7e-9), "lower threshold must be at least 10 pA, not 9.87 pA$"),
        (Toggle, (8.12e-9, 1e-9, 1.7e-9), "upper threshold must be at most 8 nA, not 8.12 nA$"),
    ],
)
def test_currents_beyond_their_limits_are_named(calibration, kind, currents, text):
    with pytest.raises(MappingError, match=f"^model.pt: layer0.0: .*{text}"):
        with_currents(kind, calibration, *currents)


def test_signals_at_the_ends_of_the_mirrors_range_pass(calibration):
    """2 pA and 100 nA, both included; the pedestals of 0.5 and 1 make the products exact."""
    graph = row(Output, {"in.0": 0.5})
    graph = replace(
        graph, nodes={name: node for name, node in graph.nodes.items() if name not in ("layer8.0", "layer9.0")}
    )
    low, high = calibration.current_min, calibration.current_max
    size(scale(graph, 2 * low), calibration, pedestal=0.5)
    size(scale(graph, high / 2), calibration, pedestal=1.0)
    with pytest.raises(MappingError, match="network: `i_unit` must be at least 4e-12 A") as error:
        size(scale(graph, 1.9 * low), calibration, pedestal=0.5)
    assert (error.value.where, error.value.unit) == ("i_unit", "A")
    assert (error.value.value, error.value.limit) == pytest.approx((1.9 * low, 2 * low), rel=1e-12)
    with pytest.raises(MappingError, match="network: `i_unit` must be at most 5e-08 A"):
        size(scale(graph, 0.51 * high), calibration, pedestal=1.0)


def test_what_may_be_cut_is_64_devices_of_a_weight_and_256_of_a_bias(calibration):
    graph = size(scale(row(terms={"in.0": 20.0, UNIT_CURRENT: -40.0}), 1e-9), calibration, saturate=True)
    assert graph.mirrors["in.0", "layer0.0"].count == 64
    assert graph.mirrors[UNIT_CURRENT, "layer0.0"].count == -256
    for terms, text in (
        ({"in.0": 8.125}, r"weight of in\.0 must lie within \+-8 \(64 unit devices at 1/8\), not 8\.125; "),
        ({UNIT_CURRENT: -33.0}, r"weight of one must lie within \+-32 \(256 unit devices at 1/8\), not -33; "),
    ):
        with pytest.raises(MappingError, match=f"^network: {text}"):
            size(scale(row(terms=terms), 1e-9), calibration)
