"""`cosim sweep` as a user runs it: four verbs, one axis and two, interrupted, refused, a point that cannot be run."""

import csv
import json
import re
import shlex
import tomllib
from dataclasses import replace

import click
import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.base.settings import file_checksum
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.results.metrics import Estimate
from cosim.results.page import WIDTH
from cosim.verbs.montecarlo import command as montecarlo
from cosim.verbs.montecarlo.store import unpack_draws
from cosim.verbs.sweep.command import read_axes
from cosim.verbs.sweep.study import find_figures, format_one, pick_figure, spaced, unit_of

pytestmark = pytest.mark.usefixtures("unrendered_module")
FILES = ("run.toml", "sweep.json", "sweep.csv", "sweep.png", "sweep.svg", "report.html")


@pytest.fixture(scope="module")
def chips(tiny):
    return ["montecarlo", tiny / "net.npz", "--data", tiny / "data.npz", "--chips", 6, "--spec", "accuracy>=0.4"]


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def draws(folder):
    """(chips, devices) threshold shifts in V."""
    lines = (folder / "chips.jsonl").read_text().splitlines()
    return np.array([unpack_draws(json.loads(line)["draws"])[0] for line in lines])


def test_montecarlo_over_area(cosim_main, chips, tmp_path):
    """A point is what the verb itself gives at that value."""
    out, file = tmp_path / "sweep", tmp_path / "sweep.json"
    code, text, err = cosim_main("sweep", *chips, "--over", "area=0.1,1", "-j", 1, "-o", out, "--json", file)
    assert code == 0, err
    found = json.loads((out / "sweep.json").read_text())
    assert found["axes"] == [{"option": "area", "unit": "", "values": [0.1, 1]}]
    data = f"data.npz ({file_checksum(chips[3])})"
    assert found["options"] == {"chips": 6, "spec": ["accuracy>=0.4"], "data": data}
    assert found["paired"] == "chip k is the same draw at every point" and found["paired"] in text
    assert [point["folder"] for point in found["points"]] == ["area-0.1", "area-1"]
    assert json.loads(file.read_text())["points"] == found["points"]
    assert "point 2 of 2: area 1" in err
    code, _, _ = cosim_main(*chips, "--area", 0.1, "-j", 1, "-o", tmp_path / "alone")
    alone = json.loads((tmp_path / "alone" / "summary.json").read_text())
    swept = json.loads((out / "area-0.1" / "summary.json").read_text())
    assert (code, swept) == (0, alone)
    low, high = alone["yield"]["interval"]
    assert found["points"][0]["figures"]["yield"] == {"value": alone["yield"]["value"], "low": low, "high": high}
    rows = list(csv.DictReader((out / "sweep.csv").read_text().splitlines()))
    assert [float(row["area"]) for row in rows] == [0.1, 1]
    assert float(rows[0]["yield_low"]) == low
    small, drawn = (draws(out / name) for name in ("area-0.1", "area-1"))
    np.testing.assert_allclose(small / 10**0.5, drawn, rtol=1e-6, atol=0)  # sigma goes as 1/sqrt(WL); single precision
    code, text, _ = cosim_main("verify", out)
    assert code == 0 and "sweep.json" in text and "area-0.1/chips.jsonl" in text
    page = (out / "report.html").read_text()
    assert 'href="area-0.1/report.html"' in page and "<script" not in page and str(tmp_path) not in page


def test_jobs_and_interruption_change_no_byte(cosim_main, chips, tmp_path, monkeypatch):
    """The second point is stopped after its first chips; the same command goes on."""
    axes = ["--over", "area=0.5,2"]
    assert cosim_main("sweep", *chips, *axes, "-j", 1, "-o", tmp_path / "whole")[0] == 0
    from cosim.base.store import RecordStore

    append, kept = RecordStore.append, []

    def stopping(self, record):
        append(self, record)
        kept.append(record.chip)
        if len(kept) == 8:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RecordStore, "append", stopping)
        code, _, err = cosim_main("sweep", *chips, *axes, "-j", 1, "-o", tmp_path / "broken")
    assert code == 130 and "the same command continues where it stopped" in err
    assert not (tmp_path / "broken" / "sweep.json").exists()
    assert cosim_main("sweep", *chips, *axes, "-j", 2, "-o", tmp_path / "broken")[0] == 0
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_compile_and_a_point_that_cannot_be_run(cosim_main, tmp_path, make_network):
    """On a grid of 1/8 a weight needs 8 unit devices or a multiple; the others are rows with their reason."""
    network = replace(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), weight_grid=1 / 8)
    save_checkpoint(tmp_path / "net.npz", network)
    out = tmp_path / "sweep"
    code, text, err = cosim_main("sweep", "compile", tmp_path / "net.npz", "--over", "units=4:16:4", "-o", out)
    assert code == 1 and "2 of 4 points" in err
    found = json.loads((out / "sweep.json").read_text())
    assert [point["status"] for point in found["points"]] == ["failed", "ok", "failed", "ok"]
    assert (
        "need 8 unit" in found["points"][0]["reason"]
        and "failed:" in text
        and max(map(len, text.splitlines()[:-1])) <= WIDTH
    )
    sizes = [point["figures"]["gate_area_um2"]["value"] for point in found["points"] if point["figures"]]
    assert 1.5 < sizes[1] / sizes[0] < 2.1  # weights take twice the devices, cells and converters the same
    assert json.loads((out / "units-8" / "design.json").read_text())["gate_area_um2"] == sizes[0]
    assert not (out / "units-4").exists()


def test_power_over_the_frame(cosim_main, tiny, tmp_path):
    """Static circuits: energy of an inference is power times its frames, so it goes with the frame."""
    arguments = ["power", tiny / "net.npz", "--data", tiny / "data.npz", "--behavioral"]
    over = ["--over", "t-step=20m,50m", "--figure", "total.energy_inference_j", "--figure", "transistors"]
    code, text, err = cosim_main("sweep", *arguments, *over, "-o", tmp_path)
    assert code == 0, err
    found = json.loads((tmp_path / "sweep.json").read_text())
    assert found["figures"] == ["total.energy_inference_j", "transistors"]
    assert [point["folder"] for point in found["points"]] == ["t-step-20ms", "t-step-50ms"]
    energies = [point["figures"]["total.energy_inference_j"]["value"] for point in found["points"]]
    assert energies[1] / energies[0] == pytest.approx(2.5, rel=1e-9)  # the same sums times t_step
    assert re.search(r"^ *20 ms +[\d.]+ [pn]J \[", text, re.MULTILINE)


@pytest.mark.ngspice
def test_compare_over_two_axes(cosim_main, tiny, tmp_path):
    arguments = ["compare", tiny / "net.npz", "--data", tiny / "data.npz", "--samples", 2]
    code, _, err = cosim_main(
        "sweep", *arguments, "--over", "supply=1.7:1.9:2", "--over", "bias=constant", "-o", tmp_path
    )
    assert code == 0, err
    found = json.loads((tmp_path / "sweep.json").read_text())
    assert [point["folder"] for point in found["points"]] == ["supply-1.7V_bias-constant", "supply-1.9V_bias-constant"]
    alone = json.loads((tmp_path / "supply-1.9V_bias-constant" / "comparison.json").read_text())
    figures = found["points"][1]["figures"]
    assert figures["accuracy"]["value"] == alone["accuracy"]["ngspice"]
    assert [figures["accuracy"][end] for end in ("low", "high")] == alone["accuracy_interval"]["ngspice"]
    assert figures["state_agreement"]["value"] == alone["state_agreement"]
    assert 'href="supply-1.7V_bias-constant/report.html"' in (tmp_path / "report.html").read_text()


def test_flags_are_swept_with_no_and_yes(cosim_main, tiny, tmp_path):
    """A weight beyond the largest mirror is refused, or cut and listed."""
    network = replace(load_network(tiny / "net.npz"), weight_grid=None)
    save_checkpoint(
        tmp_path / "net.npz", replace(network, readout=replace(network.readout, weight=40 * network.readout.weight))
    )
    axes = ["--over", "saturate=no,yes", "--over", "units=8,16"]
    code, _, _ = cosim_main("sweep", "compile", tmp_path / "net.npz", *axes, "-o", tmp_path / "sweep")
    found = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert [point["folder"] for point in found["points"]][1:3] == ["saturate-no_units-16", "saturate-yes_units-8"]
    assert (code, [point["status"] for point in found["points"]]) == (1, ["failed", "failed", "ok", "ok"])
    assert "--saturate" in found["points"][0]["reason"]
    assert found["points"][2]["figures"]["lost"]["value"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--over", "speed=1,2"], "--over speed: cosim montecarlo has no option --speed; did you mean seed?"),
        (["--over", "area"], "--over must be NAME=VALUES"),
        (["--over", "area=1,fast"], "--over area: 'fast' is not a valid float"),
        (["--over", "area=1,1000"], "--over area: must lie in 0.01 to 100, not 1000"),
        (["--over", "i-unit=1V"], "--i-unit must be a number in A"),
        (["--over", "i-unit=-1n"], "must lie in 1e-15 to 0.001 A, not -1e-09 A"),
        (["--over", "area=1,2", "--over", "area=4"], "--over area is given twice"),
        (["--over", "area=1", "--over", "seed=1", "--over", "chips=3"], "given once or twice"),
        ([], "it is given 0 times"),
        (["--over", "area=1,2", "--area", "2"], "--area is both fixed and swept"),
        (["--over", "area=1,,2"], "--over area has an empty value"),
        (["--over", "area="], "--over area has an empty value"),
        (["--over", "area=1:2:0"], "count from 2 to 1000, not '0'"),
        (["--over", "area=2:2:3"], "2:2:3 is empty"),
        (["--over", "area=1:2:3:lin"], "may end with :log for equal factors, not with :lin"),
        (["--over", "seed=0:5:3"], "gives 2.5, which is no whole number"),
        (["--over", "temp=-40:85:3:log"], "a range with :log must have positive ends"),
        (["--over", "corner=tt:ss:2"], "takes words, so it has no ranges"),
        (["--over", "area=1,1.0"], "--over area has 1.0 twice"),
        (["--over", "jobs=1,2"], "--jobs changes no figure"),
        (["--over", "area=1,2", "--replay", "0"], "--replay replays one chip"),
        (["--over", "area=1,2", "--", "-o", "there"], "--output is the sweep's own"),
        (["--over", "area=1,2", "--wrong"], "no such option"),
        (["--over", "area=1,2", "--engine", "spice"], "invalid value for '--engine'"),
        (["--over", "area=1:2:40", "--over", "seed=0:39:40"], "at most 1000 points, not 1600"),
    ],
)
def test_refusals_before_anything_runs(cosim_main, chips, tmp_path, arguments, message):
    code, _, err = cosim_main("sweep", "-o", tmp_path / "sweep", *chips, *arguments)
    assert code == 2 and message in err.replace("No such", "no such")
    assert not (tmp_path / "sweep").exists()


def test_the_settings_of_a_sweep_make_it_again(cosim_main, tiny, tmp_path):
    """run.toml of the sweep, and its command line, which has options of the verb in it; every point has its own."""
    arguments = ["compile", tiny / "net.npz", "--cell", "schmitt", "--over", "units=8,16"]
    assert cosim_main("sweep", *arguments, "-o", tmp_path / "first")[0] == 0
    assert cosim_main("sweep", "--config", tmp_path / "first" / "run.toml", "-o", tmp_path / "again")[0] == 0
    assert contents(tmp_path / "again") == contents(tmp_path / "first")
    settings = tomllib.loads((tmp_path / "first" / "run.toml").read_text())
    _, *words = shlex.split(settings["command"])
    assert cosim_main(*words[:1], "-o", tmp_path / "typed", *words[1:])[0] == 0
    assert contents(tmp_path / "typed") == contents(tmp_path / "first")
    point = tomllib.loads((tmp_path / "first" / "units-16" / "run.toml").read_text())
    assert (point["verb"], point["options"]["units"], point["options"]["cell"]) == ("compile", 16, "schmitt")


def test_a_figure_that_is_not_there(cosim_main, tiny, tmp_path):
    arguments = ["compile", tiny / "net.npz", "--over", "units=8,16", "--figure", "transistor", "-o", tmp_path]
    code, _, err = cosim_main("sweep", *arguments)
    assert code == 2 and "--figure transistor: the results have no figure of this name; did you mean transistors" in err


def test_figures_of_a_json_object():
    content = {
        "yield": {"value": 0.5, "interval": [0.4, 0.6], "chips": 10},
        "accuracy": {"software": 0.9, "behavioral": 0.8, "ngspice": 0.7},
        "accuracy_interval": {"software": [0.8, 1.0], "behavioral": [0.7, 0.9], "ngspice": [0.6, 0.8]},
        "power_w": {"ngspice": None, "behavioral": {"mean": 1e-7, "low": 9e-8, "high": 2e-7}},
        "static_w": None,
        "lost": ["a", "b"],
        "rows": [{"bits": 2}, {"bits": 8}],
        "passed": True,
    }
    found = dict(find_figures(content))
    assert found["yield"] == Estimate(0.5, 0.4, 0.6) and found["yield.chips"] == Estimate(10)
    assert pick_figure(found, "accuracy") == Estimate(0.7, 0.6, 0.8)
    assert pick_figure(found, "accuracy.software") == Estimate(0.9, 0.8, 1.0)
    assert pick_figure(found, "power_w") == Estimate(1e-7, 9e-8, 2e-7)
    assert found["static_w"] is None and found["lost"] == Estimate(2) and found["rows.-1.bits"] == Estimate(8)
    assert "passed" not in found
    with pytest.raises(InputError, match="did you mean yield"):
        pick_figure(found, "yeld")


@pytest.mark.parametrize(
    ("name", "unit", "text"),
    [
        ("yield", "%", "50.0 %"),
        ("accuracy.ngspice", "%", "50.0 %"),
        ("state_agreement", "%", "50.00 %"),
        ("power", "W", "500 mW"),
        ("accuracy.quantiles.5", "%", "50.0 %"),
        ("total.energy_frame_j.behavioral", "J", "500 mJ"),
        ("gate_area_um2", "um2", "0 um2"),
        ("yield.chips", "", "0.5"),
    ],
)
def test_units_of_figures(name, unit, text):
    assert (unit_of(name), format_one(name, 0.5)) == (unit, text)


def test_ranges():
    """Inner values have six digits, ends are as given, and steps or factors are equal."""
    assert spaced(1.6, 2.0, 5, log=False) == (1.6, 1.7, 1.8, 1.9, 2.0)
    assert spaced(0.25, 4, 5, log=True) == (0.25, 0.5, 1, 2, 4)
    found = np.array(spaced(1e-12, 3e-9, 7, log=True))
    np.testing.assert_allclose(found[1:] / found[:-1], 3000 ** (1 / 6), rtol=1e-5)  # two ends of half a 6th digit
    (axis,) = read_axes(["i-unit=0.5n:2n:3:log"], "montecarlo", montecarlo.command)
    assert (axis.unit, axis.values, axis.geometric) == ("A", (5e-10, 1e-9, 2e-9), False)
    assert [axis.label(value) for value in axis.values] == ["500 pA", "1 nA", "2 nA"]
    assert isinstance(montecarlo.command, click.Command)
