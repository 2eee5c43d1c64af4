"""Two simulators on the same circuits: states, decisions, readout and power of ngspice and VACASK, and their time.

python benchmarks/bench_second_simulator.py [network] [technology] [samples]
"""

import sys
import time

import numpy as np
from smoke import few, shrink

from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure, Run
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import read_plan
from cosim.engines.simulation.simulated import sample_benches
from cosim.engines.table import cell_simulators
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import find_calibration


def main(name: str = "digits_d4", technology: str = "generic180", samples: str = "10") -> None:
    network, process = load_network(trained_network_path(name)), load_technology(technology)
    design = compile_network(network, process, find_calibration(process, units=8))
    test = load_test_set(network, None).take(int(samples), 0)
    found, seconds = {}, {}
    for simulator in (entry.name for entry in cell_simulators()):
        begin = time.perf_counter()
        benches = list(sample_benches(design, test, Run()))
        plans = [read_plan(design, int(length)) for length in test.lengths]
        found[simulator] = [run_inference(*pair, simulator) for pair in zip(benches, plans, strict=True)]
        seconds[simulator] = time.perf_counter() - begin
        for failure in (outcome for outcome in found[simulator] if isinstance(outcome, Failure)):
            raise SystemExit(f"{simulator}: {failure.kind.value}: {failure.detail}")
    ours, theirs = found.values()
    states = sum(int((a.states != b.states).sum()) for a, b in zip(ours, theirs, strict=True))
    bits = sum(a.states.size for a in ours)
    apart = np.concatenate([a.readout - b.readout for a, b in zip(ours, theirs, strict=True)])
    choices = [[np.argmax(each.readout.mean(axis=0)) for each in outcomes] for outcomes in (ours, theirs)]
    power = [np.mean([each.power_w for each in outcomes]) for outcomes in (ours, theirs)]
    print(f"{name} on {technology}, {design.assembly.transistors} transistors, {samples} samples")
    print(f"  states     {states} of {bits} differ")
    print(f"  decisions  {np.not_equal(*choices).sum()} of {len(ours)} differ")
    print(f"  readout    {1e12 * np.sqrt(np.mean(apart**2)):.4f} pA rms, {1e12 * np.abs(apart).max():.4f} pA at most")
    print(f"  power      {power[0] * 1e9:.3f} and {power[1] * 1e9:.3f} nW")
    print(f"  time       {' and '.join(f'{value / len(ours):.2f} s' for value in seconds.values())} a sample")


if __name__ == "__main__":
    shrink(globals(), "digits_d4", "generic180", "1", load_test_set=few(load_test_set))
    main(*sys.argv[1:])
