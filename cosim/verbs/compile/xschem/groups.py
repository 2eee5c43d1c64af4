"""Groups of a subcircuit's elements that a schematic shows as one: stacks of transistors, transmission gates, others.

stack               transistors on one another between the rails, each above the one that its current goes to
transmission gate   an n and a p that connect the same two nets
others              a capacitor, a resistor, a source, an instance
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cosim.circuit.elements import GROUND, Element, Instance, Mos, Subcircuit
from cosim.verbs.compile.xschem.sheet import Direction

Kind = Literal["stack", "gate", "single", "box"]

_ROUNDS = 20  # of moves in search of a better order
_MOST_MOVED = 32  # groups whose order is searched for; more stay in the order of the netlist
_HIGHEST = 200  # transistors on one another
_BACKWARD = 0.5  # cost of a net that is driven from the right, in places


@dataclass(frozen=True)
class Group:
    """Elements of a subcircuit that are drawn as one, a stack from top to bottom; nets: its signals.

    driven: those at drains of transistors that are no diodes; flowing: those at drains and sources.
    """

    kind: Kind
    elements: tuple[Element, ...]
    nets: frozenset[str]
    driven: frozenset[str]
    flowing: frozenset[str]


def top_and_bottom(mos: Mos) -> tuple[str, str]:
    """Return the nets of a transistor's upper and lower end: a p has its source above, an n its drain."""
    return (mos.source, mos.drain) if mos.polarity == "p" else (mos.drain, mos.source)


def find_groups(block: Subcircuit, rails: Collection[str]) -> list[Group]:
    """Return the groups of a subcircuit's elements, in netlist order of their first elements."""
    transistors = [element for element in block.elements if isinstance(element, Mos)]
    gates = _transmission_gates(transistors, rails)
    passing = {mos.name for gate in gates for mos in gate}
    stacks = _stacks([mos for mos in transistors if mos.name not in passing], rails)
    found = [
        *(_group("gate", gate, rails) for gate in gates),
        *(_group("stack", stack, rails) for stack in stacks),
        *(
            _group("box" if isinstance(element, Instance) else "single", (element,), rails)
            for element in block.elements
            if not isinstance(element, Mos)
        ),
    ]
    places = {element.letter + element.name: place for place, element in enumerate(block.elements)}
    return sorted(found, key=lambda group: min(places[one.letter + one.name] for one in group.elements))


def _group(kind: Kind, elements: Sequence[Element], rails: Collection[str]) -> Group:
    nets, driven, flowing = set[str](), set[str](), set[str]()
    for element in elements:
        match element:
            case Mos(_, drain, gate, source):
                nets |= {drain, gate, source}
                driven |= {drain} - {gate}
                flowing |= {drain, source}
            case Instance(_, ends):
                nets |= set(ends)
            case _:
                nets |= {element.a, element.b}
    signals, driven, flowing = (frozenset(found.difference(rails)) for found in (nets, driven, flowing))
    return Group(kind, tuple(elements), signals, driven, flowing)


def _transmission_gates(transistors: Sequence[Mos], rails: Collection[str]) -> list[tuple[Mos, Mos]]:
    """Return the pairs (p, n) of transistors that connect the same two nets, of which none is a rail."""
    waiting = defaultdict[frozenset[str], list[Mos]](list)
    found: list[tuple[Mos, Mos]] = []
    for mos in transistors:
        ends = frozenset((mos.drain, mos.source))
        if len(ends) < 2 or ends & set(rails):
            continue
        other = next((one for one in waiting[ends] if one.polarity != mos.polarity), None)
        if other is None:
            waiting[ends].append(mos)
            continue
        waiting[ends].remove(other)
        found.append((mos, other) if mos.polarity == "p" else (other, mos))
    return found


def _stacks(transistors: Sequence[Mos], rails: Collection[str]) -> list[tuple[Mos, ...]]:
    """Return stacks of transistors, each above one whose upper end is on the net of its lower end.

    Where a net has several of either, the one whose stack goes on is preferred.
    """
    uppers, lowers = defaultdict[str, list[Mos]](list), defaultdict[str, list[Mos]](list)
    for mos in transistors:
        top, bottom = top_and_bottom(mos)
        if bottom not in rails:
            uppers[bottom].append(mos)
        if top not in rails:
            lowers[top].append(mos)
    below, above = dict[str, Mos](), dict[str, Mos]()
    levels = levels_of(transistors, rails)

    def goes_on(mos: Mos) -> bool:
        return top_and_bottom(mos)[1] == GROUND or bool(lowers.get(top_and_bottom(mos)[1]))

    for net in sorted(uppers.keys() & lowers.keys()):
        waiting = sorted(lowers[net], key=lambda mos: (not goes_on(mos), mos.polarity == "n"))
        for upper in uppers[net]:
            lower = next((one for one in waiting if _fits(upper, one, above, levels)), None)
            if lower is not None:
                waiting.remove(lower)
                below[upper.name], above[lower.name] = lower, upper
    found: list[tuple[Mos, ...]] = []
    for mos in transistors:
        if mos.name not in above:
            stack = [mos]
            while (lower := below.get(stack[-1].name)) is not None:
                stack.append(lower)
            found.append(tuple(stack))
    return found


def _fits(upper: Mos, lower: Mos, above: Mapping[str, Mos], levels: Mapping[str, int]) -> bool:
    """Tell whether a transistor may stand on another: no n above a p, none above itself, and nearer to its own rail."""
    if upper.polarity == "n" and lower.polarity == "p":
        return False
    if upper.polarity == lower.polarity and (levels[upper.name] > levels[lower.name]) != (upper.polarity == "n"):
        return False
    one: Mos | None = upper
    while one is not None:
        if one is lower:
            return False
        one = above.get(one.name)
    return True


def levels_of(transistors: Sequence[Mos], rails: Collection[str]) -> dict[str, int]:
    """Return how many transistors of its own polarity are between each transistor and its rail: name -> number."""
    feeding = defaultdict[tuple[str, str], list[Mos]](list)
    for mos in transistors:
        feeding[mos.polarity, mos.drain].append(mos)
    found = dict[str, int]()

    def level(mos: Mos, path: tuple[str, ...]) -> int:
        if mos.name not in found:
            if mos.source in rails or mos.name in path or len(path) > _HIGHEST:
                return 0
            near = [level(one, (*path, mos.name)) for one in feeding[mos.polarity, mos.source] if one is not mos]
            found[mos.name] = 1 + max(near, default=-1)
        return found[mos.name]

    return {mos.name: level(mos, ()) for mos in transistors}


def arrange(groups: Sequence[Group], directions: Mapping[str, Direction]) -> list[Group]:
    """Return groups in an order from left to right that makes wires short, and currents go from inputs to outputs.

    The order is improved by moves of one group until none helps.
    """
    order = list(range(len(groups)))
    if not 2 < len(order) <= _MOST_MOVED:
        return list(groups)
    spans = _spans(groups, directions)
    best = _length(order, spans)
    for _ in range(_ROUNDS):
        before = best
        for group in list(order):
            rest = [one for one in order if one != group]
            for place in range(len(order)):
                trial = [*rest[:place], group, *rest[place:]]
                if (length := _length(trial, spans)) < best - 1e-9:
                    best, order = length, trial
        if best == before:
            break
    return [groups[k] for k in order]


class _Span(NamedTuple):
    """A net that wires connect: numbers of the groups on it, of those that drive it and do not, and a port's place."""

    groups: list[int]
    drivers: list[int]
    readers: list[int]
    port: int | None


def _spans(groups: Sequence[Group], directions: Mapping[str, Direction]) -> list[_Span]:
    """Return the nets of groups whose width depends on the order; an input that only gates are on has none."""
    flowing = {net for group in groups for net in group.flowing}
    found: list[_Span] = []
    for net in sorted({net for group in groups for net in group.nets}):
        way = directions.get(net)
        on = [k for k, group in enumerate(groups) if net in group.nets]
        drivers = [k for k in on if net in groups[k].driven]
        port = None if way is None else -1 if way == "in" else len(groups)
        if (net in flowing or way != "in") and (len(on) > 1 or port is not None):
            found.append(_Span(on, drivers, [k for k in on if k not in drivers], port))
    return found


def _length(order: Sequence[int], spans: Sequence[_Span]) -> float:
    """Return the summed width of all nets in an order, in places, with a cost of nets driven from the right."""
    place = [0] * len(order)
    for k, group in enumerate(order):
        place[group] = k
    total = 0.0
    for groups, drivers, readers, port in spans:
        ends = [place[k] for k in groups]
        if port is not None:
            ends.append(port)
        total += max(ends) - min(ends)
        if drivers and readers and min([place[k] for k in readers]) < max([place[k] for k in drivers]):
            total += _BACKWARD
    return total
