"""Clocked 9T cell in ngspice: tracks while clk is high, decides while it is low, starts at 0."""

from itertools import pairwise

import numpy as np
import pytest

from cosim.cells.benches import clocked_bench
from cosim.cells.clocked import CLOCKED, LATCH_NODE, RESET_INVERTER, clocked_schmitt, reset_inverter
from cosim.cells.mirror import weight
from cosim.cells.schmitt import STATE_LEVEL
from cosim.circuit.elements import Circuit, Instance, Source
from cosim.circuit.waveforms import Timing
from cosim.engines.engine import Failure
from cosim.engines.ngspice.process import run_bench as run_once
from cosim.verbs.calibrate.fingerprint import POINTS

pytestmark = pytest.mark.ngspice

UNITS = 8
BIAS = (0.6e-9, 0.3e-9, 0.9e-9)
ABOVE, BAND, BELOW = 1.0e-9, 0.45e-9, 0.1e-9
EDGE = 1e-4  # s; the frame's own clock edges are 0.01 of 10 ms


def steps(*points):
    """(time, level) -> a staircase with edges of EDGE."""
    corners = [points[0]]
    for (_, before), (time, level) in pairwise(points):
        corners += [(time, before), (time + EDGE, level)]
    return tuple(corners)


@pytest.fixture
def states(run_bench, supply, signal_blocks, technology, calibration, cell_bias):
    """(candidate, clk, resetb as waveforms in units of 1, end, times) -> state at the times."""

    def run(candidate, clk, resetb, end, times, *, on=False):
        volts = technology.supply
        elements = (
            supply,
            Source("in", "i", "cand", "0", candidate),
            Source("clk", "v", "clk", "0", tuple((t, volts * level) for t, level in clk)),
            Source("clkb", "v", "clkb", "0", tuple((t, volts * (1 - level)) for t, level in clk)),
            Source("resetb", "v", "resetb", "0", tuple((t, volts * level) for t, level in resetb)),
            *cell_bias(BIAS),
            Instance("reset", ("resetb", "reset", "vdd"), RESET_INVERTER),
            Instance(
                "cell",
                ("cand", "thresh", "width", "gain", "out", "clk", "clkb", "reset" if on else "resetb", "vdd"),
                f"{CLOCKED}_on" if on else CLOCKED,
            ),
            *weight("neg", "out", "node", -UNITS, technology),
            Source("load", "v", "vdd", "node", calibration.v_node),
        )
        step = end / 1000
        blocks = (reset_inverter(technology), clocked_schmitt(technology, UNITS, on=on))
        circuit = Circuit("clocked", (*signal_blocks, *blocks), elements)
        waves = run_bench(circuit, f".tran {step:e} {end:e} 0 {step:e}", f"v(xcell.{LATCH_NODE})")
        return (np.interp(times, waves["time"], waves[f"xcell.{LATCH_NODE}"]) > volts / 2).tolist()

    return run


# reset until 20 ms with clk low, then track; decide at 40..60, 80..100, 120..140 and 160..180 ms
CLK = steps(
    (0.0, 0),
    (21e-3, 1),
    (40e-3, 0),
    (60e-3, 1),
    (80e-3, 0),
    (100e-3, 1),
    (120e-3, 0),
    (140e-3, 1),
    (160e-3, 0),
    (180e-3, 1),
)
RESETB = steps((0.0, 0), (19e-3, 1))


def test_reset_gives_state_zero_even_above_the_threshold(states):
    assert states(
        ((0.0, ABOVE), (20e-3, ABOVE)), ((0.0, 0), (20e-3, 0)), ((0.0, 0), (20e-3, 0)), 20e-3, [5e-3, 19e-3]
    ) == [
        False,
        False,
    ]


def test_a_cell_that_begins_on_does_so_even_below_the_threshold_and_then_follows(states):
    candidate = steps((0.0, BELOW), (25e-3, BAND), (65e-3, BELOW), (105e-3, BAND), (145e-3, ABOVE))
    times = [5e-3, 19e-3, 39e-3, 59e-3, 99e-3, 139e-3, 179e-3]
    found = states(candidate, CLK, RESETB, 180e-3, times, on=True)
    assert found == [True, True, True, True, False, False, True]


def test_state_changes_only_while_clk_is_low(states):
    candidate = steps(
        (0.0, BAND), (25e-3, ABOVE),  # tracked: no change until clk falls at 40 ms
        (42e-3, BELOW),  # frozen: what happens now is not seen
        (65e-3, ABOVE), (70e-3, BELOW),  # crosses both thresholds while tracking; 0 counts at 80 ms
        (105e-3, ABOVE), (115e-3, BAND),  # a glitch that is over before the decision: kept at 0
        (145e-3, ABOVE),  # set again at 160 ms
    )  # fmt: skip
    at = [24e-3, 39e-3, 59e-3, 68e-3, 79e-3, 99e-3, 112e-3, 119e-3, 139e-3, 155e-3, 179e-3]
    expected = [False, False, True, True, True, False, False, False, False, False, True]
    assert states(candidate, CLK, RESETB, 185e-3, at) == expected


def test_state_one_survives_a_glitch_below(states):
    candidate = steps((0.0, ABOVE), (65e-3, BELOW), (75e-3, BAND))
    assert states(candidate, CLK, RESETB, 105e-3, [59e-3, 73e-3, 99e-3]) == [True, True, True]


def test_band_keeps_both_states_over_decisions(states):
    candidate = steps((0.0, BAND), (62e-3, ABOVE), (102e-3, BAND))
    at = [59e-3, 99e-3, 139e-3, 179e-3]
    assert states(candidate, CLK, RESETB, 185e-3, at) == [False, True, True, True]


@pytest.mark.parametrize("seed", range(3))
def test_frame_thresholds_after_calibration_within_one_percent(technology, calibration, seed):
    """Candidates 1 % beyond the asked thresholds flip the cell within a frame, those 1 % short of them do not."""
    rng = np.random.default_rng(seed)
    i_set = rng.uniform(0.4e-9, 2e-9)
    i_reset = i_set * rng.uniform(0.3, 0.8)
    bias = (*calibration.schmitt.solve_clocked(i_set, i_reset), 1e-9)
    # the bar of 1 % is joined by half a step of the search that calibration fits its shifts from
    step = (POINTS.shift_range[0] + POINTS.shift_range[1] * i_set) / POINTS.shift_steps / 2
    high, low = 0.01 * i_set + step, 0.01 * i_reset + step
    tried = [i_set - high, i_set + high, i_reset + low, i_reset - low, i_set - high]
    timing = Timing()
    waves = run_once(clocked_bench(technology, UNITS, bias, np.array(tried), timing))
    assert not isinstance(waves, Failure), waves.detail
    latch = np.interp(timing.sample_times(len(tried)), waves.time, waves.voltage(f"xcell.{LATCH_NODE}"))
    assert (latch > STATE_LEVEL * technology.supply).tolist() == [False, True, True, False, False]
