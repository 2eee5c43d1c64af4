"""A cut backbone is the backbone: converters and equations of the circuits change nothing, and whole traces go over."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cosim.papers.cut as cutting  # noqa: E402
from cosim.base.errors import InputError, MappingError  # noqa: E402
from cosim.compiler.lower import lower  # noqa: E402
from cosim.exchange.checkpoint import checkpoint_bytes  # noqa: E402
from cosim.papers.backbone import Backbone  # noqa: E402
from cosim.papers.cut import NEITHER, cut_backbone  # noqa: E402
from cosim.papers.file import Model  # noqa: E402
from cosim.papers.shape import BackboneShape, check_shape  # noqa: E402
from cosim.papers.sources import Samples  # noqa: E402
from cosim.verbs.partitions.study import equations  # noqa: E402

SHAPE = BackboneShape(3, 4, cell="cmru", width=16, state=6, blocks=2, pooling="mean", start="low")


def make(shape=SHAPE, epsilon=0.0, seed=0):
    torch.manual_seed(seed)
    backbone = Backbone(check_shape(shape))
    for cell in backbone.hysteresis.values():  # levels of either sign, so that none stands for another
        if cell.alpha is not None:
            cell.alpha.data = torch.linspace(-1.5, 2.0, cell.state)
    backbone.set_epsilon(epsilon)
    return Model(backbone.eval(), "task", tuple("abcd"), epsilon)


def samples(n=20, seed=1):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(20, 41, n)
    lengths[0] = 40
    return Samples(rng.normal(0, 1, (n, 40, 3)).astype(np.float32), rng.integers(0, 4, n), lengths)


def circuit(partition, g, lengths):
    return equations(partition, g)


@pytest.mark.parametrize("bits", [2, 5])
@pytest.mark.parametrize("changed", [{}, {"threshold": "fixed"}, {"cell": "bmru", "pooling": "last"}], ids=str)
def test_converters_change_nothing(changed, bits):
    cut, x = cut_backbone(make(replace(SHAPE, **changed)), samples(), bits), samples(30, seed=2)
    trained, converted = cut.run(x), cut.run(x, circuit)
    assert [partition.name for partition in cut.partitions] == ["block1", "block2"]
    for cell, states in trained.states.items():
        assert np.array_equal(states, converted.states[cell])
        assert np.array_equal(trained.drives[cell], converted.drives[cell])
        assert 0.1 < states.mean() < 0.9 and (np.diff(states, axis=1) != 0).mean() > 0.02  # there is something to keep
    assert np.array_equal(trained.scores, converted.scores)


@pytest.mark.parametrize("epsilon", [1.0, -1.0])
@pytest.mark.parametrize("start", ["zero", "low"])
def test_counts_at_epsilon_one_and_minus_one(start, epsilon):
    """Scores are sums of 16 products of up to 40 steps of up to 2 in single precision: 1e-5 of them."""
    cut, x = cut_backbone(make(replace(SHAPE, start=start), epsilon=epsilon), samples()), samples(30, seed=2)
    trained, converted = cut.run(x), cut.run(x, circuit)
    assert all(partition.counts for partition in cut.partitions)
    valid = np.arange(40)[None, :] < x.lengths[:, None]
    for cell, states in trained.states.items():
        assert np.array_equal(states[valid], converted.states[cell][valid])
        assert np.ptp(states) > (10 if epsilon > 0 else 4)
    np.testing.assert_allclose(converted.scores, trained.scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("start", ["zero", "low"])
@pytest.mark.parametrize("levels", [3, 7, 8])
def test_counts_that_stay_at_their_ends(start, levels):
    cut = cut_backbone(make(replace(SHAPE, start=start, levels=levels), epsilon=1.0), samples())
    x = samples(30, seed=2)
    trained, converted = cut.run(x), cut.run(x, circuit)
    valid = np.arange(40)[None, :] < x.lengths[:, None]
    for partition in cut.partitions:
        states = trained.states[partition.cell][valid]
        assert np.array_equal(states, converted.states[partition.cell][valid])
        assert (states.min(), states.max()) == (-(levels // 2), levels - levels // 2)
        graph = lower(partition.network)
        assert all(
            node.most == levels and node.first == levels // 2 + (-1 if start == "low" else 0) for node in graph.memories
        )
    np.testing.assert_allclose(converted.scores, trained.scores, rtol=1e-4, atol=1e-4)


def test_a_counter_cannot_stay_at_other_ends_than_its_own():
    cut = cut_backbone(make(replace(SHAPE, levels=40), epsilon=1.0), samples())
    with pytest.raises(
        MappingError, match=r"a counter's states end at 2, 4, 8, .* 256, and the unit has 41, .*`levels=63`"
    ):
        lower(cut.partitions[0].network)


@pytest.mark.parametrize("levels", [2, 6, 8])
def test_values_of_an_alphacmru_on_levels(levels):
    """A value that lies half-way between two levels may go either way; of random ones none does."""
    cut = cut_backbone(make(replace(SHAPE, cell="alphacmru", start="zero", levels=levels)), samples())
    x = samples(30, seed=2)
    trained, converted = cut.run(x), cut.run(x, circuit)
    for partition in cut.partitions:
        states = trained.states[partition.cell]
        assert np.array_equal(states, converted.states[partition.cell])
        assert len(np.unique(states)) > levels // 2 and (np.diff(states, axis=1) != 0).mean() > 0.02
        assert partition.converters == 2 * partition.units == trained.drives[partition.cell].shape[2]
    assert np.array_equal(trained.scores, converted.scores)


def test_converters_of_an_alphacmru():
    model = make(replace(SHAPE, cell="alphacmru", start="zero", levels=6))
    partitions = cut_backbone(model, samples(), 2).partitions
    assert {(one.bits, one.codes, one.value_bits, one.clipped) for one in partitions} == {(2, 3, 3, 0.0)}
    with pytest.raises(InputError, match="--bits of an alphaCMRU's candidates is 2, not 3; leave it out"):
        cut_backbone(model, samples(), 3)


def test_from_zero_only_what_is_before_the_first_update_differs():
    cut = cut_backbone(make(replace(SHAPE, start="zero", blocks=1, threshold="fixed")), samples())
    x = samples(30, seed=2)
    (trained,), (converted,) = (tuple(cut.run(x, memory).states.values()) for memory in (None, circuit))
    before = (trained == NEITHER).cumprod(axis=1).astype(bool)
    assert before.any() and np.array_equal(before, trained == NEITHER)
    assert np.array_equal(trained[~before], converted[~before]) and (converted[before] == 0).all()


def test_a_later_block_reads_what_the_circuit_in_front_did():
    cut, x = cut_backbone(make(), samples()), samples(8, seed=2)
    first, second = (partition.cell for partition in cut.partitions)

    def wrong(partition, g, lengths):
        states = equations(partition, g)
        if partition.cell == first:
            states[3, 7, 2] ^= 1
        return states

    right, turned = cut.run(x, circuit), cut.run(x, wrong)
    assert np.array_equal(right.drives[first], turned.drives[first])
    moved = (right.drives[second] != turned.drives[second]).any(axis=2)
    assert moved[3, 7] and moved.sum() == 1  # a block looks at one step


def test_chunks_and_what_pads_change_nothing(monkeypatch):
    cut, x = cut_backbone(make(), samples()), samples(10, seed=2)
    whole = cut.run(x, circuit)
    monkeypatch.setattr(cutting, "CHUNK", 4)
    heard = []
    parts = cut.run(x, lambda partition, g, lengths: heard.append((partition.name, len(g))) or equations(partition, g))
    assert heard == [(name, count) for count in (4, 4, 2) for name in ("block1", "block2")]
    valid = np.arange(40)[None, :] < x.lengths[:, None]
    for cell in whole.states:
        assert np.array_equal(whole.states[cell][valid], parts.states[cell][valid])
    # sums over another number of samples may be rounded otherwise, in single precision
    np.testing.assert_allclose(whole.scores, parts.scores, rtol=0, atol=1e-5)
    padded = replace(x, x=np.pad(x.x, ((0, 0), (0, 9), (0, 0)), constant_values=7.0))
    assert np.array_equal(cut.run(padded, circuit).scores, parts.scores)


def test_calibration_is_the_same_for_the_same_samples():
    one, other = (cut_backbone(make(), samples()) for _ in range(2))
    for mine, theirs in zip(one.partitions, other.partitions, strict=True):
        assert checkpoint_bytes(mine.network, ".npz", "a") == checkpoint_bytes(theirs.network, ".npz", "b")


def test_cells_are_themselves_again_even_after_an_error():
    cut, x = cut_backbone(make(), samples()), samples(4)
    before = cut.run(x).scores

    def fail(partition, g, lengths):
        raise RuntimeError("no circuit")

    with pytest.raises(RuntimeError, match="no circuit"):
        cut.run(x, fail)
    assert all(cell.memory is None for cell in cut.model.backbone.hysteresis.values())
    assert np.array_equal(cut.run(x).scores, before)


@pytest.mark.parametrize(
    ("shape", "epsilon", "words"),
    [
        (replace(SHAPE, cell="lru", start="zero"), 0.0, "the LRU's complex state"),
        (replace(SHAPE, cell="mingru", start="zero"), 0.0, "the minGRU's logistic gate"),
        (replace(SHAPE, cell="alphacmru", start="zero"), 0.0, "stores any value, and a register holds one of some"),
        (replace(SHAPE, cell="alphacmru", start="zero", levels=6), 0.5, "epsilon 0.5, and a register replaces what it"),
        (SHAPE, 0.5, "blocks.1.cell has epsilon 0.5, and its state is neither a bit nor a count"),
    ],
    ids=["lru", "mingru", "alphacmru", "adding", "epsilon"],
)
def test_a_backbone_without_a_cell_that_compiles(shape, epsilon, words):
    with pytest.raises(MappingError, match="b.pt: no cell of it has a circuit: ") as caught:
        cut_backbone(make(shape, epsilon), samples(), origin="b.pt")
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("wiring", ["alternate", "parallel"])
def test_a_hybrid_leaves_its_other_cells_in_software(wiring):
    model = make(replace(SHAPE, cell="mingru+cmru", wiring=wiring))
    cut = cut_backbone(model, samples())
    names = ["block2"] if wiring == "alternate" else ["block1_cell2", "block2_cell2"]
    assert [partition.name for partition in cut.partitions] == names
    parts = cut.parts()
    assert [part.part for part in parts if part.where == "circuit"] == names
    assert "the minGRU's logistic gate" in next(part for part in parts if part.part == "block 1").reason
    learned = sum(parameter.numel() for parameter in model.backbone.parameters())
    assert sum(part.parameters for part in parts) == learned
    x = samples(6, seed=2)
    assert np.array_equal(cut.run(x).scores, cut.run(x, circuit).scores)
