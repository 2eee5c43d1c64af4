"""Symbols of xschem: transistors, capacitor, resistor, rails, ports and labels, and boxes for subcircuits.

    drain           -+- source        Pins of a transistor in the order of a netlist: drain, gate, source, bulk.
gate -|  - bulk      |  p             A transistor that passes a signal lies on its side, so that the two of a
    source  n       drain             transmission gate show their gates above and below.
"""

from collections.abc import Mapping

from cosim.circuit.deck import format_number
from cosim.circuit.elements import Capacitor, Mos, Resistor, Source, Subcircuit
from cosim.technology.foundry import card_name, is_subcircuit, model_family
from cosim.technology.types import POLARITIES, Polarity, Technology
from cosim.verbs.compile.xschem.sheet import GRID, LETTER, TEXT, Box, Direction, Point, Symbol

PARTS = "parts"  # of all symbols but those of subcircuits, whose names may be like theirs
BOX_PITCH = 2 * GRID  # between two pins of a box
_BESIDE: Box = (30, -30, 100, 30)
_BESIDE_LYING: dict[Polarity, Box] = {"n": (10, 30, 90, 70), "p": (10, -70, 90, -30)}
_SUFFIXES = {0: "", -3: "m", -6: "u", -9: "n", -12: "p", -15: "f"}  # power of ten -> as SPICE reads it
_UPRIGHT = {
    "n": "L 4 -20 0 -8 0 {}\nL 4 -8 -16 -8 16 {}\nL 4 -2 -20 -2 20 {}\nL 4 -2 -14 20 -14 {}\nL 4 20 -30 20 -14 {}\n"
    "L 4 -2 14 20 14 {}\nL 4 20 14 20 30 {}\nL 4 -2 0 20 0 {}\nP 4 4 18 14 8 10 8 18 18 14 {fill=true}\n",
    "p": "L 4 -20 0 -14 0 {}\nA 4 -11 0 3 0 360 {}\nL 4 -8 -16 -8 16 {}\nL 4 -2 -20 -2 20 {}\nL 4 -2 -14 20 -14 {}\n"
    "L 4 20 -30 20 -14 {}\nL 4 -2 14 20 14 {}\nL 4 20 14 20 30 {}\nL 4 -2 0 20 0 {}\n"
    "P 4 4 0 -14 10 -18 10 -10 0 -14 {fill=true}\n",
}
_LYING = {  # the gate below an n, above a p
    "n": "L 4 -30 0 -14 0 {}\nL 4 -14 0 -14 22 {}\nL 4 30 0 14 0 {}\nL 4 14 0 14 22 {}\nL 4 -20 22 20 22 {}\n"
    "L 4 -16 28 16 28 {}\nL 4 0 28 0 40 {}\nL 4 0 0 0 22 {}\nP 4 4 14 2 10 12 18 12 14 2 {fill=true}\n",
    "p": "L 4 -30 0 -14 0 {}\nL 4 -14 0 -14 -22 {}\nL 4 30 0 14 0 {}\nL 4 14 0 14 -22 {}\nL 4 -20 -22 20 -22 {}\n"
    "L 4 -16 -28 16 -28 {}\nA 4 0 -31 3 0 360 {}\nL 4 0 -34 0 -40 {}\nL 4 0 0 0 -22 {}\n"
    "P 4 4 14 -20 10 -10 18 -10 14 -20 {fill=true}\n",
}
_UPRIGHT_PINS: dict[Polarity, tuple[Point, ...]] = {
    "n": ((20, -30), (-20, 0), (20, 30), (20, 0)),
    "p": ((20, 30), (-20, 0), (20, -30), (20, 0)),
}
_LYING_PINS: dict[Polarity, tuple[Point, ...]] = {
    "n": ((-30, 0), (0, 40), (30, 0), (0, 0)),
    "p": ((-30, 0), (0, -40), (30, 0), (0, 0)),
}


def transistor_symbols(technology: Technology, *, foundry: bool) -> dict[tuple[Polarity, bool], Symbol]:
    """Return the symbols of a technology's transistors: (polarity, whether it lies on its side) -> symbol.

    foundry: whether transistors are devices of the foundry's library, in place of cosim's cards.
    """
    found: dict[tuple[Polarity, bool], Symbol] = {}
    for polarity in POLARITIES:
        letter = "x" if foundry and is_subcircuit(technology, polarity) else ""
        form = f"{letter}@name @pinlist @model w=@w l=@l m=@m{_diffusion(technology, foundry=foundry)}"
        for lying in (False, True):
            name = f"{polarity}mos{'_pass' if lying else ''}"
            sides = (_LYING_PINS if lying else _UPRIGHT_PINS)[polarity]
            drawing = (_LYING if lying else _UPRIGHT)[polarity] + _sizes(polarity, lying=lying)
            found[polarity, lying] = Symbol(
                f"{PARTS}/{name}.sym",
                tuple(zip("dgsb", sides, strict=True)),
                (-30, min(0, sides[1][1]), 30, max(0, sides[1][1])) if lying else (-20, -30, 20, 30),
                f'type={polarity}mos\nformat="{form}"\ntemplate="name=m1 model={polarity} w=1u l=1u m=1"',
                drawing,
                _BESIDE_LYING[polarity] if lying else _BESIDE,
            )
    return found


def _diffusion(technology: Technology, *, foundry: bool) -> str:
    """Return the diffusion of a transistor in a format of xschem: it follows from w, so that an edited w moves it."""
    length = technology.library.diffusion
    if not length:
        return ""
    shown = format_number(length / (technology.library.length_unit if foundry else 1.0))
    area, rim = f"'@w * {shown}'", f"'2 * ( @w + {shown} )'"
    return f" ad={area} as={area} pd={rim} ps={rim}"


def _sizes(polarity: Polarity, *, lying: bool) -> str:
    """Return the texts of a transistor's name, W/L and m."""
    if lying:
        x, tops = 10, ((32, 44, 56) if polarity == "n" else (-72, -60, -48))
    else:
        x, tops = 28, (-28, 10, 22)
    texts = zip(("@name", "@w / @l", "m=@m"), tops, strict=True)
    return "".join(f"T {{{text}}} {x} {y} 0 0 {TEXT} {TEXT} {{}}\n" for text, y in texts)


def transistor_fields(mos: Mos, technology: Technology, *, foundry: bool) -> dict[str, str]:
    """Return the attributes of a transistor in xschem: name, model, W and L, and m.

    Lengths are in micrometre, as 5u, or in the unit of the foundry's library where the transistor is its device.
    """
    if foundry:
        unit = technology.library.length_unit
        model, w, l = technology.device(mos.polarity).name, f"{mos.w / unit:.12g}", f"{mos.l / unit:.12g}"  # noqa: E741
    else:
        model = card_name(technology, mos.polarity, mos.w, mos.l)
        w, l = f"{mos.w * 1e6:.12g}u", f"{mos.l * 1e6:.12g}u"  # noqa: E741
    letter = "n" if not foundry and model_family(technology).osdi else "m"
    return {"name": f"{letter}{mos.name}", "model": model, "w": w, "l": l, "m": str(mos.m)}


def _two_pins(name: str, letter: str, drawing: str) -> Symbol:
    texts = f"T {{@name}} 14 -20 0 0 {TEXT} {TEXT} {{}}\nT {{@value}} 14 4 0 0 {TEXT} {TEXT} {{}}\n"
    return Symbol(
        f"{PARTS}/{name}.sym",
        (("p", (0, -30)), ("m", (0, 30))),
        (-10, -30, 10, 30),
        f'type={name}\nformat="@name @pinlist @value"\ntemplate="name={letter}1 value=1p"',
        drawing + texts,
        (14, -20, 90, 20),
    )


CAPACITOR = _two_pins("capacitor", "c", "L 4 0 -30 0 -4 {}\nL 4 -10 -4 10 -4 {}\nL 4 -10 4 10 4 {}\nL 4 0 4 0 30 {}\n")
RESISTOR = _two_pins("resistor", "r", "L 4 0 -30 0 -20 {}\nB 4 -6 -20 6 20 {}\nL 4 0 20 0 30 {}\n")
SOURCES = {
    kind: _two_pins(name, kind, f"L 4 0 -30 0 -14 {{}}\nA 4 0 0 14 0 360 {{}}\nL 4 0 14 0 30 {{}}\n{mark}")
    for kind, name, mark in (
        ("v", "voltage", "L 4 -4 -8 4 -8 {}\nL 4 0 -12 0 -4 {}\n"),
        ("i", "current", "L 4 0 -8 0 8 {}\nP 4 4 0 10 -4 2 4 2 0 10 {fill=true}\n"),
    )
}


def two_pin_symbol(element: Capacitor | Resistor | Source) -> Symbol:
    """Return the symbol of an element of two nets."""
    match element:
        case Capacitor():
            return CAPACITOR
        case Resistor():
            return RESISTOR
        case Source(kind=kind):
            return SOURCES[kind]


def two_pin_fields(element: Capacitor | Resistor | Source) -> dict[str, str]:
    """Return the attributes of an element of two nets in xschem: name and value."""
    value = element.value
    if isinstance(value, tuple):
        text = f'"pwl({" ".join(format_number(number) for point in value for number in point)})"'
    else:
        text = _with_suffix(value)
    return {"name": element.letter + element.name, "value": text}


def _with_suffix(value: float) -> str:
    """Return a number of 12 digits with a suffix that SPICE reads, such as 400f."""
    power = next((power for power in _SUFFIXES if abs(value) >= 0.9999999 * 10.0**power), 0)
    return f"{value / 10.0**power:.12g}{_SUFFIXES.get(power, '')}"


def _naming(name: str, kind: str, drawing: str, box: Box) -> Symbol:
    form = "*.alias @lab" if kind == "label" else f"*.{kind} @lab"
    attributes = f'type={kind}\nformat="{form}"\ntemplate="name=p1 lab=net"'
    return Symbol(f"{PARTS}/{name}.sym", (("p", (0, 0)),), box, attributes, drawing)


def _lab(x: int, y: int, flip: int = 0) -> str:
    return f"T {{@lab}} {x} {y} 0 {flip} {TEXT} {TEXT} {{}}\n"


LABEL = _naming("lab_pin", "label", _lab(-5, -6, 1), (0, 0, 0, 0))  # its text is on the left; flipped, on the right
ABOVE = _naming("lab_wire", "label", _lab(2, -14), (0, 0, 0, 0))
SUPPLY = _naming("vdd", "label", "L 4 0 -10 0 0 {}\nL 4 -10 -10 10 -10 {}\n" + _lab(-9, -24), (-10, -10, 10, 0))
GROUND_RAIL = _naming(
    "gnd", "label", "L 4 0 0 0 8 {}\nL 4 -10 8 10 8 {}\nL 4 -6 12 6 12 {}\nL 4 -2 16 2 16 {}\n", (-10, 0, 10, 20)
)
PORTS: Mapping[Direction, Symbol] = {
    "in": _naming(
        "ipin", "ipin", "P 5 6 0 0 -6 -5 -15 -5 -15 5 -6 5 0 0 {fill=true}\n" + _lab(-20, -6, 1), (-15, -5, 0, 5)
    ),
    "out": _naming("opin", "opin", "P 5 6 0 -5 9 -5 15 0 9 5 0 5 0 -5 {fill=true}\n" + _lab(20, -6), (0, -5, 15, 5)),
    "inout": _naming(
        "iopin", "iopin", "P 5 7 0 0 5 -5 11 -5 16 0 11 5 5 5 0 0 {fill=true}\n" + _lab(20, -6), (0, -5, 16, 5)
    ),
}
COMMON = (CAPACITOR, RESISTOR, *SOURCES.values(), LABEL, ABOVE, SUPPLY, GROUND_RAIL, *PORTS.values())


def block_symbol(block: Subcircuit, directions: Mapping[str, Direction]) -> Symbol:
    """Return the symbol of a subcircuit: a box with inputs on the left, outputs on the right, and its supply above.

    directions: of its ports. The first input and the first output have the same height, 0, so that blocks in a row
    connect by straight wires.
    """
    left = [port for port in block.ports if directions[port] == "in"]
    right = [port for port in block.ports if directions[port] == "out"]
    above = [port for port in block.ports if directions[port] == "inout"]
    inside = LETTER * (max(map(len, left), default=0) + max(map(len, right), default=0)) + 4 * GRID
    wide = max(inside, LETTER * len(block.name) + 2 * GRID, 4 * GRID * (len(above) + 1))
    width = -(-wide // (2 * GRID)) * 2 * GRID
    height = BOX_PITCH * max(len(left), len(right), 1)
    top, bottom = -2 * GRID, height - GRID + 2 * GRID
    places = {port: (-2 * GRID, BOX_PITCH * k) for k, port in enumerate(left)}
    places |= {port: (width + 2 * GRID, BOX_PITCH * k) for k, port in enumerate(right)}
    places |= {port: (2 * GRID * (2 * k + 1), top - 2 * GRID) for k, port in enumerate(above)}
    drawing = [
        *(f"L 4 0 {a} {width} {a} {{}}" for a in (top, bottom)),
        *(f"L 4 {a} {top} {a} {bottom} {{}}" for a in (0, width)),
        *(f"L 4 {-2 * GRID} {places[port][1]} 0 {places[port][1]} {{}}" for port in left),
        *(f"L 4 {width} {places[port][1]} {width + 2 * GRID} {places[port][1]} {{}}" for port in right),
        *(f"L 4 {places[port][0]} {top - 2 * GRID} {places[port][0]} {top} {{}}" for port in above),
        *(f"T {{{port}}} 5 {places[port][1] - 6} 0 0 {TEXT} {TEXT} {{}}" for port in left),
        *(f"T {{{port}}} {width - 5} {places[port][1] - 6} 0 1 {TEXT} {TEXT} {{}}" for port in right),
        *(f"T {{{port}}} {places[port][0] - 9} {top + 2} 0 0 {0.75 * TEXT:g} {0.75 * TEXT:g} {{}}" for port in above),
        f"T {{@name}} {4 * GRID} {top - 16} 0 0 {TEXT} {TEXT} {{}}",
        f"T {{{block.name}}} 5 {bottom + 3} 0 0 {TEXT} {TEXT} {{}}",
    ]
    attributes = 'type=subcircuit\nformat="@name @pinlist @symname"\ntemplate="name=x1"'
    pins = tuple((port, places[port]) for port in block.ports)
    name = 4 * GRID, top - 2 * GRID, max(width, 15 * GRID), top - GRID
    return Symbol(f"{block.name}.sym", pins, (0, top, width, bottom), attributes, "\n".join(drawing) + "\n", name)
