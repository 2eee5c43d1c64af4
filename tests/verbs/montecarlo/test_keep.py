"""What is kept of a run gives its trial again, chip for chip; what gives another one is refused."""

import errno
import json
import os
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.arrays import read_arrays
from cosim.base.errors import InputError
from cosim.base.resources import device_model_path
from cosim.base.seal import checksum, seal_json, unseal_json
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.tasks.testset import TestSet
from cosim.technology.calibration import format_calibration, load_calibration
from cosim.variation.draws import Gradient, VariationPlan
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.common import Compiling, load_design
from cosim.verbs.compile.outputs import format_netlist
from cosim.verbs.montecarlo.keep import Places, keep_trial, load_trial, pack_samples
from cosim.verbs.montecarlo.run import run_settings
from cosim.verbs.montecarlo.trial import Trial, run_chip, trial_samples_hash

OVERRIDES = """
[[transistors]]
mirror = "bias_thresh_#"
times = 2

[[bias]]
pin = "bias_gain_0"
factor = 1.1
"""
FILES = {"trial.json", "network.npz", "samples.npz", "calibration.json"}


@pytest.fixture
def store(trial, make_store, tmp_path):
    make_store(tmp_path / "run", replace(trial, plan=replace(trial.plan, chips=3)))
    return tmp_path / "run"


def edit(path, **changes):
    """Other content with a checksum that fits."""
    content = json.loads(path.read_text()) | changes
    path.write_bytes(seal_json({name: value for name, value in content.items() if name != "sha256"}))


def renew_sums(folder):
    """Make trial.json fit the files that stand beside it now."""
    names = json.loads((folder / "trial.json").read_text())["sums"]
    edit(folder / "trial.json", sums={name: checksum((folder / name).read_bytes()) for name in names})


def test_the_same_chips_again(store, trial):
    again = load_trial(store)
    assert again.plan == replace(trial.plan, chips=3)
    assert trial_samples_hash(again) == trial_samples_hash(trial)
    assert run_settings(again) == run_settings(trial)
    for number in range(3):
        assert run_chip(again, number) == run_chip(trial, number)
    np.testing.assert_array_equal(again.software[0], trial.software[0])


def test_the_same_bytes_again(store):
    before = {name: (store / name).read_bytes() for name in FILES}
    keep_trial(store, load_trial(store), "generic180")
    assert {name: (store / name).read_bytes() for name in FILES} == before


def with_gradient(trial):
    places = {device.name: (1e-6 * k, 2e-6 * k) for k, device in enumerate(trial.devices)}
    return replace(trial, plan=replace(trial.plan, chips=2), gradient=Gradient(4.0, 2.0, places))


def test_gradients_again(trial, make_store, tmp_path):
    graded = with_gradient(trial)
    make_store(tmp_path / "run", graded)
    again = load_trial(tmp_path / "run")
    assert run_settings(again) == run_settings(graded)
    assert run_chip(again, 1) == run_chip(graded, 1) != run_chip(trial, 1)


def test_a_transistor_without_a_place_is_named(trial, make_store, tmp_path):
    make_store(tmp_path / "run", with_gradient(trial))
    name = trial.devices[0].name
    edit(tmp_path / "run" / "trial.json", gradient={"s_vt": 4.0, "s_beta": 2.0, "places": {}})
    with pytest.raises(InputError, match=rf"trial.json: gradient.places must have {re.escape(name)}"):
        load_trial(tmp_path / "run")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("first", {"corner": "ff", "celsius": 60.0, "supply": 1.71, "i_unit": 0.8e-9, "units": 16, "tau": None}),
        ("signed_input", {"t_step": 20e-3}),
        ("first", {"overrides": OVERRIDES}),
        ("first", {"netlist": ("(m2 v0 thresh .*) w=\\S+", "\\1 w=6u")}),
    ],
)
def test_conditions_and_compile_options(make_network, make_store, tmp_path, kind, settings):
    save_checkpoint(tmp_path / "net.npz", make_network(3, kind=kind, widths=(3,), outputs=2))
    options = {
        "technology": "generic180", "pdk_root": None, "corner": None, "celsius": None, "supply": None, "units": None,
        "ranges_from": None, "i_unit": 1e-9, "saturate": True, "cell": "auto", "headroom": 1, "t_step": 10e-3,
        "tau": None, "comparator_devices": 1,
    } | settings  # fmt: skip
    if "overrides" in options:
        (tmp_path / "own.toml").write_text(options["overrides"])
        options["overrides"] = tmp_path / "own.toml"
    if "netlist" in options:
        plain, _ = load_design(tmp_path / "net.npz", Compiling(**(options | {"netlist": None})))
        (tmp_path / "own.sp").write_text(re.sub(*options["netlist"], format_netlist(plain)))
        options["netlist"] = tmp_path / "own.sp"
    design, condition = load_design(tmp_path / "net.npz", Compiling(**options))
    x = np.random.default_rng(1).uniform(size=(4, 3, 3))
    test_set = TestSet(x, np.zeros(4, dtype=np.int64), np.array([3, 1, 2, 3]), np.arange(4))
    timing = replace(Trial(design, test_set, VariationPlan("all", 1, 2)).timing, t_step=options["t_step"])
    trial = Trial(design, test_set, VariationPlan("all", 1, 2, "lhs"), timing=timing, condition=condition)
    make_store(tmp_path / "run", trial, "power<=1uW")
    keep_trial(tmp_path / "run", trial, str(options["technology"]))
    for file in tmp_path.glob("own.*"):
        file.unlink()  # the folder of the run has all that it needs
    again = load_trial(tmp_path / "run")
    assert again.technology == condition.technology
    assert again.timing == timing and again.design.settings.overrides == design.settings.overrides
    assert again.design.edits == design.edits and bool(design.edits) == ("netlist" in options)
    assert run_chip(again, 1) == run_chip(trial, 1)


def test_a_store_of_before_says_how_to_add_them(store):
    (store / "trial.json").unlink()
    with pytest.raises(InputError, match=r"run: trial.json is missing; .* adds it, without"):
        load_trial(store)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2}'])
def test_a_trial_without_its_checksum(store, content):
    (store / "trial.json").write_text(content)
    with pytest.raises(
        InputError,
        match=r"trial.json: damaged, or of a cosim without checksums: .*; the command that made the run writes it",
    ):
        load_trial(store)


def test_a_trial_of_another_format(store):
    edit(store / "trial.json", format=99)
    with pytest.raises(InputError, match=r"trial.json: must be of format 2; use the cosim that wrote it"):
        load_trial(store)


@pytest.mark.parametrize(
    ("table", "field", "value", "wanted"),
    [
        ("plan", "area", 1e-320, r"plan\.area must lie in 0\.01 to 100"),
        ("compile", "i_unit", 1e-320, r"compile\.i_unit must lie in 1e-15 to 0\.001 A"),
        ("compile", "tau", 0.0, r"compile\.tau must lie in 1e-09 to 10 s"),
        ("compile", "pedestal", -1.0, r"compile\.pedestal must be 0 or more"),
    ],
)
def test_numbers_beyond_their_bounds_are_named(store, table, field, value, wanted):
    content = json.loads((store / "trial.json").read_text())
    edit(store / "trial.json", **{table: {**content[table], field: value}})
    with pytest.raises(InputError, match=rf"trial\.json: {wanted}; the command that made the run writes it again"):
        load_trial(store)


@pytest.mark.parametrize("name", sorted(FILES - {"trial.json"}))
def test_files_of_another_trial(store, name):
    (store / name).write_bytes((store / name).read_bytes() + b" ")
    text = f"{name}: missing or damaged, its checksum is not the one in trial.json; .* writes it again"
    with pytest.raises(InputError, match=text):
        load_trial(store)
    (store / name).unlink()
    with pytest.raises(InputError, match=text):
        load_trial(store)


def test_another_network_is_refused(store):
    network = load_network(store / "network.npz")
    bias = network.readout.bias + 0.125
    save_checkpoint(store / "network.npz", replace(network, readout=replace(network.readout, bias=bias)))
    renew_sums(store)
    with pytest.raises(InputError, match=r"gives another design\.\w+ than .*, that of its run: .* run the chips again"):
        load_trial(store)


def test_other_samples_are_refused(store):
    with np.load(store / "samples.npz") as arrays:
        changed = {**arrays, "y": arrays["y"][::-1]}
    np.savez_compressed(store / "samples.npz", **changed)
    renew_sums(store)
    with pytest.raises(InputError, match="gives another samples_hash"):
        load_trial(store)


@pytest.mark.parametrize("name", ["samples.npz", "network.npz", "calibration.json"])
def test_a_torn_file_is_named(store, name):
    content = (store / name).read_bytes()
    (store / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=re.escape(name)):
        load_trial(store)


def test_a_changed_seed_is_refused(store):
    plan = json.loads((store / "trial.json").read_text())["plan"]
    edit(store / "trial.json", plan={**plan, "seed": 99})
    with pytest.raises(InputError, match="gives another variation.seed than 2, that of its run: 99"):
        load_trial(store)


def test_another_version_alone_is_no_reason(trial, make_store, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("cosim.verbs.montecarlo.run.__version__", "0.0.1")
        make_store(tmp_path / "run", replace(trial, plan=replace(trial.plan, chips=1)))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["cosim"] == "0.0.1"
    load_trial(tmp_path / "run")


def test_a_deviating_calibration_is_refused(store):
    calibration = replace(load_calibration(shipped_path("generic180", 8)), fingerprint="0" * 16)
    (store / "calibration.json").write_text(format_calibration(calibration))
    renew_sums(store)
    with pytest.raises(InputError, match="generic180 has other devices or cells than those"):
        load_trial(store)


def test_a_store_that_cannot_be_written(trial, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot write .*network.npz: No space left on device; make room"):
        keep_trial(tmp_path, trial, "generic180")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def own(store, tmp_path):
    """The same run, as if made with a technology file of one's own, which has moved."""
    path = device_model_path("generic180.toml")
    for source in (path, device_model_path("generic180")):
        shutil.copy(source, tmp_path / source.name)
    edit(store / "trial.json", technology=str(tmp_path / "gone.toml"))
    return tmp_path / "generic180.toml"


def test_a_technology_that_moved(store, own):
    with pytest.raises(InputError, match=r"gone.toml is not there any more; say where it is with --technology"):
        load_trial(store)
    assert load_trial(store, Places(technology=own)).design.technology.name == "generic180"


def test_a_kit_that_moved(store, tmp_path):
    edit(store / "trial.json", technology="sky130", pdk_root=str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"--pdk-root .*there is no .* under it; name the folder above"):
        load_trial(store, Places(pdk_root=tmp_path))


def test_the_shipped_calibration_is_what_is_kept(store):
    """Its checksum is in trial.json, as those of all files of a store."""
    shipped = unseal_json(shipped_path("generic180", 8).read_bytes())
    assert (store / "calibration.json").read_bytes() == shipped.removesuffix(b"}") + b"\n}\n"


def test_samples_that_pack_well_can_be_read_again(tmp_path):
    """1,024 strings of 497 bits, as those of `flip_flop_d2`, pack to a hundredth: whole they are read, and alike."""
    bits = np.random.default_rng(3).random((1024, 497, 5)) < 0.01
    for x in (bits.astype(np.float64), np.random.default_rng(4).random((20, 5, 3))):
        (tmp_path / "samples.npz").write_bytes(pack_samples({"x": x}))
        np.testing.assert_array_equal(read_arrays(tmp_path / "samples.npz", "make it anew")["x"], x)
    assert len(pack_samples({"x": x})) < x.nbytes + 300  # noise is compressed as ever
