"""Two runs of samples as their verbs leave them, and folders that are none."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.claim import own_folder
from cosim.base.errors import InputError
from cosim.base.seal import seal_json, seal_npz, unseal_json
from cosim.base.settings import RunSettings, write_settings
from cosim.compiler.design import Condition
from cosim.results.paired import mcnemar
from cosim.technology.conditions import at
from cosim.variation.draws import Chip, VariationPlan
from cosim.verbs.diff.difference import diff_sampled
from cosim.verbs.diff.pair import diff_folders, diff_runs
from cosim.verbs.diff.runs import DecisionRun, read_run
from cosim.verbs.montecarlo.keep import Places
from cosim.verbs.montecarlo.trial import Trial


def contrast(found, name):
    (one,) = (change.contrast for change in found.changes if change.name == name)
    return one


def test_two_seeds_of_a_training_are_paired_by_sample(simulate, designs, samples, tmp_path):
    """The flips are those of the networks' own decisions, and McNemar counts which way they went."""
    a, b = (simulate(tmp_path / name, design, samples) for name, design in zip("ab", designs, strict=True))
    found = diff_folders(a, b)
    assert "network" in {setting.name for setting in found.settings}
    assert found.pairings[0].paired == 40
    tables = [read_run(folder).tables[""] for folder in (a, b)]
    differs = np.flatnonzero(tables[0].decisions != tables[1].decisions)
    assert [flip.sample for flip in found.flips] == samples.indices[differs].tolist()
    right = [table.decisions == samples.y for table in tables]
    up, down = int((right[1] & ~right[0]).sum()), int((right[0] & ~right[1]).sum())
    accuracy = contrast(found, "accuracy")
    assert (accuracy.up, accuracy.down, accuracy.p) == (up, down, mcnemar(up, down))
    assert accuracy.interval.high < 0  # classes are what the first network decides
    assert len(found.units) > 0  # the networks have units of the same names


def test_the_unit_whose_states_move_is_named(simulate, designs, samples, tmp_path):
    """The last layer feeds nothing, so a chip on which only its first unit deviates moves no other one."""
    devices = Trial(designs[0], samples, VariationPlan("local", 0, 1)).devices
    shift = np.array([0.06 if device.name.startswith("network.cell_layer1_0.2") else 0.0 for device in devices])
    technology = designs[0].technology
    chip = Chip(0, devices, shift, np.ones(len(devices)), technology.supply, technology.celsius)
    a, b = simulate(tmp_path / "a", designs[0], samples), simulate(tmp_path / "b", designs[0], samples, chip)
    found = diff_folders(a, b)
    assert [moved.unit for moved in found.units] == ["layer1.0"]
    assert 0 < found.units[0].count <= found.units[0].of == 200
    assert not found.settings and not found.nothing


def test_samples_drawn_otherwise_and_other_test_sets(simulate, designs, samples, tmp_path):
    a = simulate(tmp_path / "a", designs[0], samples.select(np.arange(30)))
    b = simulate(tmp_path / "b", designs[0], samples.select(np.arange(39, 9, -1)))
    found = diff_folders(a, b)
    assert (found.pairings[0].paired, found.pairings[0].only_a, found.pairings[0].only_b) == (20, 10, 10)
    assert not found.flips and all(change.contrast.same for change in found.changes)
    c = simulate(tmp_path / "c", designs[0], replace(samples, x=samples.x[::-1].copy()))
    found = diff_folders(a, c)
    assert found.pairings[0].paired == 0 and "30 samples of the same number are not the same" in found.pairings[0].apart
    assert {change.contrast.pairs for change in found.changes} == {0} and not found.flips


def test_power_at_another_supply(meter, designs, samples, tmp_path):
    """Every block of a linear supply takes V_DD times its current, and currents stay, so power falls with V_DD."""
    design = designs[0]
    low = Condition(at(design.technology, supply=1.7))
    a, b = meter(tmp_path / "a", design, samples), meter(tmp_path / "b", design, samples, low)
    found = diff_folders(a, b)
    total = contrast(found, "behavioral power total")
    assert total.b / total.a == pytest.approx(1.7 / design.technology.supply, rel=1e-3)  # currents follow V_DD a little
    assert total.interval.high < 0 and total.down == 40
    assert ("supply_v", "1.8", "1.7") in {(one.name, one.a, one.b) for one in found.settings}


def test_conditions_are_paired_by_their_names(simulate, designs, samples, tmp_path):
    run = read_run(simulate(tmp_path / "a", designs[0], samples))
    table = run.tables[""]
    turned = replace(table, decisions=np.where(np.arange(40) < 3, 6, table.decisions), states=None)
    turned = replace(turned, wrong=turned.wrong + np.array([0, 0, 1, 0, 0, 0, 0]))
    plain = replace(table, states=None)
    found = diff_sampled(
        DecisionRun(run.facts, {"tt, 27 C": plain, "ss, 0 C": plain, "ff, 60 C": plain}),
        DecisionRun(run.facts, {"ss, 0 C": turned, "tt, 27 C": plain}),
    )
    assert {flip.where for flip in found.flips} <= {"ss, 0 C"} and found.flips
    assert [(one.things, one.paired, one.only_a) for one in found.pairings] == [
        ("conditions", 2, 1),
        ("samples", 40, 0),
    ]
    assert [(moved.unit, moved.count, moved.of) for moved in found.units] == [("layer0.2", 40, 400)]
    one, other = (DecisionRun(run.facts, {where: plain}) for where in ("", "ss, 0 C"))
    with pytest.raises(InputError, match="one is of all conditions"):
        diff_runs(one, other, (), Places(), lambda done, total: None)


def test_what_was_asked_stands_first_and_once(simulate, designs, samples, tmp_path):
    a, b = (simulate(tmp_path / name, design, samples) for name, design in zip("ab", designs, strict=True))
    for folder, corner in ((a, "tt"), (b, "ss")):
        options = {"corner": corner, "samples": 40}
        write_settings(folder, RunSettings("simulate", "0.1.0", "", {"network": "net.npz"}, options))
    found = diff_folders(a, b)
    assert (found.settings[0].name, found.settings[0].a, found.settings[0].b) == ("corner", "tt", "ss")
    assert not any("run.toml" in note for note in found.notes)


def test_points_of_two_sweeps(cosim_main, simulate, designs, samples, tmp_path):
    for name, design in zip("ab", designs, strict=True):
        with own_folder(tmp_path / name, "sweep"):
            simulate(tmp_path / name / "area=1", designs[0], samples)
            simulate(tmp_path / name / "area=2", design, samples)
    found = diff_folders(tmp_path / "a", tmp_path / "b")
    assert list(found.points) == ["area=1", "area=2"]
    assert found.points["area=1"].nothing and not found.points["area=2"].unchanged and not found.unchanged
    code, out, _ = cosim_main("diff", tmp_path / "a", tmp_path / "b")
    assert code == 0 and "area=1\nnothing differs." in out and "2 points paired" in out


def test_command_line(cosim_main, simulate, designs, samples, tmp_path):
    a, b = (simulate(tmp_path / name, design, samples) for name, design in zip("ab", designs, strict=True))
    code, out, err = cosim_main("diff", a, a, "--exit-code")
    assert (code, err) == (0, "") and "nothing differs" in out
    assert cosim_main("diff", a, b)[0] == 0
    code, out, _ = cosim_main("diff", a, b, "--exit-code", "-o", tmp_path / "page", "--json", tmp_path / "d.json")
    assert code == 1 and "Decisions that differ: " in out and "Tango's score interval" in out
    found = json.loads((tmp_path / "d.json").read_text())
    sealed = json.loads((tmp_path / "page" / "diff.json").read_text())
    assert len(sealed.pop("sha256")) == 16 and sealed == found
    page = (tmp_path / "page" / "diff.html").read_bytes()
    assert b"the results differ" in page and b"<script" not in page
    assert cosim_main("diff", a, b, "-o", tmp_path / "page")[0] == 0
    assert (tmp_path / "page" / "diff.html").read_bytes() == page  # the same runs give the same bytes
    code, _, err = cosim_main("diff", a, b, "-o", a)
    assert code == 2 and "belongs to cosim simulate" in err


def test_folders_that_are_no_finished_run(simulate, designs, samples, tmp_path):
    good = simulate(tmp_path / "good", designs[0], samples)
    bad = tmp_path / "bad"

    def refused(text):
        with pytest.raises(InputError, match=re.escape(text)):
            diff_folders(good, bad)

    refused("no such folder")
    bad.mkdir()
    refused("holds no run")
    for verb, text in (
        ("compile", "belongs to cosim compile"),
        ("compare", "not finished, comparison.json is missing"),
    ):
        (bad / ".cosim").write_text(f"{verb}\n")
        refused(text)
    (bad / ".cosim").write_text("simulate\n")
    content = (good / "simulation.npz").read_bytes()
    (bad / "design.json").write_bytes((good / "design.json").read_bytes())
    (bad / "simulation.npz").write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    refused("simulation.npz: damaged, or of a cosim without checksums: its checksum does not fit")
    (bad / "simulation.npz").write_bytes(content)
    assert diff_folders(good, bad).nothing
    (bad / "design.json").write_text((good / "design.json").read_text().replace("tt", "ss"))
    refused("design.json: damaged")


def test_runs_of_two_verbs(simulate, meter, designs, samples, tmp_path):
    a, b = simulate(tmp_path / "a", designs[0], samples), meter(tmp_path / "b", designs[0], samples)
    with pytest.raises(InputError, match="one is of cosim simulate, the other of cosim power; give two runs"):
        diff_folders(a, b)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y": np.array(1)}, r"y must hold real numbers of shape \(40\), not .*int.* of shape \(\)"),
        ({"wrong": np.zeros((40, 2), int)}, "cells must hold text of shape"),
        ({"decisions": np.full(40, -5)}, "decisions must be -1 or more"),
        ({"lengths": np.full(40, 99)}, "lengths must be 1 or more, and of the frames there are"),
        ({"states": None}, "states is missing; it is of another cosim, or no such file"),
        ({"power_w": np.full(40, "a")}, "power_w must hold real numbers"),
    ],
)
def test_samples_of_another_form_are_refused(simulate, designs, samples, tmp_path, change, said):
    """Under a checksum that fits."""
    a = simulate(tmp_path / "a", designs[0], samples)
    arrays = dict(np.load(a / "simulation.npz")) | change
    (a / "simulation.npz").write_bytes(seal_npz({name: one for name, one in arrays.items() if one is not None}))
    with pytest.raises(InputError, match=rf"simulation\.npz: {said}.*the same command writes it again"):
        diff_folders(a, a)


def test_a_result_that_names_no_network_is_refused(meter, designs, samples, tmp_path):
    a = meter(tmp_path / "a", designs[0], samples)
    plain = json.loads(unseal_json((a / "design.json").read_bytes()))
    (a / "design.json").write_bytes(seal_json(plain | {"network": 3}))
    with pytest.raises(InputError, match=r"design\.json: must have the field network, a text; the same command"):
        diff_folders(a, a)
    arrays = dict(np.load(a / "power.npz")) | {"figures": np.array(["x"])}
    (a / "design.json").write_bytes(seal_json(plain))
    (a / "power.npz").write_bytes(seal_npz(arrays))
    with pytest.raises(InputError, match=r"power\.npz: power_w must hold real numbers of shape \(1, 40\)"):
        diff_folders(a, a)
