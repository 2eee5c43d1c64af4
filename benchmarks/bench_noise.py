"""Noise at the hold nodes of a network: the behavioral model's formula against ngspice's `.noise`.

    python benchmarks/bench_noise.py TECHNOLOGY [NETWORK] [FRAMES] [--charge] [--json FILE]

Of random frames of random test samples the whole circuit is simulated to the moment before its last stage closes, see
cosim.engines.ngspice.noise. `.noise` at each hold node, 1 Hz to 10 MHz, is a voltage; times the transconductance of
candidate's diode, it is what the model says with the thermal noise of the device cards (`NoiseSimulation.card`).
Candidates below 20 pA are left out: they are far under any threshold.

--charge sets BSIM4's tnoimod to 0 in all cards, for network and devices alike. With 1, sky130's own, a transistor has
inner nodes in `.noise` alone, and ngspice 39 finds no operating point of the network there.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np
from smoke import few, shrink

import cosim.engines.ngspice.noise as small_signals
from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_noisy
from cosim.engines.ngspice.noise import held_noise
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.calibrate.noise import find_noise, measure_noise

LEAST = 2e-11  # A


@dataclass(frozen=True)
class Row:
    """One candidate: current and noise in pA, by ngspice, by the model with the card's thermal noise, by physics."""

    sample: int
    frame: int
    cell: str
    current: float
    spice: float
    card: float
    physical: float


def measure(design, test, traces, fit, place):
    """The rows of one frame."""
    (sample, frame), card = place, traces[0]
    begin = process_time()
    spectra, _ = held_noise(design, test.inputs(sample), frame)
    cells = [name for name in spectra if card.candidates[name][sample, frame] >= LEAST]
    device, rows = fit.devices["cell_p"], []
    for cell in cells:
        current = float(card.candidates[cell][sample, frame])
        siemens = current / (float(device.slope(current)) * design.technology.thermal_voltage)
        seen = (
            current,
            siemens * spectra[cell].variance ** 0.5,
            *(float(one.frozen[cell][sample, frame]) for one in traces),
        )
        rows.append(row := Row(sample, frame, cell, *(1e12 * value for value in seen)))
        print(f"{sample:4} {frame:3} {cell:10} {row.current:8.1f} pA {row.spice:7.2f} {row.card:7.2f}", end="")
        print(f" {row.card / row.spice:6.3f}  physical {row.physical:6.2f}", flush=True)
    print(f"     {process_time() - begin:.1f} s for {len(spectra)} nodes", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("technology")
    parser.add_argument("network", nargs="?", default="digits_d4")
    parser.add_argument("frames", nargs="?", type=int, default=4)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--charge", action="store_true")
    asked = parser.parse_args()
    if asked.charge:
        plain = small_signals.format_deck
        small_signals.format_deck = lambda *deck: plain(*deck).replace("tnoimod=1 ", "tnoimod=0 ")
    technology, network = load_technology(asked.technology), load_network(trained_network_path(asked.network))
    design, test = compile_network(network, technology, find_calibration(technology, 8)), load_test_set(network, None)
    fit = measure_noise(technology) if asked.charge else find_noise(technology)
    rng = np.random.default_rng(1)
    traces = tuple(run_noisy(design, test.x, NoiseSimulation(fit, card=card, seed=0)) for card in (True, False))
    rows = []
    for _ in range(asked.frames):
        sample = int(rng.integers(len(test.y)))
        rows += measure(design, test, traces, fit, (sample, int(rng.integers(1, test.lengths[sample]))))
        if asked.json:
            asked.json.write_text(json.dumps([asdict(row) for row in rows]))
    current, spice, card, physical = (
        np.array([getattr(row, name) for row in rows]) for name in ("current", "spice", "card", "physical")
    )
    ratio = card / spice
    print(f"{asked.technology} {asked.network}: {len(rows)} candidates, {current.min():.0f} to {current.max():.0f} pA")
    print(f"ngspice {spice.min():.1f} to {spice.max():.1f} pA, physics over card {np.mean(physical / card):.3f}")
    print(f"model over ngspice {ratio.min():.3f} to {ratio.max():.3f}, mean {ratio.mean():.3f}")


if __name__ == "__main__":
    shrink(globals(), "generic180", "digits_d4", "1", load_test_set=few(load_test_set, frames=4))
    main()
