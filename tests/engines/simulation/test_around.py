"""A network with its chip around it: codes in, one of the class lines high, all currents from one reference."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, MappingError
from cosim.base.resources import trained_network_path
from cosim.base.seal import seal_json
from cosim.cells.blocks import BLOCKS, OUTSIDE
from cosim.circuit.elements import Source
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import AROUND, CompilerSettings, parse_around
from cosim.engines.engine import NO_CLASS, Inference, Run, decided_by
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import metered_plan, read_plan
from cosim.engines.simulation.simulated import meter_samples, simulate_samples
from cosim.engines.simulation.testbench import control_elements, inference_bench, meter
from cosim.exchange.checkpoint import load_network
from cosim.network.ir.states import software_states
from cosim.network.reference import run_reference
from cosim.tasks.testset import TestSet
from cosim.technology.calibration import CHIP_FILE
from cosim.verbs.bias import biased
from cosim.verbs.calibrate import chip as chip_files
from cosim.verbs.calibrate.chip import chip_fingerprint, find_chip, measure_chip
from cosim.verbs.loading import compile_for
from cosim.verbs.power.study import study_power, summarize_power
from cosim.verbs.simulate.waveform_figure import title_of
from cosim.verbs.simulate.waveforms import judge_sample, labels_of, record_signals, recorded_decision
from cosim.verbs.trim.trim import check_trimmable
from cosim.verbs.words import say_answer

FRAMES = 3
FEW = 5  # frames of a register of three stages, or of a toggle
DRIVEN = "inputs", "decision", "bias"  # phases from outside


@pytest.fixture(scope="module")
def network(make_network):
    found = make_network(5, widths=(2,), outputs=3, alphas=(1.0,))
    return replace(found, encoding=replace(found.encoding, levels=4))


@pytest.fixture(scope="module")
def design(network, technology):
    return compile_for(network, "net", technology, CompilerSettings(around=DRIVEN))


@pytest.fixture(scope="module")
def x(network):
    """Of 40 the one whose decision is clearest."""
    many = np.random.default_rng(2).integers(0, 5, (40, FRAMES, 3)) / 4
    scores = np.sort(run_reference(network, many).scores, axis=1)
    return many[np.argmax(scores[:, -1] - scores[:, -2])]


def test_a_network_alone_is_what_it_was(network, design, technology, calibration):
    alone = compile_network(network, technology, calibration)
    assert alone.assembly.blocks == BLOCKS
    own = [mos for mos in design.flat.elements if mos.name.startswith("network.")]
    assert own == list(alone.flat.elements)
    assert design.assembly.bias_pins.items() >= alone.assembly.bias_pins.items()


def test_no_pin_has_a_source(design, x):
    sources = [one for one in inference_bench(design, x).circuit.elements if isinstance(one, Source)]
    assert [one.name for one in sources if one.kind == "i"] == []
    codes = {one.name: one.value for one in sources if one.name.startswith("code_")}
    assert len(codes) == 3 * 3  # codes 0 to 4 of three inputs
    times = 5e-3 + 10e-3 * (np.arange(FRAMES) + 0.5)
    bits = {
        name: np.interp(times, *np.array(wave).T) if isinstance(wave, tuple) else wave for name, wave in codes.items()
    }
    found = [sum(2**k * (bits[f"code_{j}_{k}"] > 0.9) for k in range(3)) for j in range(3)]
    np.testing.assert_array_equal(np.array(np.broadcast_arrays(*found)).T, 4 * x)


@pytest.mark.ngspice
def test_states_class_and_power(network, design, technology, calibration, x):
    """A row's drain stands up to 0.25 V elsewhere, at 2.3 %/V of at most 8 nA: 0.05 nA.

    Power of all blocks is that of one supply: no current changes where its source does, so 1e-3 is the solver's. The
    equations know the tree's currents by whole fine units, 1 pA of 50 to 1000 and of 0.1 nA, and what its outputs'
    drains add, 2.5 %/V over 1.3 V."""
    software = run_reference(network, x[None])
    alone = compile_network(network, technology, calibration)
    plain = run_inference(inference_bench(alone, x), read_plan(alone, FRAMES))
    chip = run_inference(inference_bench(design, x), read_plan(design, FRAMES))
    metered = run_inference(meter(inference_bench(design, x), design.assembly), metered_plan(design, FRAMES))
    assert isinstance(plain, Inference) and isinstance(chip, Inference) and isinstance(metered, Inference)
    np.testing.assert_array_equal(chip.states, plain.states)
    np.testing.assert_allclose(chip.readout, plain.readout, atol=0.05e-9)
    assert chip.chosen == metered.chosen == software.decisions[0]
    assert metered.power_w == pytest.approx(chip.power_w, rel=1e-3)
    test_set = TestSet(x[None], np.zeros(1, dtype=np.int64), np.array([FRAMES]), np.arange(1))
    summary = summarize_power(design, study_power(design, test_set, [metered]))
    assert tuple(summary.blocks) == (*BLOCKS, "converters", "decision", "tree")
    assert sum(row.power_w["ngspice"].mean for row in summary.blocks.values()) == pytest.approx(chip.power_w, rel=1e-3)
    for name in ("readout", "decision", "tree"):
        assert abs(summary.blocks[name].difference.mean) < 0.05, name
    assert summary.blocks["bias"].difference is None  # nothing comes from outside
    assert set(OUTSIDE) - set(summary.power_outside) == {
        "current reference and bias tree", "input converters", "readout stage's own bias", "pooling and decision",
    }  # fmt: skip


@pytest.mark.ngspice
def test_waveforms_tell_the_class_that_the_chip_shows(network, design, x):
    """The class lines count before the readout, and lines that show no class are no class, not the last one."""
    test_set = TestSet(x[None], np.zeros(1, dtype=np.int64), np.array([FRAMES]), np.arange(1))
    recorded = record_signals(design, x, (), Run())
    decided = run_reference(network, x[None]).decisions[0]
    assert recorded.lines.sum() == 1 and recorded_decision(design, recorded, Run().timing, FRAMES) == decided
    silent = replace(recorded, lines=np.zeros_like(recorded.lines))
    verdict = judge_sample(design, test_set, 0, silent, Run())
    assert verdict.decided == {"software": decided, "behavioral": decided, "ngspice": NO_CLASS}
    assert title_of(replace(labels_of(design, "layer0.0", Run()), verdict=verdict)).endswith("ngspice none")
    assert say_answer(network, verdict.decided["ngspice"]) == "none"


def test_digits_are_decided_on_the_chip(batch, technology):
    """Of the eight clearest of 40 digits the margin is above half a unit, 27 mV or twice the current."""
    from cosim.verbs.loading import draw_samples, load_ranged

    net = load_ranged(trained_network_path("digits_d4.pt"), None)
    whole = compile_for(net, "digits", technology, CompilerSettings(around=DRIVEN))
    many = draw_samples(net, None, 40, 0, print)
    scores = np.sort(run_reference(net, many.x, many.lengths).scores, axis=1)
    few = many.select(np.argsort(scores[:, -2] - scores[:, -1])[:8])
    outcomes = simulate_samples(whole, few, Run(jobs=0, engine="batch"))
    assert all(isinstance(one, Inference) and not one.elsewhere for one in outcomes)
    assert [one.chosen for one in outcomes] == run_reference(net, few.x, few.lengths).decisions.tolist()


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_one_clock_drives_it_all(batch, network, technology, x, pooling):
    """States and class are those of software. The blocks' power is that of one supply. The equations know the clock
    from ngspice, without its phases, 1 in 10 of its nets; edges cost a fifth less in the engine, whose switches are
    exact below 250 nA alone: 0.9 / 0.8 to 1 / 0.8 of what it finds."""
    pooled = replace(network, readout=replace(network.readout, pooling=pooling))
    test_set = TestSet(x[None], np.zeros(1, dtype=np.int64), np.array([FRAMES]), np.arange(1))
    whole = compile_for(pooled, "net", technology, CompilerSettings(around=AROUND))
    (chip,) = simulate_samples(whole, test_set, Run(engine="batch"))
    assert isinstance(chip, Inference) and not chip.elsewhere
    software = run_reference(pooled, x[None])
    np.testing.assert_array_equal(chip.states, software_states(whole.graph, software)[0])
    assert chip.chosen == software.decisions[0]
    driven = {one.name for one in control_elements(whole, whole.nominal, FRAMES, Timing()) if one.kind == "v"}
    assert driven == {"dd", "ground", "run", "ck", "take", *whole.assembly.outputs}
    if pooling == "last":
        return  # the same blocks
    run = Run(engine="batch")
    summary = summarize_power(whole, study_power(whole, test_set, meter_samples(whole, test_set, run), run), run)
    blocks = {name: row.power_w["batch"].mean for name, row in summary.blocks.items()}
    assert tuple(blocks) == (*BLOCKS, "converters", "decision", "clock", "tree")
    assert sum(blocks.values()) == pytest.approx(chip.power_w, rel=1e-3)
    assert 0.9 / 0.8 < 1 + summary.blocks["clock"].difference.mean < 1 / 0.8
    assert set(summary.power_outside) == {"wires", "pads"}


@pytest.mark.parametrize("kind", ["toggles", "register"])
def test_pulses_and_decisions_from_the_clock(batch, technology, late, kind):
    """Toggles need pulses; what reads its own stage a frame late has decision clocks of its own."""
    net = load_network(trained_network_path("parity_d2")) if kind == "toggles" else late.register(3)
    x = np.random.default_rng(1).integers(0, 2, (1, FEW, net.encoding.width)).astype(float)
    whole = compile_for(net, kind, technology, CompilerSettings(around=("clock",)))
    assert bool(whole.assembly.pulses) is (kind == "toggles") and bool(whole.assembly.decides) is (kind == "register")
    test_set = TestSet(x, np.zeros(1, dtype=np.int64), np.array([FEW]), np.arange(1))
    (found,) = simulate_samples(whole, test_set, Run(engine="batch"))
    assert isinstance(found, Inference) and not found.elsewhere
    np.testing.assert_array_equal(found.states, software_states(whole.graph, run_reference(net, x))[0])


@pytest.mark.slow
@pytest.mark.ngspice
def test_a_simulator_with_large_steps_loses_no_bit_of_the_ring(technology, late):
    """With edges of 1 us ngspice solves one whole edge in a step: bits then pass two flip-flops, or none."""
    net, x = late.register(2), np.array([1.0, 0.0]).reshape(1, 2, 1)
    whole = compile_for(net, "register", technology, CompilerSettings(around=("clock",)))
    bench = inference_bench(whole, x[0])
    found = run_inference(bench, read_plan(whole, 2))
    assert isinstance(found, Inference)
    np.testing.assert_array_equal(found.states, software_states(whole.graph, run_reference(net, x))[0])


def test_no_time_for_a_decision(make_network, technology):
    """Of seven stages the first closes at 0.1 of a frame, and outputs would be sampled from 0.06 to 0.05."""
    deep = make_network(5, widths=(1,) * 7, outputs=2, alphas=(1.0,))
    with pytest.raises(MappingError, match=r"deep: `around=decision` samples .* the network's 7 stages decides"):
        compile_for(deep, "deep", technology, CompilerSettings(around=("decision",)))


def test_which_blocks():
    assert parse_around(None) == ()
    assert parse_around("bias, inputs") == ("inputs", "bias")
    with pytest.raises(InputError, match=r"`around` must name blocks of inputs, decision, clock, bias, not 'pads'"):
        parse_around("inputs,pads")


def test_what_a_network_must_have(network, technology):
    free = replace(network, encoding=replace(network.encoding, levels=None))
    with pytest.raises(MappingError, match=r"net: `around=inputs` takes codes, .* train with `input_levels=16`"):
        compile_for(free, "net", technology, CompilerSettings(around=("inputs",)))
    votes = replace(network, readout=replace(network.readout, pooling="vote"))
    with pytest.raises(MappingError, match=r"net: `around=decision` takes the largest .* not readout.pooling vote"):
        compile_for(votes, "net", technology, CompilerSettings(around=("decision",)))
    real = replace(network, labels=(), regression=True)
    with pytest.raises(MappingError, match=r"net: `around=decision` takes the largest .* trained for real numbers"):
        compile_for(real, "net", technology, CompilerSettings(around=("decision",)))


def test_lines_say_the_class():
    def one(*high):
        return Inference(np.zeros((1, 1)), np.zeros((1, 3)), 0.0, lines=np.array(high))

    lines = [one(False, True, False), one(False, False, False), one(True, False, True)]
    assert decided_by(lines, np.zeros(3)).tolist() == [1, NO_CLASS, NO_CLASS]
    assert decided_by([one()], np.array([2])).tolist() == [2]


@pytest.mark.ngspice
def test_what_is_measured_of_the_blocks(technology, tmp_path):
    shipped, found = find_chip(technology), measure_chip(technology)
    assert shipped.fingerprint == found.fingerprint == chip_fingerprint(technology)
    (tmp_path / "chip.json").write_bytes(CHIP_FILE.to_bytes(found))
    kept = CHIP_FILE.load(tmp_path / "chip.json")
    np.testing.assert_allclose(kept.coarse, shipped.coarse, rtol=1e-4)
    for current in (50e-12, 0.8e-9, 2.3e-9):
        coarse, fine = kept.units(current)
        each = float(np.interp(np.log(current), np.log(kept.pins), kept.coarse))
        assert abs(coarse * each + fine * kept.fine - current) < 0.55 * kept.fine + max(0.0, each - 32 * kept.fine)
    (tmp_path / "chip.json").write_bytes(seal_json({"format": 1}))
    with pytest.raises(InputError, match=r"chip.json: holds no figures of the chip's blocks of format 2; remove it"):
        CHIP_FILE.load(tmp_path / "chip.json")


@pytest.mark.ngspice
def test_a_first_run_has_the_numbers_of_the_next(technology, monkeypatch, tmp_path):
    """The file has 7 digits; what is measured is used as the file has it."""
    fit = replace(find_chip(technology), tick=1.23456789012e-13)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("cosim.technology.fit_file.models_path", lambda: tmp_path)
    monkeypatch.setattr(chip_files, "measure_chip", lambda _: fit)
    first = find_chip(technology)
    assert first.tick == 1.234568e-13
    monkeypatch.setattr(chip_files, "measure_chip", lambda _: pytest.fail("measured again"))
    assert find_chip(technology) == first


def test_nothing_scales_a_tree(design, technology):
    with pytest.raises(InputError, match=r"--bias tracking scales sources at pins, and --with bias leaves none"):
        biased(design, technology, "tracking")
    with pytest.raises(InputError, match=r"net: trim sets sources at the bias pins; leave bias out of --with"):
        check_trimmable(design, "net")
