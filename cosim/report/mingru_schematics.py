"""Schematics of the minGRU: its tau-cell and its ratio gate, drawn.

Names of transistors and nets are those of the netlist, as the docstrings of `cosim.cells` give them.
"""

from cosim.report.device_sizes import NO_SIZES, Sizes
from cosim.report.schematic_sheet import NET, Sheet


def draw_tau_cell(sizes: Sizes = NO_SIZES) -> bytes:
    """The gated tau-cell without its mirrors: M1 to M4, both I_tau, the switch, C."""
    sheet = Sheet(sizes)
    low = -3.4
    m1, t3, t2, m4 = (sheet.mos("p", (4.2 * k, 0), name) for k, name in enumerate(("M1", "tau3", "tau2", "M4")))
    m3, m2 = sheet.mos("p", (4.2, low), "M3"), sheet.mos("p", (8.4, low), "M2")
    sheet.supply(m1.first, t3.first, t2.first, m4.first)
    for top, own, name in ((t3, m3, "b"), (t2, m2, "s")):
        sheet.wire(top.last, own.first)
        sheet.text(own.first, name, "right", NET)
        sheet.ground(own.last)
        sheet.port(top.gate, "tau")
    sheet.port(m1.gate, "b")
    sheet.port(m1.last, "d", "bottom")
    sheet.port(m3.gate, "d")
    sheet.port(m2.gate, "d")
    sheet.arrow((m2.first[0] + 0.8, m2.first[1]), (m4.gate[0] - 0.4, m2.first[1]), "pulse", "top")
    sheet.capacitor((m4.gate[0], m4.gate[1] - 2.0), (m4.gate[0], m4.gate[1] - 3.8), "C to vdd")
    sheet.wire(m4.gate, (m4.gate[0], m4.gate[1] - 2.0))
    sheet.text(m4.gate, "vc", "top", NET)
    sheet.port(m4.last, "I", "bottom")
    return sheet.svg()


def draw_ratio_gate(sizes: Sizes = NO_SIZES) -> bytes:
    """Draw the ratio gate: both copies on their diodes, lifted by a third, and the pair that shares the tail."""
    sheet = Sheet(sizes)
    low, feet = -3.2, -6.4
    copy, half = (sheet.mos("p", (x, 0), name, "left") for x, name in ((0, "copy"), (4.6, "half")))
    da, db = (sheet.diode("n", (x, low), name, "left") for x, name in ((0, "da"), (4.6, "db")))
    foot = sheet.diode("n", (2.3, feet), "low", "left")
    diode = sheet.diode("p", (9.6, 0), "diode", "right")
    a, b = (sheet.mos("n", (x, low), name, "left") for x, name in ((9.6, "a"), (14.2, "b")))
    tail = sheet.mos("n", (11.9, feet), "tail", "left")
    sheet.supply(copy.first, half.first, diode.first, (14.2, 0.0))
    sheet.ground(foot.last, tail.last)
    for top, bottom, name in ((copy, da, "a"), (half, db, "b")):
        sheet.wire(top.last, bottom.first)
        sheet.text((top.last[0], top.last[1] - 0.5), name, "right", NET)
    sheet.wire(diode.last, a.first)
    sheet.wire((14.2, 0.0), b.first)
    for left, right, end, name in ((da, db, foot, "r"), (a, b, tail, "t")):
        level = left.last[1] - 0.4
        sheet.wire(left.last, (left.last[0], level), (right.last[0], level), right.last)
        sheet.wire((end.first[0], level), end.first)
        sheet.text((end.first[0], level), name, "top", NET)
    for drawn, name in ((copy, "line"), (half, "half"), (a, "a"), (b, "b"), (tail, "bias")):
        sheet.port(drawn.gate, name)
    sheet.port(diode.last, "tau", "right")
    return sheet.svg()
