"""A testbench begins at an operating point that `compile` found, where it could."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import MissingToolError
from cosim.circuit.dialects.table import dialect_named
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure, FailureKind
from cosim.engines.ngspice.process import run_deck
from cosim.verbs.compile import outputs
from cosim.verbs.compile.outputs import Exercise, made_up_stimulus
from cosim.verbs.compile.page import write_design


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    roles = ("mirror_n", "mirror_p", "cell_n", "cell_p")
    pairs = {role: replace(getattr(technology.sizing, role), cascode=(5e-6, 1e-6)) for role in roles}
    cascoded = replace(technology, sizing=replace(technology.sizing, **pairs))
    return compile_network(make_network(13, widths=(2,), outputs=2), cascoded, calibration)


@pytest.mark.ngspice
def test_it_begins_there_and_shows_what_is_expected(design, tmp_path, monkeypatch):
    said = []
    paths = write_design(
        design, tmp_path, Exercise(stimulus=made_up_stimulus(design.network.encoding)[:3]), say=said.append
    )
    assert tmp_path / "start.sp" in paths
    assert said == ["finding the operating point that the testbench begins at"]
    bench = (tmp_path / "testbench.sp").read_text()
    assert ".include start.sp\n" in bench and "bypass=1" in bench and "bypass=0" not in bench
    assert (
        "* What a run costs: one to two minutes" in bench and "* It begins at the operating point in start.sp" in bench
    )
    monkeypatch.chdir(tmp_path)
    waves = run_deck(bench)
    assert not isinstance(waves, Failure), waves.detail
    point = (tmp_path / "start.sp").read_text().replace("\n+", "")
    stored = dict(word[2:].split(")=") for word in point.split() if word.startswith("v("))
    latches = [name for name in waves if name.endswith("latch")]
    assert len(latches) == 2 and len(stored) > 40
    for name in latches:  # 1 mV: both are operating points at reltol 1e-4 of at most 1.8 V
        assert waves[name][0] == pytest.approx(float(stored[name]), abs=1e-3, rel=0)
    states = []
    for row in csv.DictReader((tmp_path / "expected.csv").read_text().splitlines()):
        if row["unit"] == "1":
            (name,) = (vector[2:-1] for vector in row["vectors"].split())
            found = np.interp(float(row["time_s"]), waves["time"], waves[name]) > float(row["threshold_v"])
            states.append(found)
            assert found == int(row["behavioral"]), row
    assert len(states) == 6


def broken(deck):
    return Failure(FailureKind.CONVERGENCE, "singular matrix", deck)


def absent(deck):
    raise MissingToolError("libngspice is missing")


@pytest.mark.parametrize(
    ("found", "words"), [(broken, "the simulator found no convergence: singular"), (absent, "libngspice is missing")]
)
def test_without_one_the_testbench_is_complete_all_the_same(design, tmp_path, monkeypatch, found, words):
    monkeypatch.setattr(outputs, "resting_point", found)
    said = []
    write_design(design, tmp_path, say=said.append)
    assert said[1].startswith("the testbench has to find its operating point by itself: ") and words in said[1]
    assert not (tmp_path / "start.sp").exists()
    bench = (tmp_path / "testbench.sp").read_text()
    assert "start.sp" not in bench and "bypass=0" in bench and "* What a run costs" in bench


def test_it_is_not_looked_for_in_a_large_circuit(design, tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "resting_point", lambda deck: pytest.fail("it takes too long"))
    count = design.assembly.transistors
    monkeypatch.setattr(outputs, "MOST_STARTED", count - 1)
    said = []
    assert tmp_path / "start.sp" not in write_design(design, tmp_path, say=said.append)
    assert said == [
        "the testbench has to find its operating point by itself: it is looked for up to "
        f"{count - 1} transistors, and these are {count}"
    ]


@pytest.mark.parametrize("dialect", ["hspice", "xyce", "spectre", "vacask"])
def test_it_is_for_ngspice_alone(design, tmp_path, monkeypatch, dialect):
    monkeypatch.setattr(outputs, "resting_point", lambda deck: pytest.fail("nobody reads it"))
    assert all(path.name != "start.sp" for path in write_design(design, tmp_path, dialect=dialect_named(dialect)))
    assert not any("start.sp" in path.read_text() for path in tmp_path.iterdir())


@pytest.mark.ngspice
def test_a_circuit_that_rests_at_once_begins_there_too(technology, calibration, make_network, tmp_path):
    """From there `bypass=1` is safe, which is what makes a run by hand as fast as one of cosim's own."""
    design = compile_network(make_network(13, widths=(2,), outputs=2), technology, calibration)
    assert tmp_path / "start.sp" in write_design(design, tmp_path)
    bench = (tmp_path / "testbench.sp").read_text()
    assert "What a run costs" not in bench
    assert ".include start.sp\n" in bench and "bypass=1 num_threads=1\n" in bench
