"""Train what a table asks for, one network after the other; every finished one is kept, so the same call goes on."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.base.errors import InputError, TrainingError
from cosim.base.seal import read_sealed, seal_json
from cosim.base.text import json_object, shown_path, typed
from cosim.base.write import make_folder, write_atomically
from cosim.papers.tables import backbones, delays
from cosim.papers.tables.catalog import ONE_SIZE, TABLES, Experiment, Outcome, PaperFigure, PaperTable, Progress, Size
from cosim.training.loop import one_thread

_ROWS: dict[str, Callable[[Size], Iterator[Experiment]]] = {
    "copies": backbones.copies,
    "pixels": backbones.pixels,
    "parity": backbones.parity,
    "keywords": backbones.keywords,
    "flip-flop": delays.flip_flop,
    "lorenz": delays.lorenz,
    "footprint": delays.footprint,
    "delayed-product": delays.delayed_product,
}
_REPAIR = "delete it, and the same command trains that network again"
KEPT = "kept"  # the folder of finished networks


FinishedRow = tuple[Experiment, list[Outcome]]  # a row of a table, with the outcome of each of its seeds


@dataclass(frozen=True)
class _Kept:
    """The file of a finished network: of which row, and with which settings."""

    row: str
    settings: str
    iterations: int
    seed: int
    outcome: Outcome


def make_table(name: str, size: Size) -> PaperTable:
    """Return the table of one of TABLES; raises InputError where it needs a data set that is not there."""
    full_name = f"{name}-reduced" if size.reduced and name not in ONE_SIZE else name
    return PaperTable(full_name, TABLES[name], tuple(_ROWS[name](size)))


def seeds_of(row: Experiment, seeds: int) -> range:
    """Return the seeds with which a row of a table is trained; a single one if the seed changes nothing."""
    return range(seeds if row.seeded else 1)


def kept_path(folder: Path, table: PaperTable, row: Experiment, seed: int) -> Path:
    """Return the file of one finished network of a paper's table."""
    slug = re.sub(r"[^a-z0-9.]+", "-", row.name.lower().replace("epsilon -", "epsilon minus "))
    return folder / KEPT / table.name / f"{slug}.seed{seed}.json"


def count_left(table: PaperTable, folder: Path, seeds: int) -> tuple[int, int]:
    """Return how many networks a table needs, and how many of these are already trained and kept in `folder`."""
    paths = [kept_path(folder, table, row, seed) for row in table.rows for seed in seeds_of(row, seeds)]
    return len(paths), sum(path.is_file() for path in paths)


def run_table(table: PaperTable, folder: Path, seeds: int, progress: Progress) -> Iterator[FinishedRow]:
    """Yield each row of a paper's table when it is finished. `progress` hears of the iterations of all rows.

    Raises InputError for a kept file that is damaged or has other settings.
    """
    total = sum(row.iterations * len(seeds_of(row, seeds)) for row in table.rows)
    before = 0
    make_folder(folder / KEPT / table.name)
    for row in table.rows:
        outcomes = list[Outcome]()
        for seed in seeds_of(row, seeds):

            def tell(done: int, _total: int, values: dict[str, float], before: int = before) -> None:
                progress(before + done, total, values)

            outcomes.append(_outcome(row, seed, kept_path(folder, table, row, seed), tell))
            before += row.iterations
            if total:
                progress(before, total, {})
        yield row, outcomes


def _outcome(row: Experiment, seed: int, path: Path, progress: Progress) -> Outcome:
    if path.is_file():
        return _read(path, row, seed)
    with one_thread():
        try:
            outcome = row.train(seed, path.with_name(path.name.removesuffix(f".seed{seed}.json") + ".pt"), progress)
        except TrainingError as error:
            raise TrainingError(f"{row.name}: {error}") from None
    write_atomically(path, seal_json(_Kept(row.name, row.settings, row.iterations, seed, outcome)))
    return outcome


def _read(path: Path, row: Experiment, seed: int) -> Outcome:
    where = shown_path(path)
    kept = typed(read_sealed(path, _REPAIR), _Kept, where, _REPAIR)
    wanted = _Kept(row.name, row.settings, row.iterations, seed, kept.outcome)
    if kept != wanted or not {figure.key for figure in row.figures} <= kept.outcome.figures.keys():
        raise InputError(f"{where}: is of a network with other settings; {_REPAIR}, or choose another folder with -o")
    return kept.outcome


def format_figure(figure: PaperFigure, outcomes: Sequence[Outcome]) -> str:
    """Return a figure of a paper's table as text: mean, and smallest to largest where there are several seeds."""
    values, scale = [one.figures[figure.key] for one in outcomes], 100 if figure.percent else 1
    mean, low, high = (f"{scale * float(of(values)):.{figure.digits}f}" for of in (np.mean, min, max))
    return mean if len(values) == 1 else f"{mean} [{low}, {high}]"


def table_json(table: PaperTable, command: str, rows: list[FinishedRow]) -> dict[str, object]:
    """Return a paper's table, with the figures that its models reach here, as a JSON object."""
    return json_object(
        {"table": table.name, "title": table.title, "command": command, "rows": [_row_json(*row) for row in rows]}
    )


def _row_json(row: Experiment, outcomes: list[Outcome]) -> dict[str, object]:
    figures = [
        {"name": one.name, "published": one.published, "values": [outcome.figures[one.key] for outcome in outcomes]}
        | {"percent": one.percent, "digits": one.digits}
        for one in row.figures
    ]
    return {
        "name": row.name,
        "settings": row.settings,
        "differs": row.differs,
        "figures": figures,
        "seeds": list(range(len(outcomes))) if row.seeded else [],
        "parameters": outcomes[0].parameters,
        "iterations": [one.iterations for one in outcomes],
        "seconds": [one.seconds for one in outcomes],
    }


_HEADS = ("row", "figure", "published", "here", "seeds", "parameters", "iterations", "seconds")
_FACTS = ("settings", "what differs")


def table_text(rows: Sequence[FinishedRow]) -> list[str]:
    """Format a paper's published table, with what its models reach here, as columns; settings of the rows below."""
    cells = [_HEADS, *(line for row in rows for line in _lines(*row))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    shared: dict[tuple[str, str], list[str]] = {}
    for row, _ in rows:
        shared.setdefault((row.settings, row.differs), []).append(row.name)
    for (settings, differs), names in shared.items():
        whose = "all rows" if len(shared) == 1 else "; ".join(names)
        lines += ["", f"{whose}", f"  {settings}", f"  differs: {differs}"]
    return lines


def table_page(table: PaperTable, command: str, rows: Sequence[FinishedRow]) -> str:
    """Format a page in Markdown: the table's title, the command that makes it, every row."""
    heads = (*_HEADS, *_FACTS)
    body = [heads, tuple("---" for _ in heads)]
    for row, outcomes in rows:
        first, *others = _lines(row, outcomes)
        body += [(*first, row.settings, row.differs), *((*line, "", "") for line in others)]
    lines = [f"| {' | '.join(line)} |" for line in body]
    return "\n".join([f"# {table.name}", "", table.title, "", f"    {command}", "", *lines, ""])


def _lines(row: Experiment, outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Return a row of a paper's table as cells of text: each published figure, and what the model reaches here."""
    seeds, iterations = str(len(outcomes)) if row.seeded else "-", [one.iterations for one in outcomes]
    seconds = _range([round(one.seconds) for one in outcomes])
    facts = (seeds, f"{outcomes[0].parameters}", _range(iterations), seconds)
    if not any(iterations):
        facts = (seeds, "", "", "")
    return [
        (
            row.name if not place else "",
            one.name,
            one.published or "-",
            format_figure(one, outcomes),
            *(facts if not place else ("",) * 4),
        )
        for place, one in enumerate(row.figures)
    ]


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
