"""`cosim reproduce`: lists the tables, writes them, and refuses what cannot be in one line."""

import json
import sys

import pytest

from cosim.papers.tables.catalog import TABLES


def test_without_a_table_it_lists_them(cosim_main, monkeypatch):
    """Which needs no torch."""
    monkeypatch.setitem(sys.modules, "torch", None)
    code, out, _ = cosim_main("reproduce")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == list(TABLES)
    assert all("(" in line for line in out.splitlines())


def test_a_table_needs_torch(cosim_main, monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.startswith("cosim.papers.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    code, out, err = cosim_main("reproduce", "footprint", "-o", str(tmp_path / "out"))
    assert (code, out) == (1, "") and "training needs torch; python -m pip install" in err and "[train]'" in err
    assert not (tmp_path / "out").exists()


def test_footprints(cosim_main, tmp_path):
    pytest.importorskip("torch")
    code, out, err = cosim_main("reproduce", "footprint", "-o", str(tmp_path))
    assert (code, err) == (0, "")
    (line,) = (line for line in out.splitlines() if line.startswith("minGRU"))
    assert line.split()[1:] == ["parameters", "39k", "38602", "-"]
    written = json.loads((tmp_path / "footprint.json").read_text())
    assert written["rows"][0]["figures"][0]["values"] == [38602] and len(written["rows"]) == 7
    assert written["command"] == "cosim reproduce footprint --seeds 3"
    page = (tmp_path / "footprint.md").read_text()
    assert "    cosim reproduce footprint --seeds 3\n" in page and "| minGRU | parameters | 39k | 38602 |" in page
    assert cosim_main("reproduce", "footprint", "--reduced", "-o", str(tmp_path))[1] == out  # it has one size
    assert (tmp_path / "footprint.md").read_text() == page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("figures",), "TABLE must be one of copies, pixels"),
        (("pixels",), "table pixels needs the data set mnist; give with --data the folder that holds mnist"),
        (("footprint", "keywords", "--reduced"), "table keywords needs the data set fsdd"),
        (("keywords", "--data", "."), "holds no folder speech_commands, which table keywords needs; unpack it"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(cosim_main, tmp_path, monkeypatch, arguments, words):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    code, out, err = cosim_main("reproduce", *arguments)
    assert (code, out) == (2, "") and words in err and len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())
