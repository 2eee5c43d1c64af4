"""The page of a compiled design, and the writing of all its files: netlist, testbench, reports and schematic."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cosim.base.quantities import format_quantity
from cosim.base.store import write_texts
from cosim.cells.assembly import Assembly
from cosim.circuit.dialects.dialect import Dialect
from cosim.circuit.dialects.ngspice import NGSPICE
from cosim.circuit.elements import Mos
from cosim.compiler.design import Condition, Design, block_areas
from cosim.compiler.mapping import CUT, ZERO, map_parameters
from cosim.compiler.overrides import changed_pins, changed_transistors
from cosim.results.html import Picture
from cosim.results.page import Blocks, Fold, Grid, Page, Section, Table
from cosim.units.kind import MappingRow
from cosim.verbs.automaton.section import format_automaton
from cosim.verbs.compile.cross_probing import (
    cross_probe,
    lines_of,
    netlist_section,
    schematic_place,
    schematics_by_block,
)
from cosim.verbs.compile.device_sizes import HEAD, device_rows
from cosim.verbs.compile.margins import Margins, margins_section
from cosim.verbs.compile.network_figure import draw_network
from cosim.verbs.compile.outputs import Exercise, format_design, summarize
from cosim.verbs.compile.schematics import drawn_schematics, schematics_of
from cosim.verbs.provenance import circuit_section, origins, subject_of
from cosim.verbs.words import say_conditions, say_constant

SCHEMATIC = "network.svg"
_NAMED = 50  # lost parameters
_CAPTIONED = 4  # subcircuits that a schematic's caption names
MOST = 4000  # rows of a page; the largest errors are kept, and mapping.csv has all
_WIDTH = re.compile(rb'width="([\d.]+)')
_READABLE = 0.72  # pixels that a point of a schematic needs
_NETWORK = (
    "Inputs, rows of mirrors, cells and readout from left to right. A row lists what it reads and how many unit "
    "devices carry it. In network.svg, which cosim compile writes, a wire or a box that is pointed at tells "
    "its figures."
)
_CELLS = (
    "As they are built in {}: beside each transistor its W/L in um, and how many are in parallel. Two transistors on "
    "one gate are a self-cascode. A box is a block whose devices are in the table below; rows of weights differ from "
    "node to node, and the schematic of the network shows them."
)
_OVERRIDDEN = (
    "W/L of transistors with the number in parallel, and currents. What the parameters became, and the calibration of "
    "the cells, are those of the circuit as compiled."
)
_EDITED = (
    "What the parameters became, and the calibration of the cells, are those of the circuit as compiled. The "
    "behavioral equations follow edits of size and bias; of other edits they know nothing."
)
_MAPPING = (
    "A weight: wanted, and the ratio of unit devices that was built. A threshold or level: the current wanted at the "
    "cell, and the bias current on the pin that makes it."
)


def write_design(
    design: Design,
    folder: Path,
    exercise: Exercise = Exercise(),
    dialect: Dialect = NGSPICE,
    say: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Write the files of a design for one simulator, and the picture SCHEMATIC; return their paths.

    All files are complete before the first gets its name. say: called with a line about slow steps. Raises InputError
    when the folder cannot be written.
    """
    texts = format_design(design, exercise, dialect, say)
    return write_texts(folder, {**texts, SCHEMATIC: draw_network(design)})


def design_page(design: Design, condition: Condition | None = None, margins: Margins | None = None) -> Page:
    """Return the page of a compiled network: figures, schematic, margins if given, areas, losses, mapping and cells."""
    rows, subject, there = map_parameters(design), subject_of(design), (condition or design.nominal).technology
    lost, summary = [row for row in rows if row.status in (ZERO, CUT)], summarize(design, condition)
    inside = format_inside(design)
    sections = {
        "The automaton": format_automaton(design.network),
        "The network": inside.pop("The network"),
        **({} if margins is None else {"How far decisions are from their thresholds": margins_section(margins)}),
        "Area by block": (_areas(design),),
        **_changes(design),
        "What was lost": (*_say_unbuilt(design, summary), *_format_lost(lost)),
    }
    kept = f"all {len(rows)} parameters kept" if not lost else f"{len(lost)} of {len(rows)} parameters lost or cut"
    page = Page(
        verb="compile",
        subject=subject,
        title=f"{subject.name} on {there.name}: {summary['transistors']} transistors, {kept}",
        lead=f"{there.name}, {say_conditions(there)}. Nothing was simulated.",
        cards=_cards(design, summary, lost),
        sections=(
            *(Section(name, blocks) for name, blocks in sections.items()),
            *(Section(name, blocks, detail=True) for name, blocks in inside.items()),
            circuit_section(design),
        ),
        provenance=origins(design),
    )
    return cross_probe(page, design)


def _cards(design: Design, summary: Mapping[str, Any], lost: list[MappingRow]) -> tuple[tuple[str, str], ...]:
    gates, capacitors = summary["gate_area_um2"], summary["capacitor_area_um2"]
    statuses = ", ".join(f"{count} {status}" for status, count in summary["statuses"].items())
    return (
        (f"{summary['transistors']}", f"transistors of {summary['unit_devices']} unit devices"),
        (f"{gates:.0f} um2", f"of gates, estimated; capacitors {capacitors:.0f} um2"),
        (f"{summary['parameters']}", f"learned parameters: {statuses}"),
        (f"{len(lost)}", "of them lost or cut"),
        (f"{summary['bias_pins']}", "bias pins"),
        (format_quantity(design.i_unit, "A"), "per software 1.0"),
    )


def _areas(design: Design) -> Table:
    """Return a table of the drawn area of each block: its transistors and capacitors, not its wires."""
    areas = block_areas(design)
    total = sum(gates for gates, _ in areas.values())
    rows = tuple(
        (block, f"{1e12 * gates:.0f}", f"{100 * gates / total:.1f} %", f"{1e12 * capacitors:.0f}" if capacitors else "")
        for block, (gates, capacitors) in areas.items()
    )
    return Table(("block", "gates, um2", "share", "capacitors, um2"), rows, (1, 2, 3))


def _changes(design: Design) -> dict[str, Blocks]:
    """Return the section on what a designer changed, heading -> blocks; empty for a circuit as compiled."""
    if design.settings.netlist is not None:
        return {f"What {design.settings.netlist.name} changes": _edited(design)}
    if design.compiled is None:
        return {}
    return {"What --overrides change": _overridden(design.compiled, design.assembly)}


def _edited(design: Design) -> Blocks:
    """Return a table of the differences between a compiled circuit and its edited netlist."""
    if not design.edits:
        return ("The netlist is the circuit as compiled.",)
    note = f" These are {MOST} of {len(design.edits)}." if len(design.edits) > MOST else ""
    rows = tuple((one.block, one.element, str(one.line or ""), one.what, one.before, one.after) for one in design.edits)
    columns = ("subcircuit", "element", "line", "what", "compiled", "edited")
    return (f"{_EDITED}{note}", Table(columns, rows[:MOST], (2,), tall=True, search=len(rows) > 12))


def _overridden(compiled: Assembly, changed: Assembly) -> Blocks:
    """Return a table of what overrides change of a compiled circuit: transistors, and the currents of bias pins."""

    def size(mos: Mos) -> str:
        return f"{mos.m} x {1e6 * mos.w:g}/{1e6 * mos.l:g} um"

    transistors = changed_transistors(compiled, changed).items()
    pins = changed_pins(compiled, changed).items()
    rows = (
        *((name, mos.role or "", size(mos), size(now)) for name, (mos, now) in transistors),
        *((pin, "bias pin", format_quantity(one, "A", 4), format_quantity(now, "A", 4)) for pin, (one, now) in pins),
    )
    note = f" These are {MOST} of {len(rows)}." if len(rows) > MOST else ""
    table = Table(("transistor or pin", "role", "compiled", "changed"), rows[:MOST], tall=True, search=len(rows) > 12)
    return (f"{_OVERRIDDEN}{note}", table)


def _say_unbuilt(design: Design, summary: Mapping[str, Any]) -> Blocks:
    """Return sentences on the cells that were left out, and on zero weights that the mapping does not list."""
    said, zeros = say_constant(design.graph.left_out.states), summary.get("zero_weights")
    return (
        *((f"{said}. Nothing of it is built: its constant is in the biases of what reads it.",) if said else ()),
        *((f"{zeros} weights are 0, and have no row in the mapping.",) if zeros else ()),
    )


def _format_lost(lost: list[MappingRow]) -> Blocks:
    rows = tuple((row.parameter, f"{row.target:.6g}", f"{row.realised:.6g}", row.status) for row in lost[:_NAMED])
    if not rows:
        return ("No weight rounds to zero, and none is cut.",)
    table = Table(("parameter", "wanted", "built", "status"), rows, (1, 2), tall=len(rows) > 12)
    return (table, f"And {len(lost) - _NAMED} more, in mapping.csv.") if len(lost) > _NAMED else (table,)


def format_inside(design: Design) -> dict[str, Blocks]:
    """Return sections of a design's page, heading -> blocks: the network's picture, parameters, cells and netlist."""
    return {
        "The network": (picture_network(design),),
        "Every parameter and its transistor": format_mapping(map_parameters(design)),
        **format_cells(design),
    }


def format_cells(design: Design) -> dict[str, Blocks]:
    """Return the sections of a page to which names of cells and transistors lead, heading -> blocks."""
    return {"Cells": schematics_section(design), "The netlist": netlist_section(design)}


def picture_network(design: Design) -> Picture:
    """Return a picture of the whole compiled network, which the reader can enlarge."""
    drawing = draw_network(design).encode()
    return Picture("svg+xml", drawing, "Schematic of the whole network.", _NETWORK, _width(drawing), zoom=True)


def format_mapping(rows: Sequence[MappingRow]) -> Blocks:
    """Return a table of parameters: transistor or pin, wanted and built value; the MOST rows of largest error."""
    shown = rows
    if len(rows) > MOST:
        kept = sorted(range(len(rows)), key=lambda k: (-abs(_weight_error(rows[k])), k))[:MOST]
        shown = [rows[k] for k in sorted(kept)]
    note = f"{len(shown)} parameters" if shown is rows else f"the {MOST} of {len(rows)} with the largest errors"
    head = ("parameter", "transistor or pin", "wanted", "built", "error", "status", "note")
    table = Table(head, tuple(map(_format_row, shown)), (2, 3, 4), tall=True, search=True)
    return _MAPPING, Fold(note, table, unfolded=True)


def schematics_section(design: Design) -> Blocks:
    """Return the schematics of the cells that a network uses, and a table of the devices of every block."""
    circuit, lines, drawn = (
        design.assembly.circuit,
        lines_of(design),
        schematics_of(design.graph, design.assembly.circuit),
    )
    pictures = (
        Picture(
            "svg+xml",
            drawn[words],
            f"Schematic. {words}.",
            f"{words}{_say_lines(design, name)}",
            round(_READABLE * _width(drawn[words])),
            place=schematic_place(name),
        )
        for name, words in drawn_schematics(design.graph).items()
    )
    rows = ((*row[:2], lines.say(*row[:2]), *row[2:]) for row in device_rows(circuit))
    table = Table((*HEAD[:2], "line", *HEAD[2:]), tuple(rows), (4, 5, 6), tall=True, search=True)
    return _CELLS.format(design.technology.name), Grid(tuple(pictures)), Fold("Every block and its devices", table)


def _say_lines(design: Design, schematic: str) -> str:
    """Return words for a caption with the lines of the subcircuits that a schematic shows, if the page has lines."""
    lines = lines_of(design)
    blocks = [block for block, name in schematics_by_block(design).items() if name == schematic]
    if not lines.shown or not blocks:
        return ""
    more = f" and {len(blocks) - _CAPTIONED} more" if len(blocks) > _CAPTIONED else ""
    named = ", ".join(f"{block} {lines.say(block)}" for block in blocks[:_CAPTIONED])
    return f". In the netlist: {named}{more}."


def _width(drawing: bytes) -> int:
    found = _WIDTH.search(drawing)
    assert found is not None
    return round(float(found[1]))


def _weight_error(row: MappingRow) -> float:
    """Return realised minus target value of a weight; 0 for a bias current, which has another target: its threshold."""
    return row.realised - row.target if row.unit == "1" else 0.0


def _format_row(row: MappingRow) -> tuple[str, ...]:
    error = f"{difference:+.3g}" if (difference := _weight_error(row)) else "0" * (row.unit == "1")
    numbers = (_number(value, row.unit) for value in (row.target, row.realised))
    return row.parameter, row.element, *numbers, error, row.status, row.note


def _number(value: float, unit: str) -> str:
    return f"{value:.6g}" if unit == "1" else format_quantity(value, unit, 4)
