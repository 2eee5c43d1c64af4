"""Recall of whole sequences: sweeps of the untrained network, noise on its shifts, and the registers in its place.

    python benchmarks/bench_recall.py [PART ...]

Parts: lengths, widths, symbols, activations, initial, ages, noise, circuit, chips, which is all when none is named; and
long (L = 30,000 and 100,000, a seed each, some 20 minutes of an idle core). tanh, uniform, float32, L = 1000, D = 128,
K = 3 where nothing else is said; the worst of three seeds. MSE: of all numbers of all states, and of all inputs e_t.
Age: how many symbols ago the youngest one came that is recalled wrongly.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from smoke import shrink

from cosim.automata.recall import (
    ACTIVATIONS,
    INITIAL,
    DelayLineState,
    Initial,
    cast,
    correlator,
    draw,
    matched_filter,
    memory,
    recall,
    store,
    to_bits,
)
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.simulated import engine_named
from cosim.network.ir.states import software_states
from cosim.network.reference import run_reference
from cosim.network.types import Network
from cosim.results.intervals import interval
from cosim.tasks.testset import TestSet
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.variation.draws import VariationPlan
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.montecarlo.trial import Trial, run_chips

SEEDS, CHIPS = 3, 1000


@dataclass(frozen=True)
class Case:
    """One network and one sequence, but for the seed."""

    length: int = 1000
    width: int = 128
    symbols: int = 3
    activation: str = "tanh"
    initial: Initial = "uniform"
    dtype: type[np.floating[Any]] = np.float32
    noise: float = 0.0


@dataclass(frozen=True)
class Found:
    """wrong: of each symbol, newest first; errors: mean squares of the state by age; inputs: of all e_t."""

    wrong: NDArray[np.bool_]
    errors: NDArray[np.float64]
    inputs: float


def measure(case: Case, seed: int) -> Found:
    """Write a random sequence, recall it."""
    rng = np.random.default_rng(seed)
    network = cast(draw(case.width, case.symbols, rng, case.activation, case.initial), case.dtype)
    wanted = rng.integers(0, case.symbols, case.length)
    states = network.states(wanted)
    if case.noise:
        line = DelayLineState(network, case.length, case.noise, rng)
        for symbol in wanted:
            line.step(int(symbol))
        blocks = line.blocks()
    else:
        blocks = store(states, network.activation)
    symbols, recalled, columns = recall(network, blocks)
    errors = ((recalled.astype(float) - states) ** 2).mean(axis=1)
    inputs = ((columns.astype(float) - network.inputs.T[wanted]) ** 2).mean()
    return Found((symbols != wanted)[::-1], errors[::-1], float(inputs))


def show(case: Case, seeds: int | None = None) -> list[Found]:
    """A line: the worst of all seeds."""
    seeds = seeds or SEEDS
    began, found = time.perf_counter(), [measure(case, seed) for seed in range(seeds)]
    accuracy = [100 * (1 - one.wrong.mean()) for one in found]
    ages = [int(one.wrong.argmax()) for one in found if one.wrong.any()]
    states, inputs = max(one.errors.mean() for one in found), max(one.inputs for one in found)
    print(
        f"L {case.length:6}  D {case.width:4}  K {case.symbols:3}  {case.activation:8} {case.initial:10} "
        f"{np.dtype(case.dtype).name}  noise {case.noise:5.0e}  {seeds} seeds  "
        f"accuracy {min(accuracy):6.2f} to {max(accuracy):6.2f} %  MSE {states:.1e}, of inputs {inputs:.1e}  "
        f"first wrong at age {min(ages) if ages else '-'}  {time.perf_counter() - began:.0f} s",
        flush=True,
    )
    return found


def lengths() -> None:
    for length in (10, 30, 100, 300, 1000, 3000, 10000):
        show(Case(length))
    for dtype in (np.float32, np.float64):
        for length in (10, 30, 100, 300, 1000, 3000):
            show(Case(length, 16, dtype=dtype))


def long() -> None:
    for length in (30000, 100000):
        show(Case(length), seeds=1)


def widths() -> None:
    for width in (1, 4, 16, 64, 128, 256, 512, 1024):
        show(Case(width=width))


def symbols() -> None:
    for count in (2, 4, 8, 16, 32, 64, 128, 256, 512):
        show(Case(symbols=count))


def activations() -> None:
    for name in ACTIVATIONS:
        show(Case(activation=name))


def initial() -> None:
    for name in INITIAL:
        show(Case(initial=name))


def ages() -> None:
    """Depth into the past: errors of the states in a sequence of 10,000, by age."""
    errors = np.mean([one.errors for one in show(Case(10000))], axis=0)
    for first, last in ((0, 1), (1, 10), (10, 100), (100, 1000), (1000, 5000), (5000, 10000)):
        print(f"    age {first:5} to {last - 1:5}  MSE {errors[first:last].mean():.1e}", flush=True)


def noise() -> None:
    """Per shift; D = 32 in float64."""
    for name in ("tanh", "identity"):
        for deviation in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
            show(Case(width=32, activation=name, dtype=np.float64, noise=deviation))


def circuit() -> None:
    """Registers on transistors: states against software, transistors, power."""
    rng = np.random.default_rng(0)
    line = rng.integers(0, 2, (8, 200, 1)).astype(float)
    pattern = (1, 0, 1, 1, 0, 0, 1, 0)
    cases: list[tuple[str, Network, NDArray[np.float64]]] = [
        *((f"5 symbols, {k} frames ago", memory(5, k), to_bits(5, rng.integers(0, 5, (8, 60)))) for k in (1, 8, 21)),
        *((f"one bit, {k} frames ago", memory(2, k), line[:, : k + 40]) for k in (8, 16, 32, 64)),
        ("correlator, 8 bits", correlator(pattern), line),
        ("correlator, 16 bits", correlator(pattern * 2), line),
        ("nearest of 4 patterns, 8 bits", matched_filter(rng.integers(0, 2, (4, 8))), line),
    ]
    for name, network, x in cases:
        on_transistors(name, network, x)


def chips() -> None:
    """Correlators on chips that vary: behind the pattern, and behind all that differ from it in one bit."""
    technology = load_technology("generic180")
    calibration = load_calibration(shipped_path(technology.name, 8))
    for length in (8, 16, 32):
        pattern = np.random.default_rng(length).permutation(np.arange(length) % 2)
        x = np.stack([pattern, *(pattern ^ (np.arange(length) == k) for k in range(length))])[:, :, None].astype(float)
        network = correlator(pattern)
        test_set = TestSet(x, run_reference(network, x).decisions, np.full(len(x), length), np.arange(len(x)))
        trial = Trial(compile_network(network, technology, calibration), test_set, VariationPlan("local", 0, CHIPS))
        figures = [record.behavioral for record in run_chips(trial, tuple(range(CHIPS)))]
        good = sum(one is not None and one.state_agreement == 1 for one in figures)
        value, low, high = interval(good, CHIPS)
        print(
            f"{technology.name}  correlator, {length:2} bits  {CHIPS} chips  all states right in {value:.1%} "
            f"[{low:.1%}, {high:.1%}]",
            flush=True,
        )


def on_transistors(name: str, network: Network, x: NDArray[np.float64]) -> None:
    """A line."""
    technology = load_technology("generic180")
    design = compile_network(network, technology, load_calibration(shipped_path(technology.name, 8)))
    every = np.full(len(x), x.shape[1])
    test_set = TestSet(x, np.zeros(len(x), dtype=np.int64), every, np.arange(len(x)))
    trace = run_reference(network, x)
    wanted = software_states(design.graph, trace)
    wrong = decided = 0
    powers: list[float] = []
    found = engine_named("batch").infer(design, test_set, Run(jobs=0, engine="batch"), lambda done, total: None)
    for one, right, scores in zip(found, wanted, trace.readout, strict=True):
        if not isinstance(one, Inference) or one.elsewhere:
            raise SystemExit(f"not run: {one}")
        wrong += int((one.states != right).sum())
        # where two scores of software are equal either is right
        decided += int((scores.max(axis=1) > scores[np.arange(len(scores)), one.readout.argmax(axis=1)]).sum())
        powers.append(one.power_w)
    print(
        f"{technology.name}  {name:30} {design.assembly.transistors:5} transistors  {every.sum():5} frames  "
        f"{wrong} of {wanted.size} states, {decided} readouts wrong  {np.mean(powers) * 1e9:.1f} nW",
        flush=True,
    )


PARTS: dict[str, Callable[[], None]] = {
    one.__name__: one for one in (lengths, widths, symbols, activations, initial, ages, noise, circuit, chips, long)
}


def main() -> None:
    """The parts that are named, in their order."""
    for name in sys.argv[1:] or [name for name in PARTS if name != "long"]:
        PARTS[name]()


if __name__ == "__main__":
    shrink(globals(), "noise", "chips", SEEDS=1, CHIPS=2)
    main()
