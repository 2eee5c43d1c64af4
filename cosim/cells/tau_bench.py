"""Bench of the gated tau-cell: a candidate and a gate current for every frame, and a pulse in each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.cells.benches import supply_of
from cosim.cells.mirror import INPUT_DIODE, input_diode
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.cells.tau_cell import TAU_CELL_GATED, tau_cell_gated
from cosim.circuit.bench import Bench, DrainCurrent, Tolerances, Tran
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source
from cosim.circuit.waveforms import Timing, reset_waveform, square, staircase
from cosim.technology.types import Technology

STATE_DIODE = "cell.diode"
STEPS_A_FRAME = 200
_TOLERANCES = Tolerances(reltol=2e-5, trtol=5.0)
Array = NDArray[np.float64]


@dataclass(frozen=True)
class TauDrive:
    """Inputs of a gated tau-cell's bench.

    A cell of a capacitance in F and a trim, and what it gets: a candidate and a gate current in every frame, A, and a
    pulse from and to fractions of it.
    """

    capacitance: float
    trim: float
    candidates: Array
    gates: Array
    pulse: tuple[float, float]
    timing: Timing = Timing()


def tau_cell_bench(technology: Technology, units: int, drive: TauDrive) -> Bench:
    """Return a bench that tests a gated tau-cell in its frames. Saves the current of its state's diode."""
    timing, frames = drive.timing, len(drive.candidates)
    moments = [0.4 * timing.start, *timing.moments(frames, *drive.pulse)]
    _, low = square(technology.supply, 1.0, moments, timing)
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("in", "i", "cand", GROUND, staircase(drive.candidates, 0.0, timing)),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        Source("gate", "i", "gate_p", GROUND, staircase(drive.gates, 0.0, timing)),
        Instance("gate", ("gate_p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Source("pulseb", "v", "pulseb", GROUND, low),
        Source("resetb", "v", "resetb", GROUND, reset_waveform(technology.supply, timing)),
        Instance("cell", ("cand", "gate_p", "out", "pulseb", "resetb", "vdd"), TAU_CELL_GATED),
    )
    cell = tau_cell_gated(technology, units, drive.capacitance, drive.trim)
    blocks = input_diode(technology, units), candidate_diode(technology), cell
    run = Tran(timing.t_step / STEPS_A_FRAME, timing.start + frames * timing.t_step)
    circuit = Circuit("tau-cell bench", blocks, elements)
    return Bench(circuit, technology, run, (DrainCurrent(STATE_DIODE),), _TOLERANCES)
