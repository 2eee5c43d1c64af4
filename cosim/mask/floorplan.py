"""Floor plan: rows of one polarity back to back over a well tap, each in the order of the nets that it feeds.

A row holds few gate lines, and its blocks stand in the order of the nets at their drains, which is the same in all
rows: wires between rows are then nearly straight, and what a gate line drives is spread over the row as those nets are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cosim.mask.blocks import GROUND, VDD, TransistorBlock
from cosim.mask.tiles import UNDER, LayoutTile, width
from cosim.technology.types import DrawingRules, Polarity

RAILS = (VDD, GROUND)
OWN = "own"  # the well of a row whose transistors have wells of their own
_MORE = 2240  # nm, four tracks
_LIKE = 2000  # nm, by which the heights of two rows back to back may differ, but for the last ones


@dataclass(frozen=True)
class BlockRow:
    """Blocks side by side, from x = 0 on; `top`: height above the middle of its tap; `under`: what it takes below that
    where no row hangs there; nanometres. ends: units on the rail before the first and behind the last block."""

    polarity: Polarity
    well: str
    tiles: tuple[LayoutTile, ...]
    right: int
    top: int
    under: int = UNDER
    ends: tuple[LayoutTile, ...] = ()


def below(rows: tuple[BlockRow, ...]) -> int:
    """Return how far one or two rows of the layout, back to back, reach below their tap, nm."""
    first, *rest = rows
    return rest[0].top if rest else first.under


@dataclass(frozen=True)
class WellBand:
    """One or two rows of a well in the layout, back to back: the lower one hangs below their tap at height y."""

    y: int
    rows: tuple[BlockRow, ...]

    @property
    def low(self) -> int:
        """Return the height of the lower edge of the layout's band, nm."""
        return self.y - below(self.rows)

    @property
    def high(self) -> int:
        """Return the height of the upper edge of the layout's band, nm."""
        return self.y + self.rows[0].top


def net_order(blocks: Sequence[TransistorBlock], drawing: DrawingRules) -> dict[str, float]:
    """Return net -> its place in the layout, 0 left to 1 right, in order of appearance, as wide as what feeds it."""
    weight: dict[str, float] = {}
    for block in blocks:
        for net in block.nets:
            if net not in RAILS:
                weight.setdefault(net, 1000.0)
        for net in block.ends:
            if net not in RAILS:
                weight[net] += width(block, drawing)
    total, at, found = sum(weight.values()), 0.0, dict[str, float]()
    for net, wide in weight.items():
        found[net] = (at + wide / 2) / total
        at += wide
    return found


def stack_rows(rows: Sequence[BlockRow]) -> list[WellBand]:
    """Return the layout's bands of rows from bottom to top, n and p in turn.

    Rows of one well are paired, first those of like height.
    """
    n, p = (_paired([row for row in rows if row.polarity == polarity]) for polarity in ("n", "p"))
    turns = [pair for k in range(max(len(n), len(p))) for pair in (*n[k : k + 1], *p[k : k + 1])]
    return piled(turns)


def _paired(rows: Sequence[BlockRow]) -> list[tuple[BlockRow, ...]]:
    mine = sorted(rows, key=lambda row: (row.well, row.top))
    pairs: list[tuple[BlockRow, ...]] = []
    single: list[BlockRow] = []
    while mine:
        first = mine.pop(0)
        if first.well == OWN:
            pairs.append((first,))
        elif mine and mine[0].well == first.well and mine[0].top - first.top < _LIKE:
            pairs.append((first, mine.pop(0)))
        else:
            single.append(first)
    while single:
        first = single.pop(0)
        mate = next((row for row in single if row.well == first.well), None)
        if mate is not None:
            single.remove(mate)
        pairs.append((first,) if mate is None else (mate, first))
    return pairs


def spaced(turns: Sequence[tuple[BlockRow, ...]], space: int) -> list[tuple[BlockRow, ...]]:
    """Return the layout's rows, those with wells of their own at least `space` nm from other wells below and above."""
    found: list[tuple[BlockRow, ...]] = []
    for k, pair in enumerate(turns):
        row, *rest = pair
        if row.well == OWN:
            under = k > 0 and turns[k - 1][0].polarity == "p"
            above = k + 1 < len(turns) and turns[k + 1][0].well not in (OWN, GROUND)
            row = replace(row, under=row.under + under * space, top=row.top + above * space)
        found.append((row, *rest))
    return found


def piled(turns: Sequence[tuple[BlockRow, ...]]) -> list[WellBand]:
    """Return the layout's bands of these rows, piled from y = 0 upwards."""
    bands: list[WellBand] = []
    y = 0
    for pair in turns:
        bands.append(WellBand(y + below(pair), pair))
        y = bands[-1].high
    return bands


def higher(bands: Sequence[WellBand], index: int) -> list[WellBand]:
    """Return the layout's bands, with more room for tracks above the rows of the one at `index`."""
    turns: list[tuple[BlockRow, ...]] = [
        tuple(replace(row, top=row.top + _MORE) for row in band.rows) if k == index else band.rows
        for k, band in enumerate(bands)
    ]
    return piled(turns)
