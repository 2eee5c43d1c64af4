"""Training that counts in sigma and decides with noise: torch says what numpy says, bytes repeat, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import InputError  # noqa: E402
from cosim.engines.behavioral.sigma import devices_of  # noqa: E402
from cosim.network.types import InputEncoding  # noqa: E402
from cosim.tasks.task import Task, full_lengths  # noqa: E402
from cosim.technology.catalog import load_technology  # noqa: E402
from cosim.training.backbone import HardwareNetwork  # noqa: E402
from cosim.training.config import Architecture, TrainingConfig, check_config, describe_config  # noqa: E402
from cosim.training.trainer import train  # noqa: E402
from cosim.variation.sigma import WeightedRows, candidate_variance, threshold_variance  # noqa: E402
from cosim.verbs.calibrate.noise import find_noise  # noqa: E402

GENERIC = load_technology("generic180")
SPREAD = devices_of(GENERIC, find_noise(GENERIC), 8, chips=True)
CONFIG = TrainingConfig(
    Architecture(cells=5, layers=2), iterations=40, batch=17, seed=3, margin_sigma=3.0, device_noise=True, spread=SPREAD
)


def make_task(n=120):
    """Three classes: which of three inputs is high at the first of seven steps."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 0.3, (n, 7, 3)).astype(np.float32)
    y = rng.integers(0, 3, n)
    x[np.arange(n), 0, y] = 1.0
    half = n - 30
    parts = x[:half], y[:half], x[half:], y[half:], full_lengths(x[:half]), full_lengths(x[half:])
    return Task("which", *parts, ("a", "b", "c"), np.zeros(3), np.ones(3))


def backbone_of(architecture):
    torch.manual_seed(5)
    return HardwareNetwork(architecture, InputEncoding(np.zeros(3), np.ones(3)), 2)


def test_torch_says_what_numpy_says():
    """Distances over their sigma, of the second layer, from its weights and what it reads, in float64 and numpy."""
    backbone = backbone_of(Architecture(cells=4))
    backbone.set_devices(SPREAD, None)
    x = torch.rand(6, 9, 3)
    with torch.no_grad():
        found = backbone(x)
    layer = backbone.to_network().recurrent_layers[1]
    read = np.concatenate([backbone.encode(x).numpy(), found.signals["layer1"].numpy()], axis=2).astype(np.float64)
    one = np.pad(read, ((0, 0), (0, 0), (0, 1)), constant_values=1.0)
    states = np.r_[np.zeros(3), np.ones(4), 0.0]
    row = WeightedRows(np.c_[layer.weight, layer.bias], one, one * states)
    u = one @ row.weight.T
    variance = candidate_variance(row, np.maximum(u, 0.0), SPREAD)
    before = np.concatenate([np.zeros((6, 1, 4)), found.signals["layer2"].numpy()[:, :-1]], axis=1) > 0.5
    edge = np.where(before, layer.beta_lo, layer.beta_hi)
    width = np.where(before, layer.beta_hi - layer.beta_lo, 0.0)
    sigma = np.sqrt(variance + threshold_variance(layer.beta_hi, width, SPREAD))
    np.testing.assert_allclose(found.sigmas["layer2"].numpy(), np.abs(u - edge) / sigma, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("unit", ["first-quadrant", "signed"])
def test_gradients_pass_through_sigma(unit):
    """While states lie outside of 0 and 1, too, as they do while epsilon falls."""
    backbone = backbone_of(Architecture(cells=4, unit=unit))
    backbone.set_devices(SPREAD, SPREAD)
    backbone.set_epsilon(0.7)
    found = backbone(3 * torch.rand(6, 40, 3), rng=torch.Generator().manual_seed(1))
    sum(torch.relu(3 - one).mean() for one in found.sigmas.values()).backward()
    for name, value in backbone.named_parameters():
        assert value.grad is None or bool(torch.isfinite(value.grad).all()), name


def test_noise_moves_decisions_by_its_sigma():
    """Candidates with noise against those without: 4,000 numbers, whose variance has a standard error of 2.2 %."""
    backbone = backbone_of(Architecture(cells=20))
    backbone.set_devices(None, SPREAD)
    cell, x = backbone.cells["layer1"], torch.rand(20, 10, 3)
    row = cell.devices.row(x, cell.linear)
    u = cell.linear(x)
    noisy = cell.devices.with_noise(row, u, torch.Generator().manual_seed(2))
    variance = candidate_variance(row, torch.relu(u), replace(SPREAD, left=None, mismatch=None))
    normal = ((noisy - u) / variance.sqrt())[u > 0.05]
    assert normal.var().item() == pytest.approx(1.0, abs=0.15)
    assert torch.equal(cell.devices.with_noise(row, u, None), u)


def test_a_training_repeats_and_says_what_it_counted_by(tmp_path: Path):
    first, again, other = (tmp_path / f"{name}.npz" for name in ("first", "again", "other"))
    settings = train(CONFIG, make_task(), first).history["settings"]
    train(CONFIG, make_task(), again)
    assert first.read_bytes() == again.read_bytes()
    assert settings["margin_sigma"] == 3.0
    assert settings["spread"]["mismatch"]["technology"] == "generic180"
    train(replace(CONFIG, seed=4), make_task(), other)
    assert other.read_bytes() != first.read_bytes()


def test_plain_settings_do_not_mention_it():
    plain = replace(CONFIG, margin_sigma=0.0, device_noise=False, spread=None)
    assert not {"margin_sigma", "device_noise", "spread"} & set(describe_config(plain))


@pytest.mark.parametrize(
    ("architecture", "option", "said"),
    [
        (Architecture(unit="signed", beta="input"), {"margin_sigma": 3.0}, "--margin-sigma needs --beta fixed"),
        (Architecture(feedback=True), {"device_noise": True}, "--device-noise and --feedback do not go together"),
        (Architecture(), {"margin_sigma": -1.0}, "--margin-sigma must lie in 0.001 to 100, or 0 for no margin, not -1"),
    ],
)
def test_what_is_refused(architecture, option, said):
    with pytest.raises(InputError, match=said):
        check_config(TrainingConfig(architecture, **option))
