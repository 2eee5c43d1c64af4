"""Learning: automata whose table is hidden come back whole; a network of one, too; and what is none."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.automata.automaton import Automaton, minimise, modulo
from cosim.automata.learn import learn, network_oracle
from cosim.automata.network import network_of
from cosim.automata.regex import automaton_of
from cosim.base.errors import InputError


def strings(symbols, seed=0, count=300, longest=30):
    rng = np.random.default_rng(seed)
    return [tuple(rng.integers(0, symbols, rng.integers(1, longest + 1)).tolist()) for _ in range(count)]


def oracle_of(automaton):
    def say(words):
        return [tuple(automaton.output[automaton.run(np.array(word))].tolist()) for word in words]

    return say


@pytest.mark.parametrize("seed", range(12))
def test_a_hidden_table_is_found(seed):
    rng = np.random.default_rng(seed)
    states, symbols = 3 + seed, 2 + seed % 3
    names = tuple("abcd"[:symbols]), tuple(map(str, range(states))), ("x", "y")
    follow, said = rng.integers(0, states, (states, symbols)), rng.integers(0, 2, states)
    hidden = minimise(Automaton(*names, follow, 0, said))
    found, _, differing = learn(oracle_of(hidden), (hidden.symbols, hidden.labels), strings(symbols, seed), 64)
    assert differing == 0 and len(found.states) <= len(hidden.states)
    for word in strings(symbols, seed + 1, longest=200):
        places = np.array(word)
        said, right = (one.output[one.run(places)] for one in (found, hidden))
        np.testing.assert_array_equal(said, right)


@pytest.mark.parametrize("automaton", [modulo(5), automaton_of("(a|b)*a(a|b)(a|b)")], ids=["sum", "third last"])
def test_a_network_is_read(automaton):
    """Its states do not have to be seen: what it decides is enough."""
    network = network_of(automaton, "it")
    found, asked, differing = learn(
        network_oracle(network, "it"), (automaton.symbols, automaton.labels), strings(len(automaton.symbols)), 64
    )
    assert differing == 0 and len(found.states) == len(automaton.states)
    assert asked < 2000


def test_what_is_no_automaton_is_given_up():
    """Says whether there were more of the first symbol so far: no number of states is enough."""

    def say(words):
        return [tuple((np.cumsum(np.where(np.array(word) == 0, 1, -1)) > 0).astype(int).tolist()) for word in words]

    _, _, differing = learn(say, ("ab", ("no", "yes")), strings(2, longest=60), 12)
    assert differing > 0


def test_a_network_that_pools(late):
    network = late.counter(3)
    pooled = replace(network, readout=replace(network.readout, pooling="mean"))
    with pytest.raises(InputError, match="net.npz: readout.pooling must be last, not mean: .* --pooling last"):
        network_oracle(pooled, "net.npz")
