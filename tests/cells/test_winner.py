"""Winner-take-all in ngspice: the largest of n currents has the bias, within a stage's time."""

import numpy as np
import pytest

from cosim.cells.benches import winner_bench
from cosim.cells.winner import winner
from cosim.engines.simulation.inference import run_bench

BIAS, STAGE = 1e-9, 2e-3  # s; a quarter of a frame of 10 ms less its edges


@pytest.mark.ngspice
@pytest.mark.parametrize(("inputs", "level"), [(2, 0.1e-9), (2, 4e-9), (8, 4e-9)])
def test_a_step_of_the_grid_decides(technology, inputs, level):
    """1/8 nA, at 4 nA 3 %. M1 has 2.9 %/V at most, so its node would swing by a volt and stands at the ground instead:
    0.3 V below the winner's, 8 e-folds of M2, 4e-4. What the source's conductance makes of `common`, which is 0.1 V
    higher at 4 nA than at 1 nA, is 0.3 %."""
    turns = np.arange(4) % inputs
    currents = level + 0.125e-9 * np.eye(inputs)[turns]
    waves = run_bench(winner_bench(technology, BIAS, currents, STAGE), "winner")
    ends = np.searchsorted(waves.time, STAGE * (np.arange(4) + 0.99))
    out = np.abs([waves.through(f"out{k}")[ends] for k in range(inputs)]).T / BIAS
    expected = np.eye(inputs)[turns]
    np.testing.assert_allclose(out, expected, rtol=0, atol=4e-3)


def test_two_devices_an_input(technology):
    cell = winner(technology, 5)
    assert len(cell.elements) == 2 * 5 + 1
    assert {mos.match for mos in cell.elements} == {"common", "follower", "bias"}
