"""Tasks on strings: answers against Python's own arithmetic, symbols in their turns, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.blocks import string_task
from cosim.base.errors import InputError

NAMES = "sum", "even-pair", "mod-arith"


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.integers(2, 7), st.integers(0, 2**32))
def test_every_beginning_has_its_answer(name, count, seed):
    task = string_task(name, count)
    strings = task.draw(np.random.default_rng(seed), 3, 11)
    answers, concerned = task.answers(strings), task.concerned(11)
    for string, answer in zip(strings, answers, strict=True):
        for t in np.flatnonzero(concerned):
            text = "".join(task.symbols[symbol] for symbol in string[: t + 1])
            match name:
                case "sum":
                    value = sum(map(int, text)) % count
                case "even-pair":
                    value = int(text[0] == text[-1])
                case _:
                    value = eval(text.replace("x", "*")) % count
            assert answer[t] == value
    assert concerned.tolist() == [name != "mod-arith" or t % 2 == 0 for t in range(11)]


def test_all_symbols_come_in_their_turns():
    strings = string_task("mod-arith", 3).draw(np.random.default_rng(0), 500, 6)
    for t in range(6):
        assert set(strings[:, t]) == ({3, 4, 5} if t % 2 else {0, 1, 2})


@pytest.mark.parametrize("count", [1, 33])
def test_a_count_that_there_is_not(count):
    with pytest.raises(InputError, match=f"sum must have 2 to 32 digits, not {count}; give another --modulo"):
        string_task("sum", count)
