"""Calibrated 9T cell against what was asked for: random set-points in 0.1 to 1 nA, measured by a slow ramp.

    python benchmarks/bench_cells.py [technology] [points] [seed] [corners]

corners: the same cells, biased as at the nominal point, in all corners at 0, 27 and 60 C.
"""

import sys

import numpy as np
from smoke import shrink

from cosim.technology.catalog import load_technology
from cosim.technology.conditions import GRID_CELSIUS, at
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.calibrate.measure import measure_schmitt

SMALLEST_WIDTH = 0.02e-9  # A


def main() -> None:
    name, points, seed, where = [*sys.argv[1:], *("generic180", "10", "0", "")[len(sys.argv) - 1 :]][:4]
    technology = load_technology(name)
    calibration = find_calibration(technology, 8)
    generator = np.random.default_rng(int(seed))
    corners = tuple(technology.library.sections) if where == "corners" else ()
    conditions = [technology, *(at(technology, corner, celsius) for corner in corners for celsius in GRID_CELSIUS)]
    worst = np.zeros((len(conditions), 3))
    print("asked: upper, lower, level (nA)      error of each (%)")
    for _ in range(int(points)):
        low, high = 0.0, 0.0
        while high - low < SMALLEST_WIDTH:
            low, high = np.sort(generator.uniform(0.1e-9, 1e-9, 2))
        asked = np.array([high, low, generator.uniform(0.1e-9, 1e-9)])
        bias = (*calibration.schmitt.solve_thresholds(high, low), calibration.schmitt.solve_gain(asked[2]))
        found = [measure_schmitt(one, 8, bias, calibration.v_node) for one in conditions]
        every = 100 * (np.array(found) / asked - 1)
        worst, errors = np.maximum(worst, np.abs(every)), every[0]
        print("  ".join(f"{value * 1e9:.4f}" for value in asked), "           ", "  ".join(f"{e:+.2f}" for e in errors))
    for one, row in zip(conditions, worst, strict=True):
        print(f"largest, {one.corner} {one.celsius:2g} C                  ", "  ".join(f"{value:.2f}" for value in row))


if __name__ == "__main__":
    shrink(globals(), "generic180", "1")
    main()
