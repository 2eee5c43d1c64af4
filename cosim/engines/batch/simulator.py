"""The batch engine as one of the simulators: benches of one circuit side by side, on tables of their technology."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from cosim.circuit.bench import Bench, Tran
from cosim.circuit.deck import format_circuit, format_elements
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.elements import Circuit, Element, Source
from cosim.engines.batch.assemble import Assembled, assemble
from cosim.engines.batch.installed import check_numba
from cosim.engines.batch.keep import FORMAT, device_tables
from cosim.engines.batch.lanes import LANES
from cosim.engines.batch.solve import Late, solve_benches
from cosim.engines.batch.structure import Shape, devices_of, shape_of
from cosim.engines.batch.tile import ACCURACY
from cosim.engines.batch.unsupported import Unsupported
from cosim.engines.engine import Description, Failure, FailureKind, Waveforms
from cosim.engines.table import NGSPICE, simulator_named
from cosim.technology.types import Technology

Key = TypeVar("Key")
Value = TypeVar("Value")
REVISION = 2  # raised whenever the same bench comes out differently


@dataclass(frozen=True)
class Batch:
    """Coupled nodal analysis on device tables; what it has no model for is a Failure of kind UNSUPPORTED."""

    name: str = "batch"
    grace: float = 0.0
    lanes: int = 8 * LANES
    fallback: str = NGSPICE

    def write(self, bench: Bench) -> str:
        """What the result depends on: circuit, sources, condition and accuracy."""
        rest, sources = _parted(bench.circuit)
        there = bench.technology
        driven = "\n".join(format_elements(sources, there))
        return (
            f"* batch revision {REVISION}, tables {FORMAT}\n{_texts.of((rest, there), _format_rest)}{driven}\n"
            f"* {there.name} {there.corner} {there.celsius!r} C {there.supply!r} V\n"
            f"* {bench.analysis} {bench.tolerances} {bench.preset} {bench.start} {bench.probes}\n"
        )

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Run a bench alone."""
        return self.run_all([bench], timeout)[0]

    def run_all(self, benches: Sequence[Bench], timeout: float) -> list[Waveforms | Failure]:
        """Run benches of one circuit side by side.

        Raises MissingToolError where tables must be measured and ngspice is missing.
        """
        try:
            circuit, elements = assemble_benches(benches)
            found = solve_benches(circuit, benches, elements, timeout)
        except Unsupported as reason:
            found = [reason for _ in benches]
        except Late:
            late = f"after {timeout:g} s"
            return [Failure(FailureKind.TIMEOUT, late, format_bench(bench)) for bench in benches]
        return [
            Failure(FailureKind.UNSUPPORTED, str(one), format_bench(bench)) if isinstance(one, Unsupported) else one
            for one, bench in zip(found, benches, strict=True)
        ]

    def check(self) -> None:
        """Raises MissingToolError without numba. Tables are measured in ngspice, which says so where it is missing."""
        check_numba()

    def describe(self, technology: Technology) -> Description:
        """Its revision, and what it is exact to. Raises MissingToolError without numba."""
        self.check()
        reference = simulator_named(self.fallback).describe(technology)
        options = {name: f"{value:g}" for name, value in ACCURACY.items()}
        return Description(f"{REVISION}, tables {FORMAT} of {self.fallback} {reference.version}", options)


def assemble_benches(benches: Sequence[Bench]) -> tuple[Assembled, list[tuple[Element, ...]]]:
    """The circuit that they share, and the flat elements of each.

    Raises Unsupported for what there is no model of; MissingToolError where tables must be measured without ngspice.
    """
    elements = [_flat(bench.circuit) for bench in benches]
    return _assembled(benches[0], elements), elements


class _Last(Generic[Key, Value]):
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
class _Rest:
    """A circuit without the sources of its top level; equal where it is made of the same objects, which is fast."""

    circuit: Circuit

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Rest) or self.circuit.subcircuits is not other.circuit.subcircuits:
            return False
        mine, theirs = self.circuit.elements, other.circuit.elements
        return len(mine) == len(theirs) and all(map(_is, mine, theirs))

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def _is(one: object, other: object) -> bool:
    return one is other


_flats: _Last[_Rest, tuple[Element, ...]] = _Last(2)
_texts: _Last[tuple[_Rest, Technology], str] = _Last(2)
_circuits: _Last[tuple[Technology, Shape], Assembled] = _Last(4)


def _parted(circuit: Circuit) -> tuple[_Rest, tuple[Source, ...]]:
    sources = tuple(element for element in circuit.elements if isinstance(element, Source))
    rest = tuple(element for element in circuit.elements if not isinstance(element, Source))
    return _Rest(replace(circuit, elements=rest)), sources


def _flat(circuit: Circuit) -> tuple[Element, ...]:
    rest, sources = _parted(circuit)
    return (*_flats.of(rest, lambda rest: rest.circuit.flat().elements), *sources)


def _format_rest(key: tuple[_Rest, Technology]) -> str:
    return format_circuit(key[0].circuit, key[1])


def _assembled(bench: Bench, elements: Sequence[tuple[Element, ...]]) -> Assembled:
    """Raises Unsupported for an analysis, a circuit or a device that there is no model of."""
    if not isinstance(bench.analysis, Tran):
        raise Unsupported(f"an analysis {bench.analysis}")
    shapes = [shape_of(one) for one in _distinct(elements)]
    if any(shape != shapes[0] for shape in shapes):
        raise Unsupported("circuits that differ in more than sources and deviations")

    def make(key: tuple[Technology, Shape]) -> Assembled:
        kinds = dict.fromkeys(device.kind for device in devices_of(elements[0]))
        return assemble(elements[0], device_tables(key[0], kinds))

    return _circuits.of((bench.technology, shapes[0]), make)


def _distinct(elements: Iterable[tuple[Element, ...]]) -> list[tuple[Element, ...]]:
    """Without those whose transistors are the same objects as those of the one before."""
    found: list[tuple[Element, ...]] = []
    for one in elements:
        if not found or len(one) != len(found[-1]) or not all(map(_same, one, found[-1])):
            found.append(one)
    return found


def _same(one: Element, other: Element) -> bool:
    return one is other or (isinstance(one, Source) and isinstance(other, Source) and one.name == other.name)
