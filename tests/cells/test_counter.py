"""Counter and reflector in ngspice: one whole update for each decision or none, and none beyond either end."""

import numpy as np
import pytest

from cosim.cells.bias import BIAS_DIODE
from cosim.cells.clocked import RESET_INVERTER, reset_inverter
from cosim.cells.counter import counter, counter_ports, gain_lines
from cosim.cells.mirror import weight
from cosim.cells.quantiser import sampler
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.cells.reflector import reflector
from cosim.cells.schmitt import STATE_LEVEL
from cosim.cells.window import decision, window
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Instance, Mos, Source
from cosim.circuit.waveforms import Timing, clock_waveforms, reset_waveform, staircase
from cosim.engines.simulation.testbench import pulse_waveforms
from cosim.units.comparator import decision_fits
from cosim.units.counter import KEEP

UNITS = 8
TIMING = Timing()
CLOSE = TIMING.closes(1)[0]
UPPER, LOWER, LEVEL = 1e-9, 0.6e-9, 0.25e-9
MOVES = {1: 1.4e-9, 0: 0.8e-9, -1: 0.2e-9}


def blocks(technology, cell):
    """What a counter or reflector instantiates besides the candidate diode, and itself."""
    cells = (reset_inverter, sampler, window, decision)
    return (*(inner(technology) for inner in cells), cell)


@pytest.fixture
def count(run_bench, supply, signal_blocks, technology, calibration):
    """(bits, start, candidates) -> states (bits, frames) and output, ampere, at 0.95 of each frame."""

    def run(bits, start, candidates, build=counter):
        cell = build(technology, UNITS, bits, start)
        volts, frames = technology.supply, len(candidates)
        clk, clkb = clock_waveforms(volts, CLOSE, frames, TIMING)
        pulse, pulseb = pulse_waveforms(volts, CLOSE, frames, TIMING)
        logic = {"clk": clk, "clkb": clkb, "pulse": pulse, "pulseb": pulseb, "resetb": reset_waveform(volts, TIMING)}
        (fit, _), gain = decision_fits(calibration), calibration.schmitt.solve_gain
        pins = {"upper": fit.solve(UPPER), "lower": fit.solve(LOWER), "keep": KEEP * 1e-9}
        pins |= {f"gain{line}": gain(LEVEL * 16**line) for line in range(gain_lines(bits))}
        elements = (
            supply,
            Source("in", "i", "cand", GROUND, staircase(np.array(candidates), 0.0, TIMING)),
            Instance("cand", ("cand", "vdd"), CANDIDATE),
            *(Source(name, "v", name, GROUND, value) for name, value in logic.items()),
            Instance("reset", ("resetb", "reset", "vdd"), RESET_INVERTER),
            *(Source(pin, "i", "vdd", pin, current) for pin, current in pins.items()),
            *(Instance(pin, (pin,), BIAS_DIODE) for pin in pins),
            Instance("counter", counter_ports(bits), cell.name),
            *weight("neg", "out", "node", -UNITS, technology),
            Source("out", "v", "node", "load", 0.0),
            Source("load", "v", "vdd", "load", calibration.v_node),
        )
        circuit = Circuit("counter", (*signal_blocks, *blocks(technology, cell)), elements)
        step, end = TIMING.t_step / 100, TIMING.start + frames * TIMING.t_step
        nets = [f"xcounter.q{k}" for k in range(bits)]
        saved = " ".join(f"v({net})" for net in nets)
        waves = run_bench(circuit, f".tran {step:e} {end:e} 0 {step:e}", f"{saved} i(vout)")
        times = TIMING.start + (np.arange(frames) + 0.95) * TIMING.t_step
        on = [np.interp(times, waves["time"], waves[net]) > STATE_LEVEL * volts for net in nets]
        states = (np.array(on) * 2 ** np.arange(bits)[:, None]).sum(axis=0)
        return states.tolist(), np.abs(np.interp(times, waves["time"], waves["vout#branch"]))

    return run


def follow(start, moves, most):
    """What a counter does: start + the moves, kept within 0 ... most."""
    levels = [start]
    for move in moves:
        levels.append(int(np.clip(levels[-1] + move, 0, most)))
    return levels[1:]


@pytest.mark.ngspice
def test_up_to_the_top_and_down_to_the_bottom(count, calibration):
    """Steps beyond either end change nothing, and the next one the other way counts at once."""
    moves = [0, 1, 1, -1, -1, -1, -1, 1]
    states, output = count(2, 2, [MOVES[move] for move in moves])
    assert states == follow(2, moves, 3) == [2, 3, 3, 2, 1, 0, 0, 1]
    # level: of the cell's fit; seen through a weight of -1, whose gain_p is within 0.3 % of 1; and what an output that
    # has just fallen leaves, as of a toggle: 2 pA for each of up to three sources
    error = calibration.schmitt.error + 3e-3
    np.testing.assert_allclose(output, LEVEL * np.array(states), rtol=error, atol=6e-12)


def reflect(state, moves, most):
    """What a reflector does: S - m of its state m at a move S, or -1 - m where that is beyond the highest state."""
    middle, states = (most + 1) // 2, []
    for move in moves:
        m = state - middle
        state = state if move == 0 else middle + (move - m if move - m < middle else -1 - m)
        states.append(state)
    return states


@pytest.mark.ngspice
@pytest.mark.parametrize(("bits", "start"), [(2, 1), (3, 2)])
def test_a_reflector_turns_its_state_around(count, bits, start):
    """From -1 and -2 on: both signs, frames without an update; of two bits all states, two with no image above."""
    moves = [1, -1, 0, -1, 1, -1, 1, 0]
    states, _ = count(bits, start, [MOVES[move] for move in moves], reflector)
    assert states == reflect(start, moves, 2**bits - 1)
    assert bits > 2 or set(states) == {0, 1, 2, 3}


@pytest.mark.slow
@pytest.mark.ngspice
@pytest.mark.parametrize("near", [3e-12, 0.3e-12, 0.0, -0.3e-12, -3e-12])
def test_a_late_decision_turns_all_bits_of_a_reflector_or_none(count, near):
    """Eight bits, candidates within 3 pA of a threshold: each state is that before, or its image for the same sign."""
    states, _ = count(8, 127, [UPPER + near, LOWER - near] * 4, reflector)
    for before, after, move in zip([127, *states], states, [1, -1] * 4, strict=False):
        assert after in (before, *reflect(before, [move], 255))
    if abs(near) > 1e-12:  # 0.3 % of a threshold, clear of the decisions' 0.2 %
        assert (len(set(states)) > 1) == (near > 0)


@pytest.mark.slow
@pytest.mark.ngspice
def test_a_reflectors_carry_runs_through_all_bits(count):
    """Eight bits around m = -127, 0 and 1, where the carry of an update upwards has seven bits to go, or none."""
    for start in (1, 128, 129):
        moves = [1, -1, 1, 1, 0, -1]
        states, _ = count(8, start, [MOVES[move] for move in moves], reflector)
        assert states == reflect(start, moves, 255)


@pytest.mark.slow
@pytest.mark.ngspice
def test_all_bits_turn_over_at_once(count):
    """Five bits have two gain lines: 15 to 16 and back, where every bit changes."""
    moves = [1, -1, 1, 1, -1, -1]
    assert count(5, 15, [MOVES[move] for move in moves])[0] == follow(15, moves, 31)


@pytest.mark.slow
@pytest.mark.ngspice
@pytest.mark.parametrize("near", [3e-12, -3e-12])
def test_candidates_near_a_threshold_make_whole_steps(count, near):
    """3 pA: of the decisions' fit, 0.2 % of 1 nA, and what a comparator of little gain adds, 0.1 % (ladder's page)."""
    candidates = [UPPER + near, LOWER - near] * 6
    expected = [8, 7] * 6 if near > 0 else [7] * 12
    assert count(4, 7, candidates)[0] == expected


def transistors(technology, cell):
    """Count the devices of a cell with all that it instantiates."""
    parts = (candidate_diode(technology), *blocks(technology, cell))
    return sum(1 for _ in Circuit("c", parts, (Instance("c", cell.ports, cell.name),)).flatten())


def test_transistors(technology):
    """Sampler 3, decisions 2 x 10, phases 13, kp 2, first carries and ends 9, output; and 33 a bit, 4 of carries."""
    counts = {bits: transistors(technology, counter(technology, UNITS, bits, 0)) for bits in (1, 2, 4, 8)}
    assert counts == {bits: 3 + 20 + 13 + 2 + 9 + 1 + 33 * bits - 4 for bits in counts}


def test_transistors_of_a_reflector(technology):
    """Sampler, decisions, phases, kp and output as of a counter, `still` 4, `moves` 2, carry 1 3, the first turn 4.

    `not_least` has one for each bit, a bit 22, its turn 5 from bit 1 on, its carry 2 from bit 1 to the last but one.
    """
    counts = {bits: transistors(technology, reflector(technology, UNITS, bits, 0)) for bits in (2, 4, 8)}
    assert counts == {bits: 39 + 13 + (1 + 22) * bits + 5 * (bits - 1) + 2 * (bits - 2) for bits in counts}


def test_every_net_is_used_twice_or_is_a_port(technology):
    """A net with one terminal is a typing error: nothing drives it or nothing reads it."""
    for cell in (counter(technology, UNITS, 5, 9), reflector(technology, UNITS, 5, 9), decision(technology)):
        terminals = []
        for element in cell.elements:
            match element:
                case Mos():
                    terminals += [element.drain, element.gate, element.source]
                case Capacitor():
                    terminals += [element.a, element.b]
                case Instance():
                    terminals += element.nets
        unread = {net for net in set(terminals) - {"0"} if net not in cell.ports and terminals.count(net) == 1}
        assert unread == ({"stays"} if "lower" in cell.ports else set())
        assert set(cell.ports) <= set(terminals)
