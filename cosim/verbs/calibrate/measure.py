"""Calibration: measure a technology's cells in a simulator once, and fit the functions that the compiler inverts."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import InputError, SimulationError
from cosim.cells.benches import (
    RAMP,
    Pins,
    clocked_bench,
    mirror_bench,
    schmitt_bench,
    sink_bench,
)
from cosim.cells.clocked import LATCH_NODE
from cosim.cells.schmitt import DECISION_NODE, STATE_LEVEL
from cosim.circuit.bench import Bench
from cosim.circuit.elements import Circuit
from cosim.circuit.waveforms import Timing
from cosim.engines.engine import Waveforms
from cosim.engines.simulation.inference import run_bench
from cosim.engines.table import reference_simulator
from cosim.technology.calibration import Calibration, MirrorFit, Own, SchmittFit
from cosim.technology.types import Technology
from cosim.units.comparator import DECISION_FIT
from cosim.units.mingru import MinGru
from cosim.units.register import Register
from cosim.units.table import fit_measurements
from cosim.verbs.calibrate.fingerprint import POINTS, calibration_fingerprint, simulator_version
from cosim.verbs.calibrate.native import (
    BENCH,
    find_crossings,
    fit_comparator,
    fit_decision,
    fit_dpi,
    fit_level,
    fit_tau_cell,
)

Array = NDArray[np.float64]
Progress = Callable[[str], None]


def calibrate(
    technology: Technology, units: int, progress: Progress = lambda text: None, simulator: str | None = None
) -> Calibration:
    """Measure mirrors, the 9T cell and the other cells of a technology; return their calibration.

    units: unit devices of a weight of 1; progress: called with a line about each step; simulator: its name, None for
    the technology's reference simulator. Raises SimulationError when the simulator fails on a testbench,
    MissingToolError if it is missing.
    """
    simulator = simulator or reference_simulator(technology)
    version = simulator_version(technology, simulator)
    v_node, mirror = _measure_mirror(technology, units, simulator, progress)
    trim = mirror.trim
    progress("mirror: leakage and usable currents")
    leakage = max(_currents(technology, units, trim, 0.0, v_node, simulator)[:2])
    current_min, current_max = _usable_currents(technology, units, trim, v_node, simulator)
    schmitt = _measure_schmitt(technology, units, v_node, mirror, simulator, progress)
    progress("comparators: thresholds in a frame")
    upper, lower = (fit_comparator(technology, simulator, upper=one) for one in (True, False))
    progress("DPI: gain and time constant")
    dpi = fit_dpi(technology, units, v_node, simulator)
    found = Calibration(
        technology.name,
        calibration_fingerprint(technology, units),
        version,
        units,
        technology.supply,
        technology.celsius,
        v_node,
        leakage,
        current_min,
        current_max,
        mirror,
        schmitt,
        upper,
        lower,
        dpi,
    )
    return replace(found, own=_own(found, technology, simulator, progress))


def _measure_mirror(
    technology: Technology, units: int, simulator: str | None, progress: Progress
) -> tuple[float, MirrorFit]:
    """Measure the mirrors; return (voltage of a candidate node at 1 nA, V below the supply, fit of the gains)."""
    v_node, relu_above = 0.5, 0.0
    for _ in range(2):
        waves = _run(mirror_bench(technology, units, 1.0, 1e-9, v_node), simulator)
        node = float(waves.voltage("cand")[-1])
        v_node, relu_above = technology.supply - node, float(waves.voltage("p")[-1]) - node
    progress("mirror: trim")
    trim = _find_trim(technology, units, v_node, simulator)
    progress("mirror: gain over current")
    currents = POINTS.mirror_currents
    gains = np.array([_gains(technology, units, trim, current, v_node, simulator) for current in currents])
    gain_n, gain_p, gain_push = (tuple(map(float, column)) for column in gains.T)
    progress("mirror: sinks of a bias line")
    gain_sink = tuple(_sunk(technology, 1.0, current, v_node, simulator) for current in currents)
    diodes = _diode_slopes(technology, v_node, simulator)
    slope_n, slope_p = _drain_slopes(technology, units, trim, v_node, simulator)
    swing = _node_swing(technology, units, simulator)
    return v_node, MirrorFit(
        trim, currents, gain_n, gain_p, gain_push, gain_sink, diodes, slope_n, slope_p, swing, relu_above
    )


def _own(found: Calibration, technology: Technology, simulator: str, progress: Progress) -> dict[str, Own]:
    """Measure the calibrations that only some kinds of units need: name of a unit's node -> its fit."""
    progress("tau-cell: gain, rate and leak")
    own = {MinGru.__name__: fit_tau_cell(technology, found.units, simulator)}
    progress("register: turn of a level")
    own[Register.__name__] = fit_level(technology, found.units, simulator)
    progress("counter, register: thresholds of their decisions")
    own[DECISION_FIT] = fit_decision(technology, simulator)
    return own | {name: measure(technology, found, simulator) for name, measure in fit_measurements().items()}


def _sunk(technology: Technology, stretch: float, current: float, v_node: float, simulator: str | None) -> float:
    """Measure the current of a sink over the current of its bias diode, the length of which is `stretch` times nominal.

    Raises SimulationError where this ratio is not positive.
    """
    gain = abs(float(_run(sink_bench(technology, stretch, current, v_node), simulator).through("node")[-1])) / current
    if not (math.isfinite(gain) and gain > 0):
        raise SimulationError(
            f"a sink of {technology.name} takes {gain:.3g} times the {current:.3g} A of its bias diode; check its "
            "devices, its sizing and its supply"
        )
    return gain


def _diode_slopes(technology: Technology, v_node: float, simulator: str | None) -> tuple[float, float]:
    """Measure d ln gain / d ln length of a bias diode that is made shorter, and of one that is made longer.
    Both are means over POINTS.stretch_currents."""
    steps = technology.sizing.cell_n.l / technology.grid

    def slope(stretch: float) -> float:
        moved = max(abs(round(steps * (stretch - 1))), 1) * math.copysign(1, stretch - 1)
        ends = (1.0, (steps + moved) / steps)
        gains = [[_sunk(technology, one, i, v_node, simulator) for one in ends] for i in POINTS.stretch_currents]
        return float(np.mean(np.diff(np.log(gains))) / math.log(ends[1]))

    shorter, longer = map(slope, POINTS.stretches)
    return shorter, longer


def _drain_slopes(
    technology: Technology, units: int, trim: float, v_node: float, simulator: str | None
) -> tuple[float, float]:
    """Measure d ln I / dV of a pulling and of a pushing weight at 1 nA, by a central difference around v_node."""
    near, far = (
        np.array(_gains(technology, units, trim, 1e-9, v_node + step, simulator))
        for step in (-POINTS.slope_step, POINTS.slope_step)
    )
    pull, push, _ = np.log(far / near) / (2 * POINTS.slope_step)  # a node further below the supply: less for pulls
    return float(-pull), float(push)


def _node_swing(technology: Technology, units: int, simulator: str | None) -> float:
    """Measure a candidate diode's voltage per e-fold of current, V, between the two POINTS.swing_currents."""
    drops = [
        technology.supply - _run(mirror_bench(technology, units, 1.0, i, 0.5), simulator).voltage("cand")[-1]
        for i in POINTS.swing_currents
    ]
    return float((drops[1] - drops[0]) / np.log(POINTS.swing_currents[1] / POINTS.swing_currents[0]))


def _find_trim(technology: Technology, units: int, v_node: float, simulator: str | None) -> float:
    """Find the trim, which divides the length of gate line n's diode, at which line n has the gain of line p.

    Gains are averages over POINTS.trim_currents; the trimmed length is on the layout grid. Solved by a secant of ln
    gain over ln trim, because gain is not 1 / trim where the threshold voltage depends on the length.
    """

    length, grid = technology.sizing.mirror_n.l, technology.grid

    def excess(trim: float) -> float:
        try:
            found = [_gains(technology, units, trim, current, v_node, simulator) for current in POINTS.trim_currents]
        except InputError as error:  # a library without the trimmed length
            raise InputError(f"sizing.mirror_n.l = {length:g} m is trimmed to {length / trim:.4g} m: {error}") from None
        pull, push, *_ = np.array(found).mean(axis=0)
        return math.log(pull / push)

    start = excess(1.0)
    moved = technology.snap(length / math.exp(start))  # the length of the secant's other point
    slope = -1.0
    if abs(start) > POINTS.trim_start and not math.isclose(moved, length):
        slope = (excess(math.exp(start)) - start) / start
    if not slope < 0 or abs(start / slope) > POINTS.largest_ln_trim:
        raise SimulationError(
            f"calibration of {technology.name}: no length of line n gives it the gain of line p: at {length:g} m their "
            f"ratio is {math.exp(start):.3g}; check its devices, its sizing and its supply"
        )
    near = technology.snap(length * math.exp(start / slope))
    trims = [length / found for step in (-1, 0, 1) if (found := technology.snap(near + step * grid)) > grid / 2]
    return min(trims, key=lambda trim: abs(excess(trim)))


def fit_relative(terms: Array, values: Array) -> tuple[tuple[float, ...], float]:
    """Fit terms to values by least squares of the relative error; return (coefficients, largest relative error).
    The error is relative because a calibration must be as right at 0.1 nA as at 4 nA. terms: (values, coefficients)."""
    solution, *_ = np.linalg.lstsq(terms / values[:, None], np.ones_like(values), rcond=None)
    error = float(np.max(np.abs(terms @ solution / values - 1)))
    return tuple(map(float, solution)), error


def measure_schmitt(
    technology: Technology,
    units: int,
    bias: Pins,
    v_node: float,
    i_peak: float | None = None,
    vary: Callable[[Circuit], Circuit] = lambda circuit: circuit,
    simulator: str | None = None,
) -> tuple[float, float, float]:
    """Measure upper threshold, lower threshold and level of one 9T cell, A, with one slow ramp up and down.

    The level is read through a weight of -1 and so contains `MirrorFit.gain_p`. i_peak: top of the ramp, A; vary: makes
    a chip's circuit, with deviations, of the nominal one. Raises SimulationError where the cell does not switch twice.
    """
    i_peak = 1.3 * bias[0] if i_peak is None else i_peak
    bench = schmitt_bench(technology, units, bias, i_peak, v_node)
    waves = _run(replace(bench, circuit=vary(bench.circuit)), simulator)
    time, v0 = waves.time, waves.voltage(f"xcell.{DECISION_NODE}")
    crossings = find_crossings(time, v0, STATE_LEVEL * technology.supply)
    if len(crossings) != 2:
        raise SimulationError(
            f"9T cell at I_thresh {bias[0]:.3g} A, I_width {bias[1]:.3g} A switched {len(crossings)} times on one ramp "
            "up and down, not twice: the width is under the technology's floor"
        )
    rise = i_peak * crossings[0] / RAMP
    fall = i_peak * (2 - crossings[1] / RAMP)
    level = float(np.interp(RAMP, time, waves.through("out")))
    return rise, fall, level


def _measure_schmitt(
    technology: Technology, units: int, v_node: float, mirror: MirrorFit, simulator: str | None, progress: Progress
) -> SchmittFit:
    grid = [(rise, rise * fraction) for rise, fraction in itertools.product(POINTS.rises, POINTS.width_fractions)]
    measured = []
    for k, (rise, width) in enumerate(grid):
        progress(f"9T cell: thresholds {k + 1}/{len(grid)}")
        measured.append(measure_schmitt(technology, units, (rise, width, 1e-9), v_node, simulator=simulator)[:2])
    progress("9T cell: level")
    levels = [
        measure_schmitt(technology, units, (0.5e-9, 0.2e-9, gain), v_node, simulator=simulator)[2]
        for gain in POINTS.levels
    ]

    bias, found = np.array(grid) / 1e-9, np.array(measured) / 1e-9
    x, y = bias.T
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1)
    rise_fit, rise_error = fit_relative(terms, found[:, 0])
    fall_fit, fall_error = fit_relative(terms, found[:, 1])
    # Seen through a mirror of weight -1; the level is the current in the cell's own output diode.
    seen = np.array(levels)
    z, level = np.array(POINTS.levels) / 1e-9, seen / mirror.interpolate(mirror.gain_p, seen) / 1e-9
    level_fit, level_error = fit_relative(np.stack([np.ones_like(z), z, z * z], axis=1), level)
    static = SchmittFit(rise_fit, fall_fit, level_fit, max(rise_error, fall_error, level_error), (0.0, 0.0), (0.0, 0.0))
    progress("clocked 9T cell: thresholds in a frame")
    return replace(static, **_measure_shifts(technology, units, static, simulator))


def _measure_shifts(
    technology: Technology, units: int, static: SchmittFit, simulator: str | None
) -> dict[str, tuple[float, ...]]:
    """Measure by how much candidates must pass the static thresholds of a clocked cell to flip it within a frame.
    Returns set_shift and reset_shift, each (constant in nA, slope) of a straight line over the threshold."""
    thresholds, shifts = np.array(POINTS.frame_thresholds), []
    for rise, fall in POINTS.frame_thresholds:
        bias = (*static.solve_thresholds(rise, fall), 1e-9)
        cell = technology, units, bias, (rise, fall), simulator
        shifts.append([measure_frame_shift(*cell, sets=sets) for sets in (True, False)])
    found = {}
    for name, asked, shift in zip(("set_shift", "reset_shift"), thresholds.T, np.array(shifts).T, strict=True):
        slope, constant = np.polyfit(asked / 1e-9, shift / 1e-9, 1)
        found[name] = (float(constant), float(slope))
    return found


def measure_frame_shift(
    technology: Technology,
    units: int,
    bias: Pins,
    thresholds: tuple[float, float],
    simulator: str | None = None,
    *,
    sets: bool,
) -> float:
    """Measure how far a candidate must pass a static threshold for a clocked cell to flip within one frame, A.

    thresholds: (upper, lower), A; sets: measure the upper threshold, else the lower. Every second frame puts the cell
    into the other state; the frames in between try ever larger excesses.
    """
    rise, fall = thresholds
    threshold = rise if sets else fall
    furthest = POINTS.shift_range[0] + POINTS.shift_range[1] * threshold
    excess = furthest * np.arange(-POINTS.shift_steps, POINTS.shift_steps + 1) / POINTS.shift_steps
    tried = threshold + excess if sets else threshold - excess
    prepare = np.full(len(tried), 0.3 * fall if sets else 1.5 * rise)
    timing = Timing()
    candidates = np.stack([prepare, tried], axis=1).ravel()
    waves = _run(clocked_bench(technology, units, bias, candidates, timing), simulator)
    latch = np.interp(timing.sample_times(len(candidates)), waves.time, waves.voltage(f"xcell.{LATCH_NODE}"))
    flipped = (latch[1::2] > STATE_LEVEL * technology.supply) == sets
    if not flipped.any():
        raise SimulationError(
            f"clocked 9T cell did not flip {excess[-1]:.3g} A beyond its threshold of {threshold:.3g} A"
        )
    first = int(flipped.argmax())
    if first == 0:
        raise SimulationError(
            f"clocked 9T cell flips {-excess[0]:.3g} A before its threshold of {threshold:.3g} A already; its latch "
            "node leaks or is too small: give latch_switch a larger w and l"
        )
    return float(excess[first] + excess[first - 1]) / 2


def _usable_currents(
    technology: Technology, units: int, trim: float, v_node: float, simulator: str | None
) -> tuple[float, float]:
    """Find the smallest and the largest usable current of a mirror, A.

    At all `range_currents` between them the gains are within `range_spread` of those at 1 nA.
    """
    wanted = np.array(_gains(technology, units, trim, 1e-9, v_node, simulator)[:2])

    def usable(current: float) -> bool:
        gains = np.array(_gains(technology, units, trim, current, v_node, simulator)[:2])
        return bool((np.abs(gains / wanted - 1) < POINTS.range_spread).all())

    below = itertools.takewhile(usable, (current for current in reversed(POINTS.range_currents) if current < 1e-9))
    above = itertools.takewhile(usable, (current for current in POINTS.range_currents if current > 1e-9))
    return min(below, default=1e-9), max(above, default=1e-9)


def _gains(
    technology: Technology, units: int, trim: float, current: float, v_node: float, simulator: str | None
) -> tuple[float, ...]:
    gains = tuple(value / current for value in _currents(technology, units, trim, current, v_node, simulator))
    if not all(math.isfinite(gain) and gain > 0 for gain in gains):
        raise SimulationError(
            f"mirrors of {technology.name} deliver {', '.join(f'{gain:.3g}' for gain in gains)} times {current:.3g} A; "
            "check its devices, its sizing and its supply"
        )
    return gains


def _currents(
    technology: Technology, units: int, trim: float, current: float, v_node: float, simulator: str | None
) -> tuple[float, ...]:
    """Measure the currents of a signal's mirrors, A: (weight +1, weight -1, line n)."""
    waves = _run(mirror_bench(technology, units, trim, current, v_node), simulator)
    return tuple(abs(float(waves.through(source)[-1])) for source in ("n", "p", "push"))


def _run(bench: Bench, simulator: str | None) -> Waveforms:
    return run_bench(bench, BENCH, simulator)
