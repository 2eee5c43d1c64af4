"""Sections that show the inside of a compiled network: its schematic, its cells, every parameter's transistor."""

import re
from collections.abc import Sequence

from cosim.base.quantities import format_quantity
from cosim.compiler.design import Design
from cosim.compiler.mapping import MappingRow, map_parameters
from cosim.results.html import Picture
from cosim.results.page import Blocks, Fold, Grid, Table
from cosim.verbs.compile.device_sizes import HEAD, device_rows
from cosim.verbs.compile.network_figure import draw_network
from cosim.verbs.compile.schematics import schematics_of

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
_MAPPING = (
    "A weight: wanted, and the ratio of unit devices that was built. A threshold or level: the current wanted at the "
    "cell, and the bias current on the pin that makes it."
)


def format_inside(design: Design) -> dict[str, Blocks]:
    """Return the sections of a page: heading -> blocks."""
    return {
        "The network": (picture_network(design),),
        "Every parameter and its transistor": format_mapping(map_parameters(design)),
    }


def picture_network(design: Design) -> Picture:
    """Return a picture of the whole network, which can be shown as large as asked for."""
    drawing = draw_network(design).encode()
    return Picture("svg+xml", drawing, "Schematic of the whole network.", _NETWORK, _width(drawing), zoom=True)


def format_mapping(rows: Sequence[MappingRow]) -> Blocks:
    """Return a table of every parameter, its transistor or pin, what was wanted and what is built."""
    shown = rows
    if len(rows) > MOST:
        kept = sorted(range(len(rows)), key=lambda k: (-abs(_weight_error(rows[k])), k))[:MOST]
        shown = [rows[k] for k in sorted(kept)]
    note = f"{len(shown)} parameters" if shown is rows else f"the {MOST} of {len(rows)} with the largest errors"
    head = ("parameter", "transistor or pin", "wanted", "built", "error", "status", "note")
    table = Table(head, tuple(map(_format_row, shown)), (2, 3, 4), tall=True, search=True)
    return _MAPPING, Fold(note, table, unfolded=True)


def schematics_section(design: Design) -> Blocks:
    """Return schematics of the cells that a network is built from, and every device of every block."""
    circuit = design.assembly.circuit
    pictures = (
        Picture("svg+xml", drawing, f"Schematic. {name}.", name, round(_READABLE * _width(drawing)))
        for name, drawing in schematics_of(design.graph, circuit).items()
    )
    table = Table(HEAD, tuple(device_rows(circuit)), (3, 4, 5), tall=True, search=True)
    return _CELLS.format(design.technology.name), Grid(tuple(pictures)), Fold("Every block and its devices", table)


def _width(drawing: bytes) -> int:
    found = _WIDTH.search(drawing)
    assert found is not None
    return round(float(found[1]))


def _weight_error(row: MappingRow) -> float:
    """Return a weight's realised minus its target; 0 for a bias current, which is no measure of its threshold."""
    return row.realised - row.target if row.unit == "1" else 0.0


def _format_row(row: MappingRow) -> tuple[str, ...]:
    error = f"{difference:+.3g}" if (difference := _weight_error(row)) else "0" * (row.unit == "1")
    numbers = (_number(value, row.unit) for value in (row.target, row.realised))
    return row.parameter, row.element, *numbers, error, row.status, row.note


def _number(value: float, unit: str) -> str:
    return f"{value:.6g}" if unit == "1" else format_quantity(value, unit, 4)
