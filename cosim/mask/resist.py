"""Resistance of the drawn wires, as an upper bound a net, and what it can do: delay over the frame, drop over U_T.

    R = R_sheet l / w of its trunk, of its two longest tracks, twice its longest stub and its longest terminal, the
        metal of its farthest plate, and the contacts and vias of two ends
    G = R_sheet l / w of poly, from the contact of a gate line to its farthest gate: its head, the strip that joins its
        fingers along the whole line, a finger; of the longest gate line
    t = (R + 2 G) C              C: all its wires and its capacitor, without the gates themselves
    V = I R                      I: all units that its transistors pass on, each at the unit current; no more than the
                                 supply current of the whole circuit with all inputs on; none runs in poly
    e = V / U_T                  by what share a current changes whose transistor sees the drop at its gate or source

A path on the net is never longer, so what is small here needs no place in the circuit. The supplies' nets are their
straps, entered at one end, and the longest rail of a row or wire to one of their terminals, at the supply current of
the whole circuit. Sheet and via resistances: the kit's magic technology file, section extract, nominal.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cosim.circuit.elements import GROUND, Capacitor, Mos
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.mask.blocks import VDD
from cosim.mask.chip import DrawnChip, drawing_of
from cosim.mask.extract import Parasitic, by_net
from cosim.mask.gds import label_of
from cosim.mask.plates import WIRE
from cosim.mask.route import terminals_of
from cosim.mask.tiles import RAIL_TOP, STRIP, heights
from cosim.technology.types import DrawingRules


@dataclass(frozen=True)
class Resistance:
    """A net: ohm of its wires from end to end, ohm from a contact to the farthest gate, farad, ampere, seconds of delay
    over those of a frame, and volts of drop over U_T."""

    net: str
    ohm: float
    gate: float
    farad: float
    ampere: float
    delay: float
    drop: float

    @property
    def worst(self) -> float:
        """Return the larger of the two shares that a net's wire resistance costs: of delay and of voltage drop."""
        return max(self.delay, self.drop)


def resistances(chip: DrawnChip, design: Design, wires: Iterable[Parasitic], supply: float) -> list[Resistance]:
    """Return the wire resistance of every net of a layout that has a wire, the worst first.

    supply: largest supply current of the circuit, ampere.
    """
    drawing = drawing_of(design.technology)
    ohms, gates = signal_ohms(chip, drawing), gate_ohms(chip, drawing)
    ohms |= supply_ohms(chip, ohms, drawing)
    farads = {net: sum(kinds.values()) for net, kinds in by_net(list(wires)).items()}
    for element in design.flat.elements:
        if isinstance(element, Capacitor):
            for net in (element.a, element.b):
                farads[label_of(net)] = farads.get(label_of(net), 0.0) + element.value
    amperes = _currents(design, supply)
    frame, thermal = Timing().t_step, design.technology.thermal_voltage
    found: list[Resistance] = []
    for net, ohm in ohms.items():
        gate, farad, ampere = gates.get(net, 0.0), farads.get(label_of(net), 0.0), amperes.get(net, 0.0)
        delay, drop = (ohm + 2 * gate) * farad / frame, ohm * ampere / thermal
        found.append(Resistance(label_of(net), ohm, gate, farad, ampere, delay, drop))
    return sorted(found, key=lambda one: (-one.worst, one.net))


def signal_ohms(chip: DrawnChip, drawing: DrawingRules) -> dict[str, float]:
    """Return the ohms that the metal of each net with a track has, at most, between two of its ends."""
    wires, wide = chip.wires, drawing["metal_width"]
    tracks: dict[str, list[int]] = defaultdict(list)
    stubs: dict[str, int] = defaultdict(int)
    for track in wires.tracks:
        tracks[track.net].append(track.x2 - track.x1)
    for stub in wires.stubs:
        stubs[stub.net] = max(stubs[stub.net], stub.high - stub.low)
    trunks = {trunk.net: trunk for trunk in wires.trunks}
    sheet, via = drawing.resistance.sheet, drawing.resistance.via
    ends = 2 * sum(via[name] for name in ("contact", "via1", "via2", "via3"))
    strips = _terminals(chip)
    found: dict[str, float] = {}
    for net, lengths in tracks.items():
        squares = {"metal1": 2 * strips.get(net, 0.0), "metal2": 2 * stubs[net] / wide}
        squares["metal3"] = sum(sorted(lengths)[-2:]) / wide
        ohm = ends
        if (trunk := trunks.get(net)) is not None:
            squares["metal4"] = (trunk.y2 - trunk.y1) / wide
            ends_of_plates = [x for plate in chip.plates if plate.net == net for x in (plate.box[0], plate.box[2])]
            if ends_of_plates:
                squares["metal5"] = max(abs(trunk.x - x) for x in ends_of_plates) / WIRE
                ohm += 2 * via["via4"]
        found[net] = ohm + sum(sheet[layer] * count for layer, count in squares.items())
    return found


def _terminals(chip: DrawnChip) -> dict[str, float]:
    """Return net of a drawn mask -> squares of its longest metal1."""
    found: dict[str, float] = defaultdict(float)
    for terminal in (one for band in chip.bands for one in terminals_of(band)):
        x1, y1, x2, y2 = terminal.box
        found[terminal.net] = max(found[terminal.net], (x2 - x1) / (y2 - y1))
    return found


def gate_ohms(chip: DrawnChip, drawing: DrawingRules) -> dict[str, float]:
    """Return the ohms of poly that each gate line has, at most, from its contact to its farthest gate."""
    found: dict[str, float] = defaultdict(float)
    for row in (row for band in chip.bands for row in band.rows):
        start = 0
        for tile in row.tiles:
            left, right = _ends(tile.shapes)
            if tile.is_head:
                start = left
                continue
            at, (_, l, *upper) = heights(tile.block, drawing), tile.block.shape  # noqa: E741 - a length
            squares = (right - start) / min(l, STRIP)
            if upper:
                squares += (at.tie + STRIP - at.gate) / STRIP + (at.tie + STRIP - at.upper) / upper[1]
            ohm = drawing.resistance.sheet["poly"] * squares
            found[tile.block.gate] = max(found[tile.block.gate], ohm)
    return found


def _ends(shapes: Iterable[tuple[str, tuple[int, int, int, int]]]) -> tuple[int, int]:
    """Return from where to where the poly of a tile reaches."""
    boxes = [box for layer, box in shapes if layer == "poly"]
    return min((box[0] for box in boxes), default=0), max((box[2] for box in boxes), default=0)


def supply_ohms(chip: DrawnChip, wires: Mapping[str, float], drawing: DrawingRules) -> dict[str, float]:
    """Return the ohms, at most, of each supply: a strap from end to end with a row's rail from end to end and the vias
    between, or with what `wires` has for its terminals off the rails."""
    sheet, via = drawing.resistance.sheet, drawing.resistance.via
    strap = sheet["metal2"] * (chip.box[3] - chip.box[1]) / drawing["strap"]
    rail = sheet["metal1"] * (chip.box[2] - chip.box[0]) / (2 * RAIL_TOP)
    rail += via["via1"] + via["contact"]
    return {net: strap + max(rail, wires.get(net, 0.0)) for net in (VDD, GROUND)}


def _currents(design: Design, supply: float) -> Mapping[str, float]:
    """Return net of a drawn mask -> the most that its transistors pass into its wires, A: each unit the unit current,
    all of them that of the supply."""
    units: dict[tuple[str, str], int] = defaultdict(int)
    for element in design.flat.elements:
        if isinstance(element, Mos):
            for net in {element.drain, element.source}:
                units[net, element.polarity] += element.m
    found: dict[str, float] = {}
    for (net, _), count in units.items():
        found[net] = min(max(found.get(net, 0.0), count * design.i_unit), supply)
    return found | {VDD: supply, GROUND: supply}
