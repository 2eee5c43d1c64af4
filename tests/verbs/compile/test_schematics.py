"""Schematics: names are those of the netlist, none lies on another, and equal calls give equal bytes."""

from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest

from cosim.cells import (
    bias,
    clocked,
    dpi,
    ladder,
    linear,
    mirror,
    quantiser,
    ratio_gate,
    rectifier,
    register,
    schmitt,
    steering,
    tau_cell,
    toggle,
)
from cosim.circuit.elements import Circuit, Mos
from cosim.network.ir.graph import GraphBuilder
from cosim.network.ir.nodes import Pedestal
from cosim.units.ladder import Ladder
from cosim.units.schmitt import Schmitt
from cosim.units.toggle import Toggle
from cosim.verbs.compile import schematics
from cosim.verbs.compile.device_sizes import device_rows, sizes_of
from cosim.verbs.compile.schematics import schematics_of

FUNCTIONS = sorted(name for name in vars(schematics) if name.startswith("draw_"))
TOP = {"central": -0.5, "ideographic": -1.0, "hanging": 0.0}  # of a line's box under its anchor, in its size
DRAWN = {
    "draw_mirror": "mirror", "draw_rectifier": "row", "draw_bias": "bias", "draw_ratio_gate": "ratio gate",
    "draw_steering": "steering", **{draw.__name__: name for name, (_, draw) in schematics.CELLS.items()},
}  # fmt: skip
EMPTY = Circuit("nothing")


def every_block(technology):
    """A circuit that defines each block there is once."""
    row = linear.linear_row("row_a", [linear.Term("a_n", 5, ""), linear.Term("b_p", -3, "")], technology, "")
    return Circuit("blocks", (
        mirror.input_diode(technology, 8), mirror.signal_rails(technology, 8, 1.04), row,
        rectifier.candidate_diode(technology), bias.bias_diode(technology), bias.pedestal_sink(technology),
        *quantiser.quantiser_blocks(technology), quantiser.quantiser(), clocked.clocked_schmitt(technology, 8),
        clocked.clocked_schmitt(technology, 8, tap=True), *ladder.ladder_blocks(technology, 8, 1e-12),
        ladder.ladder(technology, 8, 3, 1), toggle.toggle(technology), *register.register_blocks(technology, 8),
        register.register(technology, 8, 3, 1), tau_cell.tau_cell_gated(technology, 8, 1e-12),
        ratio_gate.ratio_gate(technology), steering.steering_and(technology, 2),
        steering.symbol_comparator(technology, 8),
    ))  # fmt: skip


@pytest.fixture(scope="module")
def cascoded(technology):
    """generic180 with self-cascodes, of lengths and widths with as many digits as a kit's."""
    roles = ("mirror_n", "mirror_p", "cell_n", "cell_p")
    pairs = {role: replace(getattr(technology.sizing, role), cascode=(1.55e-6, 0.35e-6)) for role in roles}
    return replace(technology, sizing=replace(technology.sizing, **pairs))


@pytest.fixture(params=["nothing", "plain", "cascoded"])
def sizes(request, technology, cascoded):
    """What is known of the devices of every drawing."""
    circuits = {"nothing": EMPTY, "plain": every_block(technology), "cascoded": every_block(cascoded)}
    return sizes_of(circuits[request.param])


def texts(svg):
    """(text, left, top, right, bottom) of every name, by the mean width of Arial's letters."""
    for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        (line,) = element
        x, y = float(element.get("x")), float(element.get("y")) + float(line.get("dy"))
        size = float(element.get("font-size"))
        width = 0.48 * size * len(line.text)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor")] * width
        top = y + size * TOP[element.get("dominant-baseline")]
        yield line.text, left, top, left + width, top + size


def names(svg):
    return {text for text, *_ in texts(svg)}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_same_bytes_twice(function):
    draw = getattr(schematics, function)
    assert draw() == draw()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_name_lies_on_another_or_outside(function, sizes):
    svg = getattr(schematics, function)(sizes[DRAWN[function]])
    found = list(texts(svg))
    for (one, left, top, right, bottom), (other, *box) in combinations(found, 2):
        apart = right <= box[0] or box[2] <= left or bottom <= box[1] or box[3] <= top
        assert apart, f"{one} and {other}"
    x, y, width, height = map(float, ElementTree.fromstring(svg).get("viewBox").split())
    for text, left, top, right, bottom in found:
        assert x <= left and y <= top and right <= x + width and bottom <= y + height, text


def test_the_nine_transistors(technology):
    drawn = names(schematics.draw_schmitt())
    assert {f"M{device.name}" for device in schmitt.schmitt_devices(technology, 8, "cand", "v0")} <= drawn
    assert {*schmitt.PORTS, schmitt.DECISION_NODE, "fb"} <= drawn


@pytest.mark.parametrize(
    ("function", "cell", "also"),
    [
        ("draw_clocked", clocked.clocked_schmitt, set()),
        ("draw_dpi", lambda technology, units: dpi.dpi(technology, units, 1, 1e-12), {"M1", "M2", "C"}),
    ],
)
def test_transistors_and_ports_of_the_netlist(technology, function, cell, also):
    block, drawn = cell(technology, 8), names(getattr(schematics, function)())
    devices = [device.name for device in block.elements if isinstance(device, Mos)]
    own = {f"M{name}" if name.isdigit() else name for name in devices}
    if function == "draw_clocked":  # its nine transistors have a drawing of their own
        own -= {f"M{k}" for k in range(1, 10)}
        assert {"cand", "clk", "clkb", "resetb"} <= drawn
    else:
        assert set(block.ports) <= drawn
    assert own | also <= drawn


def test_blocks_have_the_netlist_s_ports():
    for function, ports, inside in (
        ("draw_quantiser", quantiser.PORTS, {"up", "down", "hold"}),
        ("draw_ladder", ladder.PORTS, {"DPI"}),
        ("draw_toggle", toggle.PORTS, {"up", "q", "hold"}),
    ):
        drawn = names(getattr(schematics, function)())
        assert inside <= drawn
        signals = {"cand", "in", "out", "clk", "pulse"} & set(ports)
        assert signals <= drawn, function


def graph_of(*nodes):
    graph = GraphBuilder()
    for node in nodes:
        graph.add(node)
    return graph.lowered()


@pytest.mark.parametrize(
    ("kind", "word", "count"), [(Schmitt, "Clocked", 5), (Ladder, "Ladder", 7), (Toggle, "Toggle", 6)]
)
def test_only_cells_that_are_used(kind, word, count):
    memory = kind("a.0", "a", 0, 0, 1.0, 0.5, 1.0, 0.0, 1.0)
    plain = schematics_of(graph_of(memory), EMPTY)
    assert len(plain) == count and any(word in name for name in plain)
    (bias,) = (name for name in plain if name.startswith("Bias"))
    assert "pedestal sink" not in names(plain[bias])
    assert "pedestal sink" in names(schematics_of(graph_of(memory, Pedestal("pedestal")), EMPTY)[bias])


def test_a_cell_is_drawn_as_it_is_built(technology, cascoded):
    """Nine transistors plain, sixteen where seven are self-cascodes, each with its own width and length."""
    plain, pairs = (sizes_of(every_block(one))["9T cell"] for one in (technology, cascoded))
    assert sum(len(plain[f"M{k}"]) for k in range(1, 10)) == 9
    assert sum(len(pairs[f"M{k}"]) for k in range(1, 10)) == 16
    drawn = names(schematics.draw_schmitt(plain))
    assert {"5/5", "1/1", "8 x 1/5"} <= drawn and "8 x 1.55/0.35" not in drawn
    drawn = [text for text, *_ in texts(schematics.draw_schmitt(pairs))]
    assert drawn.count("1.55/0.35") == 6 == drawn.count("5/5") and drawn.count("1/1") == 2
    assert drawn.count("8 x 1/5") == drawn.count("8 x 1.55/0.35") == 1
    heads = [draw.count(b"<path") for draw in map(schematics.draw_schmitt, (plain, pairs))]
    assert heads[1] > heads[0] + 7  # a symbol more for each pair, and the wires between their gates


@pytest.mark.parametrize("kind", ["9T cell", "clocked", "DPI", "level", "tau-cell", "ratio gate", "steering"])
def test_every_size_is_one_of_the_netlist_s(kind, technology, cascoded):
    for process in (technology, cascoded):
        circuit = every_block(process)
        devices = [mos for block in circuit.subcircuits for mos in block.elements if isinstance(mos, Mos)]
        built = {(f"{mos.w * 1e6:.4g}/{mos.l * 1e6:.4g}", mos.m) for mos in devices}
        (function,) = (name for name, drawing in DRAWN.items() if drawing == kind)
        shown = [text for text in names(getattr(schematics, function)(sizes_of(circuit)[kind])) if "/" in text]
        assert shown
        for text in shown:
            parallel, _, size = text.rpartition(" x ")
            assert (size, int(parallel or 1)) in built


def test_boxes_say_how_many_transistors_are_inside_and_the_table_has_all(technology, cascoded):
    for process, comparator, cell in ((technology, 4, 14), (cascoded, 6, 21)):
        circuit = every_block(process)
        sizes = sizes_of(circuit)
        assert f"{comparator} transistors" in names(schematics.draw_quantiser(sizes["quantiser"]))
        assert f"{cell} transistors" in names(schematics.draw_toggle(sizes["toggle"]))
        rows = list(device_rows(circuit))
        assert not any(row[0].startswith("row_") for row in rows)
        own = [row for row in rows if row[0] == clocked.CLOCKED and row[2] in ("nMOS", "pMOS")]
        assert len(own) == cell
        assert ("comparator", "m1", "pMOS", "5", "5", "1") in {row[:6] for row in rows}
