"""`cosim automaton`: a regular language as a network with exact state."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cosim.cli.common import FILE
from cosim.errors import InputError
from cosim.files.write import check_writable
from cosim.reading.text import shown_name, shown_path

if TYPE_CHECKING:
    from numpy.random import Generator

    from cosim.automata.table import Automaton, Whole
    from cosim.study.structure import Form


@click.command(name="automaton")
@click.argument("source", metavar="[REGEX | TABLE.json | CHECKPOINT]", required=False)
@click.option("--modulo", type=click.IntRange(2), help="Sum of digits modulo this, in place of SOURCE.")
@click.option("--alphabet", help="Symbols of REGEX, default those that it names.")
@click.option(
    "--structure",
    type=click.Choice(["auto", "one-hot"]),
    default="auto",
    help="The form of the smallest area, or one cell for each state.",
)
@click.option("-o", "--output", type=FILE, default=Path("automaton.npz"), help="Checkpoint file, .pt or .npz.")
@click.option("--length", type=click.IntRange(1), default=40, help="Longest test string.")
@click.option("--strings", type=click.IntRange(0), default=100, help="Random test strings.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the test strings.")
def command(
    *,
    source: str | None,
    modulo: int | None,
    alphabet: str | None,
    structure: str,
    output: Path,
    length: int,
    strings: int,
    seed: int,
) -> None:
    """Write a network that follows an automaton, and strings to test it with.

    The automaton is the minimal one of a REGEX, whose output says behind each
    symbol whether the string so far matches; a table of states in a JSON file;
    a counter; or what a trained network follows, a CHECKPOINT whose features
    are symbols, learned by asking it. Where it is a product of smaller ones,
    latches and toggles take less area than a cell for each state: the form of
    the smallest area in generic180 is written. Test strings take every transition, then
    come random ones: in NAME.strings.npz beside the network NAME, for --data of
    the other verbs.
    """
    import numpy as np

    from cosim.automata.tour import tour
    from cosim.checkpoint.file import save_checkpoint
    from cosim.study.structure import forms, smallest

    if (source is None) == (modulo is None):
        raise InputError("give one of REGEX, TABLE.json, CHECKPOINT and --modulo; see cosim automaton --help")
    kept = output.with_suffix(".strings.npz")
    for path in (output, kept):
        check_writable(path)
    rng = np.random.default_rng(seed)
    name, automaton = _read(source, modulo, alphabet, lambda symbols: _random(rng, symbols, max(strings, 100), length))
    found, walks = forms(automaton, name), tour(automaton, length)
    form, count = smallest(found) if structure == "auto" else found[0], len(walks)
    save_checkpoint(output, form.network)
    _write_strings(kept, automaton, walks + _random(rng, len(automaton.symbols), strings, length))
    states, symbols = automaton.next.shape
    click.echo(
        f"{name}: {states} states, {symbols} symbols, {states * symbols} transitions\n"
        f"form:    {_compared(form, found)}\n"
        f"network: {shown_path(output)}\n"
        f"strings: {shown_path(kept)}, {count} take every transition, {strings} are random\n"
        f"next:    cosim compare {shown_path(output)} --data {shown_path(kept)}"
    )


def _write_strings(path: Path, automaton: "Automaton", strings: "list[Whole]") -> None:
    """A test set of strings, with the label behind each."""
    import numpy as np

    from cosim.automata.network import one_hot
    from cosim.checkpoint.file import npz_bytes
    from cosim.files.write import write_atomically

    x, lengths = one_hot(len(automaton.symbols), strings)
    y = np.array([automaton.output[automaton.run(string)[-1]] for string in strings])
    write_atomically(path, npz_bytes({"x_test": x, "y_test": y, "len_test": lengths}))


def _compared(form: "Form", found: "list[Form]") -> str:
    """A form and the others that were looked at."""
    others = [_drawn(one) for one in found if one is not form]
    return "; not ".join([_drawn(form), *others[:1]])


def _drawn(form: "Form") -> str:
    return f"{form.words}, {form.transistors} transistors, {form.area * 1e12:,.0f} um2"


def _read(
    source: str | None, modulo: int | None, alphabet: str | None, strings: "Callable[[int], list[Whole]]"
) -> "tuple[str, Automaton]":
    """The automaton, and what it is called; strings: (symbols) -> those that a network is held against."""
    from cosim.automata.regex import automaton_of
    from cosim.automata.table import minimise, read_table
    from cosim.automata.table import modulo as counter

    if modulo is not None:
        return f"sum modulo {modulo}", counter(modulo)
    path = Path(str(source))
    if path.suffix == ".json":
        return f"automaton of {shown_name(path.name)}", minimise(read_table(path))
    if path.suffix in (".npz", ".pt"):
        return f"automaton in {shown_name(path.name)}", _learn(path, strings)
    return f"automaton of {source}", automaton_of(str(source), alphabet)


def _learn(path: Path, strings: "Callable[[int], list[Whole]]") -> "Automaton":
    """What a network follows; says how well."""
    from cosim.automata.learn import learn, network_oracle
    from cosim.automata.table import MOST_STATES
    from cosim.checkpoint.file import load_network

    network = load_network(path)
    features, labels = network.encoding.features, network.labels
    names = tuple(map(str, range(features))), labels or tuple(map(str, range(network.readout.width)))
    words = [tuple(word.tolist()) for word in strings(features)]
    found = learn(network_oracle(network, shown_path(path)), names, words, MOST_STATES)
    differ = f"of {found.strings} others the automaton answers {found.differing} otherwise"
    click.echo(f"learned from {found.queries} strings; {differ}")
    return found.automaton


def _random(rng: "Generator", symbols: int, count: int, longest: int) -> "list[Whole]":
    return [rng.integers(0, symbols, rng.integers(1, longest + 1)) for _ in range(count)]
