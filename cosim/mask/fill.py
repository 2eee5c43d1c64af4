"""Fill: squares of floating metal, until each metal covers the share of the macro that the foundry asks of a die.

They stand on the layers for dummies, which the decks of DRC and LVS read as metal, and are not in wires.csv. They keep
from wires of their own layer, and further from what turns states: clocks, candidates and what capacitors hold, which
they do not lie over or under either, but for squares of metal5 within a top plate, which see no other net. Large
squares come first, and no more of them than are needed, spread over all the macro.
"""

from collections.abc import Sequence
from typing import Any

from cosim.circuit.elements import Circuit
from cosim.mask.chip import DrawnChip
from cosim.mask.gds import ExtractedLayout, geometry, label_of
from cosim.mask.sensitive import sensitive
from cosim.mask.tiles import Box, Shape
from cosim.technology.types import DrawingRules

METALS = ("metal1", "metal2", "metal3", "metal4", "metal5")
_SIZES = (4000, 2000, 1000, 500)  # nm, sides of squares
_MORE = 1  # percent above the rule
_APART = 500  # nm between squares, and from wires
_FURTHER = 2000  # nm from what turns states: edges do not see further


def fill(
    chip: DrawnChip, circuit: Circuit, drawn: ExtractedLayout, drawing: DrawingRules
) -> tuple[list[Shape], dict[str, tuple[float, float]]]:
    """Return fill squares for a drawn chip, and the share that each metal covers before and with them.

    Metals that cover enough stay as they are.
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
        some = _spread(boxes, -(-round(wanted) // (size * size)))
        wanted -= len(some) * size * size
        found += some
        room = room - inside.sized(_APART)
    return found


def _spread(boxes: Sequence[Box], count: int) -> list[Box]:
    """Choose `count` of a layout's possible fill squares, from everywhere."""
    if count >= len(boxes):
        return list(boxes)
    return [boxes[k * len(boxes) // count] for k in range(count)]
