"""The netlist that the layout is held against: what was simulated, unit by unit."""

from collections.abc import Sequence

from cosim.circuit.deck import fold, format_number
from cosim.circuit.elements import Circuit, Mos
from cosim.layout.blocks import nanometres
from cosim.layout.gds import label_of
from cosim.layout.plates import Plate
from cosim.technology.drawing import DrawingRules


def format_schematic(
    circuit: Circuit, plates: Sequence[Plate], ports: Sequence[str], name: str, drawing: DrawingRules
) -> str:
    """Return the netlist for LVS, one line a unit device.

    `m` units of a transistor are m lines of equal width and length. circuit: a flat one, with the units that are drawn
    as well as its own.
    """
    lines = [f"* {name}, unit by unit", *fold(f".subckt {name} {' '.join(map(label_of, ports))}")]
    for element in circuit.elements:
        if not isinstance(element, Mos):
            continue
        nets = " ".join(map(label_of, (element.drain, element.gate, element.source, element.bulk)))
        size = " ".join(f"{key}={nanometres(value) / 1000:g}u" for key, value in (("w", element.w), ("l", element.l)))
        for k in range(element.m):
            lines.append(f"m{label_of(element.name)}_u{k} {nets} {drawing.mos[element.polarity]} {size}")
    for plate in plates:
        x1, y1, x2, y2 = plate.box
        farad = format_number(plate.capacitor.value)
        nets = f"{label_of(plate.net)} {label_of(plate.rail)}"
        size = f"w={(x2 - x1) / 1000:g}u l={(y2 - y1) / 1000:g}u c={farad}"
        lines.append(f"c{label_of(plate.capacitor.name)} {nets} {drawing.capacitor} {size}")
    return "\n".join([*lines, f".ends {name}"]) + "\n"
