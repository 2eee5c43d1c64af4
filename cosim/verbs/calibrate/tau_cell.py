"""Calibration of the gated tau-cell: its gain, its rate and its leak, at 1 nA per unit and frames of 10 ms."""

import math

import numpy as np
from numpy.typing import NDArray

from cosim.cells.benches import STATE_DIODE, TauDrive, tau_cell_bench
from cosim.cells.tau_cell import gate_charge
from cosim.circuit.waveforms import LAST_CLOSE, Timing
from cosim.engines.engine import Waveforms
from cosim.engines.simulation.single import run_bench
from cosim.technology.calibration import Own
from cosim.technology.types import Technology
from cosim.units.mingru import GATED_SHARE
from cosim.units.sizing import PULSE_BEGIN, PULSE_END
from cosim.verbs.calibrate.fingerprint import POINTS

PULSE = LAST_CLOSE + PULSE_BEGIN, LAST_CLOSE + PULSE_END
_UNIT, _OPEN, _HOLD = 1e-9, 8e-9, 1.0  # A; A, a gate that takes over all; s, a frame long enough to leak in
_HELD = 1.1, 1.75  # of a frame, between which a state leaks
Array = NDArray[np.float64]
Cell = tuple[float, float]  # capacitance, trim


def fit_tau_cell(technology: Technology, units: int, simulator: str) -> Own:
    """Measure the fields of `cosim.units.mingru.TauFit`."""
    nominal = technology.pfet.slope_factor * technology.thermal_voltage
    charge = gate_charge(_UNIT, units, GATED_SHARE * Timing().t_step)
    trim = float(measure_gains(technology, units, (charge / nominal, 1.0), np.array([_UNIT]), simulator)[0])
    cell, gates = (charge / nominal, trim), np.array(POINTS.tau_gates)
    rates = measure_rates(technology, units, cell, gates, simulator)
    middle = float(np.interp(math.log(POINTS.tau_gate), np.log(gates), rates))
    swing = nominal / middle
    cell, candidates = (charge / swing, trim), np.array(POINTS.tau_candidates)
    gains = measure_gains(technology, units, cell, candidates, simulator)
    leak = measure_leak(technology, units, (*cell, swing), simulator)
    return {
        "swing": (swing,), "trim": (trim,), "candidates": tuple(candidates.tolist()), "gains": tuple(gains.tolist()),
        "gates": tuple(gates.tolist()), "rates": tuple((rates / middle).tolist()), "leak": (leak,),
    }  # fmt: skip


def measure_gains(technology: Technology, units: int, cell: Cell, candidates: Array, simulator: str) -> Array:
    """Measure the settled state over the candidate, for each candidate."""
    drives = np.repeat(candidates, 2)
    states = _states(technology, units, cell, (drives, np.full(len(drives), _OPEN)), simulator)
    return states[1::2] / candidates


def measure_rates(technology: Technology, units: int, cell: Cell, gates: Array, simulator: str) -> Array:
    """Measure the rate of a frame over gate / 1 nA, the mean over steps up and down, for each gate."""
    drives, opened = list[float](), list[float]()
    for gate in gates.tolist():
        for begin, end in POINTS.tau_steps:
            drives += [begin, begin, end, end]
            opened += [_OPEN, _OPEN, gate, _OPEN]
    found = _states(technology, units, cell, (np.array(drives), np.array(opened)), simulator)
    _, first, moved, last = found.reshape(len(gates), len(POINTS.tau_steps), 4).transpose(2, 0, 1)
    z = (moved - first) / (last - first)
    return np.asarray(-np.log(1 - z).mean(axis=1) / (gates / _UNIT), dtype=np.float64)


def measure_leak(technology: Technology, units: int, cell: tuple[float, float, float], simulator: str) -> float:
    """Measure the current onto the capacitor while nothing gates it, ampere, from how a state of 1 nA decays.

    cell: capacitance, trim and n U_T.
    """
    capacitance, trim, swing = cell
    timing = Timing(t_step=_HOLD)
    drive = TauDrive(capacitance, trim, np.array([_UNIT, _UNIT]), np.array([_OPEN, 0.0]), PULSE, timing)
    waves = run_bench(tau_cell_bench(technology, units, drive), "tau-cell", simulator)
    early, late = (_current(waves, timing.start + moment * _HOLD) for moment in _HELD)
    return float(capacitance * swing * np.log(early / late) / ((_HELD[1] - _HELD[0]) * _HOLD))


def _states(technology: Technology, units: int, cell: Cell, currents: tuple[Array, Array], simulator: str) -> Array:
    """Measure the state's current in every frame, (frames,), ampere."""
    waves = run_bench(tau_cell_bench(technology, units, TauDrive(*cell, *currents, PULSE)), "tau-cell", simulator)
    return _current(waves, Timing().sample_times(len(currents[0])))


def _current(waves: Waveforms, moments: Array | float) -> Array:
    return np.asarray(np.interp(moments, waves.time, np.abs(waves.drain(STATE_DIODE))), dtype=np.float64)
