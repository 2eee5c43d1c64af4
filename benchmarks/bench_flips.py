"""What candidate noise does to one clocked 9T cell in ngspice: what freezes, how often it flips, and why less often.

    python benchmarks/bench_flips.py [TECHNOLOGY] [DECISIONS]

White current noise (`trnoise`) of 10 pA rms stands on the candidate. Frozen: rms on the hold node against sigma^2 =
S g_m / (4 C). Flips: every second frame resets the cell, the others have a candidate near the upper threshold, which is
that of the same bench without noise. Pulses, without noise: the candidate is d below the threshold and n higher for the
last 60 us before the sample gate closes; the least n that sets the cell.
"""

import sys

import numpy as np
from scipy.stats import binomtest, norm

from cosim.calibration.noise import find_noise
from cosim.cells.benches import clocked_bench
from cosim.cells.clocked import HOLD_CAPACITANCE, LATCH_NODE
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.waveforms import Timing
from cosim.engines.engine import Failure
from cosim.engines.ngspice.session import run_deck
from cosim.technology.catalog import load_technology

BIAS = (1e-9, 0.3e-9, 1e-9)  # A
TIMING = Timing()
SIGMA, EVERY = 10e-12, 6e-6  # A; s, of the samples of the noise, a third of the candidate's time constant
BATCH, FRAMES = 30, 60  # decisions, and frozen frames, in a transient
LEVELS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
PULSE, STEPS = 60e-6, 1e-12 * np.arange(0, 52, 2)  # s, A
FROZEN = 0.5  # of a frame


def run(technology, candidates, source=""):
    """Waveforms of a candidate a frame, (n,) ampere, with one more source on the candidate's node."""
    deck = format_bench(clocked_bench(technology, 8, BIAS, candidates, TIMING))
    deck = deck.replace(f".save v(xcell.{LATCH_NODE})", f".save v(xcell.{LATCH_NODE}) v(xcell.hold)")
    found = run_deck(deck.replace(".end\n", f"{source}.end\n"))
    assert not isinstance(found, Failure), found.detail
    return found


def states(technology, candidates, source=""):
    """Whether the cell is on behind each candidate (n,), each with a reset in front."""
    driven = np.stack([np.full(len(candidates), 0.2e-9), candidates], axis=1).ravel()
    found = run(technology, driven, source)
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


def frozen(technology, rise, siemens, noise):
    """rms of the frozen hold node as candidate current, A, from 0.9 of the threshold."""
    times = TIMING.start + TIMING.t_step * (np.arange(2, FRAMES) + FROZEN)
    with_noise, without = (
        np.interp(times, found["time"], found["xcell.hold"])
        for found in (run(technology, np.full(FRAMES, 0.9 * rise), source) for source in (noise, ""))
    )
    return 0.9 * siemens * float((with_noise - without).std())


def pulses(close):
    """A source of STEPS, one in every second frame."""
    points = [(0.0, 0.0)]
    for k, step in enumerate(STEPS):
        end = TIMING.start + TIMING.t_step * (2 * k + 1 + close)
        points += [(end - PULSE - 2e-6, 0.0), (end - PULSE, step), (end + PULSE, step), (end + PULSE + 2e-6, 0.0)]
    return f"ipulse cand 0 pwl({' '.join(f'{time:.9g} {value:.6g}' for time, value in points)})\n"


def main():
    """All three."""
    technology = load_technology(sys.argv[1] if len(sys.argv) > 1 else "generic180")
    decisions = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    device, rise = find_noise(technology).devices["cell_p"], threshold(technology)
    farad = HOLD_CAPACITANCE + device.gate + device.diode
    siemens = rise / (float(device.slope(rise)) * technology.thermal_voltage)
    white = 4 * farad * SIGMA**2 / siemens  # one-sided, A^2/Hz: 2 rms^2 EVERY of the source
    noise = f"inoise cand 0 dc 0 trnoise({(white / 2 / EVERY) ** 0.5:.6g} {EVERY:g} 0 0)\n"
    found = frozen(technology, rise, siemens, f"{noise}.options seed=1\n")
    wanted = SIGMA * 0.9**0.5
    print(f"{technology.name}: threshold {1e9 * rise:.4f} nA", flush=True)
    print(f"frozen: {1e12 * found:.2f} pA in {FRAMES - 2} frames, predicted {1e12 * wanted:.2f} pA", flush=True)
    levels = np.resize(LEVELS, decisions)
    parts = np.array_split(levels, max(decisions // BATCH, 1))
    on = np.concatenate(
        [
            states(technology, rise + SIGMA * part, f"{noise}.options seed={seed}\n")
            for seed, part in enumerate(parts, 2)
        ]
    )
    for level in LEVELS:
        there = on[levels == level]
        low, high = binomtest(int(there.sum()), len(there)).proportion_ci(method="exact")
        print(f"{level:5.1f} sigma: on {there.mean():.3f} [{low:.3f}, {high:.3f}], predicted {norm.cdf(level):.3f}")
    for below in (2.5e-12, 5e-12, 10e-12, 20e-12):
        held = states(technology, np.full(len(STEPS), rise - below), pulses(TIMING.closes(2)[0]))
        print(f"{1e12 * below:5.1f} pA below: set by {1e12 * STEPS[held].min():.0f} pA and more")


if __name__ == "__main__":
    main()
