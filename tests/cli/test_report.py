"""`cosim report` as a user runs it."""

import json

import numpy as np
import pytest

from cosim.cli.common import Compiling, load_design
from cosim.files.claim import own_folder
from cosim.montecarlo.trial import Trial
from cosim.tasks.testset import TestSet
from cosim.variation.draws import Plan


@pytest.fixture
def store(tiny, make_store, tmp_path):
    """A run of 8 small chips of the tiny network, behavioral."""
    design, _ = load_design(tiny / "net.npz", Compiling())
    with np.load(tiny / "data.npz") as arrays:
        x, y = arrays["x_test"], arrays["y_test"]
    test_set = TestSet(x, y, np.full(5, 3), np.arange(5))
    make_store(tmp_path / "run", Trial(design, test_set, Plan("local", 0, 8, area=0.2)), "accuracy>=0.2")
    return tmp_path / "run"


def test_page_beside_the_run(cosim_main, store):
    code, out, err = cosim_main("report", store, "--no-waveforms")
    assert (code, err) == (0, "")
    assert out == f"report: {store / 'report.html'}\n"
    found = json.loads((store / "summary.json").read_text())["yield"]
    page = (store / "report.html").read_text()
    assert f"<b>{100 * found['value']:.1f}\N{NO-BREAK SPACE}%</b>" in page
    assert "Waveforms were left out (--no-waveforms)." in page
    assert not [path.name for path in store.iterdir() if path.name.startswith(".partial")]


def test_page_of_a_run_as_a_user_makes_it(cosim_main, tiny, tmp_path):
    run = tmp_path / "mc"
    options = (tiny / "net.npz", "--data", tiny / "data.npz", "--jobs", 1, "--chips", 9, "--seed", 3)
    assert cosim_main("montecarlo", *options, "--saturate", "-o", run)[0] == 0
    assert cosim_main("report", run, "--no-waveforms")[0] == 0
    page = (run / "report.html").read_text()
    assert "of 9 chips</h1>" in page and "<td>compile: saturate</td><td>True</td>" in page


def test_page_elsewhere(cosim_main, store, tmp_path):
    (tmp_path / "new").mkdir()
    code, _, _ = cosim_main("report", store, "--no-waveforms", "-o", tmp_path / "new" / "page.html")
    assert code == 0
    assert (tmp_path / "new" / "page.html").read_text().startswith("<!doctype html>")
    assert not (store / "report.html").exists()


def test_a_page_that_cannot_be_written_is_said_before_the_work(cosim_main, store, tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.montecarlo.page.study_chips", lambda *_: pytest.fail("the work has begun"))
    code, _, err = cosim_main("report", store, "-o", tmp_path / "no" / "page.html")
    assert code == 2 and f"page.html: the folder {tmp_path / 'no'} must exist; create it, or choose another" in err
    with own_folder(tmp_path / "theirs", "compare"):
        pass
    code, _, err = cosim_main("report", store, "-o", tmp_path / "theirs" / "report.html")
    assert code == 2 and "report.html: the folder belongs to cosim compare; choose another file with -o" in err
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == [".cosim"]


def test_page_without_simulator(cosim_process, store):
    code, _, err = cosim_process("report", store, NGSPICE_LIBRARY_PATH="/nowhere/libngspice.so")
    assert code == 0 and "in ngspice" in err
    assert "Waveforms need ngspice, which is missing where this page was written" in (store / "report.html").read_text()


@pytest.mark.ngspice
def test_page_with_waveforms(cosim_main, store):
    code, _, err = cosim_main("report", store)
    assert code == 0 and "the worst, and the nominal circuit in ngspice" in err
    assert "data:image/png;base64," in (store / "report.html").read_text()


def test_what_is_refused(cosim_main, store, tmp_path):
    code, _, err = cosim_main("report", tmp_path)
    assert code == 2 and "no Monte Carlo run there (run.json is missing); make one with: cosim montecarlo" in err
    (tmp_path / "file").write_text("")
    code, _, err = cosim_main("report", store, "--no-waveforms", "-o", tmp_path / "file" / "page.html")
    assert code == 2 and "page.html: Not a directory; choose another place" in err
    summary = (store / "summary.json").read_text()
    (store / "summary.json").unlink()
    code, _, err = cosim_main("report", store)
    assert code == 2 and "the run is not finished" in err
    (store / "summary.json").write_text(summary)
    (store / "trial.json").unlink()
    code, _, err = cosim_main("report", store)
    assert code == 2 and "trial.json is missing" in err
