"""The clock generator: every phase from one clock, in ngspice."""

import numpy as np
import pytest

from cosim.cells.benches import supply_of
from cosim.cells.clock import CLOCK, DRIVER, RESET_STEPS, SAMPLE_NETS, Phase, clock, ticks_of
from cosim.cells.logic import flip_flop, inverter, nand
from cosim.circuit.bench import Bench, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Instance, Source
from cosim.circuit.waveforms import Timing, ck_waveform, run_waveform
from cosim.engines.simulation.inference import run_bench

TICKS, HIGH, FRAMES = 12, 0.4, 1.25
TIMING = Timing(t_step=1e-3)
PHASES = (
    Phase("clkb0", "clk0", 4, 8, 4),
    Phase("clkb1", "clk1", 8, 12, 4),
    Phase("dec1", "decb1", 9, 12, 3, early=True),
    Phase("pulse1", "pulseb1", 10, 11, 1),
)
SAMPLE = (1, 4)


def expected(at):
    """Net -> its level `at` ticks after the beginning of frame 0, 0 or 1, by what the phases are to be."""
    tick, part = divmod(at, 1.0)
    steps = RESET_STEPS + tick  # of the reset that are over
    ring = max(tick, -1)  # where it stands through the reset, too
    early = ring + (part > HIGH and tick >= -1)
    levels = {}
    for one in PHASES:
        there = one.begin <= (early if one.early else ring) % TICKS < one.end
        levels[one.high] = there or steps < one.step
    levels |= {one.low: not levels[one.high] for one in PHASES}
    sample = part < HIGH and at >= 0 and SAMPLE[0] <= tick % TICKS < SAMPLE[1]
    return levels | {"sample": sample, "sampleb": not sample, "begin": steps < 1, "resetb": steps >= 2}


@pytest.mark.ngspice
def test_every_phase_is_where_it_should_be(technology):
    """An edge takes nanoseconds; 5 us behind each edge of ck all is settled to 1 % of the supply.
    Between two edges each net stays: the levels behind them are as many as the spans have ends."""
    supply, tick = technology.supply, TIMING.t_step / TICKS
    cell, end = clock(TICKS, PHASES, SAMPLE), TIMING.start + FRAMES * TIMING.t_step
    waves = {
        "ck": ck_waveform(supply, TICKS, HIGH, end, TIMING),
        "run": run_waveform(supply, TICKS, RESET_STEPS, TIMING),
        "take": supply,
    }
    blocks = (
        *(inverter(technology, m) for m in (1, DRIVER)),
        *(nand(technology, k) for k in (2, 4)),
        flip_flop(technology),
    )
    elements = (
        supply_of(technology),
        *(Source(name, "v", name, GROUND, wave) for name, wave in waves.items()),
        Instance("cell", cell.ports, CLOCK),
    )
    nets = [*(net for one in PHASES for net in (one.high, one.low)), *SAMPLE_NETS, "resetb"]
    bench = Bench(
        Circuit("clock", (*blocks, cell), elements), technology, Tran(tick / 20, end), tuple(map(Voltage, nets))
    )
    found = run_bench(bench, "clock")
    ats = [k + part for k in range(-5, 15) for part in (0.1, 0.3, 0.5, 0.9)]
    for net in nets:
        level = np.interp(TIMING.start + np.array(ats) * tick, found.time, found.voltage(net)) / supply
        wanted = np.array([expected(at)[net] for at in ats], dtype=float)
        np.testing.assert_allclose(level, wanted, atol=0.01, err_msg=net)
        turns = np.count_nonzero(np.diff(found.voltage(net)[found.time > TIMING.start + ats[0] * tick] > supply / 2))
        assert turns == np.count_nonzero(np.diff(wanted)), net  # so no spike reaches half of the supply
    both = np.minimum(found.voltage("dec1"), found.voltage("clk1"))
    assert both[found.time > TIMING.start].max() < 0.1 * supply


def test_phases_are_whole_ticks():
    for stages in range(1, 15):
        ticks = ticks_of(stages)
        assert ticks % 20 == 0
        closes = 0.7 * ticks * np.arange(1, stages + 1) / stages
        np.testing.assert_allclose(closes, np.rint(closes), atol=1e-9)
    assert [ticks_of(stages) for stages in (1, 2, 3, 4, 5, 7)] == [20, 20, 60, 40, 100, 20]
