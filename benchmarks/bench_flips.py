"""How often noise turns a clocked 9T cell in ngspice: white current noise on its candidate, against the formula.

    python benchmarks/bench_flips.py [TECHNOLOGY] [DECISIONS]

A source of `trnoise` stands on the candidate of one cell. Every second frame resets the cell, the others have a
candidate near the upper threshold, at nine levels of -2 to 2 predicted sigma. The threshold is that of the same bench
without noise. Predicted: sigma^2 = S g_m / (4 C), one Gaussian number a decision, frozen by the sample gate.
"""

import sys
from dataclasses import replace
from time import process_time

import numpy as np
from scipy.stats import binomtest, norm

from cosim.calibration.noise import find_noise
from cosim.cells.benches import clocked_bench
from cosim.cells.clocked import HOLD_CAPACITANCE, LATCH_NODE
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import Tolerances
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.waveforms import Timing
from cosim.engines.engine import Failure
from cosim.engines.ngspice.session import run_deck
from cosim.technology.catalog import load_technology

BIAS = (1e-9, 0.3e-9, 1e-9)  # A
TIMING = Timing(t_step=2e-3)
SIGMA, EVERY = 10e-12, 3e-6  # A; s, of the samples of the noise, a sixth of the candidate's time constant
BATCH = 45  # decisions in a transient
LEVELS = np.linspace(-2, 2, 9)


def states(technology, candidates, noise=""):
    """Whether the cell is on behind each candidate (n,), each with a reset in front."""
    driven = np.stack([np.full(len(candidates), 0.2e-9), candidates], axis=1).ravel()
    bench = replace(clocked_bench(technology, 8, BIAS, driven, TIMING), tolerances=Tolerances())
    found = run_deck(format_bench(bench).replace(".end\n", f"{noise}.end\n"))
    assert not isinstance(found, Failure), found.detail
    latch = np.interp(TIMING.sample_times(len(driven)), found["time"], found[f"xcell.{LATCH_NODE}"])
    return latch[1::2] > STATE_LEVEL * technology.supply


def threshold(technology):
    """The upper threshold in these frames, A."""
    low, high = 0.9 * BIAS[0], 1.1 * BIAS[0]
    for _ in range(3):
        tried = np.linspace(low, high, 16)
        first = int(np.argmax(states(technology, tried)))
        low, high = tried[first - 1], tried[first]
    return (low + high) / 2


def main():
    technology = load_technology(sys.argv[1] if len(sys.argv) > 1 else "generic180")
    decisions = int(sys.argv[2]) if len(sys.argv) > 2 else 540
    device, rise = find_noise(technology).devices["cell_p"], threshold(technology)
    farad = HOLD_CAPACITANCE + device.gate + device.diode
    siemens = rise / (float(device.slope(rise)) * technology.thermal_voltage)
    white = 4 * farad * SIGMA**2 / siemens  # one-sided, A^2/Hz: 2 rms^2 EVERY of the source
    noise = f"inoise cand 0 dc 0 trnoise({(white / 2 / EVERY) ** 0.5:.6g} {EVERY:g} 0 0)\n"
    levels = np.resize(LEVELS, decisions)
    begin, parts = process_time(), np.array_split(levels, max(decisions // BATCH, 1))
    runs = [
        states(technology, rise + SIGMA * part, f"{noise}.options seed={seed}\n") for seed, part in enumerate(parts, 1)
    ]
    on = np.concatenate(runs)
    print(f"{technology.name}: threshold {1e9 * rise:.4f} nA, C {1e15 * farad:.0f} fF, {decisions} decisions", end=", ")
    print(f"{process_time() - begin:.0f} s")
    for level in LEVELS:
        there = on[levels == level]
        low, high = binomtest(int(there.sum()), len(there)).proportion_ci(method="exact")
        print(f"{level:5.1f} sigma: on {there.mean():.3f} [{low:.3f}, {high:.3f}], predicted {norm.cdf(level):.3f}")


if __name__ == "__main__":
    main()
