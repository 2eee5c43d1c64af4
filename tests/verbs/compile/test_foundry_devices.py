"""Netlists of a foundry's own devices: subcircuits of its library in place of cards, and the same circuit."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.circuit.dialects.table import DIALECTS, dialect_named
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
from cosim.exchange.checkpoint import save_checkpoint
from cosim.network.layers import MinGruLayer
from cosim.network.types import InputEncoding, Network, Readout
from cosim.technology.foundry import is_subcircuit
from cosim.verbs.compile.outputs import format_design

# As sky130's library has it: subcircuits around models, sizes in micrometre.
WRAPPED = """
.lib wrapped
.lib '{library}' tt
.subckt wrapped_n d g s b w=1 l=1 ad=0 as=0 pd=0 ps=0
m0 d g s b generic180_n w='w*1e-6' l='l*1e-6' ad='ad*1e-12' as='as*1e-12' pd='pd*1e-6' ps='ps*1e-6'
.ends
.subckt wrapped_p d g s b w=1 l=1 ad=0 as=0 pd=0 ps=0
m0 d g s b generic180_p w='w*1e-6' l='l*1e-6' ad='ad*1e-12' as='as*1e-12' pd='pd*1e-6' ps='ps*1e-6'
.ends
.endl wrapped
"""


@pytest.fixture
def wrapped(technology, tmp_path):
    """generic180 whose devices are subcircuits of a library."""
    file = tmp_path / "wrapped.lib"
    file.write_text(WRAPPED.format(library=technology.library.file))
    library = replace(technology.library, file=file, sections={"tt": "wrapped"}, length_unit=1e-6, diffusion=0.3e-6)
    return replace(
        technology,
        library=library,
        nfet=replace(technology.nfet, name="wrapped_n"),
        pfet=replace(technology.pfet, name="wrapped_p"),
    )


@pytest.fixture
def design(wrapped, calibration, make_network):
    return compile_network(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), wrapped, calibration)


def simulated(files, folder, monkeypatch):
    """States above their thresholds, output currents and mean supply current of a testbench in ngspice."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    waves = run_deck(Path("testbench.sp").read_text())
    assert not isinstance(waves, Failure), waves.detail
    rows = list(csv.DictReader(io.StringIO(files["expected.csv"])))
    states = [
        float(np.interp(float(row["time_s"]), waves["time"], waves[row["vectors"][2:-1]])) > float(row["threshold_v"])
        for row in rows
        if row["threshold_v"]
    ]
    outputs = [
        np.interp(float(row["time_s"]), waves["time"], waves[f"{row['vectors'][2:-1]}#branch"])
        for row in rows
        if not row["threshold_v"]
    ]
    power = np.trapezoid(-waves["vdd#branch"], waves["time"]) / waves["time"][-1]
    return states, np.array(outputs), power


@pytest.mark.ngspice
def test_devices_of_the_library_make_the_same_circuit(design, tmp_path, monkeypatch):
    """Both decks hold the same equations and numbers, so what differs is the solver's path: reltol 1e-4 of a few nA."""
    cards = format_design(design)
    own = format_design(design, dialect=dialect_named("ngspice", foundry=True))
    assert "wrapped_n w=" in own["network.sp"] and "xm" in own["network.sp"] and "\nm" not in own["network.sp"]
    assert ".model" not in own["devices.lib"] and own["testbench.sp"] == cards["testbench.sp"]
    assert json.loads(own["design.json"])["models"] == "foundry" and "models" not in json.loads(cards["design.json"])
    states, outputs, power = simulated(cards, tmp_path / "cards", monkeypatch)
    found, currents, drawn = simulated(own, tmp_path / "own", monkeypatch)
    assert found == states and 0 < np.mean(states) < 1
    np.testing.assert_allclose(currents, outputs, atol=2e-12)
    assert drawn == pytest.approx(power, rel=1e-4)


def test_sizes_are_in_the_unit_of_the_library(design, wrapped):
    """A mirror's unit device of generic180 is 1 um by 5 um; its diffusion here 0.3 um wide: 0.3 um2, 2.6 um around."""
    assert is_subcircuit(wrapped, "n")
    files = format_design(design, dialect=dialect_named("spectre", foundry=True))
    device = "wrapped_p w=1e+00 l=5e+00 ad=3e-01 as=3e-01 pd=2.6e+00 ps=2.6e+00 m="
    assert device in " ".join(files["network.scs"].replace("\n+", " ").split())
    assert '// include "FILE" section=wrapped' in files["devices.scs"] and "1e-06 m" in files["devices.scs"]


def test_bare_models_of_a_library_are_no_subcircuits(technology, calibration, make_network):
    design = compile_network(make_network(26, widths=(3,), outputs=2), technology, calibration)
    files = format_design(design, dialect=dialect_named("ngspice", foundry=True))
    assert "generic180_n w=" in files["network.sp"] and "xm" not in files["network.sp"]
    assert f".lib '{technology.library.file}' tt" in files["devices.lib"]


@pytest.mark.parametrize("dialect", [one.name for one in DIALECTS if one.name not in ("ngspice", "spectre")])
def test_a_simulator_without_the_foundrys_library_is_refused(cosim_main, tiny, tmp_path, dialect):
    options = ("--models", "foundry", "--dialect", dialect, "-o", tmp_path / "out")
    code, _, err = cosim_main("compile", tiny / "net.npz", *options)
    assert code == 2 and f"--models foundry is for ngspice and spectre, not for {dialect}" in err
    assert not (tmp_path / "out").exists()


def test_states_that_are_currents_are_refused_by_name(cosim_main, tmp_path):
    layer = MinGruLayer("fading", ("input",), np.full((1, 2), 0.25), np.zeros(1), np.array([[0.0, 4.0]]), np.zeros(1))
    encoding, readout = InputEncoding(np.zeros(2), np.ones(2)), Readout(("fading",), np.ones((2, 1)), np.zeros(2))
    save_checkpoint(tmp_path / "net.npz", Network(encoding, (layer,), readout, weight_grid=1 / 8))
    code, _, err = cosim_main("compile", tmp_path / "net.npz", "--models", "foundry", "-o", tmp_path / "out")
    assert code == 2 and "the state of fading.0 is read as the current of a transistor" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["it'\n.control", "a blank", "${HOME}", "`x`"])
def test_a_path_that_ngspice_cannot_read_is_refused(design, name):
    """Its .lib ends a path at a blank, and nothing in a file's name may become a statement of the deck."""
    file = design.technology.library.file.parent / name
    file.write_bytes(design.technology.library.file.read_bytes())
    library = replace(design.technology.library, file=file)
    broken = replace(design, technology=replace(design.technology, library=library))
    with pytest.raises(InputError, match="ngspice takes no library whose path has"):
        format_design(broken, dialect=dialect_named("ngspice", foundry=True))
