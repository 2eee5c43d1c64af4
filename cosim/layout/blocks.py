"""What is drawn as one piece: `m` units of a transistor, with the `m` units of its cascode on top where it has one."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cosim.circuit.elements import GROUND, Mos
from cosim.technology.types import Polarity

VDD = "vdd"
RAIL: dict[Polarity, str] = {"n": GROUND, "p": VDD}


@dataclass(frozen=True)
class Block:
    """A transistor of `m` units, and the one that stands on top of it and shares its gate line and its net between."""

    lower: Mos
    upper: Mos | None = None

    @property
    def polarity(self) -> Polarity:
        """n or p."""
        return self.lower.polarity

    @property
    def m(self) -> int:
        """Units."""
        return self.lower.m

    @property
    def gate(self) -> str:
        """Gate line."""
        return self.lower.gate

    @property
    def bulk(self) -> str:
        """Net of its well, or of the substrate."""
        return self.lower.bulk

    @property
    def ends(self) -> tuple[str, str]:
        """Net at its bottom, which is its rail where one of both is, and at its top."""
        drain = (self.upper or self.lower).drain
        if self.upper is None and drain == RAIL[self.polarity]:
            return drain, self.lower.source
        return self.lower.source, drain

    @property
    def own_well(self) -> bool:
        """Whether its well is on no supply."""
        return self.bulk != RAIL[self.polarity]

    @property
    def on_rail(self) -> bool:
        """Whether its bottom is the rail of its row, and its well is, too."""
        return self.ends[0] == RAIL[self.polarity] == self.bulk

    @property
    def shape(self) -> tuple[int, ...]:
        """Nanometres of width and length, to tell what fits under one poly."""
        return (*_size(self.lower), *(_size(self.upper) if self.upper else ()))


def _size(mos: Mos) -> tuple[int, int]:
    return nanometres(mos.w), nanometres(mos.l)


def nanometres(metres: float) -> int:
    """A drawn length on the grid of 5 nm."""
    return 5 * round(metres * 2e8)


def stack(devices: Iterable[Mos]) -> list[Block]:
    """The blocks of a circuit's transistors, in their order."""
    devices = list(devices)
    uses: Counter[str] = Counter()
    above: dict[str, Mos] = {}
    for mos in devices:
        uses.update((mos.drain, mos.gate, mos.source))
        above[mos.source] = mos
    blocks: list[Block] = []
    taken: set[str] = set()
    for mos in devices:
        upper = above.get(mos.drain)
        if upper is not None and uses[mos.drain] == 2 and _same(mos, upper):
            blocks.append(Block(mos, upper))
            taken.add(upper.name)
    paired = {block.lower.name: block for block in blocks}
    return [paired.get(mos.name, Block(mos)) for mos in devices if mos.name not in taken]


def _same(lower: Mos, upper: Mos) -> bool:
    one, other = ((mos.gate, mos.polarity, mos.bulk, mos.m) for mos in (lower, upper))
    return one == other
