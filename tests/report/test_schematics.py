"""Schematics: names are those of the netlist, none lies on another, and equal calls give equal bytes."""

from itertools import combinations
from xml.etree import ElementTree

import pytest

from cosim.cells import clocked, dpi, ladder, quantiser, schmitt, toggle
from cosim.circuit.elements import Mos
from cosim.ir.graph import Wiring
from cosim.ir.nodes import Pedestal
from cosim.report import schematics
from cosim.report.schematics import schematics_of
from cosim.units.ladder.node import Ladder
from cosim.units.schmitt.node import Schmitt
from cosim.units.toggle.node import Toggle

FUNCTIONS = sorted(name for name in vars(schematics) if name.startswith("draw_"))
SIZE = 13  # pt
TOP = {"central": -SIZE / 2, "ideographic": -SIZE, "hanging": 0.0}  # of a line's box under its anchor


def texts(svg):
    """(text, left, top, right, bottom) of every name, by the mean width of Arial's letters."""
    for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        (line,) = element
        x, y = float(element.get("x")), float(element.get("y")) + float(line.get("dy"))
        width = 0.48 * SIZE * len(line.text)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor")] * width
        top = y + TOP[element.get("dominant-baseline")]
        yield line.text, left, top, left + width, top + SIZE


def names(svg):
    return {text for text, *_ in texts(svg)}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_same_bytes_twice(function):
    draw = getattr(schematics, function)
    assert draw() == draw()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_name_lies_on_another_or_outside(function):
    svg = getattr(schematics, function)()
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
    graph = Wiring()
    for node in nodes:
        graph.add(node)
    return graph.lowered()


@pytest.mark.parametrize(
    ("kind", "word", "count"), [(Schmitt, "Clocked", 5), (Ladder, "Ladder", 7), (Toggle, "Toggle", 6)]
)
def test_only_cells_that_are_used(kind, word, count):
    memory = kind("a.0", "a", 0, 0, 1.0, 0.5, 1.0, 0.0, 1.0)
    plain = schematics_of(graph_of(memory))
    assert len(plain) == count and any(word in name for name in plain)
    (bias,) = (name for name in plain if name.startswith("Bias"))
    assert "pedestal sink" not in names(plain[bias])
    assert "pedestal sink" in names(schematics_of(graph_of(memory, Pedestal("pedestal")))[bias])
