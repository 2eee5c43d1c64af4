"""Dynamics of a network: candidates when their cells decide, ngspice against the behavioral model and exact arithmetic.

    python benchmarks/bench_candidates.py [network] [technology] [samples]      digits_d8 generic180 3

Both references hold the cells on the states that ngspice has, so that no wrong state counts twice. Candidates under
0.3 of the unit current are left out: their errors are large in percent and far from a threshold.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from smoke import few, shrink

from cosim.base.resources import trained_network_path
from cosim.circuit.bench import DrainCurrent
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.evaluate import evaluate_held
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.simulation.inference import run_bench
from cosim.engines.simulation.read import read_inference, read_plan
from cosim.engines.simulation.testbench import inference_bench
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.scale import units_for
from cosim.units.builder import NETWORK, net
from cosim.units.schmitt import Schmitt
from cosim.verbs.calibrate.find import find_calibration

SMALLEST = 0.3  # of the unit current

Array = NDArray[np.float64]


def main() -> None:
    name, process, samples = (*sys.argv[1:], *("digits_d8", DEFAULT_TECHNOLOGY, "3")[len(sys.argv) - 1 :])
    network, technology = load_network(trained_network_path(name)), load_technology(process)
    design = compile_network(network, technology, find_calibration(technology, units_for(network.weight_grid)))
    test_set = load_test_set(network, None).take(int(samples), 0)
    found = [candidates(design, x, Timing()) for x in test_set.x]
    table = {column: np.concatenate([one[column].ravel() for one in found]) for column in found[0]}
    counted = table["exact"] > SMALLEST * design.i_unit
    print(f"{name} on {process}, {counted.sum()} candidates over {SMALLEST:g} units: difference, %")
    for title, column, reference in (
        ("behavioral - exact", "behavioral", "exact"),
        ("ngspice - exact", "ngspice", "exact"),
        ("ngspice - behavioral", "ngspice", "behavioral"),
    ):
        error = 100 * (table[column][counted] / table[reference][counted] - 1)
        spread = f"standard deviation {error.std():.3f}  largest {abs(error).max():.2f}"
        print(f"{title:22s} mean {error.mean():+.3f}  {spread}")


def candidates(design: Design, x: Array, timing: Timing) -> dict[str, Array]:
    """Candidate currents at their decisions, (cells, time), ampere; x: (time, features), raw."""
    cells = [node.name for node in design.graph.of(Schmitt)]
    probes = {cell: f"{NETWORK}.cand_{net(cell)}.diode" for cell in cells}
    bench = inference_bench(design, x, timing)
    bench = replace(bench, probes=(*bench.probes, *map(DrainCurrent, probes.values())))
    waves = run_bench(bench, "candidates")
    inference = read_inference(waves, read_plan(design, len(x), timing))
    states = {cell: inference.states[None, :, k] for k, cell in enumerate(design.assembly.decisions)}
    stages = [layer.name for layer in design.network.recurrent_layers]
    closes = dict(zip(stages, timing.closes(len(stages)), strict=True))
    held = {
        title: held_candidates(design, x, states, cells, ideal)
        for title, ideal in (("behavioral", False), ("exact", True))
    }
    frames = np.arange(len(x))
    decided = {cell: timing.start + (frames + closes[cell.split(".")[0]]) * timing.t_step for cell in cells}
    simulated = [np.interp(decided[cell], waves.time, waves.drain(probes[cell])) for cell in cells]
    return held | {"ngspice": np.stack(simulated)}


def held_candidates(
    design: Design, x: Array, states: Mapping[str, NDArray[np.int16]], cells: list[str], ideal: bool
) -> Array:
    trace = run_behavioral(design, x[None], ideal=ideal)
    held = evaluate_held(design.graph, design.calibration, trace, states)
    return np.stack([held.candidates[cell][0] for cell in cells])


if __name__ == "__main__":
    shrink(globals(), "digits_d4", "generic180", "1", load_test_set=few(load_test_set))
    main()
