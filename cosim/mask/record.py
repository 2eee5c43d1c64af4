"""Tables that `cosim layout` keeps of a drawing as well as the GDS: areas by block, pins, wires, units."""

import csv
import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.seal import read_sealed_text, seal_text
from cosim.base.text import format_csv, is_file, listed, parsing, shown_name
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Mos, block_of
from cosim.compiler.design import Design, block_areas, changes_hash, network_hash
from cosim.mask.blocks import heights, nanometres, switch_offset, width
from cosim.mask.checks import CheckResult
from cosim.mask.chip import DrawnChip, drawing_of
from cosim.mask.extract import Parasitic
from cosim.mask.gds import ExtractedLayout, label_of
from cosim.mask.rows import flipped
from cosim.technology.types import DrawingRules

WIRES, POSITIONS = "wires.csv", "positions.csv"
_HEADER, _PLACES = ("net", "other", "kind", "farad"), ("device", "x_um", "y_um")  # names first, then _QUANTITIES
_COUPLINGS = 40  # pairs of nets in the table of couplings
_QUANTITIES = ("farad", "x_um", "y_um")
_AGAIN = "draw this network again with cosim layout"


def table(fields: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Format rows of figures of a drawn mask as CSV, numbers at 6 digits."""
    return format_csv(fields, rows, 6)


def area_rows(chip: DrawnChip, design: Design) -> list[tuple[str, float, float, float]]:
    """Return (block, gate area, estimated capacitor area, drawn area of rows and plates), um2, for each block."""
    drawn: dict[str, float] = defaultdict(float)
    for band in chip.bands:
        for row in band.rows:
            for tile in row.tiles:
                if not tile.is_head:
                    wide = width(tile.block, drawing_of(design.technology))
                    drawn[block_of(tile.block.lower.part)] += wide * row.top * 1e-6
    for plate in chip.plates:
        drawn[block_of(plate.capacitor.part)] += plate.farad_area * 1e-6
    estimate = block_areas(design)
    return [(block, gates * 1e12, caps * 1e12, drawn[block]) for block, (gates, caps) in estimate.items()]


def pin_rows(chip: DrawnChip) -> list[tuple[int, str, str, float, float]]:
    """Return (number from the left, name, metal layer, x, y) of each pin's middle, um."""
    return [
        (k, label_of(pin.net), pin.layer, (x1 + x2) / 2000, (y1 + y2) / 2000)
        for k, pin in enumerate(chip.pins)
        for x1, y1, x2, y2 in [pin.box]
    ]


def position_rows(chip: DrawnChip, drawing: DrawingRules) -> list[tuple[str, float, float]]:
    """Return (name, x, y) of each transistor, um from the lower left corner of the macro: the middle of its units."""
    found: list[tuple[str, float, float]] = []
    for band in chip.bands:
        for k, row in enumerate(band.rows):
            for tile in row.tiles:
                if tile.is_head:
                    continue
                block, at = tile.block, heights(tile.block, drawing)
                left, wide = tile.right - width(block, drawing), width(block, drawing)
                places = [(block.lower, left + wide / 2, at.gate, at.gate_top)]
                if block.upper is not None:
                    places.append((block.upper, left + wide / 2, at.upper, at.drain))
                for mos, low in zip(block.over, at.over, strict=False):
                    x = left + switch_offset(block, mos, drawing) + nanometres(mos.w) / 2
                    places.append((mos, x, low, low + nanometres(mos.l)))
                for mos, x, low, high in places:
                    y = sum(flipped(low, high, band.y, k)) / 2
                    found.append((mos.name, (x - chip.box[0]) / 1000, (y - chip.box[1]) / 1000))
    return sorted(found)


def format_positions(chip: DrawnChip, design: Design) -> bytes:
    """Format the places of a drawn mask's transistors as the table that `--gradient` reads.

    It stands under the line that names its network, above its checksum.
    """
    return _sealed(table(_PLACES, position_rows(chip, drawing_of(design.technology))), design)


def read_positions(folder: Path, design: Design) -> dict[str, tuple[float, float]]:
    """Return the place of each transistor, metres from the lower left corner, as `format_positions` wrote it.

    Raises InputError where the folder has none of this network on this technology, or not of all its transistors, or
    where the table is damaged.
    """
    rows = _rows(folder, POSITIONS, "--gradient", _PLACES, design)
    found = {device: (1e-6 * x, 1e-6 * y) for (device,), (x, y) in rows}
    missing = sorted({mos.name for mos in design.flat.elements if isinstance(mos, Mos)} - found.keys())
    if missing:
        raise InputError(
            f"{folder / POSITIONS}: must have the place of {missing[0]} and of {len(missing) - 1} more transistors; "
            "draw the network with the options that it is compiled with"
        )
    return found


def format_wires(parasitics: Iterable[Parasitic], design: Design) -> bytes:
    """Format the wires extracted from a drawn mask as the table that `--extracted` reads.

    It stands under the line that names its network, above its checksum.
    """
    return _sealed(table(_HEADER, ((one.a, one.b, one.kind, one.farad) for one in parasitics)), design)


def read_wires(folder: Path, design: Design) -> list[Parasitic]:
    """Read the capacitances of a layout's wires from the table that `format_wires` wrote.

    Raises InputError where the folder holds no wires of this network on this technology, or the table is damaged.
    """
    rows = _rows(folder, WIRES, "--extracted", _HEADER, design)
    # a junction is less than what the models assume where transistors share a diffusion
    if any(farad < 0 for (_, _, kind), (farad,) in rows if kind != "junction"):
        raise InputError(f"{folder / WIRES}: farad must be 0 or more in every row; {_AGAIN}")
    return [Parasitic(net, other, kind, farad) for (net, other, kind), (farad,) in rows]


def _whose(design: Design) -> str:
    changed = f" with overrides {digest}" if (digest := changes_hash(design)) else ""
    return f"# {network_hash(design)} on {design.technology.name}{changed}"


def _sealed(rows: str, design: Design) -> bytes:
    return seal_text(f"{_whose(design)}\n{rows}")


def _rows(
    folder: Path, name: str, option: str, fields: tuple[str, ...], design: Design
) -> list[tuple[list[str], list[float]]]:
    """Read back a table of what was drawn on a mask or extracted from it: the texts and the numbers of each row.

    It stands under the line of `_whose`. Those of `fields` that are quantities are finite numbers. Raises InputError
    with `option` where there is no such table, and with the file where it is damaged, of another network, or of other
    columns.
    """
    path = folder / name
    if not is_file(path):
        raise InputError(f"{option} {folder}: there is no {name} in it; make it with cosim layout")
    first, _, rest = read_sealed_text(path, _AGAIN).partition("\n")
    if first != (wanted := _whose(design)):
        raise InputError(
            f"{path}: its {Path(name).stem} must be those of {wanted[2:]}, not of {shown_name(first[2:])}; {_AGAIN}"
        )
    texts = sum(field not in _QUANTITIES for field in fields)
    with parsing(str(path), f"a table of the columns {', '.join(fields)}", _AGAIN):
        header, *rows = csv.reader(io.StringIO(rest), strict=True)
        if tuple(header) != fields or any(len(row) != len(fields) for row in rows):
            raise ValueError("a row has other columns")
        found = [(row[:texts], list(map(float, row[texts:]))) for row in rows]
        if not all(math.isfinite(number) for _, numbers in found for number in numbers):
            raise ValueError("a number is not finite")
    return found


def coupling_rows(parasitics: Iterable[Parasitic]) -> list[tuple[str, str, float, float]]:
    """Return the net pairs whose wires in the mask couple most: net, other net, fF, share of the first net's total."""
    total: dict[str, float] = defaultdict(float)
    pairs: dict[tuple[str, str], float] = defaultdict(float)
    for one in parasitics:
        for net, other in ((one.a, one.b), (one.b, one.a)):
            total[net] += one.farad
            if not {net, other} & {"vss", "vdd"}:
                pairs[net, other] += one.farad
    found = [(net, other, farad * 1e15, farad / total[net]) for (net, other), farad in pairs.items() if total[net] > 0]
    return sorted(found, key=lambda row: (-row[3], row[0], row[1]))[:_COUPLINGS]


def check_units(drawn: ExtractedLayout, schematic: str) -> CheckResult:
    """Compare the unit devices traced in the layout with the LVS netlist: nets, model, width and length."""
    wanted: Counter[tuple[object, ...]] = Counter()
    for line in schematic.splitlines():
        if line.startswith("m"):
            _, drain, gate, source, bulk, model, w, l = line.split()  # noqa: E741 - a length
            sizes = (round(float(size[2:-1]) * 1000) for size in (w, l))
            wanted[(*sorted((drain, source)), gate, bulk, model, *sizes)] += 1
    for unit in drawn.units:
        drain, gate, source, bulk = unit.nets
        wanted[(*sorted((drain, source)), gate, bulk, unit.model, unit.w, unit.l)] -= 1
    missing, extra = (+wanted).total(), (-wanted).total()
    said = "each is in both" if not missing and not extra else f"{missing} only in the netlist, {extra} only drawn"
    return CheckResult("units", not missing and not extra, f"{len(drawn.units)} units, {said}")


SMALLEST = 5e-17  # F; what is smaller between two nets is put to ground at both


def nets_of(circuit: Circuit) -> dict[str, str]:
    """Return name in the layout -> net in the flat circuit, for each net."""
    nets = dict.fromkeys((GROUND, "vdd"))
    for element in circuit.elements:
        match element:
            case Mos():
                nets |= dict.fromkeys((element.drain, element.gate, element.source, element.bulk))
            case Capacitor():
                nets |= dict.fromkeys((element.a, element.b))
    return {label_of(net): net for net in nets}


def wire_capacitors(parasitics: Iterable[Parasitic], names: dict[str, str]) -> list[Capacitor]:
    """Return the capacitors of a layout's wires: one for each pair of nets, and one from each net to ground.

    names: the circuit's name of each net of the layout. A pair with a supply or below SMALLEST becomes capacitance to
    ground.
    """
    pairs: dict[tuple[str, str], float] = defaultdict(float)
    for one in parasitics:
        pairs[names[one.a], names[one.b]] += one.farad
    ground: dict[str, float] = defaultdict(float)
    kept: list[tuple[str, str, float]] = []
    for (a, b), farad in pairs.items():
        rails = [net for net in (a, b) if net in (GROUND, "vdd")]
        if rails or farad < SMALLEST:
            for net in (a, b):
                if net not in (GROUND, "vdd"):
                    ground[net] += farad
        else:
            kept.append((a, b, farad))
    kept += [(net, GROUND, farad) for net, farad in ground.items() if farad > 0]
    return [Capacitor(f"wire{k}", a, b, farad) for k, (a, b, farad) in enumerate(sorted(kept))]


def extracted(design: Design, folder: Path) -> Design:
    """Return the design with a flat circuit that contains the capacitances of the wires of its layout.

    folder: of `cosim layout`. Raises InputError if the wires there belong to another design.
    """
    found, names = read_wires(folder, design), nets_of(design.flat)
    unknown = sorted({net for one in found for net in (one.a, one.b)} - names.keys())
    if unknown:
        raise InputError(
            f"{folder}: its wires must be of nets of this circuit, not of {listed(unknown)}; "
            "draw it again with the options that it is compiled with"
        )
    circuit = replace(design.flat, elements=(*design.flat.elements, *wire_capacitors(found, names)))
    return replace(design, assembly=replace(design.assembly, circuit=circuit))
