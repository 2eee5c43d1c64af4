"""Measure the current reference: one output in each condition, what its supply takes, and how fast it starts.

    python benchmarks/bench_reference.py [technology]      generic180

Start-up: the supply rises from 0 in a linear ramp; the time from the ramp's end until the output stays within 1 % of
its final value.
"""

import sys
from dataclasses import replace

import numpy as np
from smoke import shrink

from cosim.cells.reference import reference_bench
from cosim.circuit.bench import Tran
from cosim.circuit.elements import GROUND, Source
from cosim.engines.simulation.inference import run_bench
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.conditions import at
from cosim.technology.types import Technology
from cosim.verbs.bias import STARTED, measure_reference

RAMPS = 1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0  # s
WATCHED = 3.0  # s after the ramp
WITHIN = 0.01


def start_up(technology: Technology, ramp: float) -> str:
    """Return in words how long after a ramp of the supply (s) the output is within 1 % of its final value."""
    end = ramp + WATCHED
    bench = reference_bench(technology, end)
    supply = Source("dd", "v", "vdd", GROUND, ((0.0, 0.0), (ramp, technology.supply)))
    elements = tuple(supply if one.name == "dd" else one for one in bench.circuit.elements)
    bench = replace(bench, circuit=replace(bench.circuit, elements=elements), analysis=Tran(end / 2000, end))
    waves = run_bench(bench, f"start of the reference of {technology.name}")
    current = waves.through("out")
    if current[-1] < STARTED:
        return f"does not start: {current[-1]:.1e} A"
    outside = np.flatnonzero(np.abs(current / current[-1] - 1) > WITHIN)
    settled = waves.time[outside[-1] + 1] - ramp
    return f"{1e3 * max(settled, 0.0):.3g} ms"


def main() -> None:
    technology = load_technology((sys.argv[1:] or [DEFAULT_TECHNOLOGY])[0])
    nominal, supply = measure_reference(technology)
    print(f"{technology.name}: {1e9 * nominal:.2f} nA, {1e9 * supply:.1f} nA from the supply")
    conditions = {
        "0 C": at(technology, celsius=0.0),
        "60 C": at(technology, celsius=60.0),
        "95 % supply": at(technology, supply=0.95 * technology.supply),
        "105 % supply": at(technology, supply=1.05 * technology.supply),
        "ss": at(technology, "ss"),
        "ff": at(technology, "ff"),
    }
    for name, there in conditions.items():
        current, _ = measure_reference(there)
        print(f"{name:12s} {100 * (current / nominal - 1):+.1f} %")
    for name in ("27 C", "0 C", "ss"):
        found = ", ".join(f"{ramp:g} s: {start_up(conditions.get(name, technology), ramp)}" for ramp in RAMPS)
        print(f"start, {name}: {found}")


if __name__ == "__main__":
    shrink(globals(), RAMPS=(1e-3,))
    main()
