"""`cosim harden` as a user runs it: what it writes, interrupted, and what is refused."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from cosim.cli import load_verb
from cosim.cli.verb import call, parse
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.verbs.harden.command import HardenOptions, read_yield, training_settings
from cosim.verbs.inner import read_inner

pytestmark = pytest.mark.usefixtures("unrendered_module")
FILES = ("run.toml", "harden.json", "harden.png", "harden.svg", "network.pt", "report.html")
NETWORK = Path(__file__).parents[3] / "models" / "trained" / "digits_d4.pt"
DRAWN = ("--chips", 4, "--samples", 30, "--spec", "accuracy>=0.72")
ASKED = ("--behavioral", "--iterations", 12, "--area-max", 1, "--yield", "80%")


@pytest.fixture(scope="module", autouse=True)
def two_bits():
    """Converters of 2 bits alone, because each number of bits measures all chips again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cosim.verbs.harden.study.TRIM_BITS", (2,))
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a hardening that nobody stopped, and its result."""
    out = tmp_path_factory.mktemp("harden") / "it's done"
    verb = load_verb("harden")
    return out, call(verb, parse(verb, list(map(str, (*ASKED, "-j", 1, "-o", out, NETWORK, *DRAWN))))[0])


def test_a_folder_to_go_on_with(cosim_main, whole):
    """harden.json has the figures of montecarlo's own runs; the network in the folder is the one that was chosen."""
    out, result = whole
    found = json.loads((out / "harden.json").read_text())
    steps = found["steps"]
    assert [step["change"] for step in steps[:2]] == ["as given", "trained on chips that vary"]
    chosen = steps[found["chosen"]]
    assert result.fault == (None if chosen["circuit"]["fresh"]["value"] >= 0.8 else "")
    assert found["spec"] == ["accuracy>=0.72"] and found["training"]["iterations"] == "12"
    for number, step in enumerate(steps[:2]):
        summary = json.loads((out / f"trial-{number:03d}" / "summary.json").read_text())
        assert step["circuit"]["figures"]["yield"]["value"] == summary["yield"]["value"]
        assert step["circuit"]["figures"]["area"]["value"] == summary["nominal"]["area"]
    given, trained = load_network(NETWORK), load_network(out / "trained.pt")
    assert trained.history["settings"]["mismatch"]["technology"] == "generic180"
    assert [layer.width for layer in trained.layers] == [layer.width for layer in given.layers]
    source = NETWORK if chosen["network"] == NETWORK.name else out / "trained.pt"
    assert (out / "network.pt").read_bytes() == source.read_bytes()
    assert not (out / "technology.toml").exists()  # nothing is larger
    assert "of fresh chips work" in str(result.page) and "cosim compile" in str(result.page)
    page = (out / "report.html").read_text()
    assert 'href="trial-001/report.html"' in page
    code, text, _ = cosim_main("verify", out)
    assert code == 0 and "harden.json" in text and "trial-000/chips.jsonl" in text
    kept = (out / "harden.json").read_bytes()
    code, _, err = cosim_main("harden", *ASKED, "-o", out, NETWORK, *DRAWN, "--seed", 1)
    assert code == 2 and "other" in err and (out / "harden.json").read_bytes() == kept
    code, _, err = cosim_main("harden", *ASKED, "-o", out, out / "network.pt", *DRAWN)
    assert code == 2 and "lies in the folder of the results" in err


@pytest.mark.slow  # a sweep's test of this kind runs by default
def test_jobs_and_interruption_change_no_byte(cosim_main, whole, tmp_path, monkeypatch):
    """Stopped in the chips of the trained network; the same command goes on, with more processes."""
    from cosim.base.store import RecordStore
    from cosim.verbs.montecarlo.chips import ChipRecord

    append, kept, out = RecordStore.append, [], tmp_path / "broken"

    def stopping(self, record):
        append(self, record)
        kept.extend([record.chip] if isinstance(record, ChipRecord) else [])
        if len(kept) == 6:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RecordStore, "append", stopping)
        code, _, err = cosim_main("harden", *ASKED, "-j", 1, "-o", out, NETWORK, *DRAWN)
    assert code == 130 and "continues where it stopped" in err and not (out / "harden.json").exists()
    cosim_main("harden", *ASKED, "-j", 2, "-o", out, NETWORK, *DRAWN)
    for name in ("harden.json", "network.pt", "harden.svg"):
        assert (out / name).read_bytes() == (whole[0] / name).read_bytes(), name


@pytest.mark.slow  # calibrates cells of two other sizes
@pytest.mark.timeout(1800)
def test_devices_are_drawn_larger(cosim_main, tmp_path):
    """technology.toml has the sizes, and what the page says to type compiles with them."""
    out = tmp_path / "out"
    asked = ("--behavioral", "--iterations", 0, "--area-max", 1.5, "--yield", "99%")
    cosim_main("harden", *asked, "-j", 2, "-o", out, NETWORK, "--chips", 40)
    found = json.loads((out / "harden.json").read_text())
    assert "times as large" in found["steps"][1]["change"] and found["training"] == {}
    target = ("--technology", out / "technology.toml", "-o", tmp_path / "netlist")
    assert found["chosen"] > 0 and cosim_main("compile", NETWORK, *target)[0] == 0


def test_a_network_without_settings_is_not_trained(cosim_main, tiny, tmp_path):
    """Its devices can still be enlarged and trimmed; the reason is on the page."""
    out = tmp_path / "out"
    options = ("--data", tiny / "data.npz", "--chips", 2, "--spec", "accuracy>=1")
    code, text, _ = cosim_main("harden", *ASKED, "-o", out, tiny / "net.npz", *options)
    found = json.loads((out / "harden.json").read_text())
    assert code == 1 and found["steps"][1]["circuit"]["figures"] == {}
    assert "net.npz: the network has no settings of cosim train" in found["steps"][1]["circuit"]["reason"]
    assert "Not possible: trained on chips that vary" in " ".join(text.split())
    np.testing.assert_array_equal(load_network(out / "network.pt").readout.weight,
                                  load_network(tiny / "net.npz").readout.weight)  # fmt: skip
    assert str(tmp_path) not in (out / "harden.json").read_text()


def test_the_training_takes_over_what_the_first_one_had(tmp_path):
    network = load_network(NETWORK)
    chips = read_inner("montecarlo", [str(NETWORK), "--technology", "gf180mcu", "--seed", "3"], jobs=1, fresh=False)
    named = training_settings(network, chips, HardenOptions(rest=(), iterations=70, learning_rate=1e-3))
    assert named["task"] == "digits" and named["from"] == str(NETWORK) and named["technology"] == "gf180mcu"
    assert named["weight-cost"] == str(network.history["settings"]["weight_cost"])
    assert (named["iterations"], named["lr"], named["seed"]) == ("70", "0.001", "3") and "power-cost" not in named
    priced = {**network.history, "settings": {**network.history["settings"], "power_cost": 0.003}}
    again = training_settings(dataclasses.replace(network, history=priced), chips, HardenOptions(rest=()))
    assert again["power-cost"] == "0.003"
    tested = read_inner("montecarlo", [str(NETWORK), "--data", "own.npz"], jobs=1, fresh=False)
    assert "data" not in training_settings(network, tested, HardenOptions(rest=()))  # digits bring their own


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        (("--yield", "often"), (), "must be a share of the chips, such as 95%, not often"),
        (("--yield", "120%"), (), "1.2"),
        ((), ("--engine", "batch"), "--engine is none of cosim harden"),
        ((), ("--spec", "yield>=90%"), "give the share of the chips that must work as --yield"),
        ((), ("--spec", "limits.toml"), "takes no file of limits"),
        ((), ("--colour", "red"), "--colour"),
    ],
)
def test_what_is_refused(cosim_main, tmp_path, options, more, message):
    code, _, err = cosim_main("harden", *options, "-o", tmp_path / "out", NETWORK, *more)
    assert code == 2 and message in " ".join(err.split()), err
    assert not (tmp_path / "out").exists()


def test_a_yield_is_typed_as_a_share_or_in_per_cent():
    assert read_yield("95%") == read_yield("0.95") == 0.95


def test_a_hostile_task_is_no_option(cosim_main, tmp_path):
    """The name of a task comes from the file, and is a word of the training's command line."""
    from dataclasses import replace

    network = replace(load_network(NETWORK), task="--help")
    save_checkpoint(tmp_path / "net.pt", network)
    cosim_main("harden", *ASKED, "-o", tmp_path / "out", tmp_path / "net.pt", *DRAWN)
    reason = json.loads((tmp_path / "out" / "harden.json").read_text())["steps"][1]["circuit"]["reason"]
    assert "TASK must be one of" in reason
