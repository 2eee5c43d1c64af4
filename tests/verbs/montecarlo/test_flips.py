"""A bit that flips in any kept file of a store, or of a folder of inferences, is seen: no figure comes of it."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.claim import own_folder
from cosim.base.errors import InputError
from cosim.base.store import write_results
from cosim.engines.engine import Inference
from cosim.engines.simulation import inference
from cosim.engines.simulation.inference import deck_hash
from cosim.engines.simulation.read import ReadPlan
from cosim.verbs.montecarlo.keep import load_trial, read_kept
from cosim.verbs.montecarlo.run import CONTRIBUTIONS_FILE, SUMMARY_FILE, run_settings
from cosim.verbs.montecarlo.store import open_store, read_sealed, read_store
from cosim.verbs.verify.command import check_kept

PLAN = ReadPlan((("a",), ("b",)), ("o0", "o1"), (), 0.5, np.arange(5.0), (0.0, 5.0))


@pytest.fixture
def folder(trial, make_store, tmp_path):
    """A store with contributions; inferences stand in it, too, as in the folders of other verbs."""
    make_store(tmp_path / "run", replace(trial, plan=replace(trial.plan, chips=5)))
    contributions = {"power": {"block": {"r2": 0.9, "shares": [{"name": "readout", "value": 0.25}]}}}
    write_results(tmp_path / "run", {CONTRIBUTIONS_FILE: {"chips": 5, "contributions": contributions}})
    (tmp_path / "run" / "inferences").mkdir()
    rng = np.random.default_rng(2)
    for deck in ("* first\n", "* second\n"):
        found = Inference(rng.integers(0, 2, (5, 2)).astype(np.int16), rng.normal(size=(5, 2)), 1e-7)
        inference._save(tmp_path / "run" / "inferences", deck_hash(deck), found)
    return tmp_path / "run"


def trusted(folder):
    """All that any verb takes from these files, without compiling; raises InputError where it refuses one."""
    found = [read_store(folder), read_kept(folder), read_sealed(folder / SUMMARY_FILE)]
    found.append(read_sealed(folder / CONTRIBUTIONS_FILE))
    for deck in ("* first\n", "* second\n"):
        kept = inference._load(folder / "inferences", deck_hash(deck), PLAN)
        if kept is None:
            raise InputError("runs again")
        found.append((kept.states.tolist(), kept.readout.tolist(), kept.power_w))
    return found


def flips(folder, count):
    """(file, its content, its content with one bit flipped), `count` times, each file as often."""
    rng = np.random.default_rng(15)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".cosim"]
    for k in range(count):
        path = files[k % len(files)]
        content = path.read_bytes()
        changed, bit = bytearray(content), int(rng.integers(0, 8 * len(content)))
        changed[bit // 8] ^= 1 << bit % 8
        yield path, content, bytes(changed)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_flipped_bit_changes_a_figure(folder, count):
    wanted = trusted(folder)
    accepted = []
    names = set()
    for path, content, changed in flips(folder, count):
        names.add(path.name)
        path.write_bytes(changed)
        try:
            found = trusted(folder)
            accepted.append((path.name, found == wanted))
        except InputError:
            pass
        wrong = {name for name, fault in check_kept(folder) if fault}
        assert wrong & {path.name, path.parent.name}, f"verify does not see it: {path.name}"
        path.write_bytes(content)
    assert len(names) == 10
    assert accepted == []
    assert not [name for name, fault in check_kept(folder) if fault]
    assert run_settings(load_trial(folder)) == wanted[0][0]


def test_resuming_keeps_only_what_is_whole(folder):
    settings, records = read_store(folder)
    chips = folder / "chips.jsonl"
    for path, content, changed in flips(folder, 100):
        if path != chips:
            continue
        path.write_bytes(changed)
        with open_store(folder, settings) as store:
            assert store.records == {number: records[number] for number in store.records}
            assert len(store.records) == len(records) - 1
        assert read_store(folder)[1] == store.records
        path.write_bytes(content)


def test_a_marker_that_cannot_be_read_costs_no_results(folder):
    (folder / ".cosim").write_bytes(b"\xff\xfe")
    assert trusted(folder)
    with own_folder(folder, "montecarlo"):
        assert (folder / ".cosim").read_text() == "montecarlo\n"
