"""Expressions against Python's own, string by string; and what is none."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.regex import automaton_of
from cosim.base.errors import InputError

SYMBOLS = "abc"


def expressions():
    single = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "[a-c]"])
    return st.recursive(
        single,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
            st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: f"({pair[0]}){pair[1]}"),
        ),
        max_leaves=8,
    )


@settings(max_examples=200, deadline=None)
@given(expressions(), st.lists(st.text(SYMBOLS, min_size=1, max_size=9), min_size=1, max_size=20))
def test_it_matches_what_python_matches(pattern, strings):
    automaton = automaton_of(pattern, SYMBOLS)
    for string in strings:
        states = automaton.run(automaton.places(string))
        for end in range(1, len(string) + 1):
            label = automaton.labels[automaton.output[states[end - 1]]]
            assert label == ("yes" if re.fullmatch(pattern, string[:end]) else "no"), (pattern, string[:end])


ALL_CODES = "[\x00-\U0010ffff]"
LETTERS = [chr(0x4E00 + k) for k in range(5000)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from("*+?"), min_size=1, max_size=40), st.sampled_from(["a", "ab", "(a|b)", "[ab]c?", "(|a)"])
)
def test_repeats_of_repeats_are_one(signs, inner):
    """Any number of them is *, or + and ? alone; Python's own takes exponential time for what is not simplified."""
    simple = signs[0] if len(set(signs)) == 1 else "*"
    nested = "(" * len(signs) + f"({inner})" + "".join(f"{sign})" for sign in signs)
    found = automaton_of(nested, SYMBOLS)
    wanted = automaton_of(f"({inner}){simple}", SYMBOLS)
    assert np.array_equal(found.next, wanted.next) and np.array_equal(found.output, wanted.output)


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("a" * 750, 752),
        ("(" * 4999 + "a" + ")" * 4999, 3),
        ("a" + "+" * 9999, 2),
        ("|".join("ab"[k % 2] for k in range(5000)), 3),
        ("(" * 300 + "a" + "b?)*" * 300, 1),
    ],
    ids=["750 symbols", "4,999 groups", "9,999 pluses", "5,000 alternatives", "300 repeats in each other"],
)
def test_what_is_long_or_deep_is_read_all_the_same(pattern, states):
    assert len(automaton_of(pattern).states) == states


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a" * 10_001, "must have at most 10000 characters, not 10001; a table of states"),
        (ALL_CODES, "must have at most 256 symbols, each an input of the circuit, not 1114112; name fewer"),
        ("|".join(LETTERS), "must have at most 256 symbols, each an input of the circuit, not 5000; name fewer"),
        (
            "a?" * 5000,
            "has parts that follow each other in more than 500000 ways, up to character 20..; make it shorter",
        ),
        ("a|\udc80", r"names '\\udc80', which is no character"),
        (
            "[a-z]" + "".join(chr(97 + k * k % 26) for k in range(4000)),
            "has more than 2000 states: up to 1 places of its",
        ),
    ],
    ids=["characters", "code points", "alternatives", "ways", "surrogate", "states"],
)
def test_what_is_too_large_is_refused(pattern, text):
    with pytest.raises(InputError, match=text) as refused:
        automaton_of(pattern)
    assert len(str(refused.value)) < 500  # however long the pattern is


def test_a_class_of_all_code_points_goes_with_an_alphabet_that_lacks_them():
    with pytest.raises(InputError, match=r"names '\\x00', which --alphabet lacks: 'ab'"):
        automaton_of(ALL_CODES, "ab")
    with pytest.raises(InputError, match="must have at most 256 symbols, each an input of the circuit, not 5000"):
        automaton_of("a", "a" + "".join(LETTERS[1:]))


@pytest.mark.parametrize(
    ("pattern", "states"),
    [("(a|b)*abb", 4), ("a*", 1), ("(a|b)*a(a|b)(a|b)", 8), ("(bb|a)*", 3), ("((a|b)(a|b)(a|b))*", 3), ("ab|ab", 4)],
)
def test_it_is_minimal(pattern, states):
    """Textbook sizes: the third last symbol takes 2^3 states; a sink counts."""
    assert len(automaton_of(pattern).states) == states


def test_symbols_of_its_own_and_of_an_alphabet():
    assert automaton_of(r"\*[x-z]\[").symbols == ("*", "[", "x", "y", "z")
    assert automaton_of("a", "cba").symbols == ("c", "b", "a")
    negative = automaton_of("[^a]", "ab")
    assert [negative.labels[negative.output[state]] for state in negative.next[negative.start]] == ["no", "yes"]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(ab", r"a \( that nothing closes, at character 4"),
        ("ab)", r"a \) that nothing opens, at character 3"),
        ("[ab", r"a \[ that nothing closes"),
        ("a]", r"a \] that nothing opens, at character 2"),
        ("*a", r"a \* behind nothing, at character 1"),
        ("a|+", r"a \+ behind nothing, at character 3"),
        ("a\\", "ends in a backslash"),
        ("[c-a]", "the range c-a, whose end is before its begin"),
        ("", "names no symbol; give the alphabet with --alphabet"),
        ("x", "names 'x', which --alphabet lacks: 'ab'"),
    ],
)
def test_what_is_no_expression(pattern, text):
    with pytest.raises(InputError, match=text):
        automaton_of(pattern, "ab" if pattern == "x" else None)


def test_too_many_states():
    text = "more than 2000 states: up to 12 places of its part .*, from character 2 to 5., may be reached at once;"
    with pytest.raises(InputError, match=text):
        automaton_of("(a|b)*a" + "(a|b)" * 12)
