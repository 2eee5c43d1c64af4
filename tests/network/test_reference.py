"""The reference by hand: encodings, ties, every epsilon, poolings. Numbers are exact in binary: equality is meant."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.network.layers import FirstQuadrantLayer, ReluLayer, SignedLayer
from cosim.network.reference import encode_inputs, pool_readout, run_reference
from cosim.network.types import InputEncoding, Network, Readout

ENCODING = InputEncoding(np.array([-2.0, 1.0]), np.array([4.0, 0.5]))


def network_of(*layers, encoding=ENCODING, pooling="last"):
    """The readout passes the last layer's first unit on, times 3, plus 0.25; a second output is the constant 0.5."""
    weight = np.zeros((2, layers[-1].width))
    weight[0, 0] = 3.0
    readout = Readout((layers[-1].name,), weight, np.array([0.25, 0.5]), pooling)
    return Network(encoding, layers, readout, "made up", ("a", "b"))


def states_of(layer, *columns):
    """What a layer of one unit gives for inputs in units, one column a feature."""
    encoding = InputEncoding(np.zeros(len(columns)), np.ones(len(columns)))
    trace = run_reference(network_of(layer, encoding=encoding), np.array(columns, dtype=float).T[None])
    return trace.signals[layer.name][0, :, 0].tolist()


def first(epsilon=0.0, weight=1.0, bias=0.0):
    unit = np.array([[weight, 0.0]]), np.array([bias]), np.array([0.25]), np.array([0.5]), np.array([2.0])
    return FirstQuadrantLayer("layer0", ("input",), *unit, epsilon=epsilon)


def signed(epsilon=0.0, beta=0.25, **fields):
    unit = np.array([[1.0, 0.0]]), np.array([-0.5]), np.array([beta]), np.array([1.5])
    return SignedLayer("layer0", ("input",), *unit, epsilon=epsilon, **fields)


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [
        (0.0, [0, 2, 2, 2, 0, 0]),  # q is 1 or -1, and h = alpha (1 + q) / 2
        (1.0, [-1, 0, 0, 1, 0, 0]),  # S alpha / 2 is added to h
        (-1.0, [1, 2, 2, 1, 0, 0]),  # q becomes S - q: from -1 to 0, 1, 1, 0, -1, -1
        (0.5, [-0.5, 1.25, 1.25, 2.125, 0.5625, 0.5625]),
    ],
)
def test_a_candidate_on_a_threshold_updates_a_first_quadrant_unit(epsilon, expected):
    """On beta_lo 0.25 it resets, on beta_hi 0.5 it sets, between them it keeps."""
    assert states_of(first(epsilon), [0.25, 0.5, 0.375, 1.0, 0.0, 0.4375], [0.0] * 6) == expected


def test_a_candidate_is_rectified():
    """W x + b, and max(., 0): -0.25 + 0.75, 0.75 - 0.5, 0.75 - 1."""
    trace = run_reference(
        network_of(first(weight=-1.0, bias=0.75)), np.array([[[-1.0, 9], [0.0, 9], [2.0, 9]]])[:, :, :]
    )
    assert trace.candidates["layer0"][0, :, 0].tolist() == [0.5, 0.25, 0.0]
    assert trace.signals["layer0"][0, :, 0].tolist() == [2.0, 0.0, 0.0]
    assert trace.readout[0].tolist() == [[6.25, 0.5], [0.25, 0.5], [0.25, 0.5]]
    assert trace.decisions.tolist() == [1] and trace.scores.tolist() == [[0.25, 0.5]] and trace.lengths.tolist() == [3]


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [
        (0.0, [1.5, 1.5, -1.5, -1.5, 1.5]),
        (1.0, [0.0, 0.0, -1.5, -1.5, 0.0]),  # from -1.5
        (-1.0, [3.0, 3.0, -4.5, -4.5, 6.0]),
        (0.5, [0.75, 0.75, -1.125, -1.125, 0.9375]),
    ],
)
def test_a_candidate_on_a_threshold_updates_a_signed_unit(epsilon, expected):
    """h_hat = x - 0.5 is 0.25, 0.125, -0.25, -0.125, 0.5, and beta 0.25."""
    drive = [0.75, 0.625, 0.25, 0.375, 1.0]
    assert states_of(signed(epsilon), drive, [0.0] * 5) == expected
    assert states_of(signed(epsilon, beta=-0.25), drive, [0.0] * 5) == expected  # beta is |b_beta|


def test_a_candidate_of_0_sets_where_beta_is_0():
    assert states_of(signed(beta=0.0), [0.5, 0.25, 0.5], [0.0] * 3) == [1.5, -1.5, 1.5]


def test_threshold_and_level_by_input():
    """beta = |x_1 / 2 - 0.25| is 0.25, 0, 0.25; a = x_1 / 4 + 1.5 is 1.5, 1.625, 1.75; the start is -b_alpha."""
    layer = signed(beta=-0.25, weight_beta=np.array([[0.0, 0.5]]), weight_alpha=np.array([[0.0, 0.25]]))
    assert states_of(layer, [0.625, 0.5, 0.25], [0.0, 0.5, 1.0]) == [-1.5, 1.625, -1.75]
    encoding = InputEncoding(np.zeros(2), np.ones(2))
    trace = run_reference(network_of(layer, encoding=encoding), np.array([[[0.625, 0.0], [0.5, 0.5], [0.25, 1.0]]]))
    window = trace.layers["layer0"].window
    assert window is not None and window[1][0, :, 0].tolist() == [0.25, 0.0, 0.25]
    assert trace.candidates["layer0"][0, :, 0].tolist() == [0.125, 0.0, -0.25]


def test_layers_read_their_sources_side_by_side():
    """A ReLU of both inputs, then a unit on (input, ReLU); x is encoded to (0.25, 0.5) and (0.75, 1)."""
    relu = ReluLayer("hidden", ("input",), np.array([[1.0, -1.0], [2.0, 1.0]]), np.array([0.5, -0.25]))
    unit = np.array([[1.0, 0.5, 2.0, 0.25]]), np.array([0.125]), np.array([2.0]), np.array([2.75]), np.array([1.0])
    layer = FirstQuadrantLayer("layer0", ("input", "hidden"), *unit)
    trace = run_reference(network_of(relu, layer), np.array([[[-1.0, 1.25], [1.0, 1.5]]]))
    assert trace.inputs.units.tolist() == [[[0.25, 0.5], [0.75, 1.0]]]
    assert trace.signals["hidden"].tolist() == [[[0.25, 0.75], [0.25, 2.25]]]
    assert trace.candidates["layer0"][0, :, 0].tolist() == [
        0.25 + 0.25 + 0.5 + 0.1875 + 0.125,
        0.75 + 0.5 + 0.5 + 0.5625 + 0.125,
    ]


def test_inputs_are_clipped_ramped_and_rounded():
    """(x - offset) / scale in [0, 1]; the ramp min((t + 1) / 3, 1) is one more input; all in steps of 1/4."""
    x = np.array([[[-3.0, 1.0], [1.0, 1.25], [3.0, 2.0], [-1.0, 1.375]]])
    plain = [[0.0, 0.0], [0.75, 0.5], [1.0, 1.0], [0.25, 0.75]]
    assert encode_inputs(ENCODING, x).units[0].tolist() == plain
    ramped = encode_inputs(replace(ENCODING, ramp_steps=3), np.concatenate([x, x])).units
    assert ramped.shape == (2, 4, 3) and (ramped[0] == ramped[1]).all()
    assert ramped[0, :, :2].tolist() == plain and ramped[0, :, 2].tolist() == [1 / 3, 2 / 3, 1.0, 1.0]
    coarse = encode_inputs(replace(ENCODING, ramp_steps=3, levels=4), x + 0.05).units[0]
    assert coarse.tolist() == [[0, 0, 0.25], [0.75, 0.5, 0.75], [1, 1, 1], [0.25, 0.75, 1]]
    assert encode_inputs(ENCODING, x).scaled(0.5).units.tolist() == (0.5 * np.array([plain])).tolist()


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("last", [[5.0, 7.0], [-1.0, 1.0]]),
        ("mean", [[3.0, 11 / 3], [0.5, 1.75]]),
        ("vote", [[1 / 3, 2 / 3], [0.0, 1.0]]),
    ],
)
def test_scores_pool_the_valid_steps(pooling, expected):
    """Lengths 3 and 2 of 4: what follows is padding, however large."""
    readout = np.array(
        [[[3.0, 1.0], [1.0, 3.0], [5.0, 7.0], [99.0, 0.0]], [[2.0, 2.5], [-1.0, 1.0], [99.0, 0.0], [99.0, 0.0]]]
    )
    found = pool_readout(readout, np.array([3, 2]), pooling)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert pool_readout(readout[:, :2], np.array([2, 2]), "last").tolist() == [[1.0, 3.0], [-1.0, 1.0]]


def test_lengths_are_those_of_x_unless_given():
    x = np.array([[[0.0, 1.0], [2.0, 1.0], [-2.0, 1.0]]])
    network = network_of(first(), pooling="mean")
    assert run_reference(network, x).scores[0, 0] == pytest.approx(0.25 + 3 * 4.0 / 3)
    assert run_reference(network, x, np.array([1])).scores[0, 0] == 6.25


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (
            np.zeros((2, 3)),
            r"data: x must have shape \(samples, time, 2\) for this network, not \(2, 3\); use the data",
        ),
        (np.zeros((2, 3, 3)), r"must have shape \(samples, time, 2\) for this network, not \(2, 3, 3\)"),
        (np.array([[[1.0, np.nan], [np.inf, 0.0]]]), "data: x holds 2 values that are not finite; remove them"),
    ],
)
def test_inputs_of_another_shape_are_refused(x, text):
    with pytest.raises(InputError, match=text):
        run_reference(network_of(first()), x)
