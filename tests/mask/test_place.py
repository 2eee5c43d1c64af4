"""Where bands and capacitors stand. Needs no klayout."""

from itertools import combinations, pairwise

import pytest

from cosim.base.errors import MappingError
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Mos
from cosim.mask.blocks import LayoutTile, NetMetal, TransistorBlock
from cosim.mask.chip import draw_chip, drawing_of
from cosim.mask.plates import WIRE, bottoms, place
from cosim.mask.rows import BlockRow, shortest


def row(*nets):
    """A row of 10 um with a terminal on each of these nets."""
    block = TransistorBlock(Mos("m", "d", "g", GROUND, GROUND, "n", 2e-6, 8e-6))
    tile = LayoutTile(block, terminals=[NetMetal(net, (0, 0, 1, 1)) for net in nets])
    return BlockRow("n", GROUND, (tile,), 1000, 10_000)


def test_bands_that_share_nets_stand_together():
    """Rows are 10 um high. With b lowest, its port is 5 um from the edge and x is 10 um long; above a or c it is 15 um
    or more from the edge."""
    a, b, c = (row("x"),), (row("port", "vdd"),), (row("x"),)
    assert shortest([a, b, c], ["port"])[0] is b


def test_bands_of_a_net_that_should_be_short_stand_together():
    """x is on the first and the second band, three nets are on the first and the third: these two stand together,
    unless x counts for twenty."""
    a, b, c = (row("x", "k", "l", "m"),), (row("x", "y"),), (row("k", "l", "m", "y"),)
    assert [pile for pile in shortest([a, b, c], []) if pile is not b] in ([a, c], [c, a])
    assert shortest([b, c, a], [])[1] is not b
    assert {id(a), id(b)} in [{id(one) for one in pair} for pair in pairwise(shortest([b, c, a], [], {"x"}))]


def test_a_bottom_plate_holds_no_more_than_the_rules_allow(gf180mcu):
    """60 of 680 fF are 340 um2 each, twice what one bottom plate may hold; wires do not touch."""
    drawing = drawing_of(gf180mcu)
    capacitors = [Capacitor(f"c{k}", f"n{k}", GROUND, 680e-15) for k in range(60)]
    plates = place(capacitors, gf180mcu.capacitor_density, drawing, (0, 0, 100_000, 300_000))
    groups = {plate.group for plate in plates}
    areas = [sum(plate.farad_area for plate in plates if plate.group == group) for group in groups]
    assert len(areas) > 2
    assert max(areas) <= drawing["plate_largest"]
    boxes = [box for _, box in bottoms(plates, drawing)]
    assert len(boxes) == len(areas)
    spaces = [max(one[0], other[0]) - min(one[2], other[2]) for one, other in combinations(boxes, 2)]
    assert min(spaces) >= drawing["plate_metal"]
    assert min(abs(one.y - other.y) for one, other in combinations(plates, 2)) >= 2 * WIRE


def test_more_wires_than_fit_are_refused(gf180mcu):
    capacitors = [Capacitor(f"c{k}", f"n{k}", GROUND, 680e-15) for k in range(40)]
    with pytest.raises(MappingError, match=r"capacitor c\d+: there is no room for its wire"):
        place(capacitors, gf180mcu.capacitor_density, drawing_of(gf180mcu), (0, 0, 100_000, 20_000))


def test_a_p_well_of_its_own_is_refused(gf180mcu):
    own = Mos("own", "d", "g", "s", "s", "n", 2e-6, 8e-6)
    with pytest.raises(MappingError, match="transistor own is in a p well of its own, on s"):
        draw_chip(Circuit("cell", (), (own,)), ("d", "g", "s"), gf180mcu, "cell")
