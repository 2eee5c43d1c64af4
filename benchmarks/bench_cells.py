"""Calibrated 9T cell against what was asked for: random set-points in 0.1 to 1 nA, measured by a slow ramp.

python benchmarks/bench_cells.py [technology] [points] [seed]
"""

import sys

import numpy as np
from smoke import shrink

from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import find_calibration
from cosim.verbs.calibrate.measure import measure_schmitt

SMALLEST_WIDTH = 0.02e-9  # A


def main() -> None:
    name, points, seed = [*sys.argv[1:], *("generic180", "10", "0")[len(sys.argv) - 1 :]][:3]
    technology = load_technology(name)
    calibration = find_calibration(technology, 8)
    generator = np.random.default_rng(int(seed))
    worst = np.zeros(3)
    print("asked: upper, lower, level (nA)      error of each (%)")
    for _ in range(int(points)):
        low, high = 0.0, 0.0
        while high - low < SMALLEST_WIDTH:
            low, high = np.sort(generator.uniform(0.1e-9, 1e-9, 2))
        asked = np.array([high, low, generator.uniform(0.1e-9, 1e-9)])
        bias = (*calibration.schmitt.solve_thresholds(high, low), calibration.schmitt.solve_gain(asked[2]))
        errors = 100 * (np.array(measure_schmitt(technology, 8, bias, calibration.v_node)) / asked - 1)
        worst = np.maximum(worst, np.abs(errors))
        print("  ".join(f"{value * 1e9:.4f}" for value in asked), "           ", "  ".join(f"{e:+.2f}" for e in errors))
    print("largest                           ", "  ".join(f"{value:.2f}" for value in worst))


if __name__ == "__main__":
    shrink(globals(), "generic180", "1")
    main()
