"""The same circuit for other simulators: netlist and device cards as text.

               ngspice, hspice, xyce    spectre                            vacask
    element    m1 d g s b n w= l= m=    m1 (d g s b) n w= l= m=            m1 (d g s b) n w= l= $mfactor=
    block      .subckt a p / .ends      subckt a (p) / ends a              subckt a (p) / ends
    sources    v1 a 0 pwl(..)           v_1 (a 0) vsource type=pwl ..      v_1 (a 0) vsource type="pwl" ..
    comment    *                        //                                 //
    case       no difference            differs; all names are lower case here
    hierarchy  x1.m1; xyce x1:m1        x1.m1                              x1:m1
    model      ngspice any version;     bsim4 type=n, no level, 4.8        sp_bsim4v8 type=1, 4.8.0 to 4.8.3
               hspice 4.8;
               xyce 4.6.1, 4.7.0, 4.8.2

Everywhere: ground is `0`; a source's current counts from its first node through it to its second. Numbers carry an
exponent and no letter, since `m` and `M` mean the same in SPICE and not in Spectre. What is written in brackets is in
cosim.circuit.brackets.
Sources: ngspice manual; Xyce Reference Guide, `.OPTIONS`, `.TRAN` and MOSFET, and its source of BSIM4; Spectre Circuit
Simulator Reference (tran, options) and Components Reference (bsim4), 23.1; VACASK's examples, its lexer and what its
`print device` lists. HSPICE: option names as published decks use them. What of it has been run: docs/dialects.md.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from cosim.circuit.brackets import SPECTRE, VACASK, bracket_circuit
from cosim.circuit.deck import fold, format_circuit
from cosim.circuit.elements import Circuit
from cosim.technology.devices import Size, card_name, device_cards
from cosim.technology.types import Technology

Dialect = Literal["ngspice", "spectre", "hspice", "xyce", "vacask"]
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
    return _FILES.get(dialect, Files())


_FILES: Mapping[Dialect, Files] = {
    "spectre": Files("network.scs", "devices.scs", "testbench.scs"),
    "vacask": Files("network.inc", "devices.inc", "testbench.sim"),
}
IN_BRACKETS = {"spectre": SPECTRE, "vacask": VACASK}


def format_network(circuit: Circuit, technology: Technology, dialect: Dialect) -> str:
    """The netlist of a circuit, as `format_circuit` writes it for ngspice."""
    language = IN_BRACKETS.get(dialect)
    return format_circuit(circuit, technology) if language is None else bracket_circuit(circuit, technology, language)


# Device cards ---------------------------------------------------------------------------------------------------------


def format_devices(technology: Technology, sizes: Iterable[Size], dialect: Dialect) -> str:
    """The cards of these sizes, as `device_cards` writes them for ngspice, and how to use the foundry's own library."""
    sizes = set(sizes)
    text = device_cards(technology, sizes)
    if dialect == "ngspice":
        return text
    form = _FORMS[dialect]
    head, *cards = text.split(".model ")
    lines = [f"{form.comment} {line.removeprefix('*').strip()}" for line in head.splitlines()]
    lines += form.opening
    lines += [f"{form.comment} {line}" for line in _about_the_library(technology, sizes, dialect)]
    for card in cards:
        lines += _card(card, form)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Form:
    """How a dialect writes a card: `{name}`, `{kind}` n or p, `{sign}` 1 or -1, `{fields}` the parameters.

    opening: statements in front of the first; version: what it makes of BSIM4's, and how it writes that;
    defaults: where a parameter that a card leaves out differs from ngspice's own.
    """

    comment: str
    card: str
    version: Callable[[str], str]
    written: str = "version={}"
    opening: tuple[str, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    fold: Callable[[str], list[str]] = fold


def _card(card: str, form: _Form) -> list[str]:
    """One card as lines, behind comments on what is not ngspice's."""
    name, kind, *words = card.replace("\n+", " ").split()
    parameters = dict(word.split("=", 1) for word in words)
    version, _ = parameters.pop("version", ""), parameters.pop("level", "")
    parameters = {**parameters, **{key: value for key, value in form.defaults if key not in parameters}}
    unknown = [key for key in parameters if _NGSPICE_ONLY.fullmatch(key)]
    fields = [f"{key}={value}" for key, value in parameters.items() if key not in unknown]
    lines: list[str] = []
    if version:
        taken = form.version(version)
        fields.insert(0, form.written.format(taken))
        lines += [f"{form.comment} BSIM4 {version}, here version={taken}"] if taken != version else []
    if unknown:
        lines.append(f"{form.comment} left out, because only ngspice knows them: {', '.join(unknown)}")
    sign = 1 if kind[0] == "n" else -1
    return lines + form.fold(form.card.format(name=name, kind=kind[0], sign=sign, fields=" ".join(fields)))


def _about_the_library(technology: Technology, sizes: set[Size], dialect: Dialect) -> list[str]:
    """How to take the foundry's library in place of the cards; empty where a card is the library's own, or no kit has
    one for the simulator."""
    library, section = technology.library, technology.library.sections[technology.corner]
    renamed = sorted(
        (technology.device(polarity).name, card)
        for polarity, *size in sizes
        if (card := card_name(technology, polarity, *size)) != technology.device(polarity).name
    )
    if not renamed or dialect == "vacask":
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


def _nearest_of_vacask(version: str) -> str:
    """sp_bsim4v8 knows 4.8 and what corrected it; an older card runs as 4.8.0."""
    return version if re.fullmatch(r"4\.8(\.[0-3])?", version) else "4.8.0"


_SPICE_CARD = ".model {name} {kind}mos level=54 {fields}"
_FORMS: Mapping[Dialect, _Form] = {
    "spectre": _Form(
        "//", "model {name} bsim4 type={kind} {fields}", _two_numbers, opening=("simulator lang=spectre",)
    ),
    "hspice": _Form("*", _SPICE_CARD, _two_numbers, defaults=(("tnom", "27"),)),  # HSPICE's own default is 25 C
    "xyce": _Form("*", _SPICE_CARD, _nearest_of_xyce),
    "vacask": _Form(
        "//", "model {name} sp_bsim4v8 (type={sign} {fields})", _nearest_of_vacask, 'version="{}"',
        ('load "spice/bsim4v8.osdi"',), fold=VACASK.fold,
    ),
}  # fmt: skip
