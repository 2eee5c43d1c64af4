"""Schematics of the thermometer register, drawn; names as in `cosim.cells.register`."""

from cosim.report.device_sizes import NO_SIZES, Sizes
from cosim.report.schematic_sheet import HEIGHT, NET, Sheet


def draw_register(sizes: Sizes = NO_SIZES) -> bytes:
    """The thermometer register in blocks: window in front, value of either sign, levels."""
    sheet = Sheet(sizes)
    sheet.box((1.8, 0), 2.4, 1.8, "sample", "gate", key="sampler")
    sheet.box((6.4, 0), 3.6, 2.4, "comparators", "upper, lower", key="window")
    sheet.box((11.6, 0), 3.2, 1.6, "gates")
    sheet.box((11.6, -3.0), 3.2, 1.6, "switches")
    sheet.box((17.4, -1.5), 4.0, 4.6, "levels 1 ... K", "each kept by", "its own latch", key="level_off")
    sheet.arrow((-0.6, 0), (0.6, 0))
    sheet.port((-0.6, 0), "cand")
    sheet.arrow((3.0, 0), (4.6, 0))
    sheet.text((3.8, 0), "hold", "top", NET)
    sheet.arrow((8.2, 0), (10.0, 0))
    sheet.arrow((11.6, -0.8), (11.6, -2.2), "up, upb")
    for y, name in ((0.0, "write"), (-3.0, "val")):
        sheet.arrow((13.2, y), (15.4, y))
        sheet.text((14.3, y), name, "top", NET)
    for y, name in ((-2.6, "pos"), (-3.4, "neg")):
        sheet.arrow((8.8, y), (10.0, y))
        sheet.port((8.8, y), name)
    sheet.wire((19.4, -1.5), (20.4, -1.5))
    sheet.port((20.4, -1.5), "out", "right")
    for x, top, name in ((1.8, 0.9, "clk"), (11.6, 0.8, "pulse")):
        sheet.arrow((x, top + 1.0), (x, top))
        sheet.port((x, top + 1.0), name, "top")
    return sheet.svg()


def draw_level(sizes: Sizes = NO_SIZES) -> bytes:
    """A level of the register: comparator, keeper, and its part of the output."""
    sheet = Sheet(sizes)
    node, low, above = -2.07, -2.9, -0.2
    m1, m2 = sheet.mos("p", (0, 0), "M1"), sheet.mos("n", (0, low), "M2")
    m9, keep = sheet.mos("p", (8.4, 2.6), "M9", "right"), sheet.mos("n", (8.4, low), "keep")
    m7, m6 = sheet.diode("p", (12.0, 2.6), "M7", "left"), sheet.mos("n", (12.0, above + HEIGHT / 2), "M6")
    m8 = sheet.mos("n", (12.0, low), "M8")
    m3, m5 = sheet.mos("n", (16.4, -1.0), "M3"), sheet.mos("n", (16.4, low), "M5")
    write, hold = sheet.mos("n", (1.4, node), "pn, pp", "top"), sheet.mos("n", (5.4, node), "hn, hp", "top")
    sheet.supply(m1.first, m9.first, m7.first)
    sheet.ground(m2.last, keep.last, m8.last, m5.last)
    sheet.wire(m1.last, m2.first)
    sheet.dot((0, node))
    sheet.text((0.8, node), "v0", "bottom", NET)
    sheet.wire((0, node), write.first)
    sheet.wire(write.last, hold.first)
    sheet.dot((4.7, node))
    sheet.text((5.0, node), "g", "bottom", NET)
    sheet.wire((4.7, node), (4.7, m6.gate[1]), m6.gate)
    sheet.wire(hold.last, (8.4, node))
    sheet.dot((8.4, node))
    sheet.text((8.9, node), "q", "bottom", NET)
    sheet.wire(m9.last, keep.first)
    sheet.wire(m9.gate, m7.gate)
    sheet.text((10.2, m9.gate[1]), "fb", "top", NET)
    sheet.wire(m7.last, m6.first)
    for upper, lower in ((m6, m8), (m3, m5)):
        sheet.wire(upper.last, lower.first)
    for drawn, name in ((m1, "val"), (m2, "turn"), (keep, "keep"), (m8, "keep"), (m5, "gain"), (m3, "q")):
        sheet.port(drawn.gate, name)
    sheet.port(write.gate, "write", "top")
    sheet.port(hold.gate, "writeb", "top")
    sheet.wire(m3.first, (16.4, -0.4), (17.4, -0.4))
    sheet.port((17.4, -0.4), "out", "right")
    return sheet.svg()
