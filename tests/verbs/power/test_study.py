"""Supply power: a metered circuit draws what the plain one draws, and the equations say the same, block by block."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.resources import trained_network_path
from cosim.base.text import json_object, typed
from cosim.cells.blocks import BLOCKS
from cosim.circuit.bench import Tolerances
from cosim.circuit.elements import Mos, Source, block_of
from cosim.circuit.waveforms import DECIDE, Timing
from cosim.compiler.design import block_areas
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import behavioral_power, run_noisy
from cosim.engines.engine import Failure, FailureKind, Inference, Run
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import metered_plan, meters_of, read_plan, settled_windows
from cosim.engines.simulation.testbench import inference_bench, meter
from cosim.exchange.checkpoint import load_network
from cosim.results.figures import save_figure
from cosim.results.intervals import Interval, mean_interval, samples_to_sign, shows_sign
from cosim.results.page import WIDTH, format_text
from cosim.tasks.testset import TestSet, load_test_set
from cosim.technology.calibration import load_calibration
from cosim.technology.scale import units_for
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.power.study import PowerSummary, draw_power, power_page, study_power, summarize_power

TRAINED = (
    "digits_d4",
    "digits_signed_d8",
    "digits_signed_input_d8",
    "digits_native_2x8",
    "parity_d2",
    "speech_yes_d16",
)
SUPPLY = 1.8
# Two runs of one circuit take different steps; each solution is known to reltol.
SOLVER = 2 * Tolerances().reltol


@pytest.fixture(scope="module", params=TRAINED)
def trained(request, technology):
    network = load_network(trained_network_path(request.param))
    return compile_network(
        network, technology, load_calibration(shipped_path("generic180", units_for(network.weight_grid)))
    )


def test_every_device_has_a_block(trained):
    found = {block_of(device.part) for device in trained.assembly.circuit.flatten()}
    assert found == set(BLOCKS)


def test_nothing_but_its_source_is_left_on_the_supply(trained):
    """And every terminal that has moved is on the net of its device's own block."""
    bench = inference_bench(trained, np.zeros((1, trained.network.encoding.features)))
    plain, metered = bench.circuit.flat().elements, meter(bench, trained.assembly).circuit.elements
    assert len(metered) == len(plain) + len(BLOCKS)
    ends = ("drain", "gate", "source", "bulk", "a", "b")
    moved = 0
    for before, after in zip(plain, metered, strict=False):
        for end in ends:
            was, now = getattr(before, end, None), getattr(after, end, None)
            if was != "vdd" or isinstance(before, Source):
                assert was == now or (was == "vdd" and now in ("vdd_bias", "vdd_readout", "vdd")), before
                continue
            assert now == f"vdd_{block_of(before.part)}"
            moved += 1
    assert moved > sum(isinstance(element, Mos) and element.polarity == "p" for element in plain)  # bulk and source
    on_supply = [element for element in metered if "vdd" in [getattr(element, end, None) for end in ends]]
    assert [element.name for element in on_supply] == ["dd"]


def test_areas_sum_to_the_design_s(trained):
    areas, summary = block_areas(trained), summarize(trained)
    assert tuple(areas) == BLOCKS
    assert summary["gate_area_um2"] == pytest.approx(1e12 * sum(gates for gates, _ in areas.values()), abs=0.05)
    assert summary["capacitor_area_um2"] == pytest.approx(1e12 * sum(caps for _, caps in areas.values()), abs=0.05)
    gates = sum(device.gate_area for device in trained.assembly.circuit.flatten())
    assert sum(gates for gates, _ in areas.values()) == pytest.approx(gates, rel=1e-9, abs=0)
    assert [block for block in BLOCKS if areas[block][1] > 0] == ["cells"]


def test_settled_windows_hold_every_moment_of_a_frame_once(trained):
    timing, assembly = Timing(t_step=0.02), trained.assembly
    windows, weights = settled_windows(timing, assembly, 3)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.diff(windows, axis=1), 0.01 * timing.t_step, rtol=1e-9)
    assert windows[0, 1] == timing.start
    closes = timing.closes(len(assembly.clocks))
    assert len(windows) == 1 + 3 * (1 + len(closes) + 2 * len(assembly.pulses))
    ends = (windows[1:, 1] - timing.start) / timing.t_step
    assert all(np.isclose(ends, frame + close).any() for frame in range(3) for close in (*closes, closes[-1] + DECIDE))
    begins = np.cumsum(weights[0][weights[0] > 0])[:-1]  # each span begins in the middle of its edge
    np.testing.assert_allclose(begins[0], timing.edge / 2, rtol=1e-9)
    np.testing.assert_allclose(begins[1:], ends[: len(begins) - 1] + timing.clock_edge / 2, rtol=1e-9)


@pytest.mark.parametrize(
    ("values", "half"),
    [([1.0, 3.0], 12.706), ([1.0, 2.0, 3.0], 4.303 / np.sqrt(3)), ([5.0, 5.0, 5.0, 5.0], 0.0)],
)
def test_interval_is_student_s(values, half):
    """t at 97.5 % is 12.706 for one degree of freedom and 4.303 for two (any table)."""
    found = mean_interval(np.array(values))
    assert found.mean == pytest.approx(np.mean(values))
    assert found.high - found.mean == pytest.approx(half, rel=1e-3, abs=0)
    assert found.mean - found.low == pytest.approx(half, rel=1e-3, abs=0)


def test_one_sample_has_no_interval():
    assert mean_interval(np.array([2.0])) == Interval(2.0, None, None)


@pytest.fixture(scope="module")
def tiny(make_network, technology, calibration):
    """Two stages; the first two frames move, three more hold their inputs."""
    design = compile_network(make_network(26, widths=(3, 2), outputs=2, alphas=(1.0,)), technology, calibration)
    inputs = np.random.default_rng(4).uniform(size=(5, 3))
    inputs[2:] = inputs[2]
    return design, inputs


def run_metered(design, inputs, timing=Timing()):
    outcome = run_inference(
        meter(inference_bench(design, inputs, timing), design.assembly), metered_plan(design, len(inputs), timing)
    )
    assert isinstance(outcome, Inference), outcome
    return outcome


@pytest.fixture(scope="module")
def metered(tiny):
    return run_metered(*tiny)


def study_of(design, x, outcome, timing=Timing()):
    """One raw sample (time, features)."""
    test_set = TestSet(x[None], np.zeros(1, dtype=int), np.array([len(x)]), np.zeros(1, dtype=int))
    return study_power(design, test_set, [outcome], Run(timing=timing))


@pytest.mark.ngspice
def test_metered_circuit_draws_what_the_plain_one_draws(tiny, metered):
    design, inputs = tiny
    plain = run_inference(inference_bench(design, inputs), read_plan(design, len(inputs)))
    assert isinstance(plain, Inference)
    assert metered.power_w == pytest.approx(plain.power_w, rel=SOLVER, abs=0)
    np.testing.assert_array_equal(metered.states, plain.states)
    assert 0 < metered.states.mean() < 1


@pytest.mark.ngspice
def test_blocks_and_rails_sum_to_the_total(tiny, metered):
    study = study_of(*tiny, metered)
    assert sum(study.total.values())[0] == pytest.approx(metered.power_w, rel=1e-9, abs=0)
    assert (study.rails["vdd"] + study.rails["vground"])[0] == pytest.approx(metered.power_w, rel=1e-9, abs=0)


@pytest.mark.ngspice
def test_virtual_ground_delivers_the_readout(tiny, metered):
    """What is drawn through it is what the readout pins pull, frame by frame at the sampled moment."""
    design, _ = tiny
    timing, frames = Timing(), len(metered.readout)
    windows, _ = settled_windows(timing, design.assembly, frames)
    last = metered.delivered[frames:][np.isclose((windows[:, 1] - timing.start) / timing.t_step % 1, 0.97)]
    names = list(meters_of(design.assembly))
    through = -last[:, names.index("vground")]
    error = 1e-3 * np.abs(metered.readout).sum(axis=1).max()  # settled to exp(-0.25 frame / 0.4 ms)
    np.testing.assert_allclose(through, metered.readout.sum(axis=1), rtol=0, atol=error)
    pushed = last[:, [names.index(pin) for pin in design.assembly.outputs]]
    np.testing.assert_allclose(pushed, np.maximum(-metered.readout, 0.0), rtol=0, atol=error)
    assert pushed.max() > 100 * error


@pytest.mark.ngspice
def test_power_has_what_outputs_push_and_the_ideal_virtual_ground_hands_back(tiny, metered):
    """A stage delivers what an output pulls and sinks what it pushes: the V_DD source's own power lacks the latter."""
    design, inputs = tiny
    plan = read_plan(design, len(inputs))
    assert [meter.source for meter, _ in plan.supplies] == ["dd", "readout_0", "readout_1"]
    alone = run_inference(inference_bench(design, inputs), replace(plan, supplies=plan.supplies[:1]))
    assert isinstance(alone, Inference)
    names = list(meters_of(design.assembly))
    pushed = metered.delivered[: len(inputs), [names.index(pin) for pin in design.assembly.outputs]]
    handed_back = SUPPLY * pushed.sum(axis=1).mean()
    assert metered.power_w == pytest.approx(alone.power_w + handed_back, rel=SOLVER, abs=0)
    assert handed_back > 100 * SOLVER * alone.power_w


@pytest.mark.ngspice
def test_bias_block_is_the_pins(tiny, metered):
    design, _ = tiny
    study = study_of(*tiny, metered)
    assert study.total["bias"][0] == pytest.approx(SUPPLY * sum(design.assembly.bias_pins.values()), rel=1e-9, abs=0)
    assert study.static["bias"][0] == pytest.approx(study.total["bias"][0], rel=1e-9, abs=0)


@pytest.mark.ngspice
def test_held_inputs_have_no_dynamic_energy(tiny, metered):
    """From the second frame of the same inputs on nothing moves: what is left is the solver's error."""
    design, _ = tiny
    _, weights = settled_windows(Timing(), design.assembly, 5)
    delivered = metered.delivered[:, : len(BLOCKS)].sum(axis=1)
    lag = np.abs(delivered[:5] - weights @ delivered[5:]) / delivered[:5]
    assert (lag[3:] < SOLVER).all()
    assert lag[0] > 10 * SOLVER  # the frame that leaves the reset


@pytest.mark.ngspice
def test_dynamic_energy_does_not_depend_on_the_frame(tiny, metered):
    """An edge costs the same however long the frame; clocks deliver the same charge a frame."""
    slow = Timing(t_step=0.02)
    fast, other = study_of(*tiny, metered), study_of(*tiny, run_metered(*tiny, slow), slow)

    def lag(study, t_step):
        return t_step * (sum(study.total.values()) - sum(study.static.values()))[0]

    error = Tolerances().reltol * (0.01 + 0.02) * metered.power_w
    assert lag(fast, 0.01) == pytest.approx(lag(other, 0.02), abs=error)
    assert abs(lag(fast, 0.01)) > 2 * error
    assert 0.01 * fast.rails["clocks"][0] == pytest.approx(0.02 * other.rails["clocks"][0], rel=0.02, abs=0)


def trained_sample(technology, calibration, name, frames):
    """A shipped network and the first frames of one of its test samples."""
    network = load_network(trained_network_path(name))
    data = trained_network_path(name).with_name("parity_200.npz") if name == "parity_d2" else None
    found = load_test_set(network, data).take(1, 0)
    design = compile_network(network, technology, calibration)
    return design, found.x[0, :frames]


def counter(make_network, technology, calibration):
    """One ladder of six rungs that counts down from 4, and an input that moves it."""
    network = make_network(3, "signed", widths=(1,), outputs=2, alphas=(1.0,))
    (layer,) = network.layers
    layer = replace(
        layer, epsilon=1.0, weight=np.array([[-1.0, 0.0, 0.0]]), bias=np.zeros(1), bias_beta=np.full(1, 0.5)
    )
    network = replace(network, layers=(layer,), state_ranges={"layer0": np.array([[-4.0], [0.0]])})
    inputs = np.zeros((4, 3))
    inputs[1:3, 0] = 1.0
    return compile_network(network, technology, calibration), inputs


@pytest.mark.ngspice
@pytest.mark.parametrize("name", ["digits_d4", "parity_d2", "ladder"])
def test_behavioral_blocks_are_those_of_the_transistors(make_network, technology, calibration, name):
    """10 % a block and 5 % in total are promised. Standing still: mirror gains, which the equations take at 1 nA, vary
    by 1 % over the currents, a copy and its copy 2 %. Over the frames: and the lag, under 3 % while all starts up."""
    if name == "ladder":
        design, x = counter(make_network, technology, calibration)
    else:
        design, x = trained_sample(technology, calibration, name, 4)
    study = study_of(design, x, run_metered(design, x))
    for block in BLOCKS:
        assert study.behavioral[block][0] == pytest.approx(study.static[block][0], rel=0.02, abs=0), block
        assert study.behavioral[block][0] == pytest.approx(study.total[block][0], rel=0.05, abs=0), block
    assert sum(study.behavioral.values())[0] == pytest.approx(sum(study.total.values())[0], rel=0.02, abs=0)


def made_up(design, samples):
    """Outcomes whose currents are random: n samples of 3 frames."""
    rng, timing = np.random.default_rng(7), Timing()
    windows, _ = settled_windows(timing, design.assembly, 3)
    shape = (3 + len(windows), len(meters_of(design.assembly)))
    none = np.zeros((3, 0))
    return [Inference(none, none, 0.0, rng.uniform(1e-9, 3e-9, shape)) for _ in range(samples)]


@pytest.fixture(scope="module")
def test_set():
    rng = np.random.default_rng(2)
    return TestSet(rng.uniform(size=(4, 3, 3)), np.zeros(4, dtype=int), np.array([3, 3, 3, 3]), np.arange(4))


def test_with_noise_the_power_is_that_of_states_with_noise(tiny, test_set, technology):
    """An absurd 1 nA of it, so that states turn; the equations of a state are the same."""
    design, _ = tiny
    noise = NoiseSimulation(find_noise(technology), seed=3, flat=1e-9)
    noisy = study_power(design, test_set, None, Run(noise=noise))
    plain = study_power(design, test_set, None)
    trace = run_noisy(design, test_set.x, noise)
    cells = behavioral_power(design, trace)["cells"].mean(axis=1)
    np.testing.assert_allclose(noisy.behavioral["cells"], cells, rtol=1e-12, atol=0)
    assert not np.allclose(noisy.behavioral["cells"], plain.behavioral["cells"], rtol=1e-3, atol=0)
    summary = summarize_power(design, noisy, Run(noise=noise))
    assert summary.noise == 3
    leads = [power_page(design, summarize_power(design, noisy, run), {}).lead for run in (Run(noise=noise), Run())]
    assert ["noise of the devices, seed 3" in lead for lead in leads] == [True, False]


def test_failed_samples_count_on_neither_side(tiny, test_set):
    design, _ = tiny
    outcomes = made_up(design, 4)
    failure = Failure(FailureKind.TIMEOUT, "", "")
    study = study_power(design, test_set, [failure, *outcomes[1:]])
    assert (study.failed, len(study.counted.lengths)) == (1, 3)
    every = study_power(design, test_set, outcomes)
    for block in BLOCKS:
        np.testing.assert_array_equal(study.behavioral[block], every.behavioral[block][1:])
        np.testing.assert_array_equal(study.total[block], every.total[block][1:])


def test_energies_follow_from_the_power(tiny, test_set):
    design, _ = tiny
    timing = Timing(t_step=0.03)
    study = study_power(design, test_set, made_up(design, 4), Run(timing=timing))
    summary = summarize_power(design, study, Run(timing=timing))
    row = summary.blocks["rows"]
    assert row.energy_frame_j["ngspice"].mean == pytest.approx(0.03 * study.total["rows"].mean(), rel=1e-9, abs=0)
    assert row.energy_inference_j["ngspice"].mean == pytest.approx(
        3 * 0.03 * study.total["rows"].mean(), rel=1e-9, abs=0
    )
    assert row.energy_inference_j["behavioral"].high == pytest.approx(
        3 * 0.03 * mean_interval(study.behavioral["rows"]).high, rel=1e-9, abs=0
    )
    static, lag = row.static_w.mean, row.dynamic_frame_j.mean
    assert static + lag / 0.03 == pytest.approx(row.power_w["ngspice"].mean, rel=1e-9, abs=0)
    for engine in ("ngspice", "behavioral"):
        parts = [summary.blocks[block].power_w[engine].mean for block in BLOCKS]
        assert summary.total.power_w[engine].mean == pytest.approx(sum(parts), rel=1e-9, abs=0)
    ratio = study.behavioral["rows"].mean() / study.total["rows"].mean()
    assert row.difference.mean == pytest.approx(ratio - 1)
    assert set(summary.rails) == {"vdd", "vground", "clocks", "reset"}


@pytest.mark.parametrize("samples", [0, 1, 4])
def test_tables_fit_and_the_figure_has_the_same_bytes_twice(tiny, test_set, tmp_path, samples):
    design, _ = tiny
    outcomes = made_up(design, samples) if samples else None
    chosen = replace(test_set, x=test_set.x[: samples or 4], lengths=test_set.lengths[: samples or 4])
    summary = summarize_power(design, study_power(design, chosen, outcomes))
    content = json.loads(json.dumps(json_object(summary)))
    assert typed(content, PowerSummary, "power.json", "") == summary
    large = replace(summary, samples=123456, failed=12345, transistors=1234567)
    lines = format_text(power_page(design, large, {}))
    assert max(map(len, lines)) <= WIDTH
    text = "\n".join(lines)
    assert (" +- " in text) == (samples != 1)
    assert ("static" in text) == (samples > 0)
    for block in BLOCKS:
        assert f"\n{block} " in text
    for name in ("one", "two"):
        save_figure(draw_power(summary), tmp_path / f"{name}.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


@pytest.mark.parametrize(
    ("mean", "half", "samples", "needed"), [(2.0, 12.706, 2, 5), (-3.0, 1.0, 2, 2), (0.1, 9, 9, None)]
)
def test_samples_that_show_the_sign_of_a_mean(mean, half, samples, needed):
    """2 +- t s / sqrt(2) with t = 12.706 has s = sqrt(2): half is 3.51 with three samples, 2.25 with four, 1.76 with
    five; t at 97.5 % is 4.303, 3.182 and 2.776."""
    interval = Interval(mean, mean - half, mean + half)
    assert shows_sign(interval) == (abs(mean) > half)
    assert samples_to_sign(interval, samples) == needed


@pytest.mark.parametrize("samples", [1, 2, 20])
def test_an_energy_whose_sign_is_not_known_is_no_figure(tiny, test_set, tmp_path, samples):
    """Dynamic energies of two samples by chance have either sign; with twenty of the same spread they are told."""
    design, _ = tiny
    chosen = test_set.select(np.arange(samples) % 4)
    study = study_power(design, chosen, made_up(design, samples))
    off = 1e-10 + 2e-10 * np.cos(np.pi * np.arange(samples))  # -1e-10 W more or 3e-10 W less than static
    study = replace(study, total={name: power - off for name, power in study.static.items()})
    summary = summarize_power(design, study)
    row = summary.blocks["rows"].dynamic_frame_j
    assert (row.high is not None and row.high < 0) == (samples == 20)
    lines = format_text(power_page(design, summary, {}))
    shown = [line for line in lines if line.startswith("rows ")][1]
    assert ("too few" in shown, " -1 " in shown) == (samples < 20, samples == 20)
    (said,) = [line for line in lines if line.startswith("Too few")] or [""]
    expected = {
        1: "Too few: one sample has no interval, so an energy's sign is not known; give more --samples.",
        2: "Too few samples: the interval of the mean holds 0; about --samples 34 would show it.",
        20: "",
    }
    assert said == expected[samples]
    assert "What is not counted" in lines
    axis = draw_power(summary).axes[1]
    assert [text.get_text() for text in axis.texts].count(" too few samples") == (
        0 if samples == 20 else len(BLOCKS) - 1
    )
