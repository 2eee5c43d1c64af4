"""Many inferences: order and workers do not matter, finished ones are kept, and every way to fail has its name."""

import os
import time
from collections import defaultdict
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.base.store import INFERENCES
from cosim.circuit.bench import Bench, Current, Tran, Voltage
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.elements import Capacitor, Circuit, Instance, Source
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure, FailureKind, Inference, Run
from cosim.engines.simulation.inference import deck_hash, run_inference, run_inferences
from cosim.engines.simulation.read import Meter, ReadPlan, read_plan
from cosim.engines.simulation.testbench import inference_bench

pytestmark = pytest.mark.ngspice

FRAMES = 2


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(11, widths=(3,), outputs=2), technology, calibration)


@pytest.fixture(scope="module")
def plan(design):
    return read_plan(design, FRAMES)


@pytest.fixture(scope="module")
def benches(design):
    inputs = np.random.default_rng(5).uniform(size=(3, FRAMES, 3))
    return [inference_bench(design, x) for x in inputs]


@pytest.fixture(scope="module")
def endless(benches):
    """It takes hours."""
    return replace(benches[0], analysis=Tran(1e-9, 1e3))


@pytest.fixture(scope="module")
def outcomes(benches, plan):
    """The benches in this very process."""
    return [run_inference(bench, plan) for bench in benches]


EDGE, PERIOD = 1e-5, 1e-3
PULSES = tuple(
    (k * PERIOD + at, volt)
    for k in range(4)
    for at, volt in ((0.2e-3, 0.0), (0.2e-3 + EDGE, 1.0), (0.5e-3 + EDGE, 1.0), (0.5e-3 + 2 * EDGE, 0.0))
)
SWITCHED = Circuit(
    "a driver that charges 1 pF to 1 V and back every millisecond", (),
    (
        Source("clk", "v", "clk", "0", ((0.0, 0.0), *PULSES)), Capacitor("1", "clk", "0", 1e-12),
        Source("dd", "v", "up", "0", 1.0), Source("load", "i", "up", "0", 1e-6),
    ),
)  # fmt: skip


def test_meters(technology):
    """A supply is charged 1 uA; a capacitor takes nothing from a two-way source, C V a period from a driver."""
    meters = (Meter("dd"), Meter("clk"), Meter("clk", one_way=True))
    probes = Current("clk"), Current("dd"), Voltage("clk")
    bench = Bench(SWITCHED, technology, Tran(1e-6, 4e-3), probes)
    windows = np.array([[0.0, 2e-3], [1e-3, 4e-3]])
    plan = ReadPlan((), ("clk",), (), 0.5, np.array([1e-3]), (0.0, 4e-3), meters, windows)
    found = run_inference(bench, replace(plan, decisions=(("clk",),)))
    assert isinstance(found, Inference), found
    assert found.delivered.shape == (2, 3)
    np.testing.assert_allclose(found.delivered[:, 0], 1e-6, rtol=1e-4)
    # an edge is ten solver steps long, and its corners are known to a fifth of one
    np.testing.assert_allclose(found.delivered[:, 1], 0.0, atol=0.02 * 1e-9)
    np.testing.assert_allclose(found.delivered[:, 2], 1e-12 * 1.0 / 1e-3, rtol=0.02)


def test_stored_result_of_another_plan_is_run_again(benches, plan, tmp_path):
    (first,) = run_inferences(benches[:1], [plan], Run(tmp_path))
    metered = replace(plan, meters=(Meter("dd"),), metered=np.array([plan.window]))
    (again,) = run_inferences(benches[:1], [metered], Run(tmp_path))
    assert first.delivered.shape == (0, 0)
    assert 1.8 * again.delivered[0, 0] == pytest.approx(first.power_w, rel=1e-9, abs=0)
    (known,) = run_inferences(benches[:1], [metered], Run(tmp_path))
    np.testing.assert_array_equal(known.delivered, again.delivered)


def content(outcomes):
    return [(outcome.states.tobytes(), outcome.readout.tobytes(), outcome.power_w) for outcome in outcomes]


def test_shapes_and_signs(outcomes):
    for outcome in outcomes:
        assert isinstance(outcome, Inference)
        assert outcome.states.shape == (FRAMES, 3)
        assert outcome.readout.shape == (FRAMES, 2)
        assert outcome.power_w > 0  # delivered, not drawn
    assert len(set(content(outcomes))) == 3


def test_a_worker_does_not_change_a_bit(benches, plan, outcomes):
    """One worker process gives the bytes of no worker; the test of a worker that dies has two."""
    assert content(run_inferences(benches, [plan] * 3, Run(jobs=1))) == content(outcomes)


def test_stored_results_are_read_back(benches, plan, outcomes, tmp_path, monkeypatch):
    counts = []
    found = run_inferences(benches, [plan] * 3, Run(tmp_path, 2), lambda done, total: counts.append((done, total)))
    assert content(found) == content(outcomes)
    assert counts == [(0, 3), (1, 3), (2, 3), (3, 3)]
    files = sorted(path.name for path in (tmp_path / INFERENCES).iterdir())
    assert files == sorted(f"{deck_hash(format_bench(bench))}.npz" for bench in benches)  # no temporary file is left

    def no_pool(*arguments):
        raise AssertionError("nothing was left to run")

    monkeypatch.setattr("cosim.engines.simulation.inference._run_pool", no_pool)
    assert content(run_inferences(benches, [plan] * 3, Run(tmp_path, 2))) == content(outcomes)


@pytest.mark.parametrize("damage", ["cut", "empty", "other keys"])
def test_damaged_and_missing_results_are_run_again(benches, plan, outcomes, tmp_path, damage, monkeypatch):
    def here(tiles, run, simulator):
        ran.extend(tile.numbers[0] for tile in tiles)
        return ((tile, [run_inference(tile.benches[0], plan)]) for tile in tiles)

    ran: list[int] = []
    monkeypatch.setattr("cosim.engines.simulation.inference._run_pool", here)
    run_inferences(benches, [plan] * 3, Run(tmp_path))
    assert ran == [0, 1, 2]
    victim = tmp_path / INFERENCES / f"{deck_hash(format_bench(benches[1]))}.npz"
    if damage == "other keys":
        np.savez(victim, states=np.ones(2))
    else:
        victim.write_bytes(victim.read_bytes()[:-40] if damage == "cut" else b"")
    (tmp_path / INFERENCES / f"{deck_hash(format_bench(benches[2]))}.npz").unlink()
    ran.clear()
    assert content(run_inferences(benches, [plan] * 3, Run(tmp_path))) == content(outcomes)
    assert ran == [1, 2]
    assert content(run_inferences(benches, [plan] * 3, Run(tmp_path))) == content(outcomes)
    assert ran == [1, 2]


def test_dead_worker_is_named_a_failure_and_the_others_go_on(benches, plan, outcomes, tmp_path, caplog):
    # The run ends, its end is compared with window[1], and looking that up ends the process: an abort in mid-task.
    deadly = replace(plan, window=defaultdict(partial(os._exit, 9)))
    found = run_inferences(benches, [plan, deadly, plan], Run(tmp_path))
    assert content([found[0], found[2]]) == content([outcomes[0], outcomes[2]])
    said = "a worker process ended (exit status 9) with sample 1; another runs it again"
    assert [record.message for record in caplog.records] == [said]
    failure = found[1]  # died in both tries
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.CRASH
    assert failure.kind.value == "the simulator process died"
    assert failure.detail == "exit status 9"
    assert failure.deck == format_bench(benches[1])
    assert not (tmp_path / INFERENCES / f"{deck_hash(format_bench(benches[1]))}.npz").exists()


class DiesOnce(tuple):
    """A pair; the first process that looks into it ends."""

    def __getitem__(self, place):
        if not self.flag.exists():
            self.flag.touch()
            os._exit(9)
        return super().__getitem__(place)


def test_a_sample_whose_worker_died_runs_once_more(benches, plan, outcomes, tmp_path):
    window = DiesOnce(plan.window)
    window.flag = tmp_path / "died"
    found = run_inferences(benches, [plan, replace(plan, window=window), plan], Run(jobs=2))
    assert window.flag.exists()
    assert content(found) == content(outcomes)


JUMPING = """
import itertools, time
wall, jumps = time.time, itertools.cycle([0.0, 3600.0, -3600.0])
time.time = lambda: wall() + next(jumps)
"""


def test_a_wall_clock_that_jumps_by_an_hour_loses_nothing(benches, plan, outcomes, tmp_path, monkeypatch):
    """Forwards and back with every look at it, here and in the workers."""
    (tmp_path / "sitecustomize.py").write_text(JUMPING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("time.time", time.time)  # to be put back
    exec(JUMPING, {})
    assert abs(time.time() - time.time()) > 3000
    assert content(run_inferences(benches, [plan] * 3, Run(jobs=2, timeout=60.0))) == content(outcomes)


def test_time_out(plan, endless):
    """The run would take hours; whatever the machine does, it cannot be over in a second."""
    (failure,) = run_inferences([endless], [plan], Run(timeout=1.0))
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.detail, failure.deck) == (
        FailureKind.TIMEOUT,
        "after 1 s of processor time",
        format_bench(endless),
    )


def test_a_slow_sample_keeps_no_other_from_the_store(benches, endless, plan, tmp_path):
    """The first takes for ever; when the first result is reported it is another's, and it is kept already."""
    kept = []
    found = run_inferences(
        [endless, *benches[:2]], [plan] * 3, Run(tmp_path, 2, timeout=5.0),
        lambda done, total: kept.append(sorted(path.name for path in tmp_path.glob("*/*.npz"))),
    )  # fmt: skip
    assert [len(files) for files in kept] == [0, 1, 2, 2]
    assert isinstance(found[0], Failure) and isinstance(found[1], Inference) and isinstance(found[2], Inference)


def test_a_store_that_cannot_be_written(benches, plan, tmp_path):
    (tmp_path / INFERENCES).write_text("in the way")
    with pytest.raises(InputError, match="cannot write into .*/inferences: File exists; choose another folder with -o"):
        run_inferences(benches, [plan] * 3, Run(tmp_path))


def test_rejected_deck_is_not_stored(benches, plan, tmp_path):
    elements = (*benches[0].circuit.elements, Instance("broken", ("vdd",), "no_such_block"))
    broken = replace(benches[0], circuit=replace(benches[0].circuit, elements=elements))
    (failure,) = run_inferences([broken], [plan], Run(tmp_path))
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.DECK
    assert list((tmp_path / INFERENCES).iterdir()) == []


def test_run_that_stops_early_is_no_result(benches, plan):
    late = replace(plan, window=(plan.window[0], 2 * plan.window[1]))
    failure = run_inference(benches[0], late)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.CONVERGENCE
    assert "stopped at 0.025 s of 0.05 s" in failure.detail


def test_hash_follows_the_deck(benches):
    decks = [format_bench(bench) for bench in benches]
    assert len({deck_hash(deck) for deck in [*decks, decks[0] + "\n"]}) == 4
