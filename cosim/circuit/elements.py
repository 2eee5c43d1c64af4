"""Devices, subcircuits and instances as frozen data. Lengths in metre, currents in ampere, voltages in volt.

Ground is the net `0`. Net and element names are lower case, because SPICE does not distinguish case. No name occurs
twice in a block or circuit, see `check_names`: ngspice accepts two instances of one name silently, VACASK refuses them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from cosim.base.errors import MappingError
from cosim.technology.types import Polarity

GROUND = "0"
RAILS = (GROUND, "vdd")  # of a compiled circuit

Role = Literal[
    "diode",  # makes a gate line from the current of a signal
    "copy",  # brings a signal from its line p onto its line n
    "weight",  # a weight of a row, or a copy of beta
    "output",  # the diode of a unit's state, which makes its gate line p
    "candidate",  # rectifies a candidate and makes its gate line
    "compare",  # M1: copies the candidate into the decision node
    "threshold",  # M2: what the candidate is compared with
    "loop in",  # M7: the diode of the feedback
    "loop out",  # M9: copies the feedback into the decision node
    "width",  # M8: the current of the feedback
    "level",  # M5, M11: the current of a unit's state
    "inner",  # makes or copies a current within a cell
    "pair",  # one of a differential pair
    "bias",  # the diode of a bias line
    "sink",  # the pedestal of a state
    "reference",  # part of the current reference
    "switch",  # steers or holds, and makes no current: in no matched group
]


@dataclass(frozen=True)
class Attribution:
    """The part of a network that an instance in its circuit is counted to.

    group: in the study of what causes the spread; block: in power and area.
    """

    group: str
    block: str


def block_of(part: Attribution | None) -> str:
    """Return the block to which a circuit element with this part is counted in power and area.

    Every instance of a network has a part, which its builder gives.
    """
    assert part is not None
    return part.block


@dataclass(frozen=True)
class Mos:
    """A transistor of a circuit: `m` identical devices in parallel, each w by l, metre.

    origin: where it comes from; vt_shift: deviation of its threshold voltage's magnitude, V; beta_factor: its current
    factor over nominal; role: its purpose in the cell; match: the net whose devices a layout places together, mostly
    its gate line; part: part of the network, in a flat circuit that of its instance.
    """

    letter: ClassVar[str] = "m"  # that its name begins with in a netlist
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
    role: Role | None = None
    match: str = ""
    part: Attribution | None = None

    @property
    def gate_area(self) -> float:
        """Return the transistor's gate area m w l in square metre."""
        return self.m * self.w * self.l

    @property
    def deviates(self) -> bool:
        """Return whether the transistor differs from its model card by a threshold shift or a current factor."""
        return self.vt_shift != 0 or self.beta_factor != 1


@dataclass(frozen=True)
class Instance:
    """An instance of a subcircuit in a netlist; nets in the order of the subcircuit's ports.

    match: (group inside, net outside) of devices that a layout matches although a switch separates the two nets.
    """

    letter: ClassVar[str] = "x"  # that its name begins with in a netlist
    name: str
    nets: tuple[str, ...]
    subcircuit: str
    origin: str = ""
    part: Attribution | None = None
    match: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Capacitor:
    """A capacitor of a circuit, in farad."""

    letter: ClassVar[str] = "c"  # that its name begins with in a netlist
    name: str
    a: str
    b: str
    value: float
    origin: str = ""
    part: Attribution | None = None


@dataclass(frozen=True)
class Resistor:
    """A resistor of a circuit, in ohm. The compiler places none: it comes from a netlist that was edited or written."""

    letter: ClassVar[str] = "r"  # that its name begins with in a netlist
    name: str
    a: str
    b: str
    value: float
    origin: str = ""
    part: Attribution | None = None


@dataclass(frozen=True)
class Source:
    """An independent source of a circuit from net `a` to net `b`, a voltage (V) or a current (A).

    value: a number for a constant, or (time in s, value) points; part: of the network in which it stands, None for a
    source of a testbench.
    """

    name: str
    kind: Literal["v", "i"]
    a: str
    b: str
    value: float | tuple[tuple[float, float], ...]
    origin: str = ""
    part: Attribution | None = None

    @property
    def letter(self) -> str:
        """Return the letter that the source's name begins with in a netlist."""
        return self.kind


Element = Mos | Instance | Capacitor | Resistor | Source


def check_names(place: str, elements: Sequence[Element]) -> None:
    """Raise MappingError if two elements of one block, or of the top level, have the same name in any dialect.

    A name is what a netlist writes, with its letter: a source `upper` and an instance `upper` have two names. place: of
    the block, for the message.
    """
    names = [(element.letter + element.name).lower() for element in elements]
    if len(set(names)) == len(names):
        return
    name = next(name for at, name in enumerate(names) if name in names[:at])
    first, second, *_ = (_described(element) for element, one in zip(elements, names, strict=True) if one == name)
    raise MappingError(
        f"{place}: names of elements must differ, not two of {name}: {first} and {second}; give one of them another "
        "name"
    )


def _described(element: Element) -> str:
    """Return an element's origin for messages, or its nets if it has none."""
    match element:
        case Mos(_, drain, gate, source, bulk):
            nets: tuple[str, ...] = (drain, gate, source, bulk)
        case Instance(_, nets, subcircuit):
            return element.origin or f"{subcircuit} on {' '.join(nets)}"
        case Capacitor(_, a, b) | Resistor(_, a, b) | Source(_, _, a, b):
            nets = (a, b)
    return element.origin or f"{type(element).__name__} on {' '.join(nets)}"


@dataclass(frozen=True)
class Subcircuit:
    """A subcircuit of a netlist: a named block with ports; `summary` becomes the comment above its definition.

    Raises MappingError if two of its elements have the same name.
    """

    name: str
    ports: tuple[str, ...]
    elements: tuple[Element, ...]
    summary: str = ""

    def __post_init__(self) -> None:
        check_names(f"subcircuit {self.name}", self.elements)


@dataclass(frozen=True)
class Circuit:
    """A circuit as data: subcircuit definitions in order of use and the elements of the top level.

    Raises MappingError if two elements, or two definitions, have the same name.
    """

    title: str
    subcircuits: tuple[Subcircuit, ...] = ()
    elements: tuple[Element, ...] = field(default=())

    def __post_init__(self) -> None:
        check_names(self.title, self.elements)
        names = [block.name for block in self.subcircuits]
        if len(set(names)) < len(names):
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            raise MappingError(
                f"{self.title}: names of subcircuits must differ, not two of {twice}; define it once, or give one of "
                "them another name"
            )

    def flatten(self) -> Iterator[Mos]:
        """Yield every transistor of the circuit with its hierarchical name, in netlist order; nets as in `flat`."""
        return (element for element in self.flat().elements if isinstance(element, Mos))

    def roles(self) -> dict[tuple[str, Role], str]:
        """Return (path of an instance, role) -> the first transistor of that role in the instance or below it."""
        found: dict[tuple[str, Role], str] = {}
        for mos in self.flatten():
            path = mos.name
            while mos.role and (path := path.rpartition(".")[0]):
                found.setdefault((path, mos.role), mos.name)
        return found

    def flat(self) -> "Circuit":
        """Return the circuit without subcircuits: `m4` of `xcell` in `xnetwork` is the transistor `network.cell.4`.

        An inner net `latch` of that cell is `xnetwork.xcell.latch`, as simulators that flatten a hierarchy name it.
        """
        if not self.subcircuits and not any(isinstance(element, Instance) for element in self.elements):
            return self
        blocks = {block.name: block for block in self.subcircuits}
        return Circuit(self.title, (), tuple(_flatten(self.elements, blocks, _Scope())))


@dataclass(frozen=True)
class _Scope:
    """The scope of elements while a hierarchy is flattened.

    path, inside: prefixes of element names and of inner nets; ports: port -> outer net; groups: matched group -> its
    name outside; part: of the enclosing instance.
    """

    path: str = ""
    inside: str = ""
    ports: Mapping[str, str] = field(default_factory=dict[str, str])
    groups: Mapping[str, str] = field(default_factory=dict[str, str])
    part: Attribution | None = None

    def net(self, name: str) -> str:
        return name if name == GROUND else self.ports.get(name, self.inside + name)

    def group(self, match: str) -> str:
        name, dot, rest = match.partition(".")
        return self.groups.get(name, self.net(name)) + dot + rest if match else ""


def _flatten(elements: tuple[Element, ...], blocks: dict[str, Subcircuit], scope: _Scope) -> Iterator[Element]:
    net = scope.net
    for element in elements:
        name = scope.path + element.name
        match element:
            case Mos(_, drain, gate, source, bulk):
                ends = {"drain": net(drain), "gate": net(gate), "source": net(source), "bulk": net(bulk)}
                part = element.part or scope.part
                yield replace(element, name=name, **ends, match=scope.group(element.match), part=part)
            case Instance():
                block = blocks[element.subcircuit]
                ports = dict(zip(block.ports, map(net, element.nets), strict=True))
                groups = {inner: scope.group(outer) for inner, outer in element.match}
                inside, part = f"{scope.inside}x{element.name}.", element.part or scope.part
                yield from _flatten(block.elements, blocks, _Scope(f"{name}.", inside, ports, groups, part))
            case Capacitor(_, a, b) | Resistor(_, a, b):
                yield replace(element, name=name, a=net(a), b=net(b), part=element.part or scope.part)
            case Source(_, _, a, b):
                yield replace(element, name=name, a=net(a), b=net(b), part=element.part or scope.part)
