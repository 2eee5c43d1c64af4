"""The candidates at which a decision turns, which margins are measured from: the same as those it decides by."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import cosim
from cosim.base.resources import trained_network_path
from cosim.engines.behavioral.evaluate import cell_of
from cosim.network.ir.nodes import ThresholdUnit
from cosim.units.ladder import Ladder, LadderFactors
from cosim.units.schmitt import Schmitt, SchmittFactors
from cosim.units.table import unit_of
from cosim.units.toggle import ToggleFactors

FACTORS = {
    "Schmitt": SchmittFactors(compared=1.03, thresh=1.02, width=0.98),
    "Ladder": LadderFactors(upper=1.04, lower=0.97),
    "Toggle": ToggleFactors(upper=0.95),
}


def memories(name):
    design = cosim.load(str(trained_network_path(name))).compile("generic180").design
    return [(node, design) for node in design.graph.of(ThresholdUnit)]


def state_after(node, cell, candidates):
    return int(unit_of(node).compute_states(cell, np.array([candidates]))[0, -1])


@pytest.mark.parametrize("name", ["digits_d4", "digits_native_d8", "parity_d2"])
def test_a_decision_turns_there_and_nowhere_else(name):
    """With the state 0 before it, and 1; on its highest level a ladder's upper threshold does nothing."""
    for node, design in memories(name):
        cell = cell_of(design.graph, node, design.calibration, FACTORS[type(node).__name__])
        turns, zeros = unit_of(node).switching_thresholds(cell, ()), [0.0] * (node.most + 1)
        for before, few in ((zeros, turns.while_off), ([*zeros, 1e-6], turns.while_on)):
            started = state_after(node, cell, before)
            assert started == len(before) - len(zeros)
            edges = sorted(float(one) for one in few)
            probes = [0.0, *(edge * (1 + side) for edge in edges for side in (-1e-9, 1e-9)), 1e-6]
            found = [state_after(node, cell, [*before, probe]) for probe in probes]
            changed = [at for at, (one, other) in enumerate(pairwise(found)) if one != other]
            topmost = isinstance(node, Ladder) and started == node.most
            assert changed == [2 * k + 1 for k in range(len(edges) - topmost)]


def test_thresholds_that_move_follow_their_lines():
    moving = [(node, design) for node, design in memories("digits_signed_input_d8") if isinstance(node, Schmitt)]
    assert any(design.graph.into(node.name, "beta") for node, design in moving)
    for node, design in moving:
        cell = cell_of(design.graph, node, design.calibration, FACTORS["Schmitt"])
        bias = cell.bias
        beta = np.array([0.02e-9, 0.1e-9, 0.2e-9])
        pushed = design.calibration.mirror.pushed(beta)
        found = unit_of(node).switching_thresholds(cell, (bias.i_thresh + pushed, bias.i_width + 2 * pushed))
        assert (found.while_on[0] > 0).any()
        for k, one in enumerate(beta):
            if found.while_on[0][k] <= 0:  # no candidate resets it then
                continue
            still = replace(cell, beta=(np.float64(one), np.float64(one)))
            for before, edge in (([], found.while_off[0][k]), ([1e-6], found.while_on[0][k])):
                below, above = (state_after(node, still, [*before, edge * (1 + side)]) for side in (-1e-9, 1e-9))
                assert (below, above) == (0, 1)


def test_all_frames_at_once_are_one_after_the_other():
    """Candidates on thresholds, between and beyond them; from the reset and from states in front."""
    node, design = next((node, design) for node, design in memories("digits_d4") if isinstance(node, Schmitt))
    still = cell_of(design.graph, node, design.calibration, ideal=True)
    rise, fall, _ = still.set_points
    rng = np.random.default_rng(2)
    candidates = rng.choice([0.0, fall, (rise + fall) / 2, (rise + fall) / 2, rise, 2 * rise], (40, 30))
    for cell in (still, replace(still, initial_states=rng.integers(0, 2, 40).astype(np.int16))):
        found, state = unit_of(node).compute_states(cell, candidates), cell.initial_states
        for t in range(candidates.shape[1]):
            state = unit_of(node).compute_states(replace(cell, initial_states=state), candidates[:, t : t + 1])[:, 0]
            assert np.array_equal(found[:, t], state)
        assert found.dtype == np.int16 and 0 < found.mean() < 1
