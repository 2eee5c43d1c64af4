"""Centring: the same decisions, each threshold in the middle of its gap."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.compiler.centre import centre
from cosim.compiler.lower import lower
from cosim.compiler.size import scale, size
from cosim.engines.behavioral.evaluate import evaluate
from cosim.network.ir.graph import GraphBuilder
from cosim.network.ir.nodes import UNIT_CURRENT, InputCurrent, Rectifier, UnitCurrent, Weight
from cosim.network.ir.states import software_states
from cosim.network.layers import FirstQuadrantLayer
from cosim.network.reference import run_reference
from cosim.units.ladder import Ladder
from cosim.units.schmitt import Schmitt
from cosim.units.toggle import Toggle

I_UNIT = 0.25e-9  # so that every threshold of a random network lies in the calibrated range


def centred(node, *terms, beta=(), kind=Schmitt, **thresholds):
    """(rise, fall) of the one memory of a graph after centring. terms, beta: (source node, weight)."""
    graph = GraphBuilder()
    for source, _ in (*terms, *beta):
        graph.add(source)
    fields = {"rise": 0.5, "fall": 0.25, "level": 1.0, "zero": 0.0, "step": 1.0} | thresholds
    graph.add(kind(node, "layer0", 0, 0, **fields))
    for role, edges in (("drive", terms), ("beta", beta)):
        for source, target in edges:
            graph.connect(source.name, node, Weight(target, "", role))
    found = centre(graph.lowered()).nodes[node]
    return found.rise, found.fall


def on_levels(network, levels=16):
    """The network with inputs in steps of 1/levels."""
    return replace(network, encoding=replace(network.encoding, levels=levels))


@pytest.mark.parametrize("kind", ["first", "signed", "signed_input"])
@pytest.mark.parametrize("seed", range(5))
def test_centred_graph_decides_like_the_software_and_stands_half_a_step_away(
    make_network, technology, calibration, kind, seed
):
    """Weights on 1/4, levels and biases on 1/8 and inputs on 1/16: a candidate is a multiple of 1/64.

    With an input-dependent beta candidates lie exactly on a threshold, which only a centred graph decides safely.
    """
    network = on_levels(make_network(seed, kind))
    reference = run_reference(network, np.random.default_rng(seed).uniform(0, 1, (40, 11, 3)))
    sized = size(scale(centre(lower(network)), I_UNIT), calibration)
    trace = evaluate(sized, calibration, reference.inputs, ideal=True)
    states = software_states(sized, reference)
    assert 0.02 < states.mean() < 0.98
    np.testing.assert_array_equal(np.stack(list(trace.states.values()), axis=2), states)
    for node in sized.of(Schmitt):
        beta = sum(trace.currents[source] for source, _ in sized.into(node.name, "beta"))
        drive = trace.candidates[node.name]
        for threshold in (node.rise * I_UNIT + beta, node.fall * I_UNIT - beta):
            assert np.abs(drive - threshold).min() / I_UNIT > 1 / 128 - 1e-9


def test_a_threshold_moves_to_the_middle_of_its_gap(make_network):
    """Only zero and eighths as weights: with inputs on 1/16 a candidate is a multiple of 1/128."""
    network = on_levels(make_network(0, widths=(2,)))
    (layer,) = network.layers
    layer = replace(
        layer,
        weight=np.array([[0.125, 0.25, 0.0], [0.5, 0.25, 0.0]]),
        bias=np.zeros(2),
        beta_lo=np.array([0.101, 13.0 / 128]),
        beta_hi=np.array([0.5, 0.5001]),
    )
    first, second = centre(lower(replace(network, layers=(layer,)))).of(Schmitt)
    assert (first.rise, first.fall) == (63.5 / 128, 12.5 / 128)  # set at 64/128, reset at 12/128
    assert (second.rise, second.fall) == (32.5 / 64, 6.5 / 64)  # the second row has steps of 1/64


@pytest.mark.parametrize(("levels", "weight"), [(None, 0.25), (16, 0.2512345)])
def test_without_a_lattice_thresholds_stay(make_network, levels, weight):
    network = on_levels(make_network(0, widths=(2,)), levels)
    network.layers[0].weight[:] = weight
    graph = lower(network)
    for node in graph.of(Schmitt):
        assert centre(graph).nodes[node.name] == node


def test_a_hysteresis_within_one_gap_stays(make_network):
    network = on_levels(make_network(0, widths=(1,)))
    (layer,) = network.layers
    assert isinstance(layer, FirstQuadrantLayer)
    layer = replace(layer, weight=np.full((1, 3), 0.25), beta_lo=np.array([0.1875 + 0.002]), beta_hi=np.array([0.2]))
    graph = lower(replace(network, layers=(replace(layer, bias=np.zeros(1)),)))
    (node,) = centre(graph).of(Schmitt)
    assert (node.rise, node.fall) == (0.2, 0.1895)


@pytest.mark.parametrize(
    ("terms", "step"),
    [
        ([(InputCurrent("in.0", 0, 1 / 4), 3 / 8)], 3 / 32),
        ([(InputCurrent("in.0", 0, 1 / 4), -3 / 8)], 3 / 32),
        ([(InputCurrent("in.0", 0, 1 / 4), 1.0), (InputCurrent("in.1", 1, 1 / 6), 1.0)], 1 / 12),
        ([(InputCurrent("in.0", 0, 1 / 4), -1.0), (InputCurrent("in.1", 1, 1 / 6), 5 / 7)], 1 / 84),
        ([(InputCurrent("in.0", 0, 1 / 4), 1 / 2), (UnitCurrent(), 3 / 16)], 1 / 16),
        ([(InputCurrent("in.0", 0, 1 / 4), 1 / 2), (UnitCurrent(), 0.0), (InputCurrent("in.1", 1), 0.0)], 1 / 8),
        ([(Schmitt("layer9.0", "layer9", 0, 0, 1.5, 0.0, 1.5, 0.5, 0.25), 5 / 64)], 15 / 128),
        ([(Ladder("layer9.0", "layer9", 0, 0, 0.5, 0.0, 1.0, 0.5, 0.25, rungs=4), 5 / 32)], 5 / 64),
        ([(InputCurrent("in.0", 0, 1 / 128), 1 / 128)], 2**-14),
    ],
)
def test_candidates_are_multiples_of_the_terms_greatest_common_divisor(terms, step):
    """Rise 0.5 and fall 0.25 stand in the middle of the gaps above and below which a multiple of the step decides."""
    rise, fall = centred("layer0.0", *terms)
    assert rise == pytest.approx((np.ceil(0.5 / step - 1e-9) - 0.5) * step, rel=1e-12)
    assert fall == pytest.approx((np.floor(0.25 / step + 1e-9) + 0.5) * step, rel=1e-12)


@pytest.mark.parametrize(
    "terms",
    [
        [],
        [(InputCurrent("in.0", 0, 1 / 4), 0.0), (UnitCurrent(), 0.0)],
        [(InputCurrent("in.0", 0), 1.0)],
        [(InputCurrent("in.0", 0, 1 / 4), 1.0), (InputCurrent("in.1", 1), 1.0)],
        [(InputCurrent("in.0", 0, 1 / 128), 1 / 129)],
        [(UnitCurrent(), 1 / (2**14 + 1))],
    ],
)
def test_what_has_no_lattice_stays(terms):
    assert centred("layer0.0", *terms) == (0.5, 0.25)


@pytest.mark.parametrize("k", range(1, 21))
def test_rounding_of_a_threshold_that_is_a_candidate_moves_no_decision(k):
    """0.3 / 0.1 is 2.9999999999999996 and 1.1 / 0.1 is 11.000000000000002; 3 and 11 steps are meant."""
    source = InputCurrent("in.0", 0, 0.1)
    rise, fall = centred("layer0.0", (source, 1.0), rise=k * 0.1, fall=k * 0.1 - 1)
    assert rise == pytest.approx((k - 0.5) * 0.1, rel=1e-12)
    assert fall == pytest.approx((k - 9.5) * 0.1, rel=1e-12)
    rise, fall = centred("layer0.0", (source, 1.0), rise=k * 0.1 + 1, fall=k * 0.1)
    assert (rise, fall) == pytest.approx(((k + 9.5) * 0.1, (k + 0.5) * 0.1), rel=1e-12)


@pytest.mark.parametrize(("error", "exact"), [(0.9e-9, True), (1.1e-9, False)])
@pytest.mark.parametrize("weight", [0.25, -0.25])
def test_a_float_is_the_fraction_within_a_billionth(error, exact, weight):
    source = InputCurrent("in.0", 0, 1.0)
    for off in (-error, error):
        assert (centred("layer0.0", (source, weight * (1 + off)), rise=0.6) == (0.6, 0.25)) is not exact
    # thresholds: relative to themselves, beyond one step, and to the step below that
    rise, _ = centred("layer0.0", (source, 0.25), rise=25 * (1 + error))
    assert rise == (24.875 if exact else 25.125)
    _, fall = centred("layer0.0", (source, 0.25), rise=30.0, fall=25 * (1 - error))
    assert fall == (25.125 if exact else 24.875)
    _, fall = centred("layer0.0", (source, 0.25), fall=-25 * (1 + error))
    assert fall == (-24.875 if exact else -25.125)
    rise, _ = centred("layer0.0", (source, 0.25), rise=0.25 * error, fall=-1.0)
    assert rise == (-0.125 if exact else 0.125)


def test_a_rectifier_passes_its_lattice_on():
    graph = GraphBuilder()
    graph.add(InputCurrent("in.0", 0, 1 / 2))
    graph.add(UnitCurrent())
    graph.add(Rectifier("hidden.0", "hidden", 0))
    graph.add(Schmitt("layer0.0", "layer0", 0, 0, 1.0, 0.0, 1.0, 0.5, 0.25))
    graph.connect("in.0", "hidden.0", Weight(3.0, ""))
    graph.connect(UNIT_CURRENT, "hidden.0", Weight(0.3, ""))
    graph.connect("hidden.0", "layer0.0", Weight(1 / 3, ""))
    (node,) = centre(graph.lowered()).of(Schmitt)
    assert (node.rise, node.fall) == pytest.approx((0.45, 0.25))  # steps of 0.3 / 3: set at 0.5, reset at 0.2


@pytest.mark.parametrize(
    ("kind", "fall", "expected"),
    [
        (Ladder, 0.05, (0.375, 0.125)),
        (Ladder, 0.3, (0.3125, 0.3)),
        (Toggle, 0.0, (0.375, 0.125)),
        (Toggle, 0.3, (0.375, 0.375)),
    ],
)
def test_a_toggle_has_no_hysteresis_to_lose(kind, fall, expected):
    """Steps of 1/4. Rise and fall in one gap are a comparator and stay; a toggle does not use its fall."""
    assert centred("layer0.0", (InputCurrent("in.0", 0, 1 / 4), 1.0), kind=kind, rise=0.3125, fall=fall) == expected


def test_thresholds_that_move_are_centred_within_one_gap_too():
    """With an input-dependent beta rise = fall = offset: set at u - beta >= offset, reset at u + beta <= offset."""
    source = InputCurrent("in.0", 0, 1 / 4)
    part = Rectifier("layer0.0.beta_pos", "layer0", 0)
    found = centred("layer0.0", (source, 1.0), beta=[(part, 0.0)], rise=0.5, fall=0.5)
    assert found == (0.375, 0.625)
    found = centred("layer0.0", (source, 1.0), beta=[(InputCurrent("in.1", 1, 1 / 6), 1.0)], rise=0.5, fall=0.5)
    assert found == pytest.approx((5.5 / 12, 6.5 / 12))
