"""A network whole, in the batch engine and in ngspice; and the same bytes however it is run."""

from dataclasses import replace

import numpy as np
import pytest

import cosim
from cosim.base.resources import trained_network_path
from cosim.engines.engine import Run
from cosim.engines.simulation.read import decision_margins, read_inference, read_plan, with_candidates, with_margins
from cosim.engines.simulation.simulated import engine_named, sample_benches
from cosim.units.toggle import Toggle
from cosim.variation.draws import VariationPlan
from cosim.verbs.loading import draw_samples
from cosim.verbs.montecarlo.trial import Trial

pytestmark = pytest.mark.ngspice

SAMPLES = 10  # a tile of eight, and one of two


@pytest.fixture(scope="module")
def digits(batch):
    """The design of digits_d4 and some of its test samples."""
    design = cosim.load(str(trained_network_path("digits_d4.pt"))).compile("generic180").design
    return design, draw_samples(design.network, None, SAMPLES, 0, lambda _: None)


@pytest.fixture(scope="module")
def bits(batch):
    """The design of parity_d2, two toggles, and sequences of 200 bits."""
    design = cosim.load(str(trained_network_path("parity_d2.pt"))).compile("generic180").design
    data = trained_network_path("parity_200.npz")
    return design, draw_samples(design.network, data, 8, 0, lambda _: None)


@pytest.fixture(scope="module")
def moving(batch):
    """The design of digits_signed_input_d8, whose thresholds depend on the input."""
    design = cosim.load(str(trained_network_path("digits_signed_input_d8.pt"))).compile("generic180").design
    return design, draw_samples(design.network, None, 4, 0, lambda _: None)


def infer(name, digits, run):
    return list(engine_named(name).infer(*digits, run, lambda *_: None))


def test_states_readout_and_power_are_those_of_ngspice(digits):
    design, test_set = digits
    few = test_set.select(np.arange(2))
    mine, theirs = (infer(name, (design, few), Run(engine=name, jobs=0)) for name in ("batch", "ngspice"))
    scale = max(float(np.abs(one.readout).max()) for one in theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert not a.elsewhere
        np.testing.assert_array_equal(a.states, b.states)
        # weights in a row of two tables, 0.1 % each, and what a step may err: the bar of acceptance
        np.testing.assert_allclose(a.readout, b.readout, atol=5e-3 * scale)
        assert a.power_w == pytest.approx(b.power_w, rel=0.01, abs=0)


def test_a_chip_without_an_operating_point_at_once_is_led_to_it(digits, monkeypatch):
    """By its deviations, which grow in steps: a chip of twice the mismatch, whose first attempt counts as lost.

    The same point is found, so nothing else differs than the last digits of the search, under reltol 1e-4.
    """
    from cosim.engines.batch import operating_point

    design, test_set = digits
    few = test_set.select(np.arange(2))
    chip = Trial(design, few, VariationPlan("local", 3, 2, area=0.25)).chip(1)
    run, solve, seen = Run(engine="batch", jobs=0, chip=chip), operating_point._solve_from, []
    direct = infer("batch", (design, few), run)

    def lost_at_first(tile, bench, begun, starts):
        seen.append((starts is None, max(float(np.abs(one[1]).max()) for one in begun)))
        found = solve(tile, bench, begun, starts)
        return [(x, charge, False) for x, charge, _ in found] if len(seen) == 1 else found

    monkeypatch.setattr(operating_point, "_solve_from", lost_at_first)
    led = infer("batch", (design, few), run)
    full = seen[0][1]
    assert [share / full for _, share in seen[:6]] == pytest.approx([1, 0, 0.25, 0.5, 0.75, 1])
    assert [from_bench for from_bench, _ in seen[:6]] == [True, True, False, False, False, False]
    scale = max(float(np.abs(one.readout).max()) for one in direct)
    for a, b in zip(led, direct, strict=True):
        assert not a.elsewhere and not b.elsewhere
        np.testing.assert_array_equal(a.states, b.states)
        np.testing.assert_allclose(a.readout, b.readout, atol=1e-3 * scale)


def test_toggles_count_as_in_ngspice(bits):
    """Their latches float, are lifted above the supply, and hang on switches whose ends change roles."""
    design, test_set = bits
    short = replace(test_set, x=test_set.x[:, :30], lengths=np.minimum(test_set.lengths, 30))
    (theirs,) = infer("ngspice", (design, short.select(np.arange(1))), Run(jobs=0))
    mine = infer("batch", (design, short), Run(engine="batch", jobs=0))
    assert [one.elsewhere for one in mine] == [""] * len(mine)
    np.testing.assert_array_equal(mine[0].states, theirs.states)
    # the bars of acceptance, as above
    np.testing.assert_allclose(mine[0].readout, theirs.readout, atol=5e-3 * float(np.abs(theirs.readout).max()))
    assert mine[0].power_w == pytest.approx(theirs.power_w, rel=0.01, abs=0)


def test_the_same_bytes_for_any_number_of_processes_and_after_an_interruption(digits, tmp_path):
    def run(folder, jobs):
        found = infer("batch", digits, Run(folder=tmp_path / folder, engine="batch", jobs=jobs))
        return [(np.asarray(one.states).tobytes(), one.readout.tobytes(), one.power_w) for one in found]

    first = run("one", 0)
    assert run("two", 2) == first
    for kept in sorted((tmp_path / "two").rglob("*.npz"))[::3]:
        kept.unlink()  # as if it had been stopped before these
    assert run("two", 1) == first


@pytest.mark.parametrize("which", ["digits", "bits", "moving"])
def test_decisions_follow_the_thresholds_that_margins_are_measured_from(which, batch, request):
    """On a chip as well; a decision may stand on the wrong side by what calibration leaves, 1 % of its threshold."""
    design, test_set = request.getfixturevalue(which)
    trial = Trial(design, test_set.select(np.arange(4)), VariationPlan("local", 0, 1), "batch")
    for chip in (None, trial.chip(0)):
        run = Run(engine="batch", jobs=0, chip=chip)
        margins = decision_margins(design, run)
        benches = [with_candidates(bench, margins) for bench in sample_benches(design, trial.test_set, run)]
        for waves, length in zip(batch.run_all(benches, 300.0), trial.test_set.lengths, strict=True):
            plan = with_margins(read_plan(design, int(length), run.timing, run.standing(design)), margins, run)
            states = read_inference(waves, plan).states
            for k, name in enumerate(design.assembly.decisions):
                over, was = beyond(margins[k], waves, plan.closes[k], states[:, k])
                wanted = (was + (over >= 0)) % 2 if isinstance(design.graph.nodes[name], Toggle) else over >= 0
                assert not (np.abs(over)[wanted != states[:, k]] > 0.01).any(), name


def beyond(margin, waves, closes, states):
    """By how much of its threshold, or of 10 pA, each candidate was above it; the state in front of each decision."""
    was = np.concatenate([[0], states[:-1]])
    current, *lines = (np.interp(closes, waves.time, waves.drain(device)) for device in (margin.device, *margin.lines))
    thresholds = margin.thresholds(lines)
    threshold = np.where(was > 0, thresholds.while_on[0], thresholds.while_off[0])
    return (current - threshold) / np.maximum(threshold, 10e-12), was
