"""The batched engine against ngspice as cosim runs it, paired on this core; and how its cost grows.

    python benchmarks/bench_batch.py [NETWORK ...]

Seconds are the process's own. ngspice runs before and after the engine, on the same samples. Growth is the slope of
ln(seconds a sample) over ln(size), by least squares: with the states of a network, with frames, and with chips.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from smoke import shrink

from cosim.base.resources import trained_network_path
from cosim.compiler.design import Design
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.simulated import engine_named
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import TestSet
from cosim.technology.catalog import load_technology
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices
from cosim.verbs.loading import compile_for, draw_samples

BATCHES, NGSPICE_SAMPLES = (1, 8, 32, 256), 3
FRAMES = (2, 4, 8, 28, 98, 280, 784)
SIZES, SAMPLES, CHIPS = (4, 8, 16, 32), 32, (1, 2, 4, 8)


def design_of(name: str) -> Design:
    """A trained network that the package carries, on generic180."""
    return compile_for(load_network(trained_network_path(name)), name, load_technology("generic180"))


def seconds(engine: str, design: Design, test_set: TestSet, run: Run = Run(jobs=0)) -> float:
    """Processor time of a test set."""
    begin = time.process_time()
    found = list(engine_named(engine).infer(design, test_set, replace(run, engine=engine), lambda done, total: None))
    assert all(isinstance(one, Inference) for one in found), found
    return time.process_time() - begin


def slope(sizes: list[float], costs: list[float]) -> float:
    """The exponent of costs over sizes."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def throughput(name: str) -> None:
    """Samples a second by batch, and the ratio to ngspice."""
    design = design_of(name)
    test_set = draw_samples(design.network, None, max(BATCHES), 0, print)
    few = test_set.select(np.arange(NGSPICE_SAMPLES))
    seconds("batch", design, few)  # tables and compilation
    print(f"{name}: {design.assembly.transistors} transistors")
    for batch in BATCHES:
        before = seconds("ngspice", design, few) / NGSPICE_SAMPLES
        own = seconds("batch", design, test_set.select(np.arange(batch))) / batch
        after = seconds("ngspice", design, few) / NGSPICE_SAMPLES
        ratio = (before + after) / 2 / own
        print(
            f"  batch {batch:4}  {1 / own:7.1f} /s   ngspice {before:.2f}, {after:.2f} s   {ratio:6.0f} x", flush=True
        )


def growth(what: str, sizes: list[float], cost: Callable[[float], float]) -> None:
    """Print the exponent, and the costs."""
    costs = [cost(size) for size in sizes]
    text = ", ".join(f"{size:g}: {1e3 * own:.1f} ms" for size, own in zip(sizes, costs, strict=True))
    print(f"growth with {what}: {slope(sizes, costs):.2f}   ({text})", flush=True)


def lasting(test_set: TestSet, frames: int) -> TestSet:
    """Its samples cut to so many frames, or seen again and again until there are as many."""
    count, have, _ = test_set.x.shape
    x = np.tile(test_set.x, (1, -(-frames // have), 1))[:, :frames]
    return replace(test_set, x=x, lengths=np.full(count, frames))


def main() -> None:
    """Throughput of the networks that are named, then growth."""
    for name in sys.argv[1:] or ["digits_d4", "digits_d8"]:
        throughput(name)
    designs = {size: design_of(f"digits_d{size}") for size in SIZES}
    test_set = draw_samples(designs[4].network, None, SAMPLES, 0, print)
    for design in designs.values():
        seconds("batch", design, test_set.select(np.arange(1)))
    growth("states a layer", list(designs), lambda size: seconds("batch", designs[int(size)], test_set) / SAMPLES)

    growth(
        "frames", list(FRAMES), lambda frames: seconds("batch", designs[8], lasting(test_set, int(frames))) / SAMPLES
    )
    plan = VariationPlan("local", 1, max(CHIPS))
    design = designs[4]
    devices = varying_devices(design.assembly.circuit, design.technology, plan)
    chips = [draw_chip(devices, design.technology, plan, number) for number in range(max(CHIPS))]
    growth(
        "chips",
        list(CHIPS),
        lambda count: sum(seconds("batch", design, test_set, Run(jobs=0, chip=chip)) for chip in chips[: int(count)]),
    )


if __name__ == "__main__":
    shrink(
        globals(), "digits_d4", BATCHES=(1, 2), NGSPICE_SAMPLES=1, FRAMES=(2, 4), SIZES=(4, 8), SAMPLES=2, CHIPS=(1, 2)
    )
    main()
