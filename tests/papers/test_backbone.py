"""The backbone is the paper's: equations with the cell taken out, sizes by formula, and no step that looks ahead."""

import dataclasses

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from cosim.base.errors import InputError  # noqa: E402
from cosim.papers.backbone import Backbone, BackboneBlock, positions, record, take_step  # noqa: E402
from cosim.papers.cells import HysteresisCell, SoftwareCell  # noqa: E402
from cosim.papers.shape import CELLS, HYBRIDS, BackboneShape, check_shape, count_parameters  # noqa: E402

SHAPE = BackboneShape(3, 5, width=8, state=4)


class Identity(SoftwareCell):
    """The cell of which nothing is kept."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width)

    def recurrence(self, x):
        raise NotImplementedError

    def forward(self, x):
        return x


def layer_norm(x, norm):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(dim=-1, keepdim=True) + norm.eps) * norm.weight + norm.bias


def affine(x, linear):
    return x @ linear.weight.T + linear.bias


def mlp(x, part):
    first, second = affine(x, part.into).chunk(2, dim=-1)
    return affine(first / (1 + torch.exp(-second)), part.out)


def shuffle(module):
    """Every learned number drawn, so that none of the initial ones and zeros hides a term."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0.3)
    return module.double()


@pytest.mark.parametrize("placed", [True, False])
def test_block_with_identity_for_its_cell_is_the_equations(placed):
    torch.manual_seed(2)
    block = shuffle(BackboneBlock(6, Identity(6), positions=placed))
    x = torch.randn(2, 9, 6, dtype=torch.float64)
    normed = layer_norm(x, block.norm1)
    c = normed
    if placed:
        t = torch.arange(9, dtype=torch.float64)
        periods = [2 * torch.pi * 10000 ** (2 * i / 6) for i in range(3)]
        waves = [wave(2 * torch.pi * t / period) for period in periods for wave in (torch.sin, torch.cos)]
        place = torch.stack(waves, dim=1).expand(2, 9, 6)
        c = affine(torch.cat([normed, place], dim=2), block.position)
    inner = layer_norm(affine(c, block.readout), block.cell_norm) / (1 + torch.exp(-affine(normed, block.gate)))  # (25)
    after = block.u1 * x + inner
    expected = block.u2 * after + mlp(layer_norm(after, block.norm2), block.mlp)
    torch.testing.assert_close(block(x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("pooling", ["last", "mean", "none"])
def test_encoder_pooling_and_decoder(pooling):
    torch.manual_seed(3)
    model = shuffle(Backbone(dataclasses.replace(SHAPE, pooling=pooling, blocks=2)))
    x, lengths = torch.randn(4, 40, 3, dtype=torch.float64), torch.tensor([40, 1, 17, 33])
    y = affine(x, model.encoder)
    y = y + mlp(y, model.encoder_mlp)
    for block in model.blocks:
        y = block(y)
    if pooling == "last":
        y = torch.stack([one[length - 1] for one, length in zip(y, lengths, strict=True)])
    elif pooling == "mean":
        y = torch.stack([one[:length].mean(dim=0) for one, length in zip(y, lengths, strict=True)])
    y = affine(y, model.decoder)
    expected = affine(y + mlp(y, model.decoder_mlp), model.output)
    torch.testing.assert_close(model(x, lengths), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cell", [*CELLS, *HYBRIDS])
@pytest.mark.parametrize("changed", [
    {}, {"positions": False}, {"width": 7, "state": 6}, {"tokens": True}, {"blocks": 3, "inputs": 1},
    {"wiring": "parallel", "state": 6},
], ids=str)  # fmt: skip
def test_parameter_count_is_the_formula(cell, changed):
    shape = dataclasses.replace(SHAPE, cell=cell, **changed)
    if "+" in cell and shape.wiring == "alternate" and shape.blocks == 1:
        shape = dataclasses.replace(shape, blocks=2)
    if "+" not in cell:
        shape = dataclasses.replace(shape, wiring="alternate")
    model = Backbone(check_shape(shape))
    assert count_parameters(shape) == sum(parameter.numel() for parameter in model.parameters())


def test_parameter_count_of_fixed_thresholds():
    shape = dataclasses.replace(SHAPE, threshold="fixed")
    assert count_parameters(shape) == sum(parameter.numel() for parameter in Backbone(shape).parameters())
    assert count_parameters(SHAPE) - count_parameters(shape) == SHAPE.width * SHAPE.state


def test_hybrids_alternate_or_share():
    alternating = Backbone(BackboneShape(1, 1, cell="mingru+cmru", width=8, state=4, blocks=4))
    assert [type(block.cell).__name__ for block in alternating.blocks] == ["SoftwareMinGru", "HysteresisCell"] * 2
    shared = Backbone(BackboneShape(1, 1, cell="mingru+alphacmru", width=8, state=4, wiring="parallel"))
    assert [(type(cell).__name__, cell.state) for cell in shared.blocks[0].cell.cells] == [
        ("SoftwareMinGru", 2),
        ("HysteresisCell", 2),
    ]
    assert list(shared.hysteresis) == ["blocks.0.cell.cells.1"]


@pytest.mark.parametrize("cell", [*CELLS, "mingru+cmru"])
def test_no_output_depends_on_later_steps(cell):
    torch.manual_seed(4)
    model = Backbone(dataclasses.replace(SHAPE, cell=cell, blocks=2, pooling="none")).double()
    x = torch.randn(2, 50, 3, dtype=torch.float64)
    changed = x.clone()
    changed[:, 30:] += 1.0
    one, other = model(x), model(changed)
    torch.testing.assert_close(one[:, :30], other[:, :30], rtol=1e-12, atol=1e-12)
    assert (one[:, 30:] - other[:, 30:]).abs().max() > 1e-3


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_steps_behind_the_end_of_a_sample_change_nothing(pooling):
    model = Backbone(dataclasses.replace(SHAPE, pooling=pooling)).double()
    x, lengths = torch.randn(3, 40, 3, dtype=torch.float64), torch.tensor([5, 20, 39])
    changed = x.clone()
    for one, length in zip(changed, lengths, strict=True):
        one[length:] = 7.0
    torch.testing.assert_close(model(x, lengths), model(changed, lengths), rtol=1e-12, atol=1e-12)


def test_tokens_are_embedded():
    model = Backbone(BackboneShape(11, 2, width=8, tokens=True))
    assert model(torch.randint(0, 11, (3, 20))).shape == (3, 2)


def test_epsilon_reaches_every_cell_but_a_bmru():
    mixed = Backbone(BackboneShape(1, 1, cell="bmru+cmru", width=8, state=2, blocks=2))
    mixed.set_epsilon(0.25)
    assert [cell.epsilon for cell in mixed.hysteresis.values()] == [0.0, 0.25]


def test_record_hears_both_sides_of_the_memory():
    torch.manual_seed(6)
    model = Backbone(dataclasses.replace(SHAPE, blocks=2)).double()
    x = torch.randn(2, 40, 3, dtype=torch.float64)
    heard = record(model, x)
    assert list(heard) == ["blocks.0.cell", "blocks.1.cell"]
    for name, (drive, states) in heard.items():
        cell = model.hysteresis[name]
        assert isinstance(cell, HysteresisCell) and cell.memory is None
        assert torch.equal(cell.decide(drive), states) and states.shape == (2, 40, 4)
    assert model.training


def test_sinusoids_of_an_odd_width():
    found = positions(5, 7)
    assert found.shape == (5, 7) and torch.equal(found[0], torch.tensor([0, 1, 0, 1, 0, 1, 0]).double())
    assert found[3, 0] == pytest.approx(0.1411200081, abs=1e-9)  # sin 3


def test_half_precision_leaves_decisions_alone():
    torch.manual_seed(8)
    model = Backbone(dataclasses.replace(SHAPE, width=32))
    seen = []
    cell = model.blocks[0].cell
    cell.memory = lambda drive: seen.append(drive.candidate.dtype) or cell.decide(drive)
    with torch.autocast("cpu", torch.bfloat16):
        half = model(torch.randn(2, 40, 3))
    assert seen == [torch.float32] and torch.isfinite(half).all()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"width": 0}, "--width must lie in 1 to"),
        ({"cell": "gru"}, "--cell must be one of bmru, cmru"),
        ({"cell": "mingru+cmru"}, "needs --blocks 2; or take --wiring parallel"),
        ({"wiring": "parallel"}, "--wiring parallel needs a cell of several kinds"),
        ({"cell": "mingru+cmru", "wiring": "parallel", "state": 3}, "that they can share"),
        ({"cell": "lru", "threshold": "fixed"}, "--threshold fixed needs a cell with thresholds, not lru"),
        ({"cell": "lru", "start": "low"}, "--start low needs a cell with one level"),
        ({"dropout": 1.0}, "--dropout must lie in"),
        ({"dropout": float("nan")}, "--dropout must lie in"),
    ],
)
def test_shapes_that_cannot_be(changed, words):
    with pytest.raises(InputError, match=words):
        check_shape(dataclasses.replace(SHAPE, **changed))


def test_take_step():
    x = torch.arange(12.0).view(2, 3, 2)
    assert torch.equal(take_step(x, torch.tensor([2, 0])), torch.tensor([[[4.0, 5.0]], [[6.0, 7.0]]]))
