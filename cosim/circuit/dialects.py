"""The same circuit for other simulators: netlist and device cards as text.

               ngspice              hspice               xyce                 spectre
    element    m1 d g s b n w= l=   the same             the same             m1 (d g s b) n w= l=
    block      .subckt a p / .ends  the same             the same             subckt a (p) / ends a
    capacitor  c1 a b 1e-12         the same             the same             c1 (a b) capacitor c=1e-12
    sources    v1 a 0 pwl(..)       the same             the same             v_1 (a 0) vsource type=pwl wave=[..]
    comment    *                    *                    *                    //
    case       no difference        no difference        no difference        differs; all names are lower case here
    hierarchy  x1.m1                x1.m1                x1:m1                x1.m1
    model      level 14 or 54,      level 54, 4.8        level 54, 4.6.1,     bsim4 type=n, no level, 4.8
               any version                               4.7.0 or 4.8.2

Everywhere: ground is `0`; a line that begins with `+` continues the one before; a source's current counts from its
first node through it to its second; `m=` counts identical transistors in parallel. In Spectre a source's name gets an
underscore, so that none is called like a net. Numbers carry an exponent and no letter, since `m` and `M` mean the same
in SPICE and not in Spectre.
Sources: ngspice manual; Xyce Reference Guide, `.OPTIONS`, `.TRAN` and MOSFET, and its source of BSIM4; Spectre Circuit
Simulator Reference (tran, options) and Components Reference (bsim4), 23.1. HSPICE: option names as published decks use
them. What of it has been run: docs/dialects.md.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from cosim.circuit.deck import fold, format_circuit, format_mos_fields, format_number
from cosim.circuit.elements import Capacitor, Circuit, Element, Instance, Mos, Source
from cosim.technology.devices import Size, card_name, device_cards
from cosim.technology.types import Technology

Dialect = Literal["ngspice", "spectre", "hspice", "xyce"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)

# Of BSIM4 in ngspice, but not of Berkeley's: limits of the operating range that it warns about.
_NGSPICE_ONLY = re.compile(r"v(gs|gd|gb|ds|bs|bd)r?_max")


@dataclass(frozen=True)
class Files:
    """What the files of a compiled network are called."""

    netlist: str = "network.sp"
    devices: str = "devices.lib"
    testbench: str = "testbench.sp"


def files_of(dialect: Dialect) -> Files:
    """The names under which a simulator expects such files; Spectre tells its language by the ending .scs."""
    return Files("network.scs", "devices.scs", "testbench.scs") if dialect == "spectre" else Files()


def format_network(circuit: Circuit, technology: Technology, dialect: Dialect) -> str:
    """The netlist of a circuit, as `format_circuit` writes it for ngspice."""
    return _spectre_circuit(circuit, technology) if dialect == "spectre" else format_circuit(circuit, technology)


# Device cards ---------------------------------------------------------------------------------------------------------


def format_devices(technology: Technology, sizes: Iterable[Size], dialect: Dialect) -> str:
    """The cards of these sizes, as `device_cards` writes them for ngspice, and how to use the foundry's own library."""
    sizes = set(sizes)
    text = device_cards(technology, sizes)
    if dialect == "ngspice":
        return text
    comment = "//" if dialect == "spectre" else "*"
    head, *cards = text.split(".model ")
    lines = [f"{comment} {line.removeprefix('*').strip()}" for line in head.splitlines()]
    lines += ["simulator lang=spectre"] if dialect == "spectre" else []
    lines += [f"{comment} {line}" for line in _about_the_library(technology, sizes, dialect)]
    for card in cards:
        name, kind, *words = card.replace("\n+", " ").split()
        parameters = dict(word.split("=", 1) for word in words)
        version, _ = parameters.pop("version", ""), parameters.pop("level", "")
        if dialect == "hspice":
            parameters.setdefault("tnom", "27")  # HSPICE's own default is 25 C
        unknown = [key for key in parameters if _NGSPICE_ONLY.fullmatch(key)]
        fields = [f"{key}={value}" for key, value in parameters.items() if key not in unknown]
        translated = [f"version={_VERSIONS[dialect](version)}"] if version else []
        if version and translated != [f"version={version}"]:
            lines.append(f"{comment} BSIM4 {version}, here {translated[0]}")
        if unknown:
            lines.append(f"{comment} left out, because only ngspice knows them: {', '.join(unknown)}")
        if dialect == "spectre":
            opening = ["model", name, "bsim4", f"type={kind[0]}"]
        else:
            opening = [".model", name, kind, "level=54"]
        lines += fold(" ".join([*opening, *translated, *fields]))
    return "\n".join(lines) + "\n"


def _about_the_library(technology: Technology, sizes: set[Size], dialect: Dialect) -> list[str]:
    """How to take the foundry's library in place of the cards; empty where a card is the library's own."""
    library, section = technology.library, technology.library.sections[technology.corner]
    renamed = sorted(
        (technology.device(polarity).name, card)
        for polarity, *size in sizes
        if (card := card_name(technology, polarity, *size)) != technology.device(polarity).name
    )
    if not renamed:
        return []
    include = f'include "FILE" section={section}' if dialect == "spectre" else f".lib 'FILE' {section}"
    device, card = renamed[0]
    return [
        "Each card is one size of a device of that library, evaluated: this is what cosim has simulated.",
        f"To use the foundry's library for this simulator in its place: {include}",
        "(the section may go by another name there). In the netlist its devices then replace the cards, such as",
        f"{device} for {card}.",
        "Where they are subcircuits, an instance in SPICE begins with x in place of m.",
        f"Their w and l are in units of {library.length_unit:g} m in {library.file.name}.",
    ]


def _two_numbers(version: str) -> str:
    """4.8.1 -> 4.8: what both HSPICE and Spectre take; the third number only corrects errors."""
    return ".".join(version.split(".")[:2])


def _nearest_of_xyce(version: str) -> str:
    """Xyce has three; an older card runs as 4.6.1."""
    minor = int(version.partition(".")[2][:1] or "0")
    return "4.8.2" if minor >= 8 else "4.7.0" if minor == 7 else "4.6.1"


_VERSIONS: Mapping[Dialect, Callable[[str], str]] = {
    "spectre": _two_numbers, "hspice": _two_numbers, "xyce": _nearest_of_xyce,
}  # fmt: skip


# Spectre --------------------------------------------------------------------------------------------------------------


_SPECTRE_FUNCTIONS = frozenset({"max", "min"})  # built in; those that begin with the letter of a transistor


def _spectre_circuit(circuit: Circuit, technology: Technology) -> str:
    lines = [f"// {circuit.title}", "simulator lang=spectre"]
    for block in circuit.subcircuits:
        lines += ["", *(f"// {line}" for line in block.summary.splitlines())]
        lines += fold(f"subckt {block.name} ({' '.join(block.ports)})")
        lines += spectre_elements(block.elements, technology)
        lines.append(f"ends {block.name}")
    if circuit.elements:
        lines += ["", *spectre_elements(circuit.elements, technology)]
    return "\n".join(lines) + "\n"


def spectre_elements(elements: Iterable[Element], technology: Technology) -> list[str]:
    """`format_elements` for Spectre: one folded line each, behind its origin as a comment."""
    lines: list[str] = []
    for element in elements:
        if element.origin:
            lines.append(f"// {element.origin}")
        lines += fold(_spectre_element(element, technology))
    return lines


def _spectre_element(element: Element, technology: Technology) -> str:
    match element:
        case Mos(name, drain, gate, source, bulk):
            own = f"m{name}_" if f"m{name}" in _SPECTRE_FUNCTIONS else f"m{name}"
            return f"{own} ({drain} {gate} {source} {bulk}) {format_mos_fields(element, technology)}"
        case Instance(name, nets, subcircuit):
            return f"x{name} ({' '.join(nets)}) {subcircuit}"
        case Capacitor(name, a, b, value):
            return f"c{name} ({a} {b}) capacitor c={format_number(value)}"
        case Source(name, kind, a, b, tuple() as points):
            wave = " ".join(f"{format_number(time)} {format_number(value)}" for time, value in points)
            return f"{kind}_{name} ({a} {b}) {kind}source type=pwl wave=[{wave}]"
        case Source(name, kind, a, b, value):
            assert not isinstance(value, tuple)
            return f"{kind}_{name} ({a} {b}) {kind}source type=dc dc={format_number(value)}"
