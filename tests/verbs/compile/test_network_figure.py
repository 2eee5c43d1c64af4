"""The schematic: every weight that is built is a wire, signals flow to the right, and large networks stay small."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from cosim.automata.network import network_of
from cosim.automata.regex import automaton_of
from cosim.compiler.passes import compile_network
from cosim.network.ir.nodes import PEDESTAL, Memory
from cosim.verbs.compile.network_figure import BOXES, WIRES, draw_network, network_parts

HOSTILE = '<script>alert("x")</script>'
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    network = make_network(26, hidden=2, widths=(3, 2), outputs=5, alphas=(1.0,))
    return compile_network(replace(network, task=HOSTILE, labels=(HOSTILE, *"abcd")), technology, calibration)


@pytest.fixture(scope="module")
def automaton(technology, calibration):
    return compile_network(network_of(automaton_of("(a|b)*abb"), "made up"), technology, calibration)


@pytest.fixture(scope="module")
def large(make_network, technology, calibration):
    return compile_network(make_network(3, widths=(60,), features=150, outputs=3), technology, calibration)


def built(design):
    """Edges that a picture must have."""
    graph = design.graph
    return {
        edge
        for edge, weight in graph.weights.items()
        if edge[0] != PEDESTAL and (graph.mirrors[edge].count or edge in graph.steered or weight.role != "drive")
    }


def drawn(design):
    """The picture's wires and boxes, as elements of XML."""
    root = ElementTree.fromstring(draw_network(design))
    return root.findall(f"{SVG}path[@data-wire]"), root.findall(f"{SVG}g[@data-box]")


@pytest.mark.parametrize("name", ["design", "automaton"])
def test_every_built_weight_is_a_wire_between_its_boxes(request, name):
    design = request.getfixturevalue(name)
    (parts, joins, _), graph = network_parts(design), design.graph
    ends = {(parts[wire.source].nodes, parts[wire.target].nodes): wire for wire in joins}
    assert set(ends) == {((source,), (target,)) for source, target in built(design)}
    for (source, target), weight in ((edge, graph.weights[edge]) for edge in built(design)):
        wire, mirror = ends[(source,), (target,)], graph.mirrors[source, target]
        assert wire.title.startswith(weight.origin)
        if mirror.count:
            assert (wire.weight, wire.label) == (mirror.realised, f"{mirror.count:+d}")
    wires, boxes = drawn(design)
    assert (len(wires), len(boxes)) == (len(joins), len(parts))
    assert len(boxes) == sum(node != PEDESTAL for node in graph.nodes)
    signs = {"plus": 1, "minus": -1}
    for path, wire in zip(sorted(wires, key=ends_of), sorted(joins, key=lambda w: (w.source, w.target)), strict=True):
        assert signs[path.get("class").split()[0]] * wire.weight >= 0


def ends_of(path):
    return tuple(map(int, path.get("data-wire").split()))


def test_signals_flow_to_the_right_and_the_cells_of_a_stage_stand_together(design):
    boxes, _, heads = network_parts(design)
    column = {box.nodes[0]: box.column for box in boxes}
    for source, target in built(design):
        assert column[source] < column[target]
    cells = [node for node in design.graph.nodes.values() if isinstance(node, Memory)]
    assert len({(cell.stage, column[cell.name]) for cell in cells}) == len({cell.stage for cell in cells}) == 2
    assert {column[f"readout.{k}"] for k in range(5)} == {len(heads) - 1}


def test_what_feeds_back_runs_under_the_boxes(automaton):
    _, wires, _ = network_parts(automaton)
    back = [wire for wire in wires if wire.back]
    assert back and all(wire.late for wire in back)
    wires, _ = drawn(automaton)
    root = ElementTree.fromstring(draw_network(automaton))
    floor = max(float(box.get("y")) + float(box.get("height")) for box in root.iter(f"{SVG}rect"))
    routes = [path.get("d") for path in wires if "V" in path.get("d")]
    assert len(routes) == len(back)
    for route in routes:
        assert float(route.split("V")[1].split("H")[0]) > floor  # its lane
    assert all("late" in path.get("class") for path in wires if "V" in path.get("d"))


def test_cells_say_what_they_compare_with(design):
    _, boxes = drawn(design)
    texts = {box.find(f"{SVG}text").text: [text.text for text in box.findall(f"{SVG}text")] for box in boxes}
    asked = design.graph.currents["layer0.1"]
    _, kind, thresholds, level = texts["layer0.1"]
    assert kind == "9T Schmitt" and level == "level 1 nA"
    assert thresholds == f"rise {1e12 * asked.i_rise:.3g} pA, fall {1e12 * asked.i_fall:.3g} pA"


def test_names_from_files_are_text_and_the_same_network_gives_the_same_bytes(design):
    picture = draw_network(design)
    assert picture == draw_network(design)
    assert HOSTILE not in picture and picture.count("&lt;script&gt;") >= 2  # title, class
    assert not list(ElementTree.fromstring(picture).iter(f"{SVG}script"))


def test_large_networks_are_drawn_in_groups_that_lose_no_weight(large):
    boxes, wires, _ = network_parts(large)
    assert len(built(large)) > 3 * WIRES
    assert len(wires) <= WIRES and max(len(box.nodes) for box in boxes) > 1
    columns = [box.column for box in boxes]
    assert max(columns.count(column) for column in columns) <= BOXES + 2  # a group ends with its kind
    names = [name for box in boxes for name in box.nodes]
    assert sorted(names) == sorted(name for name in large.graph.nodes if name != PEDESTAL)
    mirrors = large.graph.mirrors
    # multiples of 1/8: the sums are exact
    assert sum(wire.weight for wire in wires) == sum(mirrors[edge].realised for edge in built(large))
    assert len(draw_network(large)) < 1e6


def test_dense_pictures_have_no_labels_at_their_ports(large, design):
    assert 'class="port' not in draw_network(large)
    assert draw_network(design).count('class="port number') == len(built(design))


def test_an_input_that_nothing_reads_says_so(make_network, technology, calibration):
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    layer = network.layers[0]
    weight = np.where(np.arange(3) == 1, 0.0, layer.weight)
    blind = replace(network, layers=(replace(layer, weight=weight),))
    assert draw_network(compile_network(blind, technology, calibration)).count("in.1, not read</text>") == 1
