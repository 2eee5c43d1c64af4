"""`cosim reproduce`: tables of the papers beside the same trained here."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cosim.base.bounds import SEEDS
from cosim.base.errors import importing
from cosim.base.write import write_atomically
from cosim.cli.options import FILE, collecting, one_of, output_option
from cosim.cli.progress import progress_bar, say
from cosim.cli.settings import KeepingVerb
from cosim.cli.types import Integer
from cosim.papers.tables.catalog import ONE_SIZE, TABLES, Size, check_tables
from cosim.verbs.common import check_outputs, take_folder
from cosim.verbs.train.command import EXTRA

if TYPE_CHECKING:
    from cosim.papers.tables.run import FinishedExperiment
    from cosim.papers.tables.table import PaperTable


@dataclass(frozen=True)
class ReproduceSetup:
    """Options of the trainings: their size, data, device and seeds, and where their figures go."""

    reduced: bool
    data: Path | None
    device: Literal["cpu", "cuda"]
    seeds: int
    output: Path

    @property
    def size(self) -> Size:
        """Return the size in the form that a table takes."""
        return Size(self.reduced, self.data, self.device)

    def command(self, name: str) -> str:
        """Return the command that makes this table; the folders are the caller's own."""
        data = ["--data", "FOLDER"] if self.data is not None and name in ("pixels", "keywords") else []
        device = ["--device", self.device] if self.device != "cpu" else []
        reduced = ["--reduced"] if self.reduced and name not in ONE_SIZE else []
        words = ["cosim", "reproduce", name, *reduced, *data, *device]
        return shlex.join([*words, "--seeds", str(self.seeds)])


@click.command(cls=KeepingVerb, name="reproduce")
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.option("--reduced", is_flag=True, help="Small networks: minutes of a CPU for each.")
@click.option("--seeds", type=Integer(SEEDS), default=3, help="Networks of each row.")
@click.option("--data", type=FILE, help="Folder with mnist, speech_commands and fsdd, for pixels and keywords.")
@one_of("--device", ("cpu", "cuda"), "Where backbones are trained.")
@output_option("runs/reproduce")
@collecting(where=ReproduceSetup)
def command(*, tables: tuple[str, ...], where: ReproduceSetup) -> None:
    """Train what a TABLE of a paper holds, and print it beside the published figures.

    Without a TABLE it lists them. The folder receives TABLE.json and TABLE.md, with settings, seeds, seconds and what
    differs from the paper, and every finished network's figures: the same command continues, also with more seeds.
    Without --reduced networks have the paper's size and iterations, which is for a GPU and takes days.
    """
    names = check_tables(tables)
    if not names:
        width = max(map(len, TABLES))
        click.echo("\n".join(f"{name:{width}}  {text}" for name, text in TABLES.items()))
        return
    check_outputs("reproduce", where.output)
    with importing("training", EXTRA):
        from cosim.papers.tables.run import make_table

    made = {name: make_table(name, where.size) for name in names}  # which says what is missing before any work
    take_folder("reproduce", where.output)
    for name in names:
        _run(made[name], where, where.command(name))


def _run(table: "PaperTable", where: ReproduceSetup, typed: str) -> None:
    """Train, and write the table anew behind each row."""
    import json

    from cosim.papers.tables.run import count_left, run_table, table_json, table_page, table_text

    count, kept = count_left(table, where.output, where.seeds)
    most = max(row.iterations for row in table.rows)
    if most:
        say(f"{table.name}: {count} trainings of up to {most} iterations, {kept} of them kept from before")
    rows = list["FinishedExperiment"]()
    json_file, page = (where.output / f"{table.name}.{suffix}" for suffix in ("json", "md"))
    with progress_bar(table.name) as progress:
        for row in run_table(table, where.output, where.seeds, progress):
            rows.append(row)
            write_atomically(json_file, f"{json.dumps(table_json(table, typed, rows), indent=2)}\n".encode())
            write_atomically(page, table_page(table, typed, rows).encode())
    click.echo("\n".join([table.title, "", *table_text(rows), "", f"table: {page}"]))
