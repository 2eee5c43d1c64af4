"""How cosim runs a deck against precise options without bypass: readout, states and power."""

import sys
from dataclasses import replace

import numpy as np
from smoke import few, shrink

from cosim.base.resources import trained_network_path
from cosim.circuit.bench import PRECISE
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure, Inference
from cosim.engines.ngspice.process import run_bench
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import read_inference, read_plan
from cosim.engines.simulation.testbench import inference_bench
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import find_calibration


def main(digits: int = 3) -> None:
    technology = load_technology("generic180")
    network = load_network(trained_network_path("digits_d8"))
    design = compile_network(network, technology, find_calibration(technology, 8))
    x = load_test_set(network, None).take(digits, 3).x
    plan = read_plan(design, x.shape[1])
    differences, bits, power = [], 0, []
    for sample in x:
        bench = inference_bench(design, sample)
        waves = run_bench(replace(bench, tolerances=PRECISE))
        assert not isinstance(waves, Failure), waves
        default, precise = run_inference(bench, plan), read_inference(waves, plan)
        assert isinstance(default, Inference), default
        assert isinstance(precise, Inference), precise
        differences.append((default.readout - precise.readout) / design.i_unit)
        bits += int((default.states != precise.states).sum())
        power.append(default.power_w / precise.power_w - 1)
    print(f"{digits} digits, as cosim runs them against reltol {PRECISE.reltol:g} without bypass:")
    print(f"readout rms {np.sqrt(np.mean(np.square(differences))):.4f} i_unit, state bits changed {bits}")
    print(f"power {100 * np.mean(power):+.3f} %")


if __name__ == "__main__":
    shrink(globals(), "1", load_test_set=few(load_test_set, frames=1))
    main(*map(int, sys.argv[1:2]))
