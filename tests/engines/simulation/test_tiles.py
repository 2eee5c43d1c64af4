"""Several benches at once: what is beside a bench, workers and interruptions change no bit of its result."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import MissingToolError, SimulationError
from cosim.base.store import INFERENCES
from cosim.circuit.bench import Bench, Current, DrainCurrent, Tran, Voltage
from cosim.circuit.elements import Circuit, Source
from cosim.engines import table
from cosim.engines.engine import Description, Failure, FailureKind, Inference, Run, Waveforms
from cosim.engines.simulation import inference
from cosim.engines.simulation.inference import BenchGroup, infer_tile, run_bench, run_inferences, split_tiles
from cosim.engines.simulation.read import Margin, Meter, ReadPlan, read_inference
from cosim.units.kind import SwitchingThresholds

LANES, COUNT = 4, 10
PROBES = Voltage("a"), Current("o"), Current("dd")
AWKWARD, STRANGE = 5, 7  # volt of benches that cannot be run


@dataclass(frozen=True)
class Fourfold:
    """A simulator with lanes; every tile adds a line to `log`."""

    log: Path
    name: str = "fourfold"
    grace: float = 0.0
    lanes: int = LANES

    def write(self, bench):
        return f"* {volts(bench)}"

    def run(self, bench, timeout):
        raise AssertionError("it has run_all")

    def run_all(self, benches, timeout):
        with self.log.open("a") as file:
            file.write(f"{[volts(bench) for bench in benches]} {timeout:g}\n")
        return [self._waves(bench) for bench in benches]

    def _waves(self, bench):
        if volts(bench) == AWKWARD:
            return Failure(FailureKind.CONVERGENCE, "awkward", self.write(bench))
        if volts(bench) == STRANGE:
            return Failure(FailureKind.UNSUPPORTED, "a strange voltage", self.write(bench))
        if volts(bench) > 100:
            os._exit(9)
        time = np.linspace(0.0, bench.transient.end, 41)
        wave = volts(bench) + np.sin(time)
        return Waveforms(time, {probe: (k - 1.5) * wave for k, probe in enumerate(PROBES)})

    def check(self):
        pass

    def describe(self, technology):
        return Description("1.0", {})


def volts(bench):
    return bench.circuit.elements[0].value


def make(technology, volt, end=4.0):
    circuit = Circuit("a supply", (), (Source("dd", "v", "up", "0", volt),))
    return Bench(circuit, technology, Tran(0.1, end), PROBES)


def planned(end=4.0):
    supplies, meters = ((Meter("dd"), 1.8), (Meter("o", one_way=True), 1.8)), (Meter("dd"), Meter("o", one_way=True))
    metered = np.array([[0.55, 1.5], [1.0, end]])
    times = np.arange(0.25, end)
    return ReadPlan((("a",),), ("o",), supplies, -0.5, times, (0.5, end), meters, metered)


@dataclass(frozen=True)
class Standin:
    """It runs one bench after the other, where it is installed."""

    there: bool
    name: str = "standin"
    grace: float = 0.0
    lanes: int = 1

    def run(self, bench, timeout):
        time = np.linspace(0.0, bench.transient.end, 11)
        return Waveforms(time, {probe: 0.5 * np.cos(time) for probe in PROBES})

    def check(self):
        if not self.there:
            raise MissingToolError("no stand-in")


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "log"
    simulator = Fourfold(path)
    monkeypatch.setattr(table, "ENGINES", (*table.ENGINES, table.Entry("fourfold", lambda: simulator)))
    return path


@pytest.fixture
def benches(technology):
    """The last but one is shorter."""
    return [make(technology, float(k) + 10, 2.0 if k == COUNT - 2 else 4.0) for k in range(COUNT)]


@pytest.fixture
def plans(benches):
    return [planned(bench.transient.end) for bench in benches]


def content(outcomes):
    return [tuple(np.asarray(value).tobytes() for value in vars(outcome).values()) for outcome in outcomes]


def tiles_of(log):
    return sorted([int(volt) - 10 for volt in eval(line.rpartition(" ")[0])] for line in log.read_text().splitlines())


def test_a_tile_has_numbers_and_the_last_one_is_shorter(benches, plans):
    tiles = list(split_tiles(benches, plans, LANES))
    assert [tile.numbers for tile in tiles] == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9)]
    assert [bench for tile in tiles for bench in tile.benches] == benches
    assert list(split_tiles([], [], LANES)) == []


def test_long_benches_share_a_tile_with_fewer_others(benches, plans, monkeypatch):
    each = benches[0].transient.end / benches[0].transient.step
    monkeypatch.setattr(inference, "TILE_STEPS", 3 * each)
    assert [tile.numbers for tile in split_tiles(benches[:7], plans[:7], LANES)] == [(0, 1, 2), (3, 4, 5), (6,)]
    monkeypatch.setattr(inference, "TILE_STEPS", each - 1)
    assert [tile.numbers for tile in split_tiles(benches[:3], plans[:3], LANES)] == [(0,), (1,), (2,)]


def test_workers_and_what_was_kept_change_no_bit(log, benches, plans, tmp_path):
    counts = []
    alone = run_inferences(benches, plans, Run(engine="fourfold", timeout=3.0))
    assert all(isinstance(outcome, Inference) for outcome in alone)
    assert [len(outcome.states) for outcome in alone] == [4] * 8 + [2, 4]
    seconds = sorted(float(line.split()[-1]) for line in log.read_text().splitlines())
    assert seconds == [6.0, 12.0, 12.0]  # of the tile
    run = Run(tmp_path / "kept", 2, engine="fourfold")
    kept = run_inferences(benches, plans, run, lambda done, total: counts.append((done, total)))
    assert content(kept) == content(alone)
    assert sorted(counts) == counts and counts[0] == (0, COUNT) and counts[-1] == (COUNT, COUNT) and len(counts) == 4
    assert len(list((tmp_path / "kept" / INFERENCES).iterdir())) == COUNT
    log.unlink()
    assert content(run_inferences(benches, plans, run)) == content(alone)
    assert not log.exists()


def test_what_is_missing_runs_and_nothing_else(log, benches, plans, tmp_path):
    run = Run(tmp_path / "kept", engine="fourfold")
    found = run_inferences(benches[:6], plans[:6], run)
    files = sorted((tmp_path / "kept" / INFERENCES).iterdir(), key=lambda path: path.stat().st_mtime_ns)
    content_of = {path.name: path.read_bytes() for path in files}
    files[1].unlink()
    files[4].unlink()
    log.unlink()
    assert content(run_inferences(benches[:6], plans[:6], run)) == content(found)
    assert tiles_of(log) == [[1, 4]]
    assert {path.name: path.read_bytes() for path in (tmp_path / "kept" / INFERENCES).iterdir()} == content_of
    log.unlink()
    more = run_inferences(benches, plans, run)
    assert tiles_of(log) == [[6, 7, 8, 9]]
    assert content(more) == content(run_inferences(benches, plans, replace(run, folder=None)))


def test_no_process_is_left_without(log, benches, plans):
    run_inferences(benches[:6], plans[:6], Run(engine="fourfold", jobs=2))
    assert tiles_of(log) == [[0, 1, 2], [3, 4, 5]]


def test_a_failure_is_one_bench_and_a_lost_process_a_tile(log, technology):
    benches = [make(technology, volt) for volt in (10.0, AWKWARD, 12.0, 13.0, 14.0, 101.0, 16.0, 17.0, 18.0)]
    found = run_inferences(benches, [planned()] * len(benches), Run(engine="fourfold", jobs=2))
    kinds = [outcome.kind if isinstance(outcome, Failure) else None for outcome in found]
    assert kinds == [None, FailureKind.CONVERGENCE, None, None, *[FailureKind.CRASH] * 4, None]
    assert found[5].deck == "* 101.0" and found[6].deck == "* 16.0"


@pytest.mark.parametrize("there", [True, False])
def test_what_it_has_no_model_for_runs_elsewhere(log, technology, monkeypatch, tmp_path, there):
    monkeypatch.setattr(table, "ENGINES", (*table.ENGINES, table.Entry("standin", lambda: Standin(there))))
    monkeypatch.setattr(inference, "reference_simulator", lambda technology: "standin")
    tile = BenchGroup((0, 1, 2), tuple(make(technology, volt) for volt in (10.0, STRANGE, 12.0)), (planned(),) * 3)
    first, strange, last = infer_tile(Fourfold(log), tile, 3.0)
    assert isinstance(first, Inference) and first.elsewhere == ""
    assert isinstance(last, Inference) and last.elsewhere == ""
    if not there:
        assert isinstance(strange, Failure) and strange.kind is FailureKind.UNSUPPORTED
        with pytest.raises(SimulationError, match="it: the engine has no model for this: a strange voltage"):
            run_bench(tile.benches[1], "it", "fourfold")
        return
    assert isinstance(strange, Inference) and strange.elsewhere == "standin: a strange voltage"
    np.testing.assert_allclose(strange.readout[:, 0], 0.5 * np.cos(planned().times), atol=0.01)
    assert len(run_bench(tile.benches[1], "it", "fourfold").time) == 11
    inference._save(tmp_path, "name", strange)
    assert content([inference._load(tmp_path, "name", planned())]) == content([strange])


MARGIN = Margin("m", 0.1, lambda lines: SwitchingThresholds((np.float64(2.0),), (np.float64(0.5), np.float64(9.0))))


def test_margins_are_distances_of_a_current_from_the_threshold_that_counts():
    """The state of frame 0 is 0, as before it; after frame 1 it is 1, so the lower threshold counts in frame 2."""
    time = np.linspace(0.0, 4.0, 401)
    states = np.where(time < 1.0, 0.0, 1.8)
    waves = Waveforms(time, {Voltage("a"): states, Current("o"): time, Current("dd"): time, DrainCurrent("m"): -time})
    plan = replace(planned(), decisions=(("a",), ("a",)), threshold=0.5, margins=(None, MARGIN))
    plan = replace(plan, closes=np.array([np.arange(4.0), np.arange(4.0) + 0.1]))
    found = read_inference(waves, plan)
    assert np.isinf(found.margins[:, 0]).all() and found.states[:, 1].tolist() == [0, 1, 1, 1]
    np.testing.assert_allclose(found.margins[:, 1], [1.9, 0.9, 1.6, 2.6])
    started = read_inference(waves, replace(plan, margins=(None, replace(MARGIN, started=True))))
    np.testing.assert_allclose(started.margins[:, 1], [0.4, 0.9, 1.6, 2.6])
    height = np.interp(plan.times, time, states)
    np.testing.assert_allclose(found.latches, np.abs(height - 0.5)[:, None].repeat(2, axis=1))


def test_a_written_value_is_as_certain_as_its_distance_from_a_turn():
    """Above the window +v is written, below it -v, else nothing; turns at 1 and 3 A, thresholds at 2 and 0.5."""
    time = np.linspace(0.0, 4.0, 401)
    flat = np.zeros_like(time)
    probes = {Voltage("a"): flat, Current("o"): flat, Current("dd"): flat}
    values = {DrainCurrent("plus"): flat - 2.75, DrainCurrent("minus"): flat - 1.125}
    candidate = np.interp(time, [0.0, 1.0, 2.0, 3.0], [0.25, 1.25, 9.0, 2.125])
    thresholds = (np.float64(2.0), np.float64(0.5))
    found = SwitchingThresholds(thresholds, thresholds, turns=(1.0, 3.0))
    margin = Margin("m", 0.0, lambda lines: found, values=("plus", "minus"))
    plan = replace(planned(), decisions=(("a",),), margins=(margin,), closes=np.arange(4.0)[None])
    margins = read_inference(Waveforms(time, {**probes, **values, DrainCurrent("m"): -candidate}), plan).margins
    np.testing.assert_allclose(margins[:, 0], [0.125, 0.75, 0.25, 0.125])


def test_margins_are_kept(log, technology, tmp_path):
    (found,) = infer_tile(Fourfold(log), BenchGroup((0,), (make(technology, 10.0),), (planned(),)), 3.0)
    latches = np.array([[0.9], [0.01], [np.inf], [0.5]])
    found = replace(found, margins=np.array([[1e-12], [2e-12], [np.inf], [0.0]]), latches=latches)
    inference._save(tmp_path, "name", found)
    assert content([inference._load(tmp_path, "name", planned())]) == content([found])
    inference._save(tmp_path, "name", replace(found, margins=np.full((4, 1), np.nan)))
    assert inference._load(tmp_path, "name", planned()) is None


def test_what_is_read_is_interpolated_and_integrated():
    """Against numpy, beyond the end of the run included."""
    rng = np.random.default_rng(3)
    time = np.sort(np.concatenate([[0.0, 4.0], rng.uniform(0.0, 4.0, 90)]))
    waves = Waveforms(time, {probe: rng.normal(size=len(time)) for probe in PROBES})
    plan = planned(4.0 * (1 + 1e-9))
    plan = replace(plan, times=np.array([0.0, time[7], 1.2345, 4.0, 4.0 + 1e-9]))
    found = read_inference(waves, plan)
    np.testing.assert_array_equal(found.readout[:, 0], np.interp(plan.times, time, waves.through("o")))
    np.testing.assert_array_equal(found.states[:, 0], np.interp(plan.times, time, waves.voltage("a")) > -0.5)
    begin, end = plan.metered[0]
    at = np.concatenate([[begin], time[(time > begin) & (time < end)], [end]])
    for j, wave in enumerate((waves.delivered("dd"), np.maximum(waves.delivered("o"), 0.0))):
        assert found.delivered[0, j] == np.trapezoid(np.interp(at, time, wave), at) / (end - begin)
