"""Extraction against a field solver on small structures, whose figures stand in field_solver.json. Needs no klayout.

`python benchmarks/bench_extraction.py tests/mask/field_solver.json` writes that file: FastCap2 2.1, boundary
elements, the kit's stack in one oxide. Its two meshes differ by up to 2.6 %.
"""

import json
from pathlib import Path

import pytest

from cosim.mask.chip import drawing_of
from cosim.mask.extract import extract
from cosim.mask.gds import ExtractedLayout
from cosim.technology.catalog import load_technology

KEPT = json.loads((Path(__file__).parent / "field_solver.json").read_text())["structures"]
MESH = 0.026
PLANE = 0.17  # a line over a plane: 2,205 aF by the solver, 2,560 with the kit's rim
SPREAD = 0.22  # neighbours 1.12 um apart have 26 aF/um over a plane, 43 without; the coefficient is fitted between both


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    """That of gf180mcu without its models."""
    root = tmp_path_factory.mktemp("kits")
    library = root / "gf180mcuD/libs.tech/ngspice/sm141064.ngspice"
    library.parent.mkdir(parents=True)
    library.write_text("")
    return drawing_of(load_technology("gf180mcu", root))


def extracted(pieces, drawing):
    """Pair -> attofarad, and whether it is beside."""
    boxes = {}
    for layer, net, box in pieces:
        boxes.setdefault(net, {}).setdefault(layer, []).append(tuple(box))
    found, beside = {}, set()
    for one in extract(ExtractedLayout(boxes, ()), drawing):
        pair = f"{one.a} {'ground' if one.b == 'vss' else one.b}"
        found[pair] = found.get(pair, 0.0) + one.farad * 1e18
        if one.kind == "beside":
            beside.add(pair)
    return found, beside


def farads_of(net, pairs):
    return sum(farad for pair, farad in pairs.items() if net in pair.split())


@pytest.mark.parametrize("name", KEPT)
def test_couplings_are_those_of_a_field_solver(name, drawing):
    """Two crossing wires have two edges each, whose errors multiply: (1 + PLANE)^2 - 1, up or down."""
    solved = KEPT[name]["aF"]
    found, beside = extracted(KEPT[name]["pieces"], drawing)
    for pair, farad in solved.items():
        if "ground" not in pair:
            most = 1 + SPREAD if pair in beside else (1 + PLANE) ** 2
            assert 1 / (most + MESH) < found[pair] / farad < most + MESH, pair


@pytest.mark.parametrize("name", KEPT)
def test_what_a_net_has_in_all(name, drawing):
    """What ground has and what a wire above has are shared along an edge, so their sum errs less than either."""
    solved = KEPT[name]["aF"]
    found, _ = extracted(KEPT[name]["pieces"], drawing)
    for net in {pair.split()[0] for pair in solved}:
        ratio = farads_of(net, found) / farads_of(net, solved)
        assert 1 / (1 + SPREAD + MESH) < ratio < (1 + PLANE) ** 2 + MESH, net


def test_a_plane_between_shields(drawing):
    wires = [["metal2", "a", (0, 0, 10000, 280)], ["metal4", "b", (0, 0, 10000, 280)]]
    plane = ["metal3", "c", (-9000, -9000, 19000, 9280)]
    assert extracted(wires, drawing)[0]["a b"] > 100
    assert "a b" not in extracted([*wires, plane], drawing)[0]


def test_a_gate_has_what_is_above_it_and_nothing_to_ground(drawing):
    """10 um2 of metal1 over a gate: 514 aF of area, and more by the edges."""
    gate = {"g": {"gate": ((0, 0, 10000, 1000),)}, "m": {"metal1": ((0, 0, 10000, 1000),)}}
    found = {(one.a, one.b): one.farad for one in extract(ExtractedLayout(gate, ()), drawing)}
    assert ("g", "vss") not in found
    assert found["g", "m"] > 514e-18
