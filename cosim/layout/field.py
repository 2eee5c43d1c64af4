"""Capacitance between the layers of a drawn layout, with the field that spreads from the edges of its wires.

A wire counts as wider than it is. A place at the distance d from its edge belongs to it with the weight

    w = exp(-d / (c_rim / c_area))

up to half way to its next neighbour on its layer, so that an edge with nothing beside it has c_rim over a plane. Two
layers have, over all places, with what lies between them as a shield,

    C = integral of c_area w_upper w_lower (product of 1 - w between) dA

and ground has w = 1. c_area, c_rim: the kit's magic technology file, R. T. Edwards, open_pdks. The weight is a choice
of cosim; docs/layout.md holds it against a field solver.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from cosim.layout.connect import ExtractedLayout
from cosim.layout.tiles import Box
from cosim.technology.drawing import CONDUCTORS, WireTable

GRID = 70  # nm, of the places
SEEN = 8000  # nm, from which an edge sees nothing: `sidehalo` of the kit's file
_STRIP = 60_000  # nm of height that are laid out at a time, to bound memory
Pair = tuple[str, str]
Weights = NDArray[np.float32]


@dataclass(frozen=True)
class _Plane:
    """One layer of a strip: at each place the nearest wire's number and how far it is, nm."""

    owner: NDArray[np.int32]
    away: Weights

    def weight(self, spread: float) -> Weights:
        """Return the weight of each place for its nearest wire; spread: c_rim / c_area, m."""
        return np.where(self.away < SEEN, np.exp(-self.away / np.float32(spread * 1e9)), np.float32(0))


def between_layers(drawn: ExtractedLayout, wires: WireTable, substrate: str) -> dict[Pair, float]:
    """Return the plate capacitances between layers: upper net and lower net or substrate -> farad; none for a gate."""
    nets = sorted(drawn.boxes)
    others = [*nets, substrate]
    farads: dict[Pair, float] = defaultdict(float)
    for planes in _strips(drawn, nets):
        for (upper, lower), places in _strip_pairs(planes, wires, len(nets)):
            per_place = wires.over[upper][lower] * (GRID * 1e-9) ** 2
            for at in np.flatnonzero(places).tolist():
                k, other = divmod(at, len(others))
                farads[nets[k], others[other]] += float(places[at]) * per_place
    return farads


def _strip_pairs(
    planes: Mapping[str, _Plane], wires: WireTable, nets: int
) -> Iterator[tuple[tuple[str, str], NDArray[np.float64]]]:
    """Layers, the lower one may be ground -> weighted places by upper net * (nets + 1) + lower net or ground."""
    for k, upper in enumerate(CONDUCTORS):
        if upper not in planes:
            continue
        plane = planes[upper]
        left = _downward(k, planes, wires)
        for lower in (*reversed(CONDUCTORS[:k]), "ground"):
            spread = wires.rim[upper][lower] / wires.over[upper][lower]
            worth = plane.weight(spread) * left
            if lower == "ground":
                worth = np.where(plane.owner < nets, worth, 0)
                yield (upper, lower), _counted(plane.owner, np.full_like(plane.owner, nets), worth, nets)
            elif lower in planes:
                below = planes[lower].weight(spread)
                yield (upper, lower), _counted(plane.owner, planes[lower].owner % nets, worth * below, nets)
                left *= 1 - below


def _downward(k: int, planes: Mapping[str, _Plane], wires: WireTable) -> Weights:
    """Return how much of what belongs to a layer sees what is below: not its edges where the next layer covers them."""
    plane = planes[CONDUCTORS[k]]
    above = CONDUCTORS[k + 1] if k + 1 < len(CONDUCTORS) else ""
    if above not in planes:
        return np.ones_like(plane.away)
    cover = planes[above].weight(wires.rim[above][CONDUCTORS[k]] / wires.over[above][CONDUCTORS[k]])
    return np.where(plane.away > 0, 1 - cover, np.float32(1))


def _counted(upper: NDArray[np.int32], lower: NDArray[np.int32], worth: Weights, nets: int) -> NDArray[np.float64]:
    pairs = (upper % nets).astype(np.int64) * (nets + 1) + lower
    inner = slice(SEEN // GRID, -(SEEN // GRID))  # the rest belongs to the next strips
    return np.bincount(pairs[inner].ravel(), worth[inner].ravel(), nets * (nets + 1)).astype(np.float64)


def _strips(drawn: ExtractedLayout, nets: list[str]) -> Iterator[dict[str, _Plane]]:
    """Yield the layers of a drawing strip by strip from below, each with everything within SEEN of the strip."""
    boxes = {layer: sorted(_numbered(drawn, nets, layer), key=lambda one: one[1][1]) for layer in CONDUCTORS}
    every = [box for found in boxes.values() for _, box in found]
    if not every:
        return
    margin = SEEN // GRID
    left, right = min(box[0] for box in every) - SEEN, max(box[2] for box in every) + SEEN
    low, high = min(box[1] for box in every) - SEEN, max(box[3] for box in every) + SEEN
    rows = _STRIP // GRID
    for first in range(0, -(-(high - low) // GRID), rows):
        y = low + (first - margin) * GRID
        shape = rows + 2 * margin, -(-(right - left) // GRID)
        planes = {layer: _plane(found, (left, y), shape) for layer, found in boxes.items()}
        yield {layer: plane for layer, plane in planes.items() if plane is not None}


def _numbered(drawn: ExtractedLayout, nets: list[str], layer: str) -> Iterator[tuple[int, Box]]:
    """Net's number and box; poly that is a gate has a number that is higher by that of all nets."""
    for number, net in enumerate(nets):
        for box in drawn.boxes[net].get(layer, ()):
            yield number, box
        for box in drawn.boxes[net].get("gate", ()) if layer == "poly" else ():
            yield number + len(nets), box


def _plane(boxes: list[tuple[int, Box]], corner: tuple[int, int], shape: tuple[int, int]) -> _Plane | None:
    owner = np.full(shape, -1, dtype=np.int32)
    (x, y), top = corner, corner[1] + shape[0] * GRID
    for number, box in boxes:
        if box[3] > y and box[1] < top:
            a, b = ((value - x + GRID // 2) // GRID for value in (box[0], box[2]))
            c, d = (max((value - y + GRID // 2) // GRID, 0) for value in (box[1], box[3]))
            owner[c:d, a:b] = number
    if not (owner >= 0).any():
        return None
    found = distance_transform_edt(owner < 0, return_indices=True)
    assert found is not None
    away, (rows, columns) = found
    distance = np.maximum(away.astype(np.float32) - np.float32(0.5), 0) * np.float32(GRID)
    return _Plane(owner[rows, columns], distance)
