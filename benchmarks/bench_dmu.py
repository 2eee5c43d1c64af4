"""The one-bit form of delayed memory units. The other form: cosim reproduce delayed-product.

    python benchmarks/bench_dmu.py [trained] [detector]

trained: one-bit units that learn to detect chosen lags, six seeds; the
first that learns it on transistors. detector: those that need no training, on transistors.
"""

import sys
import time

import numpy as np
from bench_automata import measure
from smoke import shrink

from cosim.automata.lines import SteeredLine, inputs_of, lag_detector, run_steered, steered_network
from cosim.automata.train_bits import BitShape, chosen_lags, generate_chosen_lag, train_bits
from cosim.compiler.passes import compile_network
from cosim.network.reference import run_reference
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import shipped_path

TASKS = {(1, 3): BitShape(3, 1, 4), (2, 3, 5): BitShape(4, 2, 6)}
DETECTORS = ((4, 0), (8, 0), (4, 2))  # delays, and bits of the divider
STRINGS, STEPS = 100, 30


def on_transistors(unit: SteeredLine, lags: tuple[int, ...]) -> str:
    """Wrong scores of its network, and wrong states of its circuit, on strings of the task."""
    x, y = generate_chosen_lag(STRINGS, lags, STEPS, 7)
    x = x.astype(float)
    network, found = steered_network(unit, "chosen lag"), run_steered(unit, x)
    trace = run_reference(network, inputs_of(unit, x))
    technology = load_technology("generic180")
    design = compile_network(network, technology, load_calibration(shipped_path(technology.name, 8)))
    wrong, count, power = measure(design, inputs_of(unit, x), np.full(STRINGS, STEPS), None)
    right = (found.scores.argmax(axis=2) == y).mean()
    return (
        f"{right:.2%} of answers right, {(trace.readout != found.scores).sum()} scores differ; "
        f"{design.assembly.transistors} transistors, {wrong} of {count} states wrong, {power * 1e9:.1f} nW"
    )


def trained() -> None:
    """A line for each training, and the circuit of the first that learns each task."""
    for lags, shape in TASKS.items():
        built = False
        for seed in range(6):
            begin = time.perf_counter()
            unit, accuracy, iterations = train_bits(chosen_lags(lags), shape, seed)
            seconds = time.perf_counter() - begin
            print(f"lags {lags}  n {shape.delays}  seed {seed}  {accuracy:.2%} after {iterations} ", end="")
            print(f"iterations, {seconds:.0f} s", flush=True)
            if accuracy == 1.0 and not built:
                built = True
                print(f"    {on_transistors(unit, lags)}", flush=True)


def detectors() -> None:
    """Lag detectors by hand; the answers of a dilated one are those of its own clock, and not judged."""
    for delays, divided in DETECTORS:
        found = on_transistors(lag_detector(delays, divided), tuple(range(1, delays + 1)))
        print(f"detector of {delays} delays, by {2**divided}: {found}", flush=True)


def main() -> None:
    """The parts that are named, or all."""
    parts = sys.argv[1:] or ["trained", "detector"]
    if "trained" in parts:
        trained()
    if "detector" in parts:
        detectors()


if __name__ == "__main__":
    shrink(globals(), "detector", DETECTORS=((4, 0),), STRINGS=4, STEPS=10)
    main()
