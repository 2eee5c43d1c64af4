"""The page of a run of chips: its figures are the run's, it needs nothing else, nothing in it is taken for markup."""

import json
import re
import shutil
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

from cosim.base.errors import InputError, MissingToolError, SimulationError
from cosim.base.quantities import format_quantity
from cosim.base.seal import seal_json
from cosim.compiler.mapping import map_parameters
from cosim.compiler.passes import compile_network
from cosim.results.metrics import CHIP_METRICS, percent
from cosim.results.page import format_pages
from cosim.tasks.testset import TestSet
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo import chip_study as report
from cosim.verbs.montecarlo.chip_study import find_failure, nominal_power, stored_chip, study_chips, yield_curve
from cosim.verbs.montecarlo.chips import UnresetCount
from cosim.verbs.montecarlo.page import chip_page, write_report
from cosim.verbs.montecarlo.spec import parse_spec
from cosim.verbs.montecarlo.statistics import count_yield
from cosim.verbs.montecarlo.store import read_store
from cosim.verbs.montecarlo.trial import Trial, run_behavioral_chip

HOSTILE = '<script>alert("x")</script>'
VOID = {"meta", "img", "br"}
SHARES = {
    "r2": 0.4321,
    "shares": [
        {"group": HOSTILE, "transistors": 12, "value": 0.4, "low": 0.1, "high": 0.7},
        {"group": "cells", "transistors": 3, "value": 0.0321, "low": -0.1, "high": 0.2},
    ],
}
FIGURE = {"mean": 1.0, "mean_interval": None, "sd": 0.0, "quantiles": {}}
CONTRIBUTIONS = {"accuracy": {"figure": FIGURE, "block": SHARES, "kind": SHARES}}


class Page(HTMLParser):
    """Tags in order, images, links, and the text by row and cell."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.images, self.links, self.open, self.rows, self.text = [], [], [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        if tag == "img":
            self.images.append(attributes)
        self.links += [value for name, value in attrs if name in ("href", "src", "srcset", "data", "action", "poster")]
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        data = data.replace("\N{NO-BREAK SPACE}", " ")
        self.text += data
        if self.open and self.open[-1] in ("td", "th", "a") and {"td", "th"} & {*self.open}:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def trial(make_network, technology, calibration):
    network = replace(make_network(7, hidden=2), task=HOSTILE, labels=(HOSTILE, *"abcdef"))
    rng = np.random.default_rng(4)
    x, lengths = rng.uniform(size=(40, 5, 3)), np.full(40, 5)
    design = compile_network(network, technology, calibration)
    blank = TestSet(x, np.zeros(40, dtype=np.int64), lengths, np.arange(40) + 100)
    _, decisions = Trial(design, blank, VariationPlan("none", 0, 1)).software
    return Trial(
        design, replace(blank, y=decisions), VariationPlan("local", 2, 12, area=0.1)
    )  # so small that some chips fail


@pytest.fixture(scope="module")
def store(trial, make_store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store") / "run"
    make_store(folder, trial, "accuracy>=0.8", "power<=1uW")
    (folder / "contributions.json").write_bytes(seal_json({"chips": 12, "contributions": CONTRIBUTIONS}))
    return folder


@pytest.fixture(scope="module")
def study(store):
    return study_chips(store, waveforms=False)


@pytest.fixture(scope="module")
def text(study):
    return format_chip_report(study)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def format_chip_report(study):
    return format_pages([chip_page(study)])


@pytest.mark.usefixtures("unrendered")
def test_cells_that_do_not_reset_are_named(study, page):
    assert "stays on through the reset" not in page.text  # no chip here has one
    found = UnresetCount(3, meet_spec=1, cells={"layer0.2": 2, HOSTILE: 1})
    text = Page(format_chip_report(replace(study, summary=replace(study.summary, unreset=found)))).text
    named = f"3 chips have a cell that does not reset (layer0.2 in 2, {HOSTILE} in 1): it stays on through the reset"
    assert named in text
    many = UnresetCount(9, meet_spec=0, cells={f"layer0.{k}": 9 - k for k in range(7)})
    page = Page(format_chip_report(replace(study, summary=replace(study.summary, unreset=many))))
    assert "layer0.3 in 6 and 3 more)" in page.text  # all of them are in a table
    assert ["layer0.6", "3"] in page.rows


def shown(metric, value):
    if metric == "power":
        return format_quantity(value, "W")
    return percent(value, 2 if metric == "state_agreement" else 1)


def test_answer_is_that_of_the_summary(store, page):
    found = json.loads((store / "summary.json").read_text())["yield"]
    low, high = map(percent, found["interval"])
    sentence = (
        f"Yield {percent(found['value'])}, 95 % interval {low} to {high} (Clopper-Pearson): {found['passed']} of 12 "
        "chips have "
        "accuracy ≥ 80 % and power ≤ 1 uW."
    )
    assert sentence in page.text
    assert f"{sentence} Accuracy of the nominal circuit " in page.text
    assert 0 < found["passed"] < 12  # a run in which all chips are alike would show little
    for words in ("d = 5, 2 in 2 recurrent layers", "generic180 (tt, 27 °C, 1.8 V)", "mismatch of each transistor",
                  "each on 40 test samples", "Engine: behavioral"):  # fmt: skip
        assert words in page.text


def test_table_is_that_of_the_summary(store, page):
    summary = json.loads((store / "summary.json").read_text())
    for metric in CHIP_METRICS:
        found = summary[metric]
        row, more = (row for row in page.rows if row[0] == metric.replace("_", " "))
        half = found["mean_interval"][1] - found["mean"]
        assert row[2] == shown(metric, summary["nominal"][metric])
        assert row[3] == f"{shown(metric, found['mean'])} ± {shown(metric, half)}"
        quantiles = {q: shown(metric, value) for q, value in found["quantiles"].items()}
        assert row[4:] == [shown(metric, found["sd"]), *(quantiles.pop(q) for q in ("5", "50", "95"))]
        assert more[1:] == list(quantiles.values())
        assert f"sd {shown(metric, found['sd'])}" in page.text
    assert percent(summary["software_accuracy"]) in page.text


def test_every_parameter_has_its_row(trial, page):
    rows = {row[0]: row for row in page.rows if len(row) == 7}
    mapping = map_parameters(trial.design)
    assert {row.parameter for row in mapping} == set(rows) - {"parameter"}
    for row in mapping:
        assert rows[row.parameter][1] == row.element and rows[row.parameter][5:] == [row.status, row.note]
    assert f"{len(mapping)} parameters" in page.text


def test_power_of_blocks_adds_up_to_the_nominal_power(trial, study, page):
    blocks = nominal_power(trial)
    assert sum(blocks.values()) == pytest.approx(study.summary.nominal.power, rel=1e-12, abs=0)
    for name, power in blocks.items():
        assert [name, format_quantity(power, "W"), percent(power / sum(blocks.values()))] in page.rows


def test_settings_are_those_of_the_run(store, page):
    settings = dict(row for row in page.rows if len(row) == 2)
    run = json.loads((store / "run.json").read_text())
    assert settings["test samples"] == run["samples_hash"]
    assert settings["network"] == run["design"]["network"]
    assert (settings["variation: seed"], settings["variation: chips"]) == ("2", "12")
    assert settings["compiled: circuit of a recurrent unit"] == "auto"
    assert settings["transistors that vary"] == f"{len(run['devices'])} of {run['design']['transistors']}"
    assert settings["devices: n transistors: mismatch of the threshold voltage, one device"] == "5 mV um"
    assert not [value for value in settings.values() if re.search(r"\de-\d", value)]


def test_every_hash_is_named_once(store, page):
    run = json.loads((store / "run.json").read_text())
    for found in (run["design"]["network"], run["design"]["calibration"], run["calibration"], run["samples_hash"]):
        assert page.text.count(found) == 1


@pytest.mark.usefixtures("unrendered")
def test_nothing_is_taken_for_markup(study, text, page):
    assert page.open == []
    assert not {"iframe", "object", "link", "base", "form"} & set(page.tags)
    assert page.tags.count("script") == 1  # the page's own
    assert HOSTILE not in text and escape(HOSTILE) in text
    assert page.text.count(HOSTILE) >= 2  # title and headline; labels and groups stand in figures and alt texts
    assert any(HOSTILE in image["alt"] for image in page.images)
    hostile = format_chip_report(replace(study, settings={**study.settings, HOSTILE: HOSTILE}, failure=HOSTILE))
    assert Page(hostile).tags.count("script") == 1


def test_it_needs_nothing_from_elsewhere(page, text):
    assert all(link.startswith(("data:image/svg+xml;base64,", "data:image/png;base64,", "#")) for link in page.links)
    assert len(page.images) >= 12 and all(len(image["alt"]) > 20 for image in page.images)
    style = text.partition("</style>")[0]
    assert "@import" not in style and "url(" not in style and "http" not in style
    anchors = {link for link in page.links if link.startswith("#")}
    assert anchors and all(f'id="{anchor[1:]}"' in text for anchor in anchors)


def test_the_same_bytes_twice(store, tmp_path):
    for name in ("one", "two"):
        write_report(store, tmp_path / f"{name}.html", waveforms=False)
    content = (tmp_path / "one.html").read_bytes()
    assert content == (tmp_path / "two.html").read_bytes()
    assert 100_000 < len(content) < 3_000_000


def test_curve_counts_and_passes_through_the_spec(trial, study):
    found, curve = study.summary.yield_, yield_curve(trial, study.records, study.specs)
    limit, value, low, high = curve.spec
    assert (limit, value, (low, high)) == (0.8, found.value, found.interval)
    accuracies = np.array([record.behavioral.accuracy for record in study.records])
    cheap = np.array([record.behavioral.power <= 1e-6 for record in study.records])
    for k, at in enumerate(curve.limits):
        expected = count_yield(list((accuracies >= at) & cheap), trial.plan)
        assert (curve.values[k], curve.low[k], curve.high[k]) == (expected.value, *expected.interval)
    assert (np.diff(curve.values) <= 0).all() and (np.diff(curve.limits) > 0).all()
    assert curve.limits[0] >= 0 and curve.limits[-1] <= 1
    without = yield_curve(trial, study.records, [parse_spec("power<=1uW")])
    assert without.spec is None
    np.testing.assert_array_equal(without.values, curve.values)


def fail(record):
    return replace(record, status="failed", reason=HOSTILE, detail="why")


@pytest.mark.usefixtures("unrendered")
def test_failed_chips_are_said_and_left_out(trial, make_store, tmp_path):
    make_store(tmp_path / "run", trial, "accuracy>=0.5", change=lambda r: fail(r) if r.chip in (1, 5) else r)
    study = study_chips(tmp_path / "run", waveforms=False)
    page = Page(format_chip_report(study))
    without = study.summary.yield_.without_failed
    low, high = map(percent, without.interval)
    assert f"2 simulations failed (2: {HOSTILE}); such a chip counts as one that does not work" in page.text
    assert f"Without them the yield is {percent(without.value)} [{low}, {high}]." in page.text
    assert any("over 10 chips" in image["alt"] for image in page.images)
    assert yield_curve(trial, study.records, study.specs).values[0] == pytest.approx(10 / 12)


@pytest.mark.usefixtures("unrendered")
def test_a_run_of_failures_alone_still_has_its_page(trial, make_store, tmp_path):
    make_store(tmp_path / "run", trial, "accuracy>=0.5", change=fail)
    write_report(tmp_path / "run", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text())
    assert page.open == [] and "0 of 12 chips have accuracy ≥ 50 %" in page.text
    assert "No chip was simulated to its end." in page.text


@pytest.mark.usefixtures("unrendered")
def test_chips_without_deviations(trial, make_store, tmp_path):
    """All alike and all right: histograms of one bar, and no chip to look into."""
    make_store(tmp_path / "run", replace(trial, plan=VariationPlan("none", 0, 3)), "accuracy>=0.5")
    study = study_chips(tmp_path / "run")
    assert study.failure == "No chip decides any sample wrong."
    assert "3 of 3 chips" in Page(format_chip_report(study)).text


@pytest.mark.usefixtures("unrendered")
def test_what_the_equations_do_not_know_is_said(trial, make_store, text, tmp_path):
    """They know mismatch and power of another condition; in the nominal one there is no more to know."""
    make_store(tmp_path / "run", replace(trial, plan=VariationPlan("global", 0, 3)), "accuracy>=0.5")
    words = "In the equations process, supply and temperature move no threshold"
    assert words in Page(format_chip_report(study_chips(tmp_path / "run", waveforms=False))).text
    assert words not in text


def test_the_worst_chip_and_a_sample_that_it_spoils(trial, study, monkeypatch):
    seen = []
    monkeypatch.setattr(report, "simulate_failure", lambda *args: seen.append(args) or "drawn")
    assert find_failure(trial, study.records, lambda text: None) == "drawn"
    ((_, worst, sample),) = seen
    accuracies = [record.behavioral.accuracy for record in study.records]
    assert worst.chip == int(np.argmin(accuracies))
    decided, (_, software) = worst.behavioral.decisions, trial.software
    assert decided[sample] != trial.test_set.y[sample] == software[sample]
    spoilt = np.array(decided) != trial.test_set.y  # the software decides all of these right
    assert sample == int(spoilt.argmax())


def test_a_chip_is_that_of_its_record(trial, study):
    record = study.records[3]
    assert run_behavioral_chip(trial, stored_chip(trial, record)) == record.behavioral


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MissingToolError("install libngspice0"), "Waveforms need a simulator that is missing .*: install libngspice0"),
        (SimulationError("no convergence"), "The simulation for the waveforms failed: no convergence"),
    ],
)
def test_without_a_simulator_the_page_says_so(store, tmp_path, monkeypatch, error, words):
    def no_simulator(*_):
        raise error

    monkeypatch.setattr(report, "simulate_failure", no_simulator)
    write_report(store, tmp_path / "page.html")
    assert re.search(words, Page((tmp_path / "page.html").read_text()).text)


def test_unfinished_runs_are_refused(store, tmp_path):
    shutil.copytree(store, tmp_path / "run")
    lines = (store / "chips.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "run" / "chips.jsonl").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(InputError, match=r"summary.json counts 12 chips, but chip 11 is not there; the same command"):
        study_chips(tmp_path / "run", waveforms=False)
    (tmp_path / "run" / "summary.json").write_text("{")
    with pytest.raises(InputError, match=r"summary.json: damaged"):
        study_chips(tmp_path / "run", waveforms=False)
    (tmp_path / "run" / "summary.json").write_bytes(seal_json({"chips": 12, "failed": 0}))
    with pytest.raises(InputError, match=r"summary.json: unreset, engine, yield, .* missing; the same command"):
        study_chips(tmp_path / "run", waveforms=False)
    (tmp_path / "run" / "summary.json").unlink()
    with pytest.raises(InputError, match=r"the run is not finished \(summary.json is missing\); the same command"):
        study_chips(tmp_path / "run", waveforms=False)
    with pytest.raises(InputError, match="no Monte Carlo run there"):
        study_chips(tmp_path, waveforms=False)


@pytest.fixture(scope="module")
def simulated(make_network, technology, calibration, make_store, tmp_path_factory):
    """A run by ngspice: 4 chips of 3 cells, 2 samples of 3 frames, all classes wrong, so that one can be shown."""
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    x = np.random.default_rng(3).uniform(size=(2, 3, 3))
    test_set = TestSet(x, np.zeros(2, dtype=np.int64), np.array([3, 2]), np.array([17, 4]))
    design = compile_network(network, technology, calibration)
    _, decisions = Trial(design, test_set, VariationPlan("none", 0, 1)).software
    trial = Trial(design, replace(test_set, y=1 - decisions), VariationPlan("local", 5, 4), "ngspice")
    folder = tmp_path_factory.mktemp("simulated") / "run"
    make_store(folder, trial, "state_agreement>=0.5")
    return folder


@pytest.mark.ngspice
@pytest.mark.usefixtures("unrendered")
def test_both_engines_and_the_worst_chip(simulated, tmp_path):
    write_report(simulated, tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text())
    summary = json.loads((simulated / "summary.json").read_text())
    for metric, pair in summary["paired"].items():
        low, high = (format_quantity(v, "W") if metric == "power" else percent(v, 2) for v in pair["bias_interval"])
        assert f"[{low}, {high}]" in page.text
    _, records = read_store(simulated)
    (found,) = re.findall(r"Chip (\d) has the lowest accuracy: accuracy ([\d.]+ %)", page.text)
    assert int(found[0]) == min(records, key=lambda k: records[k].simulated.accuracy)
    assert found[1] == percent(records[int(found[0])].simulated.accuracy)
    (decided,) = re.findall(r"Test sample (17|4) is of class class (\d); decided: software class (\d)", page.text)
    assert decided[1] != decided[2]
    (picture,) = (image for image in page.images if image["src"].startswith("data:image/png"))
    assert picture["alt"].startswith("Waveforms of chip")
    write_report(simulated, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "page.html").read_bytes()


@pytest.mark.ngspice
def test_waveforms_are_those_of_the_recorded_chip(simulated, tmp_path):
    """The decision of the waveforms is that of the record, and the chip is not the nominal circuit."""
    study = study_chips(simulated)
    failure = study.failure
    assert not isinstance(failure, str)
    _, records = read_store(simulated)
    place = [17, 4].index(failure.sample)
    assert failure.decided["chip on transistors"] == records[failure.chip].simulated.decisions[place]
    assert failure.waves["candidate"].max() != failure.nominal["candidate"].max()
    assert failure.labels.own is not None and len(failure.labels.own) == 2


def test_paper_shows_all_of_the_table(browse, study, text, tmp_path):
    """A table that scrolls on the screen takes the pages that its rows need."""
    pages = {}
    for name, content in {
        "whole": text,
        "short": re.sub(r"(<details.*?<tbody>).*?(</tbody>)", r"\1\2", text),
    }.items():
        (tmp_path / f"{name}.html").write_text(content)
        target = tmp_path / f"{name}.pdf"
        browse("--no-pdf-header-footer", f"--print-to-pdf={target}", (tmp_path / f"{name}.html").as_uri())
        pages[name] = len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))
    rows = len(map_parameters(study.trial.design))
    assert pages["whole"] >= pages["short"] + rows // 80
