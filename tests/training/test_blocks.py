"""Blocks: the scan is the recurrence, norms are what they say, hard blocks are the automata that they are read as."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.automata.automaton import modulo  # noqa: E402
from cosim.automata.blocks import KEEP, string_task  # noqa: E402
from cosim.automata.learn import learn  # noqa: E402
from cosim.automata.network import network_of, one_hot  # noqa: E402
from cosim.automata.train_blocks import (  # noqa: E402
    P_NORM,
    BlockRecurrence,
    BlockShape,
    accuracy_of,
    blocks_oracle,
    extract,
    follow_hard,
    one_hot_columns,
    recur,
    say,
    scan_blocks,
    train_blocks,
    unit_blocks,
    unit_columns,
)
from cosim.base.errors import InputError  # noqa: E402
from cosim.network.reference import run_reference  # noqa: E402

N, H, B, SYMBOLS = 3, 2, 5, 4


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 31, 64])
def test_the_scan_is_the_recurrence(steps):
    """In values and gradients; products in another order differ by rounding, 1e-16 a step and level."""
    a, c, start = normal(N, steps, H, B, B), normal(N, steps, H, B, seed=1), normal(H, B, seed=2)
    weight = normal(N, steps, H, B, seed=3).detach()
    found = []
    for advance in (scan_blocks, recur):
        x = advance(unit_columns(a), c, start)
        found.append((x, *torch.autograd.grad((x * weight).sum(), (a, c, start), allow_unused=True)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_looking_up_is_the_recurrence():
    logits = normal(SYMBOLS, H, B, B)
    u = torch.from_numpy(np.random.default_rng(0).integers(0, SYMBOLS, (N, 17)))
    start = torch.zeros(H, B, dtype=torch.float64)
    start[:, 0] = 1.0
    weight = normal(N, 17, H, B, seed=3).detach()
    x = follow_hard(one_hot_columns(logits), u)
    y = recur(one_hot_columns(logits)[u], torch.zeros_like(x), start)
    torch.testing.assert_close(x, y)
    for one, other in zip(*(torch.autograd.grad((z * weight).sum(), logits) for z in (x, y)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_norms():
    a = torch.cat([normal(3, B, B), 0.01 * normal(3, B, B, seed=1)]).detach()

    def norms(x):
        return (x.abs() ** P_NORM).sum(dim=-2) ** (1 / P_NORM)

    columns, blocks = unit_columns(a), unit_blocks(a)
    torch.testing.assert_close(norms(columns), norms(a).clamp(max=1.0))
    torch.testing.assert_close(norms(blocks).amax(dim=-1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(blocks.mean(dim=-2), torch.zeros(6, B, dtype=torch.float64), rtol=0, atol=1e-15)
    assert torch.isfinite(unit_blocks(torch.ones(B, B))).all()
    hard = one_hot_columns(a)
    assert (hard.sum(dim=-2) == 1).all() and ((hard == 0) | (hard == 1)).all()


def test_hard_blocks_are_automata():
    """As tensors and as tables."""
    torch.manual_seed(0)
    model = BlockRecurrence(SYMBOLS, 3, BlockShape(4, B))
    strings = np.random.default_rng(0).integers(0, SYMBOLS, (N, 60))
    with torch.no_grad():
        decided = model(torch.from_numpy(strings)).argmax(dim=2).numpy()
    np.testing.assert_array_equal(model.automata().run(strings), decided)


def test_blocks_and_bits_are_one_machine():
    """In torch, step by step, and as one automaton; bits are set, reset and kept."""
    torch.manual_seed(4)
    task = string_task("even-pair", 3)
    model = BlockRecurrence(3, len(task.labels), BlockShape(2, 3, bits=4))
    strings = task.draw(np.random.default_rng(0), 20, 60)
    automata = model.automata()
    states, written = np.zeros((20, 6), dtype=np.int64), set()
    for symbols in strings.T:
        assert automata.write is not None
        written |= set(automata.write(states[:, :2], symbols).ravel().tolist())
        states = automata.step(states, symbols)
    assert written == {0, 1, KEEP}
    with torch.no_grad():
        said = model(torch.from_numpy(strings)).argmax(dim=2).numpy()
    np.testing.assert_array_equal(automata.run(strings), said)
    whole = automata.product(task)
    place = np.zeros(20, dtype=np.int64)
    for t, symbols in enumerate(strings.T):
        place = whole.next[place, symbols]
        np.testing.assert_array_equal(whole.output[place], said[:, t])


def test_bits_keep_the_first_symbol():
    task = string_task("even-pair", 3)
    assert extract(train_blocks(task, BlockShape(2, 8, bits=3), 0), task)[1] == 7


def test_what_has_no_automata():
    model = BlockRecurrence(SYMBOLS, 3, BlockShape(2, 3, form="columns"))
    with pytest.raises(ValueError, match="must be hard to be automata, not columns"):
        model.automata()
    with pytest.raises(ValueError, match="must be linear"):
        model.weights()


def exact(automaton, task, steps=5_000):
    strings = task.draw(np.random.default_rng(7), 2, steps)
    said = np.array([automaton.output[automaton.run(string)] for string in strings])
    return (said == task.answers(strings))[:, task.concerned(steps)].all()


def test_a_sum_is_learned():
    """The automaton is the counter itself, whose network is right at any length; the same for the same seed."""
    task, shape = string_task("sum", 3), BlockShape(2, 6, hidden=0)
    found, again = train_blocks(task, shape, 0), train_blocks(task, shape, 0)
    assert found.learned and (found.iterations, found.loss) == (again.iterations, again.loss)
    automaton, least = extract(found, task)
    assert len(automaton.states) == least == 3 and exact(automaton, task)
    assert accuracy_of(found.model, task, 10_000, 4) == 1.0
    for word in range(3):
        after = automaton.output[automaton.next[:, word]]
        np.testing.assert_array_equal(after, modulo(3).next[automaton.output, word])
    strings = task.draw(np.random.default_rng(1), 5, 40)
    x, lengths = one_hot(3, list(strings))
    decided = run_reference(network_of(automaton, "it"), x, lengths).readout.argmax(axis=2)
    np.testing.assert_array_equal(decided, say(found.model, strings))


def test_an_expression_is_learned():
    """M^2 states, since nobody reads what stands behind operators."""
    task = string_task("mod-arith", 2)
    automaton, least = extract(train_blocks(task, BlockShape(4, 8), 0), task)
    assert len(automaton.states) == least == 4 and exact(automaton, task)


def test_the_first_symbol_is_kept():
    task = string_task("even-pair", 3)
    automaton, least = extract(train_blocks(task, BlockShape(6, 6), 0), task)
    assert len(automaton.states) == least == 7 and exact(automaton, task)


def test_what_is_not_learned():
    task = string_task("sum", 5)
    found = train_blocks(task, BlockShape(2, 2), 0, most=60)
    with pytest.raises(
        InputError, match="blocks must answer strings of 500 symbols without an error, and are right on"
    ):
        extract(found, task)


@pytest.mark.parametrize("form", ["columns", "blocks"])
def test_real_blocks_are_asked(form):
    """What they have learned for short strings is a counter, whose network is right at any length."""
    task = string_task("sum", 2)
    found = train_blocks(task, BlockShape(2, 4, form=form), 0, length=12, most=200)
    assert found.wrong is None and accuracy_of(found.model, task, 12, 64) == 1.0
    rng = np.random.default_rng(0)
    words = [tuple(rng.integers(0, 2, rng.integers(1, 13)).tolist()) for _ in range(200)]
    automaton, _, differing = learn(blocks_oracle(found.model), (task.symbols, task.labels), words, 16)
    assert differing == 0 and len(automaton.states) == 2 and exact(automaton, task)
