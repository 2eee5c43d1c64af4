"""Speed limit: state agreement of a network at ever shorter frames, and the shortest frame with 99 %.

    python benchmarks/bench_frames.py [network] [technology] [samples]      digits_d8 generic180 20

Thresholds are calibrated in frames of 10 ms and stay as they are.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from smoke import few, shrink

from cosim.base.resources import trained_network_path
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.engines.table import reference_simulator
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.scale import units_for
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.compare.agreement import compare_engines

FRAMES = (10e-3, 7e-3, 5e-3, 4e-3, 3e-3, 2e-3, 1.5e-3, 1e-3)
WANTED = 0.99


def main() -> None:
    name, process, samples = (*sys.argv[1:], *("digits_d8", DEFAULT_TECHNOLOGY, "20")[len(sys.argv) - 1 :])
    network, technology = load_network(trained_network_path(name)), load_technology(process)
    design = compile_network(network, technology, find_calibration(technology, units_for(network.weight_grid)))
    test_set = load_test_set(network, None).take(int(samples), 0)
    simulator, shortest = reference_simulator(technology), None
    with TemporaryDirectory() as folder:
        for t_step in FRAMES:
            run = Run(Path(folder), 2, timing=Timing(t_step=t_step), engine=simulator)
            outcomes = simulate_samples(design, test_set, run)
            comparison = compare_engines(design, test_set, outcomes, run)
            assert comparison is not None, "every simulation failed"
            agreement = comparison.state_agreement("software", simulator)
            power = comparison.power_w[simulator].mean()
            print(f"{1e3 * t_step:5.1f} ms  {100 * agreement:6.2f} %  {1e9 * power:.0f} nW", flush=True)
            if agreement < WANTED:
                break
            shortest = t_step
    if shortest is not None:
        print(f"{name} on {process}: frames of {1e3 * shortest:g} ms keep {100 * WANTED:g} % of the states")


if __name__ == "__main__":
    shrink(globals(), "digits_d4", "generic180", "1", FRAMES=(10e-3,), load_test_set=few(load_test_set))
    main()
