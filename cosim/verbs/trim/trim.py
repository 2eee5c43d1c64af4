"""Trimming: what a converter of B bits at each bias pin can take back of a chip's mismatch.

A cell's thresholds and level are measured on the chip, not known from its draws: a slow candidate ramp up and down, and
the level beside it. Each pin then carries (1 + R c / 2^(B-1)) times its current, with the code c in -2^(B-1) ...
2^(B-1) - 1 that brings what was measured nearest to what the compiler asked for:

    threshold pin    rise (1 + d) -> rise asked                      rise, fall: measured, in candidate current
    width pin        rise (1 + d_thresh) - (rise - fall) (1 + d) -> fall asked
    gain pin         level (1 + d) -> level asked

R is three standard deviations of what is measured. A pin that several cells share takes the code of the smallest sum
of squared relative errors over them.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cosim.base.errors import InputError, SimulationError
from cosim.circuit.elements import Circuit
from cosim.compiler.design import Design
from cosim.engines.behavioral.effects import Key, effects_of
from cosim.engines.chip import deviations_of, drawn_values, standing, vary
from cosim.engines.table import simulator_beside
from cosim.units.builder import instance, net
from cosim.units.kind import Array
from cosim.units.schmitt import Schmitt, SchmittBias, SchmittFactors
from cosim.variation.draws import Chip
from cosim.verbs.calibrate.measure import measure_schmitt
from cosim.verbs.montecarlo.trial import Trial

SIGMAS = 3.0


@dataclass(frozen=True)
class CellPoints:
    """A cell's static thresholds, as candidate currents, and its level as its line p delivers it; ampere."""

    rise: float
    fall: float
    level: float


def check_trimmable(design: Design, origin: str) -> None:
    """Raise InputError for a network whose cells are not all 9T cells of constant thresholds."""
    cells = list(design.graph.of(Schmitt))
    if other := next((name for name in design.assembly.decisions if name not in {cell.name for cell in cells}), None):
        raise InputError(
            f"{origin}: trim is for networks of 9T cells alone, and {other} is none; `cosim montecarlo` says "
            "how many chips work as they are"
        )
    if design.assembly.around.feeds:
        raise InputError(f"{origin}: trim sets sources at the bias pins; leave bias out of --with")
    for cell in cells:
        if design.graph.into(cell.name, "beta"):
            raise InputError(f"{origin}: trim is for constant thresholds; those of {cell.name} depend on its input")


def measure_behavioral(trial: Trial, chip: Chip, *, in_frame: bool = False) -> dict[str, CellPoints]:
    """Compute for `cosim trim` the thresholds and level of every cell of a chip by the behavioral model.

    Returns cell -> ampere.

    Thresholds are those of slow ramps or, with `in_frame`, those of the clocked cell within a frame, which the compiler
    was asked for.
    """
    design = trial.design
    fit, deviations = design.calibration.schmitt, deviations_of(design, standing(design, trial.condition, chip), chip)
    points = {}
    for cell in design.graph.of(Schmitt):
        bias, factors = design.graph.bias(cell.name, SchmittBias), deviations.cells.get(cell.name, SchmittFactors())
        assert isinstance(factors, SchmittFactors)
        i_thresh, i_width = np.float64(bias.i_thresh * factors.thresh), np.float64(bias.i_width * factors.width)
        rise, fall = fit.i_rise(i_thresh, i_width), fit.i_fall(i_thresh, i_width)
        if in_frame:
            rise, fall = fit.set_in_frame(rise), fit.reset_in_frame(fall)
        points[cell.name] = CellPoints(
            float(rise) / factors.compared,
            float(fall) / factors.compared,
            float(fit.i_high(np.float64(bias.i_gain))) * factors.level * deviations.lines_p.get(cell.name, 1.0),
        )
    return points


def measure_transistors(trial: Trial, chip: Chip) -> dict[str, CellPoints]:
    """Measure for `cosim trim` every cell of a chip, its transistors and the diodes before them, cell -> ampere, in the
    trial's simulator or, for a behavioral trial, in the one beside it."""
    expected = measure_behavioral(trial, chip)
    return {
        cell.name: measure_cell(trial, chip, cell, 1.3 * expected[cell.name].rise)
        for cell in trial.design.graph.of(Schmitt)
    }


def measure_cell(trial: Trial, chip: Chip, cell: Schmitt, i_peak: float) -> CellPoints:
    """Measure for `cosim trim` the thresholds and level of one cell with the transistors that the chip drew for it; the
    ramp goes to `i_peak`."""
    design, technology = trial.design, trial.technology
    bias = design.graph.bias(cell.name, SchmittBias)
    places = _places(design.assembly.circuit, instance(f"cell_{net(cell.name)}"))
    drawn = {places[name]: pair for name, pair in drawn_values(chip).items() if name in places}

    def deviating(circuit: Circuit) -> Circuit:
        here = _places(circuit, "cell")
        return vary(circuit.flat(), {name: drawn[place] for name, place in here.items()})

    calibration = design.calibration
    i_thresh, i_width, i_gain, v_node = bias.i_thresh, bias.i_width, bias.i_gain, calibration.v_node
    share, simulator = 1.0, simulator_beside(trial.engine)

    def measure(i_width: float) -> tuple[float, float, float]:
        pins = i_thresh, i_width, i_gain
        return measure_schmitt(technology, calibration.units, pins, v_node, i_peak, deviating, simulator)

    try:
        found = measure(i_width)
    except SimulationError:  # its lower threshold is below 0, so it never resets: measured with half of its width
        share = 0.5
        found = measure(share * i_width)
    rise, fall, seen = found
    gain = float(calibration.mirror.interpolate(calibration.mirror.gain_p, np.float64(seen)))
    return CellPoints(rise, rise - (rise - fall) / share, seen / gain)


def _places(circuit: Circuit, cell: str) -> dict[str, str]:
    """Return the transistors of a cell, and the diodes of its candidate and of its bias lines, name -> place in the
    cell."""
    devices = list(circuit.flatten())
    own = {mos.name: mos.name.removeprefix(f"{cell}.") for mos in devices if mos.name.startswith(f"{cell}.")}
    lines = {mos.match: f"diode before {own[mos.name]}" for mos in devices if mos.name in own and mos.match}
    diodes = (mos for mos in devices if mos.role in ("candidate", "bias") and mos.match in lines)
    return own | {mos.name: lines[mos.match] for mos in diodes}


def trim_ranges(trial: Trial) -> tuple[float, float, float]:
    """Compute for `cosim trim` the relative ranges R of threshold, width and gain pins: SIGMAS standard deviations of
    what is measured there."""
    sigmas = {device.name: (device.sigma_vt, device.sigma_beta) for device in trial.devices}
    thermal = trial.technology.thermal_voltage
    totals: dict[str, dict[Key, float]] = defaultdict(dict)
    for effect in effects_of(trial.design):
        totals[effect.field][effect.key] = sum(
            (sigmas[device][0] / (slope * thermal)) ** 2 + sigmas[device][1] ** 2
            for (device, _), slope in zip(effect.devices, effect.slopes, strict=True)
        )
    cells = list(totals["thresh"])
    thresh, width, gain = (
        max(sum(totals[field][cell] for field in fields) for cell in cells)
        for fields in (("thresh", "compared"), ("width", "compared"), ("level", "lines_p"))
    )
    return SIGMAS * thresh**0.5, SIGMAS * width**0.5, SIGMAS * gain**0.5


def trim_codes(
    design: Design,
    measured: Mapping[str, CellPoints],
    wanted: Mapping[str, CellPoints],
    bits: int,
    ranges: tuple[float, float, float],
) -> dict[str, float]:
    """Return for `cosim trim` the factor of every bias pin of the measured cells: those of the best codes of converters
    of `bits` bits."""
    thresh_pins, width_pins, gain_pins = (_cells_of(design, place) for place in range(3))
    steps = np.arange(-(2 ** (bits - 1)), 2 ** (bits - 1)) / 2 ** (bits - 1)
    thresh, width, gain = (1 + span * steps for span in ranges)
    factors = {}
    for pin, cells in thresh_pins.items():
        factors[pin] = _best(thresh, [(measured[cell].rise, wanted[cell].rise) for cell in cells])
    pin_of = {cell: pin for pin, cells in thresh_pins.items() for cell in cells}
    for pin, cells in width_pins.items():
        pairs = [
            (
                measured[cell].rise - measured[cell].fall,
                measured[cell].rise * factors[pin_of[cell]] - wanted[cell].fall,
            )
            for cell in cells
        ]
        factors[pin] = _best(width, pairs)
    for pin, cells in gain_pins.items():
        factors[pin] = _best(gain, [(measured[cell].level, wanted[cell].level) for cell in cells])
    return factors


def _cells_of(design: Design, place: int) -> dict[str, list[str]]:
    """Return bias pin -> the cells on it; place 0: threshold pins, 1: width pins, 2: gain pins."""
    found: dict[str, list[str]] = defaultdict(list)
    for cell, pins in design.assembly.cell_bias.items():
        found[pins[place]].append(cell)
    return found


def _best(factors: Array, pairs: list[tuple[float, float]]) -> float:
    """Return the factor for which factor * measured is nearest to wanted, relative to measured, over all (measured,
    wanted)."""
    errors = sum((factors - wanted / found) ** 2 for found, wanted in pairs)
    return float(factors[np.argmin(errors)])
