"""Calibration of a register's level: the value that turns it in a frame, beyond the current of its turn."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.cells.register_bench import LEVEL_STATE, LevelDrive, level_bench
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.waveforms import LAST_CLOSE, Timing
from cosim.engines.simulation.single import run_bench
from cosim.technology.calibration import Own
from cosim.technology.types import Technology
from cosim.units.register import KEEP, RELEASE
from cosim.units.timing import PULSE_BEGIN, PULSE_END
from cosim.verbs.calibrate.fingerprint import POINTS

_PULSE = LAST_CLOSE + PULSE_BEGIN, LAST_CLOSE + PULSE_END
_UNIT = 1e-9  # A, of what keeps a level and ends a write
Array = NDArray[np.float64]


def fit_level(technology: Technology, units: int, simulator: str) -> Own:
    """Measure the fields of `cosim.units.register.LevelFit`: means of coming from far below and from far above."""
    shifts = [
        float(np.mean([measure_turn(technology, units, i_turn, far, simulator) for far in (0.0, 2.0)]))
        for i_turn in POINTS.level_turns
    ]
    return {"turns": POINTS.level_turns, "shifts": tuple(shifts)}


def measure_turn(technology: Technology, units: int, i_turn: float, far: float, simulator: str) -> float:
    """Measure how much a value must exceed `i_turn` to turn a level on, A; every value before it was far * i_turn.

    First in coarse steps, then between two of them. Raises SimulationError where no value turns it.
    """
    reach = POINTS.level_reach[0] + POINTS.level_reach[1] * i_turn
    below, above = -reach, reach
    for _ in range(POINTS.level_rounds):
        tried = np.linspace(below, above, POINTS.level_steps)
        values = np.full(2 * len(tried) + 1, far * i_turn)
        values[1::2] = i_turn + tried
        on = _written(technology, units, i_turn, values, simulator)[1::2]
        turned = [k for k, (before, after) in enumerate(pairwise(on.tolist())) if after and not before]
        if not turned:
            raise SimulationError(
                f"a register's level at a turn of {i_turn:.3g} A does not turn within {reach:.3g} A of it"
            )
        below, above = tried[turned[0]], tried[turned[0] + 1]
    return float(below + above) / 2


def _written(technology: Technology, units: int, i_turn: float, values: Array, simulator: str) -> NDArray[np.bool_]:
    """Tell for each value but the last whether the level is on half a frame later, before the next is written.

    values: ampere, one each frame.
    """
    drive = LevelDrive(i_turn, KEEP * _UNIT, RELEASE * _UNIT, values, _PULSE)
    waves = run_bench(level_bench(technology, units, drive), "register", simulator)
    moments = Timing().moments(len(values) - 1, 1.5)
    return np.asarray(np.interp(moments, waves.time, waves.voltage(LEVEL_STATE)) > STATE_LEVEL * technology.supply)
