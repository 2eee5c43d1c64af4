"""Of repeated steps each is computed once, and nothing else is different."""

import pytest

torch = pytest.importorskip("torch")

from cosim.papers import backbone as backbones  # noqa: E402
from cosim.papers.backbone import Backbone  # noqa: E402
from cosim.papers.cells import RepeatedSequence, each, repeated, take_step, whole  # noqa: E402
from cosim.papers.shape import CELLS, HYBRIDS, BackboneShape  # noqa: E402

N, TIME = 6, 30


def items():
    """One of 15 at the first step, zeros afterwards."""
    x = torch.zeros(N, TIME, 15, dtype=torch.float64)
    x[torch.arange(N), 0, torch.arange(N)] = 1.0
    return x


def bits():
    return (torch.arange(N * TIME).view(N, TIME, 1) % 7 % 2).double()


def tokens():
    return torch.arange(N * TIME).view(N, TIME) % 11


@pytest.fixture
def as_they_stand(monkeypatch):
    """Called, it makes backbones compute every step."""
    return lambda: monkeypatch.setattr(backbones, "repeated", lambda x: None)


@pytest.mark.parametrize(("make", "count"), [(items, N + 1), (bits, 2), (tokens, 11)])
def test_the_different_steps_make_the_sequence_again(make, count):
    x = make()
    found = repeated(x)
    assert found is not None and len(found.rows) == count
    assert torch.equal(found.rows[found.index], x)
    if x.ndim == 3:
        assert found.shape == x.shape and torch.equal(whole(found), x)
        step = torch.arange(N) * 5
        assert torch.equal(take_step(found, step), take_step(x, step))
        assert torch.equal(whole(each(torch.exp, found)), x.exp())


def test_numbers_that_seldom_repeat_stay_as_they_are():
    assert repeated(torch.randn(4, 50, 1)) is None
    assert repeated(torch.randn(4, 50, 3)) is None
    quarter = torch.arange(200).view(4, 50, 1) % 50
    assert repeated(quarter) is not None
    quarter[0, 0] = 999
    assert repeated(quarter) is None


def test_steps_that_are_not_themselves_stay_as_they_are():
    x = bits()
    x[0, 0] = float("nan")  # which no comparison finds again
    assert repeated(x) is None


def test_different_steps_of_one_sum_are_told_apart(monkeypatch):
    monkeypatch.setattr("cosim.papers.cells._mixture", lambda steps: torch.ones_like(steps[0]))
    x = items()  # sums 1 and 0
    assert repeated(x) is None


SHAPES = [("last", True, 2), ("mean", False, 1), ("none", True, 1)]
# Every cell with every kind of steps, and every kind of steps with every shape
KINDS = [
    (make, cell, *SHAPES[(j + k) % 3])
    for j, make in enumerate((items, bits, tokens))
    for k, cell in enumerate((*CELLS, *HYBRIDS))
]


@pytest.mark.parametrize(("make", "cell", "pooling", "positions", "blocks"), KINDS)
def test_scores_and_gradients_are_those_of_every_step(make, cell, pooling, positions, blocks, as_they_stand):
    x, lengths = make(), torch.arange(N) + TIME - N + 1
    inputs, is_tokens = (11, True) if x.ndim == 2 else (x.shape[2], False)
    torch.manual_seed(1)
    shape = BackboneShape(
        inputs, 3, tokens=is_tokens, cell=cell, width=12, state=4, blocks=blocks, pooling=pooling, positions=positions
    )
    model = Backbone(shape).double()

    def both():
        model.zero_grad()
        scores = model(x, lengths)
        scores.square().sum().backward()
        return scores.detach(), torch.cat([parameter.grad.flatten() for parameter in model.parameters()])

    once = both()
    as_they_stand()
    every = both()
    # The same sums in another order: some 200 terms of double precision, 1e-16 each
    for a, b in zip(once, every, strict=True):
        assert (a - b).abs().max() <= 1e-12 * b.abs().max()


def test_dropout_is_drawn_for_every_step():
    shape = BackboneShape(1, 2, width=12, state=4, dropout=0.5)
    model = Backbone(shape).double()
    assert isinstance(model.eval()._encode(bits()), RepeatedSequence)
    encoded = model.train()._encode(bits())
    assert isinstance(encoded, torch.Tensor)
    assert not torch.equal(encoded[0, 0], encoded[0, 2])  # two steps of bit 0


def test_half_precision_decides_in_single():
    torch.manual_seed(0)
    model = Backbone(BackboneShape(1, 2, width=16, state=4))
    seen = list[torch.dtype]()
    cell = next(iter(model.hysteresis.values()))
    cell.memory = lambda drive: seen.append(drive.candidate.dtype) or cell.decide(drive)
    with torch.autocast("cpu", torch.bfloat16):
        scores = model(bits().float())
    assert seen == [torch.float32] and torch.isfinite(scores).all()
