"""mGRADE: delays are what they say, deployed as whole numbers; fields and footprints are those of the paper."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import InputError  # noqa: E402
from cosim.papers.mgrade import (  # noqa: E402  # noqa: E402
    ConvolutionSettings,
    FixedDelays,
    LearnedDelays,
    Mgrade,
    MgradeShape,
    dilation_of,
    memory_footprint,
    sigma_at,
)

H, T = 3, 40


def signal(steps=T, width=H):
    return torch.randn(2, steps, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def sum_of_taps(u, weight, positions):
    """Eq. 5, 6 by loops."""
    x = torch.zeros_like(u)
    for channel, (ws, ps) in enumerate(zip(weight, positions, strict=True)):
        for w, p in zip(ws, ps, strict=True):
            for t in range(int(p), u.shape[1]):
                x[:, t, channel] += w * u[:, t - int(p), channel]
    return x


@pytest.mark.parametrize(("taps", "dilation"), [(1, 1), (4, 1), (3, 8)])
def test_fixed_delays(taps, dilation):
    delays = FixedDelays(H, taps, dilation).double()
    wanted = sum_of_taps(signal(), delays.weight, np.tile(dilation * np.arange(taps), (H, 1)))
    torch.testing.assert_close(delays(signal()), wanted)
    torch.testing.assert_close(delays.kernel()[:, ::dilation], delays.weight)
    assert delays.kernel().shape == (H, delays.reach + 1) and delays.reach == dilation * (taps - 1)


def test_learned_delays_deployed_are_whole_numbers():
    delays = LearnedDelays(H, 4, 12, "uniform").double().eval()
    wanted = sum_of_taps(signal(), delays.weight, delays.positions.detach().round())
    torch.testing.assert_close(delays(signal()), wanted)
    kernel = delays.kernel()
    for k in range(H):
        assert set(kernel[k].nonzero().ravel().tolist()) == set(delays.whole_positions()[k].tolist())
    delays.train().rounded = True
    torch.testing.assert_close(delays.kernel(), kernel)


def test_taps_that_fall_together_add_up():
    delays = LearnedDelays(1, 2, 5).eval()
    with torch.no_grad():
        delays.positions.copy_(torch.tensor([[2.6, 3.4]]))
        delays.weight.copy_(torch.tensor([[1.0, 0.5]]))
    assert delays.kernel().tolist() == [[0, 0, 0, 1.5, 0, 0]]


def test_learned_delays_in_training():
    """Each tap is a Gaussian with a sum of 1, at the edges as well; a narrow one stands where it is deployed."""
    delays = LearnedDelays(H, 4, 12, "uniform").double()
    delays.sigma = 3.0
    torch.testing.assert_close(delays.kernel().sum(dim=1), delays.weight.sum(dim=1))
    with torch.no_grad():
        delays.positions.copy_(delays.positions.round())
    delays.sigma = 0.1
    # exp(-1 / (2 0.1^2)) = 2e-22 of a tap falls on a neighbour
    torch.testing.assert_close(delays.kernel(), delays.eval().kernel(), rtol=0, atol=1e-12)


def test_positions_learn_a_delay():
    """A tap that begins at 2 finds the 7 that its signal was delayed by, deployed exactly."""
    delays = LearnedDelays(1, 1, 12).double()
    with torch.no_grad():
        delays.positions.fill_(2.0)
        delays.weight.fill_(1.0)
    u = signal(200, 1)
    wanted = torch.nn.functional.pad(u, (0, 0, 7, 0))[:, :200]
    optimiser = torch.optim.Adam(delays.parameters(), lr=0.1)
    for iteration in range(300):
        delays.sigma = sigma_at(iteration, 300, 12)
        optimiser.zero_grad()
        ((delays(u) - wanted) ** 2).mean().backward()
        optimiser.step()
        delays.clip_()
    assert delays.whole_positions().item() == 7


def test_sigma_falls_from_half_the_reach_to_one_half():
    assert [sigma_at(k, 100, 64) for k in (0, 50, 99)] == pytest.approx([32, 0.5, 0.5])
    assert sigma_at(25, 100, 64) == pytest.approx(math.sqrt(32 * 0.5))
    assert sigma_at(0, 100, 1) == 0.5


def test_positions_stay_in_reach():
    delays = LearnedDelays(H, 2, 5)
    with torch.no_grad():
        delays.positions.copy_(torch.tensor([[-3.0, 9.0]] * H))
    delays.clip_()
    assert delays.positions.tolist() == [[0.0, 5.0]] * H


FIELDS = [
    (ConvolutionSettings("constant", 4, dilation=3), 3, 1 + 3 * 3 * 3),  # eq. 3
    (ConvolutionSettings("exponential", 3, dilation=2), 3, 1 + 2 * 2 * (2**3 - 1)),  # eq. 4
    (ConvolutionSettings("learned", 8, reach=16), 2, 1 + 2 * 14),  # eq. 2, taps at 0, 2, ..., 14
]


@pytest.mark.parametrize(("convolving", "layers", "field"), FIELDS)
def test_receptive_field(convolving, layers, field):
    """Of the formulas, and of the network: the inputs that the last output has a gradient on."""
    torch.manual_seed(0)
    model = Mgrade(MgradeShape(1, 1, 4, layers, convolving, "none")).double().eval()
    assert 1 + sum(int(one.used().max()) for one in model.convolutions) == field
    x = signal(field + 10, 1).requires_grad_()
    model(x)[:, -1].sum().backward()
    assert int((x.grad != 0).any(dim=0).ravel().nonzero().min()) == x.shape[1] - field


# the paper's tables 1 and 2: parameters and total in thousands
PAPER = [
    ("minGRU", ConvolutionSettings(), "mingru", 39, 39),
    ("TCN-CD", ConvolutionSettings("constant", 64), "none", 39, 51),
    ("mGRADE-CD", ConvolutionSettings("constant", 8, dilation=32), "mingru", 41, 84),
    ("TCN-EID", ConvolutionSettings("exponential", 64, reach=512), "none", 39, 101),
    ("mGRADE-EID", ConvolutionSettings("exponential", 16, reach=512, dilation=2), "mingru", 42, 87),
    ("mGRADE-L, G 128", ConvolutionSettings("learned", 16, reach=128), "mingru", 48, 71),
    ("mGRADE-L, G 256", ConvolutionSettings("learned", 8, reach=256), "mingru", 44, 86),
]


@pytest.mark.parametrize(("name", "convolving", "cell", "parameters", "total"), PAPER)
def test_footprints_are_those_of_the_paper(name, convolving, cell, parameters, total):
    """Grey sCIFAR, H 32, L 6. The paper rounds up; its last total, the 86.2 found here, it rounds to the nearest.

    The 42 biases of encoder and decoder, which it leaves out, change no figure.
    """
    model = Mgrade(MgradeShape(1, 10, 32, 6, convolving, cell))
    for biases in (0, 42):
        found, buffer = memory_footprint(model, widths=True)
        assert math.ceil((found - biases) / 1000) == parameters
        round_as = round if total == 86 else math.ceil
        assert round_as((found + buffer - biases) / 1000) == total


def parameters_by_part(model):
    parts = ("encoder", "convolution", "cell", "mlp", "norm", "decoder")
    sizes = [(name.split("."), value.numel()) for name, value in model.named_parameters()]
    return {part: sum(size for words, size in sizes if part in words) for part in parts}


def test_parameters_by_part():
    """App. B of the paper: 2 K H taps, 2 H^2 + 2 H, 4 H^2 + 3 H, 2 H in each of two layers."""
    k, h = 5, 6
    model = Mgrade(MgradeShape(3, 2, h, 2, ConvolutionSettings("learned", k, reach=16)))
    assert parameters_by_part(model) == {
        "encoder": 3 * h + h,
        "convolution": 2 * 2 * k * h,
        "cell": 2 * (2 * h * h + 2 * h),
        "mlp": 2 * (4 * h * h + 3 * h),
        "norm": 2 * 2 * h,
        "decoder": 2 * h + 2,
    }
    assert memory_footprint(model)[0] == sum(parameters_by_part(model).values())


def test_small_models_of_the_paper_have_no_mlp():
    """Its sMNIST models of 3k parameters: 3.1k and 3.2k without the MLP, 8k and 9k with it."""
    for shape, with_mlp, without in (
        (MgradeShape(1, 10, 20, 3, ConvolutionSettings("constant", 4, dilation=16)), 8, 3),
        (MgradeShape(1, 10, 15, 6), 9, 3),
    ):
        parts = parameters_by_part(Mgrade(shape))
        assert round(sum(parts.values()) / 1000) == with_mlp
        assert round((sum(parts.values()) - parts["mlp"]) / 1000) == without


def test_what_delays_buffer():
    """A channel keeps as many signals as its layer's largest delay in use, a dispersive line one for each filter."""
    model = Mgrade(MgradeShape(5, 2, 2, 2, ConvolutionSettings("learned", 2, reach=12), "bmru", deep=False))
    with torch.no_grad():
        for one in model.convolutions:
            one.positions.copy_(torch.tensor([[0.2, 7.4], [3.4, 1.0]]))
    assert memory_footprint(model)[1] == 2 * 2 * 7
    dispersive = Mgrade(MgradeShape(1, 1, 2, 1, ConvolutionSettings("gamma", 3, reach=24, order=4), deep=False))
    assert memory_footprint(dispersive)[1] == 24


def test_dilation_stops_doubling():
    convolving = ConvolutionSettings("exponential", 16, reach=512, dilation=2)
    assert [dilation_of(convolving, layer) for layer in range(6)] == [2, 4, 8, 16, 32, 32]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FixedDelays(2, 0, 1), "at least 1, not 0 and 1"),
        (lambda: LearnedDelays(2, 1, 0), "at least 1, not 1 and 0"),
        (lambda: Mgrade(MgradeShape(0, 1)), "must be at least 1"),
    ],
)
def test_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
