"""Command `cosim reproduce`: print tables of the papers beside the figures of networks trained here."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cosim.base.bounds import SEEDS
from cosim.base.errors import importing
from cosim.base.write import write_atomically
from cosim.cli.progress import progress_bar, say
from cosim.cli.session import VerbSession
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer
from cosim.cli.verb import FILE, Result, argument, one_of, option, switch, verb
from cosim.papers.tables.catalog import ONE_SIZE, TABLES, Size, check_tables
from cosim.verbs.common import check_outputs, output_option
from cosim.verbs.train.command import EXTRA

if TYPE_CHECKING:
    from cosim.papers.tables.catalog import PaperTable
    from cosim.papers.tables.run import FinishedRow


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Options of `cosim reproduce`: tables, size of the networks, data, device, seeds and folder."""

    tables: tuple[str, ...] = argument("[TABLE]...", None, nargs=-1, required=False)
    reduced: bool = switch("Small networks: minutes of a CPU for each.")
    seeds: int = option("Networks of each row.", Integer(SEEDS), 3)
    data: Path | None = option("Folder with mnist, speech_commands and fsdd, for pixels and keywords.", FILE)
    device: Literal["cpu", "cuda"] = one_of(("cpu", "cuda"), "Where backbones are trained.")
    output: Path = output_option("runs/reproduce")

    @property
    def size(self) -> Size:
        """Return size, data and device as a table's functions take them."""
        return Size(self.reduced, self.data, self.device)

    def command(self, name: str) -> str:
        """Return the command that makes a table again; FOLDER stands for the user's folder of data."""
        data = ["--data", "FOLDER"] if self.data is not None and name in ("pixels", "keywords") else []
        device = ["--device", self.device] if self.device != "cpu" else []
        reduced = ["--reduced"] if self.reduced and name not in ONE_SIZE else []
        words = ["cosim", "reproduce", name, *reduced, *data, *device]
        return shlex.join([*words, "--seeds", str(self.seeds)])


def run(options: ReproduceOptions, session: VerbSession) -> Result:
    """Train what a TABLE of a paper holds, and print it beside the published figures.

    Without a TABLE it lists them. The folder receives TABLE.json and TABLE.md, with settings, seeds, seconds and what
    differs from the paper, and every finished network's figures: the same command continues, also with more seeds.
    Without --reduced networks have the paper's size and iterations, which is for a GPU and takes days.
    """
    names = check_tables(options.tables)
    if not names:
        width = max(map(len, TABLES))
        return Result(lines=[f"{name:{width}}  {text}" for name, text in TABLES.items()])
    check_outputs("reproduce", options.output)
    with importing("training", EXTRA):
        from cosim.papers.tables.run import make_table

    made = {name: make_table(name, options.size) for name in names}  # which says what is missing before any work
    session.take_folder("reproduce", options.output)
    for name in names:
        session.echo("\n".join(_reproduce(made[name], options, options.command(name))))
    return Result()


def _reproduce(table: "PaperTable", options: ReproduceOptions, typed: str) -> list[str]:
    """Train a table's networks, and write the table again after each row; return the table as lines of text."""
    import json

    from cosim.papers.tables.run import count_left, run_table, table_json, table_page, table_text

    count, kept = count_left(table, options.output, options.seeds)
    most = max(row.iterations for row in table.rows)
    if most:
        say(f"{table.name}: {count} trainings of up to {most} iterations, {kept} of them kept from before")
    rows = list["FinishedRow"]()
    json_file, page = (options.output / f"{table.name}.{suffix}" for suffix in ("json", "md"))
    with progress_bar(table.name) as progress:
        for row in run_table(table, options.output, options.seeds, progress):
            rows.append(row)
            write_atomically(json_file, f"{json.dumps(table_json(table, typed, rows), indent=2)}\n".encode())
            write_atomically(page, table_page(table, typed, rows).encode())
    return [table.title, "", *table_text(rows), "", f"table: {page}"]


command = verb(ReproduceOptions, run, KeepingVerb)
