"""Test benches of single cells: what calibration and characterisation run."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.bias import BIAS_DIODE, STRENGTH, STRONG_DIODE, bias_diode, strong_diode
from cosim.cells.clocked import CLOCKED, clocked_schmitt
from cosim.cells.dpi import DPI, dpi
from cosim.cells.ladder import LADDER, RUNG_OFF, RUNG_ON, ladder, ladder_blocks
from cosim.cells.mirror import INPUT_DIODE, SIGNAL_RAILS, input_diode, signal_rails, weight
from cosim.cells.quantiser import COMPARATOR, DRIVER, SAMPLER, comparator, driver, sampler
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.cells.reference import REFERENCE, reference
from cosim.cells.schmitt import SCHMITT, schmitt
from cosim.circuit.deck import format_number
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Mos, Source, Subcircuit
from cosim.engines.ngspice.options import DEFAULT_OPTIONS, PRECISE_OPTIONS, SimulatorOptions, format_deck
from cosim.ir.ladder import LadderBias
from cosim.simulation.testbench import Timing, Waveform, clock_waveforms, reset_waveform, staircase
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
        *weight("pos", "p", "n", "npos", units, technology, ""),
        Source("n", "v", "vdd", "npos", v_node),
        *weight("neg", "p", "n", "nneg", -units, technology, ""),
        Source("p", "v", "nneg", "vpnode", 0.0),
        Source("pnode", "v", "vdd", "vpnode", v_node),
        *weight("push", "p", "n", "npush", -units, technology, ""),
        Source("push", "v", "npush", "lpush", 0.0),
        Instance("push", ("lpush",), BIAS_DIODE),
        Source("c", "i", "cand", GROUND, current),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
    )
    blocks = (input_diode(technology, units), signal_rails(technology, units, trim), candidate_diode(technology))
    circuit = Circuit("mirror bench", (*blocks, bias_diode(technology)), elements)
    save = "i(vn) i(vp) i(vpush) v(cand)"
    return format_deck(circuit, technology, PRECISE_OPTIONS, ".op", save)


def rectifier_bench(
    technology: Technology, units: int, trim: float, i_push: float, i_pull_max: float, points: int = 200
) -> str:
    """A candidate diode that one weight of +1 pulls, 0 ... i_pull_max ampere, and one of -1 pushes with i_push.

    A dc sweep of the pulling signal in `points` steps. Saves i(vsense), what the diode draws from the supply.
    """
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, technology.supply),
        Source("pull", "i", "a_p", GROUND, 0.0),
        Instance("a", ("a_p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Instance("a_rails", ("a_p", "a_n", "vdd"), f"{SIGNAL_RAILS}_{units}"),
        Source("push", "i", "b_p", GROUND, i_push),
        Instance("b", ("b_p", "vdd"), f"{INPUT_DIODE}_{units}"),
        *weight("pos", "a_p", "a_n", "cand", units, technology, ""),
        *weight("neg", "b_p", "", "cand", -units, technology, ""),
        Source("sense", "v", "vdd", "sensed", 0.0),
        Instance("cand", ("cand", "sensed"), CANDIDATE),
    )
    blocks = (input_diode(technology, units), signal_rails(technology, units, trim), candidate_diode(technology))
    circuit = Circuit("rectifier bench", blocks, elements)
    analysis = f".dc ipull 0e+00 {format_number(i_pull_max)} {format_number(i_pull_max / points)}"
    return format_deck(circuit, technology, PRECISE_OPTIONS, analysis, "i(vsense)")


def schmitt_bench(
    technology: Technology,
    units: int,
    bias: tuple[float, float, float],
    i_peak: float,
    v_node: float,
    ramp: float = 16.0,
    points: int = 1500,
    vary: Callable[[Circuit], Circuit] = lambda circuit: circuit,
) -> str:
    """`schmitt_circuit` on a candidate ramp 0 -> i_peak -> 0 in 2 `ramp` seconds.

    Saves v(xcell.v0) and i(vout). `vary` makes a chip's circuit of the nominal one.
    """
    step = format_number(ramp / points)
    analysis = f".tran {step} {format_number(2 * ramp)} 0e+00 {step}"
    candidate = (0.0, 0.0), (ramp, i_peak), (2 * ramp, 0.0)
    circuit = vary(schmitt_circuit(technology, units, bias, candidate, v_node))
    return format_deck(circuit, technology, PRECISE_OPTIONS, analysis, "v(xcell.v0) i(vout)")


def schmitt_circuit(
    technology: Technology, units: int, bias: tuple[float, float, float], candidate: Waveform, v_node: float
) -> Circuit:
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
        *weight("neg", "out", "", "node", -units, technology, ""),
        Source("out", "v", "node", "vload", 0.0),
        Source("load", "v", "vdd", "vload", v_node),
    )
    blocks = (candidate_diode(technology), bias_diode(technology), schmitt(technology, units))
    return Circuit("9T cell bench", blocks, elements)


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
    circuit = Circuit("clocked 9T cell bench", blocks, elements)
    return format_deck(circuit, technology, PRECISE_OPTIONS, f".tran {step} {end} 0e+00 {step}", "v(xcell.latch)")


def dpi_bench(
    technology: Technology,
    units: int,
    input_current: Waveform,
    i_tau: float,
    i_g: float,
    capacitance: float,
    v_node: float,
    end: float,
    points: int = 2000,
) -> str:
    """A DPI behind an input diode; its output is drawn from a node `v_node` under the supply. Saves i(vout), i(vdd)."""
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, technology.supply),
        Source("in", "i", "p", GROUND, input_current),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Source("tau", "i", "vdd", "tau", i_tau),
        Instance("tau", ("tau",), BIAS_DIODE),
        Source("vg", "i", "vdd", "vg", i_g),
        Instance("vg", ("vg",), BIAS_DIODE),
        Instance("dpi", ("p", "vg", "tau", "node", "vdd"), f"{DPI}_1"),
        Source("out", "v", "vload", "node", 0.0),
        Source("load", "v", "vdd", "vload", v_node),
    )
    blocks = (input_diode(technology, units), bias_diode(technology), dpi(technology, units, 1, capacitance))
    circuit = Circuit("DPI bench", blocks, elements)
    step = format_number(end / points)
    analysis = f".tran {step} {format_number(end)} 0e+00 {step}"
    return format_deck(circuit, technology, PRECISE_OPTIONS, analysis, "i(vout) i(vdd) v(xdpi.vc)")


LADDER_RAILS = {
    "cells": "vdd",
    "candidates": "vdd_cand",
    "DPIs": "vdd_dpi",
    "output": "vdd_out",
    "bias": "vdd_bias",
}  # block -> its supply net in a metered ladder bench, and the name of the source there


def ladder_bench(
    technology: Technology,
    units: int,
    rungs: int,
    start: int,
    bias: LadderBias,
    capacitance: float,
    input_current: Waveform,
    release: float,
    end: float,
    v_node: float,
    options: SimulatorOptions = DEFAULT_OPTIONS,
    step: float = 2e-4,
    metered: bool = False,
) -> str:
    """A ladder driven by a current into its line `in`, reset until `release`; times in second.

    Saves v(xladder.xrung<k>.v0) of every rung, i(vout), the output through weight -1, and i(vdd); `metered`: every
    block of LADDER_RAILS has a supply of its own, and each one's current is saved.
    """
    pins = {
        "thresh_1": bias.i_thresh_1,
        "width_1": bias.i_width_1,
        "thresh": bias.i_thresh,
        "width": bias.i_width,
        "gain": bias.i_gain,
        "vg": STRENGTH * bias.i_g,
        "tau": STRENGTH * bias.i_tau,
    }
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, technology.supply),
        Source("resetb", "v", "resetb", GROUND, ((0.0, 0.0), (0.9 * release, 0.0), (release, technology.supply))),
        Source("in", "i", "vdd", "in", input_current),
        Instance("in", ("in",), BIAS_DIODE),
        *(Source(pin, "i", "vdd", pin, current) for pin, current in pins.items()),
        *(Instance(pin, (pin,), STRONG_DIODE if pin in ("vg", "tau") else BIAS_DIODE) for pin in pins),
        Instance("ladder", ("in", *pins, "out", "resetb", "vdd"), f"{LADDER}_{rungs}_{start}"),
        *weight("neg", "out", "", "node", -units, technology, ""),
        Source("out", "v", "node", "vload", 0.0),
        Source("load", "v", "vdd", "vload", v_node),
    )
    blocks = (
        candidate_diode(technology),
        bias_diode(technology),
        strong_diode(technology),
        *ladder_blocks(technology, units, capacitance),
        ladder(technology, units, rungs, start),
    )
    circuit = Circuit("ladder bench", blocks, elements)
    rails = tuple(LADDER_RAILS.values()) if metered else ("vdd",)
    circuit = _meter_ladder(circuit, technology) if metered else circuit
    saved = " ".join(f"v(xladder.xrung{k}.v0)" for k in range(1, rungs + 1))
    supplies = " ".join(f"i({rail})" for rail in rails)
    analysis = f".tran {format_number(step)} {format_number(end)} 0e+00 {format_number(step)}"
    return format_deck(circuit, technology, options, analysis, f"{saved} i(vout) {supplies}")


def _meter_ladder(circuit: Circuit, technology: Technology) -> Circuit:
    """The ladder bench with one supply for each block of LADDER_RAILS."""
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
            case Mos(name="diode", gate="out"):
                return replace(element, source=out, bulk=out)
            case Source(kind="i", a="vdd"):
                return replace(element, a=bias)
        return element

    def rewired(block: Subcircuit) -> Subcircuit:
        added = (cand,) if block.name in (RUNG_ON, RUNG_OFF) else (cand, dpis, out)
        return replace(block, ports=(*block.ports, *added), elements=tuple(map(on_rail, block.elements)))

    blocks = (
        rewired(block) if block.name in (RUNG_ON, RUNG_OFF) or block.name.startswith(f"{LADDER}_") else block
        for block in circuit.subcircuits
    )
    supplies = (
        Source(rail.removeprefix("v"), "v", rail, GROUND, technology.supply) for rail in (cand, dpis, out, bias)
    )
    return replace(circuit, subcircuits=tuple(blocks), elements=(*map(on_rail, circuit.elements), *supplies))


def comparator_bench(
    technology: Technology, i_thresh: float, candidates: NDArray[np.float64], base: float, delta: float, timing: Timing
) -> str:
    """The upper comparator of a quantiser with its driver, always in a pulse, one candidate a frame.

    Saves v(in), the driver's gate line n, and v(half), a line that carries what is half way from retain to set.
    """
    supply, frames = technology.supply, len(candidates)
    high, low = clock_waveforms(supply, timing.closes(2)[0], frames, timing)
    pins = {"thresh": i_thresh, "base": base, "delta": delta, "half": base + 1.5 * delta}
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, supply),
        Source("in", "i", "cand", GROUND, staircase(candidates, 0.0, timing)),
        Source("clk", "v", "clk", GROUND, high),
        Source("clkb", "v", "clkb", GROUND, low),
        Source("resetb", "v", "resetb", GROUND, reset_waveform(supply, timing)),
        *(Source(pin, "i", "vdd", pin, current) for pin, current in pins.items()),
        *(Instance(pin, (pin,), BIAS_DIODE) for pin in pins),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
        Instance("upper", ("hold", "thresh", "up", "clk", "clkb", "vdd"), COMPARATOR),
        Instance("lower", ("hold", "thresh", "down", "clk", "clkb", "vdd"), COMPARATOR),
        Instance("driver", ("up", "vdd", "base", "delta", "in", "vdd", GROUND, "vdd"), DRIVER),
    )
    blocks = (
        candidate_diode(technology),
        bias_diode(technology),
        sampler(technology),
        comparator(technology),
        driver(technology),
    )
    step, end = format_number(timing.t_step / 100), format_number(timing.start + frames * timing.t_step)
    circuit = Circuit("comparator bench", blocks, elements)
    return format_deck(circuit, technology, PRECISE_OPTIONS, f".tran {step} {end} 0e+00 {step}", "v(in) v(half)")


def reference_bench(technology: Technology, end: float) -> str:
    """The current reference into a bias diode; the supply comes up within 1 ms. Saves i(vout), i(vdd)."""
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, ((0.0, 0.0), (1e-3, technology.supply))),
        Instance("ref", ("out", "vdd"), REFERENCE),
        Source("out", "v", "out", "line", 0.0),
        Instance("line", ("line",), BIAS_DIODE),
    )
    circuit = Circuit("reference bench", (reference(technology), bias_diode(technology)), elements)
    step = format_number(end / 200)
    return format_deck(
        circuit, technology, PRECISE_OPTIONS, f".tran {step} {format_number(end)} 0e+00 {step}", "i(vout) i(vdd)"
    )
