"""Where blocks stand: rows of one polarity back to back over a well tap, each in the order of the nets that it feeds.

A row holds few gate lines, and its blocks stand in the order of the nets at their drains, which is the same in all
rows: wires between rows are then nearly straight, and what a gate line drives is spread over the row as those nets are.
"""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cosim.layout.blocks import GROUND, VDD, Block
from cosim.layout.tiles import UNDER, Tile, draw, head, head_width, heights, width
from cosim.technology.drawing import Drawing
from cosim.technology.types import Polarity

RAILS = (VDD, GROUND)
OWN = "own"  # the well of a row whose transistors have wells of their own
GAP = 300  # between blocks under one poly
_MORE = 2240  # nm, four tracks
_SHORT = 12  # of a row: shorter gate lines are spread over rows by where they belong
_ALIKE = 20  # nm, by which blocks under one poly may differ


@dataclass(frozen=True)
class Placed:
    """A tile of a row: of a block, or the head of its gate line."""

    block: Block
    tile: Tile
    is_head: bool


@dataclass(frozen=True)
class Row:
    """Blocks side by side, from x = 0 on; `top`: height above the middle of its tap; `under`: what it takes below that
    where no row hangs there; nanometres."""

    polarity: Polarity
    well: str
    placed: tuple[Placed, ...]
    right: int
    top: int
    under: int = UNDER


def below(rows: tuple[Row, ...]) -> int:
    """What one or two rows back to back take below their tap."""
    first, *rest = rows
    return rest[0].top if rest else first.under


@dataclass(frozen=True)
class Band:
    """One or two rows of a well back to back: the lower one hangs below their tap at height y."""

    y: int
    rows: tuple[Row, ...]

    @property
    def low(self) -> int:
        """Its lower edge."""
        return self.y - below(self.rows)

    @property
    def high(self) -> int:
        """Its upper edge."""
        return self.y + self.rows[0].top


def net_order(blocks: Sequence[Block], ports: Sequence[str], drawing: Drawing) -> dict[str, float]:
    """Net -> where it belongs between 0, left, and 1, right: in order of appearance, as wide as what feeds it."""
    weight: dict[str, float] = {}
    for block in blocks:
        for net in (*block.ends, block.gate):
            if net not in RAILS:
                weight.setdefault(net, 1000.0)
        for net in block.ends:
            if net not in RAILS:
                weight[net] += width(block, drawing)
    order = [net for net in weight if net not in ports]
    first = {net: k for k, net in enumerate(weight)}
    pins = sorted((net for net in weight if net in ports), key=lambda net: first[net])
    merged = sorted((*order, *pins), key=lambda net: first[net])
    total, at, found = sum(weight.values()), 0.0, dict[str, float]()
    for net in merged:
        found[net] = (at + weight[net] / 2) / total
        at += weight[net]
    return found


def wanted(block: Block, order: dict[str, float]) -> float:
    """Where a block belongs: at the nets of its ends."""
    at = [order[net] for net in block.ends if net not in RAILS]
    return sum(at) / len(at) if at else 0.5


class _Item(NamedTuple):
    """A block as it is sorted into rows, and the widths of its tile and of its head."""

    at: float
    gate: str
    shape: tuple[int, ...]
    number: int
    width: int
    head: int
    block: Block


class _Apart(NamedTuple):
    """Between two gate lines, and between transistors in two wells, nm."""

    lines: int
    wells: int


def _items(blocks: Sequence[Block], order: dict[str, float], drawing: Drawing) -> list[_Item]:
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
    """Whether a block continues the poly of the one before it."""
    if before is None or before.gate != item.gate or len(before.shape) != len(item.shape) or _parted(before, item):
        return False
    if len(item.shape) == 2:
        return before.shape == item.shape
    return all(abs(a - b) <= _ALIKE for a, b in zip(before.shape, item.shape, strict=True))


def _parted(before: _Item, item: _Item) -> bool:
    """Whether another well begins."""
    return before.block.bulk != item.block.bulk


def _spots(items: list[_Item], apart: _Apart) -> tuple[list[tuple[Block, int, bool]], int]:
    """Each block of a sorted row, the x at which it begins, whether the head of its gate line comes first there; the
    right end."""
    spots: list[tuple[Block, int, bool]] = []
    x, before = 0, None
    for item in items:
        if _joined(before, item):
            spots.append((item.block, x + GAP, False))
            x += GAP + item.width
        else:
            x += (apart.wells if _parted(before, item) else apart.lines) if before else 0
            spots.append((item.block, x, True))
            x += item.head + item.width
        before = item
    return spots, x


def _apart(drawing: Drawing) -> _Apart:
    return _Apart(drawing["poly_end"] + drawing["poly_space"] + 5, drawing["well_space"] + 2 * drawing["well_active"])


def _make_row(items: list[_Item], widest: int, drawing: Drawing) -> Row:
    """A row as wide as the widest one: gate lines move apart, so that a cell's transistors stand above each other."""
    placed: list[Placed] = []
    spots, right = _spots(items, _apart(drawing))
    last = max(spot for _, spot, first in spots if first)
    moved, free, well = 0, (widest - right) if last else 0, ""
    for block, spot, first in spots:
        if first and not (block.own_well and block.bulk == well):
            moved = free * spot // (max(last, 1) * 10) * 10
        x, well = spot + moved, block.bulk
        if first:
            tile = head(block, x, drawing)
            placed.append(Placed(block, tile, is_head=True))
            x = tile.right
        placed.append(Placed(block, draw(block, x, drawing), is_head=False))
    top = max(heights(item.block, drawing).top for item in items)
    first, space = items[0].block, drawing["well_space"]
    if first.own_well:
        return Row(first.polarity, OWN, tuple(placed), right + free, top + space, UNDER + space)
    return Row(first.polarity, first.bulk, tuple(placed), right + free, top)


def _fill(items: list[_Item], limit: int, apart: _Apart) -> list[list[_Item]]:
    """Rows of at most `limit` from blocks that stand by gate lines; a gate line is cut where a row is full."""
    rows: list[list[_Item]] = [[]]
    for item in items:
        tried = rows[-1].copy()
        insort(tried, item)
        if rows[-1] and _spots(tried, apart)[1] > limit:
            rows.append([item])
        else:
            rows[-1] = tried
    return rows


def _even(items: list[_Item], limit: int, apart: _Apart) -> list[list[_Item]]:
    """As few rows as `limit` allows, and as even."""
    best = _fill(items, limit, apart)
    low, high = limit // 2, limit
    while high - low > 2000:
        middle = (low + high) // 2
        rows = _fill(items, middle, apart)
        if len(rows) > len(best):
            low = middle
        else:
            best, high = rows, middle
    return best


def _deal(items: list[_Item], limit: int, apart: _Apart) -> list[list[_Item]]:
    """Rows that each hold gate lines, or wells, from the whole width, so that what belongs together stands one above
    the other."""
    groups: dict[str, list[_Item]] = defaultdict(list)
    for item in items:
        groups[item.block.bulk if item.block.own_well else item.gate].append(item)
    ordered = sorted(groups.values(), key=lambda group: (sum(item.at for item in group) / len(group), group[0].number))
    count = -(-_spots(sorted(items), apart)[1] // limit)
    rows: list[list[_Item]] = [[] for _ in range(count)]
    lengths = [0] * count
    for group in ordered:
        shortest = lengths.index(min(lengths))
        rows[shortest] += group
        lengths[shortest] += sum(item.width + GAP for item in group) + group[0].head + apart.lines
    return [sorted(row) for row in rows if row]


def _short(items: list[_Item], limit: int) -> list[_Item]:
    """What gate lines drive that are short beside a row, where that fills one."""
    lengths: Counter[str] = Counter()
    for item in items:
        lengths[item.gate] += item.width + item.head
    found = [item for item in items if lengths[item.gate] < limit // _SHORT]
    return found if sum(item.width + item.head for item in found) > limit // 2 else []


def _classes(blocks: Sequence[Block], drawing: Drawing) -> dict[tuple[Polarity, str, bool], list[Block]]:
    """Blocks that may share a row: of one polarity, one well, one height."""
    tops = sorted({heights(block, drawing).top for block in blocks})
    middle = (tops[0] + tops[-1]) / 2
    signals = {block.shape for block in blocks if block.lower.role in ("weight", "copy")}
    found: dict[tuple[Polarity, str, bool], list[Block]] = defaultdict(list)
    for block in blocks:
        tall = heights(block, drawing).top > middle if not signals else not _near(block, signals)
        well, tall = (OWN, False) if block.own_well else (block.bulk, tall)
        found[block.polarity, well, tall].append(block)
    return found


def _near(block: Block, shapes: set[tuple[int, ...]]) -> bool:
    return any(
        len(shape) == len(block.shape) and all(abs(a - b) <= 600 for a, b in zip(shape, block.shape, strict=True))
        for shape in shapes
    )


def arrange(blocks: Sequence[Block], order: dict[str, float], limit: int, drawing: Drawing) -> list[Row]:
    """All rows, those of one polarity and height behind one another."""
    rows: list[list[_Item]] = []
    apart = _apart(drawing)
    for (_, well, tall), members in _classes(blocks, drawing).items():
        gates = sorted(members, key=lambda block: (order.get(block.gate, 0.5), block.gate, wanted(block, order)))
        items = _items(gates, order, drawing)
        short = items if tall or well == OWN else _short(items, limit)
        rows += _deal(short, limit, apart) if short else []
        rest = [item for item in items if item not in short]
        rows += _even(rest, limit, apart) if rest else []
    widest = max(_spots(row, apart)[1] for row in rows)
    return [_make_row(row, widest, drawing) for row in rows]


def stack_rows(rows: Sequence[Row], between: int) -> list[Band]:
    """Bands from bottom to top, n and p in turn, `between` apart; rows of one well and like height are paired."""
    pairs: dict[Polarity, list[tuple[Row, ...]]] = {"n": [], "p": []}
    for polarity in pairs:
        mine = sorted((row for row in rows if row.polarity == polarity), key=lambda row: (row.well, row.top))
        while mine:
            first = mine.pop(0)
            mates = [
                k for k, row in enumerate(mine) if row.well == first.well != OWN and abs(row.top - first.top) < 2000
            ]
            pairs[polarity].append((first, mine.pop(mates[0])) if mates else (first,))
    n, p = pairs["n"], pairs["p"]
    turns = [pair for k in range(max(len(n), len(p))) for pair in (*n[k : k + 1], *p[k : k + 1])]
    return piled(turns, between)


def piled(turns: Sequence[tuple[Row, ...]], between: int) -> list[Band]:
    """Bands of these rows, from y = 0 upwards."""
    bands: list[Band] = []
    y = 0
    for pair in turns:
        bands.append(Band(y + below(pair), pair))
        y = bands[-1].high + between
    return bands


def higher(bands: Sequence[Band], index: int) -> list[Band]:
    """The bands with more room for tracks above the rows of one."""
    turns: list[tuple[Row, ...]] = [
        tuple(replace(row, top=row.top + _MORE) for row in band.rows) if k == index else band.rows
        for k, band in enumerate(bands)
    ]
    return piled(turns, 0)
