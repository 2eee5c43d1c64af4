"""Compile time against devices: random sparse networks of two layers, from the checkpoint to all files on disk.

    python benchmarks/bench_compile.py [generic180]

Half of the cells read the inputs, half read the first half: FAN_IN weights a cell that are not 0, thresholds of its
own, ten outputs on FAN_IN cells each. What is timed is `cosim compile` in a process of its own, start of Python
included, in seconds of the processor; up to MOST_STARTED transistors of `cosim.verbs.compile.outputs` a second time,
with the operating point of the testbench. The exponent is the slope of log seconds over log transistors, without that
point.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import stats
from smoke import shrink

from cosim.exchange.checkpoint import save_checkpoint
from cosim.network.layers import FirstQuadrantLayer
from cosim.network.types import InputEncoding, Network, Readout
from cosim.technology.catalog import DEFAULT_TECHNOLOGY
from cosim.verbs.compile.outputs import MOST_STARTED

CELLS = (100, 300, 1_000, 3_000, 10_000)
INPUTS, OUTPUTS, FAN_IN, GRID = 16, 10, 8, 0.125
FIT_FROM = 1_000  # cells: with fewer the start of Python weighs as much


def main() -> None:
    technology = sys.argv[1] if len(sys.argv) > 1 else DEFAULT_TECHNOLOGY
    print(f"{'cells':>7}{'transistors':>13}{'s':>9}{'us/transistor':>15}{'with point, s':>15}{'MB':>7}")
    sizes, times = [], []
    for cells in CELLS:
        devices, seconds, peak = measure(draw(cells), technology, start=False)
        started = f"{measure(draw(cells), technology)[1]:>15.1f}" if devices <= MOST_STARTED else f"{'':15}"
        print(
            f"{cells:>7}{devices:>13}{seconds:>9.1f}{1e6 * seconds / devices:>15.0f}{started}{peak:>7.0f}", flush=True
        )
        if cells >= FIT_FROM:
            sizes.append(devices)
            times.append(seconds)
    fit = stats.linregress(np.log(sizes), np.log(times))
    print(f"exponent from {FIT_FROM} cells: {fit.slope:.2f}")


def draw(cells: int, seed: int = 0) -> Network:
    """Return a random network of two layers."""
    generator, width = np.random.default_rng(seed), cells // 2
    layers = []
    for k, (source, columns) in enumerate((("input", INPUTS), ("layer0", width))):
        low = generator.uniform(0.2, 0.5, width)
        high = low + generator.uniform(0.2, 0.5, width)
        bias = GRID * generator.integers(-4, 5, width)
        weight = sparse(generator, width, columns)
        layers.append(FirstQuadrantLayer(f"layer{k}", (source,), weight, bias, low, high, np.ones(width)))
    readout = Readout(("layer1",), sparse(generator, OUTPUTS, width), np.zeros(OUTPUTS))
    encoding = InputEncoding(np.zeros(INPUTS), np.ones(INPUTS), levels=16)
    return Network(encoding, tuple(layers), readout, "random weights", weight_grid=GRID)


def sparse(generator: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Return weights of which FAN_IN a row are not 0."""
    found = np.zeros((rows, columns))
    for row in found:
        chosen = generator.choice(columns, min(FAN_IN, columns), replace=False)
        row[chosen] = GRID * generator.choice([-6, -4, -2, -1, 1, 2, 4, 6], len(chosen))
    return found


def measure(network: Network, technology: str, *, start: bool = True) -> tuple[int, float, float]:
    """Return transistors, seconds of the processor, and the largest memory of any child so far, MB.

    start: whether the operating point of the testbench is found; without it libngspice is not there.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder) / "network.npz", Path(folder) / "netlist"
        save_checkpoint(path, network)
        command = [sys.executable, "-m", "cosim", "compile", str(path), "--technology", technology, "-o", str(output)]
        absent = {} if start else {"NGSPICE_LIBRARY_PATH": str(Path(folder) / "absent.so")}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **absent})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        devices = json.loads((output / "design.json").read_text())["transistors"]
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return devices, seconds, after.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


if __name__ == "__main__":
    shrink(globals(), CELLS=(4, 8), FIT_FROM=4)
    main()
