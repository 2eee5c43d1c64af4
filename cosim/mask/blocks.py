"""Blocks, each drawn as one piece: `m` units of a transistor, with the `m` units of its cascode on top where it has
one, and the switches that its current runs through on top of these."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cosim.circuit.elements import GROUND, Mos
from cosim.technology.types import Polarity

VDD = "vdd"
RAIL: dict[Polarity, str] = {"n": GROUND, "p": VDD}


_LONG = 6e-7  # m, of a switch on top: its gate's metal keeps from that of its ends
_NARROW = 5e-7  # m, of a switch on top: it stands beside its gate's contact on the narrowest cascode


@dataclass(frozen=True)
class TransistorBlock:
    """A transistor of `m` units, and the one that stands on top of it and shares its gate line and its net between.

    over: switches on top of a cascode, from below: in series, whose nets between nobody else is on, or two side by side
    in the circuit, which share what they lead to in their middle."""

    lower: Mos
    upper: Mos | None = None
    over: tuple[Mos, ...] = ()

    @property
    def polarity(self) -> Polarity:
        """Return n or p, the polarity of the drawn transistor."""
        return self.lower.polarity

    @property
    def m(self) -> int:
        """Return the number of unit devices that are drawn side by side."""
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
        """Return the nets of a drawn block at its bottom, which is its rail where one of both is, and at its top."""
        if self.over:
            return self.lower.source, self.links[-1]
        drain = (self.upper or self.lower).drain
        if self.upper is None and drain == RAIL[self.polarity]:
            return drain, self.lower.source
        return self.lower.source, drain

    @property
    def links(self) -> tuple[str, ...]:
        """Return the nets above a drawn block's cascode, from below: each between two of its switches, the last one
        above all."""
        nets = [(self.upper or self.lower).drain]
        for mos in self.over:
            nets.append(mos.source if mos.drain == nets[-1] else mos.drain)
        return tuple(nets)

    @property
    def forked(self) -> bool:
        """Tell whether the block's current runs through one of two switches on top, or through both."""
        return len(self.over) == 2 and self.links[0] == self.links[2]

    @property
    def nets(self) -> tuple[str, ...]:
        """Return the nets of the drawn block that metal wires reach."""
        middle = self.links[1:2] if self.forked else ()
        return (*self.ends, *middle, self.gate, *(mos.gate for mos in self.over))

    @property
    def diode(self) -> bool:
        """Tell whether the block is a cascode with its gate line on its drain."""
        return self.upper is not None and not self.over and self.ends[1] == self.gate

    @property
    def own_well(self) -> bool:
        """Tell whether the block's well is on no supply."""
        return self.bulk != RAIL[self.polarity]

    @property
    def on_rail(self) -> bool:
        """Tell whether the block's bottom and its well are on the rail of its row."""
        return self.ends[0] == RAIL[self.polarity] == self.bulk

    @property
    def shape(self) -> tuple[int, ...]:
        """Return width and length of the drawn transistor, nm, to tell what fits under one poly."""
        return (*_size(self.lower), *(_size(self.upper) if self.upper else ()))


def _size(mos: Mos) -> tuple[int, int]:
    return nanometres(mos.w), nanometres(mos.l)


def nanometres(metres: float) -> int:
    """Return a length in metre as the mask has it, nm, rounded to the grid of 5 nm."""
    return 5 * round(metres * 2e8)


def stack(devices: Iterable[Mos], outside: Iterable[str] = ()) -> list[TransistorBlock]:
    """Return the blocks of a circuit's transistors, in their order; outside: nets to which other elements connect."""
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
    """Return the blocks, each cascode with the switches that only its current runs through."""
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
    """Return the two switches that a mask draws together: they alone join the top of a cascode with one other net.

    It is empty without such."""
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
