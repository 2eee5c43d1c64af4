"""Window: two decisions that tell whether a candidate is above an upper threshold, below a lower one, or between.

    hold --|compare|-- compared --[gate]-- lower --[closed]--+--[gate]-- above --[gate]-- below
                                                             +-----------[open]-----------+

    hold     the candidate behind the sample gate, which stands still around a pulse
    compare  M1 against M2: the held candidate against the current of a threshold's line
    closed   is high before a pulse: `above` and `below` follow the comparator, however slow it is
    open     is high in the pulse: `above` and `below` form a latch, which decides for one of them in C U_T / I_load

A comparator whose candidate is dI from its threshold needs C V / dI to settle. If dI is small enough, its output is
still on its way when the pulse comes. Without a latch, the next cells would see a decision late, or half of one: a
counter would take half a step, and a register would write some of its levels and not the others.

Every gate is a network of n switches against a load, a copy I_load of `kp`. The gate draws I_load while its output is
low, and no more while the output turns, however slowly. So the comparators may settle slowly, and gates scale with the
unit current as all other cells do.
Source: N. H. E. Weste and D. M. Harris, CMOS VLSI Design, 4th ed., 2011, ch. 9 (gates with loads); the circuit is of
this project.
"""

from collections.abc import Iterator
from dataclasses import replace

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import GROUND, Instance, Mos, Subcircuit
from cosim.technology.types import Technology

WINDOW, DECISION, COMPARED = "window", "window_decision", "compared"
DECISION_PORTS = ("hold", "thresh", "above", "below", "closed", "open", "kp", "vdd")


def window(technology: Technology, m: int = 1) -> Subcircuit:
    """Build the comparator cell of a window, M1 against M2.

    Its output is high where the held candidate exceeds the current of the line `thresh`. m: devices in parallel.
    """
    n, p = technology.sizing.cell_n, technology.sizing.cell_p
    devices = (
        *transistor("1", TransistorDesign("compare", "p", p, m), "out", "hold"),
        *transistor("2", TransistorDesign("threshold", "n", n, m), "out", "thresh"),
    )
    return Subcircuit(WINDOW, ("hold", "thresh", "out", "vdd"), devices, "comparator of a window")


def decision(technology: Technology) -> Subcircuit:
    """Build the cell of a window's decision: a comparator and a latch. It needs `window`.

    `above` is high if the held candidate exceeded the current of the line `thresh` when `closed` fell, and `below` is
    its inverse; kp: gate line of the gates' loads.
    """
    gates = Gates(technology)
    return Subcircuit(
        DECISION,
        DECISION_PORTS,
        (
            Instance("compare", ("hold", "thresh", COMPARED, "vdd"), WINDOW),
            *gates.gate("lower", (COMPARED,)),  # its gain: what a closing switch does to a net is little of a candidate
            *gates.latch("lower", "above", "below", "closed", "open"),
        ),
        "decision of a window: a comparator, and a latch that stands still in a pulse",
    )


class Gates:
    """A builder of gates whose n switches pull a net down against a p load."""

    def __init__(self, technology: Technology) -> None:
        self.n = TransistorDesign("switch", "n", technology.sizing.sample_switch)
        self.load = TransistorDesign("inner", "p", technology.sizing.latch_switch)

    def gate(self, out: str, *paths: tuple[str, ...], m: int = 1) -> Iterator[Mos]:
        """Yield the transistors of a gate: its load, and for each path a chain of switches that pulls `out` low.

        A path is a tuple of nets; it pulls `out` low where all of them are high. m: devices in parallel in the load.
        """
        yield from transistor(f"load_{out}", replace(self.load, m=m), out, "kp")
        for i, path in enumerate(paths):
            nets = (out, *(f"{out}_{i}{k}" for k in range(1, len(path))), GROUND)
            for k, net in enumerate(path):
                yield from transistor(f"{out}_{net}", self.n, nets[k], net, nets[k + 1])

    def switch(self, a: str, b: str, gate: str) -> Iterator[Mos]:
        """Yield the transistor of a switch between nets a and b, which conducts while net `gate` is high."""
        yield from transistor(f"{a}_{b}", self.n, a, gate, b)

    def latch(self, data: str, inverse: str, out: str, opens: str, holds: str) -> Iterator[Mos]:
        """Yield the transistors of a latch: `out` follows `data` while `opens` is high, and is kept while `holds` is.

        inverse: net of the inverse of `out`.
        """
        inside = f"in_{inverse}"
        yield from self.switch(inside, data, opens)
        yield from self.gate(inverse, (inside,))
        yield from self.gate(out, (inverse,))
        yield from self.switch(out, inside, holds)
