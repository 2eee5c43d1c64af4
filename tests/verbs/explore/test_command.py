"""`cosim explore` as a user runs it: trials, interrupted, on transistors, sizes that are drawn, what is refused."""

import csv
import json
import subprocess
import sys

import pytest

from cosim.base.errors import InputError
from cosim.base.resources import install_command
from cosim.verbs.explore.circuits import derived_technology, read_knobs
from cosim.verbs.explore.command import usual_knobs
from cosim.verbs.inner import InnerVerb
from cosim.verbs.montecarlo import command as montecarlo

pytestmark = pytest.mark.usefixtures("unrendered_module")
FILES = ("run.toml", "search.json", "explore.json", "explore.csv", "explore.png", "explore.svg", "report.html")
VARIED = ("--vary", "i-unit=0.5n:2n:log", "--vary", "supply=1.5:1.8", "--spec", "accuracy>=0.4")


@pytest.fixture(scope="module")
def typed(tiny):
    pytest.importorskip("optuna")
    return ["explore", tiny / "net.npz", "--data", tiny / "data.npz", "--chips", 6, *VARIED]


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def test_trials_are_runs_of_their_own(cosim_main, typed, tiny, tmp_path):
    """A trial is what montecarlo gives there; the front is what none beats; the page links to its runs."""
    out, file = tmp_path / "out", tmp_path / "found.json"
    code, text, err = cosim_main(*typed, "--trials", 2, "--behavioral", "-j", 1, "-o", out, "--json", file)
    assert code == 0, err
    found = json.loads((out / "explore.json").read_text())
    assert json.loads(file.read_text())["trials"] == found["trials"]
    assert [one["number"] for one in found["trials"]] == [0, 1]
    assert found["trials"][0]["values"] == {"i-unit": 1e-9, "supply": 1.8}  # as it is without a search
    assert (found["objectives"], found["spec"]) == (["yield", "power", "area"], ["accuracy>=0.4"])
    last = found["trials"][1]
    options = ["--data", tiny / "data.npz", "--chips", 6, "--spec", "accuracy>=0.4", "-j", 1, "-o", tmp_path / "alone"]
    values = [f"--{name}={value}" for name, value in last["values"].items()]
    assert cosim_main("montecarlo", tiny / "net.npz", *options, *values)[0] == 0
    alone = json.loads((tmp_path / "alone" / "summary.json").read_text())
    assert last["figures"]["yield"]["value"] == alone["yield"]["value"]
    assert last["figures"]["power"]["value"] == alone["power"]["mean"]
    assert last["figures"]["area"]["value"] == alone["nominal"]["area"]
    powers = {one["number"]: one["figures"]["power"]["value"] for one in found["trials"]}
    assert found["front"] == [min(powers, key=lambda number: powers[number])]  # yield and area are the same everywhere
    front = found["trials"][found["front"][0]]
    assert front["fresh"]["value"] == 1.0 and "transistors" not in front
    rows = list(csv.DictReader((out / "explore.csv").read_text().splitlines()))
    assert [float(row["i-unit_A"]) for row in rows] == [one["values"]["i-unit"] for one in found["trials"]]
    assert [row["state"] for row in rows].count("on the front") == 1
    assert "1 that none beats in yield, power and area" in " ".join(text.split())
    page = (out / "report.html").read_text()
    assert f'href="trial-{found["front"][0]:03d}/report.html"' in page and str(tmp_path) not in page
    code, text, _ = cosim_main("verify", out)
    assert code == 0 and "explore.json" in text and "trial-001/chips.jsonl" in text


@pytest.mark.slow  # a sweep's test of this kind runs by default
def test_jobs_and_interruption_change_no_byte(cosim_main, typed, tmp_path, monkeypatch):
    """Stopped in the chips of the second trial; the same command goes on, with more processes."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert cosim_main(*typed, "--trials", 2, "--behavioral", "-j", 1, "-o", whole)[0] == 0
    from cosim.base.store import RecordStore
    from cosim.verbs.montecarlo.chips import ChipRecord

    append, kept = RecordStore.append, []

    def stopping(self, record):
        append(self, record)
        kept.extend([record.chip] if isinstance(record, ChipRecord) else [])
        if len(kept) == 8:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RecordStore, "append", stopping)
        code, _, err = cosim_main(*typed, "--trials", 2, "--behavioral", "-j", 1, "-o", broken)
    assert code == 130 and "the same command continues where it stopped" in err
    assert cosim_main(*typed, "--trials", 2, "--behavioral", "-j", 2, "-o", broken)[0] == 0
    assert contents(broken) == contents(whole)
    code, _, err = cosim_main(*typed, "--trials", 2, "--behavioral", "--seed", 1, "-o", broken)
    assert code == 2 and "holds a run with another search" in err


def test_a_trial_whose_chips_all_fail_has_a_reason(cosim_main, typed, tmp_path, monkeypatch):
    """Such chips have a yield of 0, but neither accuracy nor power by which the search could compare the trial."""
    run = InnerVerb.run

    def fail(self, folder, values):
        reason, content = run(self, folder, values)
        kept = {name: found for name, found in content.items() if name not in ("accuracy", "power")}
        return reason, {**kept, "failed": content["chips"], "reasons": {"worker died": content["chips"]}}

    monkeypatch.setattr(InnerVerb, "run", fail)
    code, text, err = cosim_main(*typed, "--trials", 2, "--behavioral", "-j", 1, "-o", tmp_path)
    assert code == 1 and "every chip failed: worker died" in " ".join(text.split()), err
    found = json.loads((tmp_path / "explore.json").read_text())
    assert [(one["figures"], one["reason"]) for one in found["trials"]] == [({}, "every chip failed: worker died")] * 2


@pytest.mark.slow
@pytest.mark.ngspice
def test_the_front_on_transistors(batch, cosim_main, typed, tmp_path):
    """Its accuracy there is that of cosim compare, and some of its other chips are counted there."""
    more = ["--trials", 1, "--audit", 0, "--transistor-chips", 2, "-j", 1]
    code, text, err = cosim_main(*typed, *more, "-o", tmp_path / "good")
    assert code == 0, err
    found = json.loads((tmp_path / "good" / "explore.json").read_text())
    for number in found["front"]:
        seen = found["trials"][number]["transistors"]
        compared = json.loads((tmp_path / "good" / f"transistors-{number:03d}" / "comparison.json").read_text())
        assert seen["figures"]["accuracy"]["value"] == compared["accuracy"]["batch"]
        assert (seen["samples"], seen["chips"], seen["missed"]) == (5, 2, "")
        assert 0 <= seen["yield"]["low"] <= seen["yield"]["value"] <= 1
    assert "chips there" in text


@pytest.mark.slow
def test_bits_are_trimmed(cosim_main, tiny, tmp_path):
    """A trial with bits has the yield of cosim trim on the same chips; its converters are in no figure, and that is
    said."""
    pytest.importorskip("optuna")
    options = [tiny / "net.npz", "--data", tiny / "data.npz", "--chips", 3, "--spec", "yield>=0"]
    more = ["--vary", "bits=0,3", "--trials", 2, "--behavioral", "-j", 1, "-o", tmp_path]
    code, text, err = cosim_main("explore", *options, *more)
    assert code == 0, err
    found = json.loads((tmp_path / "explore.json").read_text())
    bits = {one["values"]["bits"]: one for one in found["trials"]}
    trimmed = json.loads((tmp_path / f"{bits[3]['folder']}-trim" / "trim.json").read_text())
    assert bits[3]["figures"]["yield"]["value"] == trimmed["rows"][-1]["yield"]["value"]
    assert trimmed["rows"][-1]["bits"] == 3 and not (tmp_path / f"{bits[0]['folder']}-trim").exists()
    summary = json.loads((tmp_path / "trial-000" / "summary.json").read_text())
    assert found["spec"] == [f"accuracy>={summary['software_accuracy'] - 0.05:.3f}"]  # the default one
    assert "Trim converters are in neither power nor area" in " ".join(text.split())


def test_drawn_sizes_are_technologies():
    name, text = derived_technology("sky130", {"mirror-area": 0.5, "cell-area": 1.0, "hold": 2e-13, "i-unit": 1e-9})
    assert name == "sky130-m0p5-h200fF"
    assert text == f'name = "{name}"\nbase = "sky130"\nhold_capacitance = 2e-13\n\n[area]\nmirrors = 0.5\n'
    assert derived_technology("generic180", {"cell-area": 1.0, "hold": 0.4e-12})[0] == ""


def test_knobs_are_read_as_the_verb_reads_them():
    texts = ("i-unit=0.2n:2n:log", "supply=1.5:1.7", "units=16,8", "headroom=1:3", "cell=auto,ladder", "cell-area=2,1")
    knobs = {knob.option: knob for knob in read_knobs(texts, montecarlo.command)}
    current, supply = knobs["i-unit"], knobs["supply"]
    assert (current.low, current.high) == pytest.approx((2e-10, 2e-9), rel=1e-12)
    assert (current.log, current.unit, current.start) == (True, "A", 1e-9)
    assert (supply.low, supply.high, supply.log, supply.start) == (1.5, 1.7, False, 1.6)
    assert (knobs["units"].values, knobs["units"].start) == ((8, 16), 16)
    assert (knobs["headroom"].values, knobs["headroom"].start) == ((1, 2, 3), 1)
    assert knobs["cell"].values == ("auto", "ladder")
    assert (knobs["cell-area"].values, knobs["cell-area"].start) == ((1.0, 2.0), 1.0)


def test_without_vary_the_usual_is_varied():
    """What is fixed is left out, and of a technology of one's own what only ours have."""
    names = [text.partition("=")[0] for text in usual_knobs({})]
    assert names == ["i-unit", "supply", "cell-area"]
    assert [knob.option for knob in read_knobs(usual_knobs({}), montecarlo.command)] == names
    assert [text.partition("=")[0] for text in usual_knobs({"supply": 1.5})] == ["i-unit", "cell-area"]
    assert [text.partition("=")[0] for text in usual_knobs({"technology": "my180.toml"})] == ["i-unit"]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ((), "--vary must be given at least once"),
        (("i-unit",), "--vary must be NAME=LOW:HIGH"),
        (("iunit=1n:2n",), "nothing of this name shapes the circuit; did you mean i-unit?"),
        (("area=0.5:2",), "--area is for mismatch alone; vary what is drawn: mirror-area, cell-area, switch-area"),
        (("chips=10,20",), "nothing of this name"),
        (("i-unit=2n:1n",), "a range must end above where it begins"),
        (("i-unit=1n:2n:lin",), "may end with :log"),
        (("i-unit=1n,1n",), "has a value twice"),
        (("i-unit=fast",), "must be a number in A"),
        (("cell-area=1:4",), "every value is calibrated first; list a few"),
        (("cell-area=0,1",), "must lie in 0.01 to 100, not 0"),
        (("units=8,16", "units=32"), "--vary units is given twice"),
        (("bits=0,13",), "must lie in 0 to 12, not 13"),
        (("cell=auto:ladder",), "takes words, so it has no ranges"),
    ],
)
def test_knobs_that_are_refused(texts, said):
    with pytest.raises(InputError, match=said):
        read_knobs(texts, montecarlo.command)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--i-unit", "1n"), "--i-unit is both fixed and varied"),
        (("--engine", "batch"), "--engine is none of cosim explore"),
        (("--spec", "yield<=0.5"), "the least yield of a choice is yield>="),
        (("--spec", "own.toml"), "a search takes no file of specs"),
        (("--vary", "cell-area=1,2", "--technology", "own.toml"), "sizes are varied of one technology that comes with"),
        (("--vary", "bits=0,2", "--variation", "all"), "cosim trim has no --variation"),
    ],
)
def test_searches_that_are_refused(cosim_main, typed, tmp_path, more, said):
    code, _, err = cosim_main(*typed, *more, "-o", tmp_path / "out")
    assert code == 2 and said in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_without_the_extra(cosim_main, tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    code, _, err = cosim_main("explore", tiny / "net.npz", "--vary", "i-unit=1n,2n", "-o", tmp_path / "out")
    said = f"cosim: cosim explore needs Optuna 5; install it with: {install_command('explore')}\n"
    assert (code, err) == (1, said)
    assert not (tmp_path / "out").exists()


def test_no_verb_imports_it_before_it_is_needed():
    code = (
        "import sys; from cosim.cli import VERBS, load_verb; "
        "[load_verb(verb) for verb in VERBS]; assert 'optuna' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
