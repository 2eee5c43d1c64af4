"""Devices, subcircuits and instances as frozen data. Lengths in metre, currents in ampere, voltages in volt.

Ground is the net `0`. Net and element names are lower case, because SPICE does not distinguish case.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from cosim.technology.types import Polarity

GROUND = "0"


@dataclass(frozen=True)
class Mos:
    """One transistor of `m` identical units in parallel, each w by l. `origin` says what it is for.

    vt_shift: by how much the magnitude of its threshold voltage deviates, V; beta_factor: its current factor over
    nominal.
    """

    name: str
    drain: str
    gate: str
    source: str
    bulk: str
    polarity: Polarity
    w: float
    l: float  # noqa: E741 - the field's own letter
    m: int = 1
    origin: str = ""
    vt_shift: float = 0.0
    beta_factor: float = 1.0

    @property
    def gate_area(self) -> float:
        """m w l in square metre."""
        return self.m * self.w * self.l


@dataclass(frozen=True)
class Instance:
    """A subcircuit call: nets in the order of the subcircuit's ports."""

    name: str
    nets: tuple[str, ...]
    subcircuit: str
    origin: str = ""


@dataclass(frozen=True)
class Capacitor:
    """A capacitor in farad."""

    name: str
    a: str
    b: str
    value: float
    origin: str = ""


@dataclass(frozen=True)
class Source:
    """An independent source from net `a` to net `b`: `value` is a number (dc) or a tuple of (time, value) points."""

    name: str
    kind: Literal["v", "i"]
    a: str
    b: str
    value: float | tuple[tuple[float, float], ...]
    origin: str = ""


Element = Mos | Instance | Capacitor | Source


@dataclass(frozen=True)
class Subcircuit:
    """A named block with ports; `summary` becomes the comment above its definition."""

    name: str
    ports: tuple[str, ...]
    elements: tuple[Element, ...]
    summary: str = ""


@dataclass(frozen=True)
class Circuit:
    """Subcircuit definitions in order of use and the elements of the top level."""

    title: str
    subcircuits: tuple[Subcircuit, ...] = ()
    elements: tuple[Element, ...] = field(default=())

    def capacitance(self) -> float:
        """Sum of all capacitors, farad."""
        blocks = {block.name: block for block in self.subcircuits}

        def total(elements: tuple[Element, ...]) -> float:
            inner = (total(blocks[e.subcircuit].elements) for e in elements if isinstance(e, Instance))
            return sum((e.value for e in elements if isinstance(e, Capacitor)), 0.0) + sum(inner, 0.0)

        return total(self.elements)

    def flatten(self) -> Iterator[Mos]:
        """Every transistor with its hierarchical name, in netlist order; nets as a simulator names them, see `flat`."""
        return (element for element in self.flat().elements if isinstance(element, Mos))

    def flat(self) -> "Circuit":
        """The same circuit without subcircuits: `m4` of `xcell` in `xnetwork` is the transistor `network.cell.4`.

        An inner net `latch` of it is `xnetwork.xcell.latch`, as simulators that flatten a hierarchy name it.
        """
        blocks = {block.name: block for block in self.subcircuits}
        return Circuit(self.title, (), tuple(_flatten(self.elements, blocks, "", "", {})))


def _flatten(
    elements: tuple[Element, ...], blocks: dict[str, Subcircuit], path: str, inside: str, ports: dict[str, str]
) -> Iterator[Element]:
    def net(name: str) -> str:
        return name if name == GROUND else ports.get(name, inside + name)

    for element in elements:
        name = path + element.name
        match element:
            case Mos(_, drain, gate, source, bulk):
                yield replace(element, name=name, drain=net(drain), gate=net(gate), source=net(source), bulk=net(bulk))
            case Instance():
                block = blocks[element.subcircuit]
                inner = dict(zip(block.ports, map(net, element.nets), strict=True))
                yield from _flatten(block.elements, blocks, f"{name}.", f"{inside}x{element.name}.", inner)
            case Capacitor(_, a, b) | Source(_, _, a, b):
                yield replace(element, name=name, a=net(a), b=net(b))
