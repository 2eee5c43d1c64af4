"""Blocks that learn an automaton: when, how exact, how few states, and the same on transistors.

    python benchmarks/bench_blocks.py [hard] [even-pair] [real]

hard: Sum(5) and ModArith(3), five seeds each: iterations and seconds until strings of 500 symbols are answered without
an error, and until every state is; accuracy at 10^5 steps; states of the automaton; its network in software and on
transistors against the trained blocks. even-pair: alike. real: real-valued blocks, and what is learned from them by
asking.
"""

import sys
import time

import numpy as np
from bench_automata import measure
from smoke import shrink

from cosim.automata.blocks import StringTask, side_by_side, string_task
from cosim.automata.learn import learn
from cosim.automata.network import network_of, one_hot
from cosim.automata.train_blocks import (
    BlockRecurrence,
    BlockShape,
    Form,
    TrainedBlocks,
    accuracy_of,
    blocks_oracle,
    extract,
    say,
    train_blocks,
)
from cosim.compiler.passes import compile_network
from cosim.network.reference import run_reference
from cosim.network.types import Network
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.verbs.automaton.structure import tour
from cosim.verbs.calibrate.find import shipped_path

SEEDS, STEPS, STRINGS = range(5), 100_000, 8
FRAMES, LENGTH = 200, 40
ASKED, MOST = 15, 64  # longest word, and most states, of what is learned by asking


def trained(task: StringTask, shape: BlockShape, seed: int, **how: int) -> tuple[TrainedBlocks, str]:
    """Blocks, and when they were right for the first time and for good."""
    begin, firsts = time.perf_counter(), list[str]()

    def note(found: TrainedBlocks) -> None:
        if found.accuracy == 1.0:
            firsts.append(f"{found.iterations:4} iterations {time.perf_counter() - begin:5.1f} s")

    found = train_blocks(task, shape, seed, note, **how)
    first = firsts[0] if firsts else f"not in {found.iterations} ({found.accuracy:.1%}, loss {found.loss:.4f})"
    return found, f"{first}, learned {'after ' + str(found.iterations) if found.learned else 'never'}"


def held(network: Network, model: BlockRecurrence, task: StringTask) -> int:
    """Decisions of a network that differ from those of blocks on 200 frames, of those that are of concern."""
    strings = task.draw(np.random.default_rng(1), FRAMES // LENGTH, LENGTH)
    x, lengths = one_hot(len(task.symbols), list(strings))
    decided = run_reference(network, x, lengths).readout.argmax(axis=2)
    return int((decided != say(model, strings))[:, task.concerned(LENGTH)].sum())


def on_transistors(network: Network, strings: list[np.ndarray]) -> str:
    """Wrong states, with the batch engine in generic180."""
    technology = load_technology("generic180")
    design = compile_network(network, technology, load_calibration(shipped_path(technology.name, 8)))
    x, lengths = one_hot(network.encoding.features, strings)
    wrong, count, power = measure(design, x, lengths, None)
    frames = f"{lengths.sum()} frames, {wrong} of {count} states wrong, {power * 1e9:.1f} nW"
    return f"{design.assembly.transistors} transistors, {frames}"


def hard(name: str, digits: int, shape: BlockShape, seed: int) -> None:
    """A line of figures for one training."""
    task = string_task(name, digits)
    found, when = trained(task, shape, seed)
    where = f"{name}({digits}) {shape.blocks}x{shape.states}, seed {seed}"
    print(f"{where}: {when}", flush=True)
    if not found.learned:
        return
    automaton, least = extract(found, task)
    network = network_of(automaton, name)
    strings = [*tour(automaton, LENGTH), *task.draw(np.random.default_rng(1), FRAMES // LENGTH, LENGTH)]
    accuracy = accuracy_of(found.model, task, STEPS, STRINGS)
    differ = held(network, found.model, task)
    print(
        f"    {accuracy:.6%} at {STEPS} steps; {len(automaton.states)} states, at least {least}; "
        f"{differ} of {FRAMES} frames differ in software; {on_transistors(network, strings)}",
        flush=True,
    )
    if not shape.hidden:
        beside = side_by_side(found.model.automata(), found.model.weights(), task)
        print(
            f"    side by side: {beside.layers[1].width} cells, {held(beside, found.model, task)} of {FRAMES} frames "
            f"differ in software; {on_transistors(beside, strings[-FRAMES // LENGTH :])}",
            flush=True,
        )


def real(form: Form) -> None:
    """Real-valued blocks of Sum(3), and the automaton that answers as they do."""
    task = string_task("sum", 3)
    found, when = trained(task, BlockShape(4, 8, form=form), 0, length=40, most=1000)
    print(f"sum(3) 4x8 {form}, seed 0: {when}", flush=True)
    rng = np.random.default_rng(2)
    words = [tuple(rng.integers(0, 3, rng.integers(1, ASKED + 1)).tolist()) for _ in range(300)]
    names = task.symbols, task.labels
    automaton, asked, differing = learn(blocks_oracle(found.model), names, words, MOST)
    line = f"    asked {asked} strings: {len(automaton.states)} states, {differing} of 300 differ"
    for steps in (ASKED, 40, 100, 500):
        strings = task.draw(rng, 200, steps)
        said, right = say(found.model, strings), task.answers(strings)
        ran = np.array([automaton.output[automaton.run(string)] for string in strings])
        line += (
            f"\n    at {steps:3}: last symbols {(said != ran)[:, -1].mean():.1%} differ, blocks are right behind "
            f"{(said == right)[:, -1].mean():.1%}, the automaton behind {(ran == right)[:, -1].mean():.1%}"
        )
    print(line, flush=True)


def main() -> None:
    """The parts that are named, or all."""
    parts = sys.argv[1:] or ["hard", "even-pair", "real"]
    if "hard" in parts:
        for seed in SEEDS:
            hard("sum", 5, BlockShape(4, 8), seed)
        for seed in SEEDS:
            hard("mod-arith", 3, BlockShape(4, 16), seed)
        hard("sum", 5, BlockShape(4, 8, hidden=0), 0)
    if "even-pair" in parts:
        for seed in SEEDS:
            hard("even-pair", 5, BlockShape(8, 8), seed)
    if "real" in parts:
        real("columns")
        real("blocks")


if __name__ == "__main__":
    shrink(globals(), "even-pair", SEEDS=(0,), STEPS=1000)
    main()
