"""Bench of the ladder: a current into its line `in`, a supply for all of it or one for each block."""

from dataclasses import dataclass, replace

from cosim.cells.benches import bias_lines, output_load, supply_of
from cosim.cells.bias import STRENGTH, bias_diode, strong_diode
from cosim.cells.dpi import DPI
from cosim.cells.ladder import LADDER, RUNG_OFF, RUNG_ON, LadderBias, ladder, ladder_blocks
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.cells.schmitt import DECISION_NODE
from cosim.circuit.bench import Bench, Current, Tran, Voltage
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Mos, Source, Subcircuit
from cosim.circuit.waveforms import Waveform
from cosim.technology.types import Technology

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
    """Inputs of a ladder cell's bench: its rungs and first level, `start`, and what it gets, in A and F; times in s.

    It is reset until `release`, and run to `end` in steps of at most `step`.
    """

    rungs: int
    start: int
    bias: LadderBias
    capacitance: float
    i_in: Waveform
    release: float
    end: float
    step: float = 2e-4


def rung_nets(rungs: int) -> tuple[str, ...]:
    """Return the decision nodes of every rung of a ladder cell."""
    return tuple(f"xladder.xrung{k}.{DECISION_NODE}" for k in range(1, rungs + 1))


def ladder_bench(technology: Technology, units: int, drive: LadderDrive, v_node: float) -> Bench:
    """Return a bench that tests a ladder cell.

    Saves `rung_nets`, and the currents through `out`, the output through weight -1, and the supply `dd`.
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
        ladder(technology, units, drive.rungs, drive.start),
    )
    circuit = Circuit("ladder bench", blocks, elements)
    probes = (*map(Voltage, rung_nets(drive.rungs)), Current("out"), Current("dd"))
    return Bench(circuit, technology, Tran(drive.step, drive.end), probes)


def meter_ladder(bench: Bench) -> Bench:
    """Return the ladder cell's bench with one supply for each block of LADDER_RAILS, each one's current saved."""
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
