"""Dispersive delay lines of four tau-cells in ngspice: delay by bias current, and on chips that vary.

    python benchmarks/bench_gamma_line.py [TECHNOLOGY] [CHIPS]
    python benchmarks/bench_gamma_line.py follow [TECHNOLOGY]       compiled lines, frame by frame

Every transistor of the bench deviates, the bias mirror and the input's among them. One factor on all biases takes out
what the lines are wrong by in common at 40 ms. Trimmed: each chip's bias is multiplied by the delay that it had over
the one that it should have, and it is measured again.
"""

import sys
from dataclasses import replace

import numpy as np
from smoke import shrink

from cosim.cells.gamma_line import BEFORE, gamma_bench, gamma_line, line_bias, step_moments
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.chip import drawn_values, vary
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_bench
from cosim.engines.simulation.inference import run_bench as run_single
from cosim.engines.simulation.testbench import inference_bench
from cosim.network.gamma import GammaLayer
from cosim.network.reference import run_reference
from cosim.network.types import InputEncoding, Network, Readout, check_network
from cosim.results.intervals import interval
from cosim.technology.catalog import load_technology
from cosim.technology.types import Technology
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
from cosim.verbs.calibrate.find import find_calibration

UNITS, ORDER, CAPACITANCE = 8, 4, 3e-12
POSITIONS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
NOMINAL = 0.04
FRAMES = (2.0, 3.0, 5.0, 10.0, 20.0)


def delay(
    technology: Technology, bias: float, seconds: float, plan: VariationPlan | None = None, number: int = 0
) -> np.ndarray:
    """Mean, standard deviation in s, and the line's gain; on a chip of the plan if there is one."""
    bench = gamma_bench(technology, UNITS, gamma_line(technology, UNITS, ORDER, CAPACITANCE), bias, seconds)
    if plan is not None:
        devices = varying_devices(bench.circuit, technology, plan)
        drawn = drawn_values(draw_chip(devices, technology, plan, number))
        bench = replace(bench, circuit=vary(bench.circuit.flat(), drawn))
    found = run_bench(bench)
    if isinstance(found, Failure):
        raise SystemExit(f"not run: {found}")
    current = found.through("out")
    gain = (current[-1] - current[0]) / 0.25e-9
    return np.array([*step_moments(found.time, current, BEFORE * seconds), gain])


def follow(name: str = "generic180") -> None:
    """Compiled lines of 4 cells against the behavioral model and the software, in units of 1 nA; 3 seeds, 40 frames."""
    technology, timing, frames = load_technology(name), Timing(), 40
    calibration, width = find_calibration(technology, UNITS, print), len(FRAMES)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        weight = np.zeros((width, 3))
        weight[np.arange(width), rng.integers(0, 3, width)] = 1.0
        layer = GammaLayer(
            "delays", ("input",), weight, np.zeros(width), np.array(FRAMES), np.full(width, float(ORDER))
        )
        encoding, readout = InputEncoding(np.zeros(3), np.ones(3)), Readout(("delays",), np.eye(2, width), np.zeros(2))
        network = check_network(Network(encoding, (layer,), readout))
        design = compile_network(network, technology, calibration, CompilerSettings(t_step=timing.t_step))
        x = rng.uniform(0, 1, (1, frames, 3))
        trace, moments = run_behavioral(design, x), timing.sample_times(frames)
        software = run_reference(network, x).signals["delays"][0]
        waves = run_single(inference_bench(design, x[0], timing), "delay lines")
        for node in design.graph.memories:
            shown = design.assembly.decisions[node.name]
            current = np.interp(moments, waves.time, np.abs(waves.drain(shown.device)))
            found = (current - shown.rest) / design.i_unit + node.zero
            model = np.abs(found - node.zero - node.step * trace.states[node.name][0])
            exact = np.abs(found - software[:, node.index])
            print(
                f"{technology.name} seed {seed} p {FRAMES[node.index]:g} frames: behavioral {model.max():.4f} nA at "
                f"most, rms {np.sqrt(np.mean(model**2)):.4f}; software {exact.max():.4f}, largest {found.max():.2f}",
                flush=True,
            )


def main() -> None:
    """The table, then the chips."""
    if sys.argv[1:2] == ["follow"]:
        return follow(*sys.argv[2:])
    technology = load_technology(sys.argv[1] if len(sys.argv) > 1 else "generic180")
    chips = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    factor = delay(technology, line_bias(technology, NOMINAL, ORDER, CAPACITANCE), NOMINAL)[0] / NOMINAL
    print(f"{technology.name}  {ORDER} cells of {CAPACITANCE * 1e12:g} pF  factor on all biases {factor:.3f}")
    for seconds in POSITIONS:
        bias = line_bias(technology, seconds, ORDER, CAPACITANCE)
        for name, by in (("by the formula", 1.0), ("with the factor", factor)):
            mean, width, gain = delay(technology, by * bias, seconds)
            print(
                f"p {1e3 * seconds:4.0f} ms  {name:15}  I_tau {by * bias * 1e12:6.2f} pA  mean {1e3 * mean:6.2f} ms "
                f"({mean / seconds - 1:+.1%})  width {1e3 * width:6.2f} ms ({2 * width / seconds - 1:+.1%})  "
                f"gain {gain:.3f}",
                flush=True,
            )
    plan = VariationPlan("local", 0, chips)
    bias = factor * line_bias(technology, NOMINAL, ORDER, CAPACITANCE)
    found = []
    for number in range(chips):
        first = delay(technology, bias, NOMINAL, plan, number)
        found.append((first, delay(technology, bias * first[0] / NOMINAL, NOMINAL, plan, number)))
    for k, name in enumerate(("untrimmed", "trimmed once")):
        means, widths, gains = np.array([pair[k] for pair in found]).T
        error = means / NOMINAL - 1
        yields = (interval(int((abs(error) <= bound).sum()), chips) for bound in (0.02, 0.05, 0.1, 0.2))
        within = "  ".join(f"{value:.1%} [{low:.1%}, {high:.1%}]" for value, low, high in yields)
        print(
            f"{name:13} {chips} chips  mean {error.mean():+.1%}, sigma {error.std(ddof=1):.1%}  width sigma "
            f"{(2 * widths / NOMINAL).std(ddof=1):.1%}  gain sigma {gains.std(ddof=1):.1%}  "
            f"within 2, 5, 10, 20 %: {within}",
            flush=True,
        )


if __name__ == "__main__":
    shrink(globals(), "generic180", "2", POSITIONS=(0.04,))
    main()
