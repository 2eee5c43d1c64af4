"""What ngspice in a process of its own costs: decks there and in this process in turn, in processor time of both.

Run: python benchmarks/bench_process.py [PAIRS]
"""

import os
import sys
from collections.abc import Callable

import numpy as np
from smoke import shrink

from cosim.base.resources import trained_network_path
from cosim.cells.benches import mirror_bench
from cosim.circuit.dialects.ngspice import format_bench
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure
from cosim.engines.ngspice.library import find_ngspice_library
from cosim.engines.ngspice.process import run_deck
from cosim.engines.ngspice.server import Session
from cosim.engines.processor import processor_time
from cosim.engines.simulation.testbench import inference_bench
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import find_calibration

FRAMES = 3


def seconds(work: Callable[[], object]) -> float:
    """Of the processor, in this process and in its child."""
    before = processor_time(os.getpid()) or 0.0
    work()
    return (processor_time(os.getpid()) or 0.0) - before


def main(pairs: int = 5) -> None:
    technology = load_technology("generic180")
    network = load_network(trained_network_path("digits_d4"))
    design = compile_network(network, technology, find_calibration(technology, 8))
    sample = load_test_set(network, None).take(1, 3).x[0, :FRAMES]
    cells = format_bench(mirror_bench(technology, 8, 1.0, 1e-9, 0.5))
    started = seconds(lambda: run_deck(cells))
    print(f"the first deck, start of the process included: {started:.2f} s")
    session = Session(str(find_ngspice_library()))
    digits = format_bench(inference_bench(design, sample))
    for name, deck, count in (("a mirror", cells, 50), (f"digits_d4, {FRAMES} frames", digits, 1)):
        both: list[tuple[float, float]] = []
        for _ in range(pairs):
            apart = seconds(lambda: [run_deck(deck) for _ in range(count)])  # noqa: B023 - runs at once
            both.append((apart, seconds(lambda: [session.run(deck, None) for _ in range(count)])))  # noqa: B023
        found = run_deck(deck)
        assert not isinstance(found, Failure), found
        size = sum(values.nbytes for values in found.values())
        apart, here = 1e3 * np.array(both).T / count
        ratios = apart / here
        error = ratios.std(ddof=1) / np.sqrt(pairs) if pairs > 1 else np.nan
        print(
            f"{name} ({len(deck) / 1e3:.0f} kB in, {size / 1e3:.0f} kB out): {np.median(apart):.2f} ms in its own "
            f"process, {np.median(here):.2f} ms in this one; ratio {ratios.mean():.3f} +- {error:.3f} ({pairs} pairs)"
        )


if __name__ == "__main__":
    shrink(globals(), "1", FRAMES=1)
    main(*map(int, sys.argv[1:]))
