"""ngspice starts where nobody's start file is read: a folder or a home that a user was given changes nothing."""

import json
import os
import subprocess
import sys
from itertools import product

import pytest

from cosim.circuit.bench import Tolerances
from cosim.engines.ngspice.library import START, start_environment
from cosim.engines.ngspice.simulator import Ngspice

START_FILES = {
    "shell": "shell touch {folder}/OWNED",
    "option": "option interp",
    "quit": "quit",
    "alias": "alias run shell touch {folder}/OWNED\nset ngbehavior=psa\nset temp=100",
}
DECK = """* a resistor that knows its temperature charges a capacitor
v1 in 0 pwl(0 0 1e-06 1)
r1 in out 1e+06 tc1=1e-03
c1 out 0 1e-09
.save v(out)
.tran 1e-05 5e-03 0 1e-05
.end
"""
CALLER = """
import hashlib, json, os, sys
from pathlib import Path
from cosim.verbs.doctor.command import diagnose
from cosim.engines.ngspice.library import find_ngspice_library, ngspice_version
from cosim.engines.ngspice.process import run_deck
here, variables = Path.cwd(), dict(os.environ)
assert diagnose().ngspice.problem is None
found = run_deck(sys.argv[1])
assert Path.cwd() == here
assert os.environ == variables
print(json.dumps({name: hashlib.sha256(values.tobytes()).hexdigest() for name, values in found.items()}))
"""


def hashes(cwd, code=CALLER, **environment):
    """What the caller prints, started in a folder."""
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", code, DECK],
        capture_output=True, text=True, cwd=cwd, env={**os.environ, "PYTHONPATH": paths, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return hashes(tmp_path_factory.mktemp("empty"))


@pytest.mark.ngspice
@pytest.mark.parametrize(
    ("place", "content"),
    [
        ("folder", "alias"),
        ("home", "quit"),
        ("SPICE_SCRIPTS", "shell"),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in product(("folder", "home"), ("shell", "option"))),
        pytest.param("folder", "quit", marks=pytest.mark.slow),
        pytest.param("home", "alias", marks=pytest.mark.slow),
    ],
)
def test_no_start_file_is_read(tmp_path, undisturbed, content, place):
    for name in (".spiceinit", "spinit"):
        (tmp_path / name).write_text(f"* a stranger's\n{START_FILES[content].format(folder=tmp_path)}\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    where = {
        "folder": (tmp_path, {}),
        "home": (elsewhere, {"HOME": str(tmp_path)}),
        "SPICE_SCRIPTS": (elsewhere, {"SPICE_SCRIPTS": str(tmp_path), "SPICE_USERINIT_DIR": str(tmp_path)}),
    }
    cwd, environment = where[place]
    assert hashes(cwd, **environment) == undisturbed
    assert not (tmp_path / "OWNED").exists()


@pytest.mark.ngspice
def test_no_module_of_the_folder_is_imported_by_the_probe(tmp_path, undisturbed):
    for name in ("ctypes", "json"):
        (tmp_path / f"{name}.py").write_text("open('OWNED', 'w')\n")
    assert hashes(tmp_path) == undisturbed
    assert not (tmp_path / "OWNED").exists()


@pytest.mark.ngspice
def test_a_library_by_a_relative_path_is_found(tmp_path, undisturbed):
    from cosim.engines.ngspice.library import find_ngspice_library

    (tmp_path / "libngspice.so").symlink_to(find_ngspice_library().resolve())
    assert hashes(tmp_path, NGSPICE_LIBRARY_PATH="libngspice.so") == undisturbed


def test_the_callers_variables_do_not_reach_the_start(monkeypatch):
    monkeypatch.setenv("SPICE_ASCIIRAWFILE", "1")
    monkeypatch.setenv("NGSPICE_MEAS_PRECISION", "2")
    found = start_environment()
    assert {path.name: path.read_text() for path in START.iterdir()} == dict.fromkeys(
        (".spiceinit", "spinit"), "* nothing is set here\n"
    )
    assert not {"SPICE_ASCIIRAWFILE", "NGSPICE_MEAS_PRECISION"} & found.keys()
    assert found["HOME"] == found["SPICE_SCRIPTS"] == str(START)
    assert found["PATH"] == os.environ["PATH"]


@pytest.mark.ngspice
def test_the_simulator_says_its_options(technology):
    """Those of the deck, and those that nobody set."""
    found = Ngspice().describe(technology)
    assert found.version.startswith(("3", "4", "5"))
    options = found.options
    assert float(options["gmin"]) == Tolerances().gmin
    assert float(options["reltol"]) == Tolerances().reltol
    assert float(options["temp"]) == pytest.approx(technology.celsius + 273.15)
    assert options["integration method"] == "TRAPEZOIDAL"
    assert {"maxorder", "itl4", "pivtol"} <= options.keys()
