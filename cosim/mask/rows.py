"""Floor plan of a drawn circuit: rows of one polarity back to back over a well tap.

A row stands in the order of the nets that it feeds.

A row holds few gate lines, and its blocks stand in the order of the nets at their drains, which is the same in all
rows: wires between rows are then nearly straight, and what a gate line drives is spread over the row as those nets are.

This module also assigns blocks to rows, and gives each its place. Blocks of one height share rows: mirrors, single
transistors with their cascodes, those with switches on top of them, and switches. Rows are as even as can be, since all
are as wide as the widest.

A row of mirrors has a unit at both ends, so that its outermost units have neighbours, too. All nets of such an end unit
are the rail, and the netlist of LVS has it:

     ---- end ----   metal of the rail over all of it
    [o]|  |          poly with its contact, diffusion
     ==== tap ====   rail
"""

import math
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.elements import Mos
from cosim.mask.blocks import (
    BOTTOM,
    GROUND,
    RAIL,
    STRIP,
    UNDER,
    VDD,
    LayoutTile,
    NetMetal,
    TransistorBlock,
    close_diode,
    contacts,
    draw,
    head,
    head_width,
    heights,
    nanometres,
    width,
)
from cosim.technology.types import DrawingRules, Polarity

RAILS = (VDD, GROUND)
OWN = "own"  # the well of a row whose transistors have wells of their own
_MORE = 2240  # nm, four tracks
_LIKE = 2000  # nm, by which the heights of two rows back to back may differ, but for the last ones


@dataclass(frozen=True)
class BlockRow:
    """Transistor blocks drawn side by side from x = 0 on, over one well tap; all lengths in nm.

    tiles: the drawn blocks and heads of gate lines; right: x of the right end; top: height above the middle of the tap;
    under: what the row takes below the tap if no other row hangs there; ends: dummy units on the rail at both ends.
    """

    polarity: Polarity
    well: str
    tiles: tuple[LayoutTile, ...]
    right: int
    top: int
    under: int = UNDER
    ends: tuple[LayoutTile, ...] = ()


def below(rows: tuple[BlockRow, ...]) -> int:
    """Return how far a band of one or two rows, back to back, reaches below its well tap, nm."""
    first, *rest = rows
    return rest[0].top if rest else first.under


@dataclass(frozen=True)
class WellBand:
    """A band of the layout: one row, or two rows of one well back to back over a common tap at height y, nm.

    The first row rises above the tap, the second hangs below.
    """

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

    def terminals(self) -> Iterator[NetMetal]:
        """Yield the terminals of the band's blocks with their boxes in coordinates of the chip, nm."""
        for k, row in enumerate(self.rows):
            for terminal in (one for tile in row.tiles for one in tile.terminals):
                x1, y1, x2, y2 = terminal.box
                low, high = flipped(y1, y2, self.y, k)
                yield NetMetal(terminal.net, (x1, low, x2, high))


def flipped(y1: int, y2: int, y: int, k: int) -> tuple[int, int]:
    """Return the lower and upper height on the chip of a shape from y1 to y2 above the tap of its row, nm.

    y: height of the tap; k: 0 for the row above the tap, 1 for the row below, which is mirrored.
    """
    return (y + y1, y + y2) if k == 0 else (y - y2, y - y1)


def net_order(blocks: Sequence[TransistorBlock], drawing: DrawingRules) -> dict[str, float]:
    """Return the wanted horizontal place of each net in the layout, net -> 0 (left) to 1 (right); supplies are left
    out.

    Nets follow each other as they appear in `blocks`; a net takes a share of the width like the blocks that end on it.
    """
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
    """Return the rows of a layout as bands from bottom to top, alternately of n and p transistors.

    Two rows of one well make a band, first those of like height; a row of transistors with own wells stays alone.
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
    """Return the rows of each band, with `space` nm added where a row of own wells is next to another well.

    turns: the one or two rows of each band, bottom to top.
    """
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
    """Return bands of these rows, piled from y = 0 upwards; turns: the one or two rows of each band, bottom to top."""
    bands: list[WellBand] = []
    y = 0
    for pair in turns:
        bands.append(WellBand(y + below(pair), pair))
        y = bands[-1].high
    return bands


def higher(bands: Sequence[WellBand], index: int) -> list[WellBand]:
    """Return the bands of a layout, with room for four more tracks above the rows of the band at `index`."""
    turns: list[tuple[BlockRow, ...]] = [
        tuple(replace(row, top=row.top + _MORE) for row in band.rows) if k == index else band.rows
        for k, band in enumerate(bands)
    ]
    return piled(turns)


GAP = 300  # between blocks under one poly
_SHORT = 12  # of a row: shorter gate lines are spread over rows by where they belong
_LARGE = 8  # of a row: longer gate lines are spread over rows
_ALIKE = 20  # nm, by which blocks under one poly may differ
_LOW = 6000  # nm, up to which a block is one of a row of switches
_WORTH = 0.3  # of a row that switches must fill


def wanted(block: TransistorBlock, order: Mapping[str, float]) -> float:
    """Return the wanted place of a block along its row, 0 (left) to 1 (right): the mean place of the nets at its ends.

    order: net -> place, of `net_order`. A block with supplies at both ends belongs at 0.5.
    """
    at = [order[net] for net in block.ends if net not in RAILS]
    return sum(at) / len(at) if at else 0.5


class _Item(NamedTuple):
    """A block to be sorted into rows; at: its wanted place, 0 to 1; width, head: widths of the block and of its gate
    line's head, nm."""

    at: float
    gate: str
    shape: tuple[int, ...]
    number: int
    width: int
    head: int
    block: TransistorBlock


def _between_lines(drawing: DrawingRules) -> int:
    """Return the space between two gate lines of a row, nm."""
    return drawing["poly_end"] + drawing["poly_space"] + 5


def _between_wells(drawing: DrawingRules) -> int:
    """Return the space between transistors of a row in two wells, nm."""
    return drawing["well_space"] + 2 * drawing["well_active"]


def _items(blocks: Sequence[TransistorBlock], order: Mapping[str, float], drawing: DrawingRules) -> list[_Item]:
    return [
        _Item(
            order[one.bulk] if one.own_well else wanted(one, order),
            one.gate,
            one.shape,
            k,
            width(one, drawing),
            head_width(one, drawing),
            one,
        )
        for k, one in enumerate(blocks)
    ]


def _joined(before: _Item | None, item: _Item) -> bool:
    """Tell whether the poly of block `before` continues into block `item`: one gate line, one well, equal sizes."""
    if before is None or before.gate != item.gate or len(before.shape) != len(item.shape) or _parted(before, item):
        return False
    if len(item.shape) == 2:
        return before.shape == item.shape
    return all(abs(a - b) <= _ALIKE for a, b in zip(before.shape, item.shape, strict=True))


def _parted(before: _Item, item: _Item) -> bool:
    """Tell whether block `item` is in another well than block `before`."""
    return before.block.bulk != item.block.bulk


def _spots(items: list[_Item], drawing: DrawingRules) -> tuple[list[tuple[TransistorBlock, int, bool]], int]:
    """Return (block, x of its left edge in nm, whether a gate line's head comes first) for each block of a sorted
    row, and the x of the row's right end, nm."""
    spots: list[tuple[TransistorBlock, int, bool]] = []
    x, before = 0, None
    for item in items:
        if _joined(before, item):
            spots.append((item.block, x + GAP, False))
            x += GAP + item.width
        else:
            if before is not None:
                x += _between_wells(drawing) if _parted(before, item) else _between_lines(drawing)
            spots.append((item.block, x, True))
            x += item.head + item.width
        before = item
    return spots, x


def _make_row(items: list[_Item], widest: int, drawing: DrawingRules, start: int = 0) -> BlockRow:
    """Draw a row of blocks from x = `start` on, stretched to the width `widest`, nm.

    The spare width is shared evenly between gate lines, so that the transistors of a cell line up from row to row.
    """
    tiles: list[LayoutTile] = []
    spots, right = _spots(items, drawing)
    last = max(spot for _, spot, first in spots if first)
    moved, free, well = 0, (widest - right) if last else 0, ""
    for block, spot, first in spots:
        if first and not (block.own_well and block.bulk == well):
            moved = free * spot // (max(last, 1) * 10) * 10
        x, well = start + spot + moved, block.bulk
        if first:
            tiles.append(head(block, x, drawing))
            x = tiles[-1].right
        tiles.append(draw(block, x, drawing))
        if first and block.diode:
            close_diode(tiles[-2], tiles[-1])
    top = max(heights(item.block, drawing).top for item in items)
    first = items[0].block
    return BlockRow(first.polarity, OWN if first.own_well else first.bulk, tuple(tiles), start + right + free, top)


def _end(items: list[_Item], drawing: DrawingRules) -> int:
    """Return the width of the dummy unit at either end of a row of mirrors, with the space to the next block, nm."""
    return dummy_width(items[0].block.lower, drawing) + _between_lines(drawing)


def _make_mirrors(items: list[_Item], widest: int, drawing: DrawingRules, number: int) -> BlockRow:
    """Draw a row of mirrors with a dummy unit, on the rail, at either end; number: of the row, for the dummies'
    names."""
    end = _end(items, drawing)
    row = _make_row(items, widest - 2 * end, drawing, end)
    ends: list[LayoutTile] = []
    for k, x in enumerate((0, row.right + _between_lines(drawing))):
        one = dummy_of(items[0].block.lower, f"dummy{2 * number + k}")
        ends.append(draw_dummy(one, x, drawing))
    return replace(row, right=row.right + end, ends=tuple(ends))


def _fill(items: list[_Item], limit: int, drawing: DrawingRules) -> list[list[_Item]]:
    """Fill rows with blocks in the given order, each row up to the width `limit`, nm.

    A gate line that does not fit into the rest of a row continues in the next row.
    """
    rows: list[list[_Item]] = [[]]
    for item in items:
        tried = rows[-1].copy()
        insort(tried, item)
        if rows[-1] and _spots(tried, drawing)[1] > limit:
            rows.append([item])
        else:
            rows[-1] = tried
    return rows


def _even(items: list[_Item], limit: int, drawing: DrawingRules) -> list[list[_Item]]:
    """Divide blocks into as few rows as the width `limit`, nm, allows, of widths as equal as possible."""
    best = _fill(items, limit, drawing)
    low, high = limit // 2, limit
    while high - low > 2000:
        middle = (low + high) // 2
        rows = _fill(items, middle, drawing)
        if len(rows) > len(best):
            low = middle
        else:
            best, high = rows, middle
    return best


def _cut(line: list[_Item], limit: int) -> list[list[_Item]]:
    """Divide the blocks on a gate line into parts much shorter than a row; each part has blocks from the line's
    whole width."""
    parts = -(-_LARGE * sum(item.width + GAP for item in line) // limit)
    return [part for k in range(parts) if (part := line[k::parts])]


def _deal(items: list[_Item], limit: int, drawing: DrawingRules) -> list[list[_Item]]:
    """Deal gate lines, or wells, to rows from left to right, each to the row that is the shortest so far.

    Gate lines whose blocks belong at one place thus stand one above the other. limit: the width of a row, nm.
    """
    lines: dict[str, list[_Item]] = defaultdict(list)
    for item in items:
        lines[item.block.bulk if item.block.own_well else item.gate].append(item)
    groups = [part for line in lines.values() for part in _cut(line, limit)]
    ordered = sorted(groups, key=lambda group: (sum(item.at for item in group) / len(group), group[0].number))
    count = -(-_spots(sorted(items), drawing)[1] // limit)
    rows: list[list[_Item]] = [[] for _ in range(count)]
    lengths = [0] * count
    for group in ordered:
        shortest = lengths.index(min(lengths))
        rows[shortest] += group
        lengths[shortest] += sum(item.width + GAP for item in group) + group[0].head + _between_lines(drawing)
    return [sorted(row) for row in rows if row]


def _short(items: list[_Item], limit: int) -> list[_Item]:
    """Return the blocks on gate lines much shorter than a row, if these blocks fill over half of a row, else an
    empty list."""
    lengths: Counter[str] = Counter()
    for item in items:
        lengths[item.gate] += item.width + item.head
    found = [item for item in items if lengths[item.gate] < limit // _SHORT]
    return found if sum(item.width + item.head for item in found) > limit // 2 else []


_Class = tuple[Polarity, str, str]  # of blocks that may share a row: polarity, well, and kind of block


def _classes(blocks: Sequence[TransistorBlock], drawing: DrawingRules) -> dict[_Class, list[TransistorBlock]]:
    """Group blocks of a layout into classes that may share a row: of one polarity, one well, one height."""
    signals = {block.shape for block in blocks if block.lower.role in ("weight", "copy")}
    found: dict[_Class, list[TransistorBlock]] = defaultdict(list)
    for block in blocks:
        kind = "single"
        if block.own_well:
            kind = "own"
        elif _near(block, signals):
            kind = "mirror"
        elif block.over:
            kind = "switched"
        elif heights(block, drawing).top < _LOW:
            kind = "switch"
        found[block.polarity, OWN if block.own_well else block.bulk, kind].append(block)
    return found


def _near(block: TransistorBlock, shapes: set[tuple[int, ...]]) -> bool:
    return any(
        len(shape) == len(block.shape) and all(abs(a - b) <= 600 for a, b in zip(shape, block.shape, strict=True))
        for shape in shapes
    )


def _merged(classes: dict[_Class, list[_Item]], limit: int, drawing: DrawingRules) -> dict[_Class, list[_Item]]:
    """Return the classes of blocks with those too small for a row of their own merged into the class of single
    transistors.

    Single transistors, in turn, fill the room left in the last row of switched blocks.
    """
    found = {key: list(items) for key, items in classes.items()}
    for (polarity, well, kind), items in classes.items():
        single = polarity, well, "single"
        if kind == "switch" and _spots(sorted(items), drawing)[1] < _WORTH * limit and single in classes:
            found[single] += found.pop((polarity, well, "switch"))
    for polarity, well, kind in classes:
        if kind != "switched" or (polarity, well, "single") not in found:
            continue
        items, rest = found[polarity, well, "switched"], found[polarity, well, "single"]
        used = _spots(sorted(items), drawing)[1]
        room = -(-used // limit) * limit - used
        while rest and rest[-1].width + rest[-1].head + _between_lines(drawing) < room:
            items.append(rest.pop())
            room -= items[-1].width + items[-1].head + _between_lines(drawing)
    return {key: items for key, items in found.items() if items}


def arrange(
    blocks: Sequence[TransistorBlock], order: Mapping[str, float], limit: int, drawing: DrawingRules
) -> list[BlockRow]:
    """Draw all blocks in rows and return the rows; blocks of a row have one polarity, well and kind.

    order: net -> wanted place from left to right, 0 to 1, of `net_order`; limit: the largest width of a row, nm.
    """
    rows: list[tuple[bool, list[_Item]]] = []
    classes: dict[_Class, list[_Item]] = {}
    for key, members in _classes(blocks, drawing).items():
        gates = sorted(members, key=lambda block: (order.get(block.gate, 0.5), block.gate, wanted(block, order)))
        classes[key] = _items(gates, order, drawing)
    for (_, _, kind), items in _merged(classes, limit, drawing).items():
        mirrors = kind == "mirror"
        short = _short(items, limit) if mirrors else items
        rest = [item for item in items if item not in short]
        parts = [*(_deal(short, limit, drawing) if short else ()), *(_even(rest, limit, drawing) if rest else ())]
        rows += [(mirrors, part) for part in parts]
    ends = [2 * _end(row, drawing) if mirrors else 0 for mirrors, row in rows]
    widest = max(_spots(row, drawing)[1] + end for (_, row), end in zip(rows, ends, strict=True))
    return [
        _make_mirrors(row, widest, drawing, k) if mirrors else _make_row(row, widest, drawing)
        for k, (mirrors, row) in enumerate(rows)
    ]


_BESIDE = 460  # nm from the left edge to the diffusion, the gate's contact between


def dummy_of(mos: Mos, name: str) -> Mos:
    """Return a dummy transistor of the given name with the size of `mos` and all terminals on the rail of its
    polarity."""
    rail = RAIL[mos.polarity]
    return Mos(name, rail, rail, rail, rail, mos.polarity, mos.w, mos.l)


def dummy_width(mos: Mos, drawing: DrawingRules) -> int:
    """Return the width that a dummy unit device takes in a row of the layout, nm."""
    return _BESIDE + nanometres(mos.w) + drawing["poly_end"]


def draw_dummy(mos: Mos, x: int, drawing: DrawingRules) -> LayoutTile:
    """Draw a dummy unit device of a row of mirrors, with its left edge at x, nm; all its terminals are on the rail."""
    tile = LayoutTile(TransistorBlock(mos))
    at = heights(tile.block, drawing)
    w, whole = nanometres(mos.w), drawing["contact"] + 2 * drawing["contact_in"]
    a, right = x + _BESIDE, x + dummy_width(mos, drawing)
    tile.right = right
    tile.add("comp", a, BOTTOM, a + w, at.end)
    tile.add("poly", a - drawing["poly_end"], at.gate, right, at.gate_top)
    tile.add("poly", x, at.gate, a, at.gate + STRIP)
    tile.add("metal1", x, 0, right, at.end)
    pads = (a, BOTTOM, a + w, BOTTOM + whole), (a, at.end - whole, a + w, at.end)
    for box in (*pads, (x, at.gate, x + STRIP, at.gate + STRIP)):
        tile.shapes += contacts(box, drawing)
    return tile


Pile = tuple[BlockRow, ...]
_URGENT = 20.0  # what a micrometre counts for of a net that should be short


def shortest(piles: Sequence[Pile], ports: Sequence[str], urgent: Collection[str] = ()) -> list[Pile]:
    """Return the bands of a layout, as tuples of rows, in the order from bottom to top with the shortest trunks of
    metal.

    A trunk is the vertical wire of a net. The search moves one band at a time while that shortens the trunks. ports:
    nets with a pin at the lower edge; urgent: nets whose length counts twenty times.
    """
    inside = [{one.net for row in pile for tile in row.tiles for one in tile.terminals} - {*RAILS} for pile in piles]
    nets = sorted(set().union(*inside))
    there = np.array([[net in one for one in inside] for net in nets])
    pins = np.array([net in ports for net in nets])
    worth = np.where([net in urgent for net in nets], _URGENT, 1.0)
    highs = np.array([sum(row.top for row in pile) for pile in piles], dtype=float)
    order = list(range(len(piles)))
    best, found = np.inf, _trunk_length(order, there, highs, (pins, worth))
    while found < best:
        best = found
        for band in range(len(piles)):
            others = [one for one in order if one != band]
            tried = [[*others[:k], band, *others[k:]] for k in range(len(piles))]
            lengths = [_trunk_length(one, there, highs, (pins, worth)) for one in tried]
            if min(lengths) < found:
                found = min(lengths)
                order = tried[lengths.index(found)]
    return [piles[k] for k in order]


def _trunk_length(
    order: list[int],
    there: NDArray[np.bool_],
    highs: NDArray[np.float64],
    nets: tuple[NDArray[np.bool_], NDArray[np.float64]],
) -> float:
    """Return the summed length of all trunks, each weighted, nm, if bands are piled in `order`.

    A trunk runs from the middle of its net's lowest band, or the lower edge for a port, to the middle of the highest.
    there: which net has a terminal in which band, (nets, bands); highs: height of each band; nets: ports and weights.
    """
    pins, worth = nets
    top = np.cumsum(highs[order])
    middle = top - highs[order] / 2
    mine = there[:, order]
    first = np.where(pins, 0.0, middle[mine.argmax(axis=1)])
    last = middle[mine.shape[1] - 1 - mine[:, ::-1].argmax(axis=1)]
    return float(((last - first) * worth).sum())


PIN = 3000  # nm, from the lowest row to the edge
_SQUARE = 0.15  # power of a macro's length over its height that its area is weighed with
_SLOW = 1e6  # nm of the longest net that should be short, that count as much as twice the area


@dataclass(frozen=True)
class RowGoals:
    """The criteria for choosing a layout's rows.

    order: net -> wanted place from left to right, 0 to 1; ports: nets with a pin at the lower edge; urgent: nets that
    should be short; beside: the area of the capacitors beside the rows, nm2.
    """

    order: Mapping[str, float]
    ports: tuple[str, ...]
    urgent: frozenset[str]
    beside: float


def find_rows(blocks: Sequence[TransistorBlock], wanted: RowGoals, drawing: DrawingRules) -> int:
    """Return the number of rows that makes the macro smallest, where nearly square macros and short urgent nets
    count, too."""
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
    """Return the bands of a layout with about `rows` rows of equal width, in the order that makes trunks shortest."""
    return _pile(_arrange(blocks, wanted, rows, drawing), wanted, drawing)


def _length(blocks: Sequence[TransistorBlock], drawing: DrawingRules) -> int:
    """Return the width of a single row of all blocks, nm."""
    return sum(width(block, drawing) + 600 for block in blocks)


def _arrange(blocks: Sequence[TransistorBlock], wanted: RowGoals, rows: int, drawing: DrawingRules) -> list[WellBand]:
    limit = _length(blocks, drawing) // rows + 8000
    return stack_rows(arrange(blocks, wanted.order, limit, drawing))


def _pile(bands: Sequence[WellBand], wanted: RowGoals, drawing: DrawingRules) -> list[WellBand]:
    piles = shortest([band.rows for band in bands], wanted.ports, wanted.urgent)
    return piled(spaced(piles, drawing["well_space"]))


def _longest(bands: Sequence[WellBand], urgent: frozenset[str]) -> int:
    """Return the length of the longest urgent net, nm: its vertical trunk and, in each band, the track to its
    terminals."""
    ends: dict[str, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for k, band in enumerate(bands):
        for terminal in band.terminals():
            if terminal.net in urgent:
                ends[terminal.net][k].append((terminal.box[0], terminal.box[2]))
    lengths = [0]
    for found in ends.values():
        trunk = int(median_low([(a + b) // 2 for each in found.values() for a, b in each]))
        heights = [(bands[k].low + bands[k].high) // 2 for k in found]
        tracks = [max(trunk, *(a for a, _ in each)) - min(trunk, *(b for _, b in each)) for each in found.values()]
        lengths.append(max(heights) - min(heights) + sum(tracks))
    return max(lengths)
