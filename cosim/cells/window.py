"""Window: whether a candidate is above an upper threshold, below a lower one, or between them.

    hold --|compare|-- compared --[gate]-- lower --[closed]--+--[gate]-- above --[gate]-- below
                                                             +-----------[open]-----------+

    hold     the candidate behind the sample gate, which stands still around a pulse
    compare  M1 against M2: the held candidate against the current of a threshold's line
    closed   is high before a pulse: `above` and `below` follow the comparator as slowly as that is
    open     is high in it: they are a latch, which makes one or the other of what it finds, in C U_T / I_load

A comparator whose candidate is dI from its threshold needs C V / dI, so one that is close enough is still on its way
when the pulse comes. Without a latch, what follows would see a decision late, or half of one: a counter would take half
a step, and a register would write some of its levels and not the others.

Every gate is a network of n switches against a load, a copy I_load of `kp`: it draws that while its output
is low, and nothing more while it turns, however slowly. So the comparators may settle as slowly as they do, and gates
scale with the unit current as everything else.
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
    """Build a window's comparator cell, M1 against M2: out is high where the held candidate exceeds `thresh`.

    That is a current. m: devices in parallel.
    """
    n, p = technology.sizing.cell_n, technology.sizing.cell_p
    devices = (
        *transistor("1", TransistorDesign("compare", "p", p, m), "out", "hold"),
        *transistor("2", TransistorDesign("threshold", "n", n, m), "out", "thresh"),
    )
    return Subcircuit(WINDOW, ("hold", "thresh", "out", "vdd"), devices, "comparator of a window")


def decision(technology: Technology) -> Subcircuit:
    """Build the cell of a window's decision, a comparator and a latch.

    Its `above` is high where the held candidate exceeded the current of `thresh` when `closed` fell, `below` is not
    `above`; kp: gate line of the loads. It needs window.
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
    """Gates of n switches that pull a net down against a load."""

    def __init__(self, technology: Technology) -> None:
        self.n = TransistorDesign("switch", "n", technology.sizing.sample_switch)
        self.load = TransistorDesign("inner", "p", technology.sizing.latch_switch)

    def gate(self, out: str, *paths: tuple[str, ...], m: int = 1) -> Iterator[Mos]:
        """Yield the transistors of a gate: its load, and the nets of each path, which pull `out` low where all are
        high."""
        yield from transistor(f"load_{out}", replace(self.load, m=m), out, "kp")
        for i, path in enumerate(paths):
            nets = (out, *(f"{out}_{i}{k}" for k in range(1, len(path))), GROUND)
            for k, net in enumerate(path):
                yield from transistor(f"{out}_{net}", self.n, nets[k], net, nets[k + 1])

    def switch(self, a: str, b: str, gate: str) -> Iterator[Mos]:
        """Yield the transistor of a switch between two nets, on while `gate` is high."""
        yield from transistor(f"{a}_{b}", self.n, a, gate, b)

    def latch(self, data: str, inverse: str, out: str, opens: str, holds: str) -> Iterator[Mos]:
        """Yield the transistors of a latch: it follows `data` while `opens` is high, and keeps it while `holds` is."""
        inside = f"in_{inverse}"
        yield from self.switch(inside, data, opens)
        yield from self.gate(inverse, (inside,))
        yield from self.gate(out, (inverse,))
        yield from self.switch(out, inside, holds)
