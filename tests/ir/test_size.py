"""Sizing: integer counts, what is refused or cut, bias currents, the pedestal."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.errors import MappingError
from cosim.ir.lower import lower
from cosim.ir.nodes import PEDESTAL, UNIT_CURRENT, InputCurrent, Output, Rectifier, Schmitt, edges_into, nodes_of
from cosim.ir.scale import scale
from cosim.ir.size import MAX_BIAS_COUNT, MAX_COUNT, MAX_RISE, MIN_FALL, MIN_WIDTH, PEDESTAL_UNITS, size


def changed(network, **arrays):
    """The network with arrays of layer0 replaced."""
    return replace(network, layers=(replace(network.layers[0], **arrays), *network.layers[1:]))


@pytest.fixture
def network(make_network):
    return make_network(3)


@pytest.fixture
def sized(technology, calibration):
    def build(network, i_unit=1e-9, **options):
        return size(scale(lower(network), i_unit), technology, calibration, origin="model.pt", **options)

    return build


def test_counts_are_rounded_and_realised(network, sized, calibration):
    rng = np.random.default_rng(7)
    weight = rng.normal(size=network.layers[0].weight.shape)
    graph = sized(changed(network, weight=weight))
    for i, j in np.ndindex(*weight.shape):
        mirror = graph.edges[f"in.{j}", f"layer0.{i}"]["mirror"]
        assert mirror.count == round(8 * weight[i, j])
        assert mirror.realised == mirror.count / calibration.units
        assert abs(mirror.realised - weight[i, j]) <= 0.5 / calibration.units


def test_large_weight_is_refused(network, sized):
    weight = network.layers[0].weight.copy()
    weight[3, 1] = -8.5
    text = (
        rf"model\.pt: layer0\.weight\[3,1\] must lie within \+-8 \({MAX_COUNT} unit devices at 1/8\), not -8\.5; "
        "clip it in training, or compile with --saturate"
    )
    with pytest.raises(MappingError, match=text):
        sized(changed(network, weight=weight))


def test_large_weight_is_cut_on_demand(network, sized):
    weight = network.layers[0].weight.copy()
    weight[3, 1] = -8.5
    graph = sized(changed(network, weight=weight), saturate=True)
    assert graph.edges["in.1", "layer0.3"]["mirror"].count == -MAX_COUNT


def test_largest_weight_and_bias_pass(network, sized, calibration):
    weight, bias = network.layers[0].weight.copy(), network.layers[0].bias.copy()
    weight[3, 1], bias[2] = MAX_COUNT / calibration.units, MAX_BIAS_COUNT / calibration.units
    graph = sized(changed(network, weight=weight, bias=bias))
    assert graph.edges["in.1", "layer0.3"]["mirror"].count == MAX_COUNT
    assert graph.edges[UNIT_CURRENT, "layer0.2"]["mirror"].count == MAX_BIAS_COUNT
    bias[2] += 0.5
    with pytest.raises(MappingError, match=r"layer0\.bias\[2\] must lie within"):
        sized(changed(network, bias=bias))


def test_narrow_hysteresis_is_refused(network, sized):
    high = network.layers[0].beta_lo + 0.3
    high[4] = network.layers[0].beta_lo[4] + 0.9 * MIN_WIDTH / 1e-9
    text = r"model\.pt: layer0\.4: hysteresis width must be at least 12 pA, not 10\.8 pA; raise the minimum width"
    with pytest.raises(MappingError, match=text):
        sized(changed(network, beta_hi=high))


def test_low_threshold_is_refused(network, sized):
    low = network.layers[0].beta_lo.copy()
    low[1] = 0.9 * MIN_FALL / 1e-9
    with pytest.raises(
        MappingError, match=r"layer0\.1: lower threshold must be at least 10 pA, not 9 pA; raise beta_lo"
    ):
        sized(changed(network, beta_lo=low))


def test_high_threshold_is_refused(network, sized):
    high = network.layers[0].beta_hi.copy()
    high[1] = 1.25 * MAX_RISE / 1e-9
    limit = 1e9 * MAX_RISE
    text = rf"layer0\.1: upper threshold must be at most {limit:g} nA, not {1.25 * limit:g} nA; use a smaller"
    with pytest.raises(MappingError, match=text):
        sized(changed(network, beta_hi=high))


@pytest.mark.parametrize(
    ("level", "repair"),
    [(-1.0, "flip the sign"), (0.0, "flip the sign"), (1.25e9 * MAX_RISE, "use a smaller --i-unit")],
)
def test_impossible_levels_are_refused(network, sized, level, repair):
    alpha = network.layers[0].alpha.copy()
    alpha[2] = level
    text = rf"layer0\.2: state level must be positive and at most {MAX_RISE * 1e9:g} nA, not {level:g} nA; {repair}"
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
    for node in nodes_of(graph, Rectifier, Schmitt, Output):
        riding = [
            graph.edges[source, node.name]["mirror"].count
            for source, _ in edges_into(graph, node.name)
            if isinstance(graph.nodes[source]["node"], InputCurrent | Schmitt)
        ]
        assert graph.edges[PEDESTAL, node.name]["mirror"].count == -sum(riding)
    assert any(graph.edges[edge]["mirror"].count for edge in graph.out_edges(PEDESTAL))
    assert graph.graph["i_pedestal"] == PEDESTAL_UNITS * 1e-9


def test_no_pedestal_on_demand(network, sized):
    graph = sized(network, pedestal=0.0)
    assert PEDESTAL not in graph
    assert graph.graph["i_pedestal"] == 0


def test_gain_bias_gives_the_level(network, sized, calibration):
    graph = sized(network)
    for node in nodes_of(graph, Schmitt):
        level = float(calibration.schmitt.i_high(np.float64(graph.nodes[node.name]["bias"].i_gain)))
        assert level == pytest.approx(node.level * 1e-9, rel=1e-9, abs=0)  # the fixed point converges to float64


def test_thresholds_of_the_biases_are_those_asked_for(network, sized, calibration):
    """Forward through the fit. The candidate path has a gain within 1 % and up to 0.1 V of node swing at 2.5 %/V."""
    graph = sized(network)
    for node in nodes_of(graph, Schmitt):
        bias = graph.nodes[node.name]["bias"]
        fit, pair = calibration.schmitt, (np.float64(bias.i_thresh), np.float64(bias.i_width))
        traffic = sum(abs(weight.target) for _, weight in edges_into(graph, node.name)) * 1e-9
        bound = 0.01 * node.rise * 1e-9 + 0.1 * 0.025 * traffic
        assert float(fit.set_in_frame(fit.i_rise(*pair))) == pytest.approx(node.rise * 1e-9, abs=bound)
        assert float(fit.reset_in_frame(fit.i_fall(*pair))) == pytest.approx(node.fall * 1e-9, abs=bound)


def test_stages_leave_the_earlier_graph_alone(network, sized):
    lowered = lower(network)
    scaled = scale(lowered, 1e-9)
    assert "i_unit" not in lowered.graph
    assert "currents" not in lowered.nodes["layer0.0"]
    assert scaled.nodes["layer0.0"]["currents"].i_rise == lowered.nodes["layer0.0"]["node"].rise * 1e-9


@pytest.mark.parametrize(
    ("i_unit", "text"),
    [
        (20e-12, r"--i-unit must be at least 4e-11 A on generic180, not 2e-11 A: a signal of 0 carries 0.05 of it"),
        (1e-6, r"--i-unit must be at most 9.52e-08 A on generic180, not 1e-06 A: mirrors keep their gain up to 100 nA"),
    ],
)
def test_signals_must_stay_where_mirrors_keep_their_gain(network, sized, i_unit, text):
    with pytest.raises(MappingError, match=text):
        sized(network, i_unit=i_unit)
