"""From a design to the files of a layout, and its checks.

Fill: squares of floating metal, until each metal covers the share of the macro that the foundry asks of a die.

They stand on the layers for dummies, which the decks of DRC and LVS read as metal, and are not in wires.csv. They keep
from wires of their own layer, and further from what turns states: clocks, candidates and what capacitors hold, which
they do not lie over or under either, but for squares of metal5 within a top plate, which see no other net. Large
squares come first, and no more of them than are needed, spread over all the macro.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cosim.base.errors import MappingError
from cosim.base.write import make_folder, write_together
from cosim.circuit.deck import fold, format_number
from cosim.circuit.elements import Capacitor, Circuit, Element, Instance, Mos
from cosim.compiler.design import Design
from cosim.mask.blocks import Box, Shape, nanometres
from cosim.mask.checks import Checker, CheckResult, run_drc, run_lvs
from cosim.mask.chip import DrawnChip, draw_chip, drawing_of
from cosim.mask.extract import Resistance, extract, resistances
from cosim.mask.gds import ExtractedLayout, gds_bytes, geometry, label_of, layout_of, read_layout
from cosim.mask.plates import Plate
from cosim.mask.record import (
    POSITIONS,
    WIRES,
    area_rows,
    check_units,
    coupling_rows,
    format_positions,
    format_wires,
    pin_rows,
    table,
)
from cosim.mask.route import sensitive
from cosim.technology.types import DrawingRules

METALS = ("metal1", "metal2", "metal3", "metal4", "metal5")
_SIZES = (4000, 2000, 1000, 500)  # nm, sides of squares
_MORE = 1  # percent above the rule
_APART = 500  # nm between squares, and from wires
_FURTHER = 2000  # nm from what turns states: edges do not see further


def fill(
    chip: DrawnChip, circuit: Circuit, drawn: ExtractedLayout, drawing: DrawingRules
) -> tuple[list[Shape], dict[str, tuple[float, float]]]:
    """Return squares of floating metal that fill a chip to the foundry's density, with each metal's share before and
    after.

    A metal that covers enough gets no squares.
    """
    db = geometry()
    x1, y1, x2, y2 = chip.box
    whole, wanted = (x2 - x1) * (y2 - y1), (drawing["metal_share"] + _MORE) / 100
    quiet = {label_of(net) for net in sensitive(circuit, [pin.net for pin in chip.pins])}
    taken = {layer: db.Region() for layer in (*METALS, "plate")}
    guarded = {layer: db.Region() for layer in METALS}
    for layer, box in chip.shapes:
        if layer in taken:
            taken[layer].insert(db.Box(*box))
    for net in quiet & drawn.boxes.keys():
        for layer in METALS:
            for box in drawn.boxes[net].get(layer, ()):
                guarded[layer].insert(db.Box(*box))
    found: list[Shape] = []
    shares: dict[str, tuple[float, float]] = {}
    for k, layer in enumerate(METALS):
        before = taken[layer].merged().area() / whole
        room = db.Region(db.Box(x1, y1, x2, y2)).sized(-_APART) - taken[layer].sized(_APART)
        room -= guarded[layer].sized(_FURTHER)
        for other in METALS[max(k - 1, 0) : k + 2]:
            room -= guarded[other].sized(_APART)
        if layer in ("metal4", "metal5"):
            room -= taken["plate"].sized(drawing["plate_metal"] + drawing["plate_reach"])
        if layer == "metal5":
            room += taken["plate"].sized(-_APART) - taken[layer].sized(_APART)
        sizes = [one for one in _SIZES if one * one >= drawing["top_area" if layer == "metal5" else "metal_area"]]
        squares = _squares(room, (wanted - before) * whole, chip, sizes)
        found += [(f"{layer}_fill", box) for box in squares]
        added = sum((box[2] - box[0]) * (box[3] - box[1]) for box in squares) / whole
        shares[layer] = before, before + added
    return found, shares


def _squares(room: Any, wanted: float, chip: DrawnChip, sizes: Sequence[int]) -> list[Box]:  # noqa: ANN401 - klayout's
    """Return squares of metal fill within a region of a layout, as many as cover `wanted` nm2, or as fit."""
    db = geometry()
    found: list[Box] = []
    left, low, right, high = chip.box
    for size in sizes:
        if wanted <= 0:
            break
        pitch = size + _APART
        grid = db.Region()
        for x in range(left, right, pitch):
            for y in range(low, high, pitch):
                grid.insert(db.Box(x, y, x + size, y + size))
        inside = grid.inside(room)
        boxes = sorted((b.left, b.bottom, b.right, b.top) for b in (one.bbox() for one in inside.each()))
        count = -(-round(wanted) // (size * size))
        some = boxes if count >= len(boxes) else [boxes[k * len(boxes) // count] for k in range(count)]  # from all over
        wanted -= len(some) * size * size
        found += some
        room = room - inside.sized(_APART)
    return found


GDS, NETLIST, HIERARCHY, CELLS = "layout.gds", "lvs.sp", "hierarchy.sp", "cells"
DECKS = ("main", "antenna", "density")
RESISTANCE = ("net", "ohm", "gate_ohm", "farad", "ampere", "delay_over_frame", "drop_over_thermal_voltage")
_PIXELS = 1200  # of a side of the picture


@dataclass(frozen=True)
class ProducedLayout:
    """A drawn chip, its share of gates, whether each of its units is that of the netlist, its nets' resistance, the
    share that each metal covers before fill and with it, if there is any, and why a cell has no picture of its own, by
    the cell's name."""

    chip: DrawnChip
    gate_area: float
    units: CheckResult
    resistance: Sequence[Resistance]
    metal: Mapping[str, tuple[float, float]]
    without_picture: Mapping[str, str]

    @property
    def ratio(self) -> float:
        """Return the area of the drawn mask over the area of its gates."""
        return self.chip.area / self.gate_area


def make_layout(
    design: Design, folder: Path, *, supply: float, packed: bool = False, filled: bool = False
) -> ProducedLayout:
    """Draw a design; write layout.gds, two netlists for LVS, tables of wires, pins and areas, and pictures to `folder`.

    supply: largest supply current, A; packed: write the GDS gzipped as well; filled: add fill squares, which the table
    of wires leaves out. Raises InputError, MappingError, MissingToolError.
    """
    drawing = drawing_of(design.technology)
    name = "macro"
    chip = draw_chip(design.flat, design.assembly.ports, design.technology, name)
    layout = layout_of(chip, drawing)
    ports = [pin.net for pin in chip.pins]
    flat = replace(design.flat, elements=(*design.flat.elements, *chip.dummies))
    netlist = format_schematic(flat, chip.plates, ports, name, drawing)
    hierarchy = format_hierarchy(design.assembly.circuit, chip, ports, drawing)
    drawn = read_layout(layout, drawing)
    wires = extract(drawn, drawing, design.technology.library.diffusion)
    gates = sum(one.gate_area for one in design.flat.elements if isinstance(one, Mos))
    metal: dict[str, tuple[float, float]] = {}
    if filled:
        squares, metal = fill(chip, design.flat, drawn, drawing)
        chip = replace(chip, shapes=(*chip.shapes, *squares))
        layout = layout_of(chip, drawing)
    gds = gds_bytes(layout)
    pictures, without_picture = cell_pictures(design)
    made = ProducedLayout(
        chip, gates, check_units(drawn, netlist), resistances(chip, design, wires, supply), metal, without_picture
    )
    areas = table(("block", "gates_um2", "capacitors_um2", "drawn_um2"), area_rows(chip, design))
    files = {
        GDS: gds,
        NETLIST: netlist.encode(),
        HIERARCHY: hierarchy.encode(),
        WIRES: format_wires(wires, design),
        POSITIONS: format_positions(chip, design),
        "couplings.csv": table(("net", "other", "fF", "share"), coupling_rows(wires)).encode(),
        "pins.csv": table(("place", "pin", "metal", "x_um", "y_um"), pin_rows(chip)).encode(),
        "area.csv": areas.encode(),
        "resistance.csv": table(RESISTANCE, map(astuple, made.resistance)).encode(),
        "layout.json": _summary(made).encode(),
        "layout.svg": format_svg(chip, ("nwell", "comp", "metal1", "metal3", "metal4", "plate")).encode(),
        "layout.png": draw_png(gds),
        **{f"{CELLS}/{cell}.svg": picture.encode() for cell, picture in pictures.items()},
    }
    make_folder(folder / CELLS)
    if packed:
        files[f"{GDS}.gz"] = gzip.compress(gds, mtime=0)
    write_together({folder / file: content for file, content in files.items()})
    return made


def _summary(made: ProducedLayout) -> str:
    x1, y1, x2, y2 = made.chip.box
    content: dict[str, object] = {
        "width_um": (x2 - x1) / 1000,
        "height_um": (y2 - y1) / 1000,
        "area_um2": round(made.chip.area * 1e12, 1),
        "gate_area_um2": round(made.gate_area * 1e12, 1),
        "area_over_gates": round(made.ratio, 3),
        "rows": sum(len(band.rows) for band in made.chip.bands),
        "units": sum(block.m * (2 if block.upper else 1) + len(block.over) for block in made.chip.blocks),
        "dummies": len(made.chip.dummies),
        "units_check": made.units.summary,
    }
    if made.metal:
        content["metal_before_fill"] = {layer: round(before, 4) for layer, (before, _) in made.metal.items()}
        content["metal"] = {layer: round(after, 4) for layer, (_, after) in made.metal.items()}
    return json.dumps(content, indent=2) + "\n"


def check_layout(folder: Path, checker: Checker, finished: Callable[[CheckResult], None]) -> Sequence[CheckResult]:
    """Run DRC and LVS on a folder of `make_layout` and write checks.json and violations.csv; `finished` gets each
    result."""
    found: list[CheckResult] = []
    place = folder / "checks"
    place.mkdir(exist_ok=True)
    gds = folder / GDS
    netlists = {"lvs": folder / NETLIST, "hierarchy": folder / HIERARCHY}
    for deck in (*DECKS, *netlists):
        netlist = netlists.get(deck)
        one = run_drc(checker, gds, place, deck) if netlist is None else run_lvs(checker, gds, netlist, place, deck)
        found.append(one)
        finished(one)
    rows = [(each.check, one.rule, one.x, one.y, one.text) for each in found for one in each.violations]
    verdicts = [{key: value for key, value in asdict(one).items() if key != "violations"} for one in found]
    write_together(
        {
            folder / "violations.csv": table(("check", "rule", "x_um", "y_um", "text"), rows).encode(),
            folder / "checks.json": (json.dumps(verdicts, indent=2) + "\n").encode(),
        }
    )
    return found


COLOURS = {
    "nwell": "#f3efe0", "comp": "#7fb77e", "poly": "#c0504d", "metal1": "#5b8ad0", "metal2": "#c98bc9",
    "metal3": "#e0a030", "metal4": "#40a0a0", "plate": "#806040", "metal5": "#606060",
}  # fmt: skip


def format_svg(chip: DrawnChip, layers: tuple[str, ...] = tuple(COLOURS)) -> str:
    """Return the rectangles of some layers as SVG, one path a layer; a user unit is a micrometre."""
    x1, y1, x2, y2 = chip.box
    parts: list[str] = []
    for layer in layers:
        path = "".join(
            f"M{(a - x1) / 1000:g} {(y2 - d) / 1000:g}h{(c - a) / 1000:g}v{(d - b) / 1000:g}h{(a - c) / 1000:g}z"
            for name, (a, b, c, d) in chip.shapes
            if name == layer
        )
        if path:
            parts.append(f'<path fill="{COLOURS[layer]}" fill-opacity="0.6" d="{path}"><title>{layer}</title></path>')
    size = f"{(x2 - x1) / 1000:g} {(y2 - y1) / 1000:g}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" aria-label="layout of {chip.name}">'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def cell_pictures(design: Design) -> tuple[dict[str, str], dict[str, str]]:
    """Draw each cell and row of a network as a mask of its own; on the chip, its transistors are spread among others.

    Returns cell -> SVG, and cell -> reason for each cell whose wires have no room alone.
    """
    blocks = design.assembly.circuit.subcircuits
    inside = {part.subcircuit for block in blocks for part in block.elements if isinstance(part, Instance)}
    found: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for block in blocks:
        if block.name in inside:
            alone = Circuit(block.name, blocks, (Instance("cell", block.ports, block.name),)).flat()
            try:
                found[block.name] = format_svg(draw_chip(alone, block.ports, design.technology, block.name))
            except MappingError as error:
                left_out[block.name] = str(error)
    return found, left_out


def draw_png(gds: bytes) -> bytes:
    """Return a square PNG picture of a GDS file on white."""
    import klayout.lay as lay

    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "layout.gds", Path(folder) / "layout.png"
        source.write_bytes(gds)
        view = lay.LayoutView()
        view.set_config("background-color", "#ffffff")
        view.set_config("grid-visible", "false")
        view.set_config("text-visible", "false")
        view.load_layout(str(source), add_cellview=True)
        view.max_hier()
        view.zoom_fit()
        view.save_image(str(target), _PIXELS, _PIXELS)
        return target.read_bytes()


def format_schematic(
    circuit: Circuit, plates: Sequence[Plate], ports: Sequence[str], name: str, drawing: DrawingRules
) -> str:
    """Return the netlist for LVS, with one line for each unit device: a transistor of m units becomes m lines.

    circuit: flat, with the dummy units that are drawn.
    """
    lines = [f"* {name}, unit by unit", *fold(f".subckt {name} {' '.join(map(label_of, ports))}")]
    for element in circuit.elements:
        if not isinstance(element, Mos):
            continue
        for k in range(element.m):
            lines.append(f"m{label_of(element.name)}_u{k} {_transistor(element, drawing)}")
    for plate in plates:
        nets = f"{label_of(plate.net)} {label_of(plate.rail)}"
        lines.append(f"c{label_of(plate.capacitor.name)} {nets} {_capacitor(plate, drawing)}")
    return "\n".join([*lines, f".ends {name}"]) + "\n"


def format_hierarchy(circuit: Circuit, chip: DrawnChip, ports: Sequence[str], drawing: DrawingRules) -> str:
    """Return the netlist for LVS with the circuit's own subcircuits, in the foundry's devices.

    Parallel units are one transistor with m, and the dummy units of the drawn chip stand at the top.
    """
    plates = {plate.capacitor.name: plate for plate in chip.plates}
    of_block: dict[str, dict[str, Plate]] = {}
    blocks = {block.name: block for block in circuit.subcircuits}
    waiting = [(one.name, one.subcircuit) for one in circuit.elements if isinstance(one, Instance)]
    while waiting:  # the first instance of a subcircuit stands for all: a plate's size follows from value and rail
        path, name = waiting.pop()
        if name in of_block:
            continue
        inside = blocks[name].elements
        of_block[name] = {one.name: plates[f"{path}.{one.name}"] for one in inside if isinstance(one, Capacitor)}
        waiting += [(f"{path}.{one.name}", one.subcircuit) for one in inside if isinstance(one, Instance)]
    lines = [f"* {chip.name}, with the subcircuits of its netlist", ".global vss"]
    for block in circuit.subcircuits:
        lines += [
            *fold(f".subckt {block.name} {' '.join(map(label_of, block.ports))}"),
            *_statements(block.elements, of_block.get(block.name, {}), drawing),
            f".ends {block.name}",
        ]
    lines += fold(f".subckt {chip.name} {' '.join(map(label_of, ports))}")
    lines += _statements((*circuit.elements, *chip.dummies), {}, drawing)
    return "\n".join([*lines, f".ends {chip.name}"]) + "\n"


def _statements(elements: Iterable[Element], plates: Mapping[str, Plate], drawing: DrawingRules) -> Iterator[str]:
    """Yield the lines of a subcircuit's elements for LVS. plates: name of a capacitor -> how it is drawn."""
    for element in elements:
        match element:
            case Mos(name):
                yield from fold(f"m{label_of(name)} {_transistor(element, drawing)} m={element.m}")
            case Instance(name, nets, subcircuit):
                yield from fold(f"x{name} {' '.join(map(label_of, nets))} {subcircuit}")
            case Capacitor(name, a, b):
                yield f"c{name} {label_of(a)} {label_of(b)} {_capacitor(plates[name], drawing)}"
            case _:
                raise MappingError(f"{element.letter}{element.name} cannot be drawn; leave it out of the netlist")


def _transistor(mos: Mos, drawing: DrawingRules) -> str:
    """Return nets, model and size of one unit of a transistor as LVS reads them."""
    nets = " ".join(map(label_of, (mos.drain, mos.gate, mos.source, mos.bulk)))
    size = " ".join(f"{key}={nanometres(value) / 1000:g}u" for key, value in (("w", mos.w), ("l", mos.l)))
    return f"{nets} {drawing.mos[mos.polarity]} {size}"


def _capacitor(plate: Plate, drawing: DrawingRules) -> str:
    """Return model, size and value of a drawn capacitor as LVS reads them."""
    x1, y1, x2, y2 = plate.box
    size = f"w={(x2 - x1) / 1000:g}u l={(y2 - y1) / 1000:g}u"
    return f"{drawing.capacitor} {size} c={format_number(plate.capacitor.value)}"
