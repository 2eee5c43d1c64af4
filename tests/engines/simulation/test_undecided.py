"""Decisions that an error of the engine could turn."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure, FailureKind, Inference, Run
from cosim.engines.simulation import audit
from cosim.engines.simulation.audit import TIE, TIGHTER, AuditableRun, find_undecided
from cosim.tasks.testset import TestSet
from cosim.verbs.trust import say_undecided

FRAMES, CELLS = 4, 3


@pytest.fixture
def design(make_network, technology, calibration):
    return compile_network(make_network(3, widths=(CELLS,), outputs=2), technology, calibration)


@pytest.fixture
def test_set():
    rng = np.random.default_rng(3)
    return TestSet(rng.uniform(size=(4, FRAMES, 3)), np.zeros(4, int), np.full(4, FRAMES), np.arange(4))


def inference(margin, latch=1.0, state=0):
    states = np.full((FRAMES, CELLS), state, np.int16)
    return Inference(states, np.zeros((FRAMES, 2)), 1e-9, np.empty((0, 0)),
                     np.full((FRAMES, CELLS), margin), np.full((FRAMES, CELLS), latch))  # fmt: skip


def test_margins_against_what_tighter_steps_change(design, test_set, monkeypatch):
    """Tables may err 2 thousandths of the unit current, steps 1: 2.5 are under the limit, 4 are not."""
    asked, again = [], []

    def tighter(benches, plans, run, progress):
        asked.extend(bench.tolerances.reltol for bench in benches)
        return again

    monkeypatch.setattr(audit, "run_inferences", tighter)
    unit = 1e-3 * design.i_unit
    far, near, gone = inference(4 * unit), inference(2.5 * unit), inference(np.inf, 0.01)
    again[:] = [inference(5 * unit)] * 3
    run = Run(engine="batch")
    elsewhere = replace(near, elsewhere="ngspice: a reason")
    found = find_undecided(AuditableRun(design, test_set, [far, far, far, elsewhere], run), lambda done, total: None)
    assert asked == pytest.approx([1e-4 * TIGHTER] * 3)
    assert (found.repeated, found.error, found.limit) == (3, pytest.approx(unit), pytest.approx(3 * unit))
    assert TIE * design.i_unit == pytest.approx(2 * unit)
    assert (found.decisions, found.near, found.samples) == (3 * FRAMES * CELLS, 0, 0)
    again[:] = [inference(1.5 * unit), inference(3 * unit), gone]  # of the least certain one first
    failed = Failure(FailureKind.CRASH, "", "")
    found = find_undecided(AuditableRun(design, test_set, [far, near, gone, failed], run), lambda done, total: None)
    assert (found.decisions, found.near) == (2 * FRAMES * CELLS, FRAMES * CELLS)
    assert (found.latches, found.floating, found.samples) == (3 * FRAMES * CELLS, FRAMES * CELLS, 2)
    text = " ".join(say_undecided(found))
    assert "12 of 24 decisions (50.00 %)" in text and "12 of 36 latches (33.33 %) within 90 mV" in text
    assert say_undecided(None) == []


def test_what_follows_another_state_is_no_error_of_steps(design, test_set, monkeypatch):
    turned = inference(9e-12)
    turned.states[1, 0] = 1
    monkeypatch.setattr(audit, "run_inferences", lambda benches, *rest: [turned for _ in benches])
    before = inference(8e-12)
    before.margins[2:] = 1.0
    found = find_undecided(AuditableRun(design, test_set, [before] * 4, Run(engine="batch")), lambda done, total: None)
    assert found.error == pytest.approx(1e-12)
