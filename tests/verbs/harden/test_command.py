"""`cosim harden` as a user runs it: what it writes, interrupted, and what is refused."""

import dataclasses
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from cosim.cli import load_verb
from cosim.cli.verb import call, parse
from cosim.compiler.overrides import Overrides, line_of, matches
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.tasks.testset import load_test_set
from cosim.variation.draws import VariationPlan
from cosim.verbs.harden.command import HardenOptions, read_yield, training_settings
from cosim.verbs.harden.mirrors import measure_mirrors, with_more_devices
from cosim.verbs.inner import read_inner
from cosim.verbs.montecarlo.contributions import mixed_chip
from cosim.verbs.montecarlo.trial import Trial, run_behavioral_chip

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
    assert not (out / "overrides.toml").exists()  # no mirror has more devices
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


def test_mirrors_get_more_devices(cosim_main, tmp_path, monkeypatch):
    """overrides.toml has them, and what the page says to type compiles with them; entries of an own file stay."""
    monkeypatch.setattr("cosim.verbs.harden.mirrors._CHIPS", 8)
    monkeypatch.setattr("cosim.verbs.harden.study.TRIM_BITS", ())
    out, own = tmp_path / "out", tmp_path / "own.toml"
    own.write_text('[[transistors]]\nmirror = "bias_gain_#"\ntimes = 2\n')
    asked = ("--behavioral", "--iterations", 0, "--area-max", 1.2, "--yield", "99%", "-j", 1, "-o", out, NETWORK)
    _, text, _ = cosim_main("harden", *asked, "--chips", 12, "--samples", 60, "--overrides", own)
    found = json.loads((out / "harden.json").read_text())
    assert found["steps"][1]["change"] == "more devices in mirrors, up to 1.1 times the area"
    assert found["options"]["overrides"].startswith("own.toml (") and found["chosen"] > 0
    before, after = found["steps"][0]["circuit"], found["steps"][found["chosen"]]["circuit"]
    assert before["figures"]["yield"]["value"] < after["figures"]["yield"]["value"]
    assert 1 < after["figures"]["area"]["value"] / before["figures"]["area"]["value"] <= 1.2
    losses = {one["mirrors"]: one["loss"] for one in found["mirrors"]}
    assert losses.keys() >= {"bias_thresh_#", "layer#_#_cand", "zero_p"} and max(losses.values()) > 0
    assert "accuracy lost" in text
    command = next(line for line in text.splitlines() if "cosim compile" in line).split()[2:]
    assert cosim_main("compile", *command, "-o", tmp_path / "netlist")[0] == 0
    design = json.loads((tmp_path / "netlist" / "design.json").read_text())
    assert design["overridden_transistors"] > 9  # those of the level alone
    code, _, err = cosim_main("harden", *asked, "--chips", 12, "--samples", 60, "--overrides", out / "overrides.toml")
    assert code == 2 and "overrides.toml: lies in the folder of the results" in err
    own.write_text('[[transistors]]\nmirror = "bias_gain_#"\ntimes = 3\n')  # the same command, another circuit
    code, _, err = cosim_main("harden", *asked, "--chips", 12, "--samples", 60, "--overrides", own)
    assert code == 2 and "other" in err and json.loads((out / "harden.json").read_text()) == found


def test_a_group_is_enlarged_and_nothing_else(technology, calibration):
    """On a network whose delayed inputs have names that begin as those of the inputs."""
    network = load_network(Path(__file__).parents[3] / "models" / "trained" / "flip_flop_d2.pt")
    samples = load_test_set(network, None).take(2, 0)

    def trial(overrides=Overrides()):
        design = compile_network(network, technology, calibration, CompilerSettings(overrides=overrides))
        return Trial(design, samples, VariationPlan("local", 0, 1))

    def devices(one):
        return {mos.name: (line_of(mos), mos.m) for mos in one.design.assembly.circuit.flatten()}

    before = devices(trial())
    patterns = {re.sub(r"\d+", "#", line) for line, _ in before.values() if line}
    assert {"in_#_p", "in_#_shift#_#_p"} <= patterns
    times = {pattern: 2 + k for k, pattern in enumerate(sorted(patterns))}
    after = devices(trial(with_more_devices(Overrides(), times)))
    for name, (line, m) in before.items():
        assert after[name] == (line, m * times.get(re.sub(r"\d+", "#", line), 1)), name


def test_the_loss_of_a_group_is_that_of_its_transistors_alone(monkeypatch, technology, calibration):
    """Against chips of which all other transistors are nominal; a chip with a cell that does not reset has none."""
    monkeypatch.setattr("cosim.verbs.harden.mirrors._CHIPS", 3)
    network = load_network(NETWORK)
    trial = Trial(compile_network(network, technology, calibration), load_test_set(network, None).take(40, 0),
                  VariationPlan("local", 0, 1, area=0.3))  # fmt: skip
    groups = {one.mirrors: one for one in measure_mirrors(trial, 1)}
    lines = {mos.name: line_of(mos) for mos in trial.design.assembly.circuit.flatten()}
    drawn = replace(trial, plan=replace(trial.plan, chips=3))
    for pattern in ("bias_thresh_#", "layer#_#_p"):
        chosen = np.array([matches(pattern, lines[one.name]) for one in trial.devices])
        found = [run_behavioral_chip(trial, mixed_chip(drawn.chip(k), trial.nominal_chip, chosen)) for k in range(3)]
        accuracy = np.mean([0.0 if one.unreset else one.accuracy for one in found])
        assert groups[pattern].loss == pytest.approx(max(trial.nominal.accuracy - accuracy, 0.0), abs=1e-12)
        assert groups[pattern].transistors == chosen.sum()
    assert max(one.loss for one in groups.values()) > 0


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
    noisy = read_inner("montecarlo", [str(NETWORK), "--noise"], jobs=1, fresh=False)
    assert training_settings(network, noisy, HardenOptions(rest=()))["device-noise"] is True
    assert "device-noise" not in named
    native = NETWORK.with_name("digits_native_d8.pt")  # epsilon 1: its ladders are trained without noise
    asked = read_inner("montecarlo", [str(native), "--noise"], jobs=1, fresh=False)
    assert "device-noise" not in training_settings(load_network(native), asked, HardenOptions(rest=()))


@pytest.mark.slow
def test_noise_and_ranges_go_through_training_chips_and_commands(cosim_main, tmp_path):
    """The training takes its noise; compare takes neither, and gets a grid of its own."""
    out, asked = tmp_path / "out", ("--noise", "--variation", "all", "--temps=-40,125", "--supplies", "1.62,1.98")
    few = ("--behavioral", "--iterations", 3, "--area-max", 1, "--yield", "1%", "-j", 1, "-o", out)
    code, text, err = cosim_main(
        "harden", *few, NETWORK, "--chips", 6, "--samples", 40, "--spec", "accuracy>=1", *asked
    )
    assert code == 1, err
    found = json.loads((out / "harden.json").read_text())
    assert found["training"]["device-noise"] is True and found["steps"][1]["circuit"]["figures"]
    chips = json.loads((out / "trial-000" / "run.json").read_text())
    assert chips["variation"]["celsius"] == [-40, 125] and "noise" in chips
    commands = [line.strip() for line in text.splitlines() if line.strip().startswith("cosim ")]
    compare = next(line for line in commands if line.startswith("cosim compare"))
    assert "--pvt" in compare and "--temps" not in compare and "--noise" not in compare
    more = next(line for line in commands if line.startswith("cosim montecarlo"))
    assert "--noise" in more and "--temps -40.0,125.0" in more and "--supplies 1.62,1.98" in more


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        (("--yield", "often"), (), "must be a share of the chips, such as 95%, not often"),
        (("--yield", "120%"), (), "1.2"),
        ((), ("--engine", "batch"), "--engine is none of cosim harden"),
        ((), ("--spec", "yield>=90%"), "give the share of the chips that must work as --yield"),
        ((), ("--spec", "limits.toml"), "takes no file of limits"),
        ((), ("--colour", "red"), "--colour"),
        ((), ("--overrides", "none.toml"), "none.toml: must be a file, but is missing"),
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
    network = replace(load_network(NETWORK), task="--help")
    save_checkpoint(tmp_path / "net.pt", network)
    cosim_main("harden", *ASKED, "-o", tmp_path / "out", tmp_path / "net.pt", *DRAWN)
    reason = json.loads((tmp_path / "out" / "harden.json").read_text())["steps"][1]["circuit"]["reason"]
    assert "TASK must be one of" in reason
