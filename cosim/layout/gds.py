"""GDS of a drawn chip, with klayout's Python package: without timestamps, the same bytes each time."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cosim.base.errors import MissingToolError
from cosim.base.resources import install_command
from cosim.layout.chip import DrawnChip
from cosim.technology.drawing import DrawingRules


def geometry() -> Any:  # noqa: ANN401 - klayout has no types of its own
    """Return the module klayout.db. Raises MissingToolError where it is not installed."""
    try:
        import klayout.db
    except ImportError:
        raise MissingToolError(
            f"the Python package klayout is missing; install it with: {install_command('layout')}"
        ) from None
    return klayout.db


def label_of(net: str) -> str:
    """Return the name of a net in layout and LVS netlist; ground, 0 in SPICE, is vss there."""
    return "vss" if net == "0" else net.replace(".", "_")


def layout_of(chip: DrawnChip, drawing: DrawingRules) -> Any:  # noqa: ANN401 - klayout has no types of its own
    """Return the klayout layout of a drawn chip, with one cell."""
    db = geometry()
    layout = db.Layout()
    layout.dbu = 0.001
    cell = layout.create_cell(chip.name)
    layers = {name: layout.layer(*number) for name, number in drawing.layers.items()}
    for layer, (x1, y1, x2, y2) in chip.shapes:
        cell.shapes(layers[layer]).insert(db.Box(x1, y1, x2, y2))
    for label in chip.labels:
        cell.shapes(layers[label.layer]).insert(db.Text(label_of(label.net), label.x, label.y))
    return layout


def gds_bytes(layout: Any, *, packed: bool = False) -> bytes:  # noqa: ANN401 - klayout has no types of its own
    """Return the GDS file of a klayout layout, gzipped where `packed`."""
    import gzip

    options = geometry().SaveLayoutOptions()
    options.format = "GDS2"
    options.gds2_write_timestamps = False
    with TemporaryDirectory() as folder:
        path = Path(folder) / "layout.gds"
        layout.write(str(path), options)
        content = path.read_bytes()
    return gzip.compress(content, mtime=0) if packed else content
