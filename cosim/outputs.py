"""What `cosim compile` writes: netlist, device models, testbench, mapping report, summary."""

import csv
import hashlib
import io
import json
import os
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from cosim.cells.blocks import BLOCKS, device_block
from cosim.circuit.deck import device_sizes
from cosim.circuit.dialects import Dialect, files_of, format_devices, format_network
from cosim.circuit.elements import Capacitor, Circuit, Mos
from cosim.design import Design
from cosim.files import writing_into
from cosim.ir.report import CUT, ZERO, MappingRow
from cosim.network.checkpoint import network_to_arrays
from cosim.simulation.exercise import Bench, format_bench
from cosim.simulation.options import DEFAULT_OPTIONS
from cosim.simulation.testbench import Timing, control_elements, input_elements, saved_vectors

EXERCISE_FRAMES = 8
MAPPING_FIELDS = ("parameter", "element", "target", "realised", "unit", "status", "note")


def write_design(design: Design, folder: Path, timing: Timing = Timing(), dialect: Dialect = "ngspice") -> list[Path]:
    """Write all files of a design for a simulator, or none: they are complete before the first takes its name.

    Raises InputError when the folder cannot be written.
    """
    rows, files = design.mapping(), files_of(dialect)
    texts = {
        files.netlist: format_netlist(design, dialect),
        files.devices: format_devices(design.technology, device_sizes(design.assembly.circuit), dialect),
        files.testbench: format_exercise(design, timing, dialect),
        "mapping.csv": format_csv(rows),
        "mapping.json": json.dumps([asdict(row) for row in rows], indent=1) + "\n",
        "design.json": json.dumps({**summarize(design, rows), "dialect": dialect}, indent=2) + "\n",
    }
    return write_texts(folder, texts)


def write_texts(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Write named texts into a folder, each by an atomic rename, after all of them are on disk."""
    with writing_into(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".partial-") as partial:
            for name, text in texts.items():
                (Path(partial) / name).write_text(text, encoding="utf-8")
            for name in texts:
                os.replace(Path(partial) / name, folder / name)
    return [folder / name for name in texts]


def format_netlist(design: Design, dialect: Dialect = "ngspice") -> str:
    """The hierarchical netlist: subcircuits only, `network` last; instantiate it in a testbench."""
    circuit = design.assembly.circuit
    return format_network(Circuit(circuit.title, circuit.subcircuits), design.technology, dialect)


def format_exercise(design: Design, timing: Timing = Timing(), dialect: Dialect = "ngspice") -> str:
    """A runnable testbench beside the netlist, with a made-up stimulus that moves every input."""
    assembly, technology = design.assembly, design.technology
    frames, width = EXERCISE_FRAMES, len(assembly.input_pins)
    inputs = np.add.outer(np.arange(frames), np.arange(width)) % 4 / 3.0
    elements = control_elements(assembly, technology, design.levels, frames, timing)
    elements += input_elements(assembly, inputs, design.levels, timing)
    end, step = timing.start + frames * timing.t_step, timing.t_max_step * timing.t_step
    title = f"testbench of {files_of(dialect).netlist}: a made-up stimulus; cosim simulate runs real data"
    bench = Bench(title, (*assembly.circuit.elements, *elements), saved_vectors(assembly), step, end)
    return format_bench(bench, technology, DEFAULT_OPTIONS, dialect)


def summarize(design: Design, rows: list[MappingRow] | None = None) -> dict[str, object]:
    """The design in figures: what it was made from, how large it is, what was lost."""
    rows = design.mapping() if rows is None else rows
    devices = list(design.assembly.circuit.flatten())
    calibration, technology = design.calibration, design.technology
    gates, capacitors = (sum(areas) for areas in zip(*block_areas(design).values(), strict=True))
    return {
        "network": network_hash(design),
        "task": design.network.task,
        "technology": technology.name,
        "calibration": calibration.fingerprint,
        "simulator_of_calibration": calibration.simulator,
        "i_unit_a": design.i_unit,
        "units_per_weight_1": calibration.units,
        "corner": technology.corner,
        "celsius": technology.celsius,
        "supply_v": technology.supply,
        "transistors": len(devices),
        "unit_devices": sum(device.m for device in devices),
        "gate_area_um2": round(gates * 1e12, 1),
        "capacitor_area_um2": round(capacitors * 1e12, 1),
        "bias_pins": len(design.assembly.bias_pins),
        "parameters": len(rows),
        "statuses": {status: sum(row.status == status for row in rows) for status in sorted({r.status for r in rows})},
        "lost": [row.parameter for row in rows if row.status in (ZERO, CUT)],
        "largest_rounding": max((abs(r.realised - r.target) for r in rows if r.unit == "1"), default=0.0),
    }


def block_areas(design: Design) -> dict[str, tuple[float, float]]:
    """Drawn gate area and capacitor area of each of BLOCKS, square metre. No wiring, no wells, no spacing."""
    gates, capacitors = dict.fromkeys(BLOCKS, 0.0), dict.fromkeys(BLOCKS, 0.0)
    for element in design.assembly.circuit.flat().elements:
        block = device_block(element.name, design.assembly.outputs)
        match element:
            case Mos():
                gates[block] += element.gate_area
            case Capacitor():
                capacitors[block] += element.value / design.technology.capacitor_density
    return {block: (gates[block], capacitors[block]) for block in BLOCKS}


def network_hash(design: Design) -> str:
    """Hash of all that a network computes with: encoding, weights, epsilons, architecture, pooling; not its history."""
    arrays, meta = network_to_arrays(replace(design.network, history={}, state_ranges={}))
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()[:16]


def format_csv(rows: list[MappingRow]) -> str:
    """The mapping report as CSV, numbers at 9 digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(MAPPING_FIELDS)
    for row in rows:
        writer.writerow([f"{value:.9g}" if isinstance(value, float) else value for value in asdict(row).values()])
    return text.getvalue()
