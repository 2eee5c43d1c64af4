"""The network that recalls: its state against the dense matrix of the source, error by length, and what noise does.

Figures of the source and of an independent program in numpy; a mean square error may differ from those by a factor of
100, because it is that of how a library rounds tanh.
"""

import numpy as np
import pytest

from cosim.automata.recall import ACTIVATIONS, INITIAL, DelayLineState, RecallNetwork, cast, draw, recall, store


def written(length, width, symbols=3, seed=0, dtype=np.float32, **kind):
    """Network, symbols, h_1 to h_T."""
    rng = np.random.default_rng(seed)
    network = cast(draw(width, symbols, rng, **kind), dtype)
    wanted = rng.integers(0, symbols, length)
    return network, wanted, network.states(wanted)


def recalled(*size, **kind):
    """(fraction of symbols that are right, mean square error of the states)."""
    network, wanted, states = written(*size, **kind)
    symbols, found, _ = recall(network, store(states, network.activation))
    return (symbols == wanted).mean(), ((found.astype(float) - states) ** 2).mean()


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("steps", [3, 7, 19])
def test_in_place_is_the_dense_network(name, steps):
    """Eq. 3.24 to 3.27 with the whole matrix, before and after the line is full."""
    length, width, symbols = 7, 5, 3
    network, wanted, _ = written(steps, width, symbols, dtype=np.float64, activation=name)
    matrix = np.eye(length * width, k=-width)
    matrix[:width, :width] = network.hidden
    line, dense = DelayLineState(network, length), np.zeros(length * width)
    for symbol in wanted:
        dense = matrix @ dense
        dense[:width] += network.inputs[:, symbol] + network.bias
        network.activation.apply(dense)
        line.step(symbol)
    # sums of 5 products in another order, and derivatives of at most 1
    np.testing.assert_allclose(line.blocks().ravel(), dense, rtol=0, atol=steps * 8 * np.finfo(float).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_line_is_stored_at_once(monkeypatch, dtype):
    """Step by step, and block by block in pieces: the same numbers; 1 ulp a shift where a library rounds by length."""
    monkeypatch.setattr("cosim.automata.recall.PIECE", 80)
    network, wanted, states = written(50, 5, dtype=dtype)
    line = DelayLineState(network, 50)
    for symbol in wanted:
        line.step(symbol)
    np.testing.assert_allclose(line.blocks(), store(states, network.activation), rtol=50 * np.finfo(dtype).eps, atol=0)


def test_a_full_line_forgets_the_oldest():
    network, wanted, _ = written(90, 16)
    line = DelayLineState(network, 40)
    for symbol in wanted:
        line.step(symbol)
    np.testing.assert_array_equal(recall(network, line.blocks())[0][1:], wanted[-39:])


@pytest.mark.parametrize("name", ["tanh", "leaky", "elu", "sigmoid", "identity"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_applied_is_undone(name, dtype):
    """tanh at 2 and sigmoid at -4 enlarge a rounding by 14 and 57; the series meets the library where it ends."""
    x = np.concatenate([np.linspace(-2, 2, 401), [1e-30, -0.125, 0.125, -1 / 32, 1 / 32]]).astype(dtype)
    for part in (x, x[np.abs(x) <= 1 / 8], x[np.abs(x) <= 1 / 32]):
        y = part.copy()
        ACTIVATIONS[name].apply(y)
        ACTIVATIONS[name].undo(y)
        np.testing.assert_allclose(y, part, rtol=0, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("edge", [1 / 8, 1 / 32])
@pytest.mark.parametrize("exact", [np.tanh, np.arctanh])
def test_the_series_is_rounded_once(edge, exact):
    """Half an ulp, and the rounding of a correction of at most 1/190 of x: 0.52 ulp; a library's may be off by 4."""
    x = np.linspace(-edge, edge, 20001).astype(np.float32)
    y = x.copy()
    (ACTIVATIONS["tanh"].apply if exact is np.tanh else ACTIVATIONS["tanh"].undo)(y)
    wanted = exact(x.astype(float))
    assert (np.abs(y - wanted) <= 0.53 * np.spacing(np.abs(wanted).astype(np.float32))).all()


@pytest.mark.parametrize(
    ("length", "error"), [(10, 3e-15), (30, 5e-14), (100, 3e-12), (300, 1e-10), (1000, 2e-8), (3000, 5e-8)]
)
@pytest.mark.parametrize("seed", range(3))
def test_error_by_length(length, error, seed):
    accuracy, found = recalled(length, 16, seed=seed)
    assert accuracy == 1
    assert found < 100 * error


@pytest.mark.parametrize(("width", "error"), [(1, 3e-7), (4, 4e-8), (16, 2e-8), (64, 7e-11), (128, 2e-11)])
def test_error_by_width(width, error):
    accuracy, found = recalled(1000, width)
    assert accuracy == 1
    assert found < 100 * error


@pytest.mark.parametrize("symbols", [2, 8, 32, 128])
def test_error_by_symbols(symbols):
    accuracy, found = recalled(1000, 16, symbols)
    assert accuracy == 1
    assert found < 100 * 1e-9


def test_twice_the_digits():
    accuracy, found = recalled(3000, 16, dtype=np.float64)
    assert accuracy == 1
    assert found < 100 * 6e-26


@pytest.mark.parametrize("name", ["relu", "leaky", "elu", "identity"])
def test_other_activations(name):
    assert recalled(1000, 128, activation=name)[0] == 1


@pytest.mark.parametrize("name", INITIAL)
def test_initialisations(name):
    assert recalled(1000, 128, initial=name)[0] == 1
    rng, width = np.random.default_rng(1), 400
    hidden, inputs = (INITIAL[name](rng, (width, columns)) for columns in (width, 3))
    # variance of an entry; 1,200 of them give it within 1 / sqrt(600) = 4 %, five times that is allowed
    variances = {
        "uniform": (1 / 1200, 1 / 1200), "normal": (1 / 400, 1 / 400), "xavier": (2 / 800, 2 / 403),
        "kaiming": (2 / 400, 2 / 3), "orthogonal": (1 / 400, 1 / 400),
    }  # fmt: skip
    for found, wanted in zip((hidden, inputs), variances[name], strict=True):
        assert abs(found.var() / wanted - 1) < 0.2
    if name == "orthogonal":
        np.testing.assert_allclose(inputs.T @ inputs, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sigmoid_forgets(dtype):
    """It contracts by 0.22 a shift: 24 bits are lost behind 11, 53 behind 25; of what is older a third is right."""
    network, wanted, states = written(1000, 128, dtype=dtype, activation="sigmoid")
    symbols, _, _ = recall(network, store(states, network.activation))
    right = (symbols == wanted)[::-1]
    kept = 11 if dtype == np.float32 else 25
    assert right[: kept - 3].all() and not right[: kept + 8].all()
    assert right.mean() < 0.8


def noisy(name, noise, seed):
    """Fraction of right symbols and age of the youngest wrong one, L = 1000, D = 32."""
    network, wanted, _ = written(1000, 32, seed=seed, dtype=np.float64, activation=name)
    line = DelayLineState(network, 1000, noise, np.random.default_rng(seed))
    for symbol in wanted:
        line.step(symbol)
    right = (recall(network, line.blocks())[0] == wanted)[::-1]
    return right.mean(), 1000 if right.all() else right.argmin()


def test_noise_takes_the_oldest_symbols_of_a_tanh_line_first():
    """tanh^m brings numbers together, and noise is larger than what is between them; a linear line keeps them apart."""
    tanh, linear = ([noisy(name, noise, 0) for noise in (1e-6, 1e-5, 1e-3, 1e-2)] for name in ("tanh", "identity"))
    assert tanh[0] == (1, 1000) and linear[:3] == [(1, 1000)] * 3
    accuracy, age = zip(*tanh, strict=True)
    assert list(age) == sorted(age, reverse=True) and age[2] < 200 and age[3] < 60
    assert accuracy[3] < 0.7 < 0.8 < linear[3][0] < 1
    assert linear[3][1] > 2 * age[3]


def test_noise_is_added_at_every_shift():
    """m times to block m of a linear line; 500 numbers give a variance within 6 %, five times that is allowed."""
    rng = np.random.default_rng(3)
    zeros = np.zeros((500, 500)), np.zeros((500, 2)), np.zeros(500)
    line = DelayLineState(RecallNetwork(*zeros, ACTIVATIONS["identity"]), 12, 0.1, rng)
    for _ in range(30):
        line.step(0)
    np.testing.assert_allclose(line.blocks().var(axis=1), 0.01 * np.arange(12), rtol=0.3)
