"""A design with what its layout adds: the flat circuit and a capacitor for each pair of nets that see each other."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.text import listed
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Mos
from cosim.compiler.design import Design
from cosim.layout.extract import Parasitic
from cosim.layout.gds import label_of
from cosim.layout.record import read_wires

SMALLEST = 5e-17  # F; what is smaller between two nets is put to ground at both


def nets_of(circuit: Circuit) -> dict[str, str]:
    """Return the name of each net in the layout -> its net in the flat circuit."""
    nets = dict.fromkeys((GROUND, "vdd"))
    for element in circuit.elements:
        match element:
            case Mos():
                nets |= dict.fromkeys((element.drain, element.gate, element.source, element.bulk))
            case Capacitor():
                nets |= dict.fromkeys((element.a, element.b))
            case _:
                pass
    return {label_of(net): net for net in nets}


def wire_capacitors(
    parasitics: Iterable[Parasitic], names: dict[str, str], *, coupling: bool = True
) -> list[Capacitor]:
    """Return the capacitors of a layout's wires: one for each pair of nets, and one from each net to ground.

    names: the circuit's name of each net of the layout. A pair with a supply or below SMALLEST, and every pair without
    `coupling`, becomes capacitance to ground.
    """
    pairs: dict[tuple[str, str], float] = defaultdict(float)
    for one in parasitics:
        pairs[names[one.a], names[one.b]] += one.farad
    ground: dict[str, float] = defaultdict(float)
    kept: list[tuple[str, str, float]] = []
    for (a, b), farad in pairs.items():
        rails = [net for net in (a, b) if net in (GROUND, "vdd")]
        if rails or not coupling or farad < SMALLEST:
            for net in (a, b):
                if net not in (GROUND, "vdd"):
                    ground[net] += farad
        else:
            kept.append((a, b, farad))
    kept += [(net, GROUND, farad) for net, farad in ground.items() if farad > 0]
    return [Capacitor(f"wire{k}", a, b, farad) for k, (a, b, farad) in enumerate(sorted(kept))]


def with_wires(design: Design, capacitors: Iterable[Capacitor]) -> Design:
    """Return the design with the capacitors of its layout's wires in its circuit, which becomes flat."""
    circuit = replace(design.flat, elements=(*design.flat.elements, *capacitors))
    return replace(design, assembly=replace(design.assembly, circuit=circuit))


def extracted(design: Design, folder: Path) -> Design:
    """Return the design with the wires of a folder of `cosim layout`. Raises InputError for another design's wires."""
    found, names = read_wires(folder, design), nets_of(design.flat)
    unknown = sorted({net for one in found for net in (one.a, one.b)} - names.keys())
    if unknown:
        raise InputError(
            f"{folder}: its wires must be of nets of this circuit, not of {listed(unknown)}; "
            "draw it again with the options that it is compiled with"
        )
    return with_wires(design, wire_capacitors(found, names))
