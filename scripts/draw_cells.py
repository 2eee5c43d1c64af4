"""Draw the 9T cell as each technology builds it, with W and L, for the manual: cell_TECHNOLOGY.svg. Needs the kits.

A technology that only has another supply than its base has the same cell and no picture.

python scripts/draw_cells.py docs/images
"""

import sys
import tomllib
from pathlib import Path

import cosim
from cosim.technology.catalog import technology_names
from cosim.verbs.compile.schematics import schematics_of

CELL = "Memory: nine-transistor Schmitt trigger"


def own_sizes() -> list[str]:
    """Return the names of the technologies whose files have sizes of their own."""
    folder = Path(__file__).resolve().parents[1] / "models/devices"
    files = {name: tomllib.loads((folder / f"{name}.toml").read_text()) for name in technology_names()}
    return [name for name, file in files.items() if {"sizing", "area"} & file.keys()]


def draw_cell(technology: str) -> bytes:
    """Draw the cell in a technology, by name, as SVG."""
    network = Path(__file__).resolve().parents[1] / "models/trained/digits_d4.pt"
    design = cosim.load(network).compile(technology).design
    return schematics_of(design.graph, design.assembly.circuit)[CELL]


if __name__ == "__main__":
    for name in own_sizes():
        (Path(sys.argv[1]) / f"cell_{name}.svg").write_bytes(draw_cell(name))
