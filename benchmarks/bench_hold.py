"""Noise over the hold capacitor and i_unit: accuracy and states against energy, and the law 1/sqrt(C).

    python benchmarks/bench_hold.py [NETWORK [DATA]] [--technology NAME] [--i-unit NA ...] [--farad PF ...]

The behavioral model with the noise of its devices, ten runs, on the whole test set; frames as long as C / i_unit asks,
10 ms at 0.4 pF and 1 nA, so that every circuit settles alike. Gains and thresholds are those of the calibration of the
drawn cell: only noise knows the other capacitor. frozen: median standard deviation of candidates above 0.2 i_unit; law:
that over the one at 0.4 pF, times sqrt(C + C_c) of it, C_c the candidate's own capacitance.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from smoke import few, shrink

from cosim.base.resources import trained_network_path
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.model import behavioral_power, run_behavioral, run_noisy
from cosim.engines.behavioral.noise import loads_of
from cosim.engines.engine import Run
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.compare.noise import study_noise

DRAWN = 0.4e-12  # F


def measure(network, technology, farad, i_unit, test):
    """(frozen sigma over i_unit, capacitance of the candidate, study, energy of an inference in J)."""
    calibration, fit = find_calibration(technology, 8), find_noise(technology)
    there = replace(technology, hold_capacitance=farad)
    design = compile_network(network, there, calibration, settings=CompilerSettings(i_unit=i_unit))
    decision = replace(fit.decision, kick=fit.decision.kick * DRAWN / farad)  # M1's capacitance over C
    noise = NoiseSimulation(
        replace(fit, decision=decision), timing=Timing(t_step=10e-3 * farad / DRAWN * 1e-9 / i_unit)
    )
    found = study_noise(design, test, noise, Run(timing=noise.timing))
    trace = run_noisy(design, test.x, noise)
    loads = loads_of(design, noise.fit)
    ratios = np.concatenate([
        trace.frozen[cell][candidate > 0.2 * i_unit] / i_unit for cell, candidate in trace.candidates.items()
    ])  # fmt: skip
    power = sum(behavioral_power(design, run_behavioral(design, test.x), noise.timing).values())
    whole = np.mean([at_diode + at_hold for at_diode, at_hold in loads.held.values()])
    return np.median(ratios), whole, found, float(power.mean()) * test.lengths.mean() * noise.timing.t_step


def shown(changed, digits):
    """What noise leaves, in percent."""
    mean, low, high = (f"{100 * (1 - one):.{digits}f}" for one in (changed.mean, changed.high, changed.low))
    return f"{mean} [{low}, {high}]"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("network", nargs="?", default=str(trained_network_path("digits_d16")))
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--technology", default="generic180")
    parser.add_argument("--i-unit", type=float, nargs="*", default=[1.0])
    parser.add_argument("--farad", type=float, nargs="*", default=[0.4, 0.025, 0.05, 0.1, 0.2, 0.8])
    given = parser.parse_args()
    technology, network = load_technology(given.technology), load_network(Path(given.network))
    test, first = load_test_set(network, given.data), None
    for i_unit in given.i_unit:
        for farad in given.farad:
            sigma, whole, found, energy = measure(network, technology, 1e-12 * farad, 1e-9 * i_unit, test)
            first = first or sigma * np.sqrt(whole)
            print(f"{i_unit:g} nA {farad:6.3f} pF: frozen {1e3 * sigma:.2f} e-3", end="; ")
            print(f"law {sigma * np.sqrt(whole) / first:.3f}; decides {1e12 * found.sigma_a['50']:.2f} pA", end="; ")
            print(f"states {shown(found.states, 3)}; decisions {shown(found.answers, 2)}", end="; ")
            right = found.accuracy
            print(f"accuracy {100 * right.mean:.1f} [{100 * right.low:.1f}, {100 * right.high:.1f}]", end="; ")
            print(f"quiet {100 * found.quiet:.1f}; {1e9 * energy:.3f} nJ", flush=True)


if __name__ == "__main__":
    shrink(globals(), str(trained_network_path("digits_d4")), "--farad", "0.4", "0.1", load_test_set=few(load_test_set))
    main()
