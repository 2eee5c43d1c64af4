"""A simulator from outside: an entry in the table is all that `cosim compare` needs of it."""

import json
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

import cosim.cli.compare
from cosim.checkpoint.file import save_checkpoint
from cosim.circuit.bench import PRECISE, Bench, Current, DrainCurrent, Op, Voltage
from cosim.circuit.elements import Circuit, Mos, Source
from cosim.cli import main
from cosim.engines import table
from cosim.engines.engine import Description, Failure, Waveforms
from cosim.engines.ngspice.simulator import Ngspice
from cosim.errors import InputError


@dataclass(frozen=True)
class Toy:
    """ngspice under another name, half of whose time steps are left out."""

    name: str = "toy"
    grace: float = 1.0

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


@pytest.fixture
def with_toy(monkeypatch):
    """In the table, and in the choices of the command line, which are read from it when a verb is imported."""
    monkeypatch.setattr(table, "ENGINES", (*table.ENGINES, table.Entry("toy", Toy)))
    monkeypatch.delitem(sys.modules, cosim.cli.compare.__name__)


def test_an_unknown_name_is_refused_with_those_that_there_are(with_toy):
    assert table.simulator_named("toy") == Toy()
    with pytest.raises(InputError, match="simulator must be one of ngspice, vacask, toy, not 'spectre'"):
        table.simulator_named("spectre")


@pytest.mark.ngspice
def test_compare_runs_it(with_toy, make_network, tmp_path, monkeypatch):
    save_checkpoint(tmp_path / "net.npz", make_network(3, widths=(3,), outputs=2))
    rng = np.random.default_rng(3)
    np.savez(tmp_path / "data.npz", x_test=rng.uniform(size=(2, 3, 3)), y_test=np.array([0, 1]))
    found = {}
    for engine in ("ngspice", "toy"):
        out = tmp_path / engine
        samples = ["--data", tmp_path / "data.npz", "--samples", 2]
        words = ["cosim", "compare", tmp_path / "net.npz", *samples, "--engine", engine, "-j", 1, "-o", out]
        monkeypatch.setattr(sys, "argv", list(map(str, words)))
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in (0, None)
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


def test_only_ngspice_is_asked_for_a_drain_current(technology):
    bench = Bench(Circuit("one", (), ()), technology, Op(), (DrainCurrent("1"),))
    text = "only ngspice saves a transistor's current, here that of 1; use it, or leave it out"
    with pytest.raises(InputError, match=text):
        table.simulator_named("vacask").write(bench)
