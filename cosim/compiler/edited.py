"""Edited netlists: the netlist of `cosim compile` as a designer changed it, used in place of the compiled circuit.

The file is network.sp, for ngspice, after any change: other sizes, devices in parallel, nets, or elements and
subcircuits that were added. At its top level `i<pin> vdd <pin> 1.2n` gives a bias pin another current. What the verbs
drive and read must be there still, under its name: the network's pins, its transistors, and the nets of its states.

An element that keeps its name keeps its role in its cell and its part of the network. It keeps the group in which it is
matched unless its gate or, of an instance, its nets are others. So areas, mismatch and power are those of the edited
circuit. The behavioral equations follow new sizes and bias currents (`current_factors`), and nothing else that was
edited.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from cosim.base.errors import InputError, warn
from cosim.base.quantities import format_quantity
from cosim.base.text import listed, read_bytes, shown_path
from cosim.cells.assembly import Assembly
from cosim.circuit.elements import (
    RAILS,
    Capacitor,
    Circuit,
    Element,
    Instance,
    Mos,
    Resistor,
    Source,
    Subcircuit,
)
from cosim.circuit.spice import Netlist, read_netlist
from cosim.compiler.overrides import CURRENT
from cosim.technology.types import Technology

LIMIT = 4 << 20  # bytes; that of a network of 32 cells has 0.2 MB
_REPAIR = "give network.sp of cosim compile, edited"
_SAME = 1e-9  # relative, of a number that was written and read again


@dataclass(frozen=True)
class EditedNetlist:
    """A netlist that stands in place of the compiled circuit: its text, and the name of its file for messages."""

    name: str
    text: str


@dataclass(frozen=True)
class Edit:
    """One difference between a compiled circuit and its edited netlist.

    block: subcircuit, "" for the top level; element: its name with its letter, or the name of a subcircuit; line: in
    the netlist, 0 for an element that is gone; what: size, nets, value, model, subcircuit, parameters, bias, added,
    removed or not used; before, after: as text, "" where there is none.
    """

    block: str
    element: str
    line: int
    what: str
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        """Return the edit as one phrase, such as `m2 of schmitt_clocked: size 1 x 5/5 um -> 1 x 6/5 um (line 77)`."""
        place = f"{self.element} of {self.block}" if self.block else self.element
        change = f"{self.before} -> {self.after}" if self.before and self.after else self.before or self.after
        return f"{place}: {self.what} {change}".rstrip() + (f" (line {self.line})" if self.line else "")

    @property
    def followed(self) -> bool:
        """Tell whether the behavioral equations follow the edit: another size or bias current."""
        return self.what in ("size", "bias")


def read_edited(path: Path) -> EditedNetlist:
    """Read the file of an edited netlist. Raises InputError for a file that is missing, too large or not text."""
    data = read_bytes(path, LIMIT, _REPAIR)
    try:
        return EditedNetlist(shown_path(Path(path.name)), data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(f"{path}: must be a netlist, which is text in UTF-8; {_REPAIR}") from None


def replace_circuit(
    compiled: Assembly, edited: EditedNetlist, technology: Technology
) -> tuple[Assembly, tuple[Edit, ...]]:
    """Return an assembly with an edited netlist in place of its circuit, and the differences between the two.

    Raises InputError that names the line of what is not understood, or the pin, transistor or net that is missing.
    Warns of nets whose voltage nothing sets.
    """
    before = compiled.circuit
    tops = tuple(dict.fromkeys(one.subcircuit for one in before.elements if isinstance(one, Instance)))
    netlist = read_netlist(edited.text, edited.name, technology, tops=tops)
    if netlist.run or netlist.measures or netlist.start or netlist.preset or netlist.reltol:
        raise InputError(
            f"{edited.name}: the verb says what is run and measured; remove .tran, .dc, .op, .ic, .nodeset, .meas and "
            ".options, and write pwl for pulse"
        )
    origins = _origins(before, netlist)
    old = {block.name: block for block in before.subcircuits}
    called = netlist.blocks
    blocks = tuple(
        _described(block, old.get(origins.get(block.name, "")), called) for block in netlist.circuit.subcircuits
    )
    new = {block.name: block for block in blocks}
    elements = tuple(
        _connected(one, old[one.subcircuit], new[one.subcircuit], edited.name) if isinstance(one, Instance) else one
        for one in before.elements
    )
    circuit = Circuit(before.title, blocks, elements)
    _check_kept(compiled, circuit, edited.name)
    pins = {**compiled.bias_pins, **_bias_currents(compiled, netlist, edited.name)}
    found = replace(compiled, circuit=circuit, bias_pins=pins)
    return found, tuple(_edits(compiled, found, netlist, origins))


def _origins(before: Circuit, netlist: Netlist) -> dict[str, str]:
    """Return subcircuit of an edited netlist -> the compiled one that it was made of; a new one has none.

    The two have one name, or an instance that had the compiled one has the edited one.
    """
    old = {block.name: _by_name(block.elements) for block in before.subcircuits}
    found = {name: called for name, called in netlist.blocks.items() if called in old}
    known = 0
    while len(found) > known:  # each pass goes one level deeper, where it finds anything
        known = len(found)
        for block in netlist.circuit.subcircuits:
            there = old.get(found.get(block.name, ""), {})
            for element in block.elements:
                was = there.get(element.letter + element.name)
                if isinstance(element, Instance) and isinstance(was, Instance):
                    found.setdefault(element.subcircuit, was.subcircuit)
    return found


def _by_name(elements: Sequence[Element]) -> dict[str, Element]:
    return {element.letter + element.name: element for element in elements}


def _described(block: Subcircuit, before: Subcircuit | None, called: Mapping[str, str]) -> Subcircuit:
    """Return a subcircuit whose elements have what the compiler knows about those of the same names.

    called: name of a subcircuit -> as the netlist calls it.
    """
    if before is None:
        return block
    known = _by_name(before.elements)
    elements = (
        _kept(element, known[name], called)
        if (name := element.letter + element.name) in known
        else _placed(element, before)
        for element in block.elements
    )
    return replace(block, elements=tuple(elements), summary=before.summary)


def _kept(element: Element, before: Element, called: Mapping[str, str]) -> Element:
    """Return an element of an edited netlist with the compiled one's origin, role, part and matched group.

    The group is left out where the gate or, of an instance, nets or subcircuit are others. Numbers that differ by
    rounding in the netlist alone are the compiled ones.
    """
    match element, before:
        case Mos(), Mos():
            w, l = (b if _same(a, b) else a for a, b in ((element.w, before.w), (element.l, before.l)))  # noqa: E741
            group = before.match if element.gate == before.gate else ""
            return replace(
                element, w=w, l=l, origin=before.origin, role=before.role, part=before.part, match=group
            )  # fmt: skip
        case Instance(), Instance():
            same = (element.nets, called[element.subcircuit]) == (before.nets, before.subcircuit)
            groups = before.match if same else ()
            return replace(element, origin=before.origin, part=before.part, match=groups)
        case (Capacitor(), Capacitor()) | (Resistor(), Resistor()):
            value = before.value if _same(element.value, before.value) else element.value
            return replace(element, value=value, origin=before.origin, part=before.part)
        case _:
            return element


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME)


def _placed(element: Element, block: Subcircuit) -> Element:
    """Return an element that was added to a subcircuit, with the part of an element that has a net in common with it.

    Rails do not count as such. In a cell elements have no part, because it is that of the cell's instance.
    """
    parts = [(set(_ends(one)), one.part) for one in block.elements if one.part is not None]
    if not parts:
        return element
    own = {*_ends(element)} - {*RAILS}
    return replace(element, part=next((part for ends, part in parts if ends & own), parts[0][1]))


def _ends(element: Element) -> tuple[str, ...]:
    """Return the nets of an element, in its order."""
    match element:
        case Mos(_, drain, gate, source, bulk):
            return drain, gate, source, bulk
        case Instance(_, nets):
            return nets
        case Capacitor(_, a, b) | Resistor(_, a, b) | Source(_, _, a, b):
            return a, b


def _connected(instance: Instance, before: Subcircuit, block: Subcircuit, name: str) -> Instance:
    """Return an instance at the top level with its nets in the order of an edited subcircuit's ports.

    Raises InputError where the ports are not those of the compiled one.
    """
    outside = dict(zip(before.ports, instance.nets, strict=True))
    missing, added = [port for port in outside if port not in block.ports], sorted({*block.ports} - {*outside})
    if missing or added:
        what = f"lacks {listed(missing)}" if missing else f"has {listed(added)} as well"
        raise InputError(
            f"{name}: .subckt {block.name} must have the ports of the compiled network, which the verbs drive, and "
            f"{what}; restore them"
        )
    return replace(instance, nets=tuple(outside[port] for port in block.ports))


def _check_kept(compiled: Assembly, circuit: Circuit, name: str) -> None:
    """Raise InputError for a transistor or net that the verbs read and that is gone; warn of gates that float."""
    before, after = compiled.circuit.flat().elements, circuit.flat().elements
    there = {one.name for one in after if isinstance(one, Mos)}
    if gone := next((one.name for one in before if isinstance(one, Mos) and one.name not in there), None):
        raise InputError(
            f"{name}: the transistor {netlist_path(gone)} must be there still, because the verbs know it by its name; "
            "to switch one off, connect its gate to its source"
        )
    old, nets = {*chain(*map(_ends, before))}, {*chain(*map(_ends, after))}
    if lost := next((net for net in _read_nets(compiled) if net in old and net not in nets), None):
        raise InputError(f"{name}: the net {lost} must be there still, because the verbs read its voltage; restore it")
    if floating := sorted(_floating(after) - _floating(before)):
        warn(f"{name}: nothing sets the voltage of {listed(floating)}, where only gates and capacitors are")


def netlist_path(device: str) -> str:
    """Return a flat circuit's transistor as its netlist calls it: `network.cell.2` is xnetwork.xcell.m2."""
    *outer, last = device.split(".")
    return ".".join([*(f"x{one}" for one in outer), f"m{last}"])


def _read_nets(assembly: Assembly) -> Iterator[str]:
    """Yield the nets of a circuit whose voltages are read or set by the verbs."""
    for shown in assembly.decisions.values():
        if isinstance(shown, tuple):
            yield from shown
    yield from chain(*assembly.held.values(), assembly.candidates.values(), assembly.around.lines)
    yield from (net for net, _ in assembly.around.start)


def _floating(elements: Sequence[Element]) -> set[str]:
    """Return the inner nets of a flat circuit on which there are only gates, bulks and capacitors."""
    joined, insulated = set[str](RAILS), set[str]()
    for one in elements:
        match one:
            case Mos(_, drain, gate, source, bulk):
                joined |= {drain, source}
                insulated |= {gate, bulk}
            case Capacitor(_, a, b):
                insulated |= {a, b}
            case _:
                joined |= {*_ends(one)}
    return {net for net in insulated - joined if "." in net}


def _bias_currents(compiled: Assembly, netlist: Netlist, name: str) -> dict[str, float]:
    """Return bias pin -> current, A, of the sources at the top level of an edited netlist.

    Instances that the compiled circuit has there may be there, too, as in a netlist that xschem writes. Raises
    InputError for any other element.
    """
    found: dict[str, float] = {}
    own = {(one.name, one.nets, one.subcircuit) for one in compiled.circuit.elements if isinstance(one, Instance)}
    for one in netlist.circuit.elements:
        if isinstance(one, Instance) and (one.name, one.nets, netlist.blocks[one.subcircuit]) in own:
            continue
        line = netlist.lines["", one.letter + one.name]
        value = one.value if isinstance(one, Source) and (one.kind, one.a, one.b) == ("i", "vdd", one.name) else None
        if one.name not in compiled.bias_pins or not isinstance(value, float):
            pin = next(iter(compiled.bias_pins), "bias")
            raise InputError(
                f"{name}: line {line}: at the top level there may be currents of bias pins, such as i{pin} vdd {pin} "
                f"1n, and nothing else, because the verb drives all other pins; remove {one.letter}{one.name}, or put "
                "it into a .subckt"
            )
        if compiled.around.feeds:
            raise InputError(f"{name}: line {line}: the chip makes the current of {one.name} itself; remove the source")
        CURRENT.check(f"{name}: line {line}: the current into {one.name}", value)
        found[one.name] = value
    return found


def _edits(compiled: Assembly, edited: Assembly, netlist: Netlist, origins: Mapping[str, str]) -> Iterator[Edit]:
    """Yield the differences between a compiled circuit and the edited one, in the order of the netlist."""
    old = {block.name: block for block in compiled.circuit.subcircuits}
    for block in edited.circuit.subcircuits:
        called = netlist.blocks[block.name]
        if (origin := origins.get(block.name)) is None:
            yield Edit("", called, netlist.lines[called, ""], "added", after="as a subcircuit")
            continue
        known = _by_name(old[origin].elements)
        for name, element in _by_name(block.elements).items():
            line, was = netlist.lines[called, name], known.pop(name, None)
            if was is None:
                if isinstance(element, Instance):
                    element = replace(element, subcircuit=netlist.blocks[element.subcircuit])
                yield Edit(called, name, line, "added", after=_text(element))
            else:
                yield from (replace(one, block=called, line=line) for one in _changes(name, was, element, netlist))
        yield from (Edit(called, name, 0, "removed", before=_text(was)) for name, was in known.items())
    yield from (Edit("", name, netlist.lines[name, ""], "not used") for name in netlist.unused)
    for pin, was in compiled.bias_pins.items():
        if not _same(was, now := edited.bias_pins[pin]):
            line = netlist.lines["", f"i{pin}"]
            yield Edit("", f"i{pin}", line, "bias", format_quantity(was, "A", 4), format_quantity(now, "A", 4))


def _changes(name: str, before: Element, after: Element, netlist: Netlist) -> Iterator[Edit]:
    """Yield the differences between an element as compiled and as edited, without its place."""
    pairs = [("nets", " ".join(_ends(before)), " ".join(_ends(after)))]
    match before, after:
        case Mos(), Mos():
            pairs += [("size", _size(before), _size(after)), ("model", before.polarity, after.polarity)]
        case Instance(), Instance():
            called = netlist.blocks[after.subcircuit]
            pairs.append(("subcircuit", before.subcircuit, called))
            pairs.append(("parameters", "", "" if after.subcircuit == called else netlist.values[after.subcircuit]))
        case _:
            pairs.append(("value", _text(before), _text(after)))
    yield from (Edit("", name, 0, what, one, other) for what, one, other in pairs if one != other)


def _size(mos: Mos) -> str:
    return f"{mos.m} x {1e6 * mos.w:.6g}/{1e6 * mos.l:.6g} um"


def _text(element: Element) -> str:
    """Return what an element is, for the list of edits."""
    match element:
        case Mos():
            return f"{element.polarity}MOS {_size(element)} on {' '.join(_ends(element))}"
        case Instance():
            return f"{element.subcircuit} on {' '.join(element.nets)}"
        case Capacitor():
            return f"{format_quantity(element.value, 'F')} on {element.a} {element.b}"
        case Resistor():
            return f"{format_quantity(element.value, 'ohm')} on {element.a} {element.b}"
        case Source():
            value = (
                "pwl" if isinstance(element.value, tuple) else format_quantity(element.value, "VA"[element.kind == "i"])
            )
            return f"{element.kind} source of {value} on {element.a} {element.b}"
