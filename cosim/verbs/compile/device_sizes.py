"""Sizes of a compiled network's transistors, as its schematics show them, and a table of the devices of every block."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType

from cosim.base.quantities import format_quantity
from cosim.cells.bias import BIAS_DIODE, PEDESTAL_SINK, STRONG_DIODE
from cosim.cells.clocked import CLOCKED
from cosim.cells.counter import COUNTER
from cosim.cells.dpi import DPI
from cosim.cells.ladder import LADDER, RUNG_OFF, RUNG_ON
from cosim.cells.mirror import INPUT_DIODE, SIGNAL_RAILS
from cosim.cells.quantiser import COMPARATOR, DRIVER, QUANTISER, SAMPLER
from cosim.cells.ratio_gate import RATIO_GATE
from cosim.cells.rectifier import CANDIDATE, RELU
from cosim.cells.reflector import REFLECTOR
from cosim.cells.register import LEVEL_OFF, LEVEL_ON, REGISTER
from cosim.cells.steering import STEERING_AND, SYMBOL_COMPARATOR
from cosim.cells.tau_cell import TAU_CELL, TAU_CELL_GATED
from cosim.cells.toggle import TOGGLE
from cosim.cells.window import DECISION, WINDOW
from cosim.circuit.elements import Capacitor, Circuit, Instance, Mos, Resistor, Source, Subcircuit
from cosim.units.builder import NETWORK

Sizes = Mapping[str, tuple[str, ...]]  # name in a drawing -> W/L in um: one, or a self-cascode's from the source on
NO_SIZES: Sizes = MappingProxyType({})
HEAD = ("block", "device", "type", "W / um", "L / um", "in parallel", "nets: drain, gate, source, bulk")
_ROW = "row_"  # begins the names of linear rows
_WEIGHTS = {"n": "w > 0", "p": "w < 0"}
_DECISIONS = ("register", "counter", "reflector")
_SCHEMATICS: dict[str, tuple[str, ...]] = {
    INPUT_DIODE: ("mirror",), SIGNAL_RAILS: ("mirror",), _ROW: ("row",), CANDIDATE: ("row",), RELU: ("row",),
    CLOCKED: ("9T cell",), RUNG_OFF: ("9T cell",), RUNG_ON: ("9T cell",), DPI: ("DPI",), LADDER: ("ladder",),
    SAMPLER: ("quantiser", "toggle", *_DECISIONS), COMPARATOR: ("quantiser", "toggle"), DRIVER: ("quantiser",),
    QUANTISER: ("quantiser",), WINDOW: _DECISIONS, COUNTER: ("counter",), REFLECTOR: ("reflector",),
    TOGGLE: ("toggle",), REGISTER: ("register",), LEVEL_OFF: ("level",), LEVEL_ON: ("level",), TAU_CELL: ("tau-cell",),
    RATIO_GATE: ("ratio gate",), SYMBOL_COMPARATOR: ("steering",), STEERING_AND: ("steering",),
    BIAS_DIODE: ("bias",), STRONG_DIODE: ("bias",), PEDESTAL_SINK: ("bias",),
}  # fmt: skip
# what the names of subcircuits begin with -> schematics that show them, the best first


def sizes_of(circuit: Circuit) -> dict[str, Sizes]:
    """Return the sizes that each schematic shows, by the schematic's name in `schematics.CELLS`.
    The sizes of one schematic are a mapping: name in the drawing -> W/L in um."""
    blocks = {block.name: block for block in circuit.subcircuits}

    def named(*begins: str) -> dict[str, tuple[str, ...]]:
        found = (block for begin in begins for name, block in blocks.items() if name.startswith(begin))
        return _of_block(next(found, Subcircuit("", (), ())))

    cell, rails, weights = named(CLOCKED, RUNG_OFF, RUNG_ON), named(SIGNAL_RAILS), _weights(circuit)
    symbols = {"bit 1": "bit0", "bit 2": "bit1", "source": "source"}
    steering = named(STEERING_AND)
    return {
        "mirror": {
            "diode p": named(INPUT_DIODE).get("diode", ()), "copy": rails.get("copy", ()),
            "diode n": rails.get("diode", ()), **weights,
        },
        "row": {"diode": named(CANDIDATE, RELU).get("diode", ()), **weights},
        "9T cell": cell,
        "clocked": cell,
        "DPI": named(DPI),
        "level": named(LEVEL_OFF, LEVEL_ON),
        "tau-cell": named(TAU_CELL_GATED, "tau_cell"),
        "ratio gate": named(RATIO_GATE),
        "steering": {**named(SYMBOL_COMPARATOR), **{name: steering.get(key, ()) for name, key in symbols.items()}},
        "bias": {
            "diode": named(BIAS_DIODE).get("diode", ()),
            "cell's device": cell.get("M2", named(COMPARATOR).get("M2", ())),
            "pedestal sink": named(PEDESTAL_SINK).get("sink", ()),
        },
        **dict.fromkeys(("quantiser", "ladder", "counter", "reflector", "toggle", "register"), _counts(circuit)),
    }  # fmt: skip


def schematic_of(block: str, drawn: Collection[str]) -> str:
    """Return the name of the schematic that shows a subcircuit best, by the subcircuit's name; "" if none does.

    drawn: names of the schematics that there are, keys of `schematics.CELLS` and others.
    """
    shown = (name for begin, names in _SCHEMATICS.items() if block.startswith(begin) for name in names)
    return next((name for name in shown if name in drawn), "")


def device_rows(circuit: Circuit) -> Iterator[tuple[str, ...]]:
    """Yield a table row (as HEAD) for every device of every block, except the rows of weights and the whole network."""
    for block in circuit.subcircuits:
        if block.name.startswith(_ROW) or block.name == NETWORK:
            continue
        for element in block.elements:
            match element:
                case Mos(name, drain, gate, source, bulk):
                    nets, size = f"{drain} {gate} {source} {bulk}", (_um(element.w), _um(element.l))
                    yield block.name, f"m{name}", f"{element.polarity}MOS", *size, str(element.m), nets
                case Capacitor(name, a, b, value):
                    yield block.name, f"c{name}", format_quantity(value, "F"), "", "", "", f"{a} {b}"
                case Instance(name, nets, subcircuit):
                    yield block.name, f"x{name}", subcircuit, "", "", "", " ".join(nets)
                case Resistor(name, a, b, value):
                    yield block.name, f"r{name}", format_quantity(value, "ohm"), "", "", "", f"{a} {b}"
                case Source(name, kind, a, b):
                    yield block.name, f"{kind}{name}", "source", "", "", "", f"{a} {b}"


def _of_block(block: Subcircuit) -> dict[str, tuple[str, ...]]:
    """Return the sizes of a block's transistors, W/L in um, by the names that they have in drawings."""
    devices = {mos.name: mos for mos in block.elements if isinstance(mos, Mos)}
    found: dict[str, tuple[str, ...]] = {}
    for name, lower in devices.items():
        if lower.source == f"mid_{name.removesuffix('c')}":
            continue  # the upper device of a self-cascode stands with its lower one
        pair = (lower, devices[f"{name}c"]) if lower.drain == f"mid_{name}" else (lower,)
        found[f"M{name}" if name.isdigit() else name] = tuple(_size(mos, str(mos.m)) for mos in pair)
    return found


def _weights(circuit: Circuit) -> dict[str, tuple[str, ...]]:
    """Return the sizes of one weight's transistors, for either sign of the weight; k stands for the unit devices."""
    rows = [mos for block in circuit.subcircuits if block.name.startswith(_ROW) for mos in _devices(block)]
    found: dict[str, tuple[str, ...]] = {}
    for polarity, name in _WEIGHTS.items():
        same = [mos for mos in rows if mos.polarity == polarity]
        first = next((list(group) for _, group in groupby(same, lambda mos: mos.name.removesuffix("c"))), [])
        found[name] = tuple(_size(mos, "k") for mos in first[:2])
    return found


def _counts(circuit: Circuit) -> dict[str, tuple[str, ...]]:
    """Return the text "n transistors" for each block of the block diagrams; n includes the blocks inside the block."""
    blocks = {block.name: block for block in circuit.subcircuits}

    def count(name: str) -> int:
        return sum(
            count(one.subcircuit) if isinstance(one, Instance) else isinstance(one, Mos)
            for one in blocks[name].elements
        )

    wanted = (SAMPLER, COMPARATOR, WINDOW, DECISION, DRIVER, RUNG_OFF, LEVEL_OFF, LADDER, TOGGLE, REGISTER, CLOCKED)
    first = {begin: next((name for name in blocks if name.startswith(begin)), None) for begin in wanted}
    return {begin: (f"{count(name)} transistors",) for begin, name in first.items() if name is not None}


def _devices(block: Subcircuit) -> Iterable[Mos]:
    return (element for element in block.elements if isinstance(element, Mos))


def _size(mos: Mos, parallel: str) -> str:
    """Format a transistor's W/L in um, such as "8 x 1/5" for 8 in parallel, or "1/5" for one."""
    return f"{'' if parallel == '1' else f'{parallel} x '}{_um(mos.w)}/{_um(mos.l)}"


def _um(length: float) -> str:
    return f"{1e6 * length:.4g}"
