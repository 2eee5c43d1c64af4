"""An audit counts what differs outside ties and what follows from them; half of its samples are the least certain."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure, FailureKind, Inference
from cosim.engines.simulation.audit import HOVERING, TIE, choose, judge, least_margin, merge
from cosim.verbs.trust import format_refusal, say_audit

FRAMES, CELLS = 5, 4


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(11, widths=(CELLS,), outputs=2), technology, calibration)


def inference(margin=1e-10):
    states = np.random.default_rng(1).integers(0, 2, (FRAMES, CELLS)).astype(np.int16)
    return Inference(states, np.zeros((FRAMES, 2)), 1e-7, margins=np.full((FRAMES, CELLS), margin))


def flipped(found, *places):
    states = found.states.copy()
    for place in places:
        states[place] ^= 1
    return replace(found, states=states)


def test_equal_states_pass(design):
    found = judge(design, [inference()] * 3, [inference()] * 3)
    assert (found.instances, found.bits, found.ties, found.wrong, found.worst) == (3, 60, 0, 0, None)
    assert found.passed and found.agreement == 1.0 and found.limit == TIE * design.i_unit
    assert "passed: 3 in ngspice" in say_audit(found)[0]
    assert say_audit(None) == []


def test_one_wrong_state_of_sixty_is_refused(design):
    ours = inference()
    ours.margins[2, 1] = 3e-11
    found = judge(design, [ours] * 3, [ours, flipped(ours, (2, 1)), ours])
    assert (found.bits, found.wrong, found.worst) == (60, 1, 3e-11)
    assert not found.passed and found.agreement == 1 - 1 / 60
    lines = say_audit(found)
    assert "REFUSED" in lines[0]
    said = " ".join(line.strip() for line in lines)
    assert "98.333 % of 60 states equal, 1 wrong, up to 30 pA from a threshold" in said
    assert "99.9 % must be. The results are in there, marked as refused" in format_refusal(found, "there")


def test_a_tie_is_measured_by_the_larger_of_bias_and_input_currents(design):
    """In a slow corner the reference gives the pins 0.9 of their currents, and the inputs keep theirs."""
    ours = inference()
    ours.margins[2, 1] = 0.95 * TIE * design.i_unit
    other = flipped(ours, (2, 1))
    reference = replace(design.nominal, bias_scale=0.9)
    tracking = replace(design.nominal, bias_scale=0.9, input_scale=0.9)
    assert judge(design, [ours], [other], reference).wrong == 0
    assert judge(design, [ours], [other], tracking).wrong == 1
    assert judge(design, [ours], [other], replace(design.nominal, bias_scale=1.1)).limit == 1.1 * TIE * design.i_unit


def test_a_tie_may_turn_and_what_follows_is_not_compared(design):
    """The tie in frame 2 turned: frames 2 to 4 have 12 states, of which one is a tie; frame 0 has a tie that held."""
    ours = inference()
    ours.margins[2, 1] = ours.margins[0, 0] = 0.5 * TIE * design.i_unit
    found = judge(design, [ours], [flipped(ours, (2, 1), (2, 3), (4, 0))])
    assert (found.bits, found.ties, found.turned, found.behind, found.wrong) == (20, 2, 1, 11, 0)
    assert found.passed
    before = judge(design, [ours], [flipped(ours, (2, 1), (1, 3))])
    assert (before.wrong, before.passed) == (1, False)
    assert before.agreement == pytest.approx(1 - 1 / 7)


def test_a_latch_that_hovers_is_a_tie_and_excuses_what_it_turns(design):
    """0.1 V of 1.8 V from its threshold when read: what differs in its frame and behind it is not compared. Where
    nothing does, the hovering state alone counts as a tie."""
    ours = replace(inference(), latches=np.full((FRAMES, CELLS), 0.5))
    ours.latches[2, 1] = 0.1
    quiet = judge(design, [ours], [ours])
    assert (quiet.ties, quiet.turned, quiet.behind, quiet.wrong) == (1, 0, 0, 0)
    found = judge(design, [ours], [flipped(ours, (2, 3), (3, 3))])
    assert (found.ties, found.turned, found.behind, found.wrong) == (1, 0, 11, 0)
    ours.latches[2, 1] = HOVERING * design.nominal.technology.supply + 1e-9
    assert judge(design, [ours], [flipped(ours, (2, 3), (3, 3))]).wrong == 2


def test_without_margins_nothing_is_a_tie(design):
    ours = replace(inference(), margins=np.empty((0, 0)))
    found = judge(design, [ours], [flipped(ours, (0, 0))])
    assert (found.ties, found.wrong, found.worst) == (0, 1, None)
    assert least_margin(ours) == np.inf and least_margin(inference(2e-12)) == 2e-12


def test_what_failed_is_not_compared(design):
    failure = Failure(FailureKind.CONVERGENCE, "too small", "* deck")
    found = judge(design, [inference()] * 2, [failure, inference()])
    assert (found.instances, found.failed, found.bits, found.passed) == (2, 1, 20, True)
    nothing = judge(design, [inference()], [failure])
    assert (nothing.bits, nothing.passed) == (0, False)
    assert found.reason == nothing.reason == merge([judge(design, [], []), nothing], design.technology).reason
    assert (
        say_audit(found)[0]
        == "passed: 2 in ngspice, 1 failed, the first: the simulator found no convergence: too small"
    )
    assert say_audit(nothing) == [
        "REFUSED: all 1 in ngspice failed, so nothing was compared: the simulator found no convergence: too small"
    ]
    assert format_refusal(nothing, "there") == (
        "refused by its audit: all 1 simulations in ngspice failed, so nothing was compared; the first: the simulator "
        "found no convergence: too small. The results are in there, marked as refused; give each more time with "
        "--timeout, where that was it, or leave the audit out with --audit 0"
    )
    assert least_margin(failure) == np.inf


def test_what_ngspice_ran_itself_needs_no_audit(design):
    """Nothing to audit passes and says so; samples that failed in ngspice do not."""
    found = judge(design, [], [])
    assert (found.instances, found.bits, found.passed) == (0, 0, True)
    assert say_audit(found) == ["nothing to audit: ngspice ran every sample"]


def test_half_are_the_least_certain_and_the_others_random():
    certainty = np.linspace(1.0, 2.0, 100)
    certainty[[7, 50]], certainty[[3, 60]] = np.nan, (0.1, 0.2)
    chosen = choose(certainty, 20, 0).tolist()
    assert len(set(chosen)) == 20 and not {7, 50} & set(chosen)
    assert chosen[:10] == [3, 60, 0, 1, 2, 4, 5, 6, 8, 9]
    assert chosen == choose(certainty, 20, 0).tolist()
    assert max(chosen[10:]) > 30 and chosen[10:] != choose(certainty, 20, 1).tolist()[10:]
    assert sorted(choose(certainty, 1000, 0).tolist()) == [k for k in range(100) if k not in (7, 50)]
    unknown = choose(np.full(100, np.inf), 20, 0)
    assert len(set(unknown.tolist())) == 20 and unknown.max() > 50
