"""The netlists in netlists/: byte for byte what the package generates, and each accepted and run by ngspice."""

import csv
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cosim.circuit.bench import PRECISE
from cosim.circuit.dialects.ngspice import NGSPICE, format_options
from cosim.circuit.waveforms import Timing
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_deck
from cosim.network.reference import run_reference
from cosim.verbs.compile.outputs import EXERCISE_FRAMES

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "netlists"


def load_script():
    spec = importlib.util.spec_from_file_location("write_goldens", ROOT / "scripts" / "write_goldens.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()
TEXTS = SCRIPT.golden_texts()
CELLS = sorted(name for name in TEXTS if "/" not in name)
SHEETS = sorted(name for name in TEXTS if name.startswith("cells/"))
# paths of the program ngspice: the machine's, and other versions that COSIM_NGSPICE names, with colons between them
PROGRAMS = [path for path in (shutil.which("ngspice"), *os.environ.get("COSIM_NGSPICE", "").split(":")) if path]
CARDS = (("n", 1e-6, 1e-6), ("p", 1e-6, 1e-6))  # the cards of generic180 hold for every size


def assert_golden(name):
    assert (FOLDER / name).read_bytes() == TEXTS[name].encode(), f"{name} differs; run python scripts/write_goldens.py"


def test_no_file_is_missing_or_left_over():
    found = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    sheets = {name for name in found if name.startswith("cells/") and name.endswith(".toml")}
    assert {name for name in found if not name.startswith("public/")} == {*TEXTS, *sheets, "README.md"}
    assert {name.removesuffix(".toml") for name in sheets} == {name.removesuffix(".sp") for name in SHEETS}


def test_the_script_writes_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["write_goldens.py", str(tmp_path)])
    SCRIPT.main()
    for name, text in TEXTS.items():
        assert (tmp_path / name).read_bytes() == text.encode()


def subcircuits(text):
    """(name, ports) of every definition, continuation lines joined."""
    lines = text.replace("\n+", "").splitlines()
    return [(words[1], words[2:]) for words in map(str.split, lines) if words and words[0] == ".subckt"]


@pytest.mark.parametrize("name", SHEETS)
def test_the_netlist_of_a_datasheet_has_the_cells_of_today(name):
    assert_golden(name)


@pytest.mark.ngspice
@pytest.mark.parametrize("name", CELLS)
def test_cell(name, technology):
    """Every port but vdd hangs on 0.9 V by 1 gigaohm; a solution exists and no port leaves the supply's range."""
    assert_golden(name)
    text = (FOLDER / name).read_text()
    lines, saved = ["vdd vdd 0 dc 1.8e+00", "vmid mid 0 dc 9e-01"], []
    for block, ports in subcircuits(text):
        nets = [port if port == "vdd" else f"{block}_{port}" for port in ports]
        lines.append(f"x{block} {' '.join(nets)} {block}")
        saved += [net for net in nets if net != "vdd"]
    lines += [f"r{net} mid {net} 1e+09" for net in saved]
    tail = f"{format_options(PRECISE, technology)}.save {' '.join(f'v({net})' for net in saved)}\n.op\n.end\n"
    waves = run_deck("\n".join([text, NGSPICE.devices(technology, CARDS), *lines, tail]))
    assert not isinstance(waves, Failure), waves.detail
    assert set(waves) == set(saved)
    # Nothing here delivers energy but the supply, so no node leaves its range; 1e-3 V for gmin and reltol
    for net in saved:
        assert -1e-3 < waves[net][-1] < 1.801


@pytest.mark.ngspice
@pytest.mark.parametrize("name", [name for name in SCRIPT.networks() if name != SCRIPT.TINY])
def test_memory_in_time_runs_and_follows_the_software(name, monkeypatch):
    for file in TEXTS:
        if file.startswith(f"{name}/"):
            assert_golden(file)
    monkeypatch.chdir(FOLDER / name)
    waves = run_deck(Path("testbench.sp").read_text())
    assert not isinstance(waves, Failure), waves.detail
    with Path("expected.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["threshold_v"]]
    for row in rows:
        voltage = np.interp(float(row["time_s"]), waves["time"], waves[row["vectors"][2:-1]])
        assert (voltage > float(row["threshold_v"])) == (row["software"] == "1"), row
    seen = {(row["signal"], row["software"]) for row in rows}
    assert len(seen) >= 1.5 * len({signal for signal, _ in seen})  # most cells turn


def read_raw(path):
    """Waveforms of a binary raw file of ngspice: name -> values."""
    head, _, content = path.read_bytes().partition(b"Binary:\n")
    names = [line.split()[1] for line in head.decode().partition("Variables:\n")[2].splitlines() if line.strip()]
    values = np.frombuffer(content, "<f8").reshape(-1, len(names))
    return dict(zip(names, values.T, strict=True))


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", [name for name in SCRIPT.networks() if name != SCRIPT.TINY])
def test_the_program_ngspice_runs_what_leaves_the_house(name, program, tmp_path):
    """`ngspice -b` on the written testbench, as docs/how-to/compile.md says. COSIM_NGSPICE names other versions."""
    done = subprocess.run(
        [program, "-b", "-r", tmp_path / "testbench.raw", "testbench.sp"],
        cwd=FOLDER / name, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    waves = read_raw(tmp_path / "testbench.raw")
    with (FOLDER / name / "expected.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["threshold_v"]]
    for row in rows:
        voltage = np.interp(float(row["time_s"]), waves["time"], waves[row["vectors"]])
        assert (voltage > float(row["threshold_v"])) == (row["software"] == "1"), row


@pytest.mark.ngspice
def test_tiny_network_runs_and_follows_the_reference(monkeypatch, technology):
    for name in TEXTS:
        if name.startswith("tiny_network/"):
            assert_golden(name)
    monkeypatch.chdir(FOLDER / "tiny_network")
    waves = run_deck(Path("testbench.sp").read_text())
    assert not isinstance(waves, Failure), waves.detail
    network, timing = SCRIPT.tiny_network(), Timing()
    x = np.add.outer(np.arange(EXERCISE_FRAMES), np.arange(2)) % 4 / 3.0
    reference = run_reference(network, x[None])
    at = timing.sample_times(EXERCISE_FRAMES)
    states = [np.interp(at, waves["time"], waves[f"xnetwork.xcell_layer0_{k}.latch"]) > 0.9 for k in range(2)]
    # All candidates of this stimulus stand at least 0.1 units off a threshold; see the margins of test_three_levels.
    np.testing.assert_array_equal(np.stack(states, axis=1), reference.signals["layer0"][0] > 0.5)
    assert 0 < np.mean(states) < 1
    readout = np.stack([np.interp(at, waves["time"], waves[f"vreadout_{k}#branch"]) for k in range(3)], axis=1)
    # 1 % of gain and of level on at most 2.2 units that flow through an output
    np.testing.assert_allclose(readout / 1e-9, reference.readout[0], atol=0.01 * 2.2)
