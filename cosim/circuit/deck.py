"""Deck text: deterministic, one element a line, numbers in exponent notation only (SPICE reads `1M` as one milli)."""

from collections.abc import Iterable, Iterator

from cosim.circuit.elements import Capacitor, Circuit, Element, Instance, Mos, Source, Subcircuit
from cosim.technology.devices import Size, card_name
from cosim.technology.types import Technology

_FOLD_AT = 110


def format_number(value: float) -> str:
    """Shortest exponent notation that reads back as the same float at 12 digits: 1e-09, 3.5e-10, 0e+00."""
    mantissa, exponent = f"{value:.11e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent):+03d}"


def format_circuit(circuit: Circuit, technology: Technology) -> str:
    """The netlist of a circuit: title, subcircuits, top level. No device models, no analysis."""
    lines = [f"* {circuit.title}"]
    for block in circuit.subcircuits:
        lines += ["", *_format_subcircuit(block, technology)]
    if circuit.elements:
        lines += ["", *format_elements(circuit.elements, technology)]
    return "\n".join(lines) + "\n"


def device_sizes(circuit: Circuit) -> set[Size]:
    """Polarity, width and length of every transistor in it."""
    return {(mos.polarity, mos.w, mos.l) for mos in _transistors(circuit)}


def _transistors(circuit: Circuit) -> Iterator[Mos]:
    for elements in (circuit.elements, *(block.elements for block in circuit.subcircuits)):
        yield from (element for element in elements if isinstance(element, Mos))


def format_elements(elements: Iterable[Element], technology: Technology) -> list[str]:
    """One folded line per element, behind it its origin as a comment line where it has one."""
    lines: list[str] = []
    for element in elements:
        if element.origin:
            lines.append(f"* {element.origin}")
        lines += fold(_format_element(element, technology))
    return lines


def _format_subcircuit(block: Subcircuit, technology: Technology) -> list[str]:
    lines = [f"* {line}" for line in block.summary.splitlines()]
    lines += fold(f".subckt {block.name} {' '.join(block.ports)}")
    lines += format_elements(block.elements, technology)
    return [*lines, f".ends {block.name}"]


def _format_element(element: Element, technology: Technology) -> str:
    match element:
        case Mos():
            return _format_mos(element, technology)
        case Instance(name, nets, subcircuit):
            return f"x{name} {' '.join(nets)} {subcircuit}"
        case Capacitor(name, a, b, value):
            return f"c{name} {a} {b} {format_number(value)}"
        case Source(name, kind, a, b, tuple() as points):
            corners = " ".join(f"{format_number(time)} {format_number(value)}" for time, value in points)
            return f"{kind}{name} {a} {b} pwl({corners})"
        case Source(name, kind, a, b, value):
            assert not isinstance(value, tuple)
            return f"{kind}{name} {a} {b} dc {format_number(value)}"


def _format_mos(mos: Mos, technology: Technology) -> str:
    return f"m{mos.name} {mos.drain} {mos.gate} {mos.source} {mos.bulk} {format_mos_fields(mos, technology)}"


def format_mos_fields(mos: Mos, technology: Technology, multiplier: str = "m") -> str:
    """What stands behind the nets of a transistor: its card, its size and, where it has one, its diffusion.

    `multiplier`: what a simulator calls the number of identical transistors in parallel.
    """
    card = card_name(technology, mos.polarity, mos.w, mos.l)
    size = f"w={format_number(mos.w)} l={format_number(mos.l)} {multiplier}={mos.m}{_format_deviation(mos)}"
    if not (diffusion := technology.library.diffusion):
        return f"{card} {size}"
    area, rim = format_number(mos.w * diffusion), format_number(2 * (mos.w + diffusion))
    return f"{card} {size} ad={area} as={area} pd={rim} ps={rim}"


def _format_deviation(mos: Mos) -> str:
    """BSIM4's instance parameters: delvto is added to vth0, which is negative in a pMOS; mulu0 multiplies u0."""
    shift = mos.vt_shift if mos.polarity == "n" else -mos.vt_shift
    delvto = f" delvto={format_number(shift)}" if shift else ""
    return delvto + (f" mulu0={format_number(mos.beta_factor)}" if mos.beta_factor != 1.0 else "")


def fold(line: str) -> list[str]:
    """Continuation lines at word borders, so that no line exceeds what simulators and eyes take."""
    lines, current = [], ""
    for word in line.split(" "):
        if current and len(current) + 1 + len(word) > _FOLD_AT:
            lines.append(current)
            current = "+"
        current = f"{current} {word}" if current else word
    return [*lines, current]
