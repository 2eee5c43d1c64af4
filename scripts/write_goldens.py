"""Write the generated netlists of netlists/: one command, the same bytes every time.

    python scripts/write_goldens.py [folder]

tests/test_netlists.py holds the files against what the package generates today, and has ngspice run each of them.
In netlists/cells only the cells are generated: the bench around them, with its measures, is written by hand.
"""

import sys
from pathlib import Path

import numpy as np

from cosim.automata.automaton import modulo
from cosim.automata.lines import dilated_line, position_code, ring
from cosim.automata.network import network_of
from cosim.cells.average import average, average_bias
from cosim.cells.bias import bias_diode, pedestal_sink, strong_diode
from cosim.cells.clocked import clocked_schmitt, reset_inverter
from cosim.cells.converter import converter, level_diode
from cosim.cells.decision import decision
from cosim.cells.dpi import dpi, dpi_capacitance
from cosim.cells.ladder import ladder, ladder_blocks
from cosim.cells.linear import Term, linear_row
from cosim.cells.mirror import input_diode, signal_rails
from cosim.cells.quantiser import comparator, quantiser, quantiser_blocks, sampler
from cosim.cells.ratio_gate import ratio_gate
from cosim.cells.rectifier import candidate_diode, relu_diode
from cosim.cells.register import register, register_blocks
from cosim.cells.schmitt import schmitt
from cosim.cells.steering import steering_and, symbol_comparator
from cosim.cells.tau_cell import gate_charge, tau_capacitance, tau_cell, tau_cell_gated, tau_line
from cosim.cells.toggle import toggle
from cosim.cells.tree import tree, tree_source
from cosim.cells.winner import winner
from cosim.circuit.deck import device_sizes, format_circuit
from cosim.circuit.dialects.ngspice import NGSPICE
from cosim.circuit.dialects.table import DIALECTS
from cosim.circuit.elements import Circuit, Instance, Subcircuit
from cosim.circuit.waveforms import Timing
from cosim.compiler.mapping import map_parameters
from cosim.compiler.passes import compile_network
from cosim.network.layers import FirstQuadrantLayer, ReluLayer
from cosim.network.types import InputEncoding, Network, Readout, check_network
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.scale import I_UNIT
from cosim.technology.types import Technology
from cosim.units.ladder import ladder_currents, ladder_timing
from cosim.units.mingru import GATED_SHARE, tau_cell_fit
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.compile.outputs import format_exercise, format_expected, format_mapping, format_netlist

FOLDER = Path(__file__).resolve().parent.parent / "netlists"
UNITS = 8
RUNGS, START = 3, 1  # of ladder and register: a first rung, one in the middle, a last one, and both resets
TINY = "tiny_network"
SHEETS = FOLDER / "cells"
CELLS, BENCH = "* Cells, as scripts/write_goldens.py writes them:\n", "* Bench:\n"


def golden_texts() -> dict[str, str]:
    """Relative path -> text of every generated file."""
    technology = load_technology(DEFAULT_TECHNOLOGY)
    calibration = load_calibration(shipped_path(technology.name, UNITS))
    terms = [Term("a", 5, "weight 5/8 of a"), Term("b", -3, "weight -3/8 of b"), Term("c", 11, "weight 11/8 of c")]
    output = [Term("a", -7, "weight -7/8 of a"), Term("b", 2, "weight 2/8 of b")]
    capacitance = dpi_capacitance(technology, ladder_timing(Timing().t_step).tau, ladder_currents(I_UNIT).i_tau)
    gated = gate_charge(I_UNIT, UNITS, GATED_SHARE * Timing().t_step) / tau_cell_fit(calibration).swing
    cells: dict[str, tuple[Subcircuit, ...]] = {
        "mirror": (
            input_diode(technology, UNITS),
            signal_rails(technology, UNITS, calibration.mirror.trim),
            linear_row("weight_positive", terms[:1], technology, "one positive weight"),
            linear_row("weight_negative", terms[1:2], technology, "one negative weight"),
        ),
        "linear_row": (linear_row("linear_row", terms, technology, "three weights on one summing node"),),
        "readout_row": (linear_row("readout_row", output, technology, "two weights into the virtual ground"),),
        "rectifier": (relu_diode(technology, UNITS), candidate_diode(technology)),
        "bias": (bias_diode(technology), strong_diode(technology)),
        "schmitt_9t": (schmitt(technology, UNITS),),
        "schmitt_clocked": (
            clocked_schmitt(technology, UNITS),
            clocked_schmitt(technology, UNITS, on=True),
            clocked_schmitt(technology, UNITS, apart=True),
            reset_inverter(technology),
        ),
        "steering": (steering_and(technology, 2), symbol_comparator(technology, UNITS)),
        "winner": (winner(technology, 3),),
        "chip": (
            level_diode(technology, 16),
            converter(technology, 5),
            average_bias(technology),
            average(technology, 4e-12),
            winner(technology, 3),
            decision(technology, 3),
            tree(technology),
            tree_source(technology, 30),
        ),
        "dpi": (dpi(technology, UNITS, 1, capacitance), dpi(technology, UNITS, 2, capacitance)),
        "tau_cell": (
            tau_line(technology),
            tau_cell(technology, UNITS, tau_capacitance(technology, Timing().t_step, 1e-11)),
            candidate_diode(technology),
            tau_cell_gated(technology, UNITS, gated, tau_cell_fit(calibration).trim),
            tau_line(technology, rest=True),
            tau_cell_gated(technology, UNITS, gated, tau_cell_fit(calibration).trim, place="first"),
            tau_cell_gated(technology, UNITS, gated, tau_cell_fit(calibration).trim, place="next"),
            ratio_gate(technology),
        ),
        "quantiser": (*quantiser_blocks(technology), quantiser()),
        "ladder": (
            candidate_diode(technology),
            *ladder_blocks(technology, UNITS, capacitance),
            ladder(technology, UNITS, RUNGS, START),
        ),
        "toggle": (
            candidate_diode(technology),
            sampler(technology),
            comparator(technology),
            clocked_schmitt(technology, UNITS, tap=True),
            toggle(technology),
        ),
        "register": (
            sampler(technology),
            *register_blocks(technology, UNITS),
            register(technology, UNITS, RUNGS, START),
        ),
    }
    texts = {
        f"{name}.sp": format_circuit(Circuit(f"{name} on {technology.name}", blocks), technology)
        for name, blocks in cells.items()
    }
    known = {block.name: block for blocks in cells.values() for block in (*blocks, pedestal_sink(technology))}
    for path in sorted(SHEETS.glob("*.sp")):
        texts[f"cells/{path.name}"] = with_cells(path.read_text(encoding="utf-8"), known, technology)
    designs = {name: compile_network(network, technology, calibration) for name, network in networks().items()}
    for name, design in designs.items():
        texts[f"{name}/network.sp"] = format_netlist(design)
        texts[f"{name}/testbench.sp"] = format_exercise(design)
        texts[f"{name}/expected.csv"] = format_expected(design)
        texts[f"{name}/devices.lib"] = NGSPICE.devices(technology, device_sizes(design.assembly.circuit))
        texts[f"{name}/mapping.csv"] = format_mapping(map_parameters(design))
    design = designs[TINY]
    for dialect in DIALECTS[1:]:
        folder, files = f"{TINY}/{dialect.name}", dialect.files
        texts[f"{folder}/{files.netlist}"] = format_netlist(design, dialect)
        texts[f"{folder}/{files.testbench}"] = format_exercise(design, dialect=dialect)
        texts[f"{folder}/expected.csv"] = format_expected(design, dialect=dialect)
        sizes = device_sizes(design.assembly.circuit)
        texts[f"{folder}/{files.devices}"] = dialect.devices(technology, sizes)
    return texts


def with_cells(text: str, known: dict[str, Subcircuit], technology: Technology) -> str:
    """A netlist of netlists/cells with the cells of today that its bench instantiates; known: name -> cell."""
    head, _, rest = text.partition(CELLS)
    bench = rest.partition(BENCH)[2]
    words = (line.split() for line in bench.replace("\n+", "").splitlines() if line.startswith("x"))
    needed: dict[str, Subcircuit] = {}

    def need(name: str) -> None:
        for element in known[name].elements:
            if isinstance(element, Instance):
                need(element.subcircuit)
        needed.setdefault(name, known[name])

    for _, *_, name in words:
        need(name)
    cells = format_circuit(Circuit("", tuple(needed.values())), technology).partition("\n\n")[2]
    return f"{head}{CELLS}{cells}{BENCH}{bench}"


def networks() -> dict[str, Network]:
    """By the name of their folder."""
    return {
        TINY: tiny_network(),
        "automaton": network_of(modulo(3), "sum of digits modulo 3"),
        "ring": ring(3),
        "dilated_line": dilated_line(2, 1),
        "position_code": position_code(3),
    }


def tiny_network() -> Network:
    """Two inputs, three rectified hidden units, two memory cells, three outputs; weights of distinct values."""
    hidden = ReluLayer(
        "hidden", ("input",), np.array([[1.25, -0.5], [0.375, 0.875], [-1.0, 1.5]]), np.array([0.125, 0, -0.25])
    )
    cells = FirstQuadrantLayer(
        "layer0",
        ("hidden",),
        np.array([[0.625, 0.75, -1.125], [-0.875, 1.375, 0.25]]),
        np.array([0.25, -0.125]),
        beta_lo=np.array([0.3, 0.15]),
        beta_hi=np.array([0.58, 0.55]),
        alpha=np.ones(2),
    )
    readout = Readout(
        ("layer0",), np.array([[1.0, -0.625], [-0.375, 1.125], [0.5, 0.75]]), np.array([0.125, 0.25, -0.5])
    )
    return check_network(Network(InputEncoding(np.zeros(2), np.ones(2)), (hidden, cells), readout))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, text in golden_texts().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
