"""What makes a drawing dense and quiet: switches on their sources, units at row ends, wells, wires kept apart, fill."""

from dataclasses import replace

import pytest

from cosim.base.errors import MappingError
from cosim.cells.mirror import signal_rails
from cosim.cells.schmitt import schmitt
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Instance, Mos
from cosim.mask.blocks import VDD, TransistorBlock, stack
from cosim.mask.chip import MOST, draw_chip, drawing_of
from cosim.mask.plates import place
from cosim.mask.produce import format_schematic
from cosim.mask.route import (
    CLOCK,
    DECISION,
    HELD,
    LOAD,
    NetClasses,
    NoRoomError,
    RoutingLanes,
    RoutingPlan,
    Trunk,
    _place_trunk,
    manners,
)
from cosim.mask.rows import OWN, BlockRow, find_bands, piled, spaced


def flat(block):
    return Circuit(block.name, (block,), (Instance("cell", block.ports, block.name),)).flat(), block.ports


def cascode(drain):
    """A source of current, two transistors under one gate line."""
    return [
        Mos("lower", "mid", "bias", GROUND, GROUND, "n", 2e-6, 8e-6, role="level"),
        Mos("upper", drain, "bias", "mid", GROUND, "n", 4e-6, 4e-7, role="level"),
    ]


def switch(name, drain, gate, source):
    return Mos(name, drain, gate, source, GROUND, "n", 3e-7, 2e-6, role="switch")


def test_switches_stand_on_the_source_that_feeds_them():
    """Two in series, the upper one with drain and source the other way round."""
    (block,) = stack([switch("two", "b", "y", "out"), switch("one", "b", "x", "a"), *cascode("a")], ["out"])
    assert [mos.name for mos in block.over] == ["one", "two"]
    assert (block.links, block.ends) == (("a", "b", "out"), (GROUND, "out"))
    assert set(block.nets) == {GROUND, "out", "bias", "x", "y"}


def test_two_switches_from_one_source_share_what_they_lead_to():
    """Either lets the current through; what they lead to is wired, as all that others are on."""
    pair = [switch("one", "out", "x", "a"), switch("two", "a", "y", "out")]
    (block,) = stack([*cascode("a"), *pair], ["out"])
    assert block.forked
    assert (block.links, block.ends) == (("a", "out", "a"), (GROUND, "a"))
    assert set(block.nets) == {GROUND, "a", "out", "bias", "x", "y"}
    apart = stack([*cascode("a"), pair[0], switch("two", "a", "y", "elsewhere")], ["out", "elsewhere"])
    assert not any(one.over for one in apart)


@pytest.mark.parametrize("outside", ["a port", "a third transistor"])
def test_a_net_that_others_are_on_is_wired(outside):
    devices = [*cascode("a"), switch("one", "out", "x", "a")]
    if outside == "a port":
        found = stack(devices, ["a"])
    else:
        found = stack([*devices, switch("other", "elsewhere", "y", "a")])
    assert not any(block.over for block in found)


def test_rows_of_mirrors_end_in_units_on_the_rail(gf180mcu):
    circuit, ports = flat(signal_rails(gf180mcu, 8, 1.003))
    chip = draw_chip(circuit, ports, gf180mcu, "cell")
    rows = [row for band in chip.bands for row in band.rows]
    assert [len(row.ends) for row in rows] == [2] * len(rows)
    whole = replace(circuit, elements=(*circuit.elements, *chip.dummies))
    netlist = format_schematic(whole, (), ports, "cell", drawing_of(gf180mcu))
    lines = [line.split() for line in netlist.splitlines() if line.startswith("mdummy")]
    assert len(lines) == 2 * len(rows)
    assert {tuple(line[1:5]) for line in lines} == {("vss",) * 4, ("vdd",) * 4}
    for row in rows:
        inner = [box for tile in row.tiles for layer, box in tile.shapes if layer == "comp"]
        ends = [box for tile in row.ends for layer, box in tile.shapes if layer == "comp"]
        assert min(ends)[2] < min(box[0] for box in inner)
        assert max(ends)[0] > max(box[2] for box in inner)


def row(polarity, well):
    return BlockRow(polarity, well, (), 1000, 10_000)


def test_wells_keep_from_wells_only():
    """1.4 um of two wells are kept once, those to the substrate not at all."""
    n, p, own = (row("n", GROUND),), (row("p", VDD),), (row("p", OWN),)
    height = piled([n, own, n])[-1].high
    assert piled(spaced([n, own, n], 1400))[-1].high == height
    assert piled(spaced([p, own, p], 1400))[-1].high == height + 2800
    assert piled(spaced([own, own, p], 1400))[-1].high == height + 2800


def test_plates_fill_the_height(gf180mcu):
    """8 of 400 fF, 200 um2 each, in 240 um: one column of 29 um, 7 um wide; what their area misses is the grid."""
    drawing = drawing_of(gf180mcu)
    capacitors = [Capacitor(f"c{k}", f"n{k}", VDD, 400e-15) for k in range(8)]
    plates = place(capacitors, gf180mcu.capacitor_density, drawing, (0, 0, 100_000, 240_000))
    assert len({plate.box[0] for plate in plates}) == 1
    assert 0.95 * 240_000 < max(plate.box[3] for plate in plates) < 240_000
    area = 400e-15 / gf180mcu.capacitor_density * 1e18
    high = plates[0].box[3] - plates[0].box[1]
    assert all(abs(plate.farad_area - area) <= 5 * high for plate in plates)


def test_plates_that_would_be_too_narrow_are_lower(gf180mcu):
    """8 of 200 um2 in 400 um would be 49 um high and 4.1 um wide, too narrow for a wire: they are lower."""
    drawing = drawing_of(gf180mcu)
    capacitors = [Capacitor(f"c{k}", f"n{k}", VDD, 400e-15) for k in range(8)]
    plates = place(capacitors, gf180mcu.capacitor_density, drawing, (0, 0, 100_000, 400_000))
    assert len({plate.box[0] for plate in plates}) == 1
    assert {plate.box[2] - plate.box[0] for plate in plates} == {4500}


def test_a_capacitor_between_signals_is_refused_by_name(gf180mcu):
    capacitors = [Capacitor("c0", "n0", VDD, 400e-15), Capacitor("average.c", "in", "held", 400e-15)]
    with pytest.raises(
        MappingError, match=r"capacitor average\.c from in to held, neither .*; leave its block out of --with"
    ):
        place(capacitors, gf180mcu.capacitor_density, drawing_of(gf180mcu), (0, 0, 100_000, 240_000))


def test_roles_tell_which_nets_are_kept_apart():
    """Names do not: a switch's gate on a port is a clock, on another net a decision."""
    devices = (
        switch("sample", "store", "tick", "in"),
        switch("steer", "out", "choice", "tail"),
        Capacitor("c", "store", GROUND, 4e-13),
    )
    found = manners(Circuit("cell", (), devices), ("tick", "out", "in"))
    assert found.harm("tick", "store") == found.harm("out", "tick") == CLOCK
    assert found.harm("choice", "store") == DECISION
    assert found.harm("tail", "store") == HELD
    assert found.harm("store", VDD) == found.harm("tail", "choice") == found.harm("tick", "tick") == 0
    assert 0 < found.harm("out", "store") < HELD


def test_comparators_keep_from_integrators_and_those_without_a_clock_are_short():
    """What holds a sample stands still while a comparator decides; an integrator does not."""
    devices = (
        Mos("one", "choice", "in", VDD, VDD, "p", 2e-6, 8e-6, role="compare"),
        Mos("two", "quick", "in", VDD, VDD, "p", 2e-6, 8e-6, role="compare"),
        switch("steer", "out", "quick", "tail"),
        Mos("charge", "sum", "sum", "well", "well", "p", 2e-6, 8e-6, role="pair"),
        Capacitor("c", "sum", GROUND, 7e-13),
        Capacitor("d", "store", GROUND, 4e-13),
    )
    circuit = Circuit("cell", (), devices)
    found = manners(circuit, ("in", "out"))
    assert found.urgent == {"quick"}
    assert found.harm("choice", "sum") == found.harm("sum", "choice") == found.harm("quick", "sum") == DECISION
    assert found.harm("choice", "store") == HELD
    assert found.harm("quick", "tail") == found.harm("tail", "quick") == LOAD
    assert found.harm("choice", "tail") == 0


@pytest.mark.parametrize(("other", "least"), [("tick", 3360), ("choice", 2000), ("tail", 900)])
def test_trunks_keep_from_what_turns_states(other, least):
    """All belong at 50 um. Wires more than 2 um apart do not see each other; a place costs its distance, and what lies
    beside 100 um of the next trunk costs 12.5 um and more."""
    known = NetClasses(frozenset({"tick"}), frozenset({"choice"}), frozenset({"store"}))
    plan = RoutingPlan((), frozenset(), {"store": 50_000, other: 50_000}, (), {}, 0, 100_000, known)
    lanes = RoutingLanes(680)
    lanes.take(50_400, 0, 100_000, other)
    trunk = _place_trunk(plan, lanes, Trunk("store", 50_000, 0, 100_000), 1, 560)
    assert least <= abs(trunk.x - 50_400) < 20_000


def test_a_single_transistor_stands_on_its_own():
    """A switch on a net with a second transistor that is no source's."""
    one, other = switch("one", "a", "x", "in"), switch("two", "b", "y", "a")
    assert stack([one, other]) == [TransistorBlock(one), TransistorBlock(other)]


def test_fill_covers_what_the_foundry_asks_and_keeps_its_distance(gf180mcu):
    """30 % of each metal; wires of the same metal are 0.5 um away or more."""
    db = pytest.importorskip("klayout.db")
    from cosim.mask.gds import layout_of, read_layout
    from cosim.mask.produce import METALS, fill

    circuit, ports = flat(schmitt(gf180mcu, 8))
    drawing = drawing_of(gf180mcu)
    chip = draw_chip(circuit, ports, gf180mcu, "cell")
    drawn = read_layout(layout_of(chip, drawing), drawing)
    shapes, shares = fill(chip, circuit, drawn, drawing)
    assert (shapes, shares) == fill(chip, circuit, drawn, drawing)
    for layer in METALS:
        wires = db.Region([db.Box(*box) for name, box in chip.shapes if name == layer])
        squares = db.Region([db.Box(*box) for name, box in shapes if name == f"{layer}_fill"])
        assert (wires.sized(499) & squares).is_empty()
        assert squares.sized(249).merged().count() == squares.count()
        x1, y1, x2, y2 = chip.box
        share = (wires.merged().area() + squares.area()) / ((x2 - x1) * (y2 - y1))
        assert shares[layer][1] == pytest.approx(share, rel=1e-9)
        assert share >= 0.3


def test_what_is_too_large_for_its_wires_is_refused_at_once(gf180mcu, monkeypatch):
    """Before anything is placed."""
    monkeypatch.setattr("cosim.mask.chip.stack", lambda *_: pytest.fail("the work has begun"))
    devices = tuple(switch(f"s{k}", f"a{k}", "g", f"b{k}") for k in range(MOST + 1))
    with pytest.raises(MappingError, match=r"cell: must have at most 4000 transistors and capacitors .*, not 4001"):
        draw_chip(Circuit("cell", (), devices), ("g",), gf180mcu, "cell")


def test_rows_get_longer_where_wires_across_them_find_no_room(gf180mcu, monkeypatch):
    """Seven eighths of the rows each time, as far as two fifths of them."""
    asked = []

    def route_none(*_):
        raise NoRoomError("net a: there is no room for its wire")

    def bands(blocks, wanted, rows, drawing):
        asked.append(rows)
        return find_bands(blocks, wanted, 2, drawing)

    monkeypatch.setattr("cosim.mask.chip.find_rows", lambda *_: 20)
    monkeypatch.setattr("cosim.mask.chip.find_bands", bands)
    monkeypatch.setattr("cosim.mask.chip.route", route_none)
    circuit, ports = flat(schmitt(gf180mcu, 8))
    with pytest.raises(NoRoomError, match="net a: there is no room"):
        draw_chip(circuit, ports, gf180mcu, "cell")
    assert asked == [20, 17, 14, 12, 10, 8]
