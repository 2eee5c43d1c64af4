"""Do larger mirrors, those that `cosim sensitivity` names, keep as many decisions as predicted? Chips on transistors.

    python benchmarks/bench_override.py NETWORK CHIPS SAMPLE [SAMPLE ...]

For each test sample `sensitivity` finds the decision of an early frame that mismatch flips most often, with the
transistors that cause it. Overrides give the mirror of the first transistor TIMES as many devices, then the mirrors of
all transistors that cause a twentieth of its variance or more. The share of chips on which the decision flips is
predicted for each circuit, and counted on chips in the batched engine: among those whose cells all reset and whose
states before the decision are the nominal ones, because the prediction assumes both. Intervals: Clopper and Pearson,
95 %.
"""

import sys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from smoke import shrink

import cosim
from cosim.base.resources import trained_network_path
from cosim.compiler.design import Design
from cosim.compiler.overrides import Overrides, TransistorOverride, line_of
from cosim.compiler.settings import CompilerSettings
from cosim.engines.batch.simulator import BatchSimulator
from cosim.engines.behavioral.model import Behavioral
from cosim.engines.engine import Failure, Inference, Run
from cosim.engines.simulation.read import read_inference, read_plan
from cosim.engines.simulation.testbench import inference_bench
from cosim.tasks.testset import TestSet, load_test_set
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
from cosim.verbs.sensitivity.study import Decision, SensitivityTarget, sensitivities

TIMES = 4
ALL = 1000  # decisions that are studied
EARLY = 1  # the last frame of a decision: later ones have few chips whose states before are the nominal ones
LEAST = 0.05  # of the variance


def counted(design: Design, test_set: TestSet, chips: int, decision: Decision) -> tuple[int, int]:
    """Return on how many chips a decision flips, and how many chips have the nominal states before it."""
    simulator, plan, x = BatchSimulator(), VariationPlan("local", 1, chips), test_set.inputs(0)
    devices = varying_devices(design.assembly.circuit, design.technology, plan)
    every = (draw_chip(devices, design.technology, plan, number) for number in range(chips))
    resets = [chip for chip in every if not Behavioral().unreset(design, test_set, Run(chip=chip))]
    drawn = [None, *resets]
    reading, states = read_plan(design, len(x)), list[NDArray[np.number]]()
    for at in range(0, len(drawn), simulator.lanes):
        few = [inference_bench(design, x, chip=chip) for chip in drawn[at : at + simulator.lanes]]
        benches = [replace(bench, circuit=bench.circuit.flat()) for bench in few]
        for waves in simulator.run_all(benches, 600.0):
            found = waves if isinstance(waves, Failure) else read_inference(waves, reading)
            if isinstance(found, Inference):
                states.append(found.states)
    nominal, *others = states
    column = list(design.assembly.decisions).index(decision.cell)
    same = [one for one in others if np.array_equal(one[: decision.frame], nominal[: decision.frame])]
    return sum(one[decision.frame, column] != nominal[decision.frame, column] for one in same), len(same)


def main() -> None:
    """Three lines for each sample: as compiled, one mirror larger, and all that cause much."""
    network, chips, *samples = sys.argv[1:]
    plain = cosim.load(trained_network_path(network)).compile("generic180")
    lines = {mos.name: line_of(mos) for mos in plain.design.assembly.circuit.flatten()}
    test_set = load_test_set(plain.design.network, None)
    for number in map(int, samples):
        x = test_set.inputs(number)
        (found,) = sensitivities(plain.design, [x], asked=SensitivityTarget(decisions=ALL))
        decision = next(one for one in found.decisions if one.frame <= EARLY and one.flips < 0.4)
        causes = [(lines[one.device], one.share) for one in decision.devices if lines[one.device]]
        worst = list(dict.fromkeys(mirror for mirror, share in causes if share >= LEAST)) or [causes[0][0]]
        for mirrors in ([], worst[:1], worst):
            entries = tuple(TransistorOverride(mirror=mirror, times=TIMES) for mirror in mirrors)
            settings = CompilerSettings(overrides=Overrides(entries))
            design = cosim.load(trained_network_path(network)).compile("generic180", settings=settings).design
            name = f"{len(mirrors)} times {TIMES}" if mirrors else "as compiled"
            (now,) = sensitivities(design, [x], asked=SensitivityTarget(decisions=ALL))
            same = next(one for one in now.decisions if (one.cell, one.frame) == (decision.cell, decision.frame))
            flips, of = counted(design, test_set.select(np.array([number])), int(chips), decision)
            low, high = binomtest(flips, of).proportion_ci(0.95)
            decided = f"sample {number}, {decision.cell} in frame {decision.frame}, {name:14}"
            share = f"counted {100 * flips / of:5.1f} % [{100 * low:.1f}, {100 * high:.1f}] of {of} chips"
            print(f"{decided}: predicted {100 * same.flips:5.1f} % flip, {share}", flush=True)


if __name__ == "__main__":
    shrink(globals(), "digits_d4", "8", "3")
    main()
