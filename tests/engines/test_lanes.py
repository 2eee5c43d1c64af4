"""Simulators with lanes, through the command line: tiles, what runs elsewhere, audits; chips as well as samples."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.cli import main
from cosim.compiler.design import Condition
from cosim.compiler.passes import compile_network
from cosim.engines import table
from cosim.engines.engine import Run
from cosim.engines.simulation.audit import (
    Audit,
    AuditableRun,
    UndecidedChips,
    audit_conditions,
    audit_samples,
    least_margin,
    merge,
)
from cosim.engines.simulation.simulated import SimulatorEngine, engine_named
from cosim.exchange.checkpoint import save_checkpoint
from cosim.tasks.testset import TestSet
from cosim.technology.conditions import at
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.chip_study import read_summary
from cosim.verbs.montecarlo.chips import ChipRecord
from cosim.verbs.montecarlo.command import MonteCarloOptions, _transistor_engine
from cosim.verbs.montecarlo.page import write_report
from cosim.verbs.montecarlo.store import pack_certainty, unpack_certainty
from cosim.verbs.montecarlo.trial import Trial, run_chip
from cosim.verbs.trim.run import trim_chip
from tests.toys.fourway import Fourway

SAMPLES = 6
ELSEWHERE = "by ngspice 2 samples (a floating thing)"


def words_of(said):
    """The words that a verb said, without the places where its lines end."""
    return " ".join(said.split())


def say_nothing(done, total):
    pass


@pytest.fixture
def offer(monkeypatch):
    """An entry in the table, like that of the batch engine."""

    def add(simulator):
        entry = table.Entry("fourway", lambda: simulator, cells=False, quick=True)
        monkeypatch.setattr(table, "ENGINES", (*(one for one in table.ENGINES if one.name != "fourway"), entry))

    return add


@pytest.fixture
def network(make_network, tmp_path):
    save_checkpoint(tmp_path / "net.npz", make_network(3, widths=(1,), features=1, outputs=2))
    rng = np.random.default_rng(3)
    np.savez(tmp_path / "data.npz", x_test=rng.uniform(size=(SAMPLES, 2, 1)), y_test=np.arange(SAMPLES) % 2)
    return tmp_path / "net.npz"


@pytest.fixture
def verb(monkeypatch, network, capsys):
    """(verb, words) -> exit status, what it said, what it complained of."""

    def run(name, *words):
        rest = [name, network, "--data", network.parent / "data.npz", "--engine", "fourway", *words]
        monkeypatch.setattr(sys, "argv", ["cosim", *map(str, rest)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.ngspice
def test_compare_runs_all_samples_in_tiles_and_audits_them(offer, verb, tmp_path):
    """Lane 1 runs elsewhere in both tiles; the other four samples are all that an audit can have."""
    offer(Fourway(strange=(1,)))
    code, out, _ = verb("compare", "-j", 1, "-o", tmp_path / "out")
    assert code == 0
    assert "6 test samples" in out and "0 simulations failed" in out and ELSEWHERE in words_of(out)
    assert "passed: 4 in ngspice" in out
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert found["elsewhere"] == {"ngspice: a floating thing": 2} and found["samples"] == SAMPLES
    assert found["audit"]["passed"] and found["audit"]["bits"] == 4 * 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "a floating thing" in page and "passed: 4 in ngspice" in page
    assert (tmp_path / "out" / "waveforms.png").exists()
    again, same, _ = verb("compare", "-j", 2, "-o", tmp_path / "out", "--audit", 2)
    assert again == 0 and "passed: 2 in ngspice" in same and ELSEWHERE in words_of(same)


@pytest.mark.ngspice
def test_an_audit_that_fails_refuses_the_run_and_keeps_it(offer, verb, tmp_path):
    offer(Fourway(false=(0, 1)))
    code, out, err = verb("compare", "-j", 1, "-o", tmp_path / "out")
    assert code == 1 and "REFUSED: 6 in ngspice" in out
    assert "refused by its audit" in err and "99.9 % must be" in err
    found = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert not found["audit"]["passed"] and found["audit"]["wrong"] > 0
    code, out, _ = verb("compare", "-j", 1, "-o", tmp_path / "out", "--audit", 0)
    assert code == 0 and "\naudit " not in out
    assert json.loads((tmp_path / "out" / "comparison.json").read_text())["audit"] is None


def plain(line):
    """What a record's certainty needs."""
    return {key: line[key] for key in ("chip", "status", "supply_v", "celsius", "draws", "certainty")}


@pytest.mark.ngspice
@pytest.mark.parametrize("false", [pytest.param((), marks=pytest.mark.slow), (0, 1, 2, 3)])
def test_montecarlo_audits_chips(offer, verb, tmp_path, false):
    offer(Fourway(strange=(3,), false=false))
    words = "--chips", 2, "-j", 2, "-o", tmp_path / "out", "--audit", 4, "--spec", "accuracy>=0"
    code, out, err = verb("montecarlo", *words)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["samples"] == SAMPLES and summary["elsewhere"] == {"ngspice: a floating thing": 2}
    records = [json.loads(line) for line in (tmp_path / "out" / "chips.jsonl").read_text().splitlines()]
    assert all(
        record["elsewhere"] == {"ngspice: a floating thing": 1} and len(record["decks"]) == 24 for record in records
    )
    assert len({record["decks"] for record in records}) == 2
    assert summary["audit"]["passed"] == (not false)
    undecided = summary["undecided"]
    assert (undecided["inferences"], undecided["repeated"]) == (2 * SAMPLES, 8)
    certainty = np.concatenate([unpack_certainty(ChipRecord(**line), SAMPLES) for line in map(plain, records)])
    assert undecided["near"] == (certainty < undecided["limit"]).sum()
    assert f"{undecided['near']} of {2 * SAMPLES} inferences" in out
    kept = read_summary(tmp_path / "out")
    assert kept.audit == Audit(**summary["audit"]) and kept.undecided == UndecidedChips(**undecided)
    page = tmp_path / "page.html"
    write_report(tmp_path / "out", page, waveforms=False)
    assert f"{undecided['near']} of {2 * SAMPLES} inferences" in page.read_text()
    assert (code, "refused by its audit" in err) == ((1, True) if false else (0, False))
    assert ("REFUSED" if false else "passed") in out


@pytest.mark.ngspice
def test_simulate_draws_waveforms_and_power_counts_what_ran_elsewhere(offer, verb, tmp_path):
    offer(Fourway(strange=(1,)))
    code, out, _ = verb("simulate", "--waveforms", "--samples", 5, "-j", 2, "-o", tmp_path / "one")
    assert (
        code == 0
        and "5 of 5 samples simulated" in " ".join(out.split())
        and (tmp_path / "one" / "waveforms.png").exists()
    )
    code, out, _ = verb("power", "-j", 1, "-o", tmp_path / "two")
    assert code == 0 and ELSEWHERE in words_of(out)
    assert json.loads((tmp_path / "two" / "power.json").read_text())["elsewhere"] == {"ngspice: a floating thing": 2}


@pytest.mark.ngspice
def test_a_chip_is_trimmed_with_cells_measured_in_ngspice(offer, make_network, technology, calibration):
    offer(Fourway())
    design = compile_network(make_network(3, widths=(1,), outputs=2), technology, calibration)
    rng = np.random.default_rng(3)
    test_set = TestSet(rng.uniform(size=(2, 2, 3)), np.array([0, 1]), np.array([2, 2]), np.arange(2))
    trial = Trial(design, test_set, VariationPlan("local", 0, 1), "fourway")
    found = trim_chip(trial, 0, (4,))
    assert not found.failure and set(found.figures) == {"0", "4"}


@pytest.mark.ngspice
def test_margins_of_samples_and_of_chips(make_network, technology, calibration, monkeypatch):
    """Every decision has one; those of a chip are others, and its record keeps the least of each sample."""
    design = compile_network(make_network(3, widths=(3,), outputs=2), technology, calibration)
    rng = np.random.default_rng(3)
    test_set = TestSet(rng.uniform(size=(3, 4, 3)), np.array([0, 1, 0]), np.array([4, 3, 4]), np.arange(3))
    trial = Trial(design, test_set, VariationPlan("local", 0, 1), "fourway")
    engine, found = SimulatorEngine(Fourway()), {}
    for name, chip in (("nominal", None), ("chip", trial.chip(0))):
        run = replace(trial.run(trial.chip(0)), chip=chip)
        found[name] = list(engine.infer(design, test_set, run, lambda *_: None))
        assert [one.margins.shape for one in found[name]] == [(4, 3), (3, 3), (4, 3)]
        assert all(0 < least_margin(one) < 1e-8 for one in found[name])
    assert least_margin(found["nominal"][0]) != least_margin(found["chip"][0])
    record = run_chip(trial, 0, engine)
    margins = unpack_certainty(record, 3)
    np.testing.assert_allclose(margins, [least_margin(one) for one in found["chip"]], rtol=1e-6)


def test_an_audit_is_of_engines_with_models_of_their_own(offer, verb, tmp_path):
    offer(Fourway())
    for name in ("compare", "montecarlo"):
        code, _, err = verb(name, "--engine", "ngspice", "--audit", 3, "-o", tmp_path / "out")
        assert code != 0 and "--audit is for --engine batch, not for ngspice; leave it out" in err
    code, _, err = verb("montecarlo", "--transistors", "-o", tmp_path / "out")
    assert code != 0 and "--transistors chooses the engine; leave out --engine fourway or --transistors" in err


def test_the_engine_for_transistors(monkeypatch, capsys):
    """Batch where it is installed; otherwise the technology's reference simulator, and why."""
    options = MonteCarloOptions(network_file=Path("model.pt"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert _transistor_engine(options) == "batch"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert _transistor_engine(options) == "ngspice"
    assert "in ngspice: numba is missing" in capsys.readouterr().err


@pytest.mark.ngspice
def test_an_audit_of_all_conditions(make_network, technology, calibration, tmp_path):
    """Samples of two conditions, one of which differs: what each audit finds adds up, each by its own limit."""
    design = compile_network(make_network(3, widths=(3,), outputs=2), technology, calibration)
    rng = np.random.default_rng(3)
    test_set = TestSet(rng.uniform(size=(3, 4, 3)), np.array([0, 1, 0]), np.array([4, 3, 4]), np.arange(3))
    hot = Condition(at(technology, "tt", 60.0, 1.8), 0.5, 0.5)
    runs = []
    for k, condition in enumerate((None, hot)):
        run = Run(tmp_path / str(k), condition=condition)
        outcomes = list(engine_named("ngspice").infer(design, test_set, run, say_nothing))
        if k:
            outcomes = [replace(one, states=1 - one.states) for one in outcomes]
        runs.append(AuditableRun(design, test_set, outcomes, run))
    found, seen = audit_conditions(runs, 6, say_nothing), [audit_samples(ran, 3, say_nothing) for ran in runs]
    assert merge(seen, technology) == found and [one.passed for one in seen] == [True, False]
    assert not found.passed and found.instances == 6 and found.wrong == seen[1].bits == 11 * 3
    assert [one.limit for one in seen] == pytest.approx([2e-3 * design.i_unit, 1e-3 * design.i_unit])
    assert found.agreement == pytest.approx(0.5)


def test_certainty_of_a_chip_in_a_record():
    margins = np.array([1e-12, np.inf, 3e-11])
    record = ChipRecord(3, "ok", 1.8, 27.0, "", certainty=pack_certainty(margins))
    np.testing.assert_allclose(unpack_certainty(record, 3), margins, rtol=1e-6)
    assert pack_certainty(np.full(3, np.inf)) is None
    assert np.isinf(unpack_certainty(replace(record, certainty=None), 3)).all()
    assert np.isnan(unpack_certainty(replace(record, status="failed"), 3)).all()
    assert np.isnan(unpack_certainty(replace(record, certainty=None, elsewhere={"ngspice: a diode": 3}), 3)).all()
    assert np.isinf(unpack_certainty(replace(record, certainty=None, elsewhere={"ngspice: a diode": 2}), 3)).all()
