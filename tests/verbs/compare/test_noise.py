"""What noise changes: margins in sigma by hand, shares against Gaussian tails, the option of both verbs."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_noisy
from cosim.engines.engine import Run
from cosim.exchange.checkpoint import load_network
from cosim.results.intervals import Interval, share_interval
from cosim.tasks.testset import load_test_set
from cosim.variation.draws import VariationPlan
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.compare.noise import decision_sigmas, noise_section, study_noise
from cosim.verbs.montecarlo.trial import Trial, run_chip

pytestmark = pytest.mark.usefixtures("unrendered_module")
NETWORK = trained_network_path("digits_d4")


@pytest.fixture(scope="module")
def tried(technology, calibration):
    network = load_network(NETWORK)
    return compile_network(network, technology, calibration), load_test_set(network, None)


@pytest.fixture(scope="module")
def noise(technology):
    return NoiseSimulation(find_noise(technology))


def test_margins_are_distances_to_the_threshold_that_counts(tried, noise):
    """A cell that is off is set at its upper threshold, one that is on reset at its lower: fits at its pin currents."""
    design, test = tried
    trace = run_noisy(design, test.x[:20], noise)
    distances, sigmas = decision_sigmas(design, trace, Run())
    name = "layer1.2"
    place, bias, fit = list(trace.states).index(name), design.graph.biases[name], design.calibration.schmitt
    rise = fit.set_in_frame(fit.i_rise(bias.i_thresh, bias.i_width))
    fall = fit.reset_in_frame(fit.i_fall(bias.i_thresh, bias.i_width))
    before = np.concatenate([np.zeros((20, 1)), trace.states[name][:, :-1]], axis=1)
    wanted = np.abs(trace.candidates[name] - np.where(before > 0, fall, rise)) / sigmas[:, :, place]
    np.testing.assert_allclose(distances[:, :, place], wanted, rtol=1e-12)


def test_noise_turns_as_many_comparisons_as_gaussian_tails_say(tried, noise):
    """Of flat noise of 20 pA: first changes of a sample are those comparisons that the tails turn, and states behind
    them follow. So the share of states that change is the expected share or more, and not many times it."""
    design, test = tried
    found = study_noise(design, test, replace(noise, flat=20e-12), Run(), draws=4)
    assert found.sigma_a == {"5": 20e-12, "50": 20e-12, "95": 20e-12}
    assert 0.8 * found.turned.mean < found.states.mean < 4 * found.turned.mean
    assert found.within["1"].mean < found.within["2"].mean < found.within["3"].mean
    assert found.quiet + found.change.mean == pytest.approx(found.accuracy.mean)
    assert len(noise_section(found)[0].rows) == 7 + len(found.within)


def test_less_noise_changes_less(tried, noise):
    design, test = tried
    few = test.select(np.arange(120))
    shares = [study_noise(design, few, replace(noise, flat=flat), Run(), 3).states.mean for flat in (2e-12, 40e-12)]
    assert shares[0] < shares[1]


def test_interval_of_shares_without_spread_is_clopper_and_pearsons():
    """1 - 0.025^(1/20) = 16.8 % at most, of 20 samples without a change."""
    assert share_interval(np.zeros(20)) == Interval(0.0, 0.0, pytest.approx(0.1684, abs=1e-4))
    found = share_interval(np.array([0.0, 0.0, 0.5]))
    assert found.low == 0.0 < found.mean < found.high


def test_a_chip_has_the_same_noise_in_any_run(tried, noise):
    """Its numbers hang on seed, chip, cell, sample and frame: a sample alone decides as among others."""
    design, test = tried
    trial = Trial(design, test.select(np.arange(40)), VariationPlan("local", 0, 3), noise=noise)
    record = run_chip(trial, 2)
    assert record.quiet is not None and record.behavioral is not None
    alone = replace(trial, test_set=test.select(np.arange(7, 9)))
    assert run_chip(alone, 2).behavioral.decisions == record.behavioral.decisions[7:9]
    assert run_chip(replace(trial, noise=None), 2).behavioral == record.quiet


def test_montecarlo_keeps_noise_and_goes_on_with_it(tiny, tmp_path, cosim_main):
    command = ("montecarlo", tiny / "net.npz", "--data", tiny / "data.npz", "--jobs", 1, "-o", tmp_path / "mc")
    code, out, err = cosim_main(*command, "--chips", "3", "--noise")
    assert code == 0, err
    words = " ".join(out.split())
    assert "decisions that it changes" in words
    assert "Noise, by the equations" in words and "meet the spec without it 3 of 3 chips seed 0" in words
    summary = json.loads((tmp_path / "mc" / "summary.json").read_text())
    assert summary["noise"]["chips"] == 3
    assert "noise = true" in (tmp_path / "mc" / "run.toml").read_text()
    code, _, err = cosim_main(*command, "--chips", "4")
    assert code != 0 and "noise" in err
    code, _, err = cosim_main(*command, "--chips", "4", "--noise")
    assert code == 0, err
    assert "decisions that it changes" in (tmp_path / "mc" / "report.html").read_text()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("compare", "--pvt"), "--noise is for a network that compiles whole, without --pvt"),
        (
            ("montecarlo", "--engine", "ngspice"),
            "--noise is of the behavioral model and of --engine batch, not",
        ),
    ],
)
def test_where_there_is_no_noise_it_is_refused(tmp_path, cosim_main, command, said):
    verb, *options = command
    code, _, err = cosim_main(verb, str(NETWORK), *options, "--noise", "-o", str(tmp_path / "run"))
    assert code != 0 and said in err


@pytest.mark.ngspice
@pytest.mark.usefixtures("batch")
def test_the_transistors_of_every_chip_have_noise_of_their_own(tried):
    """Two chips without variation are one circuit, but for their noise; the trial's quiet run, for audits, has none."""
    design, test = tried
    plain = Trial(design, test.select(np.array([5])), VariationPlan("none", 0, 2), "batch")
    noisy = replace(plain, noise=NoiseSimulation(find_noise(design.technology), 7))
    first, second = (run_chip(noisy, k).simulated for k in (0, 1))
    alike, other = (run_chip(plain, k).simulated for k in (0, 1))
    assert first.margin != second.margin and alike.margin == other.margin
    assert run_chip(noisy, 1).simulated == second
    assert noisy.run(noisy.chip(1)).noise is None and noisy.noisy_run(noisy.chip(1)).noise.chip == 1


@pytest.mark.ngspice
def test_what_the_batched_engine_cannot_run_with_noise_is_a_failed_chip(batch, tried, monkeypatch):
    """ngspice draws no noise of transistors, so it does not take the sample over, as it does without noise."""
    from cosim.engines.batch.circuit import Unsupported  # numba, which need not be there

    design, test = tried
    strange = Unsupported("a strange voltage")
    monkeypatch.setattr("cosim.engines.batch.simulator.unsupported_reason", lambda circuit, result, bench: strange)
    plain = Trial(design, test.select(np.array([5])), VariationPlan("none", 0, 2), "batch")
    assert run_chip(plain, 0).elsewhere == {"ngspice: a strange voltage": 1}
    failed = run_chip(replace(plain, noise=NoiseSimulation(find_noise(design.technology), 7)), 0)
    assert (failed.status, failed.simulated) == ("failed", None) and "a strange voltage" in failed.detail


@pytest.mark.ngspice
@pytest.mark.usefixtures("batch")
def test_chips_with_noise_on_transistors_are_audited_without_it(tiny, tmp_path, cosim_main):
    command = ("montecarlo", tiny / "net.npz", "--data", tiny / "data.npz", "--jobs", 1, "--chips", 3, "--samples", 2)
    code, out, err = cosim_main(*command, "--noise", "--engine", "batch", "--audit", 2, "-o", tmp_path / "mc")
    assert code == 0, err
    assert "audit passed: 2 in ngspice" in " ".join(out.split())


@pytest.mark.ngspice
def test_compare_says_what_noise_changes(tiny, tmp_path, cosim_main):
    command = ("compare", tiny / "net.npz", "--data", tiny / "data.npz", "--jobs", 1, "--noise", "-o", tmp_path / "run")
    code, out, err = cosim_main(*command)
    assert code == 0, err
    assert "comparisons within 1 sigma of their threshold" in out
    found = json.loads((tmp_path / "run" / "comparison.json").read_text())["noise"]
    # within ten times the shot noise of 1 nA in a kilohertz, sqrt(2 q I B): a few devices of about that current add up
    shot = (2 * 1.602e-19 * 1e-9 * 1e3) ** 0.5
    assert found["draws"] == 10 and 0.1 * shot < found["sigma_a"]["50"] < 10 * shot
    assert "comparisons within 3 sigma" in (tmp_path / "run" / "report.html").read_text()
