"""Expressions against Python's own, string by string; and what is none."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.automata.regex import automaton_of
from cosim.errors import InputError

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
        ("x", "names 'x', which --alphabet lacks: ab"),
    ],
)
def test_what_is_no_expression(pattern, text):
    with pytest.raises(InputError, match=text):
        automaton_of(pattern, "ab" if pattern == "x" else None)


def test_too_many_derivatives():
    with pytest.raises(InputError, match="more than 2000 derivatives"):
        automaton_of("(a|b)*a" + "(a|b)" * 12)
