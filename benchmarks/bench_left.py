"""What calibration leaves: gains of rows and thresholds of cells, batched engine against the behavioral model.

    python benchmarks/bench_left.py TECHNOLOGY [NETWORK [DATA]] [--samples N]

Every decision of N samples, with all states held on those of the transistors. gain: rms, over decisions within 30 % of
their threshold, of candidate's current minus the behavioral one's, over the root of the sum of the squares of what the
row adds. threshold: of decisions within 5 % of their threshold, the standard deviation, relative to it, of a Gaussian
through what turned and what did not (probit, by maximum likelihood, no shift), with its 95 % interval by likelihood.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import chi2, norm
from smoke import shrink

from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.evaluate import cell_of, evaluate_held
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Run
from cosim.engines.simulation.simulated import SimulatorEngine
from cosim.engines.table import simulator_named
from cosim.exchange.checkpoint import load_network
from cosim.network.reference import later
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.units.table import unit_of
from cosim.verbs.calibrate.find import find_calibration

NEAR, TURNING = 0.3, 0.05  # of the threshold


def decisions(design, test):
    """(decisions, 5): relative distance beyond the threshold, whether it turned, threshold, error of the candidate and
    the root of the sum of squares, A."""
    run = Run(engine="batch", jobs=0)
    found = list(SimulatorEngine(simulator_named("batch")).infer(design, test, run, lambda done, total: None))
    graph, trace = design.graph, run_behavioral(design, test.x)
    shape = test.x.shape[:2]
    states = {cell: np.zeros(shape, np.int16) for cell in design.assembly.decisions}
    margins = {cell: np.full(shape, np.nan) for cell in states}
    for i, one in enumerate(found):
        for k, cell in enumerate(states):
            states[cell][i, : len(one.states)] = one.states[:, k]
            margins[cell][i, : len(one.states)] = one.margins[:, k]
    held = evaluate_held(graph, design.calibration, trace, states)
    rows = []
    for cell, own in states.items():
        node = graph.nodes[cell]
        thresholds = unit_of(node).switching_thresholds(cell_of(graph, node, design.calibration), ())
        before = later(own, 1, node.start)
        candidates = held.candidates[cell]
        edge = np.where(before > 0, nearest(candidates, thresholds.while_on), nearest(candidates, thresholds.while_off))
        away, upper = candidates - edge, edge >= thresholds.while_off[0]
        error = (margins[cell] - np.abs(away)) * np.sign(away)
        squares = sum((graph.mirrors[source, cell].realised * held.currents[source]) ** 2
                      for source, _ in graph.into(cell))  # fmt: skip
        seen = ~np.isnan(margins[cell]) & ~(upper & (node.most > 1) & (before == node.most))
        beyond = np.where(upper, away, -away) / edge
        rows.append(np.stack([beyond, own != before, edge, error, np.sqrt(squares)], axis=-1)[seen])
    return np.concatenate(rows)


def nearest(candidate, edges):
    """The edge that each candidate is the nearest to, A."""
    edges = np.array([float(edge) for edge in edges])
    return edges[np.abs(candidate[..., None] - edges).argmin(axis=-1)]


def threshold_spread(beyond, turned):
    """Standard deviation of the probit, and the ends of its interval."""
    tried = np.geomspace(1e-4, 3e-2, 400)
    z = beyond[None, :] / tried[:, None]
    likelihood = np.where(turned, norm.logcdf(z), norm.logsf(z)).sum(axis=1)
    inside = tried[likelihood >= likelihood.max() - chi2.ppf(0.95, 1) / 2]
    return tried[likelihood.argmax()], inside[0], inside[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("technology")
    parser.add_argument("network", nargs="?", default=str(trained_network_path("digits_d8")))
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--samples", type=int, default=120)
    given = parser.parse_args()
    technology, network = load_technology(given.technology), load_network(Path(given.network))
    design = compile_network(network, technology, find_calibration(technology, 8))
    found = decisions(design, load_test_set(network, given.data).take(given.samples, 1))
    beyond, turned, _, error, root = found.T
    near = np.abs(beyond) < NEAR
    gain = np.sqrt((error[near] ** 2).mean() / (root[near] ** 2).mean())
    close = np.abs(beyond) < TURNING
    middle, low, high = threshold_spread(beyond[close], turned[close] > 0)
    wrong = int(((beyond >= 0) != (turned > 0)).sum())
    print(f"{given.technology}: {len(found)} decisions, {wrong} not as the equations say; gain {100 * gain:.3f} %, "
          f"threshold {100 * middle:.2f} % [{100 * low:.2f}, {100 * high:.2f}] of {close.sum()} decisions")  # fmt: skip


if __name__ == "__main__":
    shrink(globals(), "generic180", str(trained_network_path("digits_d4")), "--samples", "8")
    main()
