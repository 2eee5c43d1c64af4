"""Toggle in ngspice: the state changes at every update, once, and only then."""

import numpy as np
import pytest

from cosim.cells.bias import BIAS_DIODE
from cosim.cells.clocked import clocked_schmitt
from cosim.cells.mirror import weight
from cosim.cells.quantiser import comparator, sampler
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.cells.schmitt import STATE_LEVEL
from cosim.cells.toggle import PORTS, TOGGLE, toggle
from cosim.circuit.elements import GROUND, Circuit, Instance, Mos, Source
from cosim.circuit.waveforms import Timing, clock_waveforms, reset_waveform, staircase
from cosim.engines.simulation.testbench import pulse_waveforms
from cosim.units.ladder import ladder_currents
from cosim.units.sizing import PULSE_BEGIN

UNITS = 8
TIMING = Timing()
CLOSE = TIMING.closes(1)[0]
CURRENTS = ladder_currents(1e-9)
UPPER, LEVEL = 1e-9, 1.5e-9
UPDATE, KEEP = 1.3e-9, 0.6e-9


def blocks(technology):
    """What a toggle instantiates besides the candidate diode, and itself."""
    return (
        sampler(technology),
        comparator(technology),
        clocked_schmitt(technology, UNITS, tap=True),
        toggle(technology),
    )


@pytest.fixture
def run(run_bench, supply, signal_blocks, technology, calibration):
    """One candidate a frame, or a waveform and a number of frames -> function of fractions: (states, outputs)."""

    def build(candidates, frames=None):
        frames = frames or len(candidates)
        volts, fit = technology.supply, calibration.schmitt
        waveform = candidates if isinstance(candidates, tuple) else staircase(np.array(candidates), 0.0, TIMING)
        clk, clkb = clock_waveforms(volts, CLOSE, frames, TIMING)
        pulse, pulseb = pulse_waveforms(volts, CLOSE, frames, TIMING)
        logic = {"clk": clk, "clkb": clkb, "pulse": pulse, "pulseb": pulseb, "resetb": reset_waveform(volts, TIMING)}
        i_thresh, i_width = fit.solve_clocked(CURRENTS.i_rise, CURRENTS.i_fall)
        pins = {
            "upper": calibration.upper.solve(UPPER),
            "base": CURRENTS.i_reset,
            "delta": CURRENTS.i_retain - CURRENTS.i_reset,
            "thresh": i_thresh,
            "width": i_width,
            "gain": fit.solve_gain(LEVEL),
        }
        elements = (
            supply,
            Source("in", "i", "cand", GROUND, waveform),
            Instance("cand", ("cand", "vdd"), CANDIDATE),
            *(Source(name, "v", name, GROUND, value) for name, value in logic.items()),
            *(Source(pin, "i", "vdd", pin, current) for pin, current in pins.items()),
            *(Instance(pin, (pin,), BIAS_DIODE) for pin in pins),
            Instance("toggle", PORTS, TOGGLE),
            *weight("neg", "out", "node", -UNITS, technology),
            Source("out", "v", "node", "load", 0.0),
            Source("load", "v", "vdd", "load", calibration.v_node),
        )
        circuit = Circuit("toggle", (*signal_blocks, *blocks(technology)), elements)
        step, end = TIMING.t_step / 200, TIMING.start + frames * TIMING.t_step
        waves = run_bench(circuit, f".tran {step:e} {end:e} 0 {step:e}", "v(xtoggle.q) i(vout)")

        def at(fraction):
            times = TIMING.start + (np.arange(frames) + fraction) * TIMING.t_step
            states = np.interp(times, waves["time"], waves["xtoggle.q"]) > STATE_LEVEL * volts
            return states.astype(int).tolist(), np.abs(np.interp(times, waves["time"], waves["vout#branch"]))

        return at

    return build


@pytest.mark.ngspice
def test_changes_at_every_update_and_only_then(run, calibration):
    updates = [1, 1, 0, 1, 0, 0, 1, 1]
    at = run([UPDATE if update else KEEP for update in updates])
    expected = (np.cumsum(updates) % 2).tolist()
    before = [0, *expected[:-1]]
    states, outputs = at(0.95)
    assert states == expected
    for fraction in (0.1, CLOSE - 0.01, CLOSE + PULSE_BEGIN - 0.01):  # not before the pulse: tracked, then decided
        assert at(fraction)[0] == before
    # the level's fit; seen through a weight of -1, whose gain is within 0.3 % of 1; and what a state of 1 that has just
    # fallen leaves: without a pedestal a gate line fades as C n U_T / t, 0.1 pF 34 mV / 1.5 ms = 2 pA, twice that
    error = calibration.schmitt.error + 3e-3
    np.testing.assert_allclose(outputs, LEVEL * np.array(expected), rtol=error, atol=4e-12)


@pytest.mark.ngspice
def test_starts_at_zero_and_stays_there_without_updates(run):
    assert run([KEEP, 0.0, KEEP, 0.97 * UPPER])(0.95)[0] == [0, 0, 0, 0]


@pytest.mark.ngspice
def test_one_update_is_one_change_however_large(run):
    """1 % and a factor of 6 above the threshold, 1 % under it; 1 %: the comparator's fit, 0.2 %, and its memory."""
    candidates = [1.01 * UPPER, 0.99 * UPPER, 6 * UPPER, 0.0, 6 * UPPER]
    assert run(candidates)(0.95)[0] == [1, 1, 0, 0, 1]


@pytest.mark.ngspice
def test_a_glitch_outside_the_sampling_changes_nothing(run):
    """The candidate crosses the threshold early in the track phase, and again after the decision has begun."""
    points = [(0.0, KEEP)]
    for k in range(3):
        for fraction, level in ((0.1, 0), (0.11, 1), (0.3, 1), (0.31, 0), (CLOSE + 0.02, 0), (CLOSE + 0.03, 1),
                                (CLOSE + 0.2, 1), (CLOSE + 0.21, 0)):  # fmt: skip
            points.append((TIMING.start + (k + fraction) * TIMING.t_step, KEEP + level * UPDATE))
    assert run(tuple(points), 3)(0.95)[0] == [0, 0, 0]


def test_slave_takes_the_pulse_for_its_clock(technology):
    """It tracks outside the pulse and changes within it, so its drive, which depends on it, is frozen by then."""
    slave = next(element for element in toggle(technology).elements if element.name == "slave")
    assert slave.nets[5:7] == ("pulseb", "pulse")
    assert slave.nets[-1] == "q"


def test_transistors(technology):
    """Sampler 3, comparator 4, its own 10 with the drive's diode, and a clocked cell of 14."""
    circuit = Circuit("toggle", (candidate_diode(technology), *blocks(technology)), (Instance("t", PORTS, TOGGLE),))
    assert sum(1 for _ in circuit.flatten()) == 3 + 4 + 10 + 14


def test_every_net_is_used_twice_or_is_a_port(technology):
    """A net with one terminal is a typing error: nothing drives it or nothing reads it."""
    cell, terminals = toggle(technology), []
    for element in cell.elements:
        terminals += (element.drain, element.gate, element.source) if isinstance(element, Mos) else element.nets
    for net in set(terminals) - {"0"}:
        assert net in cell.ports or terminals.count(net) > 1, net
    assert set(cell.ports) <= set(terminals)
