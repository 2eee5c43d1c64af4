"""Centring: the same decisions, each threshold in the middle of its gap."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.behavioral.evaluate import evaluate
from cosim.ir.centre import centre
from cosim.ir.lower import lower
from cosim.ir.nodes import Schmitt, edges_into, nodes_of
from cosim.ir.scale import scale
from cosim.ir.size import size
from cosim.ir.states import software_states
from cosim.network.reference import run_reference
from cosim.network.types import FirstQuadrantLayer

I_UNIT = 0.25e-9  # so that every threshold of a random network lies in the calibrated range


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
    sized = size(scale(centre(lower(network)), I_UNIT), technology, calibration)
    trace = evaluate(sized, calibration, reference.inputs, ideal=True)
    states = software_states(sized, reference)
    assert 0.02 < states.mean() < 0.98
    np.testing.assert_array_equal(np.stack(list(trace.states.values()), axis=2), states)
    for node in nodes_of(sized, Schmitt):
        beta = sum(trace.currents[source] for source, _ in edges_into(sized, node.name, "beta"))
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
    first, second = nodes_of(centre(lower(replace(network, layers=(layer,)))), Schmitt)
    assert (first.rise, first.fall) == (63.5 / 128, 12.5 / 128)  # set at 64/128, reset at 12/128
    assert (second.rise, second.fall) == (32.5 / 64, 6.5 / 64)  # the second row has steps of 1/64


@pytest.mark.parametrize(("levels", "weight"), [(None, 0.25), (16, 0.2512345)])
def test_without_a_lattice_thresholds_stay(make_network, levels, weight):
    network = on_levels(make_network(0, widths=(2,)), levels)
    network.layers[0].weight[:] = weight
    graph = lower(network)
    for node in nodes_of(graph, Schmitt):
        assert centre(graph).nodes[node.name]["node"] == node


def test_a_hysteresis_within_one_gap_stays(make_network):
    network = on_levels(make_network(0, widths=(1,)))
    (layer,) = network.layers
    assert isinstance(layer, FirstQuadrantLayer)
    layer = replace(layer, weight=np.full((1, 3), 0.25), beta_lo=np.array([0.1875 + 0.002]), beta_hi=np.array([0.2]))
    graph = lower(replace(network, layers=(replace(layer, bias=np.zeros(1)),)))
    (node,) = nodes_of(centre(graph), Schmitt)
    assert (node.rise, node.fall) == (0.2, 0.1895)
