"""Speeds: start of the command line, compilation, behavioral and ngspice inferences; medians of repeated runs."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from smoke import shrink

from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.ngspice.process import run_bench
from cosim.engines.simulation.testbench import inference_bench
from cosim.exchange.checkpoint import load_network
from cosim.network.layers import FirstQuadrantLayer
from cosim.network.reference import run_reference
from cosim.network.types import InputEncoding, Network, Readout
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.compile.outputs import format_netlist

REPEATS, NETWORKS = 5, ("digits_d8", "digits_d16")


def median_seconds(action: Callable[[], object], repeats: int | None = None) -> float:
    """Median wall time of an action, after one warm-up."""
    action()
    times = []
    for _ in range(repeats or REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def keyword_network(inputs: int = 13, cells: int = 16, seed: int = 0) -> Network:
    """A dense random network of the size that the compile-time figure names."""
    generator = np.random.default_rng(seed)

    def weights(rows: int, columns: int) -> np.ndarray:
        return generator.integers(-16, 17, (rows, columns)) / 8

    layer = FirstQuadrantLayer(
        "layer1", ("input",), weights(cells, inputs), weights(cells, 1)[:, 0], np.full(cells, 0.4), np.full(cells, 1.0),
        np.ones(cells),
    )  # fmt: skip
    readout = Readout(("layer1",), weights(2, cells), np.zeros(2))
    return Network(InputEncoding(np.zeros(inputs), np.ones(inputs)), (layer,), readout, weight_grid=0.125)


def main() -> None:
    technology = load_technology("generic180")
    calibration = find_calibration(technology, 8)
    command = [sys.executable, "-c", "from cosim.cli import main; main()", "--help"]
    seconds = median_seconds(lambda: subprocess.run(command, check=True, capture_output=True))
    print(f"cosim --help                                  {seconds:8.3f} s")
    small = keyword_network()
    seconds = median_seconds(lambda: format_netlist(compile_network(small, technology, calibration)))
    print(f"compile 13 inputs, d = 16, to netlist text    {seconds:8.3f} s")
    for name in NETWORKS:
        network = load_network(trained_network_path(name))
        design = compile_network(network, technology, calibration)
        x = load_test_set(network, None).x
        seconds = median_seconds(lambda n=network, x=x: run_reference(n, x))
        print(f"{name}: software, {len(x)} digits             {seconds:8.3f} s")
        seconds = median_seconds(lambda d=design, x=x: run_behavioral(d, x))
        print(f"{name}: behavioral, {len(x)} digits           {seconds:8.3f} s")
        bench = inference_bench(design, x[0])
        seconds = median_seconds(lambda bench=bench: run_bench(bench), min(REPEATS, 3))
        print(f"{name}: ngspice, 1 digit, {design.assembly.transistors} transistors   {seconds:8.2f} s")


if __name__ == "__main__":
    shrink(globals(), REPEATS=1, NETWORKS=("digits_d4",))
    main()
