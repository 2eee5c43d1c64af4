"""Characterisation: what a cell does over its range, by its equation, as drawn, and with calibrated bias currents.

When supply and temperature change, only the devices change. Bias currents, capacitances and the voltage of the output
node stay as at the nominal point.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.base.quantities import format_quantity
from cosim.cells.benches import (
    RAMP,
    DpiDrive,
    Pins,
    dpi_bench,
    mirror_bench,
    rectifier_bench,
    schmitt_bench,
    steering_bench,
)
from cosim.cells.dpi import dpi_capacitance, dpi_fall_time, dpi_rise_time
from cosim.circuit.bench import Bench
from cosim.engines.engine import Waveforms
from cosim.engines.simulation.inference import run_bench
from cosim.technology.calibration import Calibration
from cosim.technology.conditions import at, nominal
from cosim.technology.types import Technology
from cosim.units.ladder import TAU_SHARE
from cosim.verbs.calibrate.measure import measure_schmitt

Array = NDArray[np.float64]
Kind = Literal["ideal", "measured", "calibrated"]
_SIMULATED: tuple[Kind, Kind] = ("measured", "calibrated")

SCHMITT_POINTS = (
    (0.1e-9, 0.05e-9, 0.1e-9), (0.35e-9, 0.15e-9, 0.5e-9), (1e-9, 0.5e-9, 1e-9), (2e-9, 1.5e-9, 2e-9),
    (6e-9, 2e-9, 6e-9),
)  # fmt: skip
MIRROR_POINTS = (5e-11, 2e-10, 5e-10, 1e-9, 4e-9, 16e-9)
RECTIFIER_PUSHES = (0.1e-9, 0.5e-9, 1e-9, 2e-9)
STEERING_POINTS = (0.1e-9, 0.5e-9, 1e-9, 2e-9, 6e-9)
DPI_POINTS = (0.1e-9, 0.5e-9, 2e-9)
DPI_TAU = 10e-3  # s, that of arXiv 2605.11855, Fig. 4
DPI_SPREAD = 0.1  # stray charge at 0.7 pF and output conductance; docs/how-to/characterize.md has the step responses
DPI_UP, DPI_DOWN, DPI_END = 1 * DPI_TAU, 12 * DPI_TAU, 20 * DPI_TAU  # when its input steps up and down, s


@dataclass(frozen=True)
class CellFigure:
    """One figure of a cell at one set-point, by equation and by simulation.

    ideal: by the cell's equation; measured: simulated with the bias currents that the equation gives; calibrated:
    simulated with the bias currents that the calibration gives. All three are in `unit`; NaN: not found. Errors are
    relative to `scale`, which is in `unit` as well.
    """

    set_point: str
    quantity: str
    unit: str
    ideal: float
    measured: float
    calibrated: float
    scale: float

    @property
    def errors(self) -> tuple[float, float]:
        """Return the errors (measured, calibrated): each value minus the ideal one, divided by `scale`."""
        return (self.measured - self.ideal) / self.scale, (self.calibrated - self.ideal) / self.scale


@dataclass(frozen=True)
class FigureLine:
    """A curve of a figure; group: its set-point; kind: ideal, measured or calibrated; x, y: in SI units."""

    group: str
    kind: Kind
    x: Array
    y: Array


@dataclass(frozen=True)
class Characterisation:
    """The figures and curves of one cell in one condition."""

    technology: Technology
    rows: tuple[CellFigure, ...]
    curves: tuple[FigureLine, ...]


def at_conditions(
    technology: Technology, corners: Sequence[str], temperatures: Sequence[float], supplies: Sequence[float]
) -> tuple[Technology, ...]:
    """Return the technology at every combination of corner, temperature (celsius) and supply (V).

    An empty list stands for the nominal value. Raises InputError for a condition that the devices are not made for.
    """
    return tuple(
        at(technology, corner, celsius, supply)
        for corner, celsius, supply in product(corners or (None,), temperatures or (None,), supplies or (None,))
    )


# --- 9T cell


def characterize_schmitt(
    technology: Technology, calibration: Calibration, simulator: str | None = None
) -> Characterisation:
    """Characterise a 9T cell by thresholds and level at SCHMITT_POINTS, by slow ramps.

    Curves: output over candidate.
    """
    fit, units, v_node, rows, curves = calibration.schmitt, calibration.units, calibration.v_node, [], []
    for rise, fall, high in SCHMITT_POINTS:
        group = f"{1e9 * rise:g}/{1e9 * fall:g} nA"
        plain = (rise, rise - fall, high)
        solved = (*fit.solve_thresholds(rise, fall), fit.solve_gain(high))
        found = [measure_schmitt(technology, units, bias, v_node, simulator=simulator) for bias in (plain, solved)]
        names = ("upper threshold", "lower threshold", "level")
        for name, ideal, measured, calibrated in zip(names, (rise, fall, high), *found, strict=True):
            rows.append(CellFigure(group, name, "A", ideal, measured, calibrated, ideal))
        for kind, bias in zip(_SIMULATED, (plain, solved), strict=True):
            curves.append(FigureLine(group, kind, *_hysteresis(technology, calibration, bias, 1.3 * rise, simulator)))
        x = np.array([0, rise, rise, 1.3 * rise, fall, fall, 0])
        curves.append(FigureLine(group, "ideal", x, high * np.array([0, 0, 1, 1, 1, 0, 0])))
    return Characterisation(technology, tuple(rows), tuple(curves))


def _hysteresis(
    technology: Technology, calibration: Calibration, bias: Pins, i_peak: float, simulator: str | None
) -> tuple[Array, Array]:
    """Simulate a slow ramp up and down; return (candidate, output), ampere, over its time."""
    waves = _run(schmitt_bench(technology, calibration.units, bias, i_peak, calibration.v_node), simulator)
    return i_peak * (1 - np.abs(waves.time / RAMP - 1)), waves.through("out")


# --- mirror and rectifier


def characterize_mirror(
    technology: Technology, calibration: Calibration, simulator: str | None = None
) -> Characterisation:
    """Measure a mirror's currents through both gate lines at MIRROR_POINTS; calibrated: gate line n is trimmed.

    Curves: gain over current.
    """
    rows, curves, trims = [], [], (1.0, calibration.mirror.trim)
    currents = np.geomspace(MIRROR_POINTS[0], MIRROR_POINTS[-1], 21)

    def paths(trim: float, current: float) -> tuple[float, ...]:
        bench = mirror_bench(technology, calibration.units, trim, float(current), calibration.v_node)
        waves = _run(bench, simulator)
        return tuple(abs(float(waves.through(source)[-1])) for source in ("n", "p"))

    for current in MIRROR_POINTS:
        found = [paths(trim, current) for trim in trims]
        for line, measured, calibrated in zip(("line n", "line p"), *found, strict=True):
            rows.append(CellFigure(format_quantity(current, "A"), line, "A", current, measured, calibrated, current))
    for kind, trim in zip(_SIMULATED, trims, strict=True):
        gains = np.array([paths(trim, current) for current in currents]) / currents[:, None]
        curves += [
            FigureLine(line, kind, currents, gain) for line, gain in zip(("line n", "line p"), gains.T, strict=True)
        ]
    return Characterisation(technology, tuple(rows), tuple(curves))


def characterize_rectifier(
    technology: Technology, calibration: Calibration, simulator: str | None = None
) -> Characterisation:
    """Simulate a rectifier's diode with pulls from 0 to twice the push, for each push of RECTIFIER_PUSHES.

    Rows: the residue where pull equals push, and the output where the pull is twice the push. Calibrated means trimmed.
    """
    rows, curves, trims = [], [], (1.0, calibration.mirror.trim)
    for push in RECTIFIER_PUSHES:
        group, outputs = format_quantity(push, "A"), []
        for kind, trim in zip(_SIMULATED, trims, strict=True):
            waves = _run(rectifier_bench(technology, calibration.units, trim, push, 2 * push), simulator)
            output = np.abs(waves.through("sense"))
            pull = np.linspace(0.0, 2 * push, len(output))
            outputs.append(output)
            curves.append(FigureLine(group, kind, pull, output))
        pull = curves[-1].x
        curves.append(FigureLine(group, "ideal", pull, np.maximum(pull - push, 0.0)))
        for name, where, ideal in (("pull = push", push, 0.0), ("pull = 2 push", 2 * push, push)):
            measured, calibrated = (float(np.interp(where, pull, output)) for output in outputs)
            rows.append(CellFigure(f"push {group}", name, "A", ideal, measured, calibrated, push))
    return Characterisation(technology, tuple(rows), tuple(curves))


def characterize_steering(
    technology: Technology, calibration: Calibration, simulator: str | None = None
) -> Characterisation:
    """Simulate a steering AND of two bits, one high and one from a symbol comparator, at each level of STEERING_POINTS.

    Rows: the output with the signal at 1, the leakage with the signal at 0, and the signal at which the output is half
    of the level. Curves: output over signal.
    """
    rows, curves = [], []
    for level in STEERING_POINTS:
        group, found = format_quantity(level, "A"), []
        for kind, pin in zip(_SIMULATED, (level, calibration.schmitt.solve_gain(level)), strict=True):
            waves = _run(steering_bench(technology, calibration.units, pin, level, calibration.v_node), simulator)
            output = np.abs(waves.through("node"))
            signal = np.linspace(0.0, level, len(output))
            curves.append(FigureLine(group, kind, signal, output))
            found.append((output[-1], output[0], float(np.interp(output[-1] / 2, output, signal))))
        half = level / 2
        signal = np.array([0.0, half, half, level])
        curves.append(FigureLine(group, "ideal", signal, np.array([0.0, 0.0, level, level])))
        asked = ("level", "off", "turns at"), (level, 0.0, half)
        for name, ideal, measured, calibrated in zip(*asked, *found, strict=True):
            rows.append(CellFigure(group, name, "A", ideal, float(measured), float(calibrated), level))
    return Characterisation(technology, tuple(rows), tuple(curves))


# --- DPI


def characterize_dpi(
    technology: Technology, calibration: Calibration, simulator: str | None = None
) -> Characterisation:
    """Measure a DPI's response to steps 0 -> alpha -> 0 at DPI_POINTS, with a time constant of DPI_TAU.

    Rows: the level, the time to rise to 1 - 1/e of the level, the time to fall to 1/e of it. ideal: the equation of
    `cosim.cells.dpi` at this temperature, started at the current at which the calibrated DPI starts.
    """
    rows, curves = [], []
    for alpha in DPI_POINTS:
        i_tau, group = TAU_SHARE * alpha, format_quantity(alpha, "A")
        found, first = [], 0.0
        for kind, i_g in zip(_SIMULATED, (i_tau, i_tau * calibration.dpi.ratio(alpha)), strict=True):
            time, output = _step_response(technology, calibration, alpha, i_g, simulator)
            curves.append(FigureLine(group, kind, time, output))
            first, *figures = _step_figures(time, output)
            found.append(figures)
        share = 1 - np.exp(-1)
        tau = DPI_TAU * technology.thermal_voltage / nominal(technology, calibration).thermal_voltage
        rise, fall = dpi_rise_time(first, share * alpha, alpha, i_tau), dpi_fall_time(alpha, (1 - share) * alpha)
        curves.append(_ideal_response(group, first, alpha, i_tau, tau))
        names = (("level", "A"), ("rise to 63 %", "s"), ("fall to 37 %", "s"))
        for (name, unit), value, measured, calibrated in zip(
            names, (alpha, tau * rise, tau * fall), *found, strict=True
        ):
            rows.append(CellFigure(f"alpha {group}", name, unit, value, measured, calibrated, value))
    return Characterisation(technology, tuple(rows), tuple(curves))


MEASURES: dict[str, Callable[[Technology, Calibration, str], Characterisation]] = {  # cell -> its characterisation
    "schmitt": characterize_schmitt,
    "dpi": characterize_dpi,
    "mirror": characterize_mirror,
    "rectifier": characterize_rectifier,
    "steering": characterize_steering,
}


def _step_response(
    technology: Technology, calibration: Calibration, alpha: float, i_g: float, simulator: str | None
) -> tuple[Array, Array]:
    """Simulate a DPI's response to a step up and down; return (time in s, output in A).
    The capacitor gives DPI_TAU at the nominal temperature."""
    edge, i_tau = 1e-3 * DPI_TAU, TAU_SHARE * alpha
    steps = ((0.0, 0.0), (DPI_UP, 0.0), (DPI_UP + edge, alpha), (DPI_DOWN, alpha), (DPI_DOWN + edge, 0.0))
    capacitance = dpi_capacitance(nominal(technology, calibration), DPI_TAU, i_tau)
    drive = DpiDrive(steps, i_tau, i_g, capacitance, DPI_END)
    waves = _run(dpi_bench(technology, calibration.units, drive, calibration.v_node), simulator)
    return waves.time, np.abs(waves.through("out"))


def _step_figures(time: Array, output: Array) -> tuple[float, float, float, float]:
    """Return (first output, level, rise time, fall time) of a `_step_response`; outputs in A, times in s."""
    first, level = np.interp([DPI_UP, DPI_DOWN], time, output)
    low = (1 - np.exp(-1)) * level
    rising, falling = time <= DPI_DOWN, time >= DPI_DOWN
    rise = np.interp(low, output[rising], time[rising]) - DPI_UP
    fall = np.interp(-(level - low), -output[falling], time[falling]) - DPI_DOWN
    return float(first), float(level), float(rise), float(fall)


def _ideal_response(group: str, first: float, alpha: float, i_g: float, tau: float) -> FigureLine:
    """Compute a DPI's output over time by its equation; the rise is solved as time over output.
    first: output at the beginning, A."""
    up = np.concatenate([np.geomspace(first, 0.01 * alpha, 20), np.linspace(0.011 * alpha, 0.9999 * alpha, 400)])
    rise = [DPI_UP + tau * dpi_rise_time(first, float(level), alpha, i_g) for level in up]
    fall = np.linspace(DPI_DOWN, DPI_END, 400)
    down = alpha * np.exp(-(fall - DPI_DOWN) / tau)
    kept = np.array(rise) < DPI_DOWN
    x = np.concatenate([[0.0, DPI_UP], np.array(rise)[kept], fall])
    return FigureLine(group, "ideal", x, np.concatenate([[first, first], up[kept], down]))


# --- shared


def summarize_cell(cell: str, name: str, found: Sequence[Characterisation]) -> dict[str, object]:
    """Return the figures of a cell in every condition, ready for JSON; currents in A, times in s."""
    conditions = [
        {
            "corner": one.technology.corner,
            "celsius": one.technology.celsius,
            "supply_v": one.technology.supply,
            "rows": [row_json(row) for row in one.rows],
        }
        for one in found
    ]
    return {"cell": cell, "technology": name, "conditions": conditions}


def row_json(row: CellFigure) -> dict[str, str | float | None]:
    """Return one figure of a cell with its errors, ready for JSON; a value that was not found is None."""
    measured, calibrated = row.errors
    values = {**asdict(row), "error_measured": measured, "error_calibrated": calibrated}
    del values["scale"]
    return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in values.items()}


def _run(bench: Bench, simulator: str | None) -> Waveforms:
    return run_bench(bench, "characterisation bench", simulator)
