"""`cosim power` from end to end, and how it fails."""

import json
import re

import numpy as np
import pytest

from cosim.cells.blocks import BLOCKS
from cosim.results.kept_page import read_page

pytestmark = pytest.mark.usefixtures("unrendered_module")


@pytest.fixture(scope="module")
def options(tiny):
    return [tiny / "net.npz", "--data", tiny / "data.npz", "--samples", 5, "--jobs", 1]


@pytest.mark.ngspice
def test_power(cosim_main, options, tmp_path):
    folder = tmp_path / "out"
    code, out, _ = cosim_main("power", *options, "-o", folder, "--json", tmp_path / "figures.json")
    assert code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        ".cosim", "design.json", "inferences", "page.json", "power.json", "power.npz", "power.png", "report.html",
        "run.toml",
    ]  # fmt: skip
    assert len(list((folder / "inferences").iterdir())) == 5
    arrays = np.load(folder / "power.npz")  # as docs/reference/files.md has it
    assert sorted(arrays.files) == sorted(["figures", "power_w", "indices", "sums", "lengths", "y"])
    assert "ngspice power rows" in arrays["figures"] and arrays["power_w"].shape == (len(arrays["figures"]), 5)
    found = json.loads((folder / "power.json").read_text())
    assert len(found.pop("sha256")) == 16
    assert found == json.loads((tmp_path / "figures.json").read_text())
    assert tuple(found["blocks"]) == BLOCKS
    assert (found["samples"], found["failed"], found["frames"], found["t_step_s"]) == (5, 0, 3.0, 0.01)
    total = found["total"]["power_w"]
    assert total["ngspice"]["low"] < total["ngspice"]["mean"] < total["ngspice"]["high"]
    assert 1e-9 < total["ngspice"]["mean"] < 1e-6
    for row in (*found["blocks"].values(), found["total"]):
        assert abs(row["difference"]["mean"]) < 0.05
    assert max(map(len, out.split("\nwritten:")[0].splitlines())) < 100
    for name in (*BLOCKS, "total", "vdd", "vground", "clocks", "reset"):
        assert re.search(rf"^{name} .* (nW|pW|fW)", out, re.MULTILINE), name

    before = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    assert cosim_main("power", *options, "-o", folder)[0] == 0  # resumed: no simulation, the same bytes
    assert {path.name: path.read_bytes() for path in folder.glob("*.*")} == before


def test_areas_are_those_of_compile(cosim_main, options, tiny, tmp_path):
    assert cosim_main("power", *options, "-o", tmp_path / "p", "--behavioral")[0] == 0
    assert cosim_main("compile", tiny / "net.npz", "-o", tmp_path / "c")[0] == 0
    found, design = (json.loads((tmp_path / name).read_text()) for name in ("p/power.json", "c/design.json"))
    for key in ("gate_area_um2", "capacitor_area_um2"):
        assert found["total"][key] == design[key]
        parts = sum(row[key] for row in found["blocks"].values())
        assert parts == pytest.approx(design[key], abs=0.05 * len(BLOCKS))  # each is rounded to 0.1


def test_behavioral_needs_no_simulator(cosim_process, options, tmp_path):
    absent = str(tmp_path / "absent.so")
    code, out, err = cosim_process("power", *options, "-o", tmp_path, "--behavioral", NGSPICE_LIBRARY_PATH=absent)
    assert (code, "NGSPICE_LIBRARY_PATH" in err) == (0, False)
    found = json.loads((tmp_path / "power.json").read_text())
    assert found["total"]["power_w"]["ngspice"] is None
    assert found["total"]["power_w"]["behavioral"]["mean"] > 1e-9
    assert found["rails"] == {}
    assert "ngspice" not in out
    assert read_page(tmp_path).pictures[0].content == (tmp_path / "power.png").read_bytes()


def test_without_ngspice_the_behavioral_side_is_written(cosim_process, options, tmp_path):
    absent = tmp_path / "absent.so"
    code, out, err = cosim_process("power", *options, "-o", tmp_path, NGSPICE_LIBRARY_PATH=str(absent))
    assert code == 1
    assert (
        "cosim: behavioral side only: NGSPICE_LIBRARY_PATH must name the libngspice file, not "
        f"'{absent}', which is no file" in err
    )
    assert re.search(r"^total .* nW", out, re.MULTILINE)
    assert json.loads((tmp_path / "power.json").read_text())["total"]["power_w"]["ngspice"] is None


@pytest.mark.ngspice
def test_failed_runs_leave_their_decks(cosim_main, options, tmp_path):
    code, _, err = cosim_main("power", *options, "-o", tmp_path, "--timeout", "1m")
    assert code == 1
    assert re.search(r"cosim: all 5 simulations failed; the first: the run exceeded its time-out: after 0.001 s", err)
    assert len(list((tmp_path / "failed").iterdir())) == 5
    assert not (tmp_path / "power.json").exists()


def test_data_that_do_not_fit(cosim_main, tiny, tmp_path):
    np.savez(tmp_path / "data.npz", x_test=np.ones((5, 3, 4)), y_test=np.zeros(5, int))
    code, _, err = cosim_main("power", tiny / "net.npz", "--data", tmp_path / "data.npz", "-o", tmp_path / "out")
    assert code == 2
    assert err.startswith(f"cosim: {tmp_path / 'data.npz'}: x must have shape (samples, time, 3) for this network")
    assert not (tmp_path / "out").exists()


def test_clipped_inputs_and_a_short_test_set_are_said(cosim_main, tiny, tmp_path):
    """The network's range is 0 to 1; 3 is 200 % beyond it."""
    x = np.full((5, 3, 3), 0.5)
    x[2, 1, 0] = 3.0
    np.savez(tmp_path / "data.npz", x_test=x, y_test=np.zeros(5, int))
    options = [tiny / "net.npz", "--data", tmp_path / "data.npz", "-o", tmp_path, "--behavioral"]
    code, _, err = cosim_main("power", *options, "--samples", 6)
    assert code == 0
    assert "--samples 6: the test set has 5 samples; all are used" in err
    assert "warning: 1 of 45 values, in 1 of 5 samples and 1 feature, lie beyond the range" in err
    found = json.loads((tmp_path / "power.json").read_text())
    assert (found["samples"], found["clipped"]["value"], found["clipped"]["feature"]) == (5, 3.0, 0)
    x[2, 1, 0] = 1.0
    np.savez(tmp_path / "data.npz", x_test=x, y_test=np.zeros(5, int))
    _, _, err = cosim_main("power", *options, "--samples", 5)
    assert "--samples" not in err and "warning" not in err
    assert json.loads((tmp_path / "power.json").read_text())["clipped"] is None


def test_folder_that_cannot_be_made(cosim_main, options, tmp_path):
    (tmp_path / "file").write_text("in the way")
    code, _, err = cosim_main("power", *options, "-o", tmp_path / "file" / "out")
    assert code == 2
    assert "cannot write into" in err


def test_noise_is_for_an_engine_that_has_it(cosim_main, options, tmp_path):
    code, _, err = cosim_main("power", *options, "-o", tmp_path / "a", "--noise")
    assert code == 2 and "--noise: ngspice has none of its transistors; add --engine batch, or --behavioral" in err
    code, out, _ = cosim_main("power", *options, "-o", tmp_path / "b", "--noise", "--behavioral", "--seed", 4)
    assert code == 0 and "noise of the devices, seed 4" in " ".join(out.split())
    assert json.loads((tmp_path / "b" / "power.json").read_text())["noise"] == 4


@pytest.mark.parametrize("option", [["--samples", "0"], ["--t-step", "0"], ["--supply", "9"], ["--units", "65"]])
def test_bad_options(cosim_main, options, tmp_path, option):
    assert cosim_main("power", *options, "-o", tmp_path, *option)[0] == 2
