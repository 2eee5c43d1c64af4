"""Two runs of chips: the same, other areas, other seeds, and one cell of which is known that it did it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.base.seal import seal_json, seal_line, unseal_json, unseal_line
from cosim.base.store import settings_key
from cosim.results.intervals import IntervalEnds
from cosim.results.page import format_text
from cosim.results.paired import tango_interval
from cosim.verbs.diff.chips import units_of
from cosim.verbs.diff.page import difference_page
from cosim.verbs.diff.pair import diff_folders
from cosim.verbs.montecarlo.store import read_sealed
from cosim.verbs.montecarlo.trial import Trial

SPEC = "accuracy>=0.9"


def shown(difference):
    """The text of the terminal, without its lines' ends."""
    return " ".join(" ".join(format_text(difference_page(difference, picture=False))).split())


@pytest.fixture
def wide(trial, make_store, tmp_path):
    """The run of `trial`."""
    make_store(tmp_path / "a", trial, SPEC)
    return tmp_path / "a"


@pytest.fixture
def deviating(trial, make_store, monkeypatch, tmp_path):
    """(unit, factor) -> the same run with the draws of one unit so many times as large: of another area."""
    drawn = Trial.chip

    def make(unit, factor):
        def chip(self, number):
            found, places = drawn(self, number), units_of(trial)[unit]
            scale = np.ones(len(found.devices))
            scale[places] = factor
            single = [(values.astype(np.float32)).astype(np.float64) for values in
                      (found.vt_shift * scale, found.beta_factor**scale)]  # fmt: skip
            return replace(found, vt_shift=single[0], beta_factor=single[1])

        with monkeypatch.context() as patch:
            patch.setattr(Trial, "chip", chip)
            make_store(tmp_path / "b", trial, SPEC)
        return tmp_path / "b"

    return make


def test_a_run_and_itself(wide):
    found = diff_folders(wide, wide)
    assert found.nothing and not found.settings
    assert [change.contrast.pairs for change in found.changes] == [20] * 5
    assert "nothing differs" in shown(found)


def test_a_chip_of_other_samples_is_refused(wide):
    """Under a checksum that fits."""
    path, key = wide / "chips.jsonl", settings_key(read_sealed(wide / "run.json"))
    first, *rest = path.read_bytes().splitlines(keepends=True)
    record = json.loads(unseal_line(first, key))
    record["behavioral"]["decisions"].pop()
    path.write_bytes(b"".join([seal_line(record, key), *rest]))
    with pytest.raises(InputError, match=r"chips\.jsonl: chip 0 must have 40 decisions, one for each sample; the same"):
        diff_folders(wide, wide)


def test_a_summary_of_another_engine_is_refused(wide):
    """Under a checksum that fits."""
    path = wide / "summary.json"
    path.write_bytes(seal_json(json.loads(unseal_json(path.read_bytes())) | {"engine": "other"}))
    with pytest.raises(InputError, match=r"summary\.json: engine must be behavioral, that of run\.json, not 'other'"):
        diff_folders(wide, wide)


@pytest.mark.parametrize("unit", ["layer0.1", "layer1.0"])
def test_the_one_cell_that_differs_is_named(wide, deviating, unit):
    """Draws of one cell are four times as large in B, of a sixteenth of its area; all others are those of A."""
    found = diff_folders(wide, deviating(unit, 4.0))
    assert len(found.chips) >= 2  # there is something to name
    assert {turn.cause.unit for turn in found.chips} == {unit}
    assert all(turn.cause.alone for turn in found.chips)  # nothing else differs, so it turns them alone
    assert all(turn.cause.device.split(".")[0].endswith(unit.replace(".", "_")) or "bias" in turn.cause.device
               for turn in found.chips)  # fmt: skip
    assert [(one.unit, one.count, one.of) for one in found.units] == [(unit, len(found.chips), len(found.chips))]
    assert f"{unit} turns it alone" in shown(found)


def test_the_larger_area_wins_on_the_same_chips(wide, trial, make_store, tmp_path):
    make_store(tmp_path / "b", replace(trial, plan=replace(trial.plan, area=8.0)), SPEC)
    found = diff_folders(wide, tmp_path / "b")
    assert [(one.name, one.a, one.b) for one in found.settings] == [("variation.area", "0.1", "8.0")]
    assert (found.pairings[0].paired, found.pairings[0].apart) == (20, "")
    counted = next(change.contrast for change in found.changes if change.name == "yield")
    turned = [turn for turn in found.chips if turn.b == "counts"]
    assert (counted.up, counted.down) == (len(turned), len(found.chips) - len(turned))
    assert counted.interval == tango_interval(counted.up, counted.down, 20)
    assert counted.interval.low > 0 and counted.p < 0.05
    assert any("smaller with more area" in note for note in found.notes)
    assert all(turn.cause is not None for turn in found.chips)


def test_other_seeds_are_not_paired(wide, trial, make_store, tmp_path):
    make_store(tmp_path / "b", replace(trial, plan=replace(trial.plan, seed=3)), SPEC)
    found = diff_folders(wide, tmp_path / "b")
    assert found.pairings[0].paired == 0 and "another seed" in found.pairings[0].apart
    assert {change.contrast.method for change in found.changes} == {"newcombe", "welch"}
    assert not found.chips and not found.nothing
    assert "no chips are paired" in shown(found)


def test_other_networks_are_paired_without_causes(wide, designs, trial, make_store, tmp_path):
    make_store(tmp_path / "b", replace(trial, design=designs[1]), SPEC)
    found = diff_folders(wide, tmp_path / "b")
    assert found.pairings[0].paired == 20
    assert any("no unit is named as a cause: the runs have another network" in note for note in found.notes)
    assert all(turn.cause is None for turn in found.chips)
    assert len(found.chip_flips) > 0


def test_one_limit_for_both(wide, trial, make_store, tmp_path):
    make_store(tmp_path / "b", trial, "accuracy>=0.99")
    own = diff_folders(wide, tmp_path / "b")
    assert any("--spec gives both one" in note for note in own.notes) and own.chips
    both = diff_folders(wide, tmp_path / "b", ["accuracy>=0.7"])
    assert not both.chips and both.changes[0].contrast.same


def test_more_chips_of_one_run(wide, trial, make_store, tmp_path):
    make_store(tmp_path / "b", replace(trial, plan=replace(trial.plan, chips=24)), SPEC)
    found = diff_folders(wide, tmp_path / "b")
    assert (found.pairings[0].paired, found.pairings[0].only_b) == (20, 4)
    assert not found.unchanged and all(change.contrast.same for change in found.changes)


def test_a_cell_that_does_not_reset_is_why(wide, trial, make_store, tmp_path):
    """Chip 3 of B keeps its draws, but its record says that a cell does not reset: its draws name nobody."""

    def unreset(record):
        if record.chip != 3:
            return record
        return replace(record, behavioral=replace(record.behavioral, accuracy=1.0, unreset=("layer1.1",)))

    def right(record):
        if record.chip != 3:
            return record
        return replace(record, behavioral=replace(record.behavioral, accuracy=1.0, unreset=()))

    make_store(tmp_path / "b", trial, SPEC, change=unreset)
    make_store(tmp_path / "c", trial, SPEC, change=right)
    (turn,) = diff_folders(tmp_path / "c", tmp_path / "b").chips
    assert (turn.chip, turn.a, turn.b) == (3, "counts", "fails")
    assert turn.why == "layer1.1 does not reset" and turn.cause is None


def test_intervals_are_bounds_of_plain_numbers(wide, trial, make_store, tmp_path):
    make_store(tmp_path / "b", replace(trial, plan=replace(trial.plan, area=8.0)), SPEC)
    for change in diff_folders(wide, tmp_path / "b").changes:
        assert isinstance(change.contrast.interval, IntervalEnds)
        assert {type(end) for end in change.contrast.interval} == {float}
        assert change.contrast.interval.low <= change.contrast.difference <= change.contrast.interval.high
