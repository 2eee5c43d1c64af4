"""The units as modules of one's own: what they compute is what is exported."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, NetworkError
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.network.layers import FirstQuadrantLayer, ReluLayer, SignedLayer
from cosim.network.reference import encode_inputs, run_reference
from cosim.network.types import InputEncoding
from cosim.technology.catalog import load_technology
from cosim.variation.sigma import derive_mismatch

torch = pytest.importorskip("torch")

from cosim.training.backbone import HardwareNetwork  # noqa: E402
from cosim.training.config import Architecture  # noqa: E402
from cosim.training.hardware import Chips, GridLinear  # noqa: E402
from cosim.training.own import BMRU, CMRU, Encode, clip_, export, load_, margin_loss, set_epsilon  # noqa: E402

ENCODING = InputEncoding(np.array([-1.0, 0.0]), np.array([2.0, 4.0]), ramp_steps=6, levels=16)


class Own(torch.nn.Module):
    """Two recurrent layers, the second of which reads the input, too, behind rectifiers."""

    def __init__(self, *, signed, grid, epsilon=0.0):
        super().__init__()
        torch.manual_seed(3)
        self.encode = Encode(ENCODING)
        self.hidden = GridLinear(3, 5, grid)
        self.layer1 = CMRU(5, 4, signed=signed, grid=grid)
        self.layer2 = CMRU(7, 3, signed=signed, grid=grid)
        self.readout = GridLinear(3, 2, grid)
        set_epsilon(self, epsilon)

    def forward(self, x):
        units = self.encode(x)
        h = self.layer1(torch.relu(self.hidden(units)))
        return self.readout(self.layer2(torch.cat([units, h], dim=2)))

    @property
    def parts(self):
        return {name: getattr(self, name) for name in ("hidden", "layer1", "layer2", "readout")}

    def network(self):
        return export(self.parts, ENCODING, ("no", "yes"), "last", {"layer2": ("input", "layer1")})


def raw(seed=0, n=6, frames=12):
    return np.random.default_rng(seed).random((n, frames, 2)) * 6 - 1.5


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("grid", [0.125, None])
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_module_and_network_are_one_function(tmp_path, signed, grid, epsilon):
    torch.set_default_dtype(torch.float64)
    try:
        model = Own(signed=signed, grid=grid, epsilon=epsilon).eval()
        x = raw()
        with torch.no_grad():
            found = model(torch.from_numpy(x)).numpy()
    finally:
        torch.set_default_dtype(torch.float32)
    save_checkpoint(tmp_path / "own.npz", model.network())
    network = load_network(tmp_path / "own.npz")
    kinds = [ReluLayer, *[SignedLayer if signed else FirstQuadrantLayer] * 2]
    assert [type(layer) for layer in network.layers] == kinds
    assert (network.weight_grid, network.labels, network.readout.pooling) == (grid, ("no", "yes"), "last")
    trace = run_reference(network, x)
    assert len(np.unique(trace.signals["layer2"])) > 1
    np.testing.assert_allclose(found, trace.readout, atol=1e-12)  # float64 throughout, sums of some tens of terms


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("grid", [0.125, None])
def test_a_trained_network_goes_on_in_modules(signed, grid):
    learned = Own(signed=signed, grid=grid, epsilon=1.0).network()
    model = Own(signed=signed, grid=grid)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    load_(model.parts, learned)
    found = model.network()
    for layer, other in zip(learned.layers, found.layers, strict=True):
        assert layer.arrays().keys() == other.arrays().keys()
        for name, value in layer.arrays().items():
            np.testing.assert_allclose(other.arrays()[name], value, atol=2e-7)  # thresholds: sums in single precision
    np.testing.assert_array_equal(found.readout.weight, learned.readout.weight)
    assert [layer.epsilon for layer in found.recurrent_layers] == [1.0, 1.0]


def changed(**fields):
    network = Own(signed=False, grid=0.125).network()
    return replace(
        network, layers=tuple(replace(one, **fields) if one.name == "layer1" else one for one in network.layers)
    )


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (lambda: changed(alpha=np.full(4, 2.0)), r"layer1.alpha\[0\] is 2, and that of this module is 1"),
        (lambda: changed(beta_hi=np.full(4, 0.7), beta_lo=np.array([0.2, 0.2, 0.6, 0.2])),
         r"layer1.beta_hi - beta_lo\[2\] is 0.1, and that of this module is at least 0.2"),
        (lambda: changed(name="other"), "the network has hidden, layer2, other, readout; the parts are hidden, layer1"),
        (lambda: changed(weight=np.zeros((4, 9))), r"layer1.weight has shape \(4, 9\) in the network and \(4, 5\)"),
        (lambda: Own(signed=True, grid=0.125).network(), "a FirstQuadrantCell cannot take over layer1, a SignedLayer"),
    ],
)  # fmt: skip
def test_a_network_that_modules_cannot_take_over(network, message):
    with pytest.raises(NetworkError, match=message):
        load_(Own(signed=False, grid=0.125).parts, network())


@pytest.mark.parametrize("fields", [{"ends": (-1, 2)}, {"initial": np.zeros(4)}], ids=["ends", "start"])
def test_a_cell_without_ends_does_not_take_over_a_layer_that_has_them(fields):
    own = Own(signed=True, grid=0.125)
    network = own.network()
    layers = [replace(layer, epsilon=1.0, **fields) if layer.name == "layer1" else layer for layer in network.layers]
    with pytest.raises(NetworkError, match="layer1 has ends or a start of its own, and this module begins at -1"):
        load_(own.parts, replace(network, layers=tuple(layers)))


def test_encoding_is_that_of_the_reference():
    x = raw(1).astype(np.float32).astype(np.float64)
    found = Encode(ENCODING)(torch.from_numpy(x)).numpy()
    # levels of 1/16 are exact; offset and scale are, too, in single precision
    np.testing.assert_array_equal(found, encode_inputs(ENCODING, x).units)


def test_a_linear_layer_of_torch_without_bias_is_taken():
    memory, readout = BMRU(3, 4), torch.nn.Linear(4, 2, bias=False)
    network = export({"memory": memory, "readout": readout}, ENCODING)
    np.testing.assert_array_equal(network.readout.bias, np.zeros(2))
    assert network.weight_grid is None  # the readout's weights are on none
    assert network.recurrent_layers[0].epsilon == 0


def test_noise_is_drawn_in_training_mode_alone():
    torch.manual_seed(0)
    memory = CMRU(3, 20, noise=0.3)
    x = torch.rand(4, 30, 3)
    memory.eval()
    still = [memory(x) for _ in range(2)]
    assert torch.equal(*still)
    memory.train()
    torch.manual_seed(1)
    moved = memory(x)
    assert not torch.equal(moved, memory(x))
    torch.manual_seed(1)
    assert torch.equal(memory(x), moved)


def test_margin_and_gradient_reach_every_parameter():
    model = Own(signed=False, grid=0.125, epsilon=1.0)
    scores = model(torch.from_numpy(raw()).float())
    penalty = margin_loss(model, 0.3)
    assert 0 < penalty.item() <= 2  # two layers, each at most 1
    (scores.sum() + penalty).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_clipping_stays_within_the_largest_mirror():
    model = Own(signed=True, grid=0.125)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(100.0)
    clip_(model)
    weights = [layer.weight for layer in model.network().layers]
    assert max(np.abs(weight).max() for weight in weights) == 4.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CMRU(0, 2), "inputs must be at least 1, not 0"),
        (lambda: CMRU(2, 0), "cells must lie in 1 to 16384, not 0"),
        (lambda: CMRU(2, 2, grid=0.3), "grid must divide 4"),
        (lambda: CMRU(2, 2, noise=-0.1), "noise must lie in"),
        (lambda: set_epsilon(CMRU(2, 2), 2.0), r"epsilon must lie in \[-1, 1\], not 2"),
        (lambda: CMRU(2, 2).distance, "call the module first"),
    ],
)
def test_settings_that_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("parts", "sources", "message"),
    [
        ({}, None, "parts must be layers and, at the end, 'readout'"),
        ({"memory": CMRU(3, 2), "out": GridLinear(2, 2, None)}, None, "at the end, 'readout', not memory, out"),
        ({"memory": torch.nn.LSTM(3, 2), "readout": GridLinear(2, 2, None)}, None, "memory is a LSTM, which has no"),
        ({"memory": CMRU(3, 2), "readout": CMRU(2, 2)}, None, "readout is a CMRU"),
        ({"memory": CMRU(2, 2), "readout": GridLinear(2, 2, None)}, None, r"memory.weight must have shape \(2, 3\)"),
        ({"memory": CMRU(3, 2), "readout": GridLinear(2, 2, None)}, {"x": ("input",)}, "sources names 'x'"),
        ({"in": CMRU(3, 2), "readout": GridLinear(2, 2, None)}, None, "rename the layer"),
    ],
)
def test_parts_that_are_refused(parts, sources, message):
    with pytest.raises(NetworkError, match=message):
        export(parts, ENCODING, sources=sources)


class OneLayer(torch.nn.Module):
    """A recurrent layer and a readout, on chips that vary where they are given."""

    def __init__(self, signed):
        super().__init__()
        torch.manual_seed(3)
        self.encode, self.memory, self.readout = Encode(ENCODING), CMRU(3, 4, signed=signed), GridLinear(4, 2, 0.125)

    def forward(self, x, chips=None):
        units = self.encode(x)
        if chips is None:
            return self.readout(self.memory(units))
        h = self.memory(units, chips.draw_lines(units.shape[2]))
        return self.readout(h, lines=self.memory.draw_lines(chips))


@pytest.mark.parametrize("unit", ["first-quadrant", "signed"])
def test_chips_that_vary_are_those_of_cosim_train(unit):
    """The same generator draws the same chips here and in the network that `cosim train` trains: equal readouts."""
    mismatch = derive_mismatch(load_technology("generic180"), 0.125)
    torch.manual_seed(3)
    theirs = HardwareNetwork(Architecture(cells=4, layers=1, unit=unit), ENCODING, 2)
    ours = OneLayer(unit == "signed")
    ours.memory.cell, ours.readout = theirs.layers["layer1"], theirs.readout
    theirs.set_epsilon(0.0)
    x = torch.from_numpy(raw(n=12)).float()
    chips = [Chips(mismatch, 6, torch.Generator().manual_seed(5)) for _ in range(2)]
    found, nominal = ours(x, chips[0]), ours(x)
    torch.testing.assert_close(found, theirs(x, chips=chips[1]).readout, rtol=0, atol=0)
    assert (found - nominal).abs().max() > 0.01  # the chips do vary: sigmas of some per cent of readouts around 1
    found.sum().backward()
    assert ours.memory.cell.linear.weight.grad.abs().sum() > 0


def test_the_margin_of_padded_sequences_is_that_of_their_own_frames():
    model = OneLayer(signed=False).eval()
    x = torch.from_numpy(raw(n=3)).float()
    model(x[:, :7])
    short = margin_loss(model, 0.3)
    model(torch.cat([x[:, :7], torch.full((3, 5, 2), 2.0)], dim=1))
    assert margin_loss(model, 0.3) != short
    torch.testing.assert_close(margin_loss(model, 0.3, torch.full((3,), 7)), short)
