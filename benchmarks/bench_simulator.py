"""How cosim runs a deck against precise options without bypass: readout, states and power."""

import numpy as np

from cosim.calibration.find import find_calibration
from cosim.design import compile_network, inference_deck, read_plan
from cosim.engines.ngspice.options import PRECISE_OPTIONS
from cosim.engines.ngspice.session import run_deck
from cosim.engines.outcome import Failure
from cosim.network.checkpoint import load_network
from cosim.resources import trained_network_path
from cosim.simulation.inference import Inference, read_inference, run_inference
from cosim.simulation.testbench import Timing
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology


def main(digits: int = 3) -> None:
    technology = load_technology("generic180")
    network = load_network(trained_network_path("digits_d8"))
    design = compile_network(network, technology, find_calibration(technology, 8))
    x = load_test_set(network, None).take(digits, 3).x
    plan = read_plan(design, x.shape[1])
    differences, bits, power = [], 0, []
    for sample in x:
        deck = inference_deck(design, sample, Timing(), PRECISE_OPTIONS)
        waves = run_deck(deck)
        assert not isinstance(waves, Failure), waves
        default, precise = run_inference(inference_deck(design, sample), plan), read_inference(waves, deck, plan)
        assert isinstance(default, Inference), default
        assert isinstance(precise, Inference), precise
        differences.append((default.readout - precise.readout) / design.i_unit)
        bits += int((default.states != precise.states).sum())
        power.append(default.power_w / precise.power_w - 1)
    print(f"{digits} digits, as cosim runs them against reltol {PRECISE_OPTIONS.reltol:g} without bypass:")
    print(f"readout rms {np.sqrt(np.mean(np.square(differences))):.4f} i_unit, state bits changed {bits}")
    print(f"power {100 * np.mean(power):+.3f} %")


if __name__ == "__main__":
    main()
