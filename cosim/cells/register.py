"""Thermometer register: one of K + 1 levels, replaced where the candidate leaves its window, else held.

    cand --[sampler]-- hold --|decision upper|-- up, upb     up: candidate above the upper threshold
                          +---|decision lower|-- stays       stays: candidate above the lower one

    pos --[up]-------+                                       pos, neg: gate lines p of the value with either sign
    neg --[not up]---+-- val                                 write: pulse and (up or not stays)

    level k      vdd           vdd               vdd
                 |             |                 |
            val o|M1        fb o|M9              |M7 diode           out
                 |             |                 +-- fb               |
                 +-- v0        +-- q             |                 q o|M3
                 |             |          +------+------+             |
         turn k o|M2      keep o|Mk       |             |         gain o|M5
                 |             |    write o|M10  writeb o|M11          |
                 0             0          |             |             0
                                       v0 o|M4        q o|M6
                                          +------+------+
                                                 | b
                                            keep o|M8, 2
                                                 0

    M1 against M2: the value against turn k. M7 carries what the chosen one of M4 and M6 lets through of the 2 I_keep
    of M8, and q is on where that exceeds the I_keep of Mk: with `write` high q follows v0, else q keeps itself.
    I_out = I_gain (q_1 + ... + q_K)

The comparators of the levels have no hysteresis, and what they settle on is what is written. A write switches no gate:
M4 is always at v0, and M6 at q, so what was kept before moves v0 by a few millivolts at most. (A switch that puts one
gate onto v0 or q in turn moves v0 by up to 0.4 V, which takes a level back to what it was where value and turn are
within 3 pA.) Between `write` and `writeb`, some
50 us, q loses I_keep times that; a load for each level keeps it short, so that the output is still when it is read.
M4 decides at a few hundred millivolts, where M1 and M2 are not equal as drawn: calibration measures the value that
turns a level. Between two writes a level is a static current-mode latch of its own, whose current does not depend on
its turn: nothing leaks, and no error adds up, however long it holds. A 9T cell whose hysteresis spans all turns would
draw more than the largest value in each level.

The two decisions of the window say whether a value is written, and which (`window.py`). Before the pulse they follow
their comparators, and the value is switched through as soon as the candidate is there, so that the comparators of the
levels have most of a frame; one whose value exceeds its turn by dI needs C V / dI. In the pulse they stand still,
however close to its threshold the candidate is: a register writes all of its levels or none.

The gates' load is GATES I_keep, that of a counter, for which calibration measures where a decision turns. Current
sources pull `write` down and `writeb` up, so no gate draws current while it switches.
"""

from dataclasses import replace

from cosim.cells.quantiser import HELD, SAMPLER
from cosim.cells.transistor import TransistorDesign, pair_of, transistor
from cosim.cells.window import DECISION, Gates, decision, window
from cosim.circuit.elements import Element, Instance, Subcircuit
from cosim.technology.types import Technology

REGISTER = "register"
LEVEL_OFF, LEVEL_ON = "level_off", "level_on"
GATES = 3  # keep currents in the load of a gate
_FRONT = ("cand", "pos", "neg", "upper", "lower", "keep", "release", "gain")
_BACK = ("out", "clk", "clkb", "pulse", "pulseb", "resetb", "reset", "vdd")


def register_ports(levels: int) -> tuple[str, ...]:
    """Return the port names of a thermometer register cell of `levels` levels."""
    return (*_FRONT, *(f"turn{k}" for k in range(1, levels + 1)), *_BACK)


def register(technology: Technology, units: int, levels: int, start: int) -> Subcircuit:
    """Build a thermometer register cell of `levels` levels, of which the reset leaves `start` on.

    It needs `register_blocks` and the sampler.
    """
    n = TransistorDesign("inner", "n", technology.sizing.cell_n)
    gates, gate = Gates(technology), TransistorDesign("switch", "p", technology.sizing.sample_switch)
    elements: list[Element] = [
        Instance("sampler", ("cand", "hold", "clk", "clkb", "resetb", "vdd"), SAMPLER),
        Instance("upper", ("hold", "upper", "up", "upb", "pulseb", "pulse", "kp", "vdd"), DECISION, match=HELD),
        Instance("lower", ("hold", "lower", "stays", "down", "pulseb", "pulse", "kp", "vdd"), DECISION, match=HELD),
        *transistor("supply", replace(n, m=GATES), "kp", "keep"),
        *transistor("diode", gates.load, "kp", "kp"),
        *transistor("pulse", gate, "w", "pulseb"),
        *transistor("write_up", gate, "write", "upb", "w"),
        *transistor("write_down", gate, "write", "stays", "w"),
        *transistor("release", n, "write", "release"),
        *gates.gate("writeb", ("write",), m=levels),
        *transistor("pos", gate, "val", "upb", "pos"),
        *transistor("neg", gate, "val", "up", "neg"),
    ]
    for k in range(1, levels + 1):
        kind, reset = (LEVEL_ON, "resetb") if k <= start else (LEVEL_OFF, "reset")
        nets = ("val", f"turn{k}", "keep", "gain", "out", "write", "writeb", reset, "vdd")
        elements.append(Instance(f"level{k}", nets, kind, match=(("val", "pos"),)))
    elements += transistor("output", TransistorDesign("output", "p", technology.sizing.mirror_p, units), "out", "out")
    title = f"thermometer register of {levels} levels, starts on {start}"
    return Subcircuit(f"{REGISTER}_{levels}_{start}", register_ports(levels), tuple(elements), title)


def register_blocks(technology: Technology, units: int, m: int = 1) -> tuple[Subcircuit, ...]:
    """Build the subcircuits of a thermometer register cell: comparator and decision of its window, both kinds of level.

    m: devices in parallel in the comparator.
    """
    levels = (level(technology, units, on=on) for on in (False, True))
    return window(technology, m), decision(technology), *levels


def level(technology: Technology, units: int, *, on: bool) -> Subcircuit:
    """Build the cell of one level of a register: comparator, keeper, output current, and the reset to on or off."""
    n, p = pair_of("inner", technology.sizing.cell_n, technology.sizing.cell_p)
    cell = technology.sizing.cell_n
    gates = {polarity: TransistorDesign("switch", polarity, technology.sizing.sample_switch) for polarity in ("n", "p")}
    reset = "resetb" if on else "reset"
    return Subcircuit(
        LEVEL_ON if on else LEVEL_OFF,
        ("val", "turn", "keep", "gain", "out", "write", "writeb", reset, "vdd"),
        (
            *transistor("1", TransistorDesign("compare", "p", technology.sizing.mirror_p, units), "v0", "val"),
            *transistor("2", TransistorDesign("threshold", "n", cell), "v0", "turn"),
            *transistor("9", p, "q", "fb"),
            *transistor("keep", n, "q", "keep"),
            *transistor("7", p, "fb", "fb"),
            *transistor("10", gates["n"], "fb", "write", "new"),
            *transistor("4", gates["n"], "new", "v0", "b"),
            *transistor("11", gates["n"], "fb", "writeb", "old"),
            *transistor("6", gates["n"], "old", "q", "b"),
            *transistor("8", replace(n, m=2), "b", "keep"),
            *transistor("3", gates["n"], "out", "q", "a"),
            *transistor("5", TransistorDesign("level", "n", cell), "a", "gain"),
            *(transistor("reset", gates["p"], "q", reset) if on else transistor("reset", gates["n"], "q", reset)),
        ),
        f"level of a register: q takes over whether val exceeds turn; reset to {'on' if on else 'off'}",
    )
