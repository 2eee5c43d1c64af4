"""What docs/papers/tables.md says that papers published is what the package's tables hold, row by row."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from cosim.papers.tables.catalog import ONE_SIZE, TABLES, Size
from cosim.papers.tables.run import make_table

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "papers" / "tables.md").read_text()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in ("mnist", "speech_commands", "fsdd/recordings"):
        (folder / name).mkdir(parents=True)
    return folder


def cells_of(text):
    """The rows of the tables in a text, without heads."""
    rows = [re.split(r" *\| *", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0] not in ("row", "---")]


def section(heading):
    """The text below a heading, up to the next heading."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_page_has_the_published_figures(name, data):
    reduced = name not in ONE_SIZE
    table = make_table(name, Size(reduced, data))
    wanted = [
        (row.name * (k == 0), one.name, one.published or "-") for row in table.rows for k, one in enumerate(row.figures)
    ]
    shown = [tuple(row[:3]) for row in cells_of(section(table.name))]
    assert shown == wanted


def row_name(arguments):
    """The name of the table's row that trains what these arguments of `cosim backbone` do."""
    task, cell, state = (
        re.search(pattern, arguments)[1] for pattern in (r"^`([\w-]+)", r"--cell (\w+)", r"--state (\d+)")
    )
    epsilon = re.search(r"--epsilon[= ]([-\d]+)", arguments)
    how = [] if cell == "bmru" else [f"epsilon {epsilon[1]}" if epsilon else "annealed"]
    return ", ".join([task, cell, *how, f"d {state}"])


def test_single_trainings_stand_beside_their_own_row(data):
    tables = (make_table(name, Size(data=data)) for name in ("copies", "pixels", "parity"))
    published = {row.name: row.figures[0] for table in tables for row in table.rows}
    rows = cells_of(section("At the papers' size"))
    assert len(rows) == 9
    for name, shown, *_, arguments in rows:
        figure = published[row_name(arguments)]
        if "--no-positions" in arguments:  # of no paper
            assert shown == "-"
        else:
            assert shown == f"{figure.published}{' %' * figure.percent}", name


def test_a_row_of_another_length_would_be_seen(data):
    """The mistake that was there: 300 steps in place of 1,000."""
    copies = {row.name: row.figures[0].published for row in make_table("copies", Size(data=data)).rows}
    name = row_name("`copy-value-1000-published --cell cmru --state 4 --epsilon 1 --width 32`")
    assert copies[name] == "0.0402 [0.0362, 0.0432]" != copies[name.replace("1000", "300")]
