"""Graphs of automata: nothing stands on anything else, and the page says what a run did of them."""

import json
import re
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from cosim.automata.automaton import Automaton, modulo
from cosim.automata.network import network_of, one_hot
from cosim.automata.regex import automaton_of
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.results.figures import RED, figure_bytes
from cosim.results.page import format_block, format_pages
from cosim.tasks.testset import TestSet
from cosim.variation.draws import VariationPlan
from cosim.verbs.automaton.section import (
    describe_automaton,
    draw_automaton,
    format_automaton,
    is_drawn,
    place,
    say_transitions,
    short_symbols,
    symbols_between,
)
from cosim.verbs.automaton.structure import tour
from cosim.verbs.compare.page import run_comparison
from cosim.verbs.compare.transitions import Transition, Transitions
from cosim.verbs.montecarlo.chip_study import study_chips
from cosim.verbs.montecarlo.page import chip_page
from cosim.verbs.montecarlo.trial import Trial

HOSTILE = "<script>$\\frac{$"


def even_pair(count):
    """Whether the last symbol is the first one."""
    follow = np.empty((1 + 2 * count, count), dtype=np.int64)
    follow[0] = 1 + 2 * np.arange(count)
    for first in range(count):
        follow[1 + 2 * first : 3 + 2 * first] = np.where(np.arange(count) == first, 1 + 2 * first, 2 + 2 * first)
    states = ["start", *(f"{first}{last}" for first in range(count) for last in ("=", "/"))]
    output = np.array([1, *([1, 0] * count)])
    return Automaton(tuple(map(str, range(count))), tuple(states), ("no", "yes"), follow, 0, output)


def ring(count):
    follow = np.stack([np.arange(count), (np.arange(count) + 1) % count], axis=1)
    names = tuple(map(str, range(count)))
    return Automaton(("0", "1"), names, names, follow, 0, np.arange(count))


AUTOMATA = {
    "one state": automaton_of("a*"),
    "parity": modulo(2),
    "Sum(5)": modulo(5),
    "(a|b)*abb": automaton_of("(a|b)*abb"),
    "numbers": automaton_of(r"[0-9]+(\.[0-9]+)?(e[0-9]+)?"),
    "EvenPair(5)": even_pair(5),
    "ring of 30": ring(30),
}


def layout(automaton):
    return place(len(automaton.states), dict.fromkeys(symbols_between(automaton), 0.1), automaton.start)


def apart(one, other):
    """Of the points of two curves, the nearest two."""
    return np.hypot(*(one[:, None] - other).T).min()


@pytest.mark.parametrize("name", AUTOMATA)
def test_circles_and_arrows_stay_clear(name):
    placed = layout(AUTOMATA[name])
    for one, other in combinations(placed.states, 2):
        assert np.hypot(*(one - other)) > 2.4 * placed.radius
    for (source, target), curve in placed.arrows.items():
        assert np.hypot(*(curve[0] - placed.states[source])) == pytest.approx(placed.radius, abs=0.01)
        assert np.hypot(*(curve[-1] - placed.states[target])) == pytest.approx(placed.radius, abs=0.01)
        others = np.delete(placed.states, [source, target], axis=0)
        assert not len(others) or apart(curve, others) > 1.1 * placed.radius
    for state, (curve, label) in placed.loops.items():
        others = np.delete(placed.states, state, axis=0)
        assert not len(others) or apart(np.array([*curve, label]), others) > placed.radius


@pytest.mark.parametrize("name", AUTOMATA)
def test_loops_ways_back_and_the_entry_are_lines_of_their_own(name):
    placed = layout(AUTOMATA[name])
    middle = slice(20, 41)  # of 61 points: ends of arrows meet at states
    for pair, curve in placed.arrows.items():
        if pair < pair[::-1] in placed.arrows:
            assert apart(curve[middle], placed.arrows[pair[::-1]][middle]) > 0.15
        for state in set(pair) & set(placed.loops):
            assert apart(curve[middle], placed.loops[state][0][middle]) > 0.05
    for curve, _ in placed.loops.values():
        assert apart(curve[middle], placed.entry[:41]) > 0.05


def test_an_automaton_in_parts():
    """States that no string leads to have their place, too."""
    parts = Automaton(("a",), ("x", "y", "z", "w"), ("0",), np.array([[1], [0], [3], [2]]), 0, np.zeros(4, dtype=int))
    placed = layout(parts)
    assert min(np.hypot(*(one - other)) for one, other in combinations(placed.states, 2)) > 0.6
    assert figure_bytes(draw_automaton(parts), "svg")


@pytest.mark.parametrize(
    ("places", "text"),
    [([0], "a"), ([0, 1], "a,b"), ([0, 1, 2], "a…c"), ([0, 2, 4], "a,c,e"), ([0, 2, 3, 4, 6], "a,c…e,g"),
     ([0, 1, 2, 3, 4, 6], "not f"), ([0, 2, 3, 5, 6], "not b,e"), ([0, 1, 2, 3, 4, 5, 6], "any")],
)  # fmt: skip
def test_symbols_of_an_arrow(places, text):
    assert short_symbols(automaton_of("[a-g]"), places) == text


def test_symbols_without_room():
    wide = replace(modulo(9), symbols=tuple(f"symbol {k}" for k in range(9)))
    assert short_symbols(wide, [0, 2, 4, 6]) == "4 symbols"


def transitions(automaton, untaken=(), wrong=(), margin=3.1e-10):
    rows = tuple(
        Transition(
            automaton.states[i], automaton.symbols[k], automaton.states[automaton.next[i, k]],
            int((i, k) not in untaken), int((i, k) in wrong), None if (i, k) in untaken else margin,
        )
        for i in range(len(automaton.states)) for k in range(len(automaton.symbols))
    )  # fmt: skip
    return Transitions(sum(row.taken for row in rows), len(wrong), 0, margin, 1e-9, rows)


def test_a_picture_of_a_run():
    automaton = automaton_of("(a|b)*abb")
    plain, same = (figure_bytes(draw_automaton(automaton, transitions(automaton)), "svg") for _ in range(2))
    assert plain == same
    assert b"dasharray" not in plain and RED.encode() not in plain
    assert b"dasharray" in figure_bytes(draw_automaton(automaton, transitions(automaton, untaken=[(2, 1)])), "svg")
    assert RED.encode() in figure_bytes(draw_automaton(automaton, transitions(automaton, wrong=[(2, 1)])), "svg")


def section(*given):
    return "".join(map(format_block, format_automaton(*given))).replace("\N{NO-BREAK SPACE}", " ")


def test_its_section():
    network = network_of(automaton_of("(a|b)*abb"), "it")
    alone = section(network)
    assert alone.startswith("<figure>") and "s2 by b to s3" in alone and "taken" not in alone
    beside = section(network, transitions(automaton_of("(a|b)*abb"), untaken=[(2, 1)]))
    assert "Transitions: 7 of 8 taken, smallest margin 310 pA" in beside and "31.0 % of the unit current" in beside
    cells = re.findall(r"<tr><td>(.*?)</td></tr>", beside)
    assert re.sub("<.*?>", " ", cells[5]).split() == ["s2", "b", "s3", "never", "taken"]
    assert "310 pA" in cells[0] and len(cells) == 8 and "wrong</th>" not in beside
    astray = section(network, transitions(automaton_of("(a|b)*abb"), wrong=[(2, 1)]))
    assert '<th class="n">wrong</th>' in astray
    counted = section(network, transitions(automaton_of("(a|b)*abb"), margin=None))
    assert "margin" not in counted and '<th class="n">taken</th>' in counted


def test_a_tangle_is_a_table():
    long = automaton_of("(a|b)*a(a|b)(a|b)(a|b)(a|b)")
    assert not is_drawn(long) and not is_drawn(modulo(10)) and is_drawn(ring(30)) and is_drawn(even_pair(5))
    page = section(network_of(long, "it"))
    assert "<svg" not in page and "<img" not in page and "s0 (start)" in page and page.count("<tr>") == 33


def test_names_that_are_no_markup():
    hostile = replace(modulo(2), symbols=(HOSTILE, "b"), states=(HOSTILE, "c"), labels=(HOSTILE, "d"))
    page = section(network_of(hostile, "it"), transitions(hostile))
    assert "<script" not in page and "&lt;script" in page


def test_a_network_without_one(make_network):
    assert format_automaton(make_network(3)) == ()


def test_in_words():
    assert describe_automaton(modulo(2)) == (
        "States with their outputs: 0 (0), 1 (1). Start 0. 0 by 0 to 0; 0 by 1 to 1; 1 by 0 to 1; 1 by 1 to 0."
    )


@pytest.fixture(scope="module")
def parity(technology, calibration):
    """A design, and a string that takes every transition."""
    x, lengths = one_hot(2, tour(modulo(2), 9))
    design = compile_network(network_of(modulo(2), "parity"), technology, calibration)
    return design, TestSet(x, np.zeros(1, dtype=np.int64), lengths, np.arange(1))


@pytest.mark.ngspice
def test_the_page_of_a_comparison(parity, tmp_path):
    """An engine that measures no margins: how often each transition was taken."""
    found = run_comparison(*parity, Run(tmp_path), lambda done, total: None)
    assert say_transitions(found.transitions) == "4 of 4 taken"
    kept = json.loads((tmp_path / "comparison.json").read_text())["transitions"]
    assert (kept["taken"], kept["wrong"], kept["astray"], kept["margin_a"]) == (4, 0, 0, None)
    assert kept["rows"][1] == {"state": "0", "symbol": "1", "next": "1", "taken": 1, "wrong": 0, "margin_a": None}
    page = (tmp_path / "report.html").read_text()
    assert page.index("<h2>The automaton</h2>") < page.index("1 by 1 to 0") < page.index("<h2>One inference")


def test_the_page_of_chips(parity, make_store, tmp_path):
    make_store(tmp_path / "chips", Trial(*parity, VariationPlan("local", 0, 2)), "state_agreement>=1")
    page = format_pages([chip_page(study_chips(tmp_path / "chips", waveforms=False))])
    section = page.partition("<h2>The automaton</h2>")[2].partition("<h2>")[0]
    assert "1 by 1 to 0" in section and page.count("1 by 1 to 0") == 1
