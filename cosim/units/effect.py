"""Effects of mismatch: which transistors make which factor of a current, see cosim.variation.effects."""

from collections.abc import Mapping
from dataclasses import dataclass

from cosim.cells.builder import instance, net
from cosim.circuit.elements import Role
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
    """An effect of these transistors."""
    return Effect(field, key, place, devices, current)


@dataclass(frozen=True)
class Site:
    """A memory in its circuit: name, its bias pins, its set-points in ampere; roles: `Circuit.roles` of the network."""

    name: str
    pins: tuple[str, ...]
    asked: MemoryCurrents
    roles: Mapping[tuple[str, Role], str]

    def device(self, role: Role, block: str = "") -> str:
        """The transistor of a role in its cell or a block of that."""
        return self.roles[instance(f"cell_{net(self.name)}{block and '.'}{block}"), role]

    def bias(self, pin: str) -> str:
        """The diode of a bias pin."""
        return self.roles[instance(pin), "bias"]

    @property
    def candidate(self) -> str:
        """Return the candidate diode of the cell."""
        return self.roles[instance(f"cand_{net(self.name)}"), "candidate"]

    def comparator(self, side: str, current: float, comparator: str, pin: str) -> Effect:
        """Factor of a comparator's current: M2 against its bias diode, the candidate diode against M1."""
        threshold, compare = self.roles[comparator, "threshold"], self.roles[comparator, "compare"]
        devices = (threshold, 1), (self.bias(pin), -1), (compare, -1), (self.candidate, 1)
        return effect(side, self.name, current, *devices)
