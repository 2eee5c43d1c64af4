"""`cosim automaton`: a regular language as a network with exact state."""

from pathlib import Path

import click

from cosim.cli.common import FILE
from cosim.errors import InputError
from cosim.files.write import check_writable
from cosim.reading.text import shown_path


@click.command(name="automaton")
@click.argument("source", metavar="[REGEX | TABLE.json]", required=False)
@click.option("--modulo", type=click.IntRange(2), help="Sum of digits modulo this, in place of a file or REGEX.")
@click.option("--alphabet", help="Symbols of REGEX, default those that it names.")
@click.option("-o", "--output", type=FILE, default=Path("automaton.npz"), help="Checkpoint file, .pt or .npz.")
@click.option("--length", type=click.IntRange(1), default=40, help="Longest test string.")
@click.option("--strings", type=click.IntRange(0), default=100, help="Random test strings.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the test strings.")
def command(
    *,
    source: str | None,
    modulo: int | None,
    alphabet: str | None,
    output: Path,
    length: int,
    strings: int,
    seed: int,
) -> None:
    """Write a network that follows an automaton, and strings to test it with.

    The automaton is the minimal one of a REGEX, whose output says behind each symbol whether the string so far matches;
    a table of states in a JSON file; or a counter. Test strings take every transition, then come random ones: in
    NAME.strings.npz beside the network NAME, for --data of the other verbs.
    """
    import numpy as np

    from cosim.automata.network import network_of, one_hot
    from cosim.automata.regex import automaton_of
    from cosim.automata.table import minimise, read_table
    from cosim.automata.table import modulo as counter
    from cosim.automata.tour import tour
    from cosim.checkpoint.file import npz_bytes, save_checkpoint
    from cosim.files.write import write_atomically

    if (source is None) == (modulo is None):
        raise InputError("cosim automaton needs one of REGEX, TABLE.json and --modulo; see cosim automaton --help")
    kept = output.with_suffix(".strings.npz")
    for path in (output, kept):
        check_writable(path)
    if modulo is not None:
        automaton, name = counter(modulo), f"sum modulo {modulo}"
    elif source is not None and source.endswith(".json"):
        automaton, name = minimise(read_table(Path(source))), f"automaton of {Path(source).name}"
    else:
        automaton, name = automaton_of(str(source), alphabet), f"automaton of {source}"
    network = network_of(automaton, name)
    walks = tour(automaton, length)
    rng = np.random.default_rng(seed)
    walks += [rng.integers(0, len(automaton.symbols), rng.integers(1, length + 1)) for _ in range(strings)]
    x, lengths = one_hot(automaton, walks)
    y = np.array([automaton.output[automaton.run(walk)[-1]] for walk in walks])
    save_checkpoint(output, network)
    write_atomically(kept, npz_bytes({"x_test": x, "y_test": y, "len_test": lengths}))
    states, symbols = automaton.next.shape
    click.echo(
        f"{name}: {states} states, {symbols} symbols, {states * symbols} transitions\n"
        f"network: {shown_path(output)}\n"
        f"strings: {shown_path(kept)}, {len(walks) - strings} take every transition, {strings} are random\n"
        f"next:    cosim compare {shown_path(output)} --data {shown_path(kept)}"
    )
