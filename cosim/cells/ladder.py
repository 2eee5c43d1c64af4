"""Ladder: K Schmitt triggers that count, the recurrent unit at epsilon = 1.

    in o--+---------------+---------------+--        gate line n that carries I_in: set, retain or reset
          |               |               |
       rung 1 --s1-DPI-> rung 2 --s2-DPI-> rung 3 ...          u_k = I_in + D(s_{k-1}) + D(s_{k+1})
          <-DPI-s2-------  <-DPI-s3-------                     D: low pass to alpha, cosim.cells.dpi
          |               |               |
    out o-+---------------+---------------+--        I_out = alpha (s_1 + ... + s_K), gate line p with its diode

    rung 1: upper threshold hi, lower lo;   every other rung: hi + alpha, lo + alpha.

With I_in between lo and hi (retain) nothing moves. A set pulse sets rung k only where s_{k-1} = 1, a reset pulse resets
rung k only where s_{k+1} = 0: always exactly one. The DPI is what keeps it one: the neighbour's window follows after
the pulse, not within it (`check_ladder` of the unit). The states are a thermometer code: level = number of ones.
`resetb` low puts the ladder onto `start`: rungs 1 ... start on, the others off.

The seed paper's chain runs forward only and shares one threshold; then a reset drops all rungs above at once. Not to be
confused with an integrator: nothing here leaks, each level is a stable state.
Source: arXiv 2605.11855, Appendix E.2 and Fig. 4 (block diagram); the wiring in both directions is of this project.
"""

from dataclasses import dataclass, replace

from cosim.cells.dpi import DPI, dpi
from cosim.cells.rectifier import CANDIDATE
from cosim.cells.schmitt import DECISION_NODE, schmitt_devices
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import Element, Instance, Mos, Role, Subcircuit
from cosim.technology.types import Technology

LADDER = "ladder"
RUNG_OFF, RUNG_ON = "rung_off", "rung_on"
PORTS = ("in", "thresh_1", "width_1", "thresh", "width", "gain", "vg", "tau", "out", "resetb", "vdd")


@dataclass(frozen=True)
class LadderBias:
    """Pin currents of a ladder cell, ampere.

    i_thresh_1, i_width_1: threshold and width of rung 1; i_thresh, i_width: of every other rung; i_gain: level of a
    rung; i_g, i_tau: of the DPIs.
    """

    i_thresh_1: float
    i_width_1: float
    i_thresh: float
    i_width: float
    i_gain: float
    i_g: float
    i_tau: float


def ladder(technology: Technology, units: int, rungs: int, start: int, *, backward: bool = True) -> Subcircuit:
    """Build a ladder cell of `rungs` rungs that starts on level `start`. It needs the blocks of `ladder_blocks`.

    backward: whether a rung's DPI shifts the window of the rung below as well; without, it is the published chain.
    """
    elements: list[Element] = []
    unit = technology.sizing.mirror_p
    for k in range(1, rungs + 1):
        first = "_1" if k == 1 else ""
        nets = ("in", f"u{k}", f"thresh{first}", f"width{first}", "gain", f"s{k}", "out", "resetb", "vdd")
        elements.append(Instance(f"rung{k}", nets, RUNG_ON if k <= start else RUNG_OFF))
        neighbours = [j for j in ((k - 1, k + 1) if backward else (k + 1,)) if 1 <= j <= rungs]
        if neighbours:
            nets = (f"s{k}", "vg", "tau", *(f"u{j}" for j in neighbours), "vdd")
            elements.append(Instance(f"{DPI}{k}", nets, f"{DPI}_{len(neighbours)}"))
    elements += transistor("diode", TransistorDesign("output", "p", unit, units), "out", "out")
    return Subcircuit(
        f"{LADDER}_{rungs}_{start}", PORTS, tuple(elements), f"ladder of {rungs} rungs, starts on level {start}"
    )


def ladder_blocks(technology: Technology, units: int, capacitance: float) -> tuple[Subcircuit, ...]:
    """Build the subcircuits that a ladder cell instantiates, without the candidate diode. capacitance: of a DPI, F."""
    return (
        rung(technology, units, on=False),
        rung(technology, units, on=True),
        dpi(technology, units, 1, capacitance),
        dpi(technology, units, 2, capacitance),
    )


def rung(technology: Technology, units: int, *, on: bool) -> Subcircuit:
    """Build the cell of one rung of a ladder: candidate diode, copy of I_in, 9T cell, second output, and its reset.

    The second output goes into the ladder's sum; on: whether the reset leaves the rung on.
    """
    n = technology.sizing.cell_n
    steer, switch = technology.sizing.latch_switch, technology.sizing.sample_switch
    forced = DECISION_NODE if on else "u"  # pulled to V_DD: v0 there is state 1, the candidate there is no current
    return Subcircuit(
        RUNG_ON if on else RUNG_OFF,
        ("in", "u", "thresh", "width", "gain", "s", "out", "resetb", "vdd"),
        (
            Instance("cand", ("u", "vdd"), CANDIDATE),
            *transistor("in", TransistorDesign("inner", "n", n), "u", "in"),
            *(_renamed(mos) for mos in schmitt_devices(technology, units, "u", DECISION_NODE, "u")),
            *transistor("10", TransistorDesign("switch", "n", steer), "out", DECISION_NODE, "c"),
            *transistor("11", TransistorDesign("level", "n", n), "c", "gain"),
            *transistor("reset", TransistorDesign("switch", "p", switch), forced, "resetb"),
        ),
        f"rung of a ladder, reset to {'on' if on else 'off'}",
    )


def _renamed(mos: Mos) -> Mos:
    """Return a device of the 9T cell with its output line renamed to s, the rung's own state in the ladder."""
    drain, gate, match = (
        "s" + end[3:] if end.partition(".")[0] == "out" else end for end in (mos.drain, mos.gate, mos.match)
    )
    role: Role | None = "diode" if mos.role == "output" else "inner" if mos.role == "level" else mos.role
    return replace(mos, drain=drain, gate=gate, match=match, role=role)
