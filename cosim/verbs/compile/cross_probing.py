"""Cross-probing on pages: the way from a name in a result to its line in the netlist and to the schematic of its cell.

    layer1.3, bias_thresh_3                       -> the line of its instance
    network.cell_layer1_3.2, layer1.weight[0,1]   -> the line of its transistor, in the subcircuit that has it
    schmitt_clocked                               -> the first line of the subcircuit
    input diodes, rows                            -> the schematic of a group or block of transistors

The netlist has beside the line of an instance that of its subcircuit, beside a subcircuit its schematic and the lines
that use it. A page says a line as `L67`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cosim.circuit.elements import RAILS, Element, Instance, Mos, Subcircuit
from cosim.circuit.spice import read_netlist
from cosim.compiler.design import Design, once_per_design
from cosim.compiler.edited import netlist_path
from cosim.compiler.mapping import map_parameters
from cosim.results.page import Blocks, Fold, Page, Table, link_page
from cosim.units.builder import NETWORK, net
from cosim.verbs.compile.device_sizes import schematic_of
from cosim.verbs.compile.outputs import format_netlist
from cosim.verbs.compile.schematics import drawn_schematics

MOST_LINES = 2000  # of a netlist on a page
_NET = "net"  # begins the ids of lines
_SAID = (
    "As cosim compile writes it into network.sp for ngspice. Beside an instance is the line of its subcircuit, and "
    "that of a cell its schematic; beside a subcircuit are its schematic and the lines that use it."
)


@dataclass(frozen=True)
class NetlistLines:
    """The netlist of a design: its text line by line, and (subcircuit, element with its letter) -> number of the line.

    The element "" is the subcircuit itself.
    """

    texts: tuple[str, ...]
    numbers: Mapping[tuple[str, str], int]

    @property
    def shown(self) -> bool:
        """Tell whether the netlist is short enough for a page, and has subcircuits, as all but flat circuits have."""
        return bool(self.numbers)

    def say(self, block: str, element: str = "") -> str:
        """Return the line of an element, or of a subcircuit, as pages say it, such as L67; "" if it is not shown."""
        return f"L{self.numbers[block, element]}" if self.shown else ""

    def place(self, block: str, element: str = "") -> str:
        """Return the id of the line of an element, or of a subcircuit, on a page."""
        return f"{_NET}-{self.numbers[block, element]}"


@once_per_design
def lines_of(design: Design) -> NetlistLines:
    """Return the lines of a design's netlist; without numbers where they are too many, or the circuit is flat."""
    text, circuit = format_netlist(design), design.assembly.circuit
    if not circuit.subcircuits:
        return NetlistLines((), {})
    if len(lines := text.splitlines()) > MOST_LINES:
        return NetlistLines(tuple(lines), {})
    tops = tuple(dict.fromkeys(one.subcircuit for one in circuit.elements if isinstance(one, Instance)))
    netlist = read_netlist(text, "network.sp", design.technology, tops=tops)
    return NetlistLines(tuple(lines), netlist.lines)


def netlist_section(design: Design) -> Blocks:
    """Return the section of a page with the numbered lines of the netlist, which are left out above MOST_LINES."""
    lines = lines_of(design)
    if not lines.texts:
        return ()
    if not lines.shown:
        return (
            f"network.sp of cosim compile has {len(lines.texts)} lines, more than the {MOST_LINES} that a page shows, "
            "so names lead to schematics alone.",
        )
    beside = _beside(design, lines)
    rows = tuple((str(k), text, beside.get(k, "")) for k, text in enumerate(lines.texts, 1))
    table = Table(("line", "network.sp", "see"), rows, tall=True, search=True, listing=_NET)
    own = design.settings.netlist
    said = _SAID if own is None else f"{_SAID} Lines of {own.name}, which was edited, have other numbers."
    return said, Fold(f"{len(rows)} lines of network.sp", table)


def _beside(design: Design, lines: NetlistLines) -> dict[int, str]:
    """Return the number of a line -> what the page names beside it."""
    found, uses, blocks = dict[int, str](), dict[str, list[str]](), design.assembly.circuit.subcircuits
    drawn = {block: f"schematic: {name}" for block, name in schematics_by_block(design).items()}
    cells = {f"cell_{net(node.name)}" for node in design.graph.memories}
    for block in blocks:
        for one in block.elements:
            if isinstance(one, Instance):
                schematic = drawn.get(one.subcircuit, "") if one.name in cells else ""
                line, said = lines.numbers[block.name, f"x{one.name}"], (schematic, lines.say(one.subcircuit))
                found[line] = ", ".join(filter(None, said))
                uses.setdefault(one.subcircuit, []).append(f"L{line}")
    for block in blocks:
        said = (drawn.get(block.name, ""), *uses.get(block.name, ()))
        found[lines.numbers[block.name, ""]] = ", ".join(filter(None, said))
    return found


def schematics_by_block(design: Design) -> dict[str, str]:
    """Return subcircuit of a design -> name of the schematic that shows it, for those that are shown."""
    drawn = drawn_schematics(design.graph)
    found = {block.name: schematic_of(block.name, drawn) for block in design.assembly.circuit.subcircuits}
    return {block: schematic for block, schematic in found.items() if schematic}


def cross_probe(page: Page, design: Design) -> Page:
    """Return a page about a design on which names of cells, transistors, pins and parameters lead to their places.

    Its sections have to include `netlist_section` and the schematics, else nothing leads there.
    """
    return link_page(page, places_of(design))


def schematic_place(schematic: str) -> str:
    """Return the id of a schematic on a page, by its name in `schematics.CELLS`."""
    return f"cell-{schematic.replace(' ', '-')}"


@once_per_design
def places_of(design: Design) -> Mapping[str, str]:
    """Return every name that a page of a design may say -> id of its line, or of a schematic where none is shown."""
    circuit, lines = design.assembly.circuit, lines_of(design)
    blocks = {block.name: block for block in circuit.subcircuits}
    drawn = {name: schematic_place(schematic) for name, schematic in schematics_by_block(design).items()}
    found = {f"schematic: {name}": schematic_place(name) for name in drawn_schematics(design.graph)}
    inside = [one for one in blocks.get(NETWORK, Subcircuit("", (), ())).elements if isinstance(one, Instance)]
    for one in inside:
        place = drawn.get(one.subcircuit)
        for name in (one.part.group, one.part.block) if one.part and place else ():
            found.setdefault(name, place or "")
    if lines.shown:
        found |= {f"L{number}": f"{_NET}-{number}" for number in lines.numbers.values()}
        found |= dict(_elements(circuit.elements, blocks, lines))
        for one in inside:
            for outside in one.nets:
                if outside not in RAILS:
                    found.setdefault(outside, lines.place(NETWORK, f"x{one.name}"))
        found |= {name: lines.place(name) for name in blocks if name != NETWORK}
    else:
        found |= {one.name: drawn[one.subcircuit] for one in inside if one.subcircuit in drawn}
    others = {"unit": design.assembly.unit_pin, "pedestal": design.assembly.pedestal_pin or ""}
    others |= {node.name: f"cell_{net(node.name)}" for node in design.graph.memories}
    others |= {row.parameter: row.element.partition(" ")[0] for row in map_parameters(design)}
    found |= {name: found[other] for name, other in others.items() if other in found}
    return {name: place for name, place in found.items() if not name[:1].isdigit()}  # a table's numbers are no names


def _elements(
    elements: tuple[Element, ...], blocks: Mapping[str, Subcircuit], lines: NetlistLines, path: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield names of the transistors and instances inside elements at a path -> ids of their lines.

    A transistor has three names: `network.cell_layer1_3.2`, which verbs say, with and without the network's instance,
    and that of simulators, xnetwork.xcell_layer1_3.m2.
    """
    for outer in elements:
        if not isinstance(outer, Instance):
            continue
        for one in blocks[outer.subcircuit].elements:
            name = f"{path}{outer.name}.{one.name}"
            short, place = name.partition(".")[2], lines.place(outer.subcircuit, one.letter + one.name)
            match one:
                case Mos():
                    yield from ((text, place) for text in (name, short, netlist_path(name)))
                case Instance():
                    yield from ((text, place) for text in (name, short))
                    yield from _elements((one,), blocks, lines, f"{path}{outer.name}.")
                case _:
                    pass
