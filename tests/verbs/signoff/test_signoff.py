"""A sign-off in reduced form: every check, on a network that passes some of them, and the same bytes again."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosim.base.errors import SimulationError
from cosim.circuit.bench import Voltage
from cosim.circuit.elements import Mos
from cosim.compiler.design import Condition
from cosim.engines.engine import Run, Waveforms
from cosim.verbs import bias as sources
from cosim.verbs.bias import ON_CHIP, applicable_biases, bias_name, bias_words
from cosim.verbs.signoff import checks
from cosim.verbs.signoff.checks import largest_voltages
from cosim.verbs.signoff.plan import CHECK_NAMES, SignoffPlan
from cosim.verbs.signoff.study import Check, Finding, SignOff, SignoffSubject, say_whole, verdict_of

pytest.importorskip("numba")
pytestmark = pytest.mark.usefixtures("unrendered_module")
NETWORK = Path(__file__).parents[3] / "models" / "trained" / "digits_d4.pt"
PLAN = """
[nominal]
audit = 1
[corners]
audit = 0
corners = ["tt"]
celsius = [27]
supplies = [1.0]
[mismatch]
chips = 12
yield = ">= 10 %"
accuracy = ">= 20 %"
[noise]
draws = 2
[frame]
task_agreement = ">= 50 %"
state_agreement = ">= 95 %"
[supply]
frequencies_hz = [1000]
ripple_v = 0.02
task_agreement = ">= 50 %"
[clocks]
draws = 1
edges = [0.05]
task_agreement = ">= 50 %"
state_agreement = ">= 95 %"
[start]
task_agreement = ">= 50 %"
state_agreement = ">= 95 %"
[decisions]
samples = 1
[limits]
samples = 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signoff")
    (folder / "plan.toml").write_text(PLAN)
    return folder


@pytest.fixture(scope="module")
def small(tiny):
    """Arguments of a sign-off of three cells on two samples of three frames."""
    return tiny / "net.npz", "--data", tiny / "data.npz", "--samples", 2


@pytest.fixture(scope="module")
def signed(folder, small, batch, cosim_in):
    """All ten checks; what was printed, and the folder. Frames: the network's own, two shorter, one longer."""
    asked = (*small, "--plan", "plan.toml", "-j", 1, "--bias", "constant", "-o", "all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "SHORTER", (0.5,))
        patch.setattr(checks, "LONGER", ())
        return cosim_in(folder, "signoff", *asked), folder / "all"


@pytest.mark.ngspice
def test_every_check_is_made_and_judged(signed):
    done, place = signed
    found = json.loads((place / "signoff.json").read_text())
    names = [one["name"] for one in found["checks"]]
    assert names == list(CHECK_NAMES)
    assert not [one for one in found["checks"] if one["skipped"]]
    assert done.returncode == (0 if found["passed"] else 1)
    for one in found["checks"]:
        assert one["findings"], one["name"]
        assert one["passed"] == all(row["met"] for row in one["findings"])
        assert f"{one['name']:11}{'PASS' if one['passed'] else 'FAIL'}" in done.stdout
    by_name = {one["name"]: {row["figure"]: row for row in one["findings"]} for one in found["checks"]}
    assert by_name["nominal"]["states as ngspice's, outside ties"]["value"] == 1.0
    assert by_name["start"]["memories that stay on"]["value"] == 0.0
    shortest, longest = by_name["frame"]["shortest frame"]["value"], by_name["frame"]["longest frame"]["value"]
    assert shortest <= 8e-3 and longest >= 20e-3  # bench_frames: 99 % of the states down to 3 ms
    assert 1.8 <= by_name["limits"]["largest |V_GS|"]["value"] <= 1.98  # the supply, and what clocks couple on top
    assert (
        0 < by_name["decisions"]["distance of a state's decision"]["value"] < 20
    )  # sigma; three cells of random weights


@pytest.mark.ngspice
def test_the_page_says_the_verdict_first_and_holds_the_others(signed, cosim_in):
    done, place = signed
    page = (place / "report.html").read_text()
    whole = re.search(r"(Sign-off of net on generic180: (?:PASS|FAIL)(?:.|\n)+?)\n\n", done.stdout)[1]
    assert whole.replace("\n", " ") in page
    for word in ("Not checked", "wires: give --extracted", "chips work", "in 1 conditions", "ripple_v = 0.02"):
        assert word in page
    assert cosim_in(place, "verify", ".").returncode == 0


@pytest.mark.slow
@pytest.mark.ngspice
def test_the_plan_that_was_in_effect_gives_the_same_on_more_workers(signed, small, folder, cosim_in):
    """Two checks of ten, by the plan that the run has written, its other checks left out."""
    _, place = signed
    made = ("mismatch", "supply")
    left = ", ".join(f'"{name}"' for name in CHECK_NAMES if name not in made)
    plan = (place / "plan.toml").read_text().replace("skip = []", f"skip = [{left}]")
    (folder / "again.toml").write_text(plan)
    cosim_in(folder, "signoff", *small, "--plan", "again.toml", "-j", 2, "-o", "again")
    first, again = (json.loads((one / "signoff.json").read_text())["checks"] for one in (place, folder / "again"))
    assert [one for one in again if one["name"] in made] == [one for one in first if one["name"] in made]
    for name in ("chips/chips.jsonl", "chips/summary.json"):
        assert (folder / "again" / name).read_bytes() == (place / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.ngspice
def test_a_verdict_names_every_assumption_on_bias_currents(folder, cosim_in):
    """One condition of 45, 6 digits: thresholds that move against the inputs cost states, others do not."""
    skip = [name for name in CHECK_NAMES if name != "corners"]
    (folder / "cold.toml").write_text(
        f'skip = {skip}\n[corners]\naudit = 0\ncorners = ["tt"]\ncelsius = [0]\nsupplies = [1.0]\n'
        'task_agreement = ">= 0 %"\nstate_agreement = ">= 98.5 %"\n'
    )
    done = cosim_in(folder, "signoff", NETWORK, "--plan", "cold.toml", "--samples", 6, "-j", 1, "-o", "cold")
    found = json.loads((folder / "cold" / "signoff.json").read_text())
    assert done.returncode == 1
    verdicts = {one["bias"]: one["failed"] for one in found["bias_assumptions"]}
    assert verdicts == {"constant": [], "reference": ["corners"], "tracking": []}
    rows = {one["bias"]: one for one in found["checks"][1]["findings"] if one["figure"] == "states as software"}
    assert rows["reference"]["value"] < rows["tracking"]["value"]
    said = " ".join(done.stdout.split())
    page = (folder / "cold" / "report.html").read_text()
    for text in (
        "PASS with ideal bias currents, the same in every condition (constant)",
        "FAIL in corners with bias currents that change as the chip",
        "PASS with bias and input currents that both change",
        "where the chip is made for one of them, ask for that one: --bias NAME",
    ):
        assert text in said and text in page, text
    for bias in verdicts:
        assert (folder / "cold" / f"corners-{bias}" / "pvt.json").is_file()


def test_a_chip_that_makes_its_own_bias_currents_assumes_these(technology, monkeypatch):
    feeds = SimpleNamespace(assembly=SimpleNamespace(around=SimpleNamespace(feeds=("i",))))
    assert applicable_biases(feeds, technology) == (("constant",), "")
    assert (bias_words(feeds, "constant"), bias_name(feeds, "constant")) == (ON_CHIP, "bias of its tree")


def test_a_reference_that_gives_no_current_leaves_ideal_currents_and_says_why(technology, calibration, monkeypatch):
    def refuse(technology, simulator):
        raise SimulationError("current reference: it does not start")

    pins = SimpleNamespace(
        assembly=SimpleNamespace(around=SimpleNamespace(feeds=())), calibration=calibration, technology=technology,
        nominal=Condition(technology),
    )  # fmt: skip
    monkeypatch.setattr(sources, "measure_reference", refuse)
    monkeypatch.setattr(sources, "_measured", {})
    assert applicable_biases(pins, technology) == (("constant",), "current reference: it does not start")
    subject = SignoffSubject(pins, None, Run(Path()), SignoffPlan(), "generic180", biases=("constant", "tracking"))
    found, missing = subject.across("ss")
    assert list(found) == ["constant"]
    assert [(one.bias, one.met, one.shown) for one in missing] == [
        ("tracking", False, "current reference: it does not start")
    ]


def test_what_is_left_out_is_listed_and_an_impossible_limit_fails(folder, cosim_in):
    skip = [name for name in CHECK_NAMES if name != "noise"]
    (folder / "noise.toml").write_text(f'skip = {skip}\n[noise]\ndraws = 2\nstate_agreement = ">= 100 %"\n')
    done = cosim_in(folder, "signoff", NETWORK, "--plan", "noise.toml", "--samples", 60, "-o", "noise")
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert ": FAIL in 1 of 1 checks: noise; not made:" in said
    assert all(f"{name}: left out by the plan" in said for name in skip)
    assert "mismatch together with corners, temperature or supply" in said


def test_a_limit_on_what_there_is_not_is_no_check_that_was_left_out(folder, cosim_in):
    """A spec that chips cannot be held against ends the sign-off; it does not make it pass without the check."""
    skip = [name for name in CHECK_NAMES if name != "mismatch"]
    (folder / "rmse.toml").write_text(f'skip = {skip}\n[mismatch]\nchips = 2\nrmse = "<= 1"\n')
    done = cosim_in(folder, "signoff", NETWORK, "--plan", "rmse.toml", "--samples", 3, "-o", "rmse")
    assert done.returncode == 2
    assert "rmse" in done.stderr and "PASS" not in done.stdout


def test_chips_of_a_plan_have_its_ranges(folder, cosim_in):
    skip = [name for name in CHECK_NAMES if name != "mismatch"]
    chips = '[mismatch]\nchips = 8\nvariation = "all"\ncelsius = [-40, 125]\nsupplies = [0.9, 1.1]\n'
    (folder / "ranges.toml").write_text(f"skip = {skip}\n{chips}")
    done = cosim_in(folder, "signoff", NETWORK, "--plan", "ranges.toml", "--samples", 3, "-o", "ranges")
    found = json.loads((folder / "ranges" / "chips" / "summary.json").read_text())["variation"]
    assert (found["kind"], found["celsius"], found["supplies"]) == ("all", [-40, 125], [0.9, 1.1])
    assert "mismatch together with corners" not in " ".join(done.stdout.split())


def test_a_supply_that_no_chip_can_have_ends_the_sign_off_before_it_begins(folder, cosim_in):
    """It is a mistake in the plan, and no reason to leave the check out and pass."""
    (folder / "high.toml").write_text('[mismatch]\nvariation = "all"\nsupplies = [0.95, 1.9]\n')
    done = cosim_in(folder, "signoff", NETWORK, "--plan", "high.toml", "--samples", 3, "-o", "high")
    assert (done.returncode, done.stdout) == (2, "")
    assert "have supplies up to 3.42 V; generic180 takes at most 3.3 V" in done.stderr
    assert not (folder / "high").exists()


def test_a_grid_with_such_a_supply_ends_it_as_well(folder, cosim_in):
    (folder / "grid.toml").write_text("[corners]\nsupplies = [1.0, 1.9]\n")
    done = cosim_in(folder, "signoff", NETWORK, "--plan", "grid.toml", "--samples", 3, "-o", "grid")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the grid of conditions has a supply of 3.42 V; generic180 takes at most 3.3 V" in done.stderr


def test_a_plan_that_is_wrong_leaves_nothing(folder, cosim_in):
    (folder / "wrong.toml").write_text("[mismatch]\nchips = -3\n")
    done = cosim_in(folder, "signoff", NETWORK, "--plan", "wrong.toml", "-o", "never")
    assert (done.returncode, done.stdout) == (2, "")
    assert "wrong.toml: mismatch.chips must lie in 1 to 1000000, not -3" in done.stderr
    assert not (folder / "never").exists()


def test_voltages_are_those_between_terminals_at_the_worst_moment():
    time = np.linspace(0, 1, 5)
    nets = {"d": [0, 1, 2, 1, 0], "g": [2, 0, -0.5, 0, 0], "s": [0, 0, 1, 0, 0]}
    waves = Waveforms(time, {Voltage(net): np.array(values, dtype=float) for net, values in nets.items()})
    device = Mos("m", "d", "g", "s", "0", "n", 1e-6, 1e-6)
    other = replace(device, name="other", drain="unknown", gate="0")
    found = largest_voltages(waves, [device, other])
    assert found == {"V_GS": (2.0, "m"), "V_GD": (2.5, "m"), "V_DS": (1.0, "m"), "V_GB": (2.0, "m")}


def test_a_verdict_is_unsure_only_where_it_hangs_on_an_interval():
    kept, unsure = Finding("a", 1.0, "1", ">= 0"), Finding("a", 1.0, "1", ">= 0", sure=False)
    missed = Finding("a", 1.0, "1", ">= 2", met=False)
    missed_unsure = replace(missed, sure=False)
    verdicts = {
        (kept,): "PASS",
        (kept, unsure): "PASS, unsure",
        (missed, unsure): "FAIL",
        (missed_unsure, kept): "FAIL, unsure",
        (missed_unsure, missed): "FAIL",
    }
    for findings, wanted in verdicts.items():
        assert verdict_of(Check("x", "why?", "3", findings)) == wanted
    skipped = Check("y", "", "", skipped="no model for it")
    assert (verdict_of(skipped), skipped.passed) == ("not made", False)
    assert (
        say_whole(SignOff("t", "e", (Check("x", "?", "3", (kept,)), skipped), ()))
        == "PASS in 1 of 2 checks; not made: y"
    )
    nothing = SignOff("t", "e", (skipped,), ())
    assert (say_whole(nothing), nothing.passed) == ("FAIL, nothing was checked", False)
