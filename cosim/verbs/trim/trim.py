"""Trimming: a converter of B bits at each bias pin compensates a part of a chip's mismatch.

The thresholds and the level of a 9T cell are measured on the chip: a slow candidate ramp goes up and down, and the
level is read at the same time. Those of a unit with comparators are computed by the behavioral model, because a
comparator decides once a frame, so that its measurement in a simulator takes minutes. Each pin then carries 1 + d times
its current, with d = R c / 2^(B-1). The code c in -2^(B-1) ... 2^(B-1) - 1 is the one that brings the measured value
nearest to the asked value, which the compiler aimed at:

    threshold pin            rise (1 + d) -> rise asked              rise, fall: measured, in candidate current
    width pin, 9T cell       rise (1 + d_thresh) - (rise - fall) (1 + d) -> fall asked
    lower threshold pin      fall (1 + d) -> fall asked              of two comparators
    gain pin                 level (1 + d) -> level asked            of a ladder or register: the sum of its levels

R is three standard deviations of the measured value over chips. A pin that several cells share gets the code with the
smallest sum of squared relative errors over these cells.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp

import numpy as np

from cosim.base.errors import InputError, SimulationError
from cosim.circuit.elements import Circuit
from cosim.compiler.design import Design
from cosim.compiler.overrides import changed_transistors, resize
from cosim.engines.behavioral.effects import Key, effects_of
from cosim.engines.behavioral.evaluate import cell_of
from cosim.engines.chip import deviations_of, drawn_values, standing, vary
from cosim.engines.table import simulator_beside
from cosim.network.ir.nodes import Memory, ThresholdUnit
from cosim.units.builder import instance, net
from cosim.units.kind import Array
from cosim.units.schmitt import Schmitt, static_thresholds
from cosim.units.table import unit_of
from cosim.variation.draws import Chip
from cosim.verbs.calibrate.measure import measure_schmitt
from cosim.verbs.montecarlo.trial import Trial

SIGMAS = 3.0
_BESIDE = ("compared", "compared", "lines_p")  # of a 9T cell: what is measured with what a pin's current makes
_BESIDE_COMPARED = ("", "", "lines_p")  # of comparators, whose thresholds have their candidate's diode in them


@dataclass(frozen=True)
class CellPoints:
    """Static thresholds of a cell, as candidate currents, and its level, the current in its gate line p; all in ampere.

    rise: upper threshold; fall: lower threshold.
    """

    rise: float
    fall: float
    level: float


def check_trimmable(design: Design, origin: str) -> None:
    """Raise InputError for a network with a unit that `cosim trim` cannot set. origin: its name in the message.

    Thresholds must be constant, pins not shared with units that trim leaves alone, and --with must not contain bias.
    """
    for node in design.graph.memories:
        if not unit_of(node).trimmed:
            raise InputError(
                f"{origin}: trim is for 9T cells, ladders, counters, reflectors and registers, and {node.name} is "
                "none; `cosim montecarlo` says how many chips work as they are"
            )
        if design.graph.into(node.name, "beta"):
            raise InputError(f"{origin}: trim is for constant thresholds; those of {node.name} depend on its input")
    _check_shared(design, origin)
    if (edit := next((one for one in design.edits if not one.followed), None)) is not None:
        raise InputError(
            f"{origin}: trim measures cells as the compiler builds them, of other sizes at most, and the netlist has "
            f"other edits: {edit}"
        )
    if design.assembly.around.feeds:
        raise InputError(f"{origin}: trim sets sources at the bias pins; leave bias out of --with")


def _check_shared(design: Design, origin: str) -> None:
    """Raise InputError where a gain pin sets the levels of a unit that is trimmed and of one that trim leaves alone."""
    for pin, nodes in _units_of(design, 2).items():
        other = next(
            (node.name for node in design.graph.memories
             if pin in design.assembly.cell_bias[node.name] and node not in nodes), None,
        )  # fmt: skip
        if other is not None:
            raise InputError(
                f"{origin}: {pin} makes the level of {nodes[0].name}, which trim sets, and that of {other}, which it "
                "leaves alone; at epsilon 1, compile all units alike with --cell counter or --cell ladder"
            )


def measure_behavioral(trial: Trial, chip: Chip, *, in_frame: bool = False) -> dict[str, CellPoints]:
    """Compute thresholds and level of every unit of a chip by the behavioral model: unit -> points, ampere.

    in_frame: for 9T cells, thresholds of the clocked cell within a frame, which the compiler aims at, instead of
    thresholds of slow ramps. Thresholds of comparators are always those within a frame.
    """
    design = trial.design
    deviations = deviations_of(design, standing(design, trial.condition, chip), chip)
    points: dict[str, CellPoints] = {}
    for node in design.graph.of(ThresholdUnit):
        cell = cell_of(design.graph, node, design.calibration, deviations.cells.get(node.name))
        if isinstance(node, Schmitt) and not in_frame:
            rise, fall = static_thresholds(cell)
        else:
            found = unit_of(node).switching_thresholds(cell, ())
            rise, fall = (found.while_off[0], found.while_on[-1])
        level = unit_of(node).output_current(cell, np.array([[node.most]], dtype=np.int16))
        line = deviations.lines_p.get(node.name, 1.0)
        points[node.name] = CellPoints(float(rise), float(fall), float(level[0, 0]) * line)
    return points


def measure_transistors(trial: Trial, chip: Chip) -> dict[str, CellPoints]:
    """Measure thresholds and level of every 9T cell of a chip in a simulator: unit -> points, ampere.

    The circuit is the cell with the diodes before it. The simulator is the trial's, or for the behavioral model the one
    next to it. Units with comparators are computed as in `measure_behavioral`.
    """
    expected = measure_behavioral(trial, chip)
    return expected | {
        cell.name: measure_cell(trial, chip, cell, 1.3 * expected[cell.name].rise)
        for cell in trial.design.graph.of(Schmitt)
    }


def measure_cell(trial: Trial, chip: Chip, cell: Schmitt, i_peak: float) -> CellPoints:
    """Measure thresholds and level of one 9T cell in a simulator, with the transistors that the chip drew for it.

    i_peak: end of the candidate ramp, ampere.
    """
    design, technology = trial.design, trial.technology
    places = _places(design.assembly.circuit, instance(f"cell_{net(cell.name)}"))
    drawn = {places[name]: pair for name, pair in drawn_values(chip).items() if name in places}
    changed = {} if design.compiled is None else changed_transistors(design.compiled, design.assembly)
    sizes = {
        places[name]: (now.w, now.l, now.m)
        for name, (_, now) in changed.items()
        if name in places and now.role != "output"  # whose copies here are those of the circuit as compiled
    }

    def deviating(circuit: Circuit) -> Circuit:
        here = _places(circuit, "cell")
        flat = resize(circuit.flat(), {name: sizes[place] for name, place in here.items() if place in sizes})
        return vary(flat, {name: drawn[place] for name, place in here.items()})

    calibration = design.calibration
    i_thresh, i_width, i_gain = (design.assembly.bias_pins[pin] for pin in design.assembly.cell_bias[cell.name])
    v_node = calibration.v_node
    share, simulator = 1.0, simulator_beside(trial.engine, trial.technology)

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
    output = design.assembly.circuit.roles()[instance(f"cell_{net(cell.name)}"), "output"]
    return CellPoints(rise, rise - (rise - fall) / share, seen / gain * exp(-design.current_factors.get(output, 0.0)))


def _places(circuit: Circuit, cell: str) -> dict[str, str]:
    """Return the transistors that set a cell's thresholds and level, name in `circuit` -> name within the cell.

    They are the cell's own and the diodes of its candidate and bias lines.
    """
    devices = list(circuit.flatten())
    own = {mos.name: mos.name.removeprefix(f"{cell}.") for mos in devices if mos.name.startswith(f"{cell}.")}
    lines = {mos.match: f"diode before {own[mos.name]}" for mos in devices if mos.name in own and mos.match}
    diodes = (mos for mos in devices if mos.role in ("candidate", "bias") and mos.match in lines)
    return own | {mos.name: lines[mos.match] for mos in diodes}


def trim_ranges(trial: Trial) -> tuple[float, float, float]:
    """Compute the relative ranges R of upper threshold pins, of lower threshold or width pins, and of gain pins.

    R is SIGMAS standard deviations over chips of what the pin sets; if a pin sets several levels, of one of them.
    """
    sigmas = {device.name: (device.sigma_vt, device.sigma_beta) for device in trial.devices}
    thermal = trial.technology.thermal_voltage
    totals: dict[str, dict[Key, float]] = defaultdict(dict)
    for effect in effects_of(trial.design):
        totals[effect.field][effect.key] = sum(
            (sigmas[device][0] / (slope * thermal)) ** 2 + sigmas[device][1] ** 2
            for (device, _), slope in zip(effect.devices, effect.slopes, strict=True)
        )
    found = np.zeros(3)
    for node in trial.design.graph.memories:
        names = _BESIDE_COMPARED if unit_of(node).has_comparators else _BESIDE
        for which, ((_, field), beside) in enumerate(zip(unit_of(node).trimmed, names, strict=False)):
            total = totals[field][node.name] + totals[beside].get(node.name, 0.0)
            found[which] = max(found[which], total)
    thresh, width, gain = (SIGMAS * np.sqrt(found)).tolist()
    return thresh, width, gain


def trim_codes(
    design: Design,
    measured: Mapping[str, CellPoints],
    wanted: Mapping[str, CellPoints],
    bits: int,
    ranges: tuple[float, float, float],
) -> dict[str, float]:
    """Compute the best codes of converters of `bits` bits; return bias pin -> factor of its current.

    measured, wanted: points of each unit on the chip, and aimed at; ranges: as `trim_ranges` returns them.
    """
    steps = np.arange(-(2 ** (bits - 1)), 2 ** (bits - 1)) / 2 ** (bits - 1)
    factors: dict[str, float] = {}
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)  # a pin may be one's upper and another's lower one
    for which, span in enumerate(ranges):
        for pin, nodes in _units_of(design, which).items():
            for node in nodes:
                pairs[pin].append(_pair(design, node, which, (measured[node.name], wanted[node.name]), factors))
            factors[pin] = _best(1 + span * steps, pairs[pin])
    return factors


def _pair(
    design: Design, node: Memory, which: int, points: tuple[CellPoints, CellPoints], factors: Mapping[str, float]
) -> tuple[float, float]:
    """Return the part of a unit's value that its pin scales, as measured, and what this part should be, ampere.

    which: 0 for the upper threshold, 1 for the lower one or the width, 2 for the level; points: (measured, wanted) of
    the unit; factors: pin -> factor found already.
    """
    found, asked = points
    if which == 0:
        return found.rise, asked.rise
    if which == 2:
        return found.level, asked.level
    if unit_of(node).has_comparators:
        return found.fall, asked.fall
    upper = design.assembly.cell_bias[node.name][0]
    return found.rise - found.fall, found.rise * factors[upper] - asked.fall


def _units_of(design: Design, which: int) -> dict[str, list[Memory]]:
    """Return bias pin -> its units, for one kind of pin. which: 0 upper threshold, 1 lower one or width, 2 level."""
    found: dict[str, list[Memory]] = defaultdict(list)
    for node in design.graph.memories:
        places = [place for place, _ in unit_of(node).trimmed]
        if which < len(places):
            found[design.assembly.cell_bias[node.name][places[which]]].append(node)
    return found


def _best(factors: Array, pairs: list[tuple[float, float]]) -> float:
    """Return the factor with the smallest sum over `pairs` (measured, wanted) of (factor - wanted / measured)^2."""
    errors = sum((factors - wanted / found) ** 2 for found, wanted in pairs)
    return float(factors[np.argmin(errors)])
