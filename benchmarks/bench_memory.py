"""Memory of this process over 1,000 consecutive simulations of a 9T cell and, every tenth, of a small network."""

import resource
import sys

from smoke import shrink

from cosim.base.resources import trained_network_path
from cosim.cells.benches import mirror_bench
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_bench
from cosim.engines.simulation.testbench import inference_bench
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import find_calibration

RUNS = 1000
NETWORK_EVERY = 20
WARM_UP = 40


def resident_kib() -> int:
    """Resident set of this process, KiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


def main() -> None:
    technology = load_technology("generic180")
    network = load_network(trained_network_path("digits_d4"))
    design = compile_network(network, technology, find_calibration(technology, 8))
    frame = load_test_set(network, None).x[0, :1]
    cell, whole = mirror_bench(technology, 8, 1.0, 1e-9, 0.5), inference_bench(design, frame)
    start = 0
    for run in range(WARM_UP + RUNS):
        if run == WARM_UP:
            start = resident_kib()
        result = run_bench(whole if run % NETWORK_EVERY == 0 else cell)
        if isinstance(result, Failure):
            sys.exit(f"run {run} failed: {result.detail}")
    print(f"{RUNS} simulations in one process, every {NETWORK_EVERY}th of {design.assembly.transistors} transistors:")
    print(f"resident memory {start / 1024:.1f} MiB -> {resident_kib() / 1024:.1f} MiB")


if __name__ == "__main__":
    shrink(globals(), RUNS=4, WARM_UP=2, NETWORK_EVERY=4)
    main()
