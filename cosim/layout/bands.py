"""Choice of a macro's rows: the number that makes it the smallest, where no net has to be short."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from cosim.layout.blocks import TransistorBlock
from cosim.layout.floorplan import WellBand, piled, spaced, stack_rows
from cosim.layout.order import shortest
from cosim.layout.route import terminals_of
from cosim.layout.rows import arrange
from cosim.layout.tiles import width
from cosim.technology.drawing import DrawingRules

PIN = 3000  # nm, from the lowest row to the edge
_SQUARE = 0.15  # power of a macro's length over its height that its area is weighed with
_SLOW = 1e6  # nm of the longest net that should be short, that count as much as twice the area


@dataclass(frozen=True)
class RowGoals:
    """Criteria for the choice of rows: where nets belong from left to right, ports, which nets should be short, and the
    area of capacitors, nm2."""

    order: Mapping[str, float]
    ports: tuple[str, ...]
    urgent: frozenset[str]
    beside: float


def find_rows(blocks: Sequence[TransistorBlock], wanted: RowGoals, drawing: DrawingRules) -> int:
    """Return how many rows make the macro the smallest; the squarer of two that are alike, and that with the shorter
    nets."""
    total = _length(blocks, drawing)
    best: tuple[float, int] | None = None
    for rows in range(max(round(math.sqrt(total / 16000)), 1), 2 + round(math.sqrt(total / 7000))):
        bands = _arrange(blocks, wanted, rows, drawing)
        high = bands[-1].high + PIN + 500
        wide = max(row.right for band in bands for row in band.rows) + 9000 + 1.1 * wanted.beside / high
        cost = wide * high * max(wide / high, high / wide) ** _SQUARE
        if wanted.urgent:
            cost *= 1 + _longest(_pile(bands, wanted, drawing), wanted.urgent) / _SLOW
        if best is None or cost < best[0]:
            best = cost, rows
    assert best is not None
    return best[1]


def find_bands(blocks: Sequence[TransistorBlock], wanted: RowGoals, rows: int, drawing: DrawingRules) -> list[WellBand]:
    """Return some `rows` rows of one length, piled in the order that makes trunks the shortest."""
    return _pile(_arrange(blocks, wanted, rows, drawing), wanted, drawing)


def _length(blocks: Sequence[TransistorBlock], drawing: DrawingRules) -> int:
    """Return how long a single row of all blocks would be, nm."""
    return sum(width(block, drawing) + 600 for block in blocks)


def _arrange(blocks: Sequence[TransistorBlock], wanted: RowGoals, rows: int, drawing: DrawingRules) -> list[WellBand]:
    limit = _length(blocks, drawing) // rows + 8000
    return stack_rows(arrange(blocks, dict(wanted.order), limit, drawing), 0)


def _pile(bands: Sequence[WellBand], wanted: RowGoals, drawing: DrawingRules) -> list[WellBand]:
    piles = shortest([band.rows for band in bands], wanted.ports, wanted.urgent)
    return piled(spaced(piles, drawing["well_space"]), 0)


def _longest(bands: Sequence[WellBand], urgent: frozenset[str]) -> int:
    """Return the length of the longest of the urgent nets, nm: its trunk, and its tracks from there to terminals."""
    ends: dict[str, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for k, band in enumerate(bands):
        for terminal in terminals_of(band):
            if terminal.net in urgent:
                ends[terminal.net][k].append((terminal.box[0], terminal.box[2]))
    lengths = [0]
    for found in ends.values():
        trunk = int(median_low([(a + b) // 2 for each in found.values() for a, b in each]))
        heights = [(bands[k].low + bands[k].high) // 2 for k in found]
        tracks = [max(trunk, *(a for a, _ in each)) - min(trunk, *(b for _, b in each)) for each in found.values()]
        lengths.append(max(heights) - min(heights) + sum(tracks))
    return max(lengths)
