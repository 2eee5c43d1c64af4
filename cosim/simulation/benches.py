"""Test benches of single cells: what calibration and characterisation run."""

import numpy as np
from numpy.typing import NDArray

from cosim.cells.bias import BIAS_DIODE, bias_diode
from cosim.cells.clocked import CLOCKED, clocked_schmitt
from cosim.cells.mirror import INPUT_DIODE, SIGNAL_RAILS, input_diode, signal_rails, weight
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.cells.schmitt import SCHMITT, schmitt
from cosim.circuit.deck import format_circuit, format_number
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source
from cosim.simulation.options import PRECISE_OPTIONS, format_deck
from cosim.simulation.testbench import Timing, clock_waveforms, reset_waveform, staircase
from cosim.technology.types import Technology


def mirror_bench(technology: Technology, units: int, trim: float, current: float, v_node: float) -> str:
    """One signal of `current` into weight +1 (source vn), weight -1 (vp), line n (vpush) and a candidate diode (vc).

    The nodes that the weights load stand at `v_node` under the supply, where a candidate diode holds them.
    """
    supply = technology.supply
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, supply),
        Source("in", "i", "p", GROUND, current),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Instance("rails", ("p", "n", "vdd"), f"{SIGNAL_RAILS}_{units}"),
        weight("pos", "p", "n", "npos", units, technology, ""),
        Source("n", "v", "vdd", "npos", v_node),
        weight("neg", "p", "n", "nneg", -units, technology, ""),
        Source("p", "v", "nneg", "vpnode", 0.0),
        Source("pnode", "v", "vdd", "vpnode", v_node),
        weight("push", "p", "n", "npush", -units, technology, ""),
        Source("push", "v", "npush", "lpush", 0.0),
        Instance("push", ("lpush",), BIAS_DIODE),
        Source("c", "i", "cand", GROUND, current),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
    )
    blocks = (input_diode(technology, units), signal_rails(technology, units, trim), candidate_diode(technology))
    circuit = Circuit("mirror bench", (*blocks, bias_diode(technology)), elements)
    save = "i(vn) i(vp) i(vpush) v(cand)"
    return format_deck(format_circuit(circuit, technology), technology, PRECISE_OPTIONS, ".op", save)


def schmitt_bench(
    technology: Technology,
    units: int,
    bias: tuple[float, float, float],
    i_peak: float,
    v_node: float,
    ramp: float = 16.0,
    points: int = 1500,
) -> str:
    """A candidate ramp 0 -> i_peak -> 0 in 2 `ramp` seconds on one 9T cell with bias (I_thresh, I_width, I_gain).

    Saves v(xcell.v0) and i(vout), the output through weight -1 into a candidate node's voltage.
    """
    lines = ("thresh", "width", "gain")
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, technology.supply),
        Source("in", "i", "cand", GROUND, ((0.0, 0.0), (ramp, i_peak), (2 * ramp, 0.0))),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        *(Source(line, "i", "vdd", line, current) for line, current in zip(lines, bias, strict=True)),
        *(Instance(line, (line,), BIAS_DIODE) for line in lines),
        Instance("cell", ("cand", *lines, "out", "vdd"), SCHMITT),
        weight("neg", "out", "", "node", -units, technology, ""),
        Source("out", "v", "node", "vload", 0.0),
        Source("load", "v", "vdd", "vload", v_node),
    )
    blocks = (candidate_diode(technology), bias_diode(technology), schmitt(technology, units))
    step = format_number(ramp / points)
    analysis = f".tran {step} {format_number(2 * ramp)} 0e+00 {step}"
    netlist = format_circuit(Circuit("9T cell bench", blocks, elements), technology)
    return format_deck(netlist, technology, PRECISE_OPTIONS, analysis, "v(xcell.v0) i(vout)")


def clocked_bench(
    technology: Technology,
    units: int,
    bias: tuple[float, float, float],
    candidates: NDArray[np.float64],
    timing: Timing,
) -> str:
    """One clocked 9T cell with bias (I_thresh, I_width, I_gain) and one candidate a frame. Saves v(xcell.latch)."""
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
    step, end = format_number(timing.t_step / 100), format_number(timing.start + frames * timing.t_step)
    netlist = format_circuit(Circuit("clocked 9T cell bench", blocks, elements), technology)
    return format_deck(netlist, technology, PRECISE_OPTIONS, f".tran {step} {end} 0e+00 {step}", "v(xcell.latch)")
