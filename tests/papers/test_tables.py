"""Tables of the papers: rows are trained once, kept, gone on with, and shown with what they are beside."""

import json
import os
import re
import signal
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import InputError  # noqa: E402
from cosim.papers.shape import BackboneShape, Training  # noqa: E402
from cosim.papers.sources import load_source  # noqa: E402
from cosim.papers.tables.backbones import BackbonePlan  # noqa: E402
from cosim.papers.tables.catalog import (  # noqa: E402
    ONE_SIZE,
    TABLES,
    Experiment,
    Outcome,
    PaperFigure,
    PaperTable,
    Size,
    check_tables,
)
from cosim.papers.tables.run import (  # noqa: E402
    count_left,
    format_figure,
    kept_path,
    make_table,
    run_table,
    table_json,
    table_page,
    table_text,
)

REDUCED = Size(reduced=True)


def quiet(done, total, values):
    pass


def small_plan(iterations=20):
    shape = BackboneShape(1, 1, cell="cmru", width=8, state=2)
    return BackbonePlan("copy-item-5", lambda: load_source("copy-item-5"), shape, Training(iterations, 8, epsilon=1.0))


SMALL = PaperTable("small", "Small.", (small_plan().row("97 [95, 98]", "its size"),))


def figures_of(found):
    return [[values_of(figure, outcomes) for figure in row.figures] for row, outcomes in found]


def values_of(figure, outcomes):
    return [one.figures[figure.key] for one in outcomes]


def counting(calls, value=0.5):
    def train(seed, path, progress):
        calls.append(seed)
        return Outcome({"accuracy": value + seed / 10}, 7, 3, 1.4)

    return train


def counted(calls, **changed):
    row = Experiment(
        "A row, epsilon -1", "H 1", "all of it", (PaperFigure("accuracy", "accuracy, %", "60"),), 3, counting(calls)
    )
    return PaperTable("counted", "Counted.", (replace(row, **changed),))


@pytest.fixture
def data(tmp_path):
    for folder in ("mnist", "speech_commands", "fsdd/recordings"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    return tmp_path / "data"


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_rows_have_names_of_their_own_and_say_what_they_are(name, reduced, data, tmp_path):
    table = make_table(name, Size(reduced, data))
    assert table.name == name + "-reduced" * (reduced and name not in ONE_SIZE) and table.rows
    paths = {kept_path(tmp_path, table, row, 0).name for row in table.rows}
    assert len(paths) == len(table.rows) and all(re.fullmatch(r"[a-z0-9.-]+", path) for path in paths)
    for row in table.rows:
        assert row.settings and row.differs and row.figures
        for figure in row.figures:
            mean, *bounds = re.findall(r"[\d.]+", figure.published)[:3] if "[" in figure.published else ["0"]
            assert not bounds or float(bounds[0]) <= float(mean) <= float(bounds[1]), (row.name, figure.published)


def test_full_rows_are_the_papers_and_reduced_ones_the_notes(data):
    full = {row.name: row for row in make_table("pixels", Size(data=data)).rows}
    row = full["mnist-pixels, cmru, epsilon 1, d 32"]
    assert row.settings == "m 256, r 1, last pooling, batch 64, rate 0.001" and row.iterations == 30_000
    assert row.figures[0].published == "95.92 [95.41, 96.19]"
    assert full["mnist-pixels, cmru, annealed, d 8"].figures[0].published.startswith("51.68")
    assert "mnist-pixels, bmru, d 32" in full and full["mnist-permuted-42, lru, d 32"]
    words = {row.name: row for row in make_table("keywords", Size(data=data)).rows}["kws-all, lru, d 16"]
    assert (words.iterations, words.settings.split(", ")[2]) == (35_000, "mean pooling")
    small = {row.name: row for row in make_table("copies", REDUCED).rows}
    row = small["copy-item-60-published, cmru, epsilon 1, d 4"]
    assert (row.settings, row.iterations) == ("m 32, r 1, last pooling, batch 32, rate 0.001", 1500)
    assert small["copy-value-60-published, lru, d 4"].iterations == 2000 and len(small) == 15


def test_a_data_set_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="table pixels needs the data set mnist; give with --data the folder that"):
        make_table("pixels", Size())
    with pytest.raises(InputError, match="holds no folder fsdd/recordings, which table keywords needs; unpack it"):
        make_table("keywords", Size(reduced=True, data=tmp_path))
    with pytest.raises(InputError, match="TABLE must be one of copies, .*, delayed-product, not 'figures'"):
        check_tables(["copies", "figures"])


def test_footprints_are_the_papers(tmp_path):
    """In thousands, as in tests/papers/test_mgrade.py: at most one less than the paper's, which rounds up."""
    found = list(run_table(make_table("footprint", REDUCED), tmp_path, 3, quiet))
    assert len(found) == 7 and not any(row.seeded for row, _ in found)
    for row, outcomes in found:
        for one in row.figures:
            (value,), thousands = values_of(one, outcomes), int(one.published.removesuffix("k"))
            assert -1 < value / 1000 - thousands < 0.5


def test_what_is_kept_is_not_trained_again(tmp_path):
    calls, heard = [], []
    table = counted(calls)
    ((_, two),) = run_table(table, tmp_path, 2, lambda done, total, values: heard.append((done, total)))
    assert calls == [0, 1] and heard[-1] == (6, 6) and count_left(table, tmp_path, 3) == (3, 2)
    ((row, three),) = run_table(table, tmp_path, 3, quiet)
    (figure,) = row.figures
    assert calls == [0, 1, 2] and values_of(figure, three) == [0.5, 0.6, 0.7] and three[:2] == two
    assert [(one.iterations, one.seconds, one.parameters) for one in three] == [(3, 1.4, 7)] * 3
    assert format_figure(figure, three) == "60.0 [50.0, 70.0]"
    ((_, unseeded),) = run_table(counted(calls, seeded=False), tmp_path / "other", 3, quiet)
    assert calls == [0, 1, 2, 0] and format_figure(figure, unseeded) == "50.0"


def test_other_settings_and_damage_are_refused(tmp_path):
    list(run_table(counted([]), tmp_path, 1, quiet))
    for changed in ({"settings": "H 2"}, {"iterations": 4}, {"figures": (PaperFigure("other", "other"),)}):
        with pytest.raises(InputError, match=r"seed0\.json: is of a network with other settings; delete it, and"):
            list(run_table(counted([], **changed), tmp_path, 1, quiet))
    path = kept_path(tmp_path, counted([]), counted([]).rows[0], 0)
    path.write_text(path.read_text().replace("0.5", "0.9"))
    with pytest.raises(InputError, match=r"seed0\.json: damaged, or of .*: its checksum does not fit; delete it"):
        list(run_table(counted([]), tmp_path, 1, quiet))


def test_an_interrupted_training_goes_on_to_the_same_figures(tmp_path):
    (whole,) = run_table(SMALL, tmp_path / "whole", 2, quiet)

    def stop(done, total, values):
        if done == 30:  # within the second seed
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        list(run_table(SMALL, tmp_path / "broken", 2, stop))
    kept = tmp_path / "broken" / "kept" / "small"
    left = sorted(path.relative_to(kept).as_posix() for path in kept.rglob("*.[jp]*"))
    name = "copy-item-5-cmru-epsilon-1-d-2"
    assert left == [f".{name}.cosim/seed1.state.pt", f"{name}.seed0.json"]
    heard = []
    (found,) = run_table(SMALL, tmp_path / "broken", 2, lambda done, total, values: heard.append(done))
    assert heard[:2] == [20, 31]  # the first is kept, the second goes on
    assert figures_of([found]) == figures_of([whole])
    assert [one.parameters for one in found[1]] == [one.parameters for one in whole[1]]
    assert found[1][1].seconds > 0 and all(path.suffix == ".json" for path in kept.iterdir())


def test_a_flip_flop_row_is_the_same_for_the_same_seed(tmp_path):
    """Two iterations of the row whose weights lie on a grid; its figures are shares of the reads of four sets."""
    table = make_table("flip-flop", REDUCED)
    (row,) = (row for row in table.rows if row.name.endswith("1/8"))
    plan = row.train.__self__
    short = replace(plan, fit=replace(plan.fit, iterations=2)).train
    one, same, other = (short(seed, tmp_path / "row.pt", quiet) for seed in (0, 0, 1))
    assert one.figures == same.figures != other.figures and one.parameters == 738
    assert {figure.key for figure in row.figures} == one.figures.keys() and len(one.figures) == 4
    assert [figure.name for figure in row.figures][-1] == "98% ignored, 512 tokens, %"


@pytest.mark.parametrize(("table", "name"), [("flip-flop", "taps + BMRU"), ("delayed-product", "GRU, line of 20")])
def test_an_interrupted_row_goes_on_to_the_same_figures(table, name, tmp_path, monkeypatch):
    """Networks of delays keep their state on the way, as backbones do."""
    monkeypatch.setattr("cosim.papers.tables.delays.PRODUCT_ITERATIONS", 6)
    row = next(row for row in make_table(table, REDUCED).rows if row.name == name)
    train, path = row.train, tmp_path / "row.pt"
    if table == "flip-flop":
        train = replace(train.__self__, fit=replace(train.__self__.fit, iterations=6)).train

    def stop(done, total, values):
        if done == 4:
            os.kill(os.getpid(), signal.SIGINT)

    whole, heard = train(1, tmp_path / "whole.pt", quiet), []
    with pytest.raises(KeyboardInterrupt):
        train(1, path, stop)
    assert (tmp_path / ".row.cosim" / "state.pt").is_file()
    found = train(1, path, lambda done, total, values: heard.append((done, total)))
    assert heard == [(5, 6), (6, 6)] and found.figures == whole.figures and not list(tmp_path.iterdir())


def test_tables_are_shown_with_all_that_was_asked(tmp_path):
    table = PaperTable("two", "Two.", (*counted([]).rows, *SMALL.rows))
    found = list(run_table(table, tmp_path, 2, quiet))
    lines = table_text(found)
    assert lines[0].split() == [
        *("row", "figure", "published", "here", "seeds", "parameters", "iterations", "seconds"),
    ]
    assert "A row, epsilon -1" in lines[1] and "55.0 [50.0, 60.0]" in lines[1] and "97 [95, 98]" in lines[2]
    assert "  differs: all of it" in lines and lines.index("  differs: its size") > lines.index("  differs: all of it")
    page = table_page(table, "cosim reproduce two", found).splitlines()
    assert page[0] == "# two" and "    cosim reproduce two" in page
    rows = [line.split(" | ") for line in page if line.startswith("| ")]
    assert len({len(row) for row in rows}) == 1 and len(rows) == 4
    assert rows[2][:4] == ["| A row, epsilon -1", "accuracy, %", "60", "55.0 [50.0, 60.0]"]
    assert rows[2][-2:] == ["H 1", "all of it |"]
    (first, _) = table_json(table, "cosim reproduce two", found)["rows"]
    assert list(first) == ["name", "settings", "differs", "figures", "seeds", "parameters", "iterations", "seconds"]
    assert first["seeds"] == [0, 1] and first["seconds"] == [1.4, 1.4] and json.dumps(first)
    assert first["figures"] == [
        {"name": "accuracy, %", "published": "60", "values": [0.5, 0.6], "percent": True, "digits": 1}
    ]
