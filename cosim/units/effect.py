"""Effects of mismatch: which transistors make which factor of a current, see cosim.variation.effects."""

from dataclasses import dataclass

from cosim.cells.builder import NETWORK, net
from cosim.ir.nodes import MemoryCurrents

Key = str | tuple[str, str]


@dataclass(frozen=True)
class Effect:
    """One factor: the field of `Deviations` or of a unit's `factors`, its key, its place in a value of several, and
    what makes it.

    devices: (transistor, +1 or -1); current: ampere through each of them; slopes: n of each at that current.
    """

    field: str
    key: Key
    place: int | None
    devices: tuple[tuple[str, int], ...]
    current: float
    slopes: tuple[float, ...] = ()
    factors: type[object] | None = None


def effect(field: str, key: Key, current: float, *devices: tuple[str, int], place: int | None = None) -> Effect:
    """An effect of transistors named within the network."""
    return Effect(field, key, place, tuple((f"{NETWORK}.{name}", sign) for name, sign in devices), current)


@dataclass(frozen=True)
class Site:
    """A memory in its circuit: name, its bias pins, its set-points in ampere."""

    name: str
    pins: tuple[str, ...]
    asked: MemoryCurrents

    @property
    def cell(self) -> str:
        """The instance of its cell."""
        return f"cell_{net(self.name)}"

    @property
    def candidate(self) -> str:
        """Its candidate diode."""
        return f"cand_{net(self.name)}.diode"

    def comparator(self, side: str, current: float, comparator: str, pin: str) -> Effect:
        """Factor of a comparator's current: M2 against its bias diode, the candidate diode against M1."""
        devices = (f"{comparator}.2", 1), (f"{pin}.diode", -1), (f"{comparator}.1", -1), (self.candidate, 1)
        return effect(side, self.name, current, *devices)
