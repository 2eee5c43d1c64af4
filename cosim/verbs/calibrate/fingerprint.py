"""Fingerprint of a calibration: a hash of measuring points and circuits, without the texts and comments in them."""

import json
import math
from collections.abc import Collection
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np

from cosim.base.seal import checksum
from cosim.cells.benches import (
    ComparatorDrive,
    DpiDrive,
    LevelDrive,
    TauDrive,
    clocked_bench,
    comparator_bench,
    decision_bench,
    dpi_bench,
    level_bench,
    mirror_bench,
    schmitt_bench,
    sink_bench,
    tau_cell_bench,
)
from cosim.circuit.bench import Bench
from cosim.circuit.deck import device_sizes
from cosim.circuit.elements import Circuit
from cosim.circuit.waveforms import Timing
from cosim.engines.table import reference_simulator, simulator_named
from cosim.technology.foundry import ModelCard, device_cards
from cosim.technology.types import Technology
from cosim.units.counter import KEEP
from cosim.units.ladder import TAU_SHARE, ladder_currents
from cosim.units.sizing import PULSE_BEGIN, PULSE_END
from cosim.units.table import fit_measurements

# Fields that change no current; noise, without which all is measured; a technology, of which what it decides counts.
_LEFT_OUT = {"technology", "title", "summary", "origin", "notes", "role", "match", "part", "noise"}


@dataclass(frozen=True)
class Points:
    """The measuring points and search ranges of a calibration, currents in A; a change makes every kept file void.

    trim_currents: signal currents over which the trim equalises gains. rises: upper thresholds; the compiler refuses
    those above 8 nA. range_currents: candidates for the smallest and largest usable current; range_spread: largest
    relative deviation of a usable gain. trim_start: gain mismatch below which no slope is measured; largest_ln_trim:
    log of the largest trim, a factor of 2. stretches: lengths of a bias diode over nominal; stretch_currents: where
    they are measured. slope_step: V. shift_range: search range around a threshold, (A, fraction of the threshold);
    shift_steps: points from the threshold to its end. comparator_spans: search ranges as fractions of the threshold;
    the next is tried if one has no decision. tau_gate: gate current at which the choice of capacitor makes a tau-cell's
    rate 1; tau_steps: candidate steps that are averaged. level_reach: search range of a register's turn, (A, fraction
    of the turn); level_rounds: number of searches, each with level_steps values.
    """

    mirror_currents: tuple[float, ...] = (2e-11, 5e-11, 1e-10, 2e-10, 5e-10, 1e-9, 2e-9, 4e-9, 8e-9, 16e-9)
    range_currents: tuple[float, ...] = tuple(
        step * 10.0**decade for decade in range(-12, -6) for step in (1.0, 2.0, 5.0)
    )
    range_spread: float = 0.02
    trim_currents: tuple[float, ...] = (2e-10, 5e-10, 1e-9, 2e-9)
    trim_start: float = 1e-3
    largest_ln_trim: float = math.log(2)
    stretches: tuple[float, float] = (0.97, 1.03)
    stretch_currents: tuple[float, ...] = (1e-9, 2e-9, 4e-9)
    slope_step: float = 0.1
    swing_currents: tuple[float, float] = (1e-10, 2e-9)
    rises: tuple[float, ...] = (0.08e-9, 0.2e-9, 0.5e-9, 1e-9, 2e-9, 4e-9, 8e-9)
    width_fractions: tuple[float, ...] = (0.12, 0.35, 0.6, 0.85)
    levels: tuple[float, ...] = (0.08e-9, 0.2e-9, 0.5e-9, 1e-9, 2e-9, 4e-9, 8e-9, 16e-9)
    frame_thresholds: tuple[tuple[float, float], ...] = (
        (0.3e-9, 0.1e-9), (1e-9, 0.3e-9), (2e-9, 1e-9), (4e-9, 2.5e-9)
    )  # fmt: skip
    shift_range: tuple[float, float] = (8e-12, 0.015)
    shift_steps: int = 31
    comparator_steps: int = 32
    comparator_currents: tuple[float, ...] = (0.1e-9, 0.25e-9, 0.5e-9, 1e-9, 2e-9, 4e-9, 8e-9)
    comparator_spans: tuple[float, ...] = (0.06, 0.2, 0.5)
    dpi_alphas: tuple[float, ...] = (0.1e-9, 0.25e-9, 0.5e-9, 1e-9, 2e-9)
    dpi_secants: int = 3
    tau_candidates: tuple[float, ...] = (0.05e-9, 0.1e-9, 0.2e-9, 0.5e-9, 1e-9, 2e-9, 4e-9, 8e-9)
    tau_gates: tuple[float, ...] = (0.02e-9, 0.05e-9, 0.1e-9, 0.2e-9, 0.5e-9, 1e-9, 2e-9, 4e-9)
    tau_gate: float = 0.7e-9
    tau_steps: tuple[tuple[float, float], ...] = ((1e-9, 0.2e-9), (0.2e-9, 1e-9), (2e-9, 0.5e-9), (0.5e-9, 2e-9))
    level_turns: tuple[float, ...] = (0.1e-9, 0.5e-9, 1e-9, 2e-9, 4e-9)
    level_reach: tuple[float, float] = (20e-12, 0.02)
    level_rounds: int = 2
    level_steps: int = 9


POINTS = Points()


def calibration_benches(technology: Technology, units: int, points: Points = POINTS) -> tuple[Bench, ...]:
    """Return one testbench of every kind that a calibration runs, with example currents and lengths, to be hashed."""
    bias, candidate, timing = (1e-9, 5e-10, 1e-9), np.array([1e-9]), Timing()
    compared = ComparatorDrive(candidate, 1e-10, 1e-10, (0.4, 0.5))
    return (
        mirror_bench(technology, units, 1.0, 1e-9, 0.5),
        *(sink_bench(technology, stretch, 1e-9, 0.5) for stretch in (1.0, *points.stretches)),
        schmitt_bench(technology, units, bias, 1.5e-9, 0.5),
        clocked_bench(technology, units, bias, candidate, timing),
        *(comparator_bench(technology, 1e-9, replace(compared, upper=one)) for one in (True, False)),
        dpi_bench(technology, units, DpiDrive(1e-9, 1e-11, 1e-11, 1e-12, 1e-2), 0.5),
        tau_cell_bench(technology, units, TauDrive(1e-12, 1.0, candidate, candidate, (0.5, 0.6))),
        level_bench(technology, units, LevelDrive(1e-9, 1e-10, 5e-10, candidate, (0.5, 0.6))),
        decision_bench(technology, 1e-9, KEEP * 1e-9, candidate, (PULSE_BEGIN, PULSE_END)),
    )


def calibration_fingerprint(technology: Technology, units: int, points: Points = POINTS) -> str:
    """Return a calibration's fingerprint, a hash of all that its results depend on.

    Hashed are circuits, sizes, device parameters, tolerances, conditions, layout grid and measuring points. Raises
    InputError when the technology's library lacks a device or a size.
    """
    benches = calibration_benches(technology, units, points)
    sizes = set().union(*(device_sizes(bench.circuit) for bench in benches))
    content = {
        "benches": [_plain(bench) for bench in benches],
        "devices": {card.name: _numbers(card) for card in device_cards(technology, sizes)},
        "diffusion": technology.library.diffusion,
        "conditions": (technology.supply, technology.celsius),
        "grid": technology.grid,  # the trim is a length on it
        "slope factor": technology.nfet.slope_factor,  # the DPI's capacitor goes with it
        "points": _plain(points),
        "pulses": (TAU_SHARE, PULSE_END, _plain(ladder_currents(1e-9))),
    }
    if own := fit_measurements():
        content["own"] = sorted(own)
    text = json.dumps(content, sort_keys=True, default=_plain)
    return checksum(text.encode())


def circuits_fingerprint(technology: Technology, circuits: Collection[Circuit], content: dict[str, object]) -> str:
    """Return the fingerprint of measured circuits: a hash of their device cards, the conditions, and `content`."""
    cards = device_cards(technology, set().union(*map(device_sizes, circuits)))
    content = {
        **content,
        "cards": {card.name: (card.polarity, card.version, dict(sorted(card.parameters.items()))) for card in cards},
        "conditions": (technology.supply, technology.celsius, technology.library.diffusion),
    }
    return checksum(json.dumps(content, sort_keys=True).encode())


def simulator_version(technology: Technology, simulator: str | None = None) -> str:
    """Return name and version of an installed simulator, such as "ngspice-42", as kept with what it measured.

    simulator: its name, None for the technology's reference simulator. Raises MissingToolError if it is missing.
    """
    simulator = simulator or reference_simulator(technology)
    return f"{simulator}-{simulator_named(simulator).describe(technology).version}"


def _numbers(card: ModelCard) -> dict[str, object]:
    """Return the hashed part of a device card: name -> type, version and parameters."""
    version = {"version": card.version} if card.version else {}
    return {"type": f"{card.polarity}mos", **version, **card.parameters}


def _plain(value: object) -> object:
    """Return the hashed part of an object, ready for JSON: data without texts and without the technology.

    A dataclass becomes {its name: fields}, so another name voids every kept calibration; floats have 12 digits.
    """
    if is_dataclass(value):
        held = ((field.name, getattr(value, field.name)) for field in fields(value))
        kept = {name: _plain(found) for name, found in held if name not in _LEFT_OUT}
        return {type(value).__name__: kept}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return f"{value:.11e}" if isinstance(value, float) else value
