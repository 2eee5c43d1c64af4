"""Pictures of a drawn chip and of its cells: SVG of rectangles, and PNG by klayout's own view."""

from pathlib import Path
from tempfile import TemporaryDirectory

from cosim.base.errors import MappingError
from cosim.circuit.elements import Circuit, Instance
from cosim.compiler.design import Design
from cosim.layout.chip import DrawnChip, draw_chip
from cosim.layout.tiles import Box

COLOURS = {
    "nwell": "#f3efe0", "comp": "#7fb77e", "poly": "#c0504d", "metal1": "#5b8ad0", "metal2": "#c98bc9",
    "metal3": "#e0a030", "metal4": "#40a0a0", "plate": "#806040", "metal5": "#606060",
}  # fmt: skip


def format_svg(chip: DrawnChip, layers: tuple[str, ...] = tuple(COLOURS), window: Box | None = None) -> str:
    """Return the rectangles of some layers as SVG, one path a layer; a user unit is a micrometre.

    window: the part to show, nm; None shows the whole chip.
    """
    x1, y1, x2, y2 = window or chip.box
    parts: list[str] = []
    for layer in layers:
        boxes = [box for name, box in chip.shapes if name == layer and _meets(box, (x1, y1, x2, y2))]
        path = "".join(
            f"M{(a - x1) / 1000:g} {(y2 - d) / 1000:g}h{(c - a) / 1000:g}v{(d - b) / 1000:g}h{(a - c) / 1000:g}z"
            for a, b, c, d in boxes
        )
        if path:
            parts.append(f'<path fill="{COLOURS[layer]}" fill-opacity="0.6" d="{path}"><title>{layer}</title></path>')
    size = f"{(x2 - x1) / 1000:g} {(y2 - y1) / 1000:g}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" aria-label="layout of {chip.name}">'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def cell_pictures(design: Design) -> tuple[dict[str, str], dict[str, str]]:
    """Draw each cell and row of a network alone; in the chip its units stand among others.

    Returns the pictures as SVG by the cell's name, and of each cell that has no room for its wires alone why.
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


def _meets(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def draw_png(gds: bytes, pixels: int = 1200) -> bytes:
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
        view.save_image(str(target), pixels, pixels)
        return target.read_bytes()
