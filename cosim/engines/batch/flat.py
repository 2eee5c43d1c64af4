"""Flat circuits of many benches: what they share is flattened once, and is the same object in all of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import is_
from typing import Generic, NamedTuple, TypeVar

from cosim.circuit.elements import Circuit, Element, Source

Key = TypeVar("Key")
Value = TypeVar("Value")


class Flat(NamedTuple):
    """A flat circuit: the sources of its top level, and all others, one object for benches that have them in common."""

    shared: tuple[Element, ...]
    sources: tuple[Source, ...]

    @property
    def elements(self) -> tuple[Element, ...]:
        """Return all elements."""
        return (*self.shared, *self.sources)


class Last(Generic[Key, Value]):
    """The last few values of a function that takes long, by keys that are equal."""

    def __init__(self, count: int) -> None:
        self._count, self._kept = count, list[tuple[Key, Value]]()

    def of(self, key: Key, make: Callable[[Key], Value]) -> Value:
        """The value of this key."""
        for at, (other, value) in enumerate(self._kept):
            if other == key:
                self._kept.append(self._kept.pop(at))
                return value
        value = make(key)
        self._kept = [*self._kept[-self._count + 1 :], (key, value)]
        return value


@dataclass(frozen=True, eq=False)
class Undriven:
    """A circuit without the sources of its top level; equal where it is made of the same objects, which is fast."""

    circuit: Circuit

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Undriven) or self.circuit.subcircuits is not other.circuit.subcircuits:
            return False
        mine, theirs = self.circuit.elements, other.circuit.elements
        return len(mine) == len(theirs) and all(map(is_, mine, theirs))

    __hash__ = None  # pyright: ignore[reportAssignmentType]


_flats: Last[Undriven, tuple[Element, ...]] = Last(2)


def part(circuit: Circuit) -> tuple[Undriven, tuple[Source, ...]]:
    """A circuit without the sources of its top level, and these."""
    sources = tuple([element for element in circuit.elements if isinstance(element, Source)])
    rest = tuple([element for element in circuit.elements if not isinstance(element, Source)])
    return Undriven(replace(circuit, elements=rest)), sources


def flatten(circuit: Circuit) -> Flat:
    """A circuit without subcircuits."""
    undriven, sources = part(circuit)
    return Flat(_flats.of(undriven, lambda one: one.circuit.flat().elements), sources)
