"""Schematics of the thermometer register, drawn; names as in `cosim.cells.register`."""

from cosim.report.schematic_sheet import HEIGHT, NET, Sheet


def draw_register() -> bytes:
    """The thermometer register in blocks: window in front, value of either sign, levels."""
    sheet = Sheet()
    sheet.box((1.8, 0), 2.4, 1.6, "sample", "gate")
    sheet.box((6.4, 0), 3.6, 2.4, "comparators", "upper, lower")
    sheet.box((11.6, 0), 3.2, 1.6, "gates")
    sheet.box((11.6, -3.0), 3.2, 1.6, "switches")
    sheet.box((17.4, -1.5), 4.0, 4.6, "levels 1 ... K", "each kept by", "its own latch")
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
    for x, top, name in ((1.8, 0.8, "clk"), (11.6, 0.8, "pulse")):
        sheet.arrow((x, top + 1.0), (x, top))
        sheet.port((x, top + 1.0), name, "top")
    return sheet.svg()


def draw_level() -> bytes:
    """A level of the register: comparator, keeper, and its part of the output."""
    sheet = Sheet()
    node, low = -2.07, -2.9
    m1, m2 = sheet.mos("p", (0, 0), "M1"), sheet.mos("n", (0, low), "M2")
    m9, keep = sheet.mos("p", (6.4, 2.0), "M9", "right"), sheet.mos("n", (6.4, low - HEIGHT), "keep")
    cut, cut_n = sheet.mos("p", (6.4, 2.0 - HEIGHT), "cp"), sheet.mos("n", (6.4, low), "cn")
    m7, m6 = sheet.diode("p", (11.0, 2.0), "M7", "left"), sheet.mos("n", (11.0, -1.0), "M6")
    m8 = sheet.mos("n", (11.0, low), "M8, two")
    m3, m5 = sheet.mos("n", (15.4, -1.0), "M3"), sheet.mos("n", (15.4, low), "M5")
    gate = sheet.mos("n", (2.2, node), "pn, pp", "top")
    sheet.supply(m1.first, m9.first, m7.first)
    sheet.ground(m2.last, keep.last, m8.last, m5.last)
    sheet.wire(m1.last, m2.first)
    sheet.dot((0, node))
    sheet.text((0.9, node), "v0", "bottom", NET)
    sheet.wire((0, node), gate.first)
    sheet.wire(gate.last, (8.4, node), (8.4, m6.gate[1]), m6.gate)
    sheet.wire(cut.last, cut_n.first)
    sheet.dot((6.4, node))
    sheet.text((7.4, node), "q", "bottom", NET)
    sheet.wire(m9.gate, m7.gate)
    sheet.text((8.4, m9.gate[1]), "fb", "top", NET)
    sheet.wire(m7.last, m6.first)
    for upper, lower in ((m6, m8), (m3, m5)):
        sheet.wire(upper.last, lower.first)
    for drawn, name in (
        (m1, "val"),
        (m2, "turn"),
        (keep, "keep"),
        (m8, "keep"),
        (m5, "gain"),
        (m3, "q"),
        (cut, "write"),
        (cut_n, "writeb"),
    ):
        sheet.port(drawn.gate, name)
    sheet.port(gate.gate, "write", "top")
    sheet.wire(m3.first, (15.4, -0.4), (16.4, -0.4))
    sheet.port((16.4, -0.4), "out", "right")
    return sheet.svg()
