"""Benches of the 9T cell: the plain one on a slow ramp, the clocked one on a candidate a frame."""

import numpy as np
from numpy.typing import NDArray

from cosim.cells.bias import BIAS_DIODE, bias_diode
from cosim.cells.clocked import CLOCKED, LATCH_NODE, clocked_schmitt
from cosim.cells.mirror import weight
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.cells.schmitt import DECISION_NODE, SCHMITT, schmitt
from cosim.circuit.bench import PRECISE, Bench, Current, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source
from cosim.circuit.waveforms import Timing, Waveform, clock_waveforms, reset_waveform, staircase
from cosim.technology.types import Technology

RAMP = 16.0  # s; so slow that a threshold is where the cell flips
RAMP_POINTS = 1500
STEPS_A_FRAME = 100
Pins = tuple[float, float, float]  # I_thresh, I_width, I_gain, A


def schmitt_bench(technology: Technology, units: int, bias: Pins, i_peak: float, v_node: float) -> Bench:
    """`schmitt_circuit` on a candidate ramp 0 -> i_peak -> 0 in 2 RAMP seconds.

    Saves the decision node `xcell.v0` and the current through `out`.
    """
    candidate = (0.0, 0.0), (RAMP, i_peak), (2 * RAMP, 0.0)
    circuit = schmitt_circuit(technology, units, bias, candidate, v_node)
    probes = Voltage(f"xcell.{DECISION_NODE}"), Current("out")
    return Bench(circuit, technology, Tran(RAMP / RAMP_POINTS, 2 * RAMP), probes, PRECISE)


def schmitt_circuit(technology: Technology, units: int, bias: Pins, candidate: Waveform, v_node: float) -> Circuit:
    """A candidate current into one 9T cell with bias (I_thresh, I_width, I_gain).

    Its output goes through weight -1 into a candidate node's voltage.
    """
    lines = ("thresh", "width", "gain")
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, technology.supply),
        Source("in", "i", "cand", GROUND, candidate),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        *(Source(line, "i", "vdd", line, current) for line, current in zip(lines, bias, strict=True)),
        *(Instance(line, (line,), BIAS_DIODE) for line in lines),
        Instance("cell", ("cand", *lines, "out", "vdd"), SCHMITT),
        *weight("neg", "out", "node", -units, technology),
        Source("out", "v", "node", "vload", 0.0),
        Source("load", "v", "vdd", "vload", v_node),
    )
    blocks = (candidate_diode(technology), bias_diode(technology), schmitt(technology, units))
    return Circuit("9T cell bench", blocks, elements)


def clocked_bench(
    technology: Technology, units: int, bias: Pins, candidates: NDArray[np.float64], timing: Timing
) -> Bench:
    """One clocked 9T cell with bias (I_thresh, I_width, I_gain) and one candidate a frame. Saves its latch node."""
    supply, frames = technology.supply, len(candidates)
    lines = ("thresh", "width", "gain")
    close = timing.closes(2)[0]  # the first of two stages: the shorter track phase
    high, low = clock_waveforms(supply, close, frames, timing)
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, supply),
        Source("in", "i", "cand", GROUND, staircase(candidates, 0.0, timing)),
        Source("clk", "v", "clk", GROUND, high),
        Source("clkb", "v", "clkb", GROUND, low),
        Source("resetb", "v", "resetb", GROUND, reset_waveform(supply, timing)),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        *(Source(line, "i", "vdd", line, current) for line, current in zip(lines, bias, strict=True)),
        *(Instance(line, (line,), BIAS_DIODE) for line in lines),
        Instance("cell", ("cand", *lines, "out", "clk", "clkb", "resetb", "vdd"), CLOCKED),
    )
    blocks = (candidate_diode(technology), bias_diode(technology), clocked_schmitt(technology, units))
    circuit = Circuit("clocked 9T cell bench", blocks, elements)
    run = Tran(timing.t_step / STEPS_A_FRAME, timing.start + frames * timing.t_step)
    return Bench(circuit, technology, run, (Voltage(f"xcell.{LATCH_NODE}"),), PRECISE)
