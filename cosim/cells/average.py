"""Average over time: a signed current, sampled once a frame, as a voltage on a capacitor.

                 vdd                vdd
             y o--|diode 8      y o--|copy 1            y that is drawn flows through the p diode, y that is pushed
                  |                  |                  through MP into the n diode; an eighth of it flows onto the
    y o-----------+        sampleb o-|                  capacitors while `sample` is high
                  |                  |
          low o--|MP                 +---- mean --+-- C1 -- 0
                  |                  |            +-- C2 -- lift
                  |         sample o-|            +-- begin o|-- 0
                  |                  |
            np o--|diode 8     np o--|copy 1
                  0                  0

    V_mean = V_DD C2 / (C1 + C2) + (T / (8 (C1 + C2))) sum over the frames of y

At rest a replica's idle current flows from the p diode through MP into the n diode: a p diode and MP, from which I_idle
is drawn, make `low` (`average_bias`). The product of what diode and MP carry stays I_idle^2, so y may have either sign,
and the node of y stands where a candidate diode would hold it while y is drawn. Before the first frame `begin`
discharges the capacitors; then `lift` rises from 0 to V_DD, which puts them into the swing without a static current.

Not the mean of a whole frame: a sample is taken when every state has settled, before the first stage decides again.
Errors that all outputs share, of T, of C, of the charge of the switches, move no decision between them.
Source: class AB by a translinear loop, E. Seevinck, W. de Jager and P. Buitendijk, IEEE J. Solid-State Circuits 23
(1988) 764.
"""

from cosim.cells.transistor import TransistorDesign, pair_of, transistor
from cosim.circuit.elements import GROUND, Capacitor, Mos, Subcircuit
from cosim.technology.types import Technology

AVERAGE, AVERAGE_BIAS = "average", "average_bias"
RATIO = 8  # of a diode to its copy
LIFT = 1 / 3  # of V_DD, where the mean of nothing stands
AVERAGE_PORTS = ("y", "low", "sample", "sampleb", "begin", "lift", "mean", "vdd")


def average(technology: Technology, capacitance: float) -> Subcircuit:
    """Build the cell that averages a signed current over time on a capacitor.

    `capacitance`: C1 + C2, F. Ports y low sample sampleb begin lift mean vdd.
    """
    n, p = technology.sizing.cell_n, technology.sizing.cell_p
    turn_n, turn_p = pair_of("switch", technology.sizing.latch_switch, technology.sizing.latch_switch)
    lifted = LIFT * capacitance
    return Subcircuit(
        AVERAGE,
        AVERAGE_PORTS,
        (
            *_inlet(technology, "y", "np", "low"),
            *transistor("np", TransistorDesign("diode", "n", n, RATIO), "np", "np"),
            *transistor("up", TransistorDesign("copy", "p", p), "a", "y"),
            *transistor("up_on", turn_p, "mean", "sampleb", "a"),
            *transistor("down", TransistorDesign("copy", "n", n), "b", "np"),
            *transistor("down_on", turn_n, "mean", "sample", "b"),
            *transistor("begin", turn_n, "mean", "begin"),
            Capacitor("mean", "mean", GROUND, capacitance - lifted),
            Capacitor("lift", "mean", "lift", lifted),
        ),
        "average: samples of a signed current on a capacitor",
    )


def average_bias(technology: Technology) -> Subcircuit:
    """Build the cell that makes the line `low`, which keeps the idle current of all averaging cells.

    Ports line low vdd; line: gate line of I_idle.
    """
    return Subcircuit(
        AVERAGE_BIAS,
        ("line", "low", "vdd"),
        (
            *_inlet(technology, "y", "low", "low"),
            *transistor("idle", TransistorDesign("sink", "n", technology.sizing.cell_n), "low", "line"),
        ),
        "replica of the inlet of an average: I_idle of line makes low",
    )


def _inlet(technology: Technology, node: str, drain: str, low: str) -> tuple[Mos, ...]:
    """Return the p diode and MP at the input node of an averaging cell.

    node: net of the signal y; drain: drain of MP; low: gate of MP.
    """
    p = technology.sizing.cell_p
    return (
        *transistor("y", TransistorDesign("diode", "p", p, RATIO), node, node),
        *transistor("mp", TransistorDesign("pair", "p", p), drain, low, node),
    )
