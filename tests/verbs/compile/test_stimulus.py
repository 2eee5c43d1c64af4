"""The testbench of `cosim compile`: a sample of the test set drives it, and it shows what expected.csv says."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.circuit.dialects.table import DIALECTS
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.network.reference import measure_state_ranges, run_reference

LENGTHS = [3, 2, 3, 1, 3]


@pytest.fixture
def data(tiny, tmp_path):
    """The data of `tiny` with samples of unequal length."""
    with np.load(tiny / "data.npz") as arrays:
        np.savez(tmp_path / "data.npz", **arrays, len_test=np.array(LENGTHS))
    return tmp_path / "data.npz"


def expected(folder):
    return list(csv.DictReader((folder / "expected.csv").read_text().splitlines()))


def ngspice_name(vector):
    """v(net) and i(source) as a raw file has them."""
    return vector[2:-1] if vector.startswith("v") else f"{vector[2:-1]}#branch"


def shown(waves, row):
    """What a simulation shows where a row says to look."""
    values = [np.interp(float(row["time_s"]), waves["time"], waves[ngspice_name(v)]) for v in row["vectors"].split()]
    if row["unit"] == "A":
        return values[0]
    return sum(value > float(row["threshold_v"]) for value in values)


def assert_shown(folder, monkeypatch, tolerance):
    """Every row of expected.csv against ngspice on the testbench; returns the states."""
    monkeypatch.chdir(folder)
    waves = run_deck(Path("testbench.sp").read_text())
    assert not isinstance(waves, Failure), waves.detail
    rows = expected(folder)
    for row in rows:
        if row["unit"] == "1":
            assert shown(waves, row) == int(row["behavioral"]) == int(row["software"]), row
        else:
            for engine in ("behavioral", "software"):
                assert shown(waves, row) == pytest.approx(float(row[engine]), abs=tolerance, rel=0), row
    return [int(row["software"]) for row in rows if row["unit"] == "1"]


@pytest.mark.ngspice
@pytest.mark.parametrize("options", [(), ("--stimulus", 0)])
def test_ngspice_shows_it(cosim_main, tiny, data, tmp_path, monkeypatch, options):
    more = (*options, "--data", data) if options else ()
    assert cosim_main("compile", tiny / "net.npz", "-o", tmp_path / "out", *more)[0] == 0
    # 1 % of gain and of level on the sum of all weights of a row of the readout, 1 nA each unit
    weights = load_network(tiny / "net.npz").readout
    tolerance = 0.01e-9 * (np.abs(weights.weight).sum(axis=1) + np.abs(weights.bias)).max()
    states = assert_shown(tmp_path / "out", monkeypatch, tolerance)
    assert len(states) == 3 * (3 if options else 8)
    assert 0 < sum(states) < len(states)


@pytest.mark.ngspice
def test_ngspice_shows_the_states_of_a_ladder(cosim_main, make_network, tmp_path, monkeypatch):
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    network = replace(network, layers=tuple(replace(layer, epsilon=1.0) for layer in network.layers))
    x = np.random.default_rng(103).uniform(0, 1, (13, 6, 3))
    network = replace(network, state_ranges=measure_state_ranges(network, x, np.full(13, 6)))
    save_checkpoint(tmp_path / "net.npz", network)
    np.savez(tmp_path / "data.npz", x_test=x, y_test=np.zeros(13, dtype=int))
    weights = network.readout
    step = 0.01e-9 * (np.abs(weights.weight).sum(axis=1) + np.abs(weights.bias)).max()
    options = ("--data", tmp_path / "data.npz", "--stimulus", 4)
    assert cosim_main("compile", tmp_path / "net.npz", "-o", tmp_path / "out", *options)[0] == 0
    states = assert_shown(tmp_path / "out", monkeypatch, step * max(states_of(network, x)))
    assert max(states) > 1


def states_of(network, x):
    """The largest state of each layer, in levels."""
    signals = run_reference(network, x).signals
    return [np.abs(signals[layer.name]).max() for layer in network.recurrent_layers]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_each_dialect_saves_what_is_expected(cosim_main, tiny, data, tmp_path, dialect):
    options = ("--dialect", dialect.name, "--stimulus", 1, "--data", data)
    assert cosim_main("compile", tiny / "net.npz", "-o", tmp_path / "out", *options)[0] == 0
    rows = expected(tmp_path / "out")
    assert len(rows) == LENGTHS[1] * (3 + 2)  # frames of this sample, cells and outputs
    words = set((tmp_path / "out" / dialect.files.testbench).read_text().replace("\n+", " ").split())
    if dialect.name == "vacask":  # saves v('a:b') and i(v_x), and calls them a:b and v_x:flow(br) in its file
        words = {re.sub(r"^v\('(.*)'\)$", r"\1", re.sub(r"^i\((\w+)\)$", r"\1:flow(br)", word)) for word in words}
    for row in rows:
        assert set(row["vectors"].split()) <= words, row


def test_the_sample_drives_it(cosim_main, tiny, data, tmp_path):
    network = load_network(tiny / "net.npz")
    with np.load(data) as arrays:
        x = arrays["x_test"]
    assert cosim_main("compile", tiny / "net.npz", "-o", tmp_path, "--stimulus", 2, "--data", data)[0] == 0
    readout = run_reference(network, x[2:3]).readout[0]
    found = [float(row["software"]) for row in expected(tmp_path) if row["unit"] == "A"]
    # the file has 9 digits
    np.testing.assert_allclose(found, 1e-9 * readout.ravel(), rtol=1e-8, atol=0)


def test_margins_of_its_decisions_are_counted(cosim_main, tiny, data, tmp_path):
    code, out, _ = cosim_main("compile", tiny / "net.npz", "-o", tmp_path, "--margins", "--data", data)
    assert code == 0 and "network.svg, margins.json in" in " ".join(out.split())
    found = json.loads((tmp_path / "margins.json").read_text())
    assert found["samples"] == len(LENGTHS)
    for layer in found["layers"]:
        assert layer["decisions"] % sum(LENGTHS) == 0
        assert 0 <= layer["chips"]["fewest"] <= layer["circuit"]["fewest"]
        for name in ("circuit", "chips"):
            found = layer[name]
            assert re.search(
                rf"{layer['layer']} +{name} +{found['fewest']:.2f} +{100 * found['within']['mean']:.2f} %", out
            )
    assert "How far decisions are from their thresholds" in out
    assert "How far decisions are from their thresholds" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--stimulus", 5), "no sample 5: the test set has samples 0 to 4; choose one of them"),
        ((), "test data are for a stimulus or margins; add --stimulus 0 or --margins, or leave it out"),
    ],
)
def test_what_is_refused(cosim_main, tiny, data, tmp_path, options, message):
    code, _, err = cosim_main("compile", tiny / "net.npz", "-o", tmp_path / "out", "--data", data, *options)
    assert code != 0
    assert message in " ".join(err.split())
    assert not (tmp_path / "out").exists()
