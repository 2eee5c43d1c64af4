"""Rectifier: a pMOS diode at a summing node.

            vdd
             |
          |diode     draws I = max(pull - push, 0), where `pull` is what positive weights sink from the node and
    node o---+       `push` what negative weights source into it

    Soft corner: at pull = push the diode carries the fraction r of push. The node stands swing ln(1 nA / (r push))
    above where it stands at 1 nA, so pulling weights give more and pushing ones less (output conductances a_n, a_p):
    r = g_n - g_p + (a_n + a_p) swing ln(1 nA / (r push)), 0.7 % at 1 nA and 1.4 % at 0.1 nA. 10 % below, it is leakage.

The node is a gate line p: the diode is a signal's (N unit devices) or the candidate's (the device of M1).
Source: translinear ReLU of arXiv 2605.15216.
"""

from cosim.cells.mirror import p_diode
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import Subcircuit
from cosim.technology.types import Technology

RELU = "relu_diode"
CANDIDATE = "candidate_diode"


def relu_diode(technology: Technology, units: int) -> Subcircuit:
    """Build the rectifier cell (pMOS diode) of a hidden unit: its node is the gate line p of a signal.

    Ports node vdd.
    """
    return Subcircuit(RELU, ("node", "vdd"), p_diode("diode", "node", technology, units), f"rectifier, {units} units")


def candidate_diode(technology: Technology, m: int = 1) -> Subcircuit:
    """Build the rectifier cell (pMOS diode) that carries a cell's candidate. Ports node vdd.

    It is the device of the 9T cell's M1, or `m` of these in parallel for a comparator of `m` devices.
    """
    p = technology.sizing.cell_p
    return Subcircuit(
        CANDIDATE if m == 1 else f"{CANDIDATE}_{m}",
        ("node", "vdd"),
        transistor("diode", TransistorDesign("candidate", "p", p, m), "node", "node"),
        "rectifier of a candidate current, matched to M1 of the 9T cell",
    )
