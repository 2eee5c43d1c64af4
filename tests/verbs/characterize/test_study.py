"""Characterisation: what each cell's figures must be by its equations and by the calibration that made its biases."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, MappingError, SimulationError
from cosim.cells.bias import STRENGTH
from cosim.engines.engine import Failure, FailureKind, Run
from cosim.engines.ngspice.process import run_bench
from cosim.engines.ngspice.simulator import Ngspice
from cosim.results.page import format_columns
from cosim.units.ladder import ladder_currents, ladder_timing, solve_ladder
from cosim.verbs.characterize import ladder as ladder_study
from cosim.verbs.characterize import study as characterize
from cosim.verbs.characterize.ladder import (
    SAMPLES_A_STEP,
    LadderRun,
    LadderStudy,
    LadderTrace,
    check_study,
    ladder_plan,
    ladder_runs,
    level_rows,
    pulse_train,
    run_ladder,
    software_levels,
    summarize_ladder,
    summarize_study,
)
from cosim.verbs.characterize.page import figures_table
from cosim.verbs.characterize.study import (
    CellFigure,
    at_conditions,
    characterize_dpi,
    characterize_mirror,
    characterize_rectifier,
    characterize_schmitt,
    characterize_steering,
    summarize_cell,
)

CURRENTS = ladder_currents(1e-9)
STUDY = LadderStudy(3, 2, 12, 5, CURRENTS, ladder_timing(10e-3))


def test_software_counts_and_holds_at_both_ends():
    assert software_levels(1, np.array([1, 1, 1, 0, -1, -1, -1, -1, 1]), 3).tolist() == [2, 3, 3, 3, 2, 1, 0, 0, 1]


def test_conditions_are_every_pair_and_nominal_by_default(technology):
    assert at_conditions(technology, (), (), ()) == (technology,)
    found = [(one.celsius, one.supply) for one in at_conditions(technology, (), (-20.0, 85.0), (1.62, 1.98))]
    assert found == [(-20, 1.62), (-20, 1.98), (85, 1.62), (85, 1.98)]


@pytest.mark.parametrize(
    ("temperatures", "supplies", "text"),
    [
        ((), (1.8, 3.4), "supply must be above 0 V and at most 3.3 V, the largest of generic180, not 3.4 V; choose"),
        ((), (0.0,), "supply must be above 0 V and at most 3.3 V, the largest of generic180, not 0 V; choose another"),
        ((27.0, -300.0), (), "temperature must lie in -55 to 150 C, the range of device models, not -300 C; choose"),
        ((151.0,), (), "temperature must lie in -55 to 150 C, the range of device models, not 151 C; choose another"),
    ],
)
def test_conditions_that_no_device_is_made_for(technology, temperatures, supplies, text):
    with pytest.raises(InputError, match=text):
        at_conditions(technology, (), temperatures, supplies)


@pytest.mark.parametrize(
    ("tau", "celsius", "text"),
    [
        (20e-3, 27.0, "ladder of 3 rungs at 27 C, DPIs 10 % fast: the ladder would skip a set: the neighbour's window"),
        (4.2e-3, 27.0, "at 27 C, DPIs 10 % slow: the ladder would skip a set: .* use a smaller tau"),
        (1e-3, 27.0, "at 27 C, DPIs 10 % fast: the ladder would double a reset: .* the pulse; use a larger tau"),
        (1.2e-3, -55.0, "ladder of 3 rungs at -55 C, DPIs 10 % fast: the ladder would double"),
    ],
)
def test_a_timing_that_would_skip_or_double(technology, calibration, tau, celsius, text):
    """Arrival times are 0.86 to 1.91 tau (docs/explanation/ladder.md); tau goes with U_T, 0.73 of nominal at -55 C."""
    study = replace(STUDY, timing=ladder_timing(10e-3, tau))
    with pytest.raises(MappingError, match=text):
        check_study(study, at_conditions(technology, (), (celsius,), ()), calibration)


def test_the_default_timing_holds_from_cold_to_hot(technology, calibration):
    check_study(STUDY, at_conditions(technology, (), (-55.0, 27.0, 150.0), ()), calibration)


def test_runs_are_those_of_the_seed(calibration):
    runs, again = ladder_runs(STUDY, calibration), ladder_runs(STUDY, calibration)
    assert [run.kind for run in runs] == ["random"] * 2 + ["retention"] * 4 + ["plain", "stairs"]
    for one, other in zip(runs, again, strict=True):
        assert (one.start, one.updates.tolist()) == (other.start, other.updates.tolist())
    other = ladder_runs(replace(STUDY, seed=6), calibration)
    assert [run.updates.tolist() for run in other[:2]] != [run.updates.tolist() for run in runs[:2]]
    assert all(set(run.updates.tolist()) <= {-1, 0, 1} and 0 <= run.start <= 3 for run in runs)
    assert [run.start for run in runs[2:6]] == [0, 1, 2, 3]
    plain, solved = runs[-2].bias, runs[-1].bias
    assert (plain.i_thresh_1, plain.i_width, plain.i_g) == (
        CURRENTS.i_rise,
        CURRENTS.i_rise - CURRENTS.i_fall,
        CURRENTS.i_tau,
    )
    assert solved == solve_ladder(CURRENTS, calibration)


def test_pulses_return_to_retain():
    c = CURRENTS
    points = np.array(pulse_train(np.array([1, 0, -1]), c, ladder_timing(10e-3), 5e-3))
    assert np.interp([0, 4e-3, 6e-3, 8e-3, 17e-3, 26e-3, 29e-3], *points.T) == pytest.approx(
        [c.i_retain, c.i_retain, c.i_set, c.i_retain, c.i_retain, c.i_reset, c.i_retain]
    )


def trace_of(levels, updates, start):
    """A ladder of 3 rungs that stands on these levels at the end of its steps."""
    states = np.repeat(np.arange(3) < np.array(levels)[:, None], SAMPLES_A_STEP, axis=0).astype(np.int16)
    run = LadderRun("random", None, start, np.array(updates))
    return LadderTrace(run, states, states.sum(axis=1) * 0.5e-9, {"bias": np.ones(len(states))}, 1.0)


def test_a_doubled_step_is_wrong_until_the_end_stop_and_one_update_went_wrong():
    trace = trace_of([1, 3, 3, 3, 2], [1, 1, 0, 1, -1], start=0)
    assert trace.expected.tolist() == [1, 2, 2, 3, 2]
    assert trace.wrong.tolist() == [False, True, True, False, False]
    assert trace.wrong_updates == 1


def test_a_hole_in_the_thermometer_is_wrong():
    trace = trace_of([1, 2], [0, 1], start=1)
    trace.states[:] = trace.states[:, ::-1]
    assert trace.levels.tolist() == trace.expected.tolist()
    assert trace.wrong.all()


def test_rows_fit_a_terminal():
    rows = [
        CellFigure("push 100 pA", "pull = push", "A", 0.0, 4.73e-12, 1.392e-12, 1e-10),
        CellFigure("push 100 pA", "rise to 63 %", "s", 12.39e-3, float("nan"), 12.82e-3, 12.39e-3),
    ]
    table = figures_table(rows)
    first, second, third = format_columns(table.head, table.rows, table.numbers)
    assert max(map(len, (first, second, third))) < 80
    assert " ".join(second.split()) == "push 100 pA pull = push 0 A 4.73 pA +4.73 % 1.392 pA +1.39 %"
    assert " ".join(third.split()) == "push 100 pA rise to 63 % 12.39 ms not found 12.82 ms +3.47 %"


# One set-point of each cell in ngspice.


@pytest.mark.ngspice
def test_schmitt(technology, calibration, monkeypatch):
    monkeypatch.setattr(characterize, "SCHMITT_POINTS", ((0.35e-9, 0.15e-9, 0.5e-9),))
    found = characterize_schmitt(technology, calibration)
    assert [row.quantity for row in found.rows] == ["upper threshold", "lower threshold", "level"]
    assert [row.ideal for row in found.rows] == [0.35e-9, 0.15e-9, 0.5e-9]
    for row in found.rows:
        measured, calibrated = row.errors
        assert abs(calibrated) < 1.5 * calibration.schmitt.error  # half as much again between the points of the fit
        assert abs(measured) < 0.04  # 3 %/V of output conductance, about 1 V: tests/cells/test_schmitt.py
    assert [curve.kind for curve in found.curves] == ["measured", "calibrated", "ideal"]
    loop = found.curves[1]
    assert loop.x.max() == pytest.approx(1.3 * 0.35e-9, rel=1e-6, abs=0)
    summary = summarize_cell("schmitt", technology.name, [found])
    assert summary["conditions"][0]["rows"][0]["error_calibrated"] == found.rows[0].errors[1]


@pytest.mark.ngspice
def test_dpi_and_its_time_constants_go_with_the_thermal_voltage(technology, calibration, monkeypatch):
    monkeypatch.setattr(characterize, "DPI_POINTS", (0.5e-9,))
    hot = replace(technology, celsius=85.0)
    cold_rows, hot_rows = (characterize_dpi(one, calibration).rows for one in (technology, hot))
    level, rise, fall = cold_rows
    # alpha 0.5 nA is a point of the calibration: its secant method leaves less than reltol 1e-4 after three steps
    assert abs(level.errors[1]) < 2e-4
    assert fall.ideal == pytest.approx(10e-3)
    # The calibration's bench falls to 1 pA, this one to 0. Its gate line swings ln(0.5 nA / 10 fA) = 11 e-folds at most
    # instead of 6, and with it the stray charge that makes the fall 3 % faster than its equation.
    assert fall.calibrated / fall.ideal == pytest.approx(calibration.dpi.fall, abs=0.03 * 5 / 6)
    # Here the ideal rise has I_g = I_tau and another start; both are in the dead time, 2 % of tau an e-fold
    assert rise.calibrated / rise.ideal == pytest.approx(calibration.dpi.rise, rel=0.02)
    ratio = hot.thermal_voltage / technology.thermal_voltage
    assert hot_rows[2].ideal / fall.ideal == pytest.approx(ratio)
    # C is the same; kappa moves by less than the 4 % by which the fall is off its equation
    assert hot_rows[2].calibrated / fall.calibrated == pytest.approx(ratio, rel=0.04)


@pytest.mark.ngspice
def test_mirror(technology, calibration, monkeypatch):
    monkeypatch.setattr(characterize, "MIRROR_POINTS", (1e-9, 2e-9))
    line_n, line_p, *_ = characterize_mirror(technology, calibration).rows
    mirror = calibration.mirror
    # the bench and the currents of the calibration: 9 digits of the file, another ngspice at reltol 1e-5
    assert line_n.calibrated / 1e-9 == pytest.approx(mirror.interpolate(mirror.gain_n, 1e-9), rel=2e-5)
    assert line_p.calibrated == line_p.measured
    assert line_p.calibrated / 1e-9 == pytest.approx(mirror.interpolate(mirror.gain_p, 1e-9), rel=2e-5)
    # drawn longer by the trim, the diode's gain is larger by it; output conductance is a tenth of that
    assert line_n.measured / line_n.calibrated == pytest.approx(mirror.trim, rel=4e-3)


@pytest.mark.ngspice
def test_steering(technology, calibration):
    """A product is the level of a 9T cell, one switch more; where a bit turns, M1 and M2 differ by conductances."""
    rows = {(row.set_point, row.quantity): row for row in characterize_steering(technology, calibration).rows}
    for name in ("100 pA", "1 nA", "6 nA"):
        level, off, turns = (rows[name, quantity] for quantity in ("level", "off", "turns at"))
        # what calibration's fit of the level leaves, 0.36 %, and the head-room of a switch, 18 mV x 2.9 %/V
        assert level.calibrated == pytest.approx(level.ideal, rel=0.0042)
        assert 0 <= off.calibrated < 1e-5 * level.ideal  # subthreshold leakage: exp(-0.4 V / 36 mV)
        # gain of line p into the comparator at half the supply: 0.9 V less than a diode's drop, 0.4 V, x 2.9 %/V
        assert turns.calibrated == pytest.approx(turns.ideal, rel=0.5 * 0.029)


def test_rectifier(technology, calibration, monkeypatch):
    monkeypatch.setattr(characterize, "RECTIFIER_PUSHES", (1e-9,))
    residue, double = characterize_rectifier(technology, calibration).rows
    mirror, r = calibration.mirror, 0.007
    for _ in range(20):  # the equation in cosim/cells/rectifier.py
        gains = float(mirror.interpolate(mirror.gain_n, 1e-9) - mirror.interpolate(mirror.gain_p, 1e-9))
        r = gains + (mirror.slope_n + mirror.slope_p) * mirror.swing * np.log(1 / r)
    # it is linear in the slopes, which change by about a tenth over the 0.2 V from 1 nA to 10 pA
    assert residue.calibrated / 1e-9 == pytest.approx(r, rel=0.15)
    # where pull is twice the push: twice gain_n, less gain_p
    expected = 2 * mirror.interpolate(mirror.gain_n, 2e-9) - mirror.interpolate(mirror.gain_p, 1e-9)
    assert double.calibrated / 1e-9 == pytest.approx(float(expected), rel=1e-3)


def test_failed_bench_says_so(technology, calibration, monkeypatch):
    failure = Failure(FailureKind.CONVERGENCE, "singular matrix", "")
    monkeypatch.setattr(Ngspice, "run", lambda self, bench, timeout: failure)
    with pytest.raises(SimulationError, match="characterisation bench: .* found no convergence: singular"):
        characterize_mirror(technology, calibration)


# The ladder in ngspice.


@pytest.fixture(scope="module")
def ladder_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ladder")


@pytest.fixture(scope="module")
def traces(technology, calibration, ladder_folder):
    return run_ladder(STUDY, [technology], calibration, Run(ladder_folder, 2))[0]


@pytest.mark.ngspice
def test_three_rungs_count(technology, calibration, traces, ladder_folder):
    summary = summarize_ladder(STUDY, technology, traces)
    assert (summary.steps_checked, summary.wrong_levels, summary.wrong_updates) == (24, 0, 0)
    assert (summary.retention_steps, summary.retention_wrong) == (400, 0)
    assert (summary.staircase_wrong, summary.first_wrong) == (0, None)
    assert 0 < summary.update_time_max_s < STUDY.timing.pulse
    # level: of the cell's fit; seen through a weight of -1, whose gain_p is within 0.3 % of 1; reltol 1e-4
    assert summary.level_error_max < calibration.schmitt.error + 3e-3 + 1e-4
    whole = summarize_study(STUDY, technology.name, [summary, summary])
    assert (whole["steps_checked"], whole["wrong_levels"]) == (48, 0)
    assert whole["power_w"] == summary.power_w
    table = figures_table(level_rows(STUDY, traces))
    assert len(table.rows) == (STUDY.rungs + 1) and all("not found" not in row for row in table.rows)
    assert len(list((ladder_folder / "inferences").iterdir())) == len(traces)


@pytest.mark.ngspice
def test_power_is_the_sum_of_its_blocks(technology, traces):
    """Samples every 1/40 of a step against the integral: an update changes the power by up to 30 %, off by a sample."""
    for trace in traces:
        blocks = sum(float(power.mean()) for power in trace.powers.values())
        assert blocks == pytest.approx(trace.power_w, rel=0.3 / SAMPLES_A_STEP, abs=0)
    held = traces[STUDY.sequences]
    bias = held.run.bias
    pins = bias.i_thresh_1 + bias.i_width_1 + bias.i_thresh + bias.i_width + bias.i_gain + CURRENTS.i_retain
    pins += STRENGTH * (bias.i_g + bias.i_tau)
    assert held.powers["bias"] == pytest.approx(technology.supply * pins, rel=1e-4, abs=0)  # current sources: reltol
    # on level 0 nothing flows but the candidates, I_in each: 3 % of output conductance
    assert held.powers["candidates"].mean() == pytest.approx(3 * technology.supply * CURRENTS.i_retain, rel=0.03, abs=0)
    assert held.powers["output"].mean() == pytest.approx(0, abs=1e-12)


@pytest.mark.ngspice
def test_one_supply_for_each_block_draws_what_one_for_all_does(technology, calibration, traces, monkeypatch):
    run = replace(traces[0].run, updates=traces[0].run.updates[:2])
    metered, plan = ladder_plan(STUDY, run, technology, calibration)
    monkeypatch.setattr(ladder_study, "meter_ladder", lambda bench: bench)
    plain, _ = ladder_plan(STUDY, run, technology, calibration)
    charges = []
    for bench, rails in ((metered, plan.outputs[1:]), (plain, ["dd"])):
        waves = run_bench(bench)
        assert not isinstance(waves, Failure), waves.detail
        charges.append(sum(np.trapezoid(waves.delivered(rail), waves.time) for rail in rails))
    assert charges[0] == pytest.approx(
        charges[1], rel=1e-3, abs=0
    )  # the same circuit, solved at other time steps: reltol 1e-4


@pytest.mark.ngspice
def test_finished_runs_are_kept_and_a_failed_one_leaves_its_deck(technology, calibration, traces, ladder_folder):
    again = run_ladder(STUDY, [technology], calibration, Run(ladder_folder, timeout=1e-3))[0]  # nothing left to run
    assert [trace.power_w for trace in again] == [trace.power_w for trace in traces]
    text = "ladder of 3 rungs: the run exceeded its time-out: after 0.001 s of processor time; its deck is .*failed.*sp"
    with pytest.raises(SimulationError, match=text):
        run_ladder(replace(STUDY, seed=7), [technology], calibration, Run(ladder_folder, timeout=1e-3))
    (deck,) = (ladder_folder / "failed").iterdir()
    assert deck.read_text().startswith("* ladder bench")


@pytest.mark.ngspice
@pytest.mark.slow
def test_eight_rungs_count_cold_and_hot(technology, calibration, tmp_path):
    study = LadderStudy(8, 2, 60, 1, CURRENTS, ladder_timing(10e-3))
    conditions = at_conditions(technology, (), (-20.0, 85.0), ())
    for one, found in zip(conditions, run_ladder(study, conditions, calibration, Run(tmp_path, 2)), strict=True):
        summary = summarize_ladder(study, one, found)
        assert summary.wrong_levels == summary.retention_wrong == 0
        # beside the nominal error: v_node and the trims stay, the drain voltages move by up to 0.1 V at 3 %/V
        assert summary.level_error_max < calibration.schmitt.error + 3e-3 + 1e-4 + 3e-3
