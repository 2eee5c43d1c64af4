"""Logic of the clock generator: inverter, NAND, and a flip-flop of transmission gates.

    d --[ck low]--+-- x --NAND-- eb --[ck high]--+-- qb --inverter-- q        NANDs with `rb`: low, and q is low
                  |       inverter               |       NAND
                  +--[ck high]-- e               +--[ck low]--

e and eb follow d while ck is low, and stand still while it is high: ahead of q and qb, which take over at the rising
edge. Each flip-flop inverts ck for itself: an inverse that came late from elsewhere would leave d's gate open when the
one in front has turned.

The supply is some threshold voltages high, so an edge takes nanoseconds where a frame takes milliseconds, and what the
gates draw is leakage and the charge of their nets. All are the smallest device of the technology, its latch switch.
Source: N. H. E. Weste and D. M. Harris, CMOS VLSI Design, 4th ed., 2011, ch. 10.
"""

from dataclasses import replace

from cosim.cells.transistor import TransistorDesign, pair_of, transistor
from cosim.circuit.elements import GROUND, Instance, Mos, Subcircuit
from cosim.technology.types import Technology

INVERTER, NAND, FLIP_FLOP = "inverter", "nand", "flip_flop"
FLIP_FLOP_PORTS = ("d", "ck", "rb", "q", "qb", "e", "eb", "vdd")


def inverter(technology: Technology, m: int = 1) -> Subcircuit:
    """Build the inverter cell, of `m` devices in parallel. Ports in out vdd."""
    n, p = (replace(switch, m=m) for switch in _switches(technology))
    devices = (*transistor("n", n, "out", "in"), *transistor("p", p, "out", "in"))
    return Subcircuit(inverter_name(m), ("in", "out", "vdd"), devices, "inverter")


def inverter_name(m: int) -> str:
    """Return the name of the inverter cell of `m` devices in parallel."""
    return INVERTER if m == 1 else f"{INVERTER}_{m}"


def nand(technology: Technology, inputs: int) -> Subcircuit:
    """Build the NAND cell: its output is low where all its inputs are high. Ports in0 ... out vdd."""
    n, p = _switches(technology)
    ins = [f"in{k}" for k in range(inputs)]
    nets = ["out", *(f"a{k}" for k in range(1, inputs)), GROUND]
    devices: list[Mos] = []
    for k, gate in enumerate(ins):
        devices += transistor(f"n{k}", n, nets[k], gate, nets[k + 1])
        devices += transistor(f"p{k}", p, "out", gate)
    return Subcircuit(f"{NAND}_{inputs}", (*ins, "out", "vdd"), tuple(devices), f"NAND of {inputs}")


def flip_flop(technology: Technology) -> Subcircuit:
    """Build the flip-flop cell of transmission gates. Needs inverter and nand of 2 inputs."""
    return Subcircuit(
        FLIP_FLOP,
        FLIP_FLOP_PORTS,
        (
            Instance("ckb", ("ck", "ckb", "vdd"), INVERTER),
            *_gate(technology, "d", "x", "ckb", "ck"),
            Instance("eb", ("x", "rb", "eb", "vdd"), f"{NAND}_2"),
            Instance("e", ("eb", "e", "vdd"), INVERTER),
            *_gate(technology, "e", "x", "ck", "ckb"),
            *_gate(technology, "eb", "qb", "ck", "ckb"),
            Instance("q", ("qb", "q", "vdd"), INVERTER),
            Instance("b", ("q", "rb", "b", "vdd"), f"{NAND}_2"),
            *_gate(technology, "b", "qb", "ckb", "ck"),
        ),
        "flip-flop: q takes over d at the rising edge of ck",
    )


def _gate(technology: Technology, a: str, b: str, high: str, low: str) -> tuple[Mos, ...]:
    """Return the devices of a transmission gate between a and b, which conducts while `high` is high and `low` low."""
    n, p = _switches(technology)
    return *transistor(f"{a}n", n, b, high, a), *transistor(f"{a}p", p, b, low, a)


def _switches(technology: Technology) -> tuple[TransistorDesign, TransistorDesign]:
    return pair_of("switch", technology.sizing.latch_switch, technology.sizing.latch_switch)
