"""Netlists with the nets of an element in brackets: Spectre and VACASK.

               Spectre                               VACASK
    element    m1 (d g s b) n w= l= m=               m1 (d g s b) n w= l= $mfactor=
    block      subckt a (p) / ends a                 subckt a (p) / ends
    dc         v_1 (a 0) vsource type=dc dc=1        v_1 (a 0) vsource dc=1
    points     v_1 (a 0) vsource type=pwl wave=[..]  v_1 (a 0) vsource type="pwl" wave=[.., ..]
    long line  + at the start of the next            \\ at the end

Both tell upper from lower case (all names are lower case here), take `//` as a comment, and know nets and elements by
one space of names: a source's name gets an underscore, so that none is called like a net.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cosim.circuit.deck import fold, format_mos_fields, format_number
from cosim.circuit.elements import Capacitor, Circuit, Element, Instance, Mos, Source
from cosim.technology.types import Technology

_FUNCTIONS = frozenset({"max", "min"})  # built in; those that begin with the letter of a transistor


@dataclass(frozen=True)
class Language:
    """Where the two differ. opening: a netlist's first statement; constant, points: a source's value, `{}` its numbers.

    multiplier: identical transistors in parallel; comma: between numbers; escaped: how a line goes on.
    """

    opening: tuple[str, ...]
    multiplier: str
    constant: str
    points: str
    comma: str
    named_ends: bool
    escaped: bool

    def fold(self, line: str) -> list[str]:
        """A statement on lines of bearable length."""
        first, *more = fold(line)
        if not self.escaped:
            return [first, *more]
        lines = [first, *(line.removeprefix("+ ") for line in more)]
        return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def bracket_circuit(circuit: Circuit, technology: Technology, language: Language) -> str:
    """The netlist of a circuit, as `format_circuit` writes it for SPICE."""
    lines = [f"// {circuit.title}", *language.opening]
    for block in circuit.subcircuits:
        lines += ["", *(f"// {line}" for line in block.summary.splitlines())]
        lines += language.fold(f"subckt {block.name} ({' '.join(block.ports)})")
        lines += bracket_elements(block.elements, technology, language)
        lines.append(f"ends {block.name}" if language.named_ends else "ends")
    if circuit.elements:
        lines += ["", *bracket_elements(circuit.elements, technology, language)]
    return "\n".join(lines) + "\n"


def bracket_elements(elements: Iterable[Element], technology: Technology, language: Language) -> list[str]:
    """One folded line per element, behind its origin as a comment."""
    lines: list[str] = []
    for element in elements:
        if element.origin:
            lines.append(f"// {element.origin}")
        lines += language.fold(_element(element, technology, language))
    return lines


def _element(element: Element, technology: Technology, language: Language) -> str:
    match element:
        case Mos(name, drain, gate, source, bulk):
            own = f"m{name}_" if f"m{name}" in _FUNCTIONS else f"m{name}"
            fields = format_mos_fields(element, technology, language.multiplier)
            return f"{own} ({drain} {gate} {source} {bulk}) {fields}"
        case Instance(name, nets, subcircuit):
            return f"x{name} ({' '.join(nets)}) {subcircuit}"
        case Capacitor(name, a, b, value):
            return f"c{name} ({a} {b}) capacitor c={format_number(value)}"
        case Source(name, kind, a, b, tuple() as points):
            wave = language.comma.join(format_number(number) for point in points for number in point)
            return f"{kind}_{name} ({a} {b}) {kind}source {language.points.format(wave)}"
        case Source(name, kind, a, b, value):
            assert not isinstance(value, tuple)
            return f"{kind}_{name} ({a} {b}) {kind}source {language.constant.format(format_number(value))}"
