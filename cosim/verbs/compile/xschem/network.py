"""The schematic of a whole network: inputs, layer after layer, and the readout from left to right, bias pins below.

    in_0 -+- rails      row -+- cell -+- rails        The blocks of a signal are a strip: those on its way on one line,
          diode              cand     pedestal        others below it. Strips of a layer are a column, one per unit.

The name of an instance says what it is and of which signal, as `cell_layer1_0`.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cosim.base.quantities import format_quantity
from cosim.circuit.elements import Instance, Subcircuit
from cosim.verbs.compile.xschem.cell import Library, explain, finish
from cosim.verbs.compile.xschem.sheet import GRID, LETTER, Placed, Schematic
from cosim.verbs.compile.xschem.symbols import PORTS

_NUMBER = re.compile(r"(_\d+)+$")
_BELOW = 8 * GRID  # from the line of a strip to the blocks below it
_APART = 14 * GRID  # from a strip to the next
_COLUMN = 20 * GRID  # from a column to the next
_PORT = 4 * GRID  # from a pin to its port
_BIASES = 12  # bias pins in a row


@dataclass
class _Strip:
    """The instances of one signal: its layer, or `inputs`; kinds: what each instance is, in netlist order."""

    layer: str
    kinds: dict[str, list[Instance]] = field(default_factory=lambda: defaultdict(list))


def draw_network(block: Subcircuit, library: Library, currents: Mapping[str, float]) -> Schematic:
    """Return the schematic of a network, whose elements are instances; currents: bias pin -> its current, ampere."""
    directions, sheet = library.directions[block.name], Schematic()
    instances = [element for element in block.elements if isinstance(element, Instance)]
    readers = defaultdict[str, int](int)
    for instance in instances:
        for net in set(instance.nets):
            readers[net] += 1
    biases = [one for one in instances if len(one.nets) == 1 and one.nets[0] in directions]
    strips = _strips([one for one in instances if one not in biases])
    columns = defaultdict[str, list[_Strip]](list)
    for strip in strips:
        columns[strip.layer].append(strip)
    x, bottom, sided = 0, 0, list[Placed]()
    for layer, found in columns.items():
        placed, x, lowest = _column(sheet, library, found, x, readers)
        bottom = max(bottom, lowest)
        sided += placed if layer == "inputs" else ()
    sided += _biases(sheet, library, biases, bottom + _APART, currents)
    _ports(sheet, sided, directions)
    signals = (
        (placed, placed.fields["name"].partition("_")[2]) for placed in sheet.placed if "lab" not in placed.fields
    )
    zones = {place: signal for placed, signal in signals for _, place in placed.pins}
    finish(sheet, block, directions, zones)
    return sheet


def _strips(instances: Sequence[Instance]) -> list[_Strip]:
    """Return the strips of a network, in netlist order."""
    found = dict[str, _Strip]()
    for one in instances:
        kind, _, signal = one.name.partition("_")
        if signal not in found:
            block = one.part.block if one.part is not None else ""
            found[signal] = _Strip("inputs" if block == "inputs" else _NUMBER.sub("", signal))
        found[signal].kinds[kind].append(one)
    return list(found.values())


def _column(
    sheet: Schematic, library: Library, strips: Sequence[_Strip], x: int, readers: Mapping[str, int]
) -> tuple[list[Placed], int, int]:
    """Place the strips of a layer from x on; return its instances, the x of the next column, and the lowest y."""
    kinds = list(dict.fromkeys(kind for strip in strips for kind in strip.kinds))
    lefts, at = dict[str, int](), x
    for kind in kinds:
        same = [one for strip in strips for one in strip.kinds.get(kind, ())]
        at += _grid(LETTER * max((len(net) for one in same for net in one.nets), default=0) + 5 * GRID)
        lefts[kind] = at
        at += max(library.blocks[one.subcircuit].box[2] for one in same) + 2 * GRID
    placed, y = list[Placed](), 0
    for strip in strips:
        lowest = y
        hanging = {kind for kind, same in strip.kinds.items() if all(_hangs(one, library, readers) for one in same)}
        if len(hanging) == len(strip.kinds):
            hanging = set[str]()
        for kind, same in strip.kinds.items():
            top = y + (_BELOW if kind in hanging else 0)
            for one in same:
                box = sheet.place(library.instance(one, (lefts[kind], top)))
                end = top + box.symbol.box[3]
                explain(sheet, one.origin, (lefts[kind] + 5, end + 18))
                placed.append(box)
                lowest, top = max(lowest, end), _grid(end) + 8 * GRID
        y = _grid(lowest) + _APART
    return placed, at + _COLUMN, y


def _hangs(one: Instance, library: Library, readers: Mapping[str, int]) -> bool:
    """Tell whether an instance is on one signal only, which others are on as well, beside rails and bias lines."""
    ways = library.directions[one.subcircuit].values()
    signals = [net for net, way in zip(one.nets, ways, strict=True) if way != "inout"]
    own = [net for net in signals if not net.startswith("bias_")]
    return len(own) == 1 and readers[own[0]] > 1


def _biases(
    sheet: Schematic, library: Library, biases: Sequence[Instance], y: int, currents: Mapping[str, float]
) -> list[Placed]:
    """Place the diodes of the bias pins in rows at the bottom, each with its current; return them."""
    placed = list[Placed]()
    pitch = max((library.blocks[one.subcircuit].box[2] for one in biases), default=0)
    pitch += LETTER * max((len(one.nets[0]) for one in biases), default=0) + _PORT + 8 * GRID
    for k, one in enumerate(biases):
        at = _grid(pitch) * (k % _BIASES), y + _APART * (k // _BIASES)
        placed.append(sheet.place(library.instance(one, at)))
        if (current := currents.get(one.nets[0])) is not None:
            sheet.write(format_quantity(current, "A", 4), (at[0] - 11 * GRID, at[1] + 10))
        explain(sheet, one.origin, (at[0] + 5, at[1] + placed[-1].symbol.box[3] + 18))
    return placed


def _ports(sheet: Schematic, sided: Sequence[Placed], directions: Mapping[str, str]) -> None:
    """Place ports beside the inputs' blocks and the bias diodes, and outputs beside the blocks that drive them."""
    done = set[str]()
    for placed in sided:
        for net, (x, y) in placed.pins:
            if directions.get(net) == "in" and net not in done and x < placed.at[0]:
                done.add(net)
                sheet.name(PORTS["in"], net, (x - _PORT, y))
                sheet.wire(net, (x - _PORT, y), (x, y))
    for placed in list(sheet.placed):
        ways = zip(placed.pins, placed.symbol.pins, strict=True)
        for (net, (x, y)), (_, place) in ways:
            if directions.get(net) == "out" and net not in done and place[0] > placed.symbol.box[2]:
                done.add(net)
                sheet.name(PORTS["out"], net, (x + _PORT, y))
                sheet.wire(net, (x, y), (x + _PORT, y))


def _grid(length: int) -> int:
    return -(-length // GRID) * GRID
