"""Every sample starts where the network rests: one deck for all of them, and the same states, readout and power."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.design import compile_network, inference_deck, read_plan
from cosim.engines.ngspice import rest
from cosim.engines.ngspice.session import run_deck
from cosim.engines.outcome import Failure, FailureKind
from cosim.simulation.inference import read_inference, run_inference

FRAMES = 3


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(11, widths=(3,), outputs=2), technology, calibration)


@pytest.fixture(scope="module")
def decks(design):
    inputs = np.random.default_rng(7).uniform(size=(2, FRAMES, 3))
    return [inference_deck(design, x) for x in inputs]


def test_all_samples_rest_at_one_point(decks, design):
    assert decks[0] != decks[1]
    still = rest.resting(decks[0])
    assert still == rest.resting(decks[1])
    assert "pwl(" not in still
    dark = inference_deck(design, np.zeros((FRAMES, 3)))  # inputs that never move are dc sources from the start
    assert "iin_0_p in_0_p 0 dc " in dark and rest.resting(dark) == still
    assert still.endswith(".save all\n.tran 1e-05 1e-05\n.end\n")
    brighter = replace(design, assembly=replace(design.assembly, preset=("xnet.a",)))
    assert rest.resting(inference_deck(brighter, np.zeros((FRAMES, 3)))) != still


def test_long_staircases_are_read_across_folded_lines():
    deck = "i1 a 0 pwl(0e+00\n+ 2.5e-09 1e-03 2.5e-09\n+ 2e-03 7e-09)\n.save v(a)\n+ v(b)\n.tran 1e-05 1e-02\n.end\n"
    assert rest.resting(deck) == "i1 a 0 dc 2.5e-09\n.save all\n.tran 1e-05 1e-05\n.end\n"


def test_started_deck_keeps_its_analysis_and_its_preset():
    deck = ".options reltol=1e-04 bypass=0\n.ic v(y)=1.8e+00\n.tran 1e-05 1e-02\n.end\n"
    expected = ".options reltol=1e-04 bypass=1\n.ic v(y)=1.8e+00\n.nodeset v(x)=3e-01\n.tran 1e-05 1e-02\n.end\n"
    assert rest.started(deck, {"x": 0.3}) == expected


@pytest.mark.ngspice
def test_found_once_and_the_same_results(decks, design, monkeypatch):
    """States equal; readout within the 0.002 i_unit rms that bypass costs, times 5 for the largest of 12."""
    ran = []
    rest._rest.cache_clear()
    monkeypatch.setattr(rest, "run_deck", lambda deck: ran.append(deck) or run_deck(deck))
    plan = read_plan(design, FRAMES)
    for deck in decks:
        found, alone = run_inference(deck, plan), read_inference(run_deck(deck), deck, plan)
        np.testing.assert_array_equal(found.states, alone.states)
        np.testing.assert_allclose(found.readout, alone.readout, atol=0.01 * design.i_unit)
        assert found.power_w == pytest.approx(alone.power_w, rel=1e-3, abs=0)
    assert ["\n.tran 1e-05 1e-05\n" in deck for deck in ran] == [True, False, False]


@pytest.mark.ngspice
def test_a_network_without_a_resting_point_runs_on_its_own(decks, design, monkeypatch):
    def unsettled(deck):
        return (
            Failure(FailureKind.CONVERGENCE, "gmin stepping failed", deck)
            if "\n.tran 1e-05 1e-05\n" in deck
            else run_deck(deck)
        )

    rest._rest.cache_clear()
    monkeypatch.setattr(rest, "run_deck", unsettled)
    plan = read_plan(design, FRAMES)
    found = run_inference(decks[0], plan)
    rest._rest.cache_clear()
    np.testing.assert_array_equal(found.states, read_inference(run_deck(decks[0]), decks[0], plan).states)


@pytest.mark.ngspice
def test_a_failure_carries_the_deck_as_it_was_given(decks):
    broken = decks[0].replace(".options", "m1 vdd vdd 0 0 no_such_model w=1e-06 l=1e-06\n.options", 1)
    failure = rest.run_from_rest(broken)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.deck) == (FailureKind.DECK, broken)
