"""Runs: the same records whoever runs them, however often they were interrupted; and what they add up to."""

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.base.text import json_object
from cosim.engines.engine import FailureKind
from cosim.engines.simulation import workers
from cosim.results.page import format_text
from cosim.verbs.montecarlo.chips import Contribution, Cure, Division, UnresetCount, VarianceShare
from cosim.verbs.montecarlo.contributions import DIVISIONS, chip_figures, share_variance
from cosim.verbs.montecarlo.execute import run_local, run_on
from cosim.verbs.montecarlo.page import advise, summary_page
from cosim.verbs.montecarlo.run import (
    SUMMARY_FILE,
    default_spec,
    run_contributions,
    run_montecarlo,
    run_settings,
    summarize_run,
)
from cosim.verbs.montecarlo.spec import parse_spec
from cosim.verbs.montecarlo.statistics import describe
from cosim.verbs.montecarlo.store import check_record, open_store, read_store, unpack_draws
from cosim.verbs.montecarlo.trial import behavioral_record, run_chip, run_chips

SPECS = [parse_spec("accuracy>=0.9")]


def quiet(done, total):
    pass


@pytest.fixture(scope="module")
def records(trial):
    return run_chips(trial, tuple(range(trial.plan.chips)))


def by_chip(found):
    return sorted(found, key=lambda record: record.chip)


def test_a_record_holds_its_draws(trial, records):
    chip = trial.chip(3)
    vt_shift, beta_factor = unpack_draws(records[3].draws)
    np.testing.assert_array_equal(vt_shift, chip.vt_shift)
    np.testing.assert_array_equal(beta_factor, chip.beta_factor)
    line = json.loads(json.dumps(json_object(records[3])))
    assert check_record(line, "behavioral", len(trial.devices), "here") == records[3]


def test_no_variation_is_nominal(trial):
    """Without variation every chip is the compiled circuit; rounding to the weight grid is all that is left."""
    still = replace(trial, plan=replace(trial.plan, kind="none"))
    figures = run_chip(still, 0).behavioral
    assert figures.accuracy == figures.task_agreement > 0.95
    assert run_chip(still, 1).behavioral == figures


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_do_not_matter(trial, records, jobs):
    assert by_chip(run_local(trial, range(trial.plan.chips), jobs, 60.0)) == records


def test_nor_does_the_order_in_which_chips_finish(trial, records, tmp_path):
    """chips.jsonl has the same bytes."""
    for name, order in (("a", 1), ("b", -1)):
        with open_store(tmp_path / name, run_settings(trial)) as store:

            def execute(numbers, order=order):
                return [records[number] for number in list(numbers)[::order]]

            run_montecarlo(trial, store, execute, [parse_spec("accuracy>=0.9")], None, lambda *_: None)
    assert (tmp_path / "a" / "chips.jsonl").read_bytes() == (tmp_path / "b" / "chips.jsonl").read_bytes()


def test_any_executor_will_do(trial, records):
    with ThreadPoolExecutor(2) as executor:
        assert by_chip(run_on(executor, trial, range(trial.plan.chips), 2, 60.0)) == records


class Lossy:
    """An executor that loses its worker on every first try of a task, and on every try of those with chip 9."""

    def __init__(self):
        self.seen = set()

    def submit(self, work, trial, numbers, engine):
        future = Future()
        if numbers not in self.seen or 9 in numbers:
            self.seen.add(numbers)
            future.set_exception(ConnectionError("worker gone"))
        else:
            future.set_result(work(trial, numbers))
        return future


def test_a_lost_worker_costs_a_second_try(trial, records):
    found = by_chip(run_on(Lossy(), trial, range(trial.plan.chips), 3, 60.0))
    assert [record.chip for record in found] == list(range(trial.plan.chips))
    lost = {record.chip for record in found if record.status == "failed"}
    assert lost == {9}  # not the 7 chips that were in its task
    for record, wanted in zip(found, records, strict=True):
        assert record.draws == wanted.draws
        if record.status == "failed":
            assert record.reason == FailureKind.CRASH.value and "worker gone" in record.detail
        else:
            assert record == wanted


def test_chips_lost_to_the_machine_run_again_on_resume(trial, records, tmp_path):
    """A chip without a convergent solution stays as it is; one that a time-out or a dead worker took does not."""
    settings, ran = run_settings(trial), []

    def execute(numbers):
        ran.append(list(numbers))
        yield from (records[number] for number in numbers)

    with open_store(tmp_path, settings) as store:
        kinds = {1: FailureKind.TIMEOUT, 3: FailureKind.CRASH, 4: FailureKind.CONVERGENCE}
        for record in records:
            if record.chip in kinds:
                record = replace(record, status="failed", reason=kinds[record.chip].value, detail="said so")
            store.append(record)
    with open_store(tmp_path, settings) as store:
        summary = run_montecarlo(trial, store, execute, [parse_spec("accuracy>=0")], None, quiet)
    assert ran == [[1, 3]]
    assert (summary.failed, summary.chips) == (1, len(records))
    assert summary.reasons == {FailureKind.CONVERGENCE.value: 1} and summary.elsewhere == {}
    _, again = read_store(tmp_path)
    assert [again[number].status for number in (1, 3, 4)] == ["ok", "ok", "failed"]
    assert again[1] == records[1]


@pytest.mark.parametrize(
    "change",
    [
        lambda design: replace(design, network=replace(design.network, readout=replace(
            design.network.readout, pooling="last"))),
        lambda design: replace(design, network=replace(design.network, encoding=replace(
            design.network.encoding, scale=1.5 * design.network.encoding.scale))),
        lambda design: replace(design, technology=replace(design.technology, nfet=replace(
            design.technology.nfet, a_vt=3 * design.technology.nfet.a_vt))),
        lambda design: replace(design, technology=replace(design.technology, pfet=replace(
            design.technology.pfet, response=((1e-9, 1.4),)))),
        lambda design: replace(design, calibration=replace(design.calibration, leakage=2 * design.calibration.leakage)),
    ],
)  # fmt: skip
def test_settings_hold_all_that_a_chip_depends_on(trial, change):
    assert run_settings(replace(trial, design=change(trial.design))) != run_settings(trial)


def test_ranges_of_supply_and_temperature_are_settings_where_they_are_not_the_usual_ones(trial):
    """So a folder of a version without them goes on, and chips of other ranges are others."""
    drawn = replace(trial, plan=replace(trial.plan, kind="all"))
    wide = replace(drawn, plan=replace(drawn.plan, celsius=(-40.0, 125.0)))
    assert "celsius" not in run_settings(drawn)["variation"]
    assert run_settings(wide)["variation"]["celsius"] == [-40.0, 125.0]
    text = format_text(summary_page(wide.design, wide.technology, summarize_run(wide, run_chips(wide, (0, 1)), SPECS)))
    assert "(-40 to 125 C, 95 to 105 % of the supply)" in " ".join(" ".join(text).split())


class Deaf:
    def submit(self, work, trial, numbers, engine):
        return Future()


def test_an_executor_that_never_answers_times_out(trial, monkeypatch):
    monkeypatch.setattr(workers, "_POLL", 0.01)
    found = list(run_on(Deaf(), trial, range(3), 1, 0.02))
    assert {record.reason for record in found} == {FailureKind.TIMEOUT.value}


def run_into(folder, trial, execute, stop_width=None):
    with open_store(folder, run_settings(trial)) as store:
        return run_montecarlo(trial, store, execute, SPECS, stop_width, quiet)


def test_an_interrupted_run_ends_the_same(trial, records, tmp_path):
    wanted = run_into(tmp_path / "whole", trial, lambda numbers: iter(run_chips(trial, tuple(numbers))))

    def broken(numbers):
        yield from run_chips(trial, tuple(numbers)[:3])
        raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            run_into(tmp_path / "broken", trial, broken)
    found = run_into(tmp_path / "broken", trial, lambda numbers: iter(run_chips(trial, tuple(numbers))[::-1]))
    assert found == wanted
    lines = [(tmp_path / name / "chips.jsonl").read_text().splitlines() for name in ("whole", "broken")]
    assert sorted(lines[0]) == sorted(lines[1])
    summaries = [(tmp_path / name / "summary.json").read_bytes() for name in ("whole", "broken")]
    assert summaries[0] == summaries[1]


def test_more_chips_go_on_where_fewer_ended(trial, tmp_path):
    fewer = replace(trial, plan=replace(trial.plan, chips=5))
    run_into(tmp_path, fewer, lambda numbers: iter(run_chips(fewer, tuple(numbers))))
    asked = []

    def rest(numbers):
        asked.extend(numbers)
        return iter(run_chips(trial, tuple(numbers)))

    run_into(tmp_path, trial, rest)
    assert asked == list(range(5, 20))


def test_a_run_is_not_made_smaller(trial, tmp_path):
    run_into(tmp_path, trial, lambda numbers: iter(run_chips(trial, tuple(numbers))))
    before = (tmp_path / SUMMARY_FILE).read_bytes()
    fewer = replace(trial, plan=replace(trial.plan, chips=7))
    with pytest.raises(InputError, match="holds 20 chips, so --chips must be at least 20, not 7; for fewer choose"):
        run_into(tmp_path, fewer, lambda numbers: iter(()))
    assert (tmp_path / SUMMARY_FILE).read_bytes() == before


def test_a_cube_of_another_size_is_another_run(trial, tmp_path):
    cube = replace(trial, plan=replace(trial.plan, sampling="lhs"))
    run_into(tmp_path, cube, lambda numbers: iter(run_chips(cube, tuple(numbers))))
    more = replace(cube, plan=replace(cube.plan, chips=40))
    with pytest.raises(InputError, match=r"holds a run with another variation\.chips: 20, not 40"):
        run_into(tmp_path, more, lambda numbers: iter(()))


def test_a_run_stops_when_it_knows_enough(trial, tmp_path):
    plan = replace(trial.plan, chips=400, kind="none")
    many = replace(trial, plan=plan)
    ran = []

    def count(numbers):
        ran.extend(numbers)
        return (replace(behavioral_record(many, many.chip(0)), chip=number) for number in numbers)

    summary = run_into(tmp_path, many, count, stop_width=0.1)
    # All pass: the interval of n of n at 1 - 0.05 / 4 is 1 - 0.00625^(1/n), 0.097 at 50 chips.
    assert summary.chips == len(ran) == 50


def test_summary_is_what_the_records_say(trial, records, tmp_path):
    summary = run_into(tmp_path, trial, lambda numbers: iter(run_chips(trial, tuple(numbers))))
    accuracies = [record.behavioral.accuracy for record in records]
    assert summary.chips == 20 and summary.failed == 0
    assert summary.accuracy.mean == pytest.approx(np.mean(accuracies), rel=1e-12)
    assert summary.accuracy.quantiles["50"] == pytest.approx(np.median(accuracies), rel=1e-12)
    assert summary.yield_.passed == sum(value >= 0.9 for value in accuracies)
    assert summary.software_accuracy == 1.0
    assert summary.accuracy.sd > 0
    assert (summary.engine, summary.reasons, summary.paired) == ("behavioral", {}, None)


def test_a_run_whose_simulations_all_failed_has_no_figures(trial, records):
    failed = [replace(record, status="failed", reason="no convergence", behavioral=None) for record in records[:2]]
    summary = summarize_run(trial, failed, SPECS)
    assert (summary.chips, summary.failed, summary.reasons) == (2, 2, {"no convergence": 2})
    assert summary.accuracy is None and not summary.figures and summary.yield_.passed == 0
    assert not {"accuracy", "paired"} & {*json_object(summary)}


def test_default_spec_is_near_nominal(trial):
    spec = default_spec(trial)
    assert spec.metric == "accuracy" and spec.at_least and 0.9 <= spec.limit <= 0.95


def test_no_default_spec_where_any_chip_would_meet_it(trial):
    wrong = replace(trial.test_set, y=(trial.test_set.y + 1) % trial.design.network.readout.width)
    with pytest.raises(
        InputError, match="the nominal circuit answers .* % right, .* say with --spec what a chip must do"
    ):
        default_spec(replace(trial, test_set=wrong))


def test_contributions_divide_all_transistors(trial):
    figures = chip_figures(trial, 0)
    groups = [len({division(device) for device in trial.devices}) for division in DIVISIONS.values()]
    assert len(figures["accuracy"]) == 2 + sum(groups)


def test_shares_of_a_sum_are_its_variances(trial):
    """Y = sum over groups of independent normals: each share is its variance, R2 is 1; 4 sigma of 3000 pairs."""
    rng = np.random.default_rng(0)
    groups = [sorted({division(device) for device in trial.devices}) for division in DIVISIONS.values()]
    sds = np.arange(1, len(groups[0]) + 1.0)
    own, other = (rng.normal(size=(3000, len(sds))) * sds for _ in range(2))
    columns = [own.sum(axis=1), other.sum(axis=1)]
    for k in range(len(sds)):
        mixed = other.copy()
        mixed[:, k] = own[:, k]
        columns.append(mixed.sum(axis=1))
    columns += [columns[1]] * len(groups[1])  # groups that change nothing
    blocks, kinds = share_variance(trial.devices, np.stack(columns, axis=1), seed=0).values()
    for share in blocks.shares:
        wanted = sds[groups[0].index(share.group)] ** 2 / (sds**2).sum()
        assert share.value == pytest.approx(wanted, abs=4 / 3000**0.5)
        assert share.low <= share.value <= share.high
    assert blocks.r2 == pytest.approx(1.0, abs=0.1)
    assert kinds.r2 == 0.0


def test_chips_that_make_intervals_of_shares_say_something(trial):
    """An interval over all that a share may be tells nothing; it narrows as one over the square root of the chips."""
    rng = np.random.default_rng(1)
    groups = [len({division(device) for device in trial.devices}) for division in DIVISIONS.values()]

    def widest(pairs):
        own, other = rng.normal(size=(2, pairs, groups[0]))
        mixed = [np.where(np.arange(groups[0]) == k, own, other).sum(axis=1) for k in range(groups[0])]
        columns = [own.sum(axis=1), other.sum(axis=1), *mixed, *[other.sum(axis=1)] * groups[1]]
        found = share_variance(trial.devices, np.stack(columns, axis=1), seed=0)["block"]
        return max(share.high - share.low for share in found.shares), found.chips_needed

    width, needed = widest(4)
    assert width > 1
    assert needed == 100 * np.ceil(8 * width**2 / 100)
    width, none = widest(needed // 2)
    assert width < 1 and none == 0


def said(trial, summary):
    """The words of the page in the terminal, one space between them."""
    return " ".join(" ".join(format_text(summary_page(trial.design, trial.technology, summary))).split())


def test_shares_of_too_few_chips_are_no_figures(trial):
    share = VarianceShare("cells", 40, value=0.4, low=-0.6, high=1.9)
    few = Division(1.3, (share,), chips_needed=400)
    enough = Division(0.9, (replace(share, low=0.1, high=0.7),), chips_needed=0)
    summary = summarize_run(trial, run_chips(trial, tuple(range(4))), [parse_spec("accuracy>=0.1")])
    text = said(trial, replace(summary, contributions={"accuracy": Contribution(describe([1.0]), few, enough)}))
    assert "Too few chips, with intervals wider than 0 to 100 %, and so not shown: accuracy (about 400 chips" in text
    assert "190.0 %" not in text and "[10.0 %, 70.0 %]" not in text
    text = said(trial, replace(summary, contributions={"accuracy": Contribution(describe([1.0]), enough, enough)}))
    assert "block cells 40 40.0 % [10.0 %, 70.0 %] block R2 90.0 %" in text and "Too few" not in text


def test_contributions_of_a_trial(trial):
    found = run_contributions(trial, 2, quiet)
    shares = found["state_agreement"].block.shares
    assert sum(share.transistors for share in shares) == len(trial.devices)
    with pytest.raises(InputError, match="needs at least 20 chips, not 10"):
        run_contributions(replace(trial, plan=replace(trial.plan, chips=10)), 1, quiet)


@pytest.mark.ngspice
def test_both_engines_on_the_same_chips(trial):
    few = replace(trial, engine="ngspice", plan=replace(trial.plan, chips=2), test_set=trial.test_set.take(2, 0))
    found = by_chip(run_local(few, range(2), 2, 120.0))
    assert [record.status for record in found] == ["ok", "ok"]
    for record in found:
        assert record.simulated.state_agreement == pytest.approx(record.behavioral.state_agreement, abs=0.1)
        assert record.simulated.power == pytest.approx(record.behavioral.power, rel=0.05, abs=0)
    assert found[0] == run_chip(few, 0)


@pytest.mark.ngspice
def test_a_simulation_that_takes_too_long_is_an_outcome(trial):
    slow = replace(trial, engine="ngspice", plan=replace(trial.plan, chips=1))
    (record,) = run_local(slow, [0], 1, 0.5)
    assert record.status == "failed" and record.reason == FailureKind.TIMEOUT.value
    assert record.behavioral == run_chip(replace(slow, engine="behavioral"), 0).behavioral


def test_a_nominal_circuit_that_is_another_network_is_said(trial):
    """A yield of what was compiled says nothing about what was trained."""
    records = run_chips(trial, tuple(range(20)))
    summary = summarize_run(trial, records, [parse_spec("accuracy>=0.1")])
    assert summary.nominal.task_agreement >= 0.9
    warning = "of the nominal circuit's decisions are the software's"
    assert warning not in said(trial, summary)
    text = said(trial, replace(summary, nominal=replace(summary.nominal, task_agreement=1 / 3)))
    assert f"Only 33.3 % {warning}; cosim compare says why." in text
    assert f"of the software {100 * summary.software_accuracy:.1f} %." in text


def test_a_low_yield_comes_with_what_helps_and_its_commands(trial):
    """Chosen by what was found; the accuracy that the limit stands under is beside the yield."""
    records = run_chips(trial, tuple(range(20)))
    summary = summarize_run(trial, records, [parse_spec("accuracy>=0.1")])
    nominal, software = (f"{100 * one:.1f} %" for one in (summary.nominal.accuracy, summary.software_accuracy))
    assert f"Accuracy of the nominal circuit {nominal}, of the software {software}." in said(trial, summary)
    low = replace(summary.yield_, value=0.37)
    stuck = UnresetCount(62, 3, {"layer0.1": 62})
    cures = tuple(Cure(name, 0.9, 0.7832, 0.9675, 45, 50) for name in ("area", "trim"))
    poor = replace(summary, yield_=low, unreset=stuck, cures=cures)
    page = summary_page(trial.design, trial.technology, poor, "own.pt")
    lines = format_text(page)
    assert max(len(line) for line in lines if not line.lstrip().startswith("cosim ")) <= 100  # a command is one line
    text = " ".join(" ".join(lines).split())
    place = f"--technology {summary.technology}"
    for wanted in (
        "62 chips have a cell that does not reset (layer0.1 in 62): it stays on through the reset",
        "and does not count as working; 3 of them would keep every limit.",
        "What helps 3 times the area of all devices: 45 of 50 chips [78.3 %, 96.8 %], by the equations",
        f"cosim montecarlo own.pt {place} --area",
        f"set chip by chip: 45 of 50 chips [78.3 %, 96.8 %], by the equations cosim trim own.pt {place}",
        f"then trim bits, until 95 % of the chips work cosim harden own.pt {place}",
    ):
        assert wanted in text, wanted
    assert ("the nominal circuit loses" in text) == (summary.software_accuracy - summary.nominal.accuracy > 0.05)
    bad = replace(summary, yield_=low, software_accuracy=summary.nominal.accuracy + 0.2)
    assert advise(bad)[0] == ("the nominal circuit loses 20.0 points; why", f"cosim compare NETWORK {place}")
    slow = replace(bad, variation=replace(bad.variation, kind="global"))
    assert not any("area" in what for what, _ in advise(slow))  # a whole chip is no better with larger devices
    assert advise(replace(summary, yield_=replace(low, value=0.95))) == []
