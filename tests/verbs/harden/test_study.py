"""The order of a hardening's steps, on circuits whose figures are given."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

from cosim.results.metrics import Estimate
from cosim.verbs.explore.study import OnTransistors, SearchTrial
from cosim.verbs.harden.study import TRIM_BITS, Hardening, HardeningRun, remarks, verdict


@dataclass
class Drawn:
    """Circuits of a network: a yield of `base`, more with larger devices and with trim bits, and an area of 100 um2."""

    base: float
    by_area: float = 0.0
    by_bits: float = 0.0
    technology: str = "generic180"
    tried: list[dict] = field(default_factory=list)
    trimmable: bool = True
    options: dict = field(default_factory=dict)
    output: Path = Path("out")

    @property
    def chips(self):
        return SimpleNamespace(network=Path("some/net.pt"), given={"technology": self.technology} | self.options)

    def _yield(self, values, factor=1.0):
        cells, mirrors = (float(values.get(f"{name}-area", 1.0)) for name in ("cell", "mirror"))
        grown = self.by_area * (0.7 * (cells - 1) + 0.3 * (mirrors - 1) + (factor - 1))
        return min(self.base + grown + self.by_bits * values.get("bits", 0), 1.0)

    def run(self, number, values):
        self.tried.append(values)
        if values.get("bits") and not self.trimmable:
            return SearchTrial(number, "", values, {}, "no unit can be trimmed")
        share = self._yield(values)
        area = 100.0 * (0.6 * values.get("cell-area", 1.0) + 0.4 * values.get("mirror-area", 1.0))
        figures = {
            "yield": Estimate(share, share - 0.02, share + 0.02),
            "area": Estimate(area),
            "power": Estimate(1e-7),
        }
        return SearchTrial(number, f"trial-{number:03d}", values, figures | {"accuracy": Estimate(0.8)})

    def predict(self, number, values, factor):
        return {"yield": Estimate(self._yield(values, factor))}

    def again(self, tried):
        return replace(tried.figures["yield"], value=tried.figures["yield"].value - 0.01)

    def check(self, tried):
        return OnTransistors("batch", 3, {})

    def count(self, tried, chips):
        return Estimate(0.9)


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


def test_cells_are_enlarged_before_mirrors_by_the_factor_that_is_predicted():
    """A factor of 1.5 is predicted to be enough for all devices; cells alone are not, with mirrors they are."""
    given, trained = Drawn(0.3), Drawn(0.8, by_area=0.2)
    run, chosen = hardened(given, trained)
    assert changes(run)[2:] == ["cells 1.5 times as large", "cells and mirrors 1.5 times as large"] and chosen == 3
    assert trained.tried[1:] == [{"cell-area": 1.5}, {"cell-area": 1.5, "mirror-area": 1.5}] and len(given.tried) == 1
    run, chosen = hardened(Drawn(0.3), Drawn(0.85, by_area=0.2))
    assert changes(run)[2:] == ["cells 1.25 times as large", "cells and mirrors 1.25 times as large"] and chosen == 3
    run, chosen = hardened(Drawn(0.3), Drawn(0.88, by_area=0.2))
    assert changes(run)[2:] == ["cells 1.25 times as large"] and chosen == 2


def test_training_that_does_not_help_is_not_kept():
    given = Drawn(0.5, by_area=0.4)
    run, chosen = hardened(given, Drawn(0.4, by_area=0.4))
    assert run.steps[chosen].network == "net.pt" and {"cell-area": 2.0} in given.tried


def test_without_training():
    run, _ = hardened(Drawn(0.5, by_area=0.4))
    assert changes(run)[:2] == ["as given", "cells 2 times as large"]


def test_a_training_that_is_not_possible_has_its_reason():
    run, chosen = hardened(Drawn(0.85, by_area=1.0), Drawn(1.0), reason="its settings are unknown")
    assert run.steps[1].circuit.reason == "its settings are unknown" and not run.steps[1].circuit.figures
    assert (chosen, run.steps[2].change) == (2, "cells 1.25 times as large")


def test_devices_grow_no_further_than_allowed_and_trim_bits_come_last():
    trained = Drawn(0.5, by_area=0.05, by_bits=0.15)
    run, chosen = hardened(Drawn(0.3), trained, area_max=1.6)
    assert changes(run)[2:] == [
        "cells 1.5 times as large", "cells and mirrors 1.5 times as large", "2 trim bits at each bias pin",
        "3 trim bits at each bias pin",
    ]  # fmt: skip
    assert run.steps[chosen].circuit.values == {"cell-area": 1.5, "mirror-area": 1.5, "bits": 3}
    run, chosen = hardened(Drawn(0.3), Drawn(0.5, by_area=1.0), area_max=1.0)  # nothing larger is even calibrated
    assert changes(run)[2:] == [f"{bits} trim bits at each bias pin" for bits in TRIM_BITS] and chosen == 1


def test_it_goes_on_where_fresh_chips_refuse_a_circuit():
    """0.895 of the circuit's own chips, 0.885 of fresh ones."""
    run, chosen = hardened(Drawn(0.895), Drawn(0.95))
    assert changes(run) == ["as given", "trained on chips that vary"] and chosen == 1
    found = result(run, chosen)
    assert "Their own chips had the yield, and fresh ones did not: as given." in remarks(found)
    run, chosen = hardened(Drawn(0.3), Drawn(0.895, by_area=0.4))
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


def test_sizes_of_an_own_technology_are_its_files():
    run, _ = hardened(Drawn(0.3, technology="mine.toml"), Drawn(0.5, technology="mine.toml", trimmable=False))
    assert changes(run)[2] == "larger devices" and "write larger ones into mine.toml" in run.steps[2].circuit.reason


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
