"""Every verb from another folder than the network's: output where it is by default, and where relative and absolute
names say, with spaces, quotes and letters beyond ASCII in every path."""

import shutil
from pathlib import Path

import pytest

from cosim.base.errors import MappingError, MissingToolError
from cosim.cli import VERBS, load_verb
from cosim.mask.checks import find_checker
from cosim.mask.chip import drawing_of
from cosim.technology.catalog import load_technology
from cosim.verbs.demo import command as demo

pytestmark = pytest.mark.usefixtures("unrendered_module")
ODD = 'it\'s "odd", ünï 漢 & $(1)'
NET, DATA, RUN = "../net.npz", "../data.npz", "../run"
CHIPS = ("--data", DATA, "--spec", "accuracy>=0.1", "-j", "1")
SMALL = ("--cells", "2", "--layers", "1", "--iterations", "2", "--batch", "8")
FOLDERS = {  # verb -> arguments, and a file that is in its folder afterwards
    "compile": ((NET,), "network.sp"),
    "montecarlo": ((NET, *CHIPS, "--chips", "2"), "summary.json"),
    "merge": (("../part 1", "../part 2"), "summary.json"),
    "sweep": (("compile", NET, "--over", "i-unit=1n,2n"), "sweep.json"),
    "trim": ((NET, *CHIPS, "--chips", "2", "--bits", "2"), "trim.json"),
    "power": ((NET, "--data", DATA, "--behavioral"), "power.json"),
    "reproduce": (("footprint",), "footprint.json"),
    "simulate": ((NET, "--data", DATA, "--samples", "1", "-j", "1"), "simulation.npz"),
    "compare": ((NET, "--data", DATA, "--samples", "1", "-j", "1"), "comparison.json"),
    "characterize": (("dpi",), "report.html"),
    "datasheet": (("../mirror.toml", "--engine", "ngspice", "--chips", "2", "-j", "1"), "chips.jsonl"),
    "diff": ((RUN, RUN), "diff.html"),
    "explore": (
        (NET, *CHIPS, "--chips", "2", "--vary", "i-unit=1n,2n", "--trials", "2", "--behavioral"),
        "explore.json",
    ),
    "harden": (
        (NET, *CHIPS, "--chips", "2", "--iterations", "0", "--behavioral"),
        "harden.json",
    ),
    "demo": (("--samples", "1", "-j", "1"), "comparison.json"),
    "signoff": ((NET, "--data", DATA, "--plan", "../plan.toml", "--samples", "1", "-j", "1"), "signoff.json"),
    "layout": ((NET, "--technology", "gf180mcu"), "layout.gds"),
}
FILES = {  # verb -> arguments, and how the name of its file ends
    "train": (("parity", *SMALL), ".npz"),
    "backbone": (("copy-item-6", "--width", "4", "--iterations", "1", "--batch", "2", "--epsilon", "1"), ".pt"),
    "automaton": (("--modulo", "2", "--strings", "2"), ".npz"),
    "report": ((RUN, "--no-waveforms"), ".html"),
    "calibrate": ((), ".json"),
}
PRINTED = {  # verb -> arguments
    "inspect": (NET,),
    "verify": (RUN,),
    "doctor": (),
    "sensitivity": (NET, "--data", DATA),
}
NEEDS = {"train": "torch", "backbone": "torch", "reproduce": "torch", "demo": "torch", "explore": "optuna",
         "harden": "torch", "sensitivity": "numba", "signoff": "numba"}  # fmt: skip
NGSPICE = ("simulate", "compare", "characterize", "datasheet", "demo", "signoff", "sensitivity", "calibrate")
SLOW = ("calibrate", "sensitivity", "signoff")  # a minute and more where no device table is kept
QUICK = ("compile", "reproduce", "diff")  # the others: one place by default
PLACES = ("relative", "default", "absolute")
PLAN = """
[nominal]
audit = 1
[mismatch]
chips = 2
yield = ">= 0 %"
accuracy = ">= 0 %"
"""
MIRROR = """* mirror
ib 0 in 1n
m1 in in 0 0 generic180_n w=5u l=5u
m2 out in 0 0 generic180_n w=5u l=5u
vo out 0 1
.tran 1u 2u
.meas tran copied find i(vo) at=2u
"""


def marked(verb):
    marks = [pytest.mark.ngspice] * (verb in NGSPICE) + [pytest.mark.slow] * (verb in SLOW)
    return pytest.param(verb, marks=marks)


def placed(verbs):
    """Each verb in each place; those that take seconds are slow in all but the first."""
    found = []
    for verb in verbs:
        for place in PLACES:
            later = [pytest.mark.slow] * (verb not in QUICK and place != PLACES[0])
            found.append(pytest.param(verb, place, marks=[*marked(verb).marks, *later]))
    return found


def test_no_verb_is_forgotten():
    assert set(VERBS) == {*FOLDERS, *FILES, *PRINTED}


@pytest.fixture(scope="module")
def inputs(tiny, cosim_in, tmp_path_factory):
    """A folder of that name with a network, its data, a plan, a run of two chips, and the same run in two parts."""
    folder = tmp_path_factory.mktemp("places") / ODD
    folder.mkdir()
    for name in ("net.npz", "data.npz"):
        shutil.copy(tiny / name, folder / name)
    (folder / "plan.toml").write_text(PLAN)
    (folder / "mirror.sp").write_text(MIRROR)
    (folder / "mirror.toml").write_text('netlist = "mirror.sp"\nmeasures = [{name = "copied"}]\n')
    (folder / "elsewhere").mkdir()
    whole = ["montecarlo", NET, *CHIPS, "--chips", "2"]
    for rest in (("-o", RUN), ("--shard", "1/2", "-o", "../part 1"), ("--shard", "2/2", "-o", "../part 2")):
        assert cosim_in(folder / "elsewhere", *whole, *rest).returncode == 0
    return folder


@pytest.fixture
def elsewhere(inputs, tmp_path, monkeypatch):
    """The folder that verbs run in: beside the inputs, and empty."""
    folder = tmp_path / ODD / "here"
    folder.mkdir(parents=True)
    for path in inputs.iterdir():
        if path.name != "elsewhere":
            (folder.parent / path.name).symlink_to(path)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def prepared(request, monkeypatch):
    """What a verb needs that is not a file: packages, a kit; a demo trains nothing here."""
    verb = request.getfixturevalue("verb")
    pytest.importorskip(NEEDS.get(verb, "numpy"))
    if verb == "demo":
        from cosim.base.resources import trained_network_path
        from cosim.exchange.checkpoint import load_network

        monkeypatch.setattr(demo, "_train", lambda path, seed: load_network(trained_network_path("digits_d4")))
    if verb == "layout":
        pytest.importorskip("klayout.db")
        try:
            load_technology("gf180mcu")
        except MissingToolError as error:
            pytest.skip(str(error))


def default_of(verb, arguments):
    """The folder or file that a verb writes without -o."""

    command = load_verb(verb)
    command = command.commands[arguments[0]] if verb == "characterize" else command
    return next(option.default for option in command.params if option.name == "output")


@pytest.mark.parametrize(("verb", "place"), placed(FOLDERS))
@pytest.mark.usefixtures("prepared")
def test_a_folder_is_written_where_it_should_be(cosim_main, elsewhere, tmp_path, verb, place):
    arguments, result = FOLDERS[verb]
    if verb == "diff" and place == "default":
        pytest.skip("prints alone without -o")
    folder = {"default": default_of(verb, arguments), "relative": Path("a b") / ODD, "absolute": tmp_path / "x" / ODD}
    words = [] if place == "default" else ["-o", folder[place]]
    code, _, err = cosim_main(verb, *arguments, *words)
    assert code == 0 or (verb == "signoff" and code == 1), err
    assert (elsewhere / folder[place] / result).stat().st_size > 0
    assert [path.name for path in elsewhere.iterdir()] == ([] if place == "absolute" else [folder[place].parts[0]])


@pytest.mark.parametrize(("verb", "place"), placed(FILES))
@pytest.mark.usefixtures("prepared")
def test_a_file_is_written_where_it_should_be(cosim_main, elsewhere, tmp_path, verb, place, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    arguments, suffix = FILES[verb]
    (elsewhere / "a b").mkdir()
    (tmp_path / "x").mkdir()
    found = {"relative": Path("a b", ODD + suffix), "absolute": tmp_path / "x" / (ODD + suffix)}
    if place == "default":
        cached = tmp_path / "cache" / "cosim" / "generic180.u8.calibration.json"
        given = default_of(verb, arguments)
        found["default"] = given or (cached if verb == "calibrate" else elsewhere / RUN / "report.html")
    code, _, err = cosim_main(verb, *arguments, *([] if place == "default" else ["-o", found[place]]))
    assert code == 0, err
    assert (elsewhere / found[place]).stat().st_size > 0


@pytest.mark.parametrize("verb", [marked(verb) for verb in PRINTED])
@pytest.mark.usefixtures("prepared")
def test_a_verb_that_prints_writes_nothing(cosim_main, elsewhere, verb):
    code, out, err = cosim_main(verb, *PRINTED[verb])
    assert code == 0 and out, err
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("verb", ["layout"])
@pytest.mark.usefixtures("prepared")
def test_of_a_drawing_that_fails_nothing_stays(cosim_main, elsewhere, verb, monkeypatch):
    def fail(*_, **__):
        raise MappingError("net a: there is no room for its wire")

    monkeypatch.setattr("cosim.mask.produce.draw_chip", fail)
    code, out, err = cosim_main(verb, *FOLDERS[verb][0], "-o", Path("a b", "drawn"))
    assert (code, out, err) == (2, "", "cosim: net a: there is no room for its wire\n")
    assert not list(elsewhere.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["layout"])
@pytest.mark.parametrize("place", ["layout", "a b"])
@pytest.mark.usefixtures("prepared")
def test_the_decks_of_a_kit_run_on_a_relative_folder(cosim_main, elsewhere, verb, place):
    """The default of the manual's first command, and a name with a space, within one that has quotes and more."""
    technology = load_technology("gf180mcu")
    try:
        find_checker(technology, drawing_of(technology))
    except MissingToolError as error:
        pytest.skip(str(error))
    code, out, err = cosim_main(verb, *FOLDERS[verb][0], "--check", *([] if place == "layout" else ["-o", place]))
    assert code == 0, err
    assert "netlists match" in out and (elsewhere / place / "checks.json").exists()
