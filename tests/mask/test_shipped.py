"""Every network that comes with cosim, and automata, as `cosim layout` draws them: each unit is that of the netlist.

Needs klayout and the kit of gf180mcu.
"""

import json
from pathlib import Path

import pytest

from cosim.base.errors import MissingToolError
from cosim.base.resources import models_path
from cosim.network.software_only import stays_software
from cosim.technology.catalog import load_technology

pytest.importorskip("klayout.db")

NETWORKS = [path for path in sorted((models_path() / "trained").glob("*.pt")) if not stays_software(path)]
LARGE = ("digits_d32", "digits_native_2x8")  # named in docs/papers/limits.md
AUTOMATA = ["--modulo 2", "--modulo 5", "(a|b)*abb"]


@pytest.fixture(autouse=True)
def _kit():
    try:
        load_technology("gf180mcu")
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture
def draw(cosim_main, tmp_path):
    """(file) -> a layout's folder, whose units are those of the netlist."""

    def drawn(path):
        code, out, err = cosim_main("layout", path, "--technology", "gf180mcu", "-o", tmp_path / "drawn")
        assert code == 0, err
        assert "each is in both" in out
        assert (tmp_path / "drawn" / "layout.png").stat().st_size > 10_000
        left_out = out.count("no picture        of ")
        assert len(list((tmp_path / "drawn" / "cells").iterdir())) + left_out > 2
        return tmp_path / "drawn"

    return drawn


@pytest.mark.slow
@pytest.mark.parametrize("path", [one for one in NETWORKS if one.stem not in LARGE], ids=lambda path: path.stem)
def test_a_network_that_comes_with_cosim_is_drawn(draw, path):
    found = json.loads((draw(path) / "layout.json").read_text())
    assert 2 < found["area_over_gates"] < 8


@pytest.mark.slow
@pytest.mark.parametrize("source", AUTOMATA)
def test_an_automaton_is_drawn(cosim_main, draw, tmp_path, source):
    code, _, err = cosim_main("automaton", *source.split(), "-o", tmp_path / "a.npz")
    assert code == 0, err
    draw(tmp_path / "a.npz")


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_what_is_too_large_says_so_before_it_is_placed(cosim_main, tmp_path, name):
    network = models_path() / "trained" / f"{name}.pt"
    code, out, err = cosim_main("layout", network, "--technology", "gf180mcu", "-o", tmp_path / "drawn")
    assert (code, out) == (2, "") and "must have at most 4000 transistors and capacitors to be drawn, not " in err
    assert not (tmp_path / "drawn").exists()
    assert f"`{name}`" in (Path(__file__).parents[2] / "docs" / "papers" / "limits.md").read_text()
