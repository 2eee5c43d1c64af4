"""Spread of a 9T cell's thresholds and level: the same chips by the behavioral model and in ngspice.

python benchmarks/bench_mismatch.py [network] [technology] [chips]
"""

import sys
import time

import numpy as np
from scipy import stats
from smoke import shrink

from cosim.base.resources import models_path
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.units.schmitt import Schmitt
from cosim.variation.draws import VariationPlan
from cosim.verbs.loading import compile_for
from cosim.verbs.montecarlo.execute import map_chips
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.trim.trim import CellPoints, measure_behavioral, measure_cell

CELL = "layer1.2"


def both(trial: Trial, number: int) -> tuple[CellPoints, CellPoints]:
    """One chip's cell by the behavioral model and in ngspice."""
    chip = trial.chip(number)
    cell = next(node for node in trial.design.graph.of(Schmitt) if node.name == CELL)
    expected = measure_behavioral(trial, chip)[CELL]
    return expected, measure_cell(trial, chip, cell, 1.3 * expected.rise)


def main() -> None:
    name, technology, chips = [*sys.argv[1:], *("digits_d8", "generic180", "200")[len(sys.argv) - 1 :]][:3]
    network = load_network(models_path() / "trained" / f"{name}.pt")
    design = compile_for(network, name, load_technology(technology))
    trial = Trial(design, load_test_set(network, None).take(1, 0), VariationPlan("local", 0, int(chips)))
    begin = time.perf_counter()
    pairs = list(map_chips(both, trial, range(int(chips)), 2))
    print(f"{name}, {CELL}, {technology}, {chips} chips, {time.perf_counter() - begin:.0f} s")
    columns = ("nominal", "sigma behavioral", "sigma ngspice", "ratio", "95 % interval", "r")
    print("         {:>9} {:>17} {:>14} {:>7} {:>17} {:>7}".format(*columns))
    for field in ("rise", "fall", "level"):
        behavioral, ngspice = (np.array([getattr(pair[k], field) for pair in pairs]) for k in (0, 1))
        ratio, r = behavioral.std(ddof=1) / ngspice.std(ddof=1), np.corrcoef(behavioral, ngspice)[0, 1]
        # Pitman and Morgan: the ratio of two correlated standard deviations.
        n = len(pairs)
        t2 = stats.t.ppf(0.975, n - 2) ** 2
        k = 1 + 2 * (1 - r**2) * t2 / (n - 2)
        low, high = ratio * (k - (k * k - 1) ** 0.5) ** 0.5, ratio * (k + (k * k - 1) ** 0.5) ** 0.5
        print(
            f"{field:8} {ngspice.mean() * 1e9:6.3f} nA {1e12 * behavioral.std(ddof=1):14.2f} pA "
            f"{1e12 * ngspice.std(ddof=1):11.2f} pA {ratio:7.3f} {f'[{low:.3f}, {high:.3f}]':>17} {r:7.4f}"
        )


if __name__ == "__main__":
    shrink(globals(), "digits_d4", "generic180", "3")
    import bench_mismatch  # workers find `both` in a module, not in a script

    bench_mismatch.main()
