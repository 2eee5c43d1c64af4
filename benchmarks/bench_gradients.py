"""Gradients through transistors: against central differences, and a chip whose bias currents they trim.

    python benchmarks/bench_gradients.py check [technology] [model] [chip]
    python benchmarks/bench_gradients.py pins CHIP [technology] [model] [data]

check: a sum of readouts and of candidates' distances from thresholds, with random weights, for two test samples, on the
chip of this number (none: without mismatch). Its derivatives by weights, biases, thresholds, bias currents and, on a
chip, areas, at most 20 of each kind, against central differences of the batched engine and of ngspice. Parameters with
less than 2 % of their kind's largest derivative are left out: a difference of two simulations does not resolve them.
Those whose step flips a state or cannot be built are not compared, nor weights much larger than the pedestal's.
pins: 20 steps of Adam on the factors of all bias currents of one chip, 32 training samples each; its accuracy on 120
test samples before and after, on transistors. What docs/how-to/train-through-transistors.md has.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from smoke import shrink

import cosim
from cosim.base.errors import MappingError
from cosim.base.resources import trained_network_path
from cosim.circuit.elements import Mos
from cosim.engines.batch.gradients import SimulatedCircuit, SimulatedSamples
from cosim.engines.engine import Run
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import decision_margins, read_plan, with_candidates, with_margins
from cosim.engines.simulation.testbench import inference_bench
from cosim.network.ir.nodes import PEDESTAL, UnitCurrent
from cosim.results.intervals import interval
from cosim.tasks.load import load_task
from cosim.units.builder import net, weight_device

SAMPLES, MOST, WIDER, IDEAL = (51, 5), 20, 4, 1e12
SEED = 1
PIN_RATE, PIN_STEPS, PIN_BATCH, TESTED = 0.02, 20, 32, 120
KINDS = ("weight", "bias", "threshold", "bias current", "area")


def compiled(model, technology):
    path = Path(model) if Path(model).exists() else trained_network_path(model)
    return cosim.load(path).compile(technology)


def kind_of(name):
    field = name.rpartition(".")[2]
    return {"weight": "weight", "bias": "bias", "alpha": None}.get(field, "threshold")


@dataclass(frozen=True)
class Reweighted(SimulatedCircuit):
    """A circuit some of whose transistors carry a multiple of their current: transistor -> factor."""

    factors: Mapping[str, float] = field(default_factory=dict)

    def _drawn(self, design, area, count):
        return tuple(
            replace(chip, beta_factor=chip.beta_factor * [self.factors.get(one.name, 1.0) for one in chip.devices])
            for chip in super()._drawn(design, area, count)
        )

    def times(self, place, step):
        """Return the circuit with a learned weight or bias, such as `layer1.weight[0,3]`, 1 + step times as large.

        Its row takes as much more from the pedestal. A step of the weight's grid would be too large for a derivative:
        a candidate settles the more slowly the smaller it is.
        """
        graph = self.design.graph
        (source, target) = next(edge for edge, one in graph.weights.items() if one.origin.partition(" ")[0] == place)
        devices = {one: weight_device(f"row_{net(target)}", k) for k, (one, _) in enumerate(graph.into(target))}
        factors = {devices[source]: 1 + step}
        pedestal = graph.mirrors[PEDESTAL, target]
        if not isinstance(graph.nodes[source], UnitCurrent) and pedestal.count:
            factors[devices[PEDESTAL]] = 1 - step * graph.mirrors[source, target].realised / pedestal.realised
        assert min(factors.values()) > 0, "the weight is too much larger than the pedestal's for this step"
        return replace(self, factors=factors)


class Sum:
    """J = sum R readout + sum M (candidate - threshold), random R and M; the threshold is the one that can decide.

    fixed: without the threshold, which the compiler moves to the middle of a gap between candidates, that is in jumps
    where a weight changes.
    """

    def __init__(self, run: SimulatedSamples, *, fixed: bool) -> None:
        rng, self.states = np.random.default_rng(0), run.states
        self.readout = rng.normal(size=run.readout.shape)
        self.on = np.concatenate([np.zeros_like(run.states[:, :1]), run.states[:, :-1]], axis=1) > 0
        # a candidate of almost no current is not moved by its row
        self.candidate = rng.normal(size=self.on.shape) * (run.candidate > 0.6 * run.i_unit)
        by = -np.stack([(self.candidate * (self.on == k)).sum(axis=1) for k in (False, True)], axis=2)
        self.thresholds = 0 * by if fixed else by

    def deciding(self, run: SimulatedSamples) -> np.ndarray:
        """Return the threshold that can change each state, (n, frames, cells), ampere."""
        return np.where(self.on, run.thresholds[:, None, :, 1], run.thresholds[:, None, :, 0])

    def of(self, run: SimulatedSamples, simulated=None) -> float:
        """Return J; simulated: (states, readout, candidate) of another simulator."""
        states, readout, candidate = simulated or (run.states, run.readout, run.candidate)
        assert np.array_equal(states, self.states), "a state flipped"
        found = (self.readout * readout).sum() + (self.candidate * candidate).sum()
        return float(found + (self.thresholds * run.thresholds).sum())

    def in_ngspice(self, run: SimulatedSamples) -> float:
        """Return J of the same circuits in ngspice."""
        job, found = run.job, []
        for x, chip in zip(job.samples, job.chips, strict=True):
            there = Run(timing=job.timing, condition=job.condition, chip=chip)
            margins = decision_margins(job.design, there)
            plan = with_margins(read_plan(job.design, len(x), job.timing, job.condition), margins, there)
            bench = with_candidates(inference_bench(job.design, x, job.timing, job.condition, chip), margins)
            found.append(run_inference(bench, plan))
        fields = ("states", "readout", "margins")
        states, readout, margin = (np.stack([getattr(one, name) for one in found]) for name in fields)
        deciding = self.deciding(run)
        return self.of(run, (states, readout, deciding + np.sign(run.candidate - deciding) * margin))


def check(technology="generic180", model="digits_d4", chip=None):
    compared = compiled(model, technology)
    circuit = Reweighted(compared.design, compared.condition, compared.timing).on_chips((int(chip or 0),), SEED)
    roles = {mos.role for mos in compared.design.flat.elements if isinstance(mos, Mos) and mos.role}
    area = {} if chip else dict.fromkeys(roles, IDEAL)
    test_set = compared._samples(None, None, 0)
    samples = [test_set.inputs(k) for k in SAMPLES]
    run = circuit.simulate(samples, {}, {}, area)
    sums = {kind: Sum(run, fixed=kind in ("weight", "bias")) for kind in KINDS}
    by_kind = {kind: run.pull_back(one.readout, one.candidate, one.thresholds) for kind, one in sums.items()}
    grid = compared.design.network.weight_grid or 1 / 8

    def shifted(name, where, step):
        value = circuit.arrays[name].copy()
        value[where] += step
        return circuit.simulate(samples, {name: value}, {}, area)

    cases = {kind: [] for kind in KINDS}
    for name, array in circuit.arrays.items():
        if (kind := kind_of(name)) is None:
            continue
        for where, value in np.ndenumerate(by_kind[kind].learned[name]):
            place = f"{name}[{','.join(map(str, where))}]"
            if kind == "threshold":
                cases[kind].append((place, value, grid / 4, lambda s, n=name, w=where: shifted(n, w, s)))
            elif array[where]:
                again = lambda s, p=place: circuit.times(p, s).simulate(samples, {}, {}, area)  # noqa: E731
                cases[kind].append((place, array[where] * value, 0.02, again))
    for pin, value in by_kind["bias current"].pins.items():
        again = lambda s, p=pin: circuit.simulate(samples, {}, {p: np.exp(s)}, area)  # noqa: E731
        cases["bias current"].append((pin, value, 0.01, again))
    for role, value in by_kind["area"].area.items() if chip else ():
        cases["area"].append((role, value, 0.2, lambda s, r=role: circuit.simulate(samples, {}, {}, {r: np.exp(s)})))
    for kind, few in cases.items():
        report(kind, few, sums[kind])


def report(kind, cases, total):
    """Print the median and the largest relative difference of a kind's derivatives from central differences.

    cases: parameter, derivative, step, and the simulation at a step. ngspice knows a current to its reltol of 1e-4, so
    its steps are larger and its parameters those that count most.
    """
    largest = max((abs(value) for _, value, *_ in cases), default=0.0)
    order = [cases[k] for k in np.random.default_rng(1).permutation(len(cases))]
    engines = {"the batched engine": (0.02, 1, lambda run: total.of(run)), "ngspice": (0.1, WIDER, total.in_ngspice)}
    for engine, (least, wider, value_of) in engines.items():
        off, flips = [], 0
        for name, value, step, simulate in (case for case in order if abs(case[1]) > least * largest):
            if len(off) == MOST:
                break
            try:
                more, less = (value_of(simulate(sign * wider * step)) for sign in (1, -1))
            except (AssertionError, MappingError):
                flips += 1
                continue
            off.append((abs(2 * wider * step * value / (more - less) - 1), name))
        if off:
            (median, _), (most, name) = sorted(off)[len(off) // 2], max(off)
            line = f"median {100 * median:.2f} %, largest {100 * most:.2f} % ({name})"
            print(f"{kind}: {len(off)} of {len(cases)} against {engine}: {line}; {flips} more cannot be", flush=True)


def pins(chip, technology="generic180", model="digits_d4", data=None):
    compared = compiled(model, technology)
    task, test_set = load_task(compared.design.network.task, data), compared._samples(data, TESTED, 0)
    circuit = compared.differentiable().on_chips([int(chip)])
    factors = {pin: torch.zeros((), requires_grad=True) for pin in circuit.pins}  # ln of each
    optimiser, rng = torch.optim.Adam(factors.values(), PIN_RATE), np.random.default_rng(0)
    x_test = torch.from_numpy(np.stack([test_set.inputs(k) for k in range(len(test_set.y))]))

    def run(x):
        out = circuit(x, pins={pin: value.exp() for pin, value in factors.items()})
        return out.readout.mean(dim=1)

    def accuracy():
        with torch.no_grad():
            right = int((run(x_test).argmax(dim=1).numpy() == test_set.y).sum())
        return "{:.3f} [{:.3f}, {:.3f}]".format(*interval(right, len(x_test)))

    print(f"before: {accuracy()}", flush=True)
    for _ in range(PIN_STEPS):
        chosen = rng.permutation(len(task.x_train))[:PIN_BATCH]
        x, y = torch.from_numpy(np.asarray(task.x_train[chosen])), torch.from_numpy(np.asarray(task.y_train[chosen]))
        loss = torch.nn.functional.cross_entropy(run(x), y.long())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(factors.values(), 1.0)
        optimiser.step()
    print(f"after {PIN_STEPS} steps: {accuracy()}", flush=True)
    print("factors:", ", ".join(f"{pin} {float(value.detach().exp()):.3f}" for pin, value in factors.items()))


if __name__ == "__main__":
    shrink(globals(), "check", SAMPLES=(51,), MOST=1)
    {"check": check, "pins": pins}[sys.argv[1]](*sys.argv[2:])
