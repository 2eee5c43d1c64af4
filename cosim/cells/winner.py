"""Winner-take-all of n currents: the largest keeps the bias current, the others get none.

    in k o---+---------+        The line `common` is the gate of all M1: it rises until the largest input's M1 carries
             |         |        all of that input. The M1 of a smaller one would carry more than there is, so its node
             +--|M1    +--|M2   falls to the ground and shuts its M2. M2 of the winner alone feeds `common`, from which
                |    out k      a source (gate line `bias`) draws: out k pulls that current, or none.
                0
    common: gates of M1, sources of M2, drain of the source

Inputs push, outputs pull, both two devices each. M1 tells two inputs apart as far as its output conductance lets a
node swing: 1 % is 0.3 V at 2.9 %/V. Inputs that are closer than that, or than M1's mismatch, share the bias.
Source: J. Lazzaro, S. Ryckebusch, M. A. Mahowald and C. A. Mead, "Winner-take-all networks of O(N) complexity", NIPS 1
(1988) 703.
"""

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.elements import Mos, Subcircuit
from cosim.technology.types import Technology

WINNER = "winner"
COMMON = "common"


def winner(technology: Technology, inputs: int) -> Subcircuit:
    """Build the winner-take-all cell of `inputs` currents.

    Ports bias, then in0 ..., then out0 ..., one of each for every input.
    """
    n = technology.sizing.cell_n
    ins, outs = [f"in{k}" for k in range(inputs)], [f"out{k}" for k in range(inputs)]
    devices: list[Mos] = []
    for k, (given, out) in enumerate(zip(ins, outs, strict=True)):
        devices += transistor(f"1_{k}", TransistorDesign("compare", "n", n, match=COMMON), given, COMMON)
        devices += transistor(f"2_{k}", TransistorDesign("copy", "n", n, match="follower"), out, given, COMMON)
    devices += transistor("source", TransistorDesign("level", "n", n), COMMON, "bias")
    return Subcircuit(
        f"{WINNER}_{inputs}", ("bias", *ins, *outs), tuple(devices), f"winner-take-all of {inputs} currents"
    )
