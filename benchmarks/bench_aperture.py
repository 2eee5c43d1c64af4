"""How much of what is frozen a clocked 9T cell decides by, in the batched engine and by the behavioral equations.

    python benchmarks/bench_aperture.py [TECHNOLOGY...]

One cell, width 0.3 of the threshold, frames of 10 ms: a frame that leaves it off, then one near the upper threshold.
Charge flows onto the hold node 60 us after the clock's edge has begun; what its voltage moves by is so much current of
the candidate, by M1's conductance. The share is how far the threshold moves over that.
"""

import sys
from dataclasses import replace

import numpy as np
from smoke import shrink

from cosim.cells.benches import clocked_bench
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import Voltage
from cosim.circuit.elements import GROUND, Source
from cosim.circuit.waveforms import Timing
from cosim.engines.behavioral.noise import ClockedCells, apertures, turning_excess
from cosim.engines.engine import Failure
from cosim.engines.table import simulator_named
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.noise import find_noise

TIMING, CHARGE, LATER, LENGTH = Timing(), 2e-16, 60e-6, 2e-6  # C; s, s
CURRENTS, WIDTH, RESET = (2e-10, 1e-9, 5e-9), 0.3, 0.2  # A; of the threshold
ROUNDS, TRIED = 4, 32


def benches(technology, thresh, candidates, charge):
    """One for each candidate, with so much charge onto its hold node."""
    at = TIMING.start + (1 + TIMING.closes(2)[0]) * TIMING.t_step + LATER
    ampere = charge / LENGTH
    wave = (0.0, 0.0), (at, 0.0), (at + 1e-7, ampere), (at + LENGTH, ampere), (at + LENGTH + 1e-7, 0.0)
    for candidate in candidates:
        pair = np.array([RESET * thresh, candidate])
        bench = clocked_bench(technology, 8, (thresh, WIDTH * thresh, thresh), pair, TIMING)
        flat = bench.circuit.flat()
        circuit = replace(flat, elements=(*flat.elements, Source("charge", "i", "xcell.hold", GROUND, wave)))
        yield replace(bench, circuit=circuit, probes=(Voltage("xcell.latch"), Voltage("xcell.hold"))), at


def waves(technology, thresh, candidates, charge):
    found = simulator_named("batch").run_all([one for one, _ in benches(technology, thresh, candidates, charge)], 600.0)
    assert not any(isinstance(one, Failure) for one in found)
    return found


def threshold(technology, thresh, charge):
    """A, to (TRIED - 1)^-ROUNDS of a quarter of it."""
    low, high = 0.9 * thresh, 1.15 * thresh
    for _ in range(ROUNDS):
        tried = np.linspace(low, high, TRIED)
        on = [
            one.voltage("xcell.latch")[-1] > STATE_LEVEL * technology.supply
            for one in waves(technology, thresh, tried, charge)
        ]
        first = int(np.argmax(on))
        assert first, f"{technology.name}: no threshold from {low} to {high} A"
        low, high = tried[first - 1], tried[first]
    return (low + high) / 2


def main():
    for name in sys.argv[1:] or ["generic180"]:
        technology = load_technology(name)
        fit = find_noise(technology)
        for thresh in CURRENTS:
            both = [threshold(technology, thresh, charge) for charge in (0.0, CHARGE)]
            at = next(benches(technology, thresh, [thresh], 0.0))[1] + 2 * LENGTH
            hold = [
                np.interp(at, one.time, one.voltage("xcell.hold"))
                for charge in (0.0, CHARGE)
                for one in waves(technology, thresh, [0.97 * both[0]], charge)
            ]
            siemens = both[0] / (float(fit.devices["cell_p"].slope(both[0])) * technology.thermal_voltage)
            share = (both[0] - both[1]) / (siemens * (hold[0] - hold[1]))
            one = np.array([thresh])
            cell = ClockedCells(
                one, WIDTH * one, np.array([False]), 2, TIMING, technology.supply, technology.thermal_voltage
            )
            print(
                f"{name} {1e9 * thresh:g} nA: engine {share:.3f}, threshold {1e12 * (both[0] - thresh):+.1f} pA; "
                f"equations {apertures(cell, fit)[0].frozen:.3f}, {1e12 * float(turning_excess(cell, fit)[0]):+.1f} pA",
                flush=True,
            )


if __name__ == "__main__":
    shrink(globals(), "generic180", CURRENTS=(1e-9,), ROUNDS=1, TRIED=8)
    main()
