"""Blocks, each drawn as one piece: `m` units of a transistor, with the `m` units of its cascode on top where it has
one, and the switches that its current runs through on top of these.

Drawing of a block: rectangles in nanometres above the middle of its well tap, at y = 0, the rail below it.

          |                    switches that its current runs through, each with a contact of its gate beside it
       ---- tie -------------- poly that joins the fingers of the upper units, with the contact of the gate line
       |d|  |d|                the drain's metal lies over it
      m| |m | |m               upper units: fingers that share their diffusions
     ------------- mid         metal between lower and upper units
     |  |  |  |  |             lower units, side by side under one poly, metal of the rail over it
     ------------- source
    ============== tap         rail

The rail's metal covers the gates: it keeps wires above them away, and counts for density.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from cosim.circuit.elements import GROUND, Mos
from cosim.technology.types import DrawingRules, Polarity

VDD = "vdd"
RAIL: dict[Polarity, str] = {"n": GROUND, "p": VDD}


_LONG = 6e-7  # m, of a switch on top: its gate's metal keeps from that of its ends
_NARROW = 5e-7  # m, of a switch on top: it stands beside its gate's contact on the narrowest cascode


@dataclass(frozen=True)
class TransistorBlock:
    """A transistor of `m` unit devices that is drawn as one piece, with the transistors stacked on it.

    upper: the cascode transistor on `lower`, with the same gate net, whose source is the drain of `lower`; over:
    switches on top of the cascode, from bottom to top. These are in series, with nothing else on the nets between them,
    or two in parallel, drawn one on the other with their common net in the middle.
    """

    lower: Mos
    upper: Mos | None = None
    over: tuple[Mos, ...] = ()

    @property
    def polarity(self) -> Polarity:
        """Return "n" or "p", the polarity of the block's transistors."""
        return self.lower.polarity

    @property
    def m(self) -> int:
        """Return the number of unit devices that the block's lower transistor has side by side."""
        return self.lower.m

    @property
    def gate(self) -> str:
        """Return the net of the drawn poly, the block's gate line."""
        return self.lower.gate

    @property
    def bulk(self) -> str:
        """Return the net of the drawn well, or of the substrate."""
        return self.lower.bulk

    @property
    def ends(self) -> tuple[str, str]:
        """Return the nets at the bottom and at the top of the drawn block; a single transistor with its drain on the
        rail is drawn with the drain at the bottom."""
        if self.over:
            return self.lower.source, self.links[-1]
        drain = (self.upper or self.lower).drain
        if self.upper is None and drain == RAIL[self.polarity]:
            return drain, self.lower.source
        return self.lower.source, drain

    @property
    def links(self) -> tuple[str, ...]:
        """Return the nets above the block's cascode from bottom to top: below, between and above its switches."""
        nets = [(self.upper or self.lower).drain]
        for mos in self.over:
            nets.append(mos.source if mos.drain == nets[-1] else mos.drain)
        return tuple(nets)

    @property
    def forked(self) -> bool:
        """Tell whether the block has two switches in parallel on its cascode."""
        return len(self.over) == 2 and self.links[0] == self.links[2]

    @property
    def nets(self) -> tuple[str, ...]:
        """Return all nets of the block that metal wires must connect to other blocks or the rail."""
        middle = self.links[1:2] if self.forked else ()
        return (*self.ends, *middle, self.gate, *(mos.gate for mos in self.over))

    @property
    def diode(self) -> bool:
        """Tell whether the block is a cascode pair whose gate line is connected to its drain."""
        return self.upper is not None and not self.over and self.ends[1] == self.gate

    @property
    def own_well(self) -> bool:
        """Tell whether the block's well is connected to a net other than the rail of its polarity."""
        return self.bulk != RAIL[self.polarity]

    @property
    def on_rail(self) -> bool:
        """Tell whether both the bottom end and the well of the block are connected to the rail of its polarity."""
        return self.ends[0] == RAIL[self.polarity] == self.bulk

    @property
    def shape(self) -> tuple[int, ...]:
        """Return width and length of the lower and, if there is one, of the upper transistor's units, nm."""
        return (*_size(self.lower), *(_size(self.upper) if self.upper else ()))


def _size(mos: Mos) -> tuple[int, int]:
    return nanometres(mos.w), nanometres(mos.l)


def nanometres(metres: float) -> int:
    """Return a length given in metres in nm, rounded to the mask's grid of 5 nm."""
    return 5 * round(metres * 2e8)


def stack(devices: Iterable[Mos], outside: Iterable[str] = ()) -> list[TransistorBlock]:
    """Group a circuit's transistors into blocks, each a transistor with its cascode and switches, and return the
    blocks.

    outside: nets on which other elements are, one entry a terminal; blocks follow the order of `devices`.
    """
    devices = list(devices)
    uses = Counter(outside)
    above: dict[str, Mos] = {}
    for mos in devices:
        uses.update((mos.drain, mos.gate, mos.source))
        above[mos.source] = mos
    blocks: list[TransistorBlock] = []
    taken: set[str] = set()
    for mos in devices:
        upper = above.get(mos.drain)
        if upper is not None and uses[mos.drain] == 2 and _same(mos, upper):
            blocks.append(TransistorBlock(mos, upper))
            taken.add(upper.name)
    paired = {block.lower.name: block for block in blocks}
    found = [paired.get(mos.name, TransistorBlock(mos)) for mos in devices if mos.name not in taken]
    return _with_switches(found, uses)


def _with_switches(blocks: list[TransistorBlock], uses: Counter[str]) -> list[TransistorBlock]:
    """Return the blocks, with each switch that carries the current of one cascode only moved onto that cascode's
    block."""
    free = {block.lower.name: block.lower for block in blocks if block.upper is None and _stands_on_top(block.lower)}
    at: dict[str, list[str]] = defaultdict(list)
    for mos in free.values():
        at[mos.drain].append(mos.name)
        at[mos.source].append(mos.name)
    found: list[TransistorBlock] = []
    for block in blocks:
        grown = replace(block, over=_fork(block, [free[name] for name in at[block.links[0]] if name in free], uses))
        for mos in grown.over:
            del free[mos.name]
        while block.upper is not None and not grown.forked and uses[grown.links[-1]] == 2:
            mos = next((free[name] for name in at[grown.links[-1]] if name in free), None)
            if mos is None or (mos.polarity, mos.bulk) != (block.polarity, block.bulk):
                break
            del free[mos.name]
            grown = replace(grown, over=(*grown.over, mos))
        found.append(grown)
    taken = {mos.name for block in found for mos in block.over}
    return [block for block in found if block.lower.name not in taken]


def _fork(block: TransistorBlock, near: list[Mos], uses: Counter[str]) -> tuple[Mos, ...]:
    """Return the two parallel switches between the top of a cascode and one other net, or an empty tuple.

    near: free switches on the net at the cascode's top; uses: terminals on each net. Nothing else may be on the top.
    """
    top = block.links[0]
    if block.upper is None or len(near) != 2 or uses[top] != 3:
        return ()
    (one, other), far = near, [mos.source if mos.drain == top else mos.drain for mos in near]
    alike = all((mos.polarity, mos.bulk) == (block.polarity, block.bulk) for mos in near)
    return (one, other) if alike and far[0] == far[1] else ()


def _stands_on_top(mos: Mos) -> bool:
    return mos.role == "switch" and mos.m == 1 and mos.l >= _LONG and mos.w <= _NARROW


def _same(lower: Mos, upper: Mos) -> bool:
    one, other = ((mos.gate, mos.polarity, mos.bulk, mos.m) for mos in (lower, upper))
    return one == other


Box = tuple[int, int, int, int]  # x1, y1, x2, y2
Shape = tuple[str, Box]

HALF_TAP = 180
RAIL_TOP = 230
UNDER = HALF_TAP + 160  # what a tap takes below its middle where no row hangs there
STRIP = 360  # height of a terminal's metal
BOTTOM = HALF_TAP + 320  # of the lowest diffusion: the two implants between keep from either
FREE = 230  # nm, by which a gate line's metal reaches into the gap before it, so that a wire may choose
_AWAY = 200  # nm between a gate and the contact of a narrow diffusion
FINGER = 60  # nm of metal beyond a finger's only contact: those of the two nets end before they see each other
BARE = 1000  # nm of a gate beside the net between units, which the rail's metal leaves free, so as not to see that net
_FROM_HEAD = 140  # nm, from the edge of a block to its drain's metal, which keeps from that of the gate line's head
_BESIDE = 460  # nm from the edge of a switch's poly to its diffusion, the gate's contact between
_OPEN = 440  # nm above the uppermost diffusion, half the space to one of another well
_NEXT = 220  # nm from a block's edge at least, where its poly meets that of the next block of its gate line
DOGBONE = 120  # nm from the gate, where a narrow diffusion widens to hold a contact


@dataclass(frozen=True)
class NetMetal:
    """A box of metal, or of a pin's label, that belongs to a net, for example where a wire may end.

    box: x1, y1, x2, y2, nm; layer: of the metal, or of the label with the net's name.
    """

    net: str
    box: Box
    layer: str = "metal1"


@dataclass
class LayoutTile:
    """A drawn block, or the drawn head of its gate line (poly with a contact beside the block).

    shapes: (layer, box in nm); terminals: metal where wires may end; inner: metal of nets that no wire reaches; right:
    x of the right edge, nm.
    """

    block: TransistorBlock
    is_head: bool = False
    shapes: list[Shape] = field(default_factory=list[Shape])
    terminals: list[NetMetal] = field(default_factory=list[NetMetal])
    inner: list[NetMetal] = field(default_factory=list[NetMetal])
    right: int = 0

    def add(self, layer: str, *box: int) -> None:
        """Add one rectangle to a mask layer: left, bottom, right, top, nm."""
        self.shapes.append((layer, (box[0], box[1], box[2], box[3])))


@dataclass(frozen=True)
class Heights:
    """The heights of a block's parts above the middle of its well tap, nm.

    gate, gate_top: lower and upper edge of the lower units' poly; end: upper end of their diffusion; upper, drain:
    lower and upper edge of the upper units' diffusion; over: lower edges of the switches' gates, then the end of the
    last diffusion.
    """

    gate: int
    gate_top: int
    end: int
    upper: int
    drain: int
    over: tuple[int, ...] = ()

    @property
    def tie(self) -> int:
        """Return the height of the lower edge of the poly that joins the fingers of the upper units, nm."""
        return self.drain + 120

    @property
    def top(self) -> int:
        """Return the height at which the block's place ends, nm: its upper edge and half the space to the next
        block."""
        if self.over:
            return self.over[-1] + _OPEN
        return self.tie + STRIP + 140 if self.drain > self.end else self.end + _OPEN


def heights(block: TransistorBlock, drawing: DrawingRules) -> Heights:
    """Return the heights at which the parts of a drawn transistor block begin, nm."""
    w, l = block.shape[:2]  # noqa: E741 - a length
    reach = _reach(w, drawing)
    gate = BOTTOM + reach
    end = gate + l + reach
    if block.upper is None:
        return Heights(gate, gate + l, end, end, end)
    upper = end + drawing["poly_active"] + drawing["poly_end"]
    drain = upper + block.shape[2]
    return Heights(gate, gate + l, end, upper, drain, _gates_over(block, drain, drawing))


def _gates_over(block: TransistorBlock, drain: int, drawing: DrawingRules) -> tuple[int, ...]:
    """Return the heights of the lower edges of the switches' gates, and of the upper end of the last diffusion, nm.

    drain: height at which the diffusion of the upper units ends, nm. A block without switches has an empty tuple.
    """
    at = drain + 120 + STRIP + drawing["poly_active"] + drawing["contact_in"]
    found: list[int] = []
    for mos in block.over:
        found.append(at + drawing["contact"] + _AWAY)
        at = found[-1] + nanometres(mos.l) + _AWAY
    return (*found, at + drawing["contact"] + drawing["contact_in"]) if found else ()


def _reach(w: int, drawing: DrawingRules) -> int:
    """Return how far a lower unit's diffusion, which holds a contact, extends beyond the gate, nm; w: channel width,
    nm."""
    contact, space = drawing["contact"] + drawing["contact_in"], drawing["contact_gate"]
    return contact + (space if w >= drawing["contact"] + 2 * drawing["contact_in"] else _AWAY)


def width(block: TransistorBlock, drawing: DrawingRules) -> int:
    """Return the width of a block's place in its row, nm: that of its widest part; the block's metal spans this
    width."""
    return max(_lower_width(block, drawing), _upper_width(block, drawing), 2500 if block.upper is None else 1280)


def _pitch(w: int, drawing: DrawingRules) -> int:
    return max(w, drawing["contact"] + 2 * drawing["contact_in"]) + drawing["active_space"]


def _lower_width(block: TransistorBlock, drawing: DrawingRules) -> int:
    pitch = _pitch(block.shape[0], drawing)
    return pitch * block.m - drawing["active_space"]


def _upper_width(block: TransistorBlock, drawing: DrawingRules) -> int:
    if block.upper is None:
        return 0
    side = drawing["contact"] + drawing["contact_in"] + drawing["contact_gate"]
    return block.m * block.shape[3] + (block.m - 1) * _shared(drawing) + 2 * side


def _shared(drawing: DrawingRules) -> int:
    """Return the length of a diffusion between two neighbouring gates that share it, nm."""
    return drawing["contact"] + 2 * drawing["contact_gate"]


def contacts(box: Box, drawing: DrawingRules) -> Iterator[Shape]:
    """Yield one row or column of contacts in the middle of a box, as many as fit and at least one."""
    one, space = drawing["contact"], max(drawing["contact_space"], 280)
    x1, y1, x2, y2 = box
    across = x2 - x1 >= y2 - y1
    low, high = (x1, x2) if across else (y1, y2)
    edge = drawing["contact_in"]
    count = max((high - low - 2 * edge + space) // (one + space), 1)
    first = low + (high - low - count * one - (count - 1) * space) // 10 * 5
    middle = ((y1 + y2) if across else (x1 + x2)) // 10 * 5 - one // 2
    for k in range(count):
        at = first + k * (one + space)
        x, y = (at, middle) if across else (middle, at)
        yield "contact", (x, y, x + one, y + one)


def draw(block: TransistorBlock, x: int, drawing: DrawingRules) -> LayoutTile:
    """Draw a transistor block with its left edge at x, nm, and return it as a tile; `head` draws the gate line's
    head."""
    tile, at = LayoutTile(block), heights(block, drawing)
    wide = width(block, drawing)
    tile.right = x + wide
    _draw_lower(tile, block, x, drawing)
    bottom, top = block.ends
    low = (x, BOTTOM, x + wide, BOTTOM + STRIP)
    if block.on_rail:
        tile.add("metal1", x, 0, x + wide, max(at.gate_top - BARE, at.gate))
    else:
        tile.add("metal1", *low)
        tile.terminals.append(NetMetal(bottom, low))
    high = (x, at.end - STRIP, x + wide, at.end)
    tile.add("metal1", *high)
    if block.upper is None:
        tile.terminals.append(NetMetal(top, high))
        return tile
    tile.inner.append(NetMetal(block.lower.drain, high))
    strip = (x + _FROM_HEAD, at.drain + 100, x + wide, at.drain + 100 + STRIP)
    tile.add("metal1", *strip)
    _draw_upper(tile, block, x, drawing)
    if block.over:
        _draw_over(tile, block, x, drawing)
    else:
        tile.terminals.append(NetMetal(top, strip))
    return tile


def switch_offset(block: TransistorBlock, mos: Mos, drawing: DrawingRules) -> int:
    """Return the distance from a block's left edge to the diffusion of `mos`, a switch on top of the block, nm."""
    poly = _BESIDE + nanometres(mos.w) + drawing["poly_end"]
    return (width(block, drawing) - poly) // 10 * 5 + _BESIDE


def _draw_over(tile: LayoutTile, block: TransistorBlock, x: int, drawing: DrawingRules) -> None:
    """Draw a block's switches above each other, with shared diffusions; the metal between is as wide as the block."""
    at, wide = heights(block, drawing), width(block, drawing)
    contact, edge = drawing["contact"], drawing["contact_in"]
    bottom = at.drain + 100
    for k, (mos, gate, net) in enumerate(zip(block.over, at.over, block.links, strict=False)):
        w, l = nanometres(mos.w), nanometres(mos.l)  # noqa: E741 - a length
        left = x + switch_offset(block, mos, drawing) - _BESIDE
        middle = left + _BESIDE + w // 2
        low, high = gate - _AWAY - contact, gate + l + _AWAY
        tile.add("comp", left + _BESIDE, low, left + _BESIDE + w, high + contact)
        ends = [(low, bottom if k == 0 else low - edge, net)]
        ends += [(high, high - edge, block.links[-1])] if k == len(block.over) - 1 else []
        for y, under, name in ends:
            half = contact // 2
            tile.add("contact", middle - half, y, middle - half + contact, y + contact)
            tile.add("comp", middle - half - edge, y - edge, middle - half + contact + edge, y + contact + edge)
            metal = (x + (_FROM_HEAD if under == bottom else 0), min(under, y - edge), x + wide, y + contact + edge)
            tile.add("metal1", *metal)
            met = block.forked or name == block.ends[1]
            (tile.terminals if met else tile.inner).append(NetMetal(name, metal))
        tile.add("poly", left, gate, left + _BESIDE + w + drawing["poly_end"], gate + l)
        y = gate + l // 10 * 5 - STRIP // 2
        tile.shapes += contacts((left, y, left + STRIP, y + STRIP), drawing)
        tile.add("metal1", x, y, x + wide, y + STRIP)
        tile.terminals.append(NetMetal(mos.gate, (x, y, x + wide, y + STRIP)))


def _draw_lower(tile: LayoutTile, block: TransistorBlock, x: int, drawing: DrawingRules) -> None:
    at, (w, l), pitch = heights(block, drawing), block.shape[:2], _pitch(block.shape[0], drawing)  # noqa: E741
    whole = drawing["contact"] + 2 * drawing["contact_in"]
    left = x + (width(block, drawing) - _lower_width(block, drawing)) // 10 * 5
    for k in range(block.m):
        a = left + k * pitch + (max(w, whole) - w) // 10 * 5
        tile.add("comp", a, BOTTOM, a + w, at.end)
        ends = (BOTTOM, BOTTOM + whole), (at.end - whole, at.end)
        for (y1, y2), gate in zip(ends, (at.gate - DOGBONE, at.gate_top + DOGBONE), strict=True):
            if w < whole:
                b = left + k * pitch
                tile.add("comp", b, min(y1, gate), b + whole, max(y2, gate))
            tile.shapes += contacts((a, y1, a + w, y2), drawing)
    end = max(drawing["poly_end"], _NEXT)
    tile.add("poly", x - end, at.gate, tile.right + end, at.gate + l)


def _draw_upper(tile: LayoutTile, block: TransistorBlock, x: int, drawing: DrawingRules) -> None:
    at, (w, l) = heights(block, drawing), block.shape[2:]  # noqa: E741 - a length
    wide = _upper_width(block, drawing)
    left = x + (width(block, drawing) - wide) // 10 * 5
    tile.add("comp", left, at.upper, left + wide, at.upper + w)
    side, shared, end = drawing["contact_in"], _shared(drawing), drawing["poly_end"]
    first = left + side + drawing["contact"] + drawing["contact_gate"]
    gates = [first + k * (l + shared) for k in range(block.m)]
    for gate in gates:
        tile.add("poly", gate, at.upper - end, gate + l, at.tie + STRIP)
    tile.add("poly", x - max(end, _NEXT), at.tie, tile.right + 80, at.tie + STRIP)
    half = drawing["contact"] // 2
    middles = [left + side + half, *(gate + l + shared // 2 for gate in gates[:-1]), left + wide - side - half]
    for k, middle in enumerate(middles):
        a, b = middle - 170, middle + 170
        y = at.drain - side - 2 * half if k % 2 else at.upper + side
        tile.add("contact", middle - half, y, middle - half + 2 * half, y + 2 * half)
        if k % 2:
            tile.add("metal1", a, y - FINGER, b, at.drain + 100 + STRIP)
        else:
            tile.add("metal1", a, at.end - STRIP, b, y + 2 * half + FINGER)


def head_width(block: TransistorBlock, drawing: DrawingRules) -> int:
    """Return the width that the head of a gate line takes in front of its first block, nm."""
    return STRIP + (250 if block.upper is None else drawing["poly_active"] + 5)


def head(block: TransistorBlock, x: int, drawing: DrawingRules) -> LayoutTile:
    """Draw the head of a gate line: the poly that joins lower and upper units, with its contact and metal.

    x: left edge of the head's poly, nm; the first block of the line starts at the returned tile's `right`.
    """
    tile, at = LayoutTile(block, is_head=True), heights(block, drawing)
    pad = STRIP
    tile.right = x + head_width(block, drawing)
    if block.upper is None:
        low = at.gate
        tile.add("poly", x, low, x + pad, low + pad)
        box = (x - FREE, low, x + pad, low + pad + 60)
        tile.add("poly", x, low, x + pad + 250, at.gate_top)
    else:
        low = at.tie
        tile.add("poly", x, at.gate, x + pad, low + STRIP)
        tile.add("poly", x, at.gate, x + pad + 2 * drawing["poly_active"], at.gate_top)
        box = (x - FREE, low - 60, x + pad, low + pad)
    tile.shapes += contacts((x, low, x + pad, low + pad), drawing)
    tile.add("metal1", *box)
    tile.terminals.append(NetMetal(block.gate, box))
    return tile


def close_diode(line: LayoutTile, block: LayoutTile) -> None:
    """Connect a gate line's head to the drain of the block behind it by metal, and merge both into one terminal."""
    (gate,), drain = line.terminals, block.terminals.pop()
    box = (gate.box[0], drain.box[1], drain.box[2], drain.box[3])
    line.add("metal1", *box)
    line.terminals[:] = [NetMetal(gate.net, box)]
