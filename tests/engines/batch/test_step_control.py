"""Steps of the batched engine: what its formulas are exact for, and how many steps an accuracy takes."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from cosim.cells.benches import CLOSE, ComparatorDrive, comparator_bench
from cosim.circuit.bench import PRECISE, Bench, Tolerances, Tran, Voltage
from cosim.circuit.elements import Capacitor, Circuit, Mos, Resistor, Source
from cosim.circuit.waveforms import Timing
from cosim.engines.batch.arrays import (
    AGE,
    ALPHA_0,
    ALPHA_1,
    CLOCK_ROWS,
    ERROR_SHARE,
    HIGHEST_ORDER,
    ORDER,
    PREDICTOR,
    STEP,
    STEP_ROWS,
    STEPS_SINCE_BREAKPOINT,
)
from cosim.engines.batch.assemble import _sample_clocks  # pyright: ignore[reportPrivateUsage]
from cosim.engines.batch.circuit import devices_of, nets_of
from cosim.engines.batch.lanes import LANES, aligned_zeros
from cosim.engines.batch.operating_point import _longest_steps  # pyright: ignore[reportPrivateUsage]
from cosim.engines.batch.sensitivity import (
    _bdf_coefficients,  # pyright: ignore[reportPrivateUsage] - what the adjoint multiplies charges by
    record,
)
from cosim.engines.batch.step_control import set_coefficients
from cosim.engines.engine import Failure
from cosim.units.ladder import ladder_currents
from cosim.units.sizing import PULSE_BEGIN, PULSE_END

TAU, OHM, TRTOL = 1e-3, 1e9, 1e-3


class Transients(NamedTuple):
    """The fields of `arrays.TransientState` that `set_coefficients` reads or writes."""

    clock: np.ndarray
    step: np.ndarray
    limits: np.ndarray


def transients(order):
    """Return lanes with uneven steps behind them, lane k in its step k + 1 behind a breakpoint."""
    rng = np.random.default_rng(7)
    state = Transients(aligned_zeros(CLOCK_ROWS), aligned_zeros(STEP_ROWS), np.zeros(ORDER + 1))
    state.clock[STEP] = rng.uniform(0.5, 2.0, LANES)
    state.clock[AGE : AGE + HIGHEST_ORDER] = np.cumsum(rng.uniform(0.5, 2.0, (HIGHEST_ORDER, LANES)), axis=0)
    state.clock[STEPS_SINCE_BREAKPOINT] = np.arange(LANES)
    state.limits[ORDER] = order
    set_coefficients(state)
    return state


@pytest.mark.parametrize("order", [2, HIGHEST_ORDER])
def test_formula_and_prediction_are_exact_for_polynomials_of_their_order(order):
    state = transients(order)
    for lane in range(LANES):
        step = state.step[:, lane]
        before = -state.clock[STEP, lane] - np.concatenate([[0.0], state.clock[AGE : AGE + HIGHEST_ORDER, lane]])
        formula, prediction = min(lane + 1, order), min(lane, order)
        for power in range(formula + 1):
            rate = step[ALPHA_0] * 0.0**power + step[ALPHA_1 : ALPHA_1 + HIGHEST_ORDER] @ before[:-1] ** power
            # the step ends at time 0, where t^1 has the derivative 1; numbers up to 10^4 are rounded to 1e-16 of them
            assert rate == pytest.approx(float(power == 1), abs=1e-10), (lane, power)
        for power in range(prediction + 1):
            found = step[PREDICTOR : PREDICTOR + HIGHEST_ORDER + 1] @ before**power
            assert found == pytest.approx(0.0**power, abs=1e-10), (lane, power)


@pytest.mark.parametrize("order", [2, HIGHEST_ORDER])
def test_the_error_share_is_the_error_of_a_solution_over_its_distance_to_the_prediction(order):
    """On t^(k + 1), whose higher derivatives are 0, the errors of formula and prediction of order k are exact."""
    state = transients(order)
    for lane in range(order, LANES):
        step = state.step[:, lane]
        before = -state.clock[STEP, lane] - np.concatenate([[0.0], state.clock[AGE : AGE + HIGHEST_ORDER, lane]])
        bent = before ** (order + 1)
        solution = -(step[ALPHA_1 : ALPHA_1 + HIGHEST_ORDER] @ bent[:-1]) / step[ALPHA_0]  # its true value is 0
        prediction = step[PREDICTOR : PREDICTOR + HIGHEST_ORDER + 1] @ bent
        assert abs(solution / (solution - prediction)) == pytest.approx(step[ERROR_SHARE], rel=1e-9, abs=0)
    for lane in range(1, order):  # formula of order lane + 1, its error counted as that of a formula one order lower
        inverse = state.step[ALPHA_0, lane] * (state.clock[STEP, lane] + state.clock[AGE + lane - 1, lane])
        assert state.step[ERROR_SHARE, lane] == pytest.approx(1 / inverse, rel=1e-12, abs=0)
    assert state.step[ERROR_SHARE, 0] == 0.0  # the first step has no error estimate


def low_pass(technology, reltol, trtol):
    """Return a bench of 1 pF behind 1 GOhm, tau 1 ms, and a ramp of 1 ms to 1 V.

    A net with hardly a charge follows the output through 1 MOhm, so that an error of the output counts whole, see
    `newton._weigh_errors`.
    """
    elements = (
        Source("v", "v", "in", "0", ((0.0, 0.0), (TAU, 1.0))),
        Resistor("r", "in", "out", OHM),
        Capacitor("c", "out", "0", TAU / OHM),
        Resistor("p", "out", "probe", 1e6),
        Capacitor("p", "probe", "0", 1e-18),
    )
    tolerances = replace(PRECISE, reltol=reltol, trtol=trtol)
    circuit = Circuit("low pass", (), elements)
    return Bench(circuit, technology, Tran(TAU, 20 * TAU), (Voltage("in"), Voltage("out")), tolerances)


def simulated(batch, technology, reltol, trtol=1e-9):
    """Return times, s, and errors of the low-pass, V; trtol: so small that a step's error is absolute."""
    waves = batch.run(low_pass(technology, reltol, trtol), 60.0)
    assert not isinstance(waves, Failure), waves.detail

    def response(time):
        return np.where(time > 0, (time - TAU * (1 - np.exp(-time / TAU))) / TAU, 0.0)

    return waves.time, waves.voltage("out") - (response(waves.time) - response(waves.time - TAU))


@pytest.mark.parametrize("reltol", [1e-6, 1e-8])
def test_a_signal_errs_by_no_more_than_all_errors_of_its_steps(batch, technology, reltol):
    """The low-pass only damps errors, so the error is the sum of those of all steps at most.

    A step may err by 10 V times reltol. Only the first step behind a corner has no error estimate: implicit Euler errs
    by h^2 / 2 times the second derivative, which is 1 V / tau^2 at most.
    """
    times, errors = simulated(batch, technology, reltol)
    corner = int(np.searchsorted(times, TAU * (1 + 1e-9)))
    first = np.array([times[0], times[corner] - times[corner - 1]])
    assert times[corner - 1] == pytest.approx(TAU, rel=1e-12, abs=0)
    assert np.abs(errors).max() < 10.0 * reltol * len(times) + (first**2).sum() / (2 * TAU**2)


def test_steps_grow_in_number_with_the_fifth_root_of_the_accuracy(batch, technology):
    """A step of order 4 errs by h^5: for a hundredth of the error 100^(1/5) = 2.51 times as many, of order 3 3.16."""
    few, many = (len(simulated(batch, technology, reltol)[0]) for reltol in (1e-7, 1e-9))
    assert many < 2.51 * few


@pytest.mark.ngspice  # device tables are measured in it
def test_a_sample_gate_turns_off_in_short_steps(batch, technology):
    """What it leaves on its capacitor, by the default tolerances and by a reltol of 1e-7: 0.003 mV apart (rms of 11).

    With steps that the error alone limits they are 0.03 mV apart, because one step covers most of the turn-off. The
    bound is twice the one and a fifth of the other.
    """
    currents, timing = ladder_currents(1e-9), Timing()
    candidates = 1e-9 * np.array([2.0, 3.98, 2.0, 4.02, 6.0, 4.0, 1.0, 0.5, 3.0, 2.5, 5.0])
    pulse, base = (CLOSE + PULSE_BEGIN, CLOSE + PULSE_END), currents.i_reset
    bench = comparator_bench(technology, 4e-9, ComparatorDrive(candidates, base, currents.i_retain - base, pulse))
    left = []
    for reltol in (1e-7, Tolerances().reltol):
        run = replace(bench, probes=(Voltage("hold"),), tolerances=Tolerances(reltol=reltol))
        waves = batch.run(run, 300.0)
        assert not isinstance(waves, Failure), waves.detail
        ends = (timing.moments(len(candidates), CLOSE + part) for part in (-0.01, 0.05))
        before, after = (np.interp(at, waves.time, waves.voltage("hold")) for at in ends)
        left.append(after - before)
    assert np.sqrt(np.mean((left[1] - left[0]) ** 2)) < 6e-6


def test_the_way_back_knows_the_formula_of_each_recorded_step(technology):
    """The current of the output's capacitor by these coefficients is that through its resistors, to 1e-6 of 1 nA."""
    recorded = record([low_pass(technology, 1e-6, TRTOL)], 60.0)
    net, alpha = recorded.tile.circuit.net, _bdf_coefficients(recorded)[:, :, 0]
    into, out, probe = (recorded.rows[:, net[name], 0] for name in ("in", "out", "probe"))
    steps = np.arange(2, len(recorded.times[0]) + 1)
    rate = sum(alpha[steps, k] * out[steps - k] for k in range(3))
    through = (into - out)[steps] / OHM + (probe - out)[steps] / 1e6
    assert np.abs(rate * TAU / OHM - through).max() < 1e-6 * 1.0 / OHM


def test_steps_are_short_only_where_a_clock_turns_a_sample_gate_off():
    """A gate of an nMOS and a pMOS, the pMOS behind two sources, onto a capacitor; a switch without one; a bias.

    The clocks take 1.8 V in 0.1 ms: at most 90 mV a step are 5 us.
    """
    elements = (
        Mos("n", "hold", "clk", "in", "0", "n", 1e-6, 1e-6),
        Mos("p", "hold", "clkb", "in", "vdd", "p", 1e-6, 1e-6),
        Mos("other", "latch", "clk2", "hold2", "0", "n", 1e-6, 1e-6),
        Capacitor("hold", "hold", "vdd", 4e-13),
        Source("dd", "v", "vdd", "0", 1.8),
        Source("clk", "v", "clk", "0", 0.0),
        Source("half", "v", "mid", "0", 0.0),
        Source("rest", "v", "clkb", "mid", 0.0),
        Source("clk2", "v", "clk2", "0", 0.0),
        Source("in", "i", "0", "in", 0.0),
    )
    devices = tuple(replace(one, kind=one.kind._replace(four_terminal=True)) for one in devices_of(elements))
    names = [one.letter + one.name for one in elements if isinstance(one, Source)]
    clocks = _sample_clocks(elements, devices, nets_of(elements, devices), {name: k for k, name in enumerate(names)})
    moves = [  # of vclk, vhalf, vrest, vclk2 and iin, and the longest step on the way there
        ((1.8, 0, 0, 1.8, 0), 4e-4),  # clk rises: the nMOS turns on
        ((0, 0, 0, 1.8, 0), 5e-6),  # it falls: off
        ((0, 0.9, 0.9, 1.8, 0), 5e-6),  # clkb rises, by both of its sources: the pMOS turns off
        ((0, 0, 0, 1.8, 0), 4e-4),
        ((0, 0, 0, 0, 1), 4e-4),  # the other switch has no capacitor, a current is no clock
        ((0.018, 0, 0, 0, 0), 4e-4),
        ((0, 0, 0, 0, 0), 4e-4),  # 18 mV
    ]
    sources = np.zeros((len(moves) + 1, len(names)))
    sources[:, 0] = 1.8
    sources[1:, 1:] = [values for values, _ in moves]
    time = 1e-4 * np.arange(len(sources))
    found = _longest_steps(clocks, time, sources, 4e-4)
    np.testing.assert_allclose(found[1:], [step for _, step in moves], rtol=1e-9, atol=0)
    np.testing.assert_allclose(_longest_steps(clocks[:0], time, sources, 4e-4), 4e-4, rtol=1e-9, atol=0)
