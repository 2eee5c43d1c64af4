"""Current reference without a resistor: transistors only, so it can be built in any of the technologies.

     vdd      vdd        vdd          vdd
      |p5      |p3        |p4 diode    |p6
      +- b     +- n       +- p         +- out
      |        |          |
     MB diode  M1 diode   M2, K units, gate n
      stack    |          |
      |        0          x
      0                  MN stack, gate b, in the triode region
                          |
                          0

    V_x = U_T ln K               M1 and M2 in weak inversion, same current
    I = beta_N (V_b - V_T) V_x   MN, V_b - V_T = sqrt(2 n I / beta_B) of MB in strong inversion
    I = 2 n (beta_N^2 / beta_B) (U_T ln K)^2

A stack is a number of devices in series with one gate, which act as one long transistor. I is proportional to beta
U_T^2, that is, to about T^0.5 (sg13g2: T^1.4), and hardly depends on the supply. The cell could also rest at I = 0: two
capacitors lift n and b when the supply comes up. docs/reference/cells.md has the current in four technologies.
Source: H. J. Oguey and D. Aebischer, IEEE J. Solid-State Circuits 32 (1997) 1132.
"""

from cosim.cells.bias import BIAS_DIODE, bias_diode
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.bench import PRECISE, Bench, Current, Tran
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Element, Instance, Mos, Source, Subcircuit
from cosim.technology.types import Geometry, Technology

REFERENCE = "reference"
RATIO = 8  # K
STACK = Geometry(0.5e-6, 10e-6)  # one device of a stack
STACK_N, STACK_B = 16, 32  # how many stand in series in MN and in MB
START = 2e-12  # F


def reference(technology: Technology) -> Subcircuit:
    """Build the current reference cell. Ports: out, vdd.

    `out` sources 3 nA in sg13g2, 4 nA in generic180 and gf180mcu, 10 nA in sky130.
    """
    n, p = technology.sizing.mirror_n, technology.sizing.mirror_p
    return Subcircuit(
        REFERENCE,
        ("out", "vdd"),
        (
            *transistor("3", TransistorDesign("reference", "p", p, RATIO), "n", "p"),
            *transistor("4", TransistorDesign("reference", "p", p, RATIO), "p", "p"),
            *transistor("5", TransistorDesign("reference", "p", p, RATIO), "b", "p"),
            *transistor("6", TransistorDesign("reference", "p", p, RATIO), "out", "p"),
            *transistor("1", TransistorDesign("reference", "n", n, RATIO), "n", "n"),
            *transistor("2", TransistorDesign("reference", "n", n, RATIO * RATIO), "p", "n", "x"),
            *_stack("n", "x", "b", STACK_N),
            *_stack("b", "b", "b", STACK_B),
            Capacitor("start_n", "vdd", "n", START),
            Capacitor("start_b", "vdd", "b", START),
        ),
        "current reference of transistors only",
    )


def _stack(name: str, drain: str, gate: str, count: int) -> tuple[Mos, ...]:
    """Return the stack of a current reference: `count` devices in series from drain to ground."""
    nets = [drain, *(f"s{name}{k}" for k in range(1, count)), GROUND]
    stack = TransistorDesign("reference", "n", STACK)
    return tuple(mos for k in range(count) for mos in transistor(f"{name}{k}", stack, nets[k], gate, nets[k + 1]))


def reference_bench(technology: Technology, end: float) -> Bench:
    """Return a bench that tests the current reference cell on a bias diode; its supply comes up within 1 ms.

    end: length of the run, s. Saves the currents through `out` and the supply `dd`.
    """
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, ((0.0, 0.0), (1e-3, technology.supply))),
        Instance("ref", ("out", "vdd"), REFERENCE),
        Source("out", "v", "out", "line", 0.0),
        Instance("line", ("line",), BIAS_DIODE),
    )
    circuit = Circuit("reference bench", (reference(technology), bias_diode(technology)), elements)
    return Bench(circuit, technology, Tran(end / 200, end), (Current("out"), Current("dd")), PRECISE)
