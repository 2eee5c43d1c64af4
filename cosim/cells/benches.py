"""Benches of the cells: circuits that drive one cell and say which voltages and currents are saved.

Parameters of many functions: `units` is the number of unit devices per 1.0; `v_node` says how far below the supply the
node lies that a cell drives, V, where a candidate diode would hold it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.bias import BIAS_DIODE, PEDESTAL_SINK, STRENGTH, STRONG_DIODE, bias_diode, pedestal_sink, strong_diode
from cosim.cells.clocked import CLOCKED, LATCH_NODE, RESET_INVERTER, clocked_schmitt, reset_inverter
from cosim.cells.dpi import DPI, INTEGRATION_NODE, dpi
from cosim.cells.ladder import LADDER, RUNG_OFF, RUNG_ON, LadderBias, ladder, ladder_blocks
from cosim.cells.mirror import INPUT_DIODE, SIGNAL_RAILS, input_diode, signal_rails, weight
from cosim.cells.quantiser import COMPARATOR, DRIVER, SAMPLER, comparator, driver, sampler
from cosim.cells.ratio_gate import RATIO_GATE, ratio_gate
from cosim.cells.rectifier import CANDIDATE, RELU, candidate_diode, relu_diode
from cosim.cells.register import REGISTER, register, register_blocks
from cosim.cells.schmitt import DECISION_NODE, SCHMITT, schmitt
from cosim.cells.steering import STEERING_AND, SYMBOL_COMPARATOR, steering_and, symbol_comparator
from cosim.cells.tau_cell import TAU_CELL_GATED, TAU_LINE, tau_cell_gated, tau_line
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.cells.window import COMPARED, DECISION, DECISION_PORTS, Gates, decision, window
from cosim.cells.winner import winner
from cosim.circuit.bench import PRECISE, Bench, Current, Dc, DrainCurrent, Op, Tolerances, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Mos, Source, Subcircuit
from cosim.circuit.waveforms import LAST_CLOSE, Timing, Waveform, clock_waveforms, reset_waveform, square, staircase
from cosim.technology.types import Technology

RAMP = 16.0  # s; so slow that a threshold is where the cell flips
RAMP_POINTS, SWEEP_POINTS, STEPS_A_FRAME = 1500, 200, 100
CLOSE = LAST_CLOSE / 2  # of a frame: where the first of two stages decides, which has the shorter track phase
APART = 10.0  # thresholds of a quantiser's comparators, which do not disturb each other then
Array = NDArray[np.float64]
Pins = tuple[float, float, float]  # I_thresh, I_width, I_gain, A
_PINS = ("thresh", "width", "gain")


def mirror_bench(technology: Technology, units: int, trim: float, current: float, v_node: float) -> Bench:
    """Build the test circuit of mirror cells: one signal of `current` ampere into weights and a candidate diode.

    The weights are +1 (source n), -1 (p) and line n (push), and load nodes that lie `v_node` below the supply. Net
    `cand` is that of the candidate diode, net p that of a rectifier of unit devices. trim: of the n diode, see
    `signal_rails`.
    """
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("in", "i", "p", GROUND, current),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Instance("rails", ("p", "n", "vdd"), f"{SIGNAL_RAILS}_{units}"),
        *weight("pos", "n", "npos", units, technology),
        Source("n", "v", "vdd", "npos", v_node),
        *weight("neg", "p", "nneg", -units, technology),
        Source("p", "v", "nneg", "vpnode", 0.0),
        Source("pnode", "v", "vdd", "vpnode", v_node),
        *weight("push", "p", "npush", -units, technology),
        Source("push", "v", "npush", "lpush", 0.0),
        Instance("push", ("lpush",), BIAS_DIODE),
        Source("c", "i", "cand", GROUND, current),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
    )
    circuit = Circuit("mirror bench", (*_signal(technology, units, trim), bias_diode(technology)), elements)
    return Bench(circuit, technology, Op(), (*map(Current, ("n", "p", "push")), Voltage("cand"), Voltage("p")), PRECISE)


def sink_bench(technology: Technology, stretch: float, current: float, v_node: float) -> Bench:
    """Build the test circuit of a bias diode that is `stretch` times its nominal length, and of a sink on its line.

    The diode gets `current` ampere; the sink's node is `v_node` below the supply. Saves the sink's current, as `node`.
    """
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("bias", "i", "vdd", "bias", current),
        Instance("bias", ("bias",), BIAS_DIODE),
        Instance("sink", ("node", "bias"), PEDESTAL_SINK),
        Source("node", "v", "vdd", "node", v_node),
    )
    circuit = Circuit("sink bench", (bias_diode(technology, stretch), pedestal_sink(technology)), elements)
    return Bench(circuit, technology, Op(), (Current("node"),), PRECISE)


def rectifier_bench(technology: Technology, units: int, trim: float, i_push: float, i_pull_max: float) -> Bench:
    """Build the test circuit of a rectifier cell: a candidate diode between a weight of +1 and one of -1.

    The weight of -1 pushes i_push ampere; the weight of +1 pulls 0 ... i_pull_max ampere in SWEEP_POINTS steps. Saves
    the current through `sense`, which the diode draws from the supply.
    """
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("pull", "i", "a_p", GROUND, 0.0),
        Instance("a", ("a_p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Instance("a_rails", ("a_p", "a_n", "vdd"), f"{SIGNAL_RAILS}_{units}"),
        Source("push", "i", "b_p", GROUND, i_push),
        Instance("b", ("b_p", "vdd"), f"{INPUT_DIODE}_{units}"),
        *weight("pos", "a_n", "cand", units, technology),
        *weight("neg", "b_p", "cand", -units, technology),
        Source("sense", "v", "vdd", "sensed", 0.0),
        Instance("cand", ("cand", "sensed"), CANDIDATE),
    )
    circuit = Circuit("rectifier bench", _signal(technology, units, trim), elements)
    sweep = Dc("i", "pull", 0.0, i_pull_max, i_pull_max / SWEEP_POINTS)
    return Bench(circuit, technology, sweep, (Current("sense"),), PRECISE)


def steering_bench(technology: Technology, units: int, i_gain: float, level: float, v_node: float) -> Bench:
    """Build the test circuit of a steering AND cell with two bits.

    One bit is high, the other is the output of a symbol comparator, whose signal rises from 0 to `level` ampere in
    SWEEP_POINTS steps. The comparator's threshold is half of `level`; i_gain: into the source's pin, ampere. Saves the
    current that the AND pulls through `node`, whose net is `v_node` below the supply.
    """
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("in", "i", "p", GROUND, 0.0),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        *bias_lines({"half": level / 2, "gain": i_gain}),
        Instance("bit", ("p", "half", "bit", "vdd"), f"{SYMBOL_COMPARATOR}_{units}"),
        Instance("and", ("cand", "gain", "bit", "vdd"), f"{STEERING_AND}_2"),
        Source("node", "v", "vdd", "cand", v_node),
    )
    blocks = (
        input_diode(technology, units), bias_diode(technology), symbol_comparator(technology, units),
        steering_and(technology, 2),
    )  # fmt: skip
    sweep = Dc("i", "in", 0.0, level, level / SWEEP_POINTS)
    return Bench(Circuit("steering bench", blocks, elements), technology, sweep, (Current("node"),), PRECISE)


def winner_bench(technology: Technology, i_bias: float, currents: Array, t_step: float) -> Bench:
    """Build the test circuit of a winner-take-all cell.

    currents: into its inputs, (steps, inputs), ampere; each row lasts t_step seconds, after an edge of 1 % of that.
    Each output pulls from a candidate diode. Saves the outputs' currents, through the sources out0, out1, ...
    """
    steps, inputs = currents.shape
    cell, places = winner(technology, inputs), range(inputs)
    elements: list[Element] = [supply_of(technology), *bias_lines({"bias": i_bias})]
    for k in places:
        column: list[float] = currents[:, k].tolist()
        wave = [((step + edge) * t_step, current) for step, current in enumerate(column) for edge in (0.01, 1.0)]
        elements += [
            Source(f"in{k}", "i", "vdd", f"in{k}", ((0.0, column[0]), *wave)),
            Source(f"out{k}", "v", f"node{k}", f"out{k}", 0.0),
            Instance(f"cand{k}", (f"node{k}", "vdd"), CANDIDATE),
        ]
    nets = "bias", *(f"in{k}" for k in places), *(f"out{k}" for k in places)
    elements.append(Instance("winner", nets, cell.name))
    circuit = Circuit("winner bench", (bias_diode(technology), candidate_diode(technology), cell), tuple(elements))
    run = Tran(t_step / STEPS_A_FRAME, steps * t_step)
    return Bench(circuit, technology, run, tuple(Current(f"out{k}") for k in places), PRECISE)


def ratio_bench(technology: Technology, units: int, i_b: float, i_max: float) -> Bench:
    """Build the test circuit of a ratio gate cell with bias i_b on a signal from 0 to i_max, all ampere.

    The signal takes SWEEP_POINTS steps. A unit device copies the gate's output, through the source `out`; its drain is
    at half of the supply.
    """
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("in", "i", "p", GROUND, 0.0),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        *bias_lines({"top": i_b}),
        Instance("push", ("top", "half", "vdd"), TAU_LINE),
        Instance("gate", ("p", "half", "top", "tau", "vdd"), RATIO_GATE),
        *transistor("copy", TransistorDesign("inner", "p", technology.sizing.mirror_p), "node", "tau"),
        Source("out", "v", "node", GROUND, technology.supply / 2),
    )
    blocks = input_diode(technology, units), bias_diode(technology), tau_line(technology), ratio_gate(technology)
    sweep = Dc("i", "in", 0.0, i_max, i_max / SWEEP_POINTS)
    return Bench(Circuit("ratio gate bench", blocks, elements), technology, sweep, (Current("out"),), PRECISE)


def schmitt_bench(technology: Technology, units: int, bias: Pins, i_peak: float, v_node: float) -> Bench:
    """Build the test circuit of a 9T cell whose candidate ramps 0 -> i_peak -> 0 ampere in 2 RAMP seconds.

    Saves the decision node `xcell.v0` and the current through `out`. bias: (I_thresh, I_width, I_gain), ampere.
    """
    candidate = (0.0, 0.0), (RAMP, i_peak), (2 * RAMP, 0.0)
    circuit = schmitt_circuit(technology, units, bias, candidate, v_node)
    probes = Voltage(f"xcell.{DECISION_NODE}"), Current("out")
    return Bench(circuit, technology, Tran(RAMP / RAMP_POINTS, 2 * RAMP), probes, PRECISE)


def schmitt_circuit(technology: Technology, units: int, bias: Pins, candidate: Waveform, v_node: float) -> Circuit:
    """Return the test circuit of a 9T cell: a candidate current into the cell, and its output through `output_load`.

    bias: (I_thresh, I_width, I_gain), ampere.
    """
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("in", "i", "cand", GROUND, candidate),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        *bias_lines(dict(zip(_PINS, bias, strict=True))),
        Instance("cell", ("cand", *_PINS, "out", "vdd"), SCHMITT),
        *output_load(technology, units, v_node),
    )
    blocks = (candidate_diode(technology), bias_diode(technology), schmitt(technology, units))
    return Circuit("9T cell bench", blocks, elements)


def clocked_bench(technology: Technology, units: int, bias: Pins, candidates: Array, timing: Timing) -> Bench:
    """Build the test circuit of a clocked 9T cell with one candidate a frame. Saves the cell's latch node.

    bias: (I_thresh, I_width, I_gain), ampere; candidates: (frames,), ampere.
    """
    elements: tuple[Element, ...] = (
        *_framed(technology, candidates, timing),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        *bias_lines(dict(zip(_PINS, bias, strict=True))),
        Instance("cell", ("cand", *_PINS, "out", "clk", "clkb", "resetb", "vdd"), CLOCKED),
    )
    blocks = (candidate_diode(technology), bias_diode(technology), clocked_schmitt(technology, units))
    circuit = Circuit("clocked 9T cell bench", blocks, elements)
    return Bench(circuit, technology, _frames(candidates, timing), (Voltage(f"xcell.{LATCH_NODE}"),), PRECISE)


@dataclass(frozen=True)
class ComparatorDrive:
    """The currents that drive a comparator cell in its bench.

    candidates: one a frame, ampere; base, delta: of the driver, ampere; pulse: its begin and end, fractions of a frame;
    upper: whether the upper comparator is tested, else the lower.
    """

    candidates: Array
    base: float
    delta: float
    pulse: tuple[float, float]
    upper: bool = True


def comparator_bench(technology: Technology, i_thresh: float, drive: ComparatorDrive) -> Bench:
    """Build the test circuit of a quantiser's upper or lower comparator, with the quantiser's driver.

    The other comparator reads the same held candidate, but its threshold is APART times higher or lower, so its
    decision never changes. Saves the voltages of `in`, the driver's gate line n, and of `half`, a line that carries the
    current half way from retain to set, or from reset to retain.
    """
    timing, candidates, base, delta, upper = Timing(), drive.candidates, drive.base, drive.delta, drive.upper
    lines = {"upper": i_thresh, "lower": i_thresh / APART} if upper else {"upper": i_thresh * APART, "lower": i_thresh}
    high, low = square(technology.supply, 0.0, timing.moments(len(candidates), *drive.pulse), timing)
    elements: tuple[Element, ...] = (
        *_framed(technology, candidates, timing),
        *_logic({"pulse": high, "pulseb": low}),
        *bias_lines({**lines, "base": base, "delta": delta, "half": base + (0.5 + upper) * delta}),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
        Instance("above", ("hold", "upper", "up", "clk", "clkb", "vdd"), COMPARATOR),
        Instance("below", ("hold", "lower", "down", "clk", "clkb", "vdd"), COMPARATOR),
        Instance("driver", ("up", "down", "base", "delta", "in", "pulse", "pulseb", "vdd"), DRIVER),
    )
    blocks = tuple(cell(technology) for cell in (candidate_diode, bias_diode, sampler, comparator, driver))
    circuit = Circuit("comparator bench", blocks, elements)
    return Bench(circuit, technology, _frames(candidates, timing), (Voltage("in"), Voltage("half")), PRECISE)


def decision_bench(
    technology: Technology, i_thresh: float, i_keep: float, candidates: Array, pulse: tuple[float, float]
) -> Bench:
    """Build the test circuit of a counter cell's decision, with one candidate a frame.

    candidates: (frames,), A; i_keep: load of the latch's gates, A; pulse: its begin and end, fractions of a frame.
    Saves the voltages of COMPARED, which the latch reads, and of `half`, at which the latch's first gate turns.
    """
    timing, gates = Timing(), Gates(technology)
    opened, closed = square(technology.supply, 0.0, timing.moments(len(candidates), *pulse), timing)
    elements: tuple[Element, ...] = (
        *_framed(technology, candidates, timing),
        *_logic({"open": opened, "closed": closed}),
        *bias_lines({"thresh": i_thresh}),
        Source("keep", "i", "kp", GROUND, i_keep),
        *transistor("load", gates.load, "kp", "kp"),
        Source("half", "i", "vdd", "half", i_keep),
        *transistor("half", gates.n, "half", "half"),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
        Instance("decision", DECISION_PORTS, DECISION),
    )
    blocks = tuple(cell(technology) for cell in (candidate_diode, bias_diode, sampler, window, decision))
    probes = (Voltage(f"xdecision.{COMPARED}"), Voltage("half"))
    circuit = Circuit("decision bench", blocks, elements)
    return Bench(circuit, technology, _frames(candidates, timing), probes, PRECISE)


@dataclass(frozen=True)
class DpiDrive:
    """The inputs of a DPI cell's bench.

    i_in: waveform of the input, A; i_tau, i_g: bias currents, A; capacitance: F; end: length of the run, s; points:
    steps of the run.
    """

    i_in: Waveform
    i_tau: float
    i_g: float
    capacitance: float
    end: float
    points: int = 2000


def dpi_bench(technology: Technology, units: int, drive: DpiDrive, v_node: float) -> Bench:
    """Build the test circuit of a DPI cell behind an input diode.

    The cell draws its output from a node `v_node` below the supply. Saves the currents through `out` and the supply
    `dd`, and the voltage vc.
    """
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("in", "i", "p", GROUND, drive.i_in),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        *bias_lines({"tau": drive.i_tau}),
        *bias_lines({"vg": drive.i_g}),
        Instance("dpi", ("p", "vg", "tau", "node", "vdd"), f"{DPI}_1"),
        Source("out", "v", "vload", "node", 0.0),
        Source("load", "v", "vdd", "vload", v_node),
    )
    blocks = (input_diode(technology, units), bias_diode(technology), dpi(technology, units, 1, drive.capacitance))
    probes = Current("out"), Current("dd"), Voltage(f"xdpi.{INTEGRATION_NODE}")
    run = Tran(drive.end / drive.points, drive.end)
    return Bench(Circuit("DPI bench", blocks, elements), technology, run, probes, PRECISE)


def supply_of(technology: Technology) -> Source:
    """Return the supply source of a bench: from ground to vdd, at the technology's supply voltage."""
    return Source("dd", "v", "vdd", GROUND, technology.supply)


def bias_lines(currents: Mapping[str, Waveform], strong: Collection[str] = ()) -> tuple[Element, ...]:
    """Return the elements of a bench's bias gate lines: for each name a diode and a source from vdd into it.

    currents: name of the line -> ampere; strong: names of the lines with a strong diode.
    """
    sources = (Source(pin, "i", "vdd", pin, current) for pin, current in currents.items())
    return (*sources, *(Instance(pin, (pin,), STRONG_DIODE if pin in strong else BIAS_DIODE) for pin in currents))


def output_load(technology: Technology, units: int, v_node: float) -> tuple[Element, ...]:
    """Return the load of a cell's output in a bench: a weight of -1 on gate line p `out`.

    The weight pushes through the source `out` into a node that is `v_node` below the supply.
    """
    return (
        *weight("neg", "out", "node", -units, technology),
        Source("out", "v", "node", "vload", 0.0),
        Source("load", "v", "vdd", "vload", v_node),
    )


def _signal(technology: Technology, units: int, trim: float) -> tuple[Subcircuit, ...]:
    """Return the subcircuits that a signal needs to drive a candidate in a test circuit."""
    return input_diode(technology, units), signal_rails(technology, units, trim), candidate_diode(technology)


def _framed(technology: Technology, candidates: Array, timing: Timing) -> tuple[Source, ...]:
    """Return a test circuit's sources: supply, one candidate a frame, reset, and clocks that close at CLOSE."""
    high, low = clock_waveforms(technology.supply, CLOSE, len(candidates), timing)
    return (
        supply_of(technology),
        Source("in", "i", "cand", GROUND, staircase(candidates, 0.0, timing)),
        *_logic({"clk": high, "clkb": low, "resetb": reset_waveform(technology.supply, timing)}),
    )


def _logic(waves: Mapping[str, Waveform]) -> tuple[Source, ...]:
    """Return the voltage sources of a test circuit's logic signals; waves: net -> waveform."""
    return tuple(Source(net, "v", net, GROUND, wave) for net, wave in waves.items())


def _frames(candidates: Array, timing: Timing, steps: int = STEPS_A_FRAME) -> Tran:
    return Tran(timing.t_step / steps, timing.start + len(candidates) * timing.t_step)


LEVEL_STATE = "xregister.xlevel1.q"
_CANDIDATE, _UPPER, _LOWER, _OTHER = 3e-9, 1e-9, 0.5e-9, 1e-9  # A; the other value is never switched through


@dataclass(frozen=True)
class LevelDrive:
    """The inputs of the bench of a register's level.

    i_turn: current of its turn, i_keep: what keeps a level, i_release: what ends a write, all A; values: to be written,
    one a frame, A; pulse: its begin and end, fractions of a frame.
    """

    i_turn: float
    i_keep: float
    i_release: float
    values: Array
    pulse: tuple[float, float]


def level_bench(technology: Technology, units: int, drive: LevelDrive) -> Bench:
    """Build the test circuit of a register cell with one level, which writes `values` frame by frame.

    The candidate is always above the register's window. Saves the level's state, LEVEL_STATE.
    """
    timing, frames = Timing(), len(drive.values)
    high, low = clock_waveforms(technology.supply, LAST_CLOSE, frames, timing)
    pulse, pulseb = square(technology.supply, 1.0, [0.4 * timing.start, *timing.moments(frames, *drive.pulse)], timing)
    pins = {"upper": _UPPER, "lower": _LOWER, "keep": drive.i_keep, "release": drive.i_release}
    pins |= {"gain": _OTHER, "turn": drive.i_turn}
    reset = reset_waveform(technology.supply, timing)
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("in", "i", "cand", GROUND, _CANDIDATE),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        Source("pos", "i", "pos", GROUND, staircase(drive.values, 0.0, timing)),
        Instance("pos", ("pos", "vdd"), RELU),
        Source("neg", "i", "neg", GROUND, _OTHER),
        Instance("neg", ("neg", "vdd"), RELU),
        *bias_lines(pins),
        *_logic({"clk": high, "clkb": low, "pulse": pulse, "pulseb": pulseb, "resetb": reset}),
        Instance("reset", ("resetb", "reset", "vdd"), RESET_INVERTER),
        Instance(
            "register",
            ("cand", "pos", "neg", *pins, "out", "clk", "clkb", "pulse", "pulseb", "resetb", "reset", "vdd"),
            f"{REGISTER}_1_0",
        ),
    )
    blocks = (
        *(block(technology) for block in (candidate_diode, bias_diode, reset_inverter, sampler)),
        relu_diode(technology, units),
        *register_blocks(technology, units),
        register(technology, units, 1, 0),
    )
    run = _frames(drive.values, timing)
    return Bench(Circuit("register bench", blocks, elements), technology, run, (Voltage(LEVEL_STATE),), PRECISE)


STATE_DIODE = "cell.diode"
TAU_STEPS_A_FRAME = 200
_TOLERANCES = Tolerances(reltol=2e-5, trtol=5.0)


@dataclass(frozen=True)
class TauDrive:
    """The inputs of a gated tau-cell's bench.

    capacitance: of the cell, F; trim: of its output diode; candidates, gates: candidate and gate current of every
    frame, A; pulse: its begin and end, fractions of a frame.
    """

    capacitance: float
    trim: float
    candidates: Array
    gates: Array
    pulse: tuple[float, float]
    timing: Timing = Timing()


def tau_cell_bench(technology: Technology, units: int, drive: TauDrive) -> Bench:
    """Build the test circuit of a gated tau-cell over some frames. Saves the current of its state's diode."""
    timing, frames = drive.timing, len(drive.candidates)
    moments = [0.4 * timing.start, *timing.moments(frames, *drive.pulse)]
    _, low = square(technology.supply, 1.0, moments, timing)
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("in", "i", "cand", GROUND, staircase(drive.candidates, 0.0, timing)),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        Source("gate", "i", "gate_p", GROUND, staircase(drive.gates, 0.0, timing)),
        Instance("gate", ("gate_p", "vdd"), f"{INPUT_DIODE}_{units}"),
        *_logic({"pulseb": low, "resetb": reset_waveform(technology.supply, timing)}),
        Instance("cell", ("cand", "gate_p", "out", "pulseb", "resetb", "vdd"), TAU_CELL_GATED),
    )
    cell = tau_cell_gated(technology, units, drive.capacitance, drive.trim)
    blocks = input_diode(technology, units), candidate_diode(technology), cell
    run = _frames(drive.candidates, timing, TAU_STEPS_A_FRAME)
    circuit = Circuit("tau-cell bench", blocks, elements)
    return Bench(circuit, technology, run, (DrainCurrent(STATE_DIODE),), _TOLERANCES)


LADDER_RAILS = {
    "cells": "vdd",
    "candidates": "vdd_cand",
    "DPIs": "vdd_dpi",
    "output": "vdd_out",
    "bias": "vdd_bias",
}  # block -> its supply net in a metered bench
LADDER_SOURCES = {block: rail.removeprefix("v") for block, rail in LADDER_RAILS.items()}


@dataclass(frozen=True)
class LadderDrive:
    """The inputs of a ladder cell's bench.

    rungs, start: size and first level of the ladder; bias: pin currents, A; capacitance: of its DPIs, F; i_in: waveform
    of its input, A; release: end of the reset, s; end: end of the run, s; step: largest solver step, s; backward: see
    `ladder`.
    """

    rungs: int
    start: int
    bias: LadderBias
    capacitance: float
    i_in: Waveform
    release: float
    end: float
    step: float = 2e-4
    backward: bool = True


def rung_nets(rungs: int) -> tuple[str, ...]:
    """Return the names of the decision nodes of a ladder's rungs, in the bench of the ladder cell."""
    return tuple(f"xladder.xrung{k}.{DECISION_NODE}" for k in range(1, rungs + 1))


def ladder_bench(technology: Technology, units: int, drive: LadderDrive, v_node: float) -> Bench:
    """Build the test circuit of a ladder cell, with sources at its pins.

    Saves the nodes of `rung_nets`, and the currents through `out`, its output by a weight of -1, and the supply `dd`.
    """
    pins = {
        "thresh_1": drive.bias.i_thresh_1,
        "width_1": drive.bias.i_width_1,
        "thresh": drive.bias.i_thresh,
        "width": drive.bias.i_width,
        "gain": drive.bias.i_gain,
        "vg": STRENGTH * drive.bias.i_g,
        "tau": STRENGTH * drive.bias.i_tau,
    }
    reset = (0.0, 0.0), (0.9 * drive.release, 0.0), (drive.release, technology.supply)
    elements: tuple[Element, ...] = (
        supply_of(technology),
        Source("resetb", "v", "resetb", GROUND, reset),
        *bias_lines({"in": drive.i_in}),
        *bias_lines(pins, strong=("vg", "tau")),
        Instance("ladder", ("in", *pins, "out", "resetb", "vdd"), f"{LADDER}_{drive.rungs}_{drive.start}"),
        *output_load(technology, units, v_node),
    )
    blocks = (
        candidate_diode(technology),
        bias_diode(technology),
        strong_diode(technology),
        *ladder_blocks(technology, units, drive.capacitance),
        ladder(technology, units, drive.rungs, drive.start, backward=drive.backward),
    )
    circuit = Circuit("ladder bench", blocks, elements)
    probes = (*map(Voltage, rung_nets(drive.rungs)), Current("out"), Current("dd"))
    return Bench(circuit, technology, Tran(drive.step, drive.end), probes)


def meter_ladder(bench: Bench) -> Bench:
    """Return a ladder's bench with a supply of its own for each block of LADDER_RAILS, and save each one's current."""
    cand, dpis, out, bias = (LADDER_RAILS[block] for block in ("candidates", "DPIs", "output", "bias"))

    def on_rail(element: Element) -> Element:
        match element:
            case Instance(subcircuit=name) if name in (RUNG_ON, RUNG_OFF):
                return replace(element, nets=(*element.nets, cand))
            case Instance(subcircuit=name) if name.startswith(DPI):
                return replace(element, nets=(*element.nets[:-1], dpis))
            case Instance(subcircuit=name) if name == CANDIDATE:
                return replace(element, nets=(*element.nets[:-1], cand))
            case Instance(subcircuit=name) if name.startswith(LADDER):
                return replace(element, nets=(*element.nets, cand, dpis, out))
            case Mos(role="output"):
                return replace(element, source=out, bulk=out)
            case Source(kind="i", a="vdd"):
                return replace(element, a=bias)
            case _:
                return element

    def rewired(block: Subcircuit) -> Subcircuit:
        added = (cand,) if block.name in (RUNG_ON, RUNG_OFF) else (cand, dpis, out)
        return replace(block, ports=(*block.ports, *added), elements=tuple(map(on_rail, block.elements)))

    blocks = (
        rewired(block) if block.name in (RUNG_ON, RUNG_OFF) or block.name.startswith(f"{LADDER}_") else block
        for block in bench.circuit.subcircuits
    )
    supplies = (
        Source(rail.removeprefix("v"), "v", rail, GROUND, bench.technology.supply) for rail in (cand, dpis, out, bias)
    )
    elements = (*map(on_rail, bench.circuit.elements), *supplies)
    circuit = replace(bench.circuit, subcircuits=tuple(blocks), elements=elements)
    probes = (*(probe for probe in bench.probes if probe != Current("dd")), *map(Current, LADDER_SOURCES.values()))
    return replace(bench, circuit=circuit, probes=probes)
