"""Calibration of all cells but mirror and 9T cell: comparators, decisions, register levels, DPI, gated tau-cells."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.cells.benches import (
    CLOSE,
    LEVEL_STATE,
    STATE_DIODE,
    ComparatorDrive,
    DpiDrive,
    LevelDrive,
    TauDrive,
    comparator_bench,
    decision_bench,
    dpi_bench,
    level_bench,
    tau_cell_bench,
)
from cosim.cells.dpi import dpi_capacitance, dpi_fall_time, dpi_rise_time
from cosim.cells.schmitt import STATE_LEVEL
from cosim.cells.tau_cell import gate_charge
from cosim.cells.window import COMPARED
from cosim.circuit.waveforms import LAST_CLOSE, Timing
from cosim.engines.engine import Waveforms
from cosim.engines.simulation.inference import run_bench
from cosim.technology.calibration import ComparatorFit, DpiFit, Own
from cosim.technology.types import Technology
from cosim.units.counter import KEEP
from cosim.units.ladder import TAU_SHARE, ladder_currents
from cosim.units.mingru import GATED_SHARE
from cosim.units.register import KEEP as LEVEL_KEEP
from cosim.units.register import RELEASE
from cosim.units.sizing import PULSE_BEGIN, PULSE_END
from cosim.verbs.calibrate.fingerprint import POINTS

BENCH = "calibration bench"  # what failed, in messages
LATE_PULSE = LAST_CLOSE + PULSE_BEGIN, LAST_CLOSE + PULSE_END
_EARLY_PULSE = CLOSE + PULSE_BEGIN, CLOSE + PULSE_END  # of a comparator's and a decision's bench
_UNIT, _OPEN, _HOLD = 1e-9, 8e-9, 1.0  # A; A, a gate that takes over all; s, a frame long enough to leak in
_HELD = 1.1, 1.75  # of a frame, between which a state leaks
Array = NDArray[np.float64]
Cell = tuple[float, float]  # capacitance, trim


def find_crossings(time: Array, values: Array, level: float) -> list[float]:
    """Return the times at which a waveform crosses a level in either direction; values are linear between samples."""
    above = values > level
    found = []
    for i in np.flatnonzero(above[1:] != above[:-1]):
        fraction = (level - values[i]) / (values[i + 1] - values[i])
        found.append(float(time[i] + fraction * (time[i + 1] - time[i])))
    return found


def fit_comparator(technology: Technology, simulator: str | None, *, upper: bool) -> ComparatorFit:
    """Measure a quantiser's upper or lower comparator: its threshold over the bias current, at several currents."""
    currents = POINTS.comparator_currents
    ratios = tuple(measure_comparator(technology, current, simulator, upper=upper) / current for current in currents)
    return ComparatorFit(currents, ratios)


def measure_comparator(
    technology: Technology, i_thresh: float, simulator: str | None = None, *, upper: bool = True
) -> float:
    """Measure the candidate, A, at which a quantiser's driver is halfway between two levels at the end of a pulse.

    The levels are retain and set for the upper comparator, reset and retain for the lower. The driver is read, not the
    decision itself: the gate that keeps the decision shifts it, by several pA of the candidate where a comparator has
    little gain. Every second frame puts the comparator into the opposite state, the frames in between try a row of
    candidates; the result is the mean over both states. Raises SimulationError where no candidate changes the decision.
    """
    sides = (0.5 * i_thresh, 1.5 * i_thresh)
    return float(np.mean([_decision(technology, i_thresh, side, simulator, upper=upper) for side in sides]))


def _decision(technology: Technology, i_thresh: float, prepare: float, simulator: str | None, *, upper: bool) -> float:
    """Find the candidate, A, at which a comparator's decision changes if every frame before has `prepare`, A."""
    currents = ladder_currents(1e-9)
    base = currents.i_reset

    def excess(candidates: Array) -> Array:
        drive = ComparatorDrive(candidates, base, currents.i_retain - base, _EARLY_PULSE, upper)
        waves = run_bench(comparator_bench(technology, i_thresh, drive), BENCH, simulator)
        above = waves.voltage("in") - waves.voltage("half")
        return np.interp(Timing().moments(len(candidates), _EARLY_PULSE[1]), waves.time, above)

    return _crossing(i_thresh, prepare, excess)


def _crossing(i_thresh: float, prepare: float, excess: Callable[[Array], Array]) -> float:
    """Find the candidate, A, at which a comparator's excess voltage is 0 in a frame after one of `prepare`, A.

    excess: function of the candidates of all frames, A -> excess in each frame, V. Raises SimulationError if none.
    """
    for span in POINTS.comparator_spans:
        tried = i_thresh * (1 + np.linspace(-span, span, POINTS.comparator_steps))
        candidates = np.stack([np.full(POINTS.comparator_steps, prepare), tried], axis=1).ravel()
        if crossings := find_crossings(tried, excess(candidates)[1::2], 0.0):
            return crossings[0]
    raise SimulationError(
        f"comparator at I_thresh {i_thresh:.3g} A did not change its decision within "
        f"{100 * POINTS.comparator_spans[-1]:.0f} % of that"
    )


def fit_decision(technology: Technology, simulator: str | None) -> Own:
    """Measure the candidates at which a counter's decision changes, as the fields of its `ComparatorFit`."""
    currents = POINTS.comparator_currents
    ratios = tuple(measure_decision(technology, current, simulator) / current for current in currents)
    return {"currents": currents, "ratios": ratios}


def measure_decision(technology: Technology, i_thresh: float, simulator: str | None = None) -> float:
    """Measure the candidate, A, at which a counter's latch may catch either decision when the pulse begins.

    It is the mean for coming from below and from above. Raises SimulationError where no candidate changes the decision.
    """

    def excess(candidates: Array) -> Array:
        bench = decision_bench(technology, i_thresh, KEEP * _UNIT, candidates, _EARLY_PULSE)
        waves = run_bench(bench, BENCH, simulator)
        above = waves.voltage(f"xdecision.{COMPARED}") - waves.voltage("half")
        return np.interp(Timing().moments(len(candidates), _EARLY_PULSE[0]), waves.time, above)

    return float(np.mean([_crossing(i_thresh, side * i_thresh, excess) for side in (0.5, 1.5)]))


def fit_dpi(technology: Technology, units: int, v_node: float, simulator: str | None) -> DpiFit:
    """Measure a DPI: the ratio I_g / I_tau for a gain of 1, and rise and fall times; v_node: V below the supply."""
    ratios = tuple(_dpi_ratio(technology, units, alpha, v_node, simulator) for alpha in POINTS.dpi_alphas)
    fit = DpiFit(TAU_SHARE, POINTS.dpi_alphas, ratios, 1.0, 1.0)
    rise, fall = measure_dpi_times(technology, units, fit, (0.5e-9, 10e-3), v_node, simulator)
    return replace(fit, rise=rise, fall=fall)


def _dpi_ratio(technology: Technology, units: int, alpha: float, v_node: float, simulator: str | None) -> float:
    """Find the ratio I_g / I_tau at which a DPI's output equals its input alpha, by the secant method."""
    i_tau = TAU_SHARE * alpha

    def output(ratio: float) -> float:
        return measure_dpi_output(technology, units, (alpha, i_tau, ratio * i_tau), v_node, simulator)

    ratios = [1.0, 1.05]
    outputs = [output(ratio) for ratio in ratios]
    for _ in range(POINTS.dpi_secants):
        slope = (outputs[-1] - outputs[-2]) / (ratios[-1] - ratios[-2])
        ratios.append(ratios[-1] + (alpha - outputs[-1]) / slope)
        outputs.append(output(ratios[-1]))
    return ratios[-1]


def measure_dpi_output(
    technology: Technology,
    units: int,
    currents: tuple[float, float, float],
    v_node: float,
    simulator: str | None = None,
) -> float:
    """Measure the settled output of a DPI, A; currents: (I_in, I_tau, I_g), A."""
    waves = run_bench(dpi_bench(technology, units, DpiDrive(*currents, 1e-15, 1e-4, 5), v_node), BENCH, simulator)
    return abs(float(waves.through("out")[-1]))


def measure_dpi_times(
    technology: Technology,
    units: int,
    fit: DpiFit,
    step: tuple[float, float],
    v_node: float,
    simulator: str | None = None,
) -> tuple[float, float]:
    """Measure a DPI's rise time (to 1 - 1/e) and fall time (to 1/e), each over the time by the ideal equation.

    The input steps from 1 pA to alpha and back. step: (alpha in A, tau in s).
    """
    alpha, tau = step
    i_tau, low = TAU_SHARE * alpha, 1e-12
    i_g = i_tau * fit.ratio(alpha)
    begin, back, end = tau, 12 * tau, 20 * tau
    edge = 1e-3 * tau
    steps = ((0.0, low), (begin, low), (begin + edge, alpha), (back, alpha), (back + edge, low))
    capacitance = dpi_capacitance(technology, tau, i_tau)
    waves = run_bench(
        dpi_bench(technology, units, DpiDrive(steps, i_tau, i_g, capacitance, end), v_node), BENCH, simulator
    )
    time, out = waves.time, np.abs(waves.through("out"))
    first, top = float(np.interp(begin, time, out)), float(np.interp(back, time, out))
    share = 1 - math.exp(-1)
    ups, downs = find_crossings(time, out, share * top), find_crossings(time, out, (1 - share) * top)
    if not ups or not downs:
        raise SimulationError(f"DPI of {technology.name} does not follow a step to {alpha:.3g} A, it ends at {top:.3g}")
    up, down = ups[0] - begin, downs[-1] - back
    up_ideal, down_ideal = dpi_rise_time(first, share * top, top, i_g), dpi_fall_time(top, (1 - share) * top)
    return up / (tau * up_ideal), down / (tau * down_ideal)


def fit_tau_cell(technology: Technology, units: int, simulator: str | None) -> Own:
    """Measure a tau-cell; return the fields of `cosim.units.mingru.TauFit`."""
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


def measure_gains(technology: Technology, units: int, cell: Cell, candidates: Array, simulator: str | None) -> Array:
    """Measure a tau-cell's settled state over its candidate, (candidates,); cell: (capacitance, trim)."""
    drives = np.repeat(candidates, 2)
    states = _states(technology, units, cell, (drives, np.full(len(drives), _OPEN)), simulator)
    return states[1::2] / candidates


def measure_rates(technology: Technology, units: int, cell: Cell, gates: Array, simulator: str | None) -> Array:
    """Measure a tau-cell's rate in one frame over gate current / 1 nA, (gates,); means over steps up and down.

    The rate is -ln(1 - z), z being the share of a step of the candidate that the state follows in one frame.
    """
    drives, opened = list[float](), list[float]()
    for gate in gates.tolist():
        for begin, end in POINTS.tau_steps:
            drives += [begin, begin, end, end]
            opened += [_OPEN, _OPEN, gate, _OPEN]
    found = _states(technology, units, cell, (np.array(drives), np.array(opened)), simulator)
    _, first, moved, last = found.reshape(len(gates), len(POINTS.tau_steps), 4).transpose(2, 0, 1)
    z = (moved - first) / (last - first)
    return np.asarray(-np.log(1 - z).mean(axis=1) / (gates / _UNIT), dtype=np.float64)


def measure_leak(technology: Technology, units: int, cell: tuple[float, float, float], simulator: str | None) -> float:
    """Measure the leakage onto a tau-cell's capacitor while the gate is closed, A, from the decay of a state of 1 nA.

    cell: (capacitance, trim, n U_T).
    """
    capacitance, trim, swing = cell
    timing = Timing(t_step=_HOLD)
    drive = TauDrive(capacitance, trim, np.array([_UNIT, _UNIT]), np.array([_OPEN, 0.0]), LATE_PULSE, timing)
    waves = run_bench(tau_cell_bench(technology, units, drive), "tau-cell", simulator)
    early, late = (_current(waves, timing.start + moment * _HOLD) for moment in _HELD)
    return float(capacitance * swing * np.log(early / late) / ((_HELD[1] - _HELD[0]) * _HOLD))


def _states(
    technology: Technology, units: int, cell: Cell, currents: tuple[Array, Array], simulator: str | None
) -> Array:
    """Simulate a tau-cell; return the state's current in every frame, (frames,), A.
    currents: (candidate, gate), each (frames,), A."""
    waves = run_bench(tau_cell_bench(technology, units, TauDrive(*cell, *currents, LATE_PULSE)), "tau-cell", simulator)
    return _current(waves, Timing().sample_times(len(currents[0])))


def _current(waves: Waveforms, moments: Array | float) -> Array:
    return np.asarray(np.interp(moments, waves.time, np.abs(waves.drain(STATE_DIODE))), dtype=np.float64)


def fit_level(technology: Technology, units: int, simulator: str | None) -> Own:
    """Measure the fields of a register's `LevelFit`; each shift is the mean of coming from far below and far above."""
    shifts = [
        float(np.mean([measure_turn(technology, units, i_turn, far, simulator) for far in (0.0, 2.0)]))
        for i_turn in POINTS.level_turns
    ]
    return {"turns": POINTS.level_turns, "shifts": tuple(shifts)}


def measure_turn(technology: Technology, units: int, i_turn: float, far: float, simulator: str | None) -> float:
    """Measure by how much a register's value must exceed `i_turn` to turn a level on, A.

    The frame before each tried value has the value far * i_turn. Searches in coarse steps, then between two of them.
    Raises SimulationError where no value turns the level on.
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


def _written(
    technology: Technology, units: int, i_turn: float, values: Array, simulator: str | None
) -> NDArray[np.bool_]:
    """Tell for each value but the last whether it turned the level on, read half a frame after it was written.

    values: one for each frame, A.
    """
    drive = LevelDrive(i_turn, LEVEL_KEEP * _UNIT, RELEASE * _UNIT, values, LATE_PULSE)
    waves = run_bench(level_bench(technology, units, drive), "register", simulator)
    moments = Timing().moments(len(values) - 1, 1.5)
    return np.asarray(np.interp(moments, waves.time, waves.voltage(LEVEL_STATE)) > STATE_LEVEL * technology.supply)
