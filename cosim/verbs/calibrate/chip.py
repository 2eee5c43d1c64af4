"""Blocks around a network, measured in ngspice once: current converter, bias tree and clock generator."""

import numpy as np

from cosim.cells.clock import clock_bench, flip_flops
from cosim.cells.converter import STEP, converter_bench
from cosim.cells.tree import ALL_FINE, TREE_COUNTS, tree_bench
from cosim.circuit.bench import Bench
from cosim.circuit.elements import Mos
from cosim.engines.engine import Waveforms
from cosim.engines.simulation.inference import run_bench
from cosim.engines.table import reference_simulator, simulator_named
from cosim.technology.calibration import CHIP_FILE, ChipFit
from cosim.technology.types import Technology
from cosim.verbs.calibrate.find import Progress
from cosim.verbs.calibrate.fingerprint import circuits_fingerprint, simulator_version

LEVELS, LEVEL, UNITS = 16, 1e-9, 8  # codes, current of the largest in A, unit devices of the input's diode
TICKS, TICK = 20, 50e-6  # of a frame; s
_END = 1.0  # s, after the supply came up


def find_chip(technology: Technology, progress: Progress = lambda text: None) -> ChipFit:
    """Return the measured figures of the blocks around a network that fit this technology's devices.

    They are shipped, kept, or newly measured and then kept. Raises MissingToolError when they must be measured and
    ngspice is missing, InputError when the library lacks a size.
    """

    def measure() -> ChipFit:
        simulator_named(reference_simulator(technology)).check()
        progress(f"measuring converter, bias tree and clock generator of {technology.name}")
        return measure_chip(technology)

    missing = reference_simulator(technology)
    lacking = f"no figures of the chip's blocks in {technology.name} fit this version, and new ones need {missing}"
    name = f"{technology.name}.chip.json"
    return CHIP_FILE.find(name, chip_fingerprint(technology), measure, lacking, progress)


def chip_fingerprint(technology: Technology) -> str:
    """Return the fingerprint of the blocks around a network: a hash of device cards, circuits and conditions."""
    circuits = [bench.circuit for bench in _benches(technology)]
    devices = [[_drawn(mos) for mos in circuit.flatten()] for circuit in circuits]
    return circuits_fingerprint(technology, circuits, {"format": CHIP_FILE.format, "devices": devices})


def _drawn(mos: Mos) -> tuple[str, str, str, str, str, float, float, int]:
    return mos.name, mos.drain, mos.gate, mos.source, mos.bulk, mos.w, mos.l, mos.m


def _benches(technology: Technology) -> tuple[Bench, Bench, Bench]:
    return (
        converter_bench(technology, LEVELS, UNITS, LEVEL, (LEVELS,)),
        tree_bench(technology, _END),
        clock_bench(technology, TICKS, TICK),
    )


def measure_chip(technology: Technology) -> ChipFit:
    """Measure converter, bias tree and clock generator of a technology. Raises SimulationError or MissingToolError."""
    version, where = simulator_version(technology), f"the chip's blocks in {technology.name}"
    drawing, feeding, ticking = _benches(technology)
    drawn = run_bench(drawing, where)
    code = float(np.interp(0.99 * STEP, drawn.time, drawn.through("out")))
    fed = run_bench(feeding, where)
    fine, *pins = (float(fed.through(f"sense{count}")[-1]) for count in (0, *TREE_COUNTS))
    each = tuple(pin / count for pin, count in zip(pins, TREE_COUNTS, strict=True))
    leakage, tick = _ticking(run_bench(ticking, where))
    return ChipFit(
        technology.name, chip_fingerprint(technology), version, code / LEVEL, tuple(pins), each, fine / ALL_FINE,
        tick, leakage,
    )  # fmt: skip


def _ticking(waves: Waveforms) -> tuple[float, float]:
    """Return a flip-flop's current between ticks, A, and its charge in each tick, C, including that of the drivers."""
    end, drawn = waves.time[-1], waves.delivered("dd")
    whole = waves.time >= end - TICKS * TICK
    quiet = float(np.interp(end - 0.01 * TICK, waves.time, drawn))
    charge = float(np.trapezoid(drawn[whole], waves.time[whole])) - quiet * TICKS * TICK
    return quiet / flip_flops(TICKS), charge / (TICKS * flip_flops(TICKS))
