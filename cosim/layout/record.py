"""What `cosim layout` keeps of a drawing beside the GDS, as tables: areas by block, pins, wires, units."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from cosim.cells.blocks import block_of
from cosim.design import Design
from cosim.errors import InputError
from cosim.files.read import is_file
from cosim.layout.checks import Checked
from cosim.layout.chip import Chip, drawing_of
from cosim.layout.connect import Drawn
from cosim.layout.extract import Parasitic
from cosim.layout.gds import label_of
from cosim.layout.tiles import width
from cosim.outputs import block_areas, network_hash

WIRES = "wires.csv"
_HEADER = ("net", "other", "kind", "farad")


def table(fields: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """CSV, numbers at 6 digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    writer.writerows([f"{one:.6g}" if isinstance(one, float) else one for one in row] for row in rows)
    return text.getvalue()


def area_rows(chip: Chip, design: Design) -> list[tuple[str, float, float, float]]:
    """Block, um2 of gates, um2 of capacitors as estimated, and um2 of rows and top plates as drawn."""
    drawn: dict[str, float] = defaultdict(float)
    for band in chip.bands:
        for row in band.rows:
            for placed in row.placed:
                if not placed.is_head:
                    wide = width(placed.block, drawing_of(design.technology))
                    drawn[block_of(placed.block.lower.part)] += wide * row.top * 1e-6
    for plate in chip.plates:
        drawn[block_of(plate.capacitor.part)] += plate.farad_area * 1e-6
    estimate = block_areas(design)
    return [(block, gates * 1e12, caps * 1e12, drawn[block]) for block, (gates, caps) in estimate.items()]


def pin_rows(chip: Chip) -> list[tuple[int, str, str, float, float]]:
    """Place from the left, name, metal, and the middle in um, of every pin."""
    middles = (((pin.box[0] + pin.box[2]) / 2000, (pin.box[1] + pin.box[3]) / 2000) for pin in chip.pins)
    return [
        (k, label_of(pin.net), pin.layer, x, y) for k, (pin, (x, y)) in enumerate(zip(chip.pins, middles, strict=True))
    ]


def format_wires(parasitics: Iterable[Parasitic], design: Design) -> str:
    """The table that `--extracted` reads, under a line that says which network it belongs to."""
    rows = ((one.a, one.b, one.kind, one.farad) for one in parasitics)
    return f"# {network_hash(design)} on {design.technology.name}\n{table(_HEADER, rows)}"


def read_wires(folder: Path, design: Design) -> list[Parasitic]:
    """Raises InputError where the folder holds no wires of this network on this technology."""
    path = folder / WIRES
    if not is_file(path):
        raise InputError(f"--extracted {folder}: there is no {WIRES} in it; make it with cosim layout")
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    wanted = f"# {network_hash(design)} on {design.technology.name}"
    if first != wanted:
        raise InputError(
            f"{path}: its wires must be those of {wanted[2:]}, not of {first[2:]}; draw this network again"
        )
    rows = csv.DictReader(io.StringIO(rest))
    try:
        return [Parasitic(row["net"], row["other"], row["kind"], float(row["farad"])) for row in rows]
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path} must hold the columns {', '.join(_HEADER)}; draw this network again") from None


def coupling_rows(parasitics: Iterable[Parasitic], count: int = 40) -> list[tuple[str, str, float, float]]:
    """The pairs of nets that see each other most: net, other, fF, and its share of all that the first has."""
    total: dict[str, float] = defaultdict(float)
    pairs: dict[tuple[str, str], float] = defaultdict(float)
    for one in parasitics:
        for net, other in ((one.a, one.b), (one.b, one.a)):
            total[net] += one.farad
            if not {net, other} & {"vss", "vdd"}:
                pairs[net, other] += one.farad
    found = [(net, other, farad * 1e15, farad / total[net]) for (net, other), farad in pairs.items() if total[net] > 0]
    return sorted(found, key=lambda row: (-row[3], row[0], row[1]))[:count]


def check_units(drawn: Drawn, schematic: str) -> Checked:
    """Hold every drawn unit against a line of the LVS netlist: its nets, its model, its width and length."""
    wanted: dict[tuple[object, ...], int] = defaultdict(int)
    for line in schematic.splitlines():
        if line.startswith("m"):
            _, drain, gate, source, bulk, model, w, l = line.split()  # noqa: E741 - a length
            sizes = (round(float(size[2:-1]) * 1000) for size in (w, l))
            wanted[(*sorted((drain, source)), gate, bulk, model, *sizes)] += 1
    for unit in drawn.units:
        drain, gate, source, bulk = unit.nets
        wanted[(*sorted((drain, source)), gate, bulk, unit.model, unit.w, unit.l)] -= 1
    missing = sum(count for count in wanted.values() if count > 0)
    extra = -sum(count for count in wanted.values() if count < 0)
    said = "each is in both" if not missing and not extra else f"{missing} only in the netlist, {extra} only drawn"
    return Checked("units", not missing and not extra, f"{len(drawn.units)} units, {said}")
