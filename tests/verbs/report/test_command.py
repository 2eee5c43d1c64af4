"""`cosim report` as a user runs it."""

import base64
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.claim import MARKER, own_folder
from cosim.results.kept_page import read_page, write_page
from cosim.results.page import Page, PageSubject
from cosim.tasks.testset import TestSet
from cosim.variation.draws import VariationPlan
from cosim.verbs.common import Compiling, load_design
from cosim.verbs.montecarlo.chip_study import NO_WAVES
from cosim.verbs.montecarlo.page import read_run
from cosim.verbs.montecarlo.trial import Trial


@pytest.fixture(scope="module")
def finished(tiny, make_store, tmp_path_factory):
    """A run of 8 small chips of the tiny network, behavioral."""
    design, _ = load_design(tiny / "net.npz", Compiling())
    with np.load(tiny / "data.npz") as arrays:
        x, y = arrays["x_test"], arrays["y_test"]
    test_set = TestSet(x, y, np.full(5, 3), np.arange(5))
    folder = tmp_path_factory.mktemp("finished") / "run"
    make_store(folder, Trial(design, test_set, VariationPlan("local", 0, 8, area=0.2)), "accuracy>=0.2")
    return folder


@pytest.fixture
def store(finished, tmp_path):
    """A copy of the finished run, for one test."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.mark.usefixtures("unrendered")
def test_page_beside_the_run(cosim_main, store):
    code, out, err = cosim_main("report", store, "--no-waveforms")
    assert (code, err) == (0, "")
    assert out == f"report: {store / 'report.html'}\n"
    found = json.loads((store / "summary.json").read_text())["yield"]
    page = (store / "report.html").read_text()
    assert f"Yield {100 * found['value']:.1f}\N{NO-BREAK SPACE}%, " in page
    assert NO_WAVES.replace("'", "&#x27;") in page
    assert not [path.name for path in store.iterdir() if path.name.startswith(".partial")]


@pytest.mark.usefixtures("unrendered")
def test_page_of_a_run_as_a_user_makes_it(cosim_main, tiny, tmp_path):
    run = tmp_path / "mc"
    options = (tiny / "net.npz", "--data", tiny / "data.npz", "--jobs", 1, "--chips", 9, "--seed", 3)
    assert cosim_main("montecarlo", *options, "--saturate", "-o", run)[0] == 0
    assert cosim_main("report", run, "--no-waveforms")[0] == 0
    page = (run / "report.html").read_text()
    assert "of 9 chips work [" in page and "compiled: too large weights are cut</th><td>yes</td>" in page


@pytest.mark.usefixtures("unrendered")
def test_a_network_is_called_what_its_file_is_called(cosim_main, tiny, tmp_path):
    """By the verb, and by a page that is made later from the run's own copy of the network."""
    own, run = tmp_path / "my\n<b>gestures.npz", tmp_path / "run"
    own.write_bytes((tiny / "net.npz").read_bytes())
    options = ("--data", tiny / "data.npz", "--chips", 3, "-o", run)
    code, out, err = cosim_main("montecarlo", own, *options)
    assert code == 0 and out.startswith(r"my\n<b>gestures on generic180: "), (out, err)
    (run / "report.html").unlink()
    assert cosim_main("report", run, "--no-waveforms")[0] == 0
    assert r"my\n&lt;b&gt;gestures on generic180" in (run / "report.html").read_text()


@pytest.mark.usefixtures("unrendered")
def test_page_elsewhere(cosim_main, store, tmp_path):
    (tmp_path / "new").mkdir()
    code, _, _ = cosim_main("report", store, "--no-waveforms", "-o", tmp_path / "new" / "page.html")
    assert code == 0
    assert (tmp_path / "new" / "page.html").read_text().startswith("<!doctype html>")
    assert not (store / "report.html").exists()


def test_a_page_that_cannot_be_written_is_said_before_the_work(cosim_main, store, tmp_path, monkeypatch):
    monkeypatch.setattr("cosim.verbs.montecarlo.page.study_chips", lambda *_: pytest.fail("the work has begun"))
    code, _, err = cosim_main("report", store, "-o", tmp_path / "no" / "page.html")
    assert code == 2 and f"page.html: the folder {tmp_path / 'no'} must exist; create it, or choose another" in err
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / MARKER).write_text("compare\n")
    code, _, err = cosim_main("report", store, "-o", tmp_path / "theirs" / "report.html")
    assert code == 2 and "report.html: the folder belongs to cosim compare; choose another file with -o" in err
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == [".cosim"]


def test_page_without_simulator(cosim_process, store):
    code, _, err = cosim_process("report", store, NGSPICE_LIBRARY_PATH="/nowhere/libngspice.so")
    assert code == 0 and "on transistors" in err
    assert (
        "Waveforms need a simulator that is missing where this page was written" in (store / "report.html").read_text()
    )


@pytest.mark.ngspice
def test_page_with_waveforms(cosim_main, store):
    code, _, err = cosim_main("report", store)
    assert code == 0 and "the worst, and the nominal circuit on transistors" in err
    assert "data:image/png;base64," in (store / "report.html").read_text()


def test_what_is_refused(cosim_main, store, tmp_path):
    code, _, err = cosim_main("report", tmp_path)
    assert code == 2 and f"{tmp_path}: no verb has left its page there (page.json); give the folder of a run" in err
    code, _, err = cosim_main("report", tmp_path / "nowhere")
    assert code == 2 and "nowhere: must be a folder of a run, but is not there" in err
    (tmp_path / "file").write_text("")
    code, _, err = cosim_main("report", store, "--no-waveforms", "-o", tmp_path / "file" / "page.html")
    assert code == 2 and "page.html: Not a directory; choose another place" in err
    code, _, err = cosim_main("report", store, "--no-waveforms", "--pictures", tmp_path / "file")
    assert code == 2 and "file: must be a folder, but is a file; name another" in err
    assert not (store / "report.html").exists()
    summary = (store / "summary.json").read_text()
    (store / "summary.json").unlink()
    code, _, err = cosim_main("report", store)
    assert code == 2 and "the run is not finished" in err
    (store / "summary.json").write_text(summary)
    (store / "trial.json").unlink()
    code, _, err = cosim_main("report", store)
    assert code == 2 and "trial.json is missing" in err


def test_pictures_as_files(cosim_main, store, tmp_path):
    """Each picture of the page once, whole, under a name that says where it stands there."""
    code, out, _ = cosim_main("report", store, "--no-waveforms", "--pictures", tmp_path / "pictures")
    assert code == 0
    found = sorted((tmp_path / "pictures").iterdir())
    shown = re.findall(r"<img [^>]*src=.data:image/[^;]+;base64,([^\"']+)", (store / "report.html").read_text())
    assert sorted(base64.b64encode(path.read_bytes()).decode() for path in found) == sorted(shown)
    names = [path.name for path in found]
    assert {"montecarlo-the-chips.svg", "montecarlo-the-chips-2.svg", "montecarlo-the-network.svg"} <= {*names}
    assert sorted(re.findall(r"^picture: .*/(.+)$", out, re.MULTILINE)) == names


@pytest.mark.usefixtures("unrendered")
def test_a_page_and_pictures_replace_their_own_kind_alone(cosim_main, store, tmp_path):
    page, pictures = tmp_path / "page.html", tmp_path / "pictures"
    arguments = ["report", store, "--no-waveforms", "-o", page, "--pictures", pictures]
    for _ in range(2):
        assert cosim_main(*arguments)[0] == 0
    mine = pictures / "montecarlo-the-chips.svg"
    for path, option in ((mine, "--pictures"), (page, "-o")):
        path.write_text("mine")
        code, _, err = cosim_main(*arguments)
        assert code == 2 and f"{path}: cosim has not written it and would replace it; move it away" in err
        assert f"choose another place with {option}" in err and path.read_text() == "mine"


@pytest.fixture
def beside(store, tmp_path):
    """(folder) -> nothing: the page of another verb about the store's network."""

    def write(name, **changed):
        subject = read_run(store, waveforms=False).subject
        page = Page(
            "power", subject, "made up: 12 nW", "Two samples.", (("12 nW", "mean"),), (), {"network": subject.hash}
        )
        with own_folder(tmp_path / name, "power"):
            write_page(tmp_path / name, replace(page, **changed))
        return tmp_path / name

    return write


@pytest.mark.usefixtures("unrendered")
def test_several_verbs_on_one_page(cosim_main, store, beside, tmp_path):
    power, page = beside("power"), tmp_path / "page.html"
    code, out, err = cosim_main("report", store, power, "--no-waveforms", "-o", page)
    assert (code, out, err) == (0, f"report: {page}\n", "")
    text = page.read_text()
    assert text.count("<article") == 2 and "made up: 12 nW" in text and "<h3>The chips" in text
    assert text.count(read_page(power).subject.hash) == 1
    assert cosim_main("report", power)[0] == 0  # alone: as it was written
    assert (power / "report.html").read_text().count("<h1>made up: 12 nW</h1>") == 1


@pytest.mark.usefixtures("unrendered")
def test_several_folders_that_make_no_page(cosim_main, store, beside, tmp_path):
    power = beside("power")
    code, _, err = cosim_main("report", store, power)
    assert code == 2 and "2 folders need a file for their page; name it with -o" in err
    code, _, err = cosim_main("report", store, power, "--no-waveforms", "-o", power / "all.html")
    assert code == 2 and "all.html: the folder belongs to cosim power; choose another file with -o" in err
    other = beside("other", subject=PageSubject("digits_d4", "0123456789abcdef"))
    code, _, err = cosim_main("report", power, other, "-o", tmp_path / "all.html")
    assert code == 2 and f"and {other} is about digits_d4 (0123456789abcdef); give the folders of one" in err
    (power / "page.json").unlink()
    code, _, err = cosim_main("report", power)
    assert code == 2 and "cosim power has not left its page there (page.json); run it again" in err
    assert not (tmp_path / "all.html").exists()
