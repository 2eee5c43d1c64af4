"""The files that `cosim compile` writes: a design's netlist, its schematic, and the page that shows what was made."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cosim.base.quantities import format_quantity
from cosim.base.store import write_texts
from cosim.circuit.dialects.dialect import Dialect
from cosim.circuit.dialects.ngspice import NGSPICE
from cosim.compiler.design import Condition, Design, block_areas
from cosim.compiler.mapping import CUT, ZERO, MappingRow, map_parameters
from cosim.results.page import Blocks, Facts, Page, Section, Table
from cosim.verbs.automaton.section import format_automaton
from cosim.verbs.compile.inside import format_inside, schematics_section
from cosim.verbs.compile.margins import Margins, margins_section
from cosim.verbs.compile.network_figure import draw_network
from cosim.verbs.compile.outputs import Exercise, format_design, summarize
from cosim.verbs.provenance import circuit_facts, origins, subject_of
from cosim.verbs.words import say_conditions, say_constant, worded

SCHEMATIC = "network.svg"
_NAMED = 50  # lost parameters


def write_design(
    design: Design,
    folder: Path,
    exercise: Exercise = Exercise(),
    dialect: Dialect = NGSPICE,
    say: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Write all files of a design for a simulator, with `SCHEMATIC`, or none: they are complete before the first takes
    its name. `say` as in `format_design`. Raises InputError when the folder cannot be written.
    """
    texts = format_design(design, exercise, dialect, say)
    return write_texts(folder, {**texts, SCHEMATIC: draw_network(design)})


def design_page(design: Design, condition: Condition | None = None, margins: Margins | None = None) -> Page:
    """Return the page of a compiled network: figures, schematic, margins where they were counted, areas, what was lost,
    mapping, cells."""
    rows, subject, there = map_parameters(design), subject_of(design), (condition or design.nominal).technology
    lost, summary = [row for row in rows if row.status in (ZERO, CUT)], summarize(design, condition)
    inside = format_inside(design)
    sections = {
        "The automaton": format_automaton(design.network),
        "The network": inside.pop("The network"),
        **({} if margins is None else {"How far decisions are from their thresholds": margins_section(margins)}),
        "Area by block": (_areas(design),),
        "What was lost": (*_say_unbuilt(design, summary), *_format_lost(lost)),
    }
    details = {
        **inside,
        "Cells": schematics_section(design),
        "The circuit": (Facts(tuple(worded(circuit_facts(design)))),),
    }
    kept = f"all {len(rows)} parameters kept" if not lost else f"{len(lost)} of {len(rows)} parameters lost or cut"
    return Page(
        verb="compile",
        subject=subject,
        title=f"{subject.name} on {there.name}: {summary['transistors']} transistors, {kept}",
        lead=f"{there.name}, {say_conditions(there)}. Nothing was simulated.",
        cards=_cards(design, summary, lost),
        sections=(
            *(Section(name, blocks) for name, blocks in sections.items()),
            *(Section(name, blocks, detail=True) for name, blocks in details.items()),
        ),
        provenance=origins(design),
    )


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
    """Return a table of drawn area by block, which is where transistors are, not wires."""
    areas = block_areas(design)
    total = sum(gates for gates, _ in areas.values())
    rows = tuple(
        (block, f"{1e12 * gates:.0f}", f"{100 * gates / total:.1f} %", f"{1e12 * capacitors:.0f}" if capacitors else "")
        for block, (gates, capacitors) in areas.items()
    )
    return Table(("block", "gates, um2", "share", "capacitors, um2"), rows, (1, 2, 3))


def _say_unbuilt(design: Design, summary: Mapping[str, Any]) -> Blocks:
    """Return sentences on cells that are left out, and on weights of 0 that are too many for the mapping."""
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
