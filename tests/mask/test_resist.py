"""Resistance of wires, the sums of a small drawing by hand, and places of transistors. Needs no klayout."""

import math

import pytest

from cosim.circuit.elements import GROUND, Circuit, Mos
from cosim.mask.chip import draw_chip, drawing_of
from cosim.mask.extract import gate_ohms, signal_ohms, supply_ohms
from cosim.mask.record import position_rows


@pytest.fixture(scope="module")
def chip(gf180mcu):
    """An inverter's pair: `d` joins an n and a p row, so it has a trunk; `g` is a port."""
    pair = (
        Mos("n", "d", "g", GROUND, GROUND, "n", 2e-6, 8e-6),
        Mos("p", "d", "g", "vdd", "vdd", "p", 2e-6, 8e-6),
    )
    return draw_chip(Circuit("cell", (), pair), ("g", "d", "vdd", GROUND), gf180mcu, "cell")


def test_a_net_is_the_sum_of_its_parts(chip, gf180mcu):
    """90 mohm a square in wires 0.28 um wide, 8 + 3 x 4.5 ohm at each end."""
    trunk = next(one for one in chip.wires.trunks if one.net == "g")
    tracks = sorted(one.x2 - one.x1 for one in chip.wires.tracks if one.net == "g")[-2:]
    stub = max(one.high - one.low for one in chip.wires.stubs if one.net == "g")
    metal = 0.09 * (trunk.y2 - trunk.y1 + sum(tracks) + 2 * stub) / 280
    found = signal_ohms(chip, drawing_of(gf180mcu))["g"]
    terminal = found - metal - 2 * (8 + 3 * 4.5)
    assert 0 <= terminal < 2 * 0.09 * 10  # the head's metal is no longer than ten times its width


def test_a_supply_is_a_strap_and_a_rail(chip, gf180mcu):
    x1, y1, x2, y2 = chip.box
    wanted = 0.09 * (y2 - y1) / 3000 + 0.09 * (x2 - x1) / 460 + 8 + 4.5
    assert math.isclose(supply_ohms(chip, {}, drawing_of(gf180mcu))["vdd"], wanted)
    longer = supply_ohms(chip, {"vdd": 1000.0}, drawing_of(gf180mcu))
    assert math.isclose(longer["vdd"], 1000 + 0.09 * (y2 - y1) / 3000) and math.isclose(longer[GROUND], wanted)


@pytest.mark.parametrize("copies", [1, 12])
def test_no_gate_line_has_more_than_its_bound(gf180mcu, copies):
    """A mirror of several outputs of 8 units: its fingers hang on a strip of poly, 0.36 um high, as long as they are.

    The strip alone, from the contact at its one end to its other end, is what a current to the last finger passes.
    """
    devices = []
    for k in range(copies):
        devices.append(Mos(f"a{k}", f"m{k}", "g", GROUND, GROUND, "n", 6e-7, 5e-6, 8, role="weight"))
        devices.append(Mos(f"b{k}", f"d{k}", "g", f"m{k}", GROUND, "n", 2e-6, 4e-7, 8, role="weight"))
    ports = ("g", *(f"d{k}" for k in range(copies)), "vdd", GROUND)
    chip = draw_chip(Circuit("cell", (), tuple(devices)), ports, gf180mcu, "cell")
    strips = {}
    for x1, y1, x2, y2 in (box for layer, box in chip.shapes if layer == "poly"):
        if y2 - y1 == 360 and x2 - x1 > 1000:
            low, high = strips.get(y1, (x1, x2))
            strips[y1] = min(low, x1), max(high, x2)
    longest = max(high - low for low, high in strips.values())
    assert 7.3 * longest / 360 < gate_ohms(chip, drawing_of(gf180mcu))["g"] < 7.3 * (longest + 20_000) / 360


def test_a_transistor_stands_in_the_middle_of_its_gates(chip, gf180mcu):
    """The one place where its diffusion lies under its poly: 2 um wide, 8 um long."""
    found = {
        name: (x * 1000 + chip.box[0], y * 1000 + chip.box[1])
        for name, x, y in position_rows(chip, drawing_of(gf180mcu))
    }
    polys, diffusions = ([box for layer, box in chip.shapes if layer == name] for name in ("poly", "comp"))
    gates = [(max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])) for a in polys for b in diffusions]
    middles = {((x1 + x2) / 2, (y1 + y2) / 2) for x1, y1, x2, y2 in gates if (x2 - x1, y2 - y1) == (2000, 8000)}
    assert set(found) == {"n", "p"}
    assert set(found.values()) == middles


def test_a_switch_on_top_of_a_source_has_a_place(gf180mcu):
    """It is 0.3 um wide and 2 um long; its gate is where poly crosses its diffusion."""
    source = (
        Mos("lower", "mid", "bias", GROUND, GROUND, "n", 2e-6, 8e-6, role="level"),
        Mos("upper", "a", "bias", "mid", GROUND, "n", 4e-6, 4e-7, role="level"),
        Mos("switch", "out", "x", "a", GROUND, "n", 3e-7, 2e-6, role="switch"),
    )
    chip = draw_chip(Circuit("cell", (), source), ("bias", "out", GROUND), gf180mcu, "cell")
    found = {name: (x, y) for name, x, y in position_rows(chip, drawing_of(gf180mcu))}
    assert set(found) == {"lower", "upper", "switch"}
    polys, diffusions = ([box for layer, box in chip.shapes if layer == name] for name in ("poly", "comp"))
    gates = [(max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])) for a in polys for b in diffusions]
    (gate,) = [box for box in gates if (box[2] - box[0], box[3] - box[1]) == (300, 2000)]
    middle = (gate[0] + gate[2]) / 2 - chip.box[0], (gate[1] + gate[3]) / 2 - chip.box[1]
    assert found["switch"] == pytest.approx((middle[0] / 1000, middle[1] / 1000))
