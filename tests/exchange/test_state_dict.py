"""Bare state dicts: kinds, defaults and sources follow from the keys and shapes, and ambiguity is refused."""

from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import NetworkError
from cosim.exchange.checkpoint import load_network
from cosim.exchange.state_dict import network_from_state_dict
from cosim.network.layers import FirstQuadrantLayer, ReluLayer, SignedLayer
from cosim.network.reference import run_reference

INPUTS, HIDDEN, FIRST, SIGNED, OUTPUTS = 3, 5, 7, 11, 2


def linear(rng: np.random.Generator, prefix: str, rows: int, columns: int) -> dict[str, np.ndarray]:
    return {f"{prefix}.weight": rng.normal(size=(rows, columns)), f"{prefix}.bias": rng.normal(size=rows)}


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    """input 3 -> ReLU 5 -> first-quadrant 7 -> signed 11 -> 2."""
    rng = np.random.default_rng(23)
    return {
        **linear(rng, "layers.0", HIDDEN, INPUTS),
        **linear(rng, "layers.1", FIRST, HIDDEN),
        "layers.1.beta_lo": np.full(FIRST, 0.25),
        "layers.1.beta_hi": np.full(FIRST, 0.75),
        **linear(rng, "layers.2", SIGNED, FIRST),
        "layers.2.bias_beta": np.full(SIGNED, 0.5),
        **linear(rng, "readout", OUTPUTS, SIGNED),
    }


def test_kinds_and_defaults(arrays: dict[str, np.ndarray]) -> None:
    network = network_from_state_dict(arrays, "dict")
    assert [type(layer) for layer in network.layers] == [ReluLayer, FirstQuadrantLayer, SignedLayer]
    assert [layer.sources for layer in network.layers] == [("input",), ("layer0",), ("layer1",)]
    assert network.readout.sources == ("layer2",)
    assert network.readout.pooling == "mean"
    first, signed = network.recurrent_layers
    np.testing.assert_array_equal(first.alpha, np.ones(FIRST))
    assert isinstance(signed, SignedLayer)
    assert signed.weight_beta is None
    assert signed.epsilon == first.epsilon == 0.0
    np.testing.assert_array_equal(network.encoding.offset, np.zeros(INPUTS))


def test_given_values_replace_defaults(arrays: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(29)
    arrays |= {
        "layers.2.weight_beta": rng.normal(size=(SIGNED, FIRST)),
        "layers.2.weight_alpha": rng.normal(size=(SIGNED, FIRST)),
        "layers.2.alpha": np.full(SIGNED, 0.5),
        "input.offset": np.array([1.0, 2.0, 3.0]),
        "input.scale": np.array([4.0, 5.0, 6.0]),
        "epsilon": np.array(0.75),
    }
    network = network_from_state_dict(arrays, "dict")
    signed = network.layers[2]
    assert isinstance(signed, SignedLayer)
    np.testing.assert_array_equal(signed.weight_beta, arrays["layers.2.weight_beta"])
    np.testing.assert_array_equal(signed.weight_alpha, arrays["layers.2.weight_alpha"])
    assert signed.alpha[0] == 0.5
    assert signed.epsilon == 0.75
    assert network.encoding.scale[2] == 6.0


def test_sources_follow_from_the_number_of_columns(arrays: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(31)
    arrays["layers.2.weight"] = rng.normal(size=(SIGNED, INPUTS + FIRST))
    arrays["readout.weight"] = rng.normal(size=(OUTPUTS, FIRST + SIGNED))
    network = network_from_state_dict(arrays, "dict")
    assert network.layers[2].sources == ("input", "layer1")
    assert network.readout.sources == ("layer1", "layer2")
    arrays["layers.2.weight"] = rng.normal(size=(SIGNED, INPUTS + HIDDEN + FIRST))
    assert network_from_state_dict(arrays, "dict").layers[2].sources == ("input", "layer0", "layer1")
    assert run_reference(network, rng.uniform(size=(4, 6, INPUTS))).scores.shape == (4, OUTPUTS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers.0.weights": np.ones(3)}, r"mine\.pt: key 'layers\.0\.weights' is not known; rename it"),
        ({"layers.4.weight": np.ones((2, 2))}, r"mine\.pt: key 'layers\.3\.weight' is missing; number the layers"),
        ({"layers.3.bias": np.ones(2)}, r"mine\.pt: key 'layers\.3\.weight' is missing; each layer needs its weight"),
        ({"layers.0.weight": np.ones(5)}, r"layers\.0\.weight must have shape \(outputs, inputs\), not \(5,\)"),
        (
            {"layers.1.weight": np.ones((7, 6))},
            r"layers\.1\.weight has 6 columns, but must have: layer0 = 5; input \+ layer0 = 8;",
        ),
        ({"layers.1.beta_hi": None}, r"mine\.pt: layers\.1: key 'beta_hi' is missing"),
        ({"layers.1.bias": None}, r"mine\.pt: layers\.1: key 'bias' is missing"),
        ({"layers.2.bias_beta": None, "layers.2.alpha": np.ones(11)}, r"layers\.2: key 'bias_beta' is missing"),
        (
            {"readout.weight": np.ones((2, 13))},
            r"readout\.weight has 13 columns, but must have: layer2 = 11; layer1 \+",
        ),
        ({"readout.weight": None}, r"mine\.pt: key 'readout\.weight' is missing"),
        ({"input.scale": np.ones(4)}, r"input\.scale has 4 numbers, layers\.0\.weight 3 columns"),
        ({"epsilon": np.zeros(3)}, r"epsilon must be one number for all layers, not shape \(3,\)"),
        ({"layers.1.beta_lo": np.full(7, np.nan)}, r"layer1\.beta_lo\[0\] must be finite, not nan"),
    ],
)
def test_unusable_dicts_are_named(arrays: dict[str, np.ndarray], change: dict, message: str) -> None:
    changed = {name: array for name, array in (arrays | change).items() if array is not None}
    with pytest.raises(NetworkError, match=message):
        network_from_state_dict(changed, "mine.pt")


def test_no_layer_at_all() -> None:
    with pytest.raises(NetworkError, match=r"key 'layers\.0\.weight' is missing; found readout\.bias"):
        network_from_state_dict({"readout.bias": np.ones(2)}, "mine.pt")


def test_a_torch_module_of_ones_own(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Mine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(INPUTS, HIDDEN), nn.Linear(HIDDEN, FIRST)])
            self.layers[1].beta_lo = nn.Parameter(torch.full((FIRST,), 0.25))
            self.layers[1].beta_hi = nn.Parameter(torch.full((FIRST,), 0.75))
            self.readout = nn.Linear(FIRST, OUTPUTS)

    mine = Mine()
    torch.save(mine.state_dict(), tmp_path / "mine.pt")
    np.savez(tmp_path / "mine.npz", **{name: value.numpy() for name, value in mine.state_dict().items()})
    x = np.random.default_rng(41).uniform(size=(6, 4, INPUTS))
    from_pt, from_npz = (run_reference(load_network(tmp_path / f"mine.{kind}"), x) for kind in ("pt", "npz"))
    np.testing.assert_array_equal(from_pt.scores, from_npz.scores)
    np.testing.assert_array_equal(load_network(tmp_path / "mine.pt").layers[0].weight, mine.layers[0].weight.detach())
