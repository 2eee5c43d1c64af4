"""Files of an xschem project for a compiled network: a schematic and a symbol for each subcircuit, and their parts."""

from collections.abc import Mapping
from pathlib import Path

from cosim.base.store import write_texts
from cosim.circuit.dialects.dialect import Dialect
from cosim.circuit.elements import Circuit, Instance, Subcircuit
from cosim.compiler.design import Design
from cosim.technology.types import Technology
from cosim.units.builder import NETWORK
from cosim.verbs.compile.xschem.cell import Library, draw_cell
from cosim.verbs.compile.xschem.directions import port_directions
from cosim.verbs.compile.xschem.network import draw_network
from cosim.verbs.compile.xschem.symbols import COMMON, PARTS, block_symbol, transistor_symbols

FOLDER = "xschem"  # in the folder of a compiled network
RC_FILE, TOP = "xschemrc", "top"
_SAID = "the circuit; its netlist is the whole of it"
_RC = """# xschem reads this file when it is started in this folder: xschem network.sch
set here [file dirname [file normalize [info script]]]
set XSCHEM_LIBRARY_PATH $here
set netlist_type spice
set netlist_dir $here/simulation
file mkdir $netlist_dir
"""


def write_xschem(design: Design, folder: Path, dialect: Dialect) -> list[Path]:
    """Write the xschem project of a compiled network into the folder FOLDER of its own; return the schematics' paths.

    The schematic of the network is the first. Raises InputError when the folder cannot be written.
    """
    foundry, assembly = dialect.language.foundry, design.assembly
    files = format_xschem(assembly.circuit, design.technology, assembly.bias_pins, foundry=foundry)
    place = folder / FOLDER
    inside = {True: dict[str, str](), False: dict[str, str]()}
    for name, text in files.items():
        inside[name.startswith(f"{PARTS}/")][name.removeprefix(f"{PARTS}/")] = text
    write_texts(place / PARTS, inside[True])
    write_texts(place, inside[False])
    return [place / f"{NETWORK}.sch", *(place / name for name in files if name.endswith(".sch"))]


def format_xschem(
    circuit: Circuit, technology: Technology, currents: Mapping[str, float], *, foundry: bool = False
) -> dict[str, str]:
    """Return the files of an xschem project that shows the circuit of a network: path in its folder -> text.

    currents: bias pin of the network -> its current, ampere; foundry: whether transistors are devices of the
    foundry's library, in place of cosim's cards.
    """
    directions = port_directions(circuit)
    transistors = transistor_symbols(technology, foundry=foundry)
    blocks = {block.name: block_symbol(block, directions[block.name]) for block in circuit.subcircuits}
    library = Library(technology, foundry, transistors, blocks, directions)
    files = {symbol.name: symbol.text for symbol in (*COMMON, *transistors.values(), *blocks.values())}
    for block in circuit.subcircuits:
        boxes = block.name == NETWORK and all(isinstance(one, Instance) for one in block.elements)
        sheet = draw_network(block, library, currents) if boxes else draw_cell(block, library)
        files[f"{block.name}.sch"] = sheet.text
    name = TOP
    while name in blocks:  # of an edited netlist
        name += "_"
    files[f"{name}.sch"] = draw_cell(Subcircuit(name, (), circuit.elements, _SAID), library).text
    return {RC_FILE: _RC, **files}
