"""Ladder of Schmitt triggers and DPIs in ngspice: it counts pulses, one level each, within its timing condition."""

from itertools import pairwise

import numpy as np
import pytest

from cosim.cells.benches import LadderDrive, ladder_bench, rung_nets
from cosim.cells.bias import STRENGTH, strong_diode
from cosim.cells.dpi import dpi_capacitance, dpi_fall_time, dpi_rise_time
from cosim.cells.ladder import LADDER, RUNG_OFF, RUNG_ON, ladder, ladder_blocks, rung
from cosim.cells.rectifier import candidate_diode
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.elements import Capacitor, Circuit, Instance, Mos, Source
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_bench as run_once
from cosim.units.ladder import ladder_currents, ladder_timing, solve_ladder
from cosim.units.sizing import PULSE_BEGIN

UNITS = 8
CURRENTS = ladder_currents(1e-9)
TIMING = ladder_timing(10e-3)
RELEASE = 5e-3  # s; reset until then, and as much again before the first frame
EDGE = 1e-4  # s; clock edges are 0.01 of a frame


def thermometer(rungs):
    """Levels of rungs (rungs, time) as (time,); every rung that is on stands on one that is on."""
    assert all((lower >= upper).all() for lower, upper in pairwise(rungs))
    return rungs.sum(axis=0).tolist()


@pytest.fixture
def count(technology, calibration):
    """(rungs, start, moves +1, -1 or 0 a frame) -> level and output (ampere) before the first and after each frame."""

    def run(rungs, start, moves, pulse=TIMING.pulse, tau=TIMING.tau, i_set=CURRENTS.i_set):
        bias = solve_ladder(CURRENTS, calibration)
        inputs = {1: i_set, -1: CURRENTS.i_reset}
        points = [(0.0, CURRENTS.i_retain), (EDGE, CURRENTS.i_retain)]
        for k, move in enumerate(moves):
            begin = 2 * RELEASE + (k + PULSE_BEGIN) * TIMING.step
            if move:
                points += [(begin, CURRENTS.i_retain), (begin + EDGE, inputs[move])]
                points += [(begin + pulse, inputs[move]), (begin + pulse + EDGE, CURRENTS.i_retain)]
        times = 2 * RELEASE + np.arange(len(moves) + 1) * TIMING.step
        capacitance = dpi_capacitance(technology, tau, bias.i_tau)
        drive = LadderDrive(rungs, start, bias, capacitance, tuple(points), RELEASE, times[-1])
        waves = run_once(ladder_bench(technology, UNITS, drive, calibration.v_node))
        assert not isinstance(waves, Failure), waves.detail
        nodes = [np.interp(times, waves.time, waves.voltage(net)) for net in rung_nets(rungs)]
        output = np.abs(np.interp(times, waves.time, waves.through("out")))
        return thermometer(np.array(nodes) > STATE_LEVEL * technology.supply), output

    return run


def follow(start, moves, rungs):
    """What a counter does: start + the moves, kept within 0 ... rungs."""
    levels = [start]
    for move in moves:
        levels.append(int(np.clip(levels[-1] + move, 0, rungs)))
    return levels


@pytest.mark.ngspice
@pytest.mark.parametrize("start", range(4))
def test_starts_on_its_level_and_retain_keeps_it(count, calibration, start):
    levels, output = count(3, start, [0] * 6)
    assert levels == [start] * 7
    # level: of the cell's fit; seen through a weight of -1, whose gain_p is within 0.3 % of 1; reltol 1e-4
    error = calibration.schmitt.error + 3e-3 + 1e-4
    np.testing.assert_allclose(output, start * CURRENTS.alpha, rtol=error, atol=1e-12)


@pytest.mark.ngspice
def test_up_to_the_top_and_down_to_the_bottom(count):
    """Pulses beyond either end change nothing, and the next one the other way counts at once."""
    moves = [1] * 6 + [-1] * 6 + [1]
    levels, _ = count(4, 0, moves)
    assert levels == follow(0, moves, 4) == [0, 1, 2, 3, 4, 4, 4, 3, 2, 1, 0, 0, 0, 1]


@pytest.mark.ngspice
@pytest.mark.parametrize(("rungs", "start", "seed"), [(1, 0, 2), (2, 1, 1), (5, 2, 0)])
def test_random_moves(count, calibration, rungs, start, seed):
    moves = np.random.default_rng(seed).integers(-1, 2, 30)
    levels, output = count(rungs, start, moves)
    assert levels == follow(start, moves, rungs)
    assert set(levels) == set(range(rungs + 1))  # every level is reached
    error = calibration.schmitt.error + 3e-3 + 1e-4  # as above
    np.testing.assert_allclose(output, np.array(levels) * CURRENTS.alpha, rtol=error, atol=1e-12)


@pytest.mark.ngspice
@pytest.mark.parametrize(("start", "move"), [(0, 1), (3, -1)])
def test_a_pulse_doubles_where_the_timing_condition_says(count, start, move):
    """The second rung follows when the DPI arrives, within 1.5 times: the set or reset itself takes its time, too.

    0.85: the DPI is up to 5 % faster than its equation (calibration), and stray charge at 0.7 pF makes it 10 % faster.
    1.5: flips of two rungs one after the other, at an overdrive that grows from 0.1 nA and from 0 on gates of 0.15 pF:
    about 0.15 pF 33 mV / 0.1 nA = 0.05 ms to leave the threshold, and 0.3 V through 0.15 pF at 0.1 nA, 0.5 ms, each.
    """
    c = CURRENTS
    rise = dpi_rise_time(c.i_tau, c.alpha - (c.i_set - c.i_rise), c.alpha, c.i_tau)
    arrives = TIMING.tau * (rise if move > 0 else dpi_fall_time(c.alpha, c.i_fall - c.i_reset))
    assert count(4, start, [move], pulse=0.85 * arrives)[0] == [start, start + move]
    assert count(4, start, [move], pulse=1.5 * arrives)[0] == [start, start + 2 * move]


@pytest.mark.ngspice
@pytest.mark.parametrize(("start", "move"), [(0, 1), (3, -1)])
def test_a_slow_dpi_skips_steps(count, start, move):
    """At tau = 8 ms the window arrives after 13 to 15 ms: the pulse after 10 ms finds the next rung shut."""
    assert count(3, start, [move] * 3, tau=8e-3)[0] == [start, start + move, start + move, start + 2 * move]


@pytest.mark.ngspice
def test_a_set_current_beyond_the_next_window_needs_the_quantiser(count):
    """From level 1 on, the neighbour's threshold is rise + alpha = 0.85 nA: 1 nA sets two rungs in one pulse."""
    assert count(4, 0, [1, 1], i_set=1e-9)[0] == [0, 1, 3]
    assert count(4, 0, [1, 1], i_set=CURRENTS.i_set)[0] == [0, 1, 2]


@pytest.mark.ngspice
@pytest.mark.parametrize("current", [10e-12, 40e-12])
def test_strong_line_makes_the_set_point(run_bench, supply, technology, calibration, current):
    """STRENGTH times the current into STRENGTH devices: one device on the line sinks the set-point.

    Its drain stands under 1 V above the diode's, at 2.5 %/V; below 10 pA leakage would begin to count.
    """
    n = technology.sizing.cell_n
    elements = (
        supply,
        Source("line", "i", "vdd", "line", STRENGTH * current),
        Instance("diode", ("line",), strong_diode(technology).name),
        Mos("sink", "node", "line", "0", "0", "n", n.w, n.l),
        Source("out", "v", "vdd", "node", calibration.v_node),
    )
    waves = run_bench(Circuit("strong line", (strong_diode(technology),), elements), ".op", "i(vout)")
    assert abs(float(waves["vout#branch"][-1])) == pytest.approx(current, rel=0.025, abs=0)


@pytest.mark.parametrize("rungs", [1, 2, 5])
def test_transistors(technology, rungs):
    """14 a rung, 5 for a DPI and one more for its second output, and the output diode."""
    top = ladder(technology, UNITS, rungs, 0)
    blocks = (candidate_diode(technology), *ladder_blocks(technology, UNITS, 1e-12), top)
    circuit = Circuit("ladder", blocks, (Instance("ladder", top.ports, top.name),))
    dpis = {1: 0}.get(rungs, 5 * rungs + (rungs - 2))
    assert sum(1 for _ in circuit.flatten()) == 14 * rungs + dpis + 1


def test_each_dpi_shifts_both_neighbours_and_none_itself(technology):
    block = ladder(technology, UNITS, 4, 2)
    dpis = {element.nets[0]: element.nets[3:-1] for element in block.elements if element.name.startswith("dpi")}
    assert dpis == {"s1": ("u2",), "s2": ("u1", "u3"), "s3": ("u2", "u4"), "s4": ("u3",)}
    rungs = [element for element in block.elements if element.name.startswith("rung")]
    assert [element.subcircuit for element in rungs] == [RUNG_ON, RUNG_ON, RUNG_OFF, RUNG_OFF]
    assert [element.nets[2:4] for element in rungs] == [("thresh_1", "width_1")] + 3 * [("thresh", "width")]
    assert block.name == f"{LADDER}_4_2"


@pytest.mark.parametrize("on", [False, True])
def test_every_net_of_a_rung_is_used_twice_or_is_a_port(technology, on):
    """A net with one terminal is a typing error: nothing drives it or nothing reads it."""
    cell, terminals = rung(technology, UNITS, on=on), []
    for element in cell.elements:
        match element:
            case Mos():
                terminals += [element.drain, element.gate, element.source]
            case Capacitor():
                terminals += [element.a, element.b]
            case Instance():
                terminals += element.nets
    for net in set(terminals) - {"0"}:
        assert net in cell.ports or terminals.count(net) > 1, net
    assert set(cell.ports) <= set(terminals)
