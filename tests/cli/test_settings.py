"""run.toml: a run repeats from it to the byte, the command line wins, and what is wrong in it is named."""

import tomllib
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest

from cosim.base.settings import RunSettings, file_checksum, read_settings, write_settings
from cosim.base.version import __version__
from cosim.cli.settings import checksums_of

pytestmark = pytest.mark.usefixtures("unrendered_module")
SMALL = ("--cells", 3, "--layers", 1, "--iterations", 2, "--batch", 8, "--grid", 0, "--no-skip", "--epsilon", "anneal")


@pytest.fixture
def chips(tiny):
    return ["montecarlo", tiny / "net.npz", "--data", tiny / "data.npz", "--chips", 3, "--spec", "accuracy>=0.1"]


@pytest.fixture
def compiled(cosim_main, tiny, tmp_path):
    """A folder of cosim compile."""
    folder = tmp_path / "first"
    assert cosim_main("compile", tiny / "net.npz", "--i-unit", "2 nA", "-o", folder)[0] == 0
    return folder


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.ngspice
def test_a_comparison_repeats(cosim_main, tiny, tmp_path):
    typed = ["compare", tiny / "net.npz", "--data", tiny / "data.npz", "--samples", 1, "--temp", "35", "--seed", 4]
    assert cosim_main(*typed, "--jobs", 1, "-o", tmp_path / "first")[0] == 0
    code, _, err = cosim_main("compare", "--config", tmp_path / "first" / "run.toml", "-o", tmp_path / "again")
    assert code == 0 and "other settings" not in err and "is not the file" not in err
    assert files(tmp_path / "again") == files(tmp_path / "first")
    page = (tmp_path / "again" / "report.html").read_text()
    assert (
        "Repeat this run" in page
        and "--samples 1" in page
        and "celsius" not in read_settings(tmp_path / "first").options
    )


@pytest.mark.ngspice
@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("simulate", ("--samples", 1, "--waveforms", "--t-step", "8m")),
        ("power", ("--samples", 1, "--supply", "1.75")),
        ("trim", ("--chips", 3, "--bits", "2,3", "--spec", "accuracy>=0.1")),
        ("sweep", ("--over", "temp=20,40", "--samples", 2, "--behavioral")),
    ],
)
def test_other_verbs_repeat(cosim_main, tiny, tmp_path, verb, options):
    first, again = tmp_path / "first", tmp_path / "again"
    typed = [verb, *(["power"] if verb == "sweep" else []), tiny / "net.npz", "--data", tiny / "data.npz", *options]
    assert cosim_main(*typed, "--jobs", 1, "-o", first)[0] == 0
    code, _, err = cosim_main(verb, "--config", first / "run.toml", "-o", again)
    assert code == 0 and "other settings" not in err and "is not the file" not in err
    assert len(files(first)) > 3
    assert files(again) == files(first)
    assert str(tiny / "net.npz") in read_settings(first).inputs


@pytest.mark.ngspice
def test_a_cells_sweep_repeats(cosim_main, tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    assert cosim_main("characterize", "rectifier", "--temp", "40", "-o", first)[0] == 0
    code, _, err = cosim_main("characterize", "rectifier", "--config", first / "run.toml", "-o", again)
    assert code == 0 and "other settings" not in err
    assert len(files(first)) > 2 and files(again) == files(first)


def test_chips_repeat(cosim_main, chips, tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    assert cosim_main(*chips, "--variation", "all", "-o", first)[0] == 0
    assert cosim_main("montecarlo", "--config", first / "run.toml", "-j", 1, "-o", again)[0] == 0
    assert files(again) == files(first)
    before = files(first)
    assert cosim_main(*chips, "--variation", "all", "-o", first)[0] == 0
    assert files(first) == before
    code, _, err = cosim_main("montecarlo", "--config", first / "run.toml", "--chips", 4, "-o", first)
    assert code == 0 and f"{first}: other settings than before: chips 4, not 3\n" in err


def test_a_training_repeats(cosim_main, tmp_path):
    """A 0 that stands for None, and a word, come back as they were given."""
    pytest.importorskip("torch")
    first, again = tmp_path / "first", tmp_path / "again"
    for folder, typed in ((first, ("digits", *SMALL)), (again, ("--config", first / "net.run.toml"))):
        folder.mkdir()
        assert cosim_main("train", *typed, "-o", folder / "net.npz")[0] == 0
    assert files(again) == files(first)
    kept = read_settings(first / "net.npz")
    assert kept.arguments == {"task": "digits"}
    assert kept.options.items() >= {"grid": 0.0, "epsilon": "anneal", "skip": False, "ramp": True}.items()
    assert "--no-skip" in kept.command and "ramp" not in kept.command


def test_every_option_in_effect_is_there(compiled, tiny):
    """Defaults as well, but not where it is written."""
    content = tomllib.loads((compiled / "run.toml").read_text())
    net = str(tiny / "net.npz")
    assert content["verb"] == "compile" and content["version"] == __version__
    assert content["command"] == f"cosim compile {net} --i-unit 2e-09"
    assert content["arguments"] == {"network": net}
    assert content["options"] == {
        "cell": "auto", "comparator-devices": 1, "dialect": "ngspice", "headroom": 1, "i-unit": 2e-9,
        "models": "cards", "t-step": 0.01, "technology": "generic180", "to": "netlist",
    }  # fmt: skip
    assert list(content["inputs"]) == [net]


def test_the_command_line_wins(cosim_main, compiled, tmp_path):
    again = tmp_path / "again"
    code, _, _ = cosim_main("compile", "--i-unit", "1n", "--config", compiled / "run.toml", "--saturate", "-o", again)
    found, before = read_settings(again), read_settings(compiled)
    assert code == 0
    assert found.options == before.options | {"i-unit": 1e-9, "saturate": True}
    assert found.command == before.command.replace("--i-unit 2e-09", "--saturate")


def test_another_version_and_another_file_are_said(cosim_main, compiled, tiny, tmp_path):
    settings = read_settings(compiled)
    (name,) = settings.inputs
    write_settings(compiled, replace(settings, version="0.0.9", inputs={name: "0" * 16}))
    code, _, err = cosim_main("compile", "--config", compiled / "run.toml", "-o", tmp_path / "again")
    assert code == 0
    assert f"made by cosim 0.0.9; with {__version__} the same command may give other results" in err
    assert f"{name} is not the file that {compiled / 'run.toml'} is of: SHA-256 {settings.inputs[name]}, not 0" in err


def test_verify_says_the_version(cosim_main, chips, tmp_path):
    assert cosim_main(*chips, "-o", tmp_path)[0] == 0
    assert cosim_main("verify", tmp_path)[2] == ""
    write_settings(tmp_path, replace(read_settings(tmp_path), version="0.0.9"))
    code, _, err = cosim_main("verify", tmp_path)
    assert code == 0 and "made by cosim 0.0.9" in err
    (tmp_path / "run.toml").write_text("verb = 3\n")
    code, out, _ = cosim_main("verify", tmp_path)
    assert code == 1 and "verb must be text, not a whole number" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("verb = ", "must be a TOML file, but is cut off or something else"),
        ("version = '1'", "must have the field verb; correct it"),
        ("verb = 'power'", "verb must be 'compile', not 'power'; give cosim compile a file of its own"),
        ("verb = 'compile'\nnetwork = 3", "network is no field; known are arguments, command"),
        ("verb = 'compile'\n[options]\ni-uint = 1", "i-uint is no setting of cosim compile; did you mean i-unit"),
        ("verb = 'compile'\n[options]\noutput = 'a'", "options.output is no setting of cosim compile; correct it, or"),
        ("verb = 'compile'\n[options]\nheadroom = 'many'", "options.headroom must be a whole number, not 'many'"),
        ("verb = 'compile'\n[options]\nheadroom = 1.5", "options.headroom must be a whole number, not 1.5"),
        ("verb = 'compile'\n[options]\nheadroom = true", "options.headroom must be a whole number, not True"),
        ("verb = 'compile'\n[options]\nheadroom = -1", "options.headroom: must lie in 0 to 64, not -1; correct it"),
        ("verb = 'compile'\n[options]\nsaturate = 1", "options.saturate must be true or false, not 1"),
        ("verb = 'compile'\n[options]\ncorner = ['ff']", "options.corner must be one value, not ['ff']"),
        ("verb = 'compile'\n[options]\ni-unit = '1 V'", "options.i-unit: --i-unit must be a number in A such as"),
        ("verb = 'compile'\n[options]\ncell = 'tree'", "options.cell: 'tree' is not one of 'auto', 'schmitt'"),
        ("verb = 'compile'\n[options]\ncorner = 1979-05-27", "options.corner: must be text, a number, a list or"),
        ("verb = 'compile'\n[options.corner]\na = 1", "options.corner must be text, a number, true or false"),
        ("verb = 'compile'\n[arguments]\nnetwork = 3", "arguments.network must be text, not 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_is_named(cosim_main, tmp_path, text, words):
    path = tmp_path / "run.toml"
    path.write_text(text)
    code, out, err = cosim_main("compile", "--config", path, "-o", tmp_path / "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"cosim: {path}: ") and words in err
    assert not (tmp_path / "out").exists()


def test_a_missing_file(cosim_main, tmp_path):
    code, _, err = cosim_main("compile", "--config", tmp_path / "none.toml")
    assert code == 2 and "none.toml: must be a file, but is missing" in err


def test_a_hostile_name_survives(cosim_main, tiny, tmp_path):
    """Quotes, backslashes, a newline and what looks like TOML in the name of a file."""
    name = 'a"b\\c\'\n[options]\ni-unit = "9n" $(x).npz'
    (tmp_path / name).write_bytes((tiny / "net.npz").read_bytes())
    assert cosim_main("compile", tmp_path / name, "-o", tmp_path / "first")[0] == 0
    kept = read_settings(tmp_path / "first")
    assert kept.arguments == {"network": str(tmp_path / name)} and list(kept.inputs) == [str(tmp_path / name)]
    assert kept.options["i-unit"] == 1e-9
    assert cosim_main("compile", "--config", tmp_path / "first" / "run.toml", "-o", tmp_path / "again")[0] == 0
    assert files(tmp_path / "again") == files(tmp_path / "first")


def test_a_name_that_looks_like_an_option(cosim_main, tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-a.npz").write_bytes((tiny / "net.npz").read_bytes())
    assert cosim_main("compile", "-o", "first", "--saturate", "--", "-a.npz")[0] == 0
    assert read_settings(tmp_path / "first").command == "cosim compile --saturate -- -a.npz"


def test_several_values(cosim_main, chips, tmp_path):
    assert cosim_main(*chips, "--spec", "power<=1uW", "-o", tmp_path)[0] == 0
    kept = read_settings(tmp_path)
    assert kept.options["spec"] == ["accuracy>=0.1", "power<=1uW"]
    assert kept.command.endswith("--spec 'accuracy>=0.1' --spec 'power<=1uW'")


def test_any_text_is_read_back(tmp_path):
    rng = np.random.default_rng(0)
    odd = ['"', "'", "\\", "\n", "\r", "\t", " ", "a", "é", "\0", "\x7f", "\u2028", "😀", "=", "]", "#", "\U000e0001"]
    for length in [0, 1, 3, 80, 81, 899, 900, 901, 2500]:
        text = "".join(rng.choice(odd, length))
        wanted = RunSettings(text, text, text, {"a": text}, {"b": [text, 1, 1e-9, True], "c": []}, {text[:90]: "ab"})
        write_settings(tmp_path, wanted)
        assert read_settings(tmp_path) == wanted


def test_what_is_read_of_a_drawing_has_checksums(tmp_path):
    """A folder of `cosim layout`: its wires and places, not the rest; any other folder has none."""
    (tmp_path / "drawn").mkdir()
    for name in ("wires.csv", "positions.csv", "layout.gds"):
        (tmp_path / "drawn" / name).write_text(name)
    option = click.Option(["--extracted"], type=click.Path())
    drawn = str(tmp_path / "drawn")
    found = checksums_of([option], {"extracted": drawn})
    assert found == {name: file_checksum(Path(name)) for name in (f"{drawn}/wires.csv", f"{drawn}/positions.csv")}
    assert checksums_of([option], {"extracted": str(tmp_path)}) == {}
