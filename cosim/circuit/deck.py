"""Netlists: deterministic, one element a line, numbers in exponent notation only (SPICE reads `1M` as one milli)."""

from collections.abc import Iterable
from dataclasses import dataclass

from cosim.circuit.elements import Capacitor, Circuit, Element, Instance, Mos, Resistor, Source, Subcircuit
from cosim.technology.foundry import Size, card_name, is_subcircuit, model_family
from cosim.technology.types import Technology

_FOLD_AT = 110


@dataclass(frozen=True)
class Language:
    """The syntax of a simulator's netlist; the defaults are those of SPICE.

    opening: first statements of a netlist; nets: form of an element's net list; subckt, ends: of a block, `{}` its
    name; multiplier: parameter for identical transistors in parallel; capacitor, resistor: form of its value; apart:
    text between the letter and the name of a source; constant, points: a source's value, `{kind}` v or i, with `comma`
    between numbers; reserved: names that no transistor may have; escaped: whether a long line is continued by a
    backslash at its end, not by a + at the start of the next; quoted: whether a path in a flat circuit is in quotes,
    with colons for points; osdi: letter of a transistor whose model is loaded as compiled Verilog-A; foundry: whether
    transistors are instances of the foundry's devices, in place of cosim's cards.
    """

    comment: str = "*"
    opening: tuple[str, ...] = ()
    nets: str = "{}"
    subckt: str = ".subckt {}"
    ends: str = ".ends {}"
    multiplier: str = "m"
    capacitor: str = "{}"
    resistor: str = "{}"
    apart: str = ""
    constant: str = "dc {value}"
    points: str = "pwl({value})"
    comma: str = " "
    reserved: frozenset[str] = frozenset()
    escaped: bool = False
    quoted: bool = False
    osdi: str = "n"
    foundry: bool = False

    def named(self, name: str) -> str:
        """Return a net's name, or an element's with its letter, as this netlist language writes it."""
        return f"'{name.replace('.', ':')}'" if self.quoted and "." in name else name

    def joined(self, *nets: str) -> str:
        """Return the list of nets of an element or block as this netlist language writes it."""
        return self.nets.format(" ".join(map(self.named, nets)))

    def fold(self, line: str) -> list[str]:
        """Fold a netlist's statement into lines of a width that simulators accept."""
        first, *more = fold(line)
        if not self.escaped:
            return [first, *more]
        lines = [first, *(line.removeprefix("+ ") for line in more)]
        return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


SPICE = Language()
# What Spectre and VACASK share, see cosim.circuit.dialects.table. They know nets and elements by one space of names: a
# source's name gets an underscore, so that none is called like a net, and so does a transistor called like a function.
BRACKETS = Language(
    comment="//",
    nets="({})",
    subckt="subckt {}",
    ends="ends {}",
    capacitor="capacitor c={}",
    resistor="resistor r={}",
    apart="_",
    osdi="m",
    reserved=frozenset({"max", "min"}),
)


def format_number(value: float) -> str:
    """Format a number for a netlist in the shortest exponent notation with 12 digits: 1e-09, 3.5e-10, 0e+00."""
    mantissa, exponent = f"{value:.11e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent):+03d}"


def format_circuit(circuit: Circuit, technology: Technology, language: Language = SPICE) -> str:
    """Format the netlist of a circuit: title, subcircuits, top level, without device models and analysis."""
    lines = [f"{language.comment} {circuit.title}", *language.opening]
    for block in circuit.subcircuits:
        lines += ["", *_format_subcircuit(block, technology, language)]
    if circuit.elements:
        lines += ["", *format_elements(circuit.elements, technology, language)]
    return "\n".join(lines) + "\n"


def device_sizes(circuit: Circuit) -> set[Size]:
    """Return (polarity, width, length), metre, of every transistor in a circuit, each combination once."""
    parts = (circuit.elements, *(block.elements for block in circuit.subcircuits))
    return {(mos.polarity, mos.w, mos.l) for elements in parts for mos in elements if isinstance(mos, Mos)}


def format_elements(elements: Iterable[Element], technology: Technology, language: Language = SPICE) -> list[str]:
    """Format each element as one folded netlist line, after a comment line with its origin if it has one."""
    lines: list[str] = []
    for element in elements:
        if element.origin:
            lines.append(f"{language.comment} {element.origin}")
        lines += language.fold(_format_element(element, technology, language))
    return lines


def _format_subcircuit(block: Subcircuit, technology: Technology, language: Language) -> list[str]:
    lines = [f"{language.comment} {line}" for line in block.summary.splitlines()]
    lines += language.fold(f"{language.subckt.format(block.name)} {language.joined(*block.ports)}")
    lines += format_elements(block.elements, technology, language)
    return [*lines, language.ends.format(block.name)]


def _format_element(element: Element, technology: Technology, language: Language) -> str:
    match element:
        case Mos(name, drain, gate, source, bulk):
            loaded = not language.foundry and model_family(technology).osdi
            own = f"{language.osdi if loaded else 'm'}{name}"
            own = f"{own}_" if own in language.reserved else own
            nets = language.joined(drain, gate, source, bulk)
            if language.foundry:
                letter = "x" if is_subcircuit(technology, element.polarity) else ""
                return f"{letter}{own} {nets} {_foundry_fields(element, technology, language.multiplier)}"
            return f"{language.named(own)} {nets} {_mos_fields(element, technology, language.multiplier)}"
        case Instance(name, nets, subcircuit):
            return f"x{name} {language.joined(*nets)} {subcircuit}"
        case Capacitor(name, a, b, value):
            farad = language.capacitor.format(format_number(value))
            return f"{language.named(f'c{name}')} {language.joined(a, b)} {farad}"
        case Resistor(name, a, b, value):
            ohm = language.resistor.format(format_number(value))
            return f"{language.named(f'r{name}')} {language.joined(a, b)} {ohm}"
        case Source(name, kind, a, b, value):
            if isinstance(value, tuple) and len(value) == 1:
                ((_, value),) = value  # VACASK refuses a waveform of one point
            numbers = [number for point in value for number in point] if isinstance(value, tuple) else [value]
            form = language.points if isinstance(value, tuple) else language.constant
            text = form.format(kind=kind, value=language.comma.join(map(format_number, numbers)))
            return f"{kind}{language.apart}{name} {language.joined(a, b)} {text}"


def _mos_fields(mos: Mos, technology: Technology, multiplier: str) -> str:
    """Return the fields after a transistor's nets: its card, its size and, if it has one, its diffusion."""
    card = card_name(technology, mos.polarity, mos.w, mos.l)
    size = f"w={format_number(mos.w)} l={format_number(mos.l)} {multiplier}={mos.m}{_format_deviation(mos, technology)}"
    if not (diffusion := technology.library.diffusion):
        return f"{card} {size}"
    area, rim = format_number(mos.w * diffusion), format_number(2 * (mos.w + diffusion))
    return f"{card} {size} ad={area} as={area} pd={rim} ps={rim}"


def _foundry_fields(mos: Mos, technology: Technology, multiplier: str) -> str:
    """Return the fields after the nets of a foundry's device: its name, and lengths in the unit of the library.

    The transistor must not deviate: mismatch is a matter of the foundry's own sections.
    """
    assert not mos.deviates
    unit, diffusion = technology.library.length_unit, technology.library.diffusion
    sizes = {"w": mos.w / unit, "l": mos.l / unit}
    if diffusion:
        area, rim = mos.w * diffusion / unit**2, 2 * (mos.w + diffusion) / unit
        sizes |= {"ad": area, "as": area, "pd": rim, "ps": rim}
    fields = (f"{name}={format_number(value)}" for name, value in sizes.items())
    return f"{technology.device(mos.polarity).name} {' '.join(fields)} {multiplier}={mos.m}"


def _format_deviation(mos: Mos, technology: Technology) -> str:
    """Format a transistor's mismatch as parameters of its instance: a threshold shift and a factor of the mobility.

    A positive shift of the transistor weakens it, whatever its polarity.
    """
    if not mos.deviates:
        return ""
    family = model_family(technology)
    shift = -mos.vt_shift if family.signed and mos.polarity == "p" else mos.vt_shift
    fields = f" {family.shift}={format_number(shift)}" if shift else ""
    return fields + (f" {family.factor}={format_number(mos.beta_factor)}" if mos.beta_factor != 1.0 else "")


def fold(line: str, width: int = _FOLD_AT) -> list[str]:
    """Fold a netlist line between words into lines of at most `width` characters, with + before each continuation."""
    lines: list[str] = []
    current = ""
    for word in line.split(" "):
        if current and len(current) + 1 + len(word) > width:
            lines.append(current)
            current = "+"
        current = f"{current} {word}" if current else word
    return [*lines, current]
