"""The order of a hardening's steps, on circuits whose figures are given."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosim.compiler.overrides import BiasOverride, Overrides, TransistorOverride
from cosim.compiler.settings import CompilerSettings
from cosim.results.metrics import Estimate
from cosim.variation.draws import VariationPlan
from cosim.verbs.explore.study import OnTransistors, SearchTrial
from cosim.verbs.harden.mirrors import MirrorGroup, enlarge_mirrors
from cosim.verbs.harden.study import TRIM_BITS, Hardening, HardeningRun, remarks, verdict


@dataclass
class Drawn:
    """Circuits of a network: a yield of `base`, more with more devices and with trim bits, and an area of 100 um2."""

    base: float
    by_area: float = 0.0
    by_bits: float = 0.0
    tried: list[dict] = field(default_factory=list)
    trimmable: bool = True
    options: dict = field(default_factory=dict)
    output: Path = Path("out")
    overrides: Overrides = Overrides()
    variation: str = "local"
    kept: dict = field(default_factory=dict)

    @property
    def chips(self):
        return SimpleNamespace(network=Path("some/net.pt"), given={"technology": "generic180"} | self.options, jobs=1)

    def _yield(self, values):
        grown = self.by_area * (area_factor(values) - 1)
        return min(self.base + grown + self.by_bits * values.get("bits", 0), 1.0)

    def run(self, number, values):
        self.tried.append(values)
        if values.get("bits") and not self.trimmable:
            return SearchTrial(number, "", values, {}, "no unit can be trimmed")
        share = self._yield(values)
        area = 100.0 * area_factor(values)
        figures = {
            "yield": Estimate(share, share - 0.02, share + 0.02),
            "area": Estimate(area),
            "power": Estimate(1e-7),
        }
        return SearchTrial(number, f"trial-{number:03d}", values, figures | {"accuracy": Estimate(0.8)})

    def trial(self, tried):
        design = SimpleNamespace(settings=CompilerSettings(overrides=self.overrides))
        return SimpleNamespace(design=design, plan=VariationPlan(self.variation, 0, 10))

    def keep_overrides(self, name, overrides):
        self.kept[name] = overrides

    def again(self, tried):
        return replace(tried.figures["yield"], value=tried.figures["yield"].value - 0.01)

    def check(self, tried):
        return OnTransistors("batch", 3, {})

    def count(self, tried, chips):
        return Estimate(0.9)


def area_factor(values):
    """From the name of the file of overrides, such as overrides/1.2.toml."""
    return float(values.get("overrides", "overrides/1.toml").removeprefix("overrides/").removesuffix(".toml"))


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    """Thresholds cost most accuracy for their area; the circuit has 100 um2."""
    groups = (MirrorGroup("bias_thresh_#", 32, 4.0, 0.06), MirrorGroup("layer#_#_p", 90, 20.0, 0.021))
    monkeypatch.setattr("cosim.verbs.harden.study.measure_mirrors", lambda trial, jobs: groups)


def hardened(given, trained=None, reason="", least=0.89, area_max=3.0):
    """Run a hardening; return it, and the index of the step that it keeps. Fresh chips yield a point less than own."""
    run = HardeningRun(given, trained and (lambda: (reason, "trained.pt", trained)), least, area_max)
    return run, run.run(5)


def changes(run):
    return [step.change for step in run.steps]


def test_a_circuit_that_yields_is_left_as_it_is():
    given, trained = Drawn(0.95), Drawn(0.99)
    run, chosen = hardened(given, trained)
    assert (changes(run), chosen, trained.tried) == (["as given"], 0, [])


def test_training_comes_first():
    run, chosen = hardened(Drawn(0.3), Drawn(0.95))
    assert (changes(run), chosen) == (["as given", "trained on chips that vary"], 1)
    assert run.steps[1].network == "trained.pt"


def larger(*factors):
    return [f"more devices in mirrors, up to {factor:g} times the area" for factor in factors]


def test_mirrors_get_ever_more_devices_until_enough_chips_work():
    """0.8 and 0.4 of the added area."""
    given, trained = Drawn(0.3), Drawn(0.8, by_area=0.4)
    run, chosen = hardened(given, trained)
    assert changes(run)[2:] == larger(1.1, 1.2, 1.3) and chosen == 4 and len(given.tried) == 1
    assert trained.tried[1:] == [{"overrides": f"overrides/{factor}.toml"} for factor in (1.1, 1.2, 1.3)]
    assert [one.times for one in run.mirrors] == [8, 1]
    run, chosen = hardened(Drawn(0.3), Drawn(0.88, by_area=0.2))
    assert changes(run)[2:] == larger(1.1) and chosen == 2


def test_devices_go_where_they_save_most_for_their_area():
    """Of 10 to 50 um2; from 5 devices for each threshold on, those of a state's mirrors save more, once they fit."""
    trained = Drawn(0.5, by_area=0.1)
    hardened(Drawn(0.3), trained, area_max=1.5)
    times = {name: {one.mirror: one.times for one in kept.transistors} for name, kept in trained.kept.items()}
    assert times == {
        "overrides/1.1.toml": {"bias_thresh_#": 3},
        "overrides/1.2.toml": {"bias_thresh_#": 6},
        "overrides/1.3.toml": {"bias_thresh_#": 8},
        "overrides/1.5.toml": {"bias_thresh_#": 8, "layer#_#_p": 2},
    }


def test_the_fewest_losses_of_all_numbers_of_devices():
    """Against all whole numbers: two groups that go in steps of the same area."""
    rng = np.random.default_rng(5)
    for losses in rng.uniform(0.001, 0.1, (20, 2)).tolist():
        groups = [MirrorGroup(name, 2, 1.0, loss) for name, loss in zip("ab", losses, strict=True)]
        times = {"a": 1, "b": 1} | enlarge_mirrors(groups, 9.0)
        least = min(losses[0] / n + losses[1] / (11 - n) for n in range(1, 11))
        assert sum(times.values()) == 11
        assert losses[0] / times["a"] + losses[1] / times["b"] == pytest.approx(least, rel=1e-12)
    assert enlarge_mirrors([MirrorGroup("a", 2, 1.0, 0.0)], 9.0) == {}


def test_overrides_of_the_user_stay():
    own = Overrides((TransistorOverride(name="network.x", m=3),), (BiasOverride(pin="bias_gain_0", factor=2.0),))
    given = Drawn(0.85, by_area=1.0, overrides=own)
    hardened(given)
    kept = given.kept["overrides/1.1.toml"]
    assert kept.transistors[0] == own.transistors[0] and len(kept.transistors) == 2 and kept.bias == own.bias


def test_chips_without_mismatch_need_no_more_devices():
    run, _ = hardened(Drawn(0.5, by_area=1.0, variation="global"))
    assert changes(run)[1:] == [
        "more devices in mirrors",
        *(f"{bits} trim bits at each bias pin" for bits in TRIM_BITS),
    ]
    assert run.steps[1].circuit.reason == "the chips have no mismatch"


def test_training_that_does_not_help_is_not_kept():
    given = Drawn(0.5, by_area=0.4)
    run, chosen = hardened(given, Drawn(0.4, by_area=0.4))
    assert run.steps[chosen].network == "net.pt" and {"overrides": "overrides/2.toml"} in given.tried


def test_without_training():
    run, _ = hardened(Drawn(0.5, by_area=0.4))
    assert changes(run)[:2] == ["as given", *larger(1.1)]


def test_a_training_that_is_not_possible_has_its_reason():
    run, chosen = hardened(Drawn(0.85, by_area=1.0), Drawn(1.0), reason="its settings are unknown")
    assert run.steps[1].circuit.reason == "its settings are unknown" and not run.steps[1].circuit.figures
    assert (chosen, run.steps[2].change) == (2, *larger(1.1))


def test_devices_grow_no_further_than_allowed_and_trim_bits_come_last():
    trained = Drawn(0.5, by_area=0.05, by_bits=0.15)
    run, chosen = hardened(Drawn(0.3), trained, area_max=1.6)
    bits = [f"{bits} trim bits at each bias pin" for bits in (2, 3)]
    assert changes(run)[2:] == [*larger(1.1, 1.2, 1.3, 1.5, 1.6), *bits]
    assert run.steps[chosen].circuit.values == {"overrides": "overrides/1.6.toml", "bits": 3} and run.measured == 1
    run, chosen = hardened(Drawn(0.3), Drawn(0.5, by_area=1.0), area_max=1.0)  # nothing is even measured
    assert run.mirrors == ()
    assert changes(run)[2:] == [f"{bits} trim bits at each bias pin" for bits in TRIM_BITS] and chosen == 1


def test_it_goes_on_where_fresh_chips_refuse_a_circuit():
    """0.895 of the circuit's own chips, 0.885 of fresh ones."""
    run, chosen = hardened(Drawn(0.895), Drawn(0.95))
    assert changes(run) == ["as given", "trained on chips that vary"] and chosen == 1
    found = result(run, chosen)
    assert "Their own chips had the yield, and fresh ones did not: as given." in remarks(found)
    run, chosen = hardened(Drawn(0.3), Drawn(0.895, by_area=0.4), area_max=1.1)
    assert chosen == 2 and "fresh ones did not: trained on chips that vary." in " ".join(remarks(result(run, chosen)))


def test_trim_does_not_know_every_option():
    run, _ = hardened(Drawn(0.3, options={"noise": True}), area_max=1.0)
    assert run.steps[1].circuit.reason == "cosim trim has no --noise"


def test_reasons_name_files_without_their_folders():
    run, _ = hardened(Drawn(0.85, by_area=1.0), Drawn(1.0), reason="some/net.pt: no settings; see out/trained.pt")
    assert run.steps[1].circuit.reason == "net.pt: no settings; see trained.pt"


def test_what_cannot_be_trimmed_ends_the_steps():
    run, chosen = hardened(Drawn(0.3), Drawn(0.5, trimmable=False), area_max=1.0)
    assert changes(run)[2:] == ["2 trim bits at each bias pin"] and chosen == 1
    assert run.steps[2].circuit.reason == "no unit can be trimmed"


def result(run, chosen, least=0.89, area_max=3.0):
    return Hardening("net", "0" * 16, "net.pt", "generic180", {}, {}, ("accuracy>=0.75",), least, area_max,
                     tuple(run.steps), chosen, {})  # fmt: skip


def test_fresh_chips_decide():
    found = result(*hardened(Drawn(0.3), Drawn(0.95)))
    assert found.met and verdict(found).startswith("94.0 % of fresh chips work [93.0 %, 97.0 %], 29.0 % before")
    assert found.after.transistors.chips == 5 and found.after.transistors.yield_.value == 0.9
    missed = result(*hardened(Drawn(0.3), Drawn(0.895, trimmable=False), area_max=1.0))  # 0.885 of the fresh ones
    assert not missed.met and any("The yield of 89.0 % is not reached." in line for line in remarks(missed))


def test_what_transistors_refute_is_not_met():
    run, chosen = hardened(Drawn(0.3), Drawn(0.95))
    found = result(run, chosen)
    seen = replace(found.after.transistors, missed="accuracy 60.0 %")
    steps = (found.steps[0], replace(found.steps[1], circuit=replace(found.after, transistors=seen)))
    refuted = replace(found, steps=steps)
    assert not refuted.met and "Transistors refute the circuit: accuracy 60.0 %." in remarks(refuted)


def test_remarks_say_what_has_no_figure():
    run, chosen = hardened(Drawn(0.3), Drawn(0.5, by_area=0.05, by_bits=0.15), area_max=1.2)
    assert "Converters for the trim bits are in neither power nor area." in remarks(result(run, chosen))
