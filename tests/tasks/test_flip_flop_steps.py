"""Flip-flop strings with a target behind every read."""

import pytest

from cosim.base.errors import InputError
from cosim.tasks.memory import generate_flip_flop_steps


@pytest.mark.parametrize(("tokens", "ignored"), [(4, 0.0), (64, 0.8), (200, 0.98)])
def test_flip_flop_steps(tokens, ignored):
    """Behind every r comes the bit behind the last w; the last symbol is an r."""
    steps = generate_flip_flop_steps(50, tokens, ignored, seed=1)
    assert steps.x.shape == (50, tokens - 1, 5) and (steps.x.sum(axis=2) == 1).all()
    symbols = steps.x.argmax(axis=2)
    assert (steps.mask == (symbols == 1)).all() and steps.mask[:, -1].all()
    for row, wanted, mask in zip(symbols, steps.y, steps.mask, strict=True):
        stored = None
        for t, symbol in enumerate(row):
            if t and row[t - 1] == 0:
                stored = symbol - 3
            if symbol == 1:
                assert mask[t] and wanted[t] == stored
            else:
                assert wanted[t] == 0


@pytest.mark.parametrize("bad", [(0, 64, 0.8), (4, 63, 0.8), (4, 2, 0.8), (4, 64, 1.5)])
def test_flip_flop_steps_refused(bad):
    with pytest.raises(InputError, match="the flip-flop task must have"):
        generate_flip_flop_steps(*bad)
