"""The reflector's states and thresholds by its equations: every state, every update, and both ends."""

import numpy as np
import pytest

from cosim.units.comparator import WindowFactors
from cosim.units.counter import CounterPins
from cosim.units.kind import CellEquations
from cosim.units.reflector import Reflector

BITS = 3


@pytest.fixture
def unit():
    return Reflector("layer0.0", "layer0", 0, 0, 0.5, -2.0, 0.5, 0.9, 0.6, 0.0, first=3, bits=BITS)


@pytest.fixture
def cell(calibration):
    zero = np.zeros(1)
    pins = CounterPins(0.9e-9, 0.6e-9, i_keep=0.12e-9, i_gains=(0.5e-9,))
    return CellEquations((0.9e-9, 0.6e-9, 0.5e-9), pins, WindowFactors(), calibration, True, (zero, zero))


def test_every_state_and_update(unit, cell):
    """m becomes S - m, or -1 - m where 1 - m lies above the range, and no update keeps it."""
    middle, most = 2 ** (BITS - 1), 2**BITS - 1
    for start in range(most + 1):
        for sign, candidate in ((1, 1.2e-9), (0, 0.75e-9), (-1, 0.3e-9)):
            begun = CellEquations(**{**vars(cell), "initial_states": np.array([start])})
            m = start - middle
            wanted = m if sign == 0 else sign - m if sign - m < middle else -1 - m
            assert unit.compute_states(begun, np.array([[candidate]]))[0, 0] == wanted + middle


def test_both_thresholds_count_in_every_state(unit, cell):
    """In state 0 an update downwards changes it too, to the highest state."""
    found = unit.switching_thresholds(cell, ())
    assert [one.item() for one in found.while_off] == [0.9e-9, 0.6e-9]
    assert [one.item() for one in found.while_on] == [0.9e-9, 0.6e-9]
    assert found.own_devices
