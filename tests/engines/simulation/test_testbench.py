"""The testbench: frames, clocks, reset, and one deck for one inference."""

import re
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.circuit.bench import Tolerances, Tran
from cosim.circuit.deck import device_sizes
from cosim.circuit.dialects.ngspice import NGSPICE, format_bench, format_options
from cosim.circuit.elements import GROUND, Source
from cosim.circuit.waveforms import DECIDE, SAMPLE_AT, Timing
from cosim.compiler.design import Condition
from cosim.compiler.passes import compile_network
from cosim.engines.simulation.read import read_plan
from cosim.engines.simulation.testbench import control_elements, inference_bench, input_elements, saved_probes
from cosim.variation.draws import VariationPlan, draw_chip, varying_devices


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(11, outputs=2), technology, calibration)


def nominal_chip(design):
    """A chip that does not deviate."""
    plan = VariationPlan("none", 0, 1)
    return draw_chip(varying_devices(design.flat, design.technology, plan), design.technology, plan, 0)


def value_at(source, time):
    if isinstance(source.value, float):
        return source.value
    times, levels = zip(*source.value, strict=True)
    return float(np.interp(time, times, levels))


def test_inputs_are_staircases_on_the_pedestal(design):
    timing = Timing()
    inputs = np.random.default_rng(0).uniform(size=(5, 3))
    sources = input_elements(design, design.nominal, inputs, timing)
    assert [source.a for source in sources] == ["in_0_p", "in_1_p", "in_2_p"]
    for j, source in enumerate(sources):
        assert value_at(source, 0.9 * timing.start) == pytest.approx(design.graph.i_pedestal, rel=1e-12, abs=0)
        for k in range(5):
            for fraction in (timing.edge, 0.5, 1.0):
                current = value_at(source, timing.start + (k + fraction) * timing.t_step)
                assert current == pytest.approx(1e-9 * inputs[k, j] + design.graph.i_pedestal, rel=1e-9, abs=0)


def test_equal_frames_need_no_corner(design):
    (source, *_) = input_elements(design, design.nominal, np.full((9, 3), 0.25), Timing())
    assert len(source.value) == 3


def test_clocks_decide_one_stage_after_the_other(design, technology):
    timing = Timing()
    elements = control_elements(design, design.nominal, 3, timing)
    sources = {element.name: element for element in elements if isinstance(element, Source)}
    closes = timing.closes(2)
    assert closes == pytest.approx((0.35, 0.7))
    for k in range(3):
        begin = timing.start + k * timing.t_step
        for stage, close in enumerate(closes):
            clk, clkb = sources[f"clk{stage}"], sources[f"clkb{stage}"]
            for fraction, level in ((0.2, 1.8), (close - 0.01, 1.8), (close + 0.02, 0.0), (close + DECIDE - 0.01, 0.0)):
                time = begin + fraction * timing.t_step
                assert value_at(clk, time) == pytest.approx(level, abs=1e-9)
                assert value_at(clkb, time) == pytest.approx(1.8 - level, abs=1e-9)
    # the first has opened before the second decides, and the last decides before outputs are read
    assert closes[0] + DECIDE + timing.clock_edge < closes[1]
    assert closes[1] < SAMPLE_AT


def test_reset_ends_before_the_first_frame(design, technology):
    timing = Timing()
    elements = control_elements(design, design.nominal, 3, timing)
    sources = {element.name: element for element in elements if isinstance(element, Source)}
    assert value_at(sources["resetb"], 0.5 * timing.start) == 0.0
    assert value_at(sources["resetb"], 0.9 * timing.start) == 1.8
    assert value_at(sources["clk0"], 0.7 * timing.start) == 0.0
    assert value_at(sources["clk0"], timing.start - 2.1 * timing.clock_edge * timing.t_step) == 0.0
    assert value_at(sources["clk0"], timing.start - timing.clock_edge * timing.t_step) == pytest.approx(1.8)
    for moment, level in ((0.69, 0.0), (0.73, 1.8)):
        assert value_at(sources["resetb"], moment * timing.start) == pytest.approx(level)


@pytest.mark.parametrize(("t_step", "accepted"), [(0.99e-6, False), (1e-6, True), (1.0, True), (1.01, False)])
def test_frames_last_a_microsecond_to_a_second(t_step, accepted):
    if accepted:
        assert Timing(t_step).start == t_step / 2
    else:
        found = rf"t_step must lie in 1e-06 to 1 s, not {t_step:g} s; choose another `t_step`"
        with pytest.raises(InputError, match=found) as error:
            Timing(t_step)
        limit = 1e-6 if t_step < 1e-6 else 1.0
        assert (error.value.where, error.value.value, error.value.limit, error.value.unit) == (
            "t_step", t_step, limit, "s",
        )  # fmt: skip


def test_a_pulse_lies_within_its_decision(design, technology):
    """Of stage 1, which decides from 0.7 of a frame on: 0.08 to 0.23 later; and at the beginning of the reset."""
    timing = Timing(t_step=2e-3)
    pulsed = replace(design, assembly=replace(design.assembly, pulses={1: ("pulse1", "pulseb1")}))
    elements = control_elements(pulsed, design.nominal, 3, timing)
    sources = {element.name: element for element in elements if isinstance(element, Source)}
    assert all(
        (sources[pin].kind, sources[pin].a, sources[pin].b) == ("v", pin, GROUND) for pin in ("pulse1", "pulseb1")
    )
    moments = [(0.2e-3, 1.8), (0.39e-3, 1.8), (0.43e-3, 0.0), (0.95e-3, 0.0)]
    for k in range(3):
        levels = ((0.2, 0.0), (0.77, 0.0), (0.80, 1.8), (0.92, 1.8), (0.95, 0.0))
        moments += [(1e-3 + (k + fraction) * 2e-3, level) for fraction, level in levels]
    for time, level in moments:
        assert value_at(sources["pulse1"], time) == pytest.approx(level, abs=1e-9), time
        assert value_at(sources["pulseb1"], time) == pytest.approx(1.8 - level, abs=1e-9), time


def test_supplies_biases_and_senses(design, technology):
    """Away from the nominal point all biases are scaled together, inputs and their pedestal by their own factor."""
    condition = Condition(technology, 1.1, 1.3)
    assembly, pedestal = design.assembly, design.graph.i_pedestal
    elements = control_elements(design, condition, 3, Timing())
    fixed = {(one.name, one.kind, one.a, one.b): one.value for one in elements if isinstance(one.value, float)}
    expected = {
        ("dd", "v", "vdd", GROUND): 1.8,
        ("ground", "v", "vdd", "vground"): design.calibration.v_node,
        ("unit", "i", assembly.unit_pin, GROUND): 1.1e-9,
        ("pedestal", "i", assembly.pedestal_pin, GROUND): 1.1 * 8 * pedestal,
        **{(pin, "i", "vdd", pin): 1.1 * current for pin, current in assembly.bias_pins.items()},
        **{(pin, "v", "vground", pin): 0.0 for pin in assembly.outputs},
    }
    assert fixed.keys() == expected.keys()
    assert fixed == pytest.approx(expected, rel=1e-12)
    assert {(one.a, one.b) for one in elements if not isinstance(one.value, float)} == {
        (pin, GROUND) for pin in ("resetb", *(pin for pair in assembly.clocks for pin in pair))
    }
    (first, *_) = input_elements(design, condition, np.array([[0.25, 0, 0], [0.5, 0, 0]]), Timing())
    assert (first.kind, first.a, first.b) == ("i", "in_0_p", GROUND)
    frames = [value_at(first, time) for time in (4e-3, 14e-3, 24e-3)]
    assert frames == pytest.approx([1.3 * (x * 1e-9 + pedestal) for x in (0, 0.25, 0.5)], rel=1e-12)
    assert not any(one.name == "pedestal" for one in control_elements(
        replace(design, assembly=replace(assembly, pedestal_pin=None)), condition, 3, Timing()
    ))  # fmt: skip


def test_samples_are_read_late_in_each_frame():
    timing = Timing(t_step=2e-3)
    assert timing.sample_times(3) == pytest.approx([1e-3 + 1.9e-3, 1e-3 + 3.9e-3, 1e-3 + 5.9e-3])


def test_deck_is_complete_and_deterministic(design, technology):
    inputs = np.random.default_rng(1).uniform(size=(2, 3))
    deck = format_bench(inference_bench(design, inputs))
    assert deck == format_bench(inference_bench(design, inputs.copy()))
    assert deck.count(".tran ") == deck.count(".options ") == deck.count("\n.end\n") == 1
    assert NGSPICE.devices(technology, device_sizes(design.assembly.circuit)) in deck
    assert format_options(Tolerances(), technology) in deck
    saved = re.search(r"^\.save (.*)$", deck, re.MULTILINE).group(1).split()
    assert tuple(saved) == tuple(map(NGSPICE.printed, saved_probes(design.assembly)))
    plan = read_plan(design, 2)
    assert plan.window == pytest.approx((5e-3, 25e-3))
    assert {f"i(v{name})" for name in plan.outputs} <= set(saved)


def test_a_run_lasts_its_frames_at_a_fiftieth_of_one(design, technology):
    """Half a frame of reset and two frames; nets that are preset begin at the supply."""
    chip = nominal_chip(design)
    deck = format_bench(inference_bench(design, np.full((2, 3), 0.5), chip=chip))
    (tran,) = re.findall(r"^\.tran (.*)$", deck, re.MULTILINE)
    assert [float(word) for word in tran.split()] == pytest.approx([0.2e-3, 25e-3, 0.0, 0.2e-3])
    assert re.search(r"^\.ic v\(xnetwork\.xcell_layer0_0\.\w+\)=1\.8\S* v\(xnetwork\.", deck, re.MULTILINE)
    assert ".ic" not in format_bench(inference_bench(design, np.full((2, 3), 0.5)))
    bench = inference_bench(design, np.full((3, 3), 0.5), Timing(t_step=2e-3), chip=chip)
    assert bench.circuit.title == design.assembly.circuit.title
    assert isinstance(bench.analysis, Tran)
    assert (bench.analysis.step, bench.analysis.end) == (pytest.approx(0.04e-3), pytest.approx(7e-3))
    assert (bench.preset, bench.from_rest) == (
        tuple((one, 1.8) for nets in design.assembly.held.values() for one in nets),
        True,
    )


def test_numbers_in_a_deck_have_no_suffix(design, technology):
    """SPICE reads 1M as one milli; a deck holds exponents only."""
    cards = NGSPICE.devices(technology, device_sizes(design.assembly.circuit))
    text = format_bench(inference_bench(design, np.full((2, 3), 0.5))).replace(cards, "")
    words = re.findall(r"(?<![\w.\[,+-])[+-]?\d[\w.+-]*", re.sub(r"^\*.*$", "", text, flags=re.MULTILINE))
    assert all(re.fullmatch(r"[+-]?\d+(\.\d+)?(e[+-]\d+)?", word) for word in words)
    assert any("e-09" in word for word in words)
