"""One-bit units in training: forward the unit itself, and a task that they learn."""

import numpy as np
import pytest
import torch

from cosim.automata.lines import run_steered
from cosim.automata.train_bits import BitShape, SteeredBits, chosen_lags, generate_chosen_lag, train_bits


@pytest.mark.parametrize("seed", range(5))
def test_forward_is_the_unit(seed):
    """Sums of halves: exact."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = SteeredBits(BitShape(3, 4, 5))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(2 * torch.randn(parameter.shape))
    x = np.random.default_rng(seed).integers(0, 2, (6, 40, 3)).astype(np.float32)
    with torch.no_grad():
        scores = model(torch.from_numpy(x)).double().numpy()
    np.testing.assert_array_equal(scores, run_steered(model.exported(), x.astype(float)).scores)


def test_every_weight_has_a_gradient():
    """Through steps, the winner and the line."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = SteeredBits(BitShape(3, 2, 4))
    x, y = map(torch.from_numpy, generate_chosen_lag(16, (1, 3), seed=0))
    torch.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_the_same_seed_trains_the_same():
    a, b = (train_bits(chosen_lags((1, 2)), BitShape(3, 2, 2), 5, most=4) for _ in range(2))
    assert a[1:] == b[1:]
    np.testing.assert_array_equal(a[0].gate_weight, b[0].gate_weight)


def test_a_lag_of_an_and():
    """y is 1 where a bit meets the one of its lag, by hand."""
    x, y = generate_chosen_lag(1, (1, 2), steps=6, seed=3)
    bits, told = x[0, :, 0], x[0, :, 1:]
    lag, sent, expected = 0, set(), []
    for t in range(6):
        lag = 1 + int(told[t].argmax()) if told[t].any() else lag
        expected.append(int(bits[t] and t in sent))
        sent |= {t + lag} if bits[t] else set()
    np.testing.assert_array_equal(y[0], expected)


@pytest.mark.slow
def test_it_learns_to_be_told_its_lag():
    """Without an error, with the seed that bench_dmu.py shows; where y is the more frequent 0, 78 % are right."""
    _, accuracy, _ = train_bits(chosen_lags((1, 3)), BitShape(3, 1, 4), seed=1)
    assert accuracy == 1.0
