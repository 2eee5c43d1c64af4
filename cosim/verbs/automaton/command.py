"""Command `cosim automaton`: write a network that follows an automaton, such as that of a regular language."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.automata.automaton import MOST_STATES
from cosim.base.bounds import SEED, Bounds, check_memory
from cosim.base.errors import InputError, importing
from cosim.base.text import shown_name, shown_path
from cosim.cli.progress import say
from cosim.cli.session import VerbSession
from cosim.cli.types import Integer, Text
from cosim.cli.verb import FILE, Result, argument, one_of, option, verb
from cosim.verbs.train.command import EXTRA

if TYPE_CHECKING:
    from numpy.random import Generator

    from cosim.automata.automaton import Automaton, Whole
    from cosim.verbs.automaton.structure import CircuitSize

LENGTH, STRINGS = Bounds(1, 100_000), Bounds(0, 100_000)
_NAMED = 200  # characters
DIGITS = 3  # of a task that is learned
_BLOCKS = {"sum": (4, 8), "even-pair": (8, 8), "mod-arith": (4, 16)}
_ONE_OF = "give one of REGEX, TABLE.json, CHECKPOINT, --modulo and --train; see cosim automaton --help"


def _read_blocks(text: str) -> tuple[int, int]:
    """Return (H, B) for H blocks of B states, typed as HxB. Raises ValueError for other text."""
    found = re.fullmatch(r"(\d{1,2})x(\d{1,2})", text)
    if found is None or not (1 <= int(found[1]) <= 16 and 2 <= int(found[2]) <= 64):
        raise ValueError(f"must be 1 to 16 blocks of 2 to 64 states each, such as 4x8, not {text}")
    return int(found[1]), int(found[2])


_BLOCKS_TYPE = Text("HxB", _read_blocks)


@dataclass(frozen=True, kw_only=True)
class AutomatonOptions:
    """Options of `cosim automaton`; the automaton comes from one of source, modulo and train.

    modulo: with train, the M of the task.
    """

    source: str | None = argument("[REGEX | TABLE.json | CHECKPOINT]", None, required=False)
    modulo: int | None = option(
        "Sum of digits modulo this, in place of SOURCE; with --train its M.", Integer(Bounds(2, MOST_STATES))
    )
    alphabet: str | None = option("Symbols of REGEX, default those that it names.")
    train: str | None = option("Learn this task, in place of SOURCE [M: 3].", click.Choice(list(_BLOCKS)))
    blocks: tuple[int, int] | None = option("With --train: H blocks of B states [default: by task].", _BLOCKS_TYPE)
    bits: int = option("With --train: BMRU bits beside the blocks.", Integer(Bounds(0, 32)), 0)
    structure: str = one_of(("auto", "one-hot"), "The form of the smallest area, or one cell for each state.")
    output: Path = option("Checkpoint file, .pt or .npz.", FILE, Path("automaton.npz"), flags=("-o", "--output"))
    length: int = option("Longest test string.", Integer(LENGTH), 40)
    strings: int = option("Random test strings.", Integer(STRINGS), 100)
    seed: int = option("Seed of the test strings, and of --train.", Integer(SEED), 0)


def run(options: AutomatonOptions, session: VerbSession) -> Result:
    """Write a network that follows an automaton, and strings to test it with.

    The automaton is the minimal one of a REGEX, whose output says behind each
    symbol whether the string so far matches; a table of states in a JSON file;
    a counter; what a trained network follows, a CHECKPOINT whose features are
    symbols, learned by asking it; or what blocks learn from examples of a task,
    --train: the sum of digits modulo M, whether of M symbols the last one is the
    first, or the value of digits and + - x modulo M. Where it is a product of
    smaller ones, latches and toggles take less area than a cell for each state:
    the form of the smallest area in generic180 is written. Test strings take
    every transition, then come random ones: in NAME.strings.npz beside the
    network NAME, for --data of the other verbs.
    """
    import numpy as np

    from cosim.base.claim import check_replaceable
    from cosim.exchange.checkpoint import is_written_here, save_checkpoint
    from cosim.verbs.automaton.structure import forms, smallest, tour

    _check(options)
    output, length, strings = options.output, options.length, options.strings
    kept = output.with_suffix(".strings.npz")
    check_replaceable({output: is_written_here, kept: lambda _: output.is_file()})
    rng = np.random.default_rng(options.seed)
    name, automaton = _read(options, session, lambda symbols: _random(rng, symbols, max(strings, 100), length))
    say(f"{len(automaton.states)} states, {len(automaton.symbols)} symbols: looking for the form of the smallest area")
    found, walks = forms(automaton, name), tour(automaton, length)
    form, count = smallest(found) if options.structure == "auto" else found[0], len(walks)
    save_checkpoint(output, form.network)
    _write_strings(kept, automaton, walks + _random(rng, len(automaton.symbols), strings, length))
    states, symbols = automaton.next.shape
    return Result(
        lines=[
            f"{name}: {states} states, {symbols} symbols, {states * symbols} transitions",
            f"form:    {_compared(form, found)}",
            f"network: {shown_path(output)}",
            f"strings: {shown_path(kept)}, {count} take every transition, {strings} are random",
            f"next:    cosim compare {shown_path(output)} --data {shown_path(kept)}",
        ]
    )


def _write_strings(path: Path, automaton: "Automaton", strings: "list[Whole]") -> None:
    """Write strings as a test set, each with the label that the automaton gives it."""
    import numpy as np

    from cosim.automata.network import one_hot
    from cosim.base.write import write_atomically
    from cosim.exchange.checkpoint import npz_bytes

    x, lengths = one_hot(len(automaton.symbols), strings)
    y = np.array([automaton.output[automaton.run(string)[-1]] for string in strings])
    write_atomically(path, npz_bytes({"x_test": x, "y_test": y, "len_test": lengths}))


def _compared(form: "CircuitSize", found: "list[CircuitSize]") -> str:
    """Return the size of a circuit as text, compared with the next one of those found."""
    others = [one for one in found if one is not form]
    drawn = (f"{one.words}, {one.transistors} transistors, {one.area * 1e12:,.0f} um2" for one in (form, *others[:1]))
    return "; not ".join(drawn)


def _check(options: AutomatonOptions) -> None:
    """Check that exactly one source of the automaton is given, with only its own options; raises InputError."""
    sources = options.source, options.train or options.modulo
    if sum(one is not None for one in sources) != 1:
        raise InputError(_ONE_OF)
    for name, given in (("blocks", options.blocks), ("bits", options.bits)):
        if given and options.train is None:
            raise InputError(f"--{name} says what is trained, and needs --train")


def _read(
    options: AutomatonOptions, session: VerbSession, strings: "Callable[[int], list[Whole]]"
) -> "tuple[str, Automaton]":
    """Return (name, automaton); strings: function (number of symbols) -> strings to compare a network on."""
    from cosim.automata.automaton import minimise, read_table
    from cosim.automata.automaton import modulo as counter
    from cosim.automata.regex import automaton_of

    if options.train is not None:
        return _train(options, session, options.train)
    if options.modulo is not None:
        return f"sum modulo {options.modulo}", counter(options.modulo)
    pattern = str(options.source)
    path = Path(pattern)
    if path.suffix == ".json":
        return f"automaton of {shown_name(path.name)}", minimise(read_table(path))
    if path.suffix in (".npz", ".pt"):
        return f"automaton in {shown_name(path.name)}", _learn(path, session, strings)
    short = pattern if len(pattern) <= _NAMED else f"{pattern[:_NAMED]}..."
    return f"automaton of {short}", automaton_of(pattern, options.alphabet)


def _train(options: AutomatonOptions, session: VerbSession, kind: str) -> "tuple[str, Automaton]":
    """Train blocks on a kind of strings, printing the progress; return (name, automaton that they learned)."""
    from cosim.automata.blocks import string_task

    digits = options.modulo or DIGITS
    task = string_task(kind, digits)
    with importing("training", EXTRA):
        from cosim.automata.train_blocks import LONG, BlockShape, TrainedBlocks, extract, train_blocks

    def tell(found: TrainedBlocks) -> None:
        if found.learned or found.iterations % 250 == 0:
            say(f"iteration {found.iterations}: loss {found.loss:.3g}, {found.accuracy:.2%} right at length {LONG}")

    blocks, states = options.blocks or _BLOCKS[kind]
    trained = train_blocks(task, BlockShape(blocks, states, bits=options.bits), options.seed, tell)
    automaton, least = extract(trained, task)
    session.echo(
        f"learned in {trained.iterations} iterations by {blocks} blocks of {states} states"
        f"{f' and {options.bits} bits' if options.bits else ''}; at least {least} states are needed"
    )
    return f"{kind} of {digits}", automaton


def _learn(path: Path, session: VerbSession, strings: "Callable[[int], list[Whole]]") -> "Automaton":
    """Learn the automaton that a network follows from the network's answers; print how well the two agree."""
    from cosim.automata.learn import learn, network_oracle
    from cosim.exchange.checkpoint import load_network

    network = load_network(path)
    features, labels = network.encoding.features, network.labels
    names = tuple(map(str, range(features))), labels or tuple(map(str, range(network.readout.width)))
    words = [tuple(word.tolist()) for word in strings(features)]
    automaton, asked, differing = learn(network_oracle(network, shown_path(path)), names, words, MOST_STATES)
    differ = f"of {len(words)} others the automaton answers {differing} otherwise"
    session.echo(f"learned from {asked} strings; {differ}")
    return automaton


def _random(rng: "Generator", symbols: int, count: int, longest: int) -> "list[Whole]":
    """Return random test strings, each with at most `longest` symbols.

    Raises OutOfMemoryError where the strings, with an input for each symbol, would not fit in memory.
    """
    check_memory(
        8.0 * count * longest * (1 + symbols), "the test strings", "give fewer --strings or a smaller --length"
    )
    return [rng.integers(0, symbols, rng.integers(1, longest + 1)) for _ in range(count)]


command = verb(AutomatonOptions, run)
