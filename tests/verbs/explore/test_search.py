"""Proposals, fronts and what is kept of a search, on circuits whose figures are known in closed form."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.base.seal import seal_line, unseal_line
from cosim.results.metrics import Estimate
from cosim.verbs.explore.search import (
    CHECKS_FILE,
    SEARCH_FILE,
    TRIALS_FILE,
    Search,
    explore,
    open_search,
    propose,
)
from cosim.verbs.explore.study import Exploration, Knob, OnTransistors, SearchTrial, front_of, violation, worth

pytest.importorskip("optuna")
OBJECTIVES = ("yield", "power")
KNOBS = (Knob("i-unit", "A", 1e-9, 1e-10, 1e-8, log=True), Knob("units", "", 8, values=(4, 8, 16)))
ABOUT = Exploration(
    "net", "0123456789abcdef", "net.npz", {}, KNOBS, OBJECTIVES, ("accuracy>=0.4",), 0.5, 3,
    trials=(), front=(), unvaried=(), notes=(), made_with={},
)  # fmt: skip


def tried(number, values, share, watts, **more):
    figures = {"yield": Estimate(share, share - 0.1, min(share + 0.1, 1.0)), "power": Estimate(watts)}
    return SearchTrial(number, f"trial-{number:03d}", values, figures, **more)


def run(number, values):
    """Yield rises with the current and with the units until it is 1; power is their product."""
    current, units = values["i-unit"], values["units"]
    return tried(number, values, min(1.0, 0.5 * np.log10(current / 1e-10) + 0.02 * units), current * units)


def check(one):
    """Transistors refuse what is under 1 nA."""
    missed = "accuracy 30.0 %" if one.values["i-unit"] < 1e-9 else ""
    return OnTransistors("batch", 5, {"accuracy": Estimate(0.3 if missed else 0.8, 0.1, 0.9)}, missed)


def search(trials, run=run, check=check):
    return Search(ABOUT, trials, 5, run, check)


@pytest.fixture
def kept(tmp_path):
    return open_search(tmp_path, {"search": "one"})


def test_a_front_is_what_no_choice_beats():
    rng = np.random.default_rng(4)
    some = [tried(k, {}, *pair) for k, pair in enumerate(np.round(rng.uniform(size=(60, 2)), 1).tolist())]
    front = front_of(some, OBJECTIVES, 0.5)
    assert front and all(one.figures["yield"].value >= 0.5 for one in front)
    assert [one.figures["yield"].value for one in front] == sorted(o.figures["yield"].value for o in front)[::-1]
    values = {worth(one, OBJECTIVES) for one in front}
    assert len(values) == len(front)  # of equal ones the first
    for one in some:
        mine = worth(one, OBJECTIVES)
        beaten = any(theirs != mine and all(np.array(theirs) >= mine) for theirs in values)
        assert beaten or mine in values or one.figures["yield"].value < 0.5


def test_violations():
    good = tried(0, {}, 0.6, 1.0)
    assert violation(good, 0.5) == 0
    assert violation(good, 0.9) == pytest.approx(0.3)
    refuted = replace(good, transistors=OnTransistors("batch", 5, {}, "accuracy 30.0 %"))
    assert violation(refuted, 0.5) == 1
    assert violation(SearchTrial(0, "trial-000", {}, {}, "no such current"), 0.5) == 2
    assert front_of([refuted], OBJECTIVES, 0.5) == ()


def test_proposals_follow_from_seed_and_trials_alone():
    """The first is the start; all are new, inside their ranges and of three digits."""
    some = []
    for number in range(18):
        values = propose(ABOUT, some)
        assert values == propose(ABOUT, some)
        assert values not in [one.values for one in some]
        assert 1e-10 <= values["i-unit"] <= 1e-8 and values["units"] in (4, 8, 16)
        assert float(f"{values['i-unit']:.3g}") == values["i-unit"]
        some.append(run(number, values))
    assert some[0].values == {"i-unit": 1e-9, "units": 8}
    assert propose(replace(ABOUT, seed=4), some[:5]) != some[5].values


def test_a_space_ends():
    """Three circuits, of which one cannot be run."""
    about = replace(ABOUT, knobs=KNOBS[1:])
    none = SearchTrial(1, "trial-001", {"units": 16}, {}, "too many")
    some = [tried(0, {"units": 8}, 1.0, 1.0), none, tried(2, {"units": 4}, 1.0, 1.0)]
    assert propose(about, some[:2]) == {"units": 4}
    assert propose(about, some) is None
    assert propose(about, [none]) in ({"units": 4}, {"units": 8})


def test_a_search_learns_what_transistors_refute(kept):
    """By the equations 4 units have a yield of 0.5 from 10^0.84 times 0.1 nA on, 0.69 nA; transistors leave 1 nA, where
    power is 4 nW in their unit. 40 trials come within 1.3 of it, and most of the later ones look above 1 nA."""
    found = explore(search(40), kept)
    front = front_of(found, OBJECTIVES, 0.5)
    assert all(one.transistors and not one.refuted for one in front)
    assert any(one.refuted for one in found)
    assert all(one.values["i-unit"] >= 1e-9 for one in front)
    assert min(one.figures["power"].value for one in front) < 1.3 * 4e-9
    later = [one.values["i-unit"] for one in found[20:]]
    assert sum(value < 1e-9 for value in later) < sum(value >= 1e-9 for value in later)


def test_a_search_goes_on_where_it_stopped(tmp_path):
    """Stopped in a trial and in a check, with a damaged line, and further than first asked for: the same trials."""
    broken = tmp_path / "broken"
    for folder in (broken, tmp_path / "whole"):
        folder.mkdir()
    whole = explore(search(14), open_search(tmp_path / "whole", {"search": "one"}))

    def stopping(number, values):
        if number == 7:
            raise KeyboardInterrupt
        return run(number, values)

    with pytest.raises(KeyboardInterrupt):
        explore(search(9, stopping), open_search(broken, {"search": "one"}))
    with (broken / TRIALS_FILE).open("ab") as file:
        file.write(b'{"number":7,"values":{}')
    assert len(explore(search(9), open_search(broken, {"search": "one"}))) == 9
    assert explore(search(14), open_search(broken, {"search": "one"})) == whole
    for name in (TRIALS_FILE, CHECKS_FILE):
        lines = [(folder / name).read_bytes().splitlines() for folder in (broken, tmp_path / "whole")]
        assert set(lines[0]) >= set(lines[1])  # the end of nine trials was a round, too

    def never(number, values):
        raise AssertionError

    assert explore(search(14, never), open_search(broken, {"search": "one"})) == whole


def test_another_search_is_refused(tmp_path, kept):
    with pytest.raises(InputError, match=r'holds a run with another search: "one", not "two"; choose another'):
        open_search(tmp_path, {"search": "two"})


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("lose", [damage, Path.unlink])
def test_a_damaged_search_file_costs_no_trials(tmp_path, kept, lose):
    """It is written anew from the options of this search; another search is refused, and removes no line of this."""
    whole = explore(search(3), kept)
    before = {name: (tmp_path / name).read_bytes() for name in (SEARCH_FILE, TRIALS_FILE, CHECKS_FILE)}
    lose(tmp_path / SEARCH_FILE)
    with pytest.raises(InputError, match=r"search.json is missing, damaged .*, and no line of trials.jsonl is of"):
        open_search(tmp_path, {"search": "two"})
    assert explore(search(3), open_search(tmp_path, {"search": "one"})) == whole
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


@pytest.mark.parametrize(
    "change",
    [
        {"values": {"i-unit": 1e-9}},
        {"values": {"i-unit": 1.0, "units": 8}},
        {"values": {"i-unit": 1e-9, "units": 5}},
        {"figures": {"yield": {"value": 1.0}}},
        {"figures": 3},
        {"number": "one"},
    ],
)
def test_a_line_that_is_no_trial_of_this_search_runs_again(tmp_path, kept, change):
    """Under a checksum that fits: of another version, or of someone's own script."""
    whole = explore(search(3), kept)
    lines = (tmp_path / TRIALS_FILE).read_bytes().splitlines(keepends=True)
    plain = json.loads(unseal_line(lines[1], kept[0]._key))
    plain |= change
    (tmp_path / TRIALS_FILE).write_bytes(b"".join([lines[0], seal_line(plain, kept[0]._key), lines[2]]))
    assert explore(search(3), open_search(tmp_path, {"search": "one"})) == whole
    assert explore(search(3), open_search(tmp_path, {"search": "one"})) == whole


@pytest.mark.parametrize("line", [{"number": 0}, {"values": {}}, {"number": 0, "values": [], "figures": {}}, {"a": 1}])
def test_a_line_without_a_record_is_none(tmp_path, kept, line):
    (tmp_path / TRIALS_FILE).write_bytes(seal_line(line, kept[0]._key))
    assert open_search(tmp_path, {"search": "one"})[0].records == {}
