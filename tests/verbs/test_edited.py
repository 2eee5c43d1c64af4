"""`--netlist`: verbs that take an edited netlist, and those that compile circuits of their own."""

import re

import pytest

from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.exchange.checkpoint import load_network
from cosim.verbs.compile.outputs import format_netlist

NETWORK = trained_network_path("digits_d4")


@pytest.fixture(scope="module")
def edited(tmp_path_factory, technology, calibration):
    """network.sp of a shipped network with a wider M2."""
    text = format_netlist(compile_network(load_network(NETWORK), technology, calibration))
    file = tmp_path_factory.mktemp("edited") / "own.sp"
    file.write_text(re.sub(r"(m2 v0 thresh .*) w=\S+", r"\1 w=6u", text))
    return file


def test_a_verb_lists_what_was_edited(edited, cosim_main, tmp_path):
    out = tmp_path / "out"
    code, text, said = cosim_main("compile", NETWORK, "--netlist", edited, "-o", out)
    change = "m2 of schmitt_clocked: size 1 x 5/5 um -> 1 x 6/5 um (line 67)"
    assert code == 0 and change in said and "What own.sp changes" in text
    assert change in (out / "design.json").read_text()
    assert "m2 v0 thresh 0 0 generic180_n w=6e-06" in (out / "network.sp").read_text()


def test_a_faulty_netlist_leaves_nothing(edited, cosim_main, tmp_path):
    (tmp_path / "own.sp").write_text(edited.read_text().replace("m2 v0 thresh", "m2 v0"))
    code, _, said = cosim_main("compile", NETWORK, "--netlist", tmp_path / "own.sp", "-o", tmp_path / "out")
    assert code == 2 and "own.sp: line 67: m2 must have 4 nets, not 3" in said
    assert not (tmp_path / "out").exists()


def test_chips_of_another_netlist_are_not_continued(edited, cosim_main, tmp_path):
    arguments = ("montecarlo", NETWORK, "--samples", 8, "-j", 1, "-o", tmp_path / "out")
    code, text, _ = cosim_main(*arguments, "--netlist", edited, "--chips", 2)
    assert code == 0 and "What helps" not in text
    code, _, said = cosim_main(*arguments, "--chips", 3)
    assert code == 2 and "netlist" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("layout",), "--netlist: a layout is of the compiled circuit"),
        (("sensitivity", "--suggest", "more.toml"), "--suggest writes overrides, and --netlist takes none"),
        (("harden", "--chips", "2"), "--netlist is none of cosim harden"),
        (("compile", "--overrides", "more.toml"), "--netlist and --overrides both change the circuit"),
    ],
)
def test_verbs_that_take_none_say_so(edited, cosim_main, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    if "--overrides" in words:
        (tmp_path / "more.toml").write_text('[[bias]]\npin = "bias_gain_0"\nfactor = 1.1\n')
    verb, *more = words
    code, _, said = cosim_main(verb, NETWORK, "--netlist", edited, *more)
    assert code == 2 and message in " ".join(said.split())
