"""Decision: the largest of n signed currents, averaged over time; its line is high, all other lines are low.

    y k --|average|-- mean k --|follower--+-- tail          I_k = I_bias softmax(V_mean / (n U_T))
                               |          +-- other followers, a source of I_bias
                            diode p, copy p -- in k --|winner|-- out k     Lazzaro's cell, `winner.py`
                                                                   |
                                     vdd -- diode p, copy p of 2 --+-- line k --|sink of 1, gate line bias

The means are voltages, so that the followers, whose sources share one tail, tell them apart by exponentials: if a
current of 1.0 moves a mean by 54 mV, a difference of 1/16 moves it by 3.4 mV, a factor of 1.10 in current. The
winner-take-all gives I_bias to the largest. A comparator as in `steering.py`, which compares twice the current of out k
with I_bias, turns the result into a high or low line.
Source: J. Lazzaro, S. Ryckebusch, M. A. Mahowald and C. A. Mead, NIPS 1 (1988) 703.
"""

from cosim.cells.average import AVERAGE, AVERAGE_BIAS
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.cells.winner import WINNER
from cosim.circuit.elements import Element, Instance, Subcircuit
from cosim.technology.types import Technology

DECISION = "decision"
IDLE_PIN, DECIDE_PIN = "decide_idle", "decide_bias"  # of a network's chip: bias of the averages, and of the rest
DECISION_CONTROLS = ("sample", "sampleb", "begin", "lift")


def decision(technology: Technology, outputs: int) -> Subcircuit:
    """Build the decision cell: it averages n signed currents over time, and the line of the largest is high.

    Needs average, average_bias and winner. Ports idle bias sample sampleb begin lift, y0 ..., line0 ..., vdd.
    """
    n, p, places = technology.sizing.cell_n, technology.sizing.cell_p, range(outputs)
    ys, lines = [f"y{k}" for k in places], [f"line{k}" for k in places]
    elements: list[Element] = [
        Instance("low", ("idle", "low", "vdd"), AVERAGE_BIAS),
        *transistor("tail", TransistorDesign("level", "n", n), "tail", "bias"),
    ]
    for k, (y, line) in enumerate(zip(ys, lines, strict=True)):
        elements += [
            Instance(f"average{k}", (y, "low", *DECISION_CONTROLS, f"mean{k}", "vdd"), AVERAGE),
            *transistor(f"follow{k}", TransistorDesign("pair", "n", n, match="tail"), f"p{k}", f"mean{k}", "tail"),
            *transistor(f"p{k}", TransistorDesign("diode", "p", p), f"p{k}", f"p{k}"),
            *transistor(f"in{k}", TransistorDesign("copy", "p", p), f"in{k}", f"p{k}"),
            *transistor(f"out{k}", TransistorDesign("diode", "p", p), f"out{k}", f"out{k}"),
            *transistor(f"line{k}", TransistorDesign("copy", "p", p, 2), line, f"out{k}"),
            *transistor(f"sink{k}", TransistorDesign("sink", "n", n), line, "bias"),
        ]
    nets = "bias", *(f"in{k}" for k in places), *(f"out{k}" for k in places)
    elements.append(Instance("winner", nets, f"{WINNER}_{outputs}"))
    return Subcircuit(
        f"{DECISION}_{outputs}",
        ("idle", "bias", *DECISION_CONTROLS, *ys, *lines, "vdd"),
        tuple(elements),
        f"decision: which of {outputs} averaged currents is the largest",
    )
