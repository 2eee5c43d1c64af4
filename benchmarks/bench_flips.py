"""How often noise flips a clocked 9T cell: behavioral model, batched engine and ngspice, within 3 sigma of a threshold.

    python benchmarks/bench_flips.py TECHNOLOGY [--current NA] [--noise candidate|devices] [--edge set|reset]
                                     [--decisions N] [--ngspice N]

One cell, its threshold at `--current`, its width 0.3 of that, frames of 10 ms. A decision is one run of two frames: the
first leaves the cell off (or on), the second has a candidate between -3 and +3 sigma of the threshold, as the
behavioral model has sigma; the threshold is that of the same engine without noise. `candidate`: white current on the
candidate's net; `devices`: of every transistor that carries a current, in ngspice of those whose noise the model
counts, as `trnoise` sources of the size that they have at the threshold. Flips: decisions that differ from those
without noise, with Clopper and Pearson's 95 % interval; sigma: that of a Gaussian through the decisions, by maximum
likelihood.
"""

import argparse
from dataclasses import dataclass, replace
from time import process_time

import numpy as np
from scipy.optimize import minimize
from scipy.stats import binomtest, norm
from smoke import shrink

from cosim.cells.benches import clocked_bench
from cosim.cells.clocked import LATCH_NODE
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import TransientNoise, Voltage
from cosim.circuit.waveforms import Timing
from cosim.engines.behavioral.noise import ClockedCells, apertures, gate_lag
from cosim.engines.engine import Failure
from cosim.engines.table import simulator_named
from cosim.technology.catalog import load_technology
from cosim.technology.types import HOLD_CAPACITANCE
from cosim.verbs.calibrate.noise import find_noise

CHARGE, WIDTH, UNITS, SPAN = 1.602176634e-19, 0.3, 8, 3.0  # C; of the threshold; of the output diode; sigma
TIMING, REST, STEPS = Timing(), (0.2, 1.6), 4  # of the threshold, before either edge; of the grid in a lag of 1 nA
FLAT = 10e-12  # A, of a candidate of 1 nA


@dataclass(frozen=True)
class Cell:
    """A cell at one edge, and what the behavioral model says of it."""

    technology: object
    current: float
    reset: bool
    devices: bool

    @property
    def bias(self):
        return self.current, WIDTH * self.current, self.current

    @property
    def edge(self):
        """Where the threshold is about, A."""
        return self.current * (1 - WIDTH * self.reset)

    def noise(self):
        """(sigma of what is decided, of what is frozen, A; TransientNoise in the batched engine and in ngspice)."""
        technology, fit, i = self.technology, find_noise(self.technology), self.edge
        p, n = fit.devices["cell_p"], fit.devices["cell_n"]
        siemens = i / (float(p.slope(i)) * technology.thermal_voltage)
        farad = HOLD_CAPACITANCE + p.gate + p.diode
        lag, thermal = farad / siemens, lambda device, one: 2 * CHARGE * one * float(device.physical(one))
        density = thermal(p, i) if self.devices else 4 * lag * FLAT**2 * i / 1e-9
        step = min(1.5e-5 / (STEPS * i / 1e-9), 2e-5)
        ends = [thermal(p, i), 2 * thermal(n, self.current)]
        if self.reset:
            ends += [2 * thermal(n, self.bias[1]), 2 * thermal(p, self.bias[1])]
        rms = lambda one: float(np.sqrt(one / (2 * step)))  # noqa: E731
        own, slopes = (sum(ends), (n.slopes[0], p.slopes[0])) if self.devices else (0.0, None)
        (edge,) = apertures(
            ClockedCells(*(np.array([x]) for x in (*self.bias[:2], self.reset)), 2, TIMING, technology.supply,
                  technology.thermal_voltage), fit
        )  # fmt: skip
        white = density / (4 * lag)
        gate = gate_lag(fit, TIMING, technology.supply, technology.thermal_voltage)
        frozen, both = white * banded(step / lag) / (1 + 2 * gate / lag), white * lag / (lag + edge.lag)
        alone = edge.ran * (both + own / (4 * edge.lag))
        decided = edge.frozen**2 * frozen + 2 * edge.frozen * edge.tracked * both + edge.tracked**2 * alone
        everywhere = (("cand", rms(density)), *((("xcell.v0", rms(own)),) if own else ()))
        batch = TransientNoise(step, 0, () if self.devices else everywhere, slopes)
        return np.sqrt(decided + edge.after * own), np.sqrt(frozen), batch, TransientNoise(step, 0, everywhere)

    def states(self, simulator, candidates, noise=None, seed=0):
        """Whether the cell is on behind each candidate."""
        first, found = REST[self.reset] * self.current, np.zeros(len(candidates), dtype=bool)
        benches = []
        for k, candidate in enumerate(candidates):
            bench = clocked_bench(self.technology, UNITS, self.bias, np.array([first, candidate]), TIMING)
            one = None if noise is None else replace(noise, key=seed * 1_000_003 + k + 1)
            probes = (Voltage(f"xcell.{LATCH_NODE}"),)
            benches.append(replace(bench, circuit=bench.circuit.flat(), probes=probes, noise=one))
        for at in range(0, len(benches), simulator.lanes):
            few = benches[at : at + simulator.lanes]
            waves = simulator.run_all(few, 600.0) if simulator.lanes > 1 else [simulator.run(few[0], 600.0)]
            for k, one in enumerate(waves, at):
                assert not isinstance(one, Failure), one.detail
                latch = np.interp(TIMING.sample_times(2)[1], one.time, one.voltage(f"xcell.{LATCH_NODE}"))
                found[k] = latch > STATE_LEVEL * self.technology.supply
        return found

    def threshold(self, simulator):
        """In these frames, A."""
        low, high = 0.85 * self.edge, 1.15 * self.edge
        width = 32 if simulator.lanes > 1 else 3
        while high - low > 2e-5 * self.edge:
            tried = np.linspace(low, high, width)
            on = self.states(simulator, tried)
            first = int(np.argmax(on))
            assert on.any(), f"no threshold between {low} and {high} A"
            low, high = tried[max(first - 1, 0)], tried[first]
        return (low + high) / 2


def banded(ratio):
    """Of the variance behind a lag, when white noise is linear between points of a grid, `ratio` lags apart."""
    x = np.linspace(0, 2, 4001)
    spline = np.where(x < 1, 2 / 3 - x**2 + x**3 / 2, (2 - x) ** 3 / 6)
    return 2 * float(np.trapezoid(spline * np.exp(-x * ratio), x))


def through(distances, on):
    """Offset and sigma of a Gaussian through decisions, with the standard error of sigma."""

    def unlikely(point):
        z = (distances - point[0]) / np.exp(point[1])
        return -np.sum(np.where(on, norm.logcdf(z), norm.logcdf(-z)))

    best = minimize(unlikely, (0.0, np.log(np.std(distances) / 3)), method="Nelder-Mead")
    step = np.array([0.0, 1e-2])
    bend = (unlikely(best.x + step) + unlikely(best.x - step) - 2 * best.fun) / step[1] ** 2
    sigma = np.exp(best.x[1])
    return best.x[0], sigma, sigma / np.sqrt(bend) if bend > 0 else np.inf  # inf: no decision is on the wrong side


def report(name, distances, on, seconds=0.0):
    flips = on != (distances > 0)
    low, high = binomtest(int(flips.sum()), len(flips)).proportion_ci(method="exact")
    offset, sigma, error = through(distances, on)
    print(
        f"{name:10} flips {int(flips.sum()):4} of {len(flips)}: {100 * flips.mean():.1f} % "
        f"[{100 * low:.1f}, {100 * high:.1f}]; sigma {1e12 * sigma:.2f} pA [{1e12 * (sigma - 1.96 * error):.2f}, "
        f"{1e12 * (sigma + 1.96 * error):.2f}], offset {1e12 * offset:+.2f} pA; {seconds:.0f} s",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("technology")
    parser.add_argument("--current", type=float, default=1.0)
    parser.add_argument("--noise", choices=("candidate", "devices"), default="candidate")
    parser.add_argument("--edge", choices=("set", "reset"), default="set")
    parser.add_argument("--decisions", type=int, default=500)
    parser.add_argument("--ngspice", type=int, default=0)
    asked = parser.parse_args()
    technology = load_technology(asked.technology)
    cell = Cell(technology, 1e-9 * asked.current, asked.edge == "reset", asked.noise == "devices")
    sigma, frozen, in_batch, in_ngspice = cell.noise()
    print(
        f"{technology.name} {asked.current:g} nA {asked.edge} {asked.noise}: grid {1e6 * in_batch.step:.3g} us, "
        f"frozen {1e12 * frozen:.2f} pA, decided {1e12 * sigma:.2f} pA",
        flush=True,
    )
    distances = sigma * SPAN * np.linspace(-1, 1, asked.decisions)
    drawn = np.random.default_rng(1).standard_normal(asked.decisions)
    print(f"expected   flips {100 * float(np.mean(norm.sf(np.abs(distances) / sigma))):.1f} %")
    report("behavioral", distances, distances + sigma * drawn > 0)
    engines = [("batch", in_batch, asked.decisions), ("ngspice", in_ngspice, asked.ngspice)]
    for name, noise, count in engines:
        if not count:
            continue
        before, simulator = process_time(), simulator_named(name)
        rise = cell.threshold(simulator)
        some = sigma * SPAN * np.linspace(-1, 1, count)
        report(name, some, cell.states(simulator, rise + some, noise, seed=1), process_time() - before)


if __name__ == "__main__":
    shrink(globals(), "generic180", "--decisions", "8")
    main()
