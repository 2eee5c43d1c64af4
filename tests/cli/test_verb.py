"""A verb from outside: a folder with its options, each declared once, is all that the command line and Python need."""

import json
import re
import sys
from dataclasses import fields
from pathlib import Path

import click
import pytest

import cosim
import cosim.verbs
from cosim.base.errors import InputError
from cosim.base.settings import read_settings
from cosim.cli import GROUPS, VERBS, load_verb
from cosim.cli.types import EPSILON_TYPE, Text, read_share
from cosim.cli.verb import call, options_named, parse, values_of, with_values
from cosim.verbs.automaton.command import _read_blocks
from cosim.verbs.inner import read_inner

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def count(tmp_path, monkeypatch):
    """The verb of the manual, in a folder outside of the package."""
    (text,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "develop" / "add-a-verb.md").read_text(), re.DOTALL)
    folder = tmp_path / "verbs" / "count"
    folder.mkdir(parents=True)
    (folder / "command.py").write_text(text)
    (folder / "__init__.py").write_text('"""cosim count."""\n')
    monkeypatch.setattr(cosim.verbs, "__path__", [*cosim.verbs.__path__, str(folder.parent)])
    monkeypatch.setitem(VERBS, "count", "Count large weights.")
    monkeypatch.setitem(GROUPS["Make it better"], "count", "Count large weights.")
    yield load_verb("count")
    for name in ("cosim.verbs.count.command", "cosim.verbs.count"):
        sys.modules.pop(name, None)


@pytest.fixture
def net(tiny):
    return tiny / "net.npz"


def test_help(cosim_main):
    code, text, _ = cosim_main("count", "--help")
    assert code == 0 and "Usage: cosim count [OPTIONS] NETWORK" in text
    assert "Count the large readout weights of NETWORK." in text
    assert re.search(
        r"What counts:\n +--least FLOAT +Smallest weight that counts\. +\[default: 0\.5; *0<=x<=100\]", text
    )
    assert "--config" in text and "--fresh" not in text
    assert "count " in cosim_main("--help")[1]


def test_command_line(cosim_main, net, tmp_path):
    """Lines, JSON, folder, run.toml and the run that it gives again; a complaint is exit status 1."""
    typed = ["count", net, "--least", "0.1", "--negative"]
    code, out, err = cosim_main(*typed, "--json", tmp_path / "count.json", "-o", tmp_path / "first")
    figures = json.loads((tmp_path / "count.json").read_text())
    assert (code, out, err) == (0, f"{figures['large']} of {figures['weights']} weights\n", "")
    kept = read_settings(tmp_path / "first")
    assert kept.options == {"least": 0.1, "negative": True} and kept.arguments == {"network": str(net)}
    assert kept.command == f"cosim count {net} --least 0.1 --negative"
    assert cosim_main("count", "--config", tmp_path / "first" / "run.toml", "-o", tmp_path / "again")[0] == 0
    for name in ("run.toml", "count.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    code, out, err = cosim_main("count", net, "--least", "100", "-o", tmp_path / "none")
    assert (code, err) == (1, "none is large\n") and (tmp_path / "none" / "count.json").is_file()
    code, _, err = cosim_main("count", net, "--least", "101", "-o", tmp_path / "out")
    assert code == 2 and "'--least': must lie in 0 to 100, not 101" in err and not (tmp_path / "out").exists()


def test_from_python(cosim_main, net, tmp_path, capfd):
    """One function: the folder has the same bytes, and nothing is printed."""
    assert cosim_main("count", net, "--least", "0.1", "-o", tmp_path / "typed")[0] == 0
    result = cosim.run("count", network_file=net, least="0.1", output=tmp_path / "called", json_file=tmp_path / "j")
    assert capfd.readouterr() == ("", "")
    assert result.fault is None
    assert result.lines == [f"{result.figures['large']} of {result.figures['weights']} weights"]
    assert json.loads((tmp_path / "j").read_text()) == result.figures
    for name in ("run.toml", "count.json"):
        assert (tmp_path / "called" / name).read_bytes() == (tmp_path / "typed" / name).read_bytes()
    assert cosim.run("count", network_file=net, least=100, output=tmp_path / "none").fault == "none is large"


@pytest.mark.parametrize(
    ("verb", "options", "message"),
    [
        ("cont", {}, r"verb must be one of .*, count, not 'cont'; choose one"),
        ("count", {}, r"cosim count needs a value for network; give network=\.\.\."),
        ("count", {"network_file": "n", "lest": 1}, r"cosim count has no option 'lest'; did you mean least\?"),
        ("count", {"network_file": "n", "least": 101}, r"'--least': must lie in 0 to 100, not 101"),
    ],
)
def test_refusals_from_python(verb, options, message):
    with pytest.raises(InputError, match=message):
        cosim.run(verb, **options)


def test_points_of_a_sweep(count, net, tmp_path):
    """Each is a call with other values, in a folder of its own."""
    inner = read_inner("count", [str(net), "--negative"], jobs=1, fresh=False)
    assert inner.given == {"negative": True} and inner.network == net
    found = {least: inner.run(tmp_path / least, {"least": least}) for least in ("0", "100")}
    assert found["0"][0] == "" and found["0"][1]["large"] == found["0"][1]["weights"]
    assert found["100"][0].startswith("some of its runs failed") and found["100"][1]["large"] == 0
    assert read_settings(tmp_path / "100").options == {"least": 100.0, "negative": True}
    assert "must lie in" in inner.run(tmp_path / "out", {"least": "101"})[0]


def test_options_are_values(count, net, tmp_path):
    options, given = parse(count, [str(net), "--least", "0.25"])
    assert options == options_named(count, {"network_file": str(net), "least": 0.25}) and given == {"least": 0.25}
    assert list(values_of(options)) == [one.name for one in fields(options)]
    other = with_values(count, options, {"least": "0.75", "nothing of it": 1})
    assert (other.least, other.network_file, options.least) == (0.75, net, 0.25)
    said = []
    assert call(count, with_values(count, other, {"output": tmp_path / "o"}), echo=said.append).figures and not said


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (EPSILON_TYPE, (1, 2), "must be 'anneal' or a number in"),
        (Text("HxB", _read_blocks), (40, 1), "must be 1 to 16 blocks of 2 to 64 states each"),
    ],
)
def test_a_value_from_python_is_read_as_text_is(kind, value, words):
    with pytest.raises(click.BadParameter, match=words):
        kind.convert(value, None, None)


def test_a_share_that_is_a_pair_already_is_kept():
    assert Text("i/n", read_share, tuple).convert((3, 8), None, None) == (3, 8)
