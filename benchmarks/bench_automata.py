"""Automata on transistors: every transition, states against software, transistors and power.

    python benchmarks/bench_automata.py [TECHNOLOGY] [--corners] [--random | --forms | --long]

Strings are a tour of all transitions, in pieces that begin at the start, and random ones. A wrong state is one cell in
one frame. Corners: ss and ff at 0 and 60 C, with the design of the nominal condition. --random: 20 random minimal
automata instead. --forms: automata in their smallest form alone. --long: Sum(5) alone, 10^5 frames in segments that
start from every state, and 10^6 by the behavioral model.
"""

import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np
from smoke import shrink

from cosim.automata.automaton import Automaton, minimise, modulo
from cosim.automata.lines import AGAIN, dilated_line, position_code, ring
from cosim.automata.network import network_of, one_hot
from cosim.automata.regex import automaton_of
from cosim.compiler.design import Condition, Design
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.simulated import engine_named
from cosim.network.ir.states import software_states
from cosim.network.layers import FALL, RISE, FirstQuadrantLayer
from cosim.network.reference import run_reference
from cosim.network.types import DelayedSignal, InputEncoding, Network, Readout
from cosim.tasks.testset import TestSet
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at
from cosim.verbs.automaton.structure import forms, smallest, tour
from cosim.verbs.calibrate.find import shipped_path

LONGEST, RANDOM = 40, 16
EXPRESSIONS = [("(a|b)*abb", None), ("[ab]*a..", "ab"), ("[a-c]*aba[a-c]*", None), ("a*b*c*", None), ("(ab)*", None)]
EXPRESSIONS += [("[a-c][a-c01]*", None)]
CORNERS = [(corner, celsius) for corner in ("ss", "ff") for celsius in (0.0, 60.0)]


def even_pair(count: int) -> Automaton:
    """Whether the last symbol is the first one."""
    states = ["start", *(f"{first}{last}" for first in range(count) for last in ("=", "/"))]
    follow = np.empty((len(states), count), dtype=np.int64)
    follow[0] = 1 + 2 * np.arange(count)
    for first in range(count):
        follow[1 + 2 * first : 3 + 2 * first] = np.where(np.arange(count) == first, 1 + 2 * first, 2 + 2 * first)
    output = np.array([1, *([1, 0] * count)])
    return minimise(Automaton(tuple(map(str, range(count))), tuple(states), ("no", "yes"), follow, 0, output))


def mod_arithmetic(count: int) -> Automaton:
    """Value of a sum of products modulo count, x before + and -; of well-formed strings, others are of no concern."""
    pairs = [(left, factor) for left in range(count) for factor in range(count)]
    place = {pair: k for k, pair in enumerate(pairs)}
    follow = np.empty((len(pairs), count + 3), dtype=np.int64)
    for (left, factor), k in place.items():
        for number in range(count):
            follow[k, number] = place[left, factor * number % count]
        for symbol, sign in enumerate((1, -1)):
            follow[k, count + symbol] = place[(left + factor) % count, sign % count]
        follow[k, count + 2] = k
    output = np.array([(left + factor) % count for left, factor in pairs])
    names = tuple(f"{left}+{factor}" for left, factor in pairs)
    symbols = (*map(str, range(count)), "+", "-", "x")
    return minimise(Automaton(symbols, names, tuple(map(str, range(count))), follow, place[0, 1], output))


def flip_flop() -> Automaton:
    """The last bit that was written, over symbols that do nothing."""
    follow = np.array([[0, 1, 2], [1, 1, 2], [2, 1, 2]])
    return Automaton(("i", "0", "1"), ("none", "0", "1"), ("none", "0", "1"), follow, 0, np.arange(3))


def register(length: int) -> Network:
    """A chain of cells behind an input of one bit, with all its taps read out."""
    one = np.ones(1)
    bit = FirstQuadrantLayer("bit", ("input",), np.ones((1, 1)), np.zeros(1), FALL * one, RISE * one, one)
    late = {f"bit_{k}": DelayedSignal("bit", k) for k in range(1, length)}
    readout = Readout(("bit", *late), np.ones((1, length)) / 8, np.zeros(1))
    return Network(InputEncoding(np.zeros(1), one, levels=1), (bit,), readout, weight_grid=1 / 8, late=late)


Case = tuple[str, Network, np.ndarray, np.ndarray]  # name, network, inputs, lengths


def lines() -> Iterator[Case]:
    """Memories without an automaton."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (8, 200, 1)).astype(float)
    yield "register of 64 cells", register(64), x, np.full(8, 200)
    written = np.concatenate([rng.integers(0, 2, 16), np.full(1600, AGAIN)])
    yield "ring of 16, 100 turns", ring(16), np.eye(3)[written][None], np.array([len(written)])
    x = np.stack([np.ones((8, 100)), rng.integers(0, 2, (8, 100))], axis=2)
    yield "line of 8, by 4", dilated_line(8, 2), x, np.full(8, 100)
    yield "position, 8 bits", position_code(8), np.ones((1, 520, 1)), np.array([520])


def random_cases() -> Iterator[Case]:
    """Minimal automata of 2 to 12 states over 2 to 4 symbols, drawn at random, and tours of them."""
    rng, count = np.random.default_rng(1), 0
    while count < 20:
        states, symbols = int(rng.integers(4, 13)), int(rng.integers(2, 5))
        names, alphabet = tuple(map(str, range(states))), tuple(map(str, range(symbols)))
        follow, output = rng.integers(0, states, (states, symbols)), rng.integers(0, 2, states)
        automaton = minimise(Automaton(alphabet, names, ("no", "yes"), follow, 0, output))
        if len(automaton.states) > 1:
            name, count = f"random {count}: {len(automaton.states)}, {symbols}", count + 1
            yield name, network_of(automaton, name), *one_hot(symbols, tour(automaton, LONGEST))


def segments(count: int) -> Case:
    """Sum(5): strings that begin with the symbol that leads to each state, 40 random symbols behind it."""
    rng = np.random.default_rng(2)
    strings = [np.array([k % 5, *rng.integers(0, 5, 40)]) for k in range(count)]
    return "Sum(5), segments", network_of(modulo(5), "Sum(5)"), *one_hot(5, strings)


def cases() -> Iterator[Case]:
    """What the table of the manual has."""
    rng = np.random.default_rng(0)
    yield from lines()
    automata = {f"modulo {count}, one bit": modulo_of_bits(count) for count in range(2, 9)}
    automata |= {"Sum(5)": modulo(5), "flip-flop": flip_flop(), "EvenPair(5)": even_pair(5)}
    automata |= {"ModArith(3)": mod_arithmetic(3), "ModArith(5)": mod_arithmetic(5)}
    for name, automaton in automata.items():
        yield name, network_of(automaton, name), *strings_of(automaton, rng)
    yield from form_cases()


def form_cases() -> Iterator[Case]:
    """The smallest form of automata that have parts."""
    rng = np.random.default_rng(3)
    automata = {expression: automaton_of(expression, alphabet) for expression, alphabet in EXPRESSIONS}
    automata |= {f"modulo {count}, one bit": modulo_of_bits(count) for count in (6, 8)}
    automata |= {"flip-flop": flip_flop(), "Sum(5)": modulo(5), "Sum(6)": modulo(6)}
    automata |= {"EvenPair(3)": even_pair(3), "EvenPair(5)": even_pair(5), "ModArith(3)": mod_arithmetic(3)}
    for name, automaton in automata.items():
        form = smallest(forms(automaton, name))
        yield f"{name}: {form.words}", form.network, *strings_of(automaton, rng)


def strings_of(automaton: Automaton, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and lengths of a tour and of random strings."""
    walks = tour(automaton, LONGEST)
    walks += [rng.integers(0, len(automaton.symbols), LONGEST) for _ in range(RANDOM)]
    return one_hot(len(automaton.symbols), walks)


def modulo_of_bits(count: int) -> Automaton:
    """How many ones there were."""
    names = tuple(map(str, range(count)))
    follow = np.stack([np.arange(count), (np.arange(count) + 1) % count], axis=1)
    return Automaton(("0", "1"), names, names, follow, 0, np.arange(count))


def measure(design: Design, x: np.ndarray, lengths: np.ndarray, condition: Condition | None) -> tuple[int, int, float]:
    """Wrong states, states, power in W."""
    test_set = TestSet(x, np.zeros(len(x), dtype=np.int64), lengths, np.arange(len(x)))
    run = Run(jobs=0, engine="batch", condition=condition)
    wanted = software_states(design.graph, run_reference(design.network, x, lengths))
    wrong = count = 0
    powers = []
    found = engine_named("batch").infer(design, test_set, run, lambda done, total: None)
    for one, right, length in zip(found, wanted, lengths, strict=True):
        if not isinstance(one, Inference):  # what the batched engine could not solve, ngspice did
            raise SystemExit(f"not run: {one}")
        wrong += int((one.states != right[:length]).sum())
        count += one.states.size
        powers.append(one.power_w)
    return wrong, count, float(np.mean(powers))


def print_behavioral(case: Case, design: Design) -> None:
    """Wrong states by the behavioral model."""
    name, network, x, lengths = case
    trace = run_behavioral(design, x)
    states = np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)
    wrong = int((states != software_states(design.graph, run_reference(network, x))).sum())
    print(f"{name}, behavioral: {lengths.sum()} frames, {wrong} of {states.size} states wrong", flush=True)


def main() -> None:
    """A line for each case and condition."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    technology = load_technology(names[0] if names else "generic180")
    calibration = load_calibration(shipped_path(technology.name, 8))
    conditions: list[tuple[str, Condition | None]] = [("nominal", None)]
    if "--corners" in sys.argv:
        conditions = [
            (f"{corner} {celsius:g} C", Condition(at(technology, corner, celsius, technology.supply)))
            for corner, celsius in CORNERS
        ]
    if "--long" in sys.argv:
        print_behavioral(segments(24_400), compile_network(segments(1)[1], technology, calibration))
    chosen = {"--random": random_cases, "--forms": form_cases, "--long": lambda: iter([segments(2440)])}
    for name, network, x, lengths in next((chosen[word] for word in sys.argv if word in chosen), cases)():
        design = compile_network(network, technology, calibration)
        for where, condition in conditions:
            wrong, count, power = measure(design, x, lengths, condition)
            print(
                f"{technology.name:11} {name:34} {where:10} {design.assembly.transistors:5} transistors  "
                f"{lengths.sum():5} frames  {wrong} of {count} states wrong  {power * 1e9:.1f} nW",
                flush=True,
            )


if __name__ == "__main__":
    shrink(globals(), cases=lambda: islice(lines(), 1))
    main()
