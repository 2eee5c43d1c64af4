"""Trimming: codes from measurements alone, and what is left is the converter's step."""

import os
from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, SimulationError
from cosim.base.resources import trained_network_path
from cosim.compiler.design import Condition
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.chip import deviations_of, standing
from cosim.engines.simulation.simulated import engine_named
from cosim.engines.simulation.testbench import control_elements
from cosim.exchange.checkpoint import load_network
from cosim.network.layers import FirstQuadrantLayer, SignedLayer
from cosim.network.types import InputEncoding, Network, Readout, check_network
from cosim.results.page import format_text
from cosim.tasks.testset import TestSet
from cosim.units.schmitt import Schmitt
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo import execute
from cosim.verbs.montecarlo.chips import Figures
from cosim.verbs.montecarlo.spec import parse_spec
from cosim.verbs.montecarlo.trial import Trial
from cosim.verbs.trim import run as trim_run
from cosim.verbs.trim.page import trim_page
from cosim.verbs.trim.run import TrimRecord, summarize_trim, trim_chip
from cosim.verbs.trim.trim import (
    CellPoints,
    check_trimmable,
    measure_behavioral,
    measure_cell,
    trim_codes,
    trim_ranges,
)


def trimmed_chip(trial, chip, factors):
    """A chip's factors with these at its pins, by the model."""
    condition = replace(standing(trial.design, trial.condition, chip), pins=factors)
    return deviations_of(trial.design, condition, chip)


def remeasured(trial, chip, factors):
    """A chip's points with these factors at its pins, by the model."""
    design = trial.design
    trimmed, nominal = trimmed_chip(trial, chip, factors), trimmed_chip(trial, chip, {})
    points = {}
    for cell in design.graph.of(Schmitt):
        bias, fit = design.graph.biases[cell.name], design.calibration.schmitt
        drawn = trimmed.cells[cell.name]
        pair = np.float64(bias.i_thresh * drawn.thresh), np.float64(bias.i_width * drawn.width)
        compared = nominal.cells[cell.name].compared
        points[cell.name] = float(fit.i_rise(*pair)) / compared, float(fit.i_fall(*pair)) / compared
    return points


def test_what_is_left_is_half_a_step(trial):
    """8 bits over +-R: thresholds end within half a step, R / 2^8, of what was asked, if R covers the chip.

    The fits are linear to 2 %, so a correction of d leaves 0.02 d more; the lower threshold is a difference of two
    trimmed currents, so it has the error of both.
    """
    wanted = measure_behavioral(trial, trial.nominal_chip)
    ranges = trim_ranges(trial)
    for number in range(8):
        chip = trial.chip(number)
        factors = trim_codes(trial.design, measure_behavioral(trial, chip), wanted, 8, ranges)
        for cell, (rise, fall) in remeasured(trial, chip, factors).items():
            allowed = (ranges[0] / 256 + 0.02 * ranges[0]) * wanted[cell].rise
            assert abs(rise - wanted[cell].rise) <= allowed
            width = wanted[cell].rise - wanted[cell].fall
            assert abs(fall - wanted[cell].fall) <= 2 * allowed + (ranges[1] / 256 + 0.02 * ranges[1]) * width


def test_a_chip_that_does_not_deviate_gets_code_0(trial):
    wanted = measure_behavioral(trial, trial.nominal_chip)
    factors = trim_codes(trial.design, wanted, wanted, 6, trim_ranges(trial))
    assert set(factors.values()) == {1.0}
    assert set(factors) == {pin for pins in trial.design.assembly.cell_bias.values() for pin in pins}


def test_pins_of_the_circuit_and_of_the_model_move_together(trial):
    design, chip = trial.design, trial.chip(0)
    cell, (thresh, width, gain) = next(iter(design.assembly.cell_bias.items()))
    pins = {thresh: 1.1, width: 0.9, gain: 1.05}
    trimmed, drawn = trimmed_chip(trial, chip, pins), trimmed_chip(trial, chip, {})
    sources = {
        one.name: one.value for one in control_elements(design, Condition(trial.technology, pins=pins), 1, trial.timing)
    }
    for pin, factor in ((thresh, 1.1), (width, 0.9), (gain, 1.05)):
        assert sources[pin] == pytest.approx(factor * design.assembly.bias_pins[pin], rel=1e-12, abs=0)
    for field, factor in (("thresh", 1.1), ("width", 0.9), ("level", 1.05)):
        found, before = (getattr(one.cells[cell], field) for one in (trimmed, drawn))
        assert found == pytest.approx(factor * before, rel=1e-12, abs=0)


def test_ranges_are_three_sigma_of_many_chips(trial):
    """The spread of measured rises over 60 chips and all cells is R / 3 within 4 / sqrt(2 x 60) = 37 %, per cell."""
    wanted = measure_behavioral(trial, trial.nominal_chip)
    many = replace(trial, plan=replace(trial.plan, chips=60))
    points = [measure_behavioral(many, many.chip(k)) for k in range(60)]
    for cell, nominal in wanted.items():
        spread = np.std([found[cell].rise / nominal.rise for found in points], ddof=1)
        assert spread == pytest.approx(trim_ranges(trial)[0] / 3, rel=0.37)


@pytest.mark.ngspice
def test_a_cell_on_the_bench_is_the_cell_of_the_model(trial):
    """One chip's cell on transistors: its deviation from nominal is the model's within 10 % of it and 1 % of the point.

    10 %: the slope factor is that of weak inversion (benchmarks/bench_mismatch.py finds 3 to 5 %); 1 %: calibration.
    """
    chip = trial.chip(1)
    expected, nominal = measure_behavioral(trial, chip), measure_behavioral(trial, trial.nominal_chip)
    cell = next(trial.design.graph.of(Schmitt))
    found = measure_cell(replace(trial, engine="ngspice"), chip, cell, 1.3 * expected[cell.name].rise)
    for field in ("rise", "fall", "level"):
        value, wanted, start = (getattr(point, field) for point in (found, expected[cell.name], nominal[cell.name]))
        assert abs(value - wanted) <= 0.1 * abs(wanted - start) + 0.01 * start


def test_before_and_after_are_paired(trial):
    rows = [(0.5, 0.9), (0.95, 0.95), (0.6, 0.92), (0.99, 0.4)]
    figures = [ran(k, first, second) for k, (first, second) in enumerate(rows)]
    summary = summarize_trim(trial, (4,), figures, [parse_spec("accuracy>=0.9")])
    before, after = summary.rows
    assert (before.bits, after.bits) == (None, 4)
    assert (before.yield_.passed, after.yield_.passed) == (2, 3)
    assert (after.won, after.lost) == (2, 1)
    assert after.p == pytest.approx(1.0, rel=1e-12)  # 2 of 3, two-sided: (3 + 1 + 3 + 1) / 8


def test_samples_that_another_simulator_ran_are_counted(trial, monkeypatch):
    """Both rows of both chips; the table says it as that of Monte Carlo does."""
    run = trial.run(trial.chip(0))
    outcome = next(iter(engine_named("behavioral").infer(trial.design, trial.test_set, run, lambda *_: None)))
    outcome = replace(outcome, elsewhere="ngspice: a diode")
    monkeypatch.setattr(trim_run, "infer_chip", lambda engine, trial, run: [outcome, outcome])
    monkeypatch.setattr(trim_run, "figures_of", lambda *_: point(0.5))
    records = [trim_chip(trial, number, (4,)) for number in (0, 1)]
    summary = summarize_trim(trial, (4,), records, [parse_spec("accuracy>=0.9")])
    assert summary.elsewhere == {"ngspice: a diode": 8}
    assert "by ngspice 8 samples (a diode)" in format_text(trim_page(trial.design, summary, {}))


def ran(chip, before, after):
    return TrimRecord(chip, {"0": point(before), "4": point(after)}, "", {})


def point(accuracy):
    return Figures(accuracy, 1.0, 1.0, 1e-7, decisions=(), unreset=())


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("signed_input", "trim is for constant thresholds; those of layer0.0 depend on its input"),
        ("parity_d2", "trim is for 9T cells, ladders, counters, reflectors and registers, and layer1.0 is none"),
    ],
)
def test_what_cannot_be_trimmed(make_network, technology, calibration, kind, text):
    network = make_network(11, kind) if kind == "signed_input" else load_network(trained_network_path(kind))
    with pytest.raises(InputError, match=f"net.npz: {text}"):
        check_trimmable(compile_network(network, technology, calibration), "net.npz")


@pytest.mark.parametrize("cell", ["ladder", "counter"])
def test_comparators_are_trimmed_each_by_its_own_pin(technology, calibration, cell):
    """8 bits over +-R bring both thresholds to half a step, R / 2^8, of what was asked, and a correction of d leaves at
    most 0.02 d more, because a comparator's ratio hardly depends on its current; what is beyond R, three sigma, stays.
    A counter's levels have pins that trimming leaves alone."""
    design = compile_network(
        load_network(trained_network_path("digits_native_d8")), technology, calibration, CompilerSettings(cell=cell)
    )
    blank = TestSet(np.zeros((1, 1, 8)), np.zeros(1, np.int64), np.ones(1, np.int64), np.arange(1))
    trial = Trial(design, blank, VariationPlan("local", 2, 20))
    wanted, ranges = measure_behavioral(trial, trial.nominal_chip), trim_ranges(trial)
    for number in range(5):
        chip = trial.chip(number)
        before = measure_behavioral(trial, chip)
        pins = trim_codes(design, before, wanted, 8, ranges)
        condition = replace(standing(design, trial.condition, chip), pins=pins)
        after = measure_behavioral(replace(trial, condition=condition), chip)
        for name, asked in wanted.items():
            for field, span in zip(("rise", "fall"), ranges, strict=False):
                was, left = (getattr(one[name], field) / getattr(asked, field) - 1 for one in (before, after))
                beyond = max(abs(was) - span * (1 - 1 / 128), 0.0)
                assert beyond < span * 2 / 3  # five sigma
                assert abs(left) <= span * (1 / 256 + 0.02) + 1.3 * beyond
    assert (cell == "ladder") == any("gain" in pin for pin in pins)
    found = summarize_trim(trial, (4,), [ran(5, 0.5, 1.0)], [parse_spec("accuracy>=0.9")]).ranges
    assert list(found) == ["upper", "lower", *(["gain"] if cell == "ladder" else [])]


def test_ranges_of_a_ladder_are_those_of_its_comparators(technology, calibration):
    """A counter of the same network has the same comparators; their currents, and so the slopes, differ by 1 %."""
    network = load_network(trained_network_path("digits_native_d8"))
    blank = TestSet(np.zeros((1, 1, 8)), np.zeros(1, np.int64), np.ones(1, np.int64), np.arange(1))
    ladder, counter = (
        trim_ranges(
            Trial(
                compile_network(network, technology, calibration, CompilerSettings(cell=cell)),
                blank,
                VariationPlan("local", 2, 2),
            )
        )
        for cell in ("ladder", "counter")
    )
    assert ladder[:2] == pytest.approx(counter[:2], rel=0.01)


def counting(beta_lo, beta_hi, ranges):
    """Units at epsilon 1 that count an input each, with states in `ranges`."""
    width = len(beta_lo)
    layer = FirstQuadrantLayer(
        "layer0", ("input",), np.eye(width), np.zeros(width), np.array(beta_lo), np.array(beta_hi), np.ones(width),
        epsilon=1.0,
    )  # fmt: skip
    encoding = InputEncoding(np.zeros(width), np.ones(width))
    readout = Readout(("layer0",), np.eye(width) / 8, np.zeros(width), "last")
    network = Network(encoding, (layer,), readout, state_ranges={"layer0": np.array(ranges)})
    return check_network(network)


def test_a_pin_of_an_upper_and_a_lower_threshold_serves_both(technology, calibration):
    """Unit 0 turns up where unit 1 turns down: one pin, the code of the smallest sum of squares over both."""
    network = counting([0.5, 1.0], [1.0, 1.5], [[0.0, 0.0], [3.0, 3.0]])
    design = compile_network(network, technology, calibration, CompilerSettings(cell="counter"))
    pins = design.assembly.cell_bias
    assert pins["layer0.0"][0] == pins["layer0.1"][1]
    wanted = {name: CellPoints(1.0, 1.0, 1.0) for name in pins}
    measured = {"layer0.0": CellPoints(1.05, 1.0, 1.0), "layer0.1": CellPoints(1.0, 0.90, 1.0)}
    found = trim_codes(design, measured, wanted, 10, (0.2, 0.2, 0.2))
    assert found[pins["layer0.0"][0]] == pytest.approx((1 / 1.05 + 1 / 0.90) / 2, abs=0.2 / 2**9)


def test_a_level_pin_of_two_kinds_is_refused(technology, calibration):
    """A ladder's rung and the upper bits of a counter may have one current, 0.5 i_unit, and so one pin."""
    network = counting([0.5, 0.25], [1.0, 1.5], [[0.0, 0.0], [3.0, 40.0]])
    design = compile_network(network, technology, calibration)
    assert design.assembly.cell_bias["layer0.0"][2] in design.assembly.cell_bias["layer0.1"]
    with pytest.raises(InputError, match=r"net: bias_gain_\d makes the level of layer0\.0, .* and that of layer0\.1"):
        check_trimmable(design, "net")


def test_pins_of_registers_move_their_levels(technology, calibration):
    """A factor of a pin is that of the thresholds on it, and of each level on the shared pin, of a chip and of none."""
    layer = SignedLayer(
        "layer0", ("input",), np.array([[2.0]]), np.array([-1.0]), np.array([0.25]), np.array([-1.0]),
        weight_alpha=np.array([[2.0]]), levels=4,
    )  # fmt: skip
    readout = Readout(("layer0",), np.eye(1), np.zeros(1), "last")
    design = compile_network(
        check_network(Network(InputEncoding(np.zeros(1), np.ones(1)), (layer,), readout)), technology, calibration
    )
    upper, lower, gain = design.assembly.cell_bias["layer0.0"][:3]
    pins = {upper: 1.1, lower: 0.9, gain: 1.05}
    found = deviations_of(design, replace(design.nominal, pins=pins), None).cells["layer0.0"]
    assert (found.upper, found.lower, found.levels) == (1.1, 0.9, (1.05,) * 4)


@pytest.mark.ngspice
def test_codes_of_comparators_do_on_transistors_what_the_equations_say(technology, calibration):
    """Candidates up to 80 pA inside and outside of both thresholds of a register, whose comparators err by some 25 pA:
    as many states are right by both engines, without converters and with those of 8 bits."""
    layer = SignedLayer(
        "layer0", ("input",), np.array([[2.0, 0.0]]), np.array([-1.0]), np.array([0.25]), np.array([-1.0]),
        weight_alpha=np.array([[0.0, 2.0]]), levels=4,
    )  # fmt: skip
    readout = Readout(("layer0",), np.eye(1), np.zeros(1), "last")
    network = check_network(Network(InputEncoding(np.zeros(2), np.ones(2)), (layer,), readout))
    near = [side * (0.25 + step) for side in (1, -1) for step in (-0.08, -0.05, -0.02, 0.02, 0.05, 0.08)]
    h = np.array([[1.0, 0.0, one] for one in near])
    x = np.stack([(h + 1) / 2, np.broadcast_to([0.0, 0.5, 1.0], h.shape)], axis=2)
    x[6:, 2, 1] = 0.0  # -v is written below the lower threshold
    test_set = TestSet(x, np.zeros(12, np.int64), np.full(12, 3), np.arange(12))
    trial = Trial(compile_network(network, technology, calibration), test_set, VariationPlan("local", 2, 9))
    chips = range(4)
    equations, transistors = (
        np.array([[one.state_agreement for one in trim_chip(tried, k, (8,)).figures.values()] for k in chips])
        for tried in (trial, replace(trial, engine="batch"))
    )
    np.testing.assert_array_equal(equations, transistors)
    assert (equations[:, 1] != equations[:, 0]).any()


def test_a_cell_that_cannot_be_measured_costs_its_chip_alone(trial, monkeypatch):
    def refuse(trial, chip):
        raise SimulationError("cell 3 did not switch")

    monkeypatch.setattr(trim_run, "measure_behavioral", lambda trial, chip: {})
    monkeypatch.setattr(trim_run, "measure_transistors", refuse)
    record = trim_chip(replace(trial, engine="ngspice"), 4, (4,))
    assert (record.chip, record.figures, record.failure) == (
        4,
        {},
        "the simulator found no convergence: cell 3 did not switch",
    )
    records = [record, ran(5, 0.5, 1.0)]
    summary = summarize_trim(trial, (4,), records, [parse_spec("accuracy>=0.9")])
    assert [(row.yield_.passed, row.yield_.chips) for row in summary.rows] == [(0, 2), (1, 2)]


def die(trial, number):
    os._exit(9)


def test_a_worker_that_dies_is_a_message(trial):
    with pytest.raises(
        SimulationError, match=r"process ended twice \(exit status 9\) with chips 0, 1, by memory perhaps"
    ):
        list(execute.map_chips(die, trial, range(2), 1))
