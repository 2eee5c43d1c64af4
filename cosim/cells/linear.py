"""Linear row: one summing node, one transistor per weight.

    gate lines n of positive sources --[k units]--+
                                                  +-- node      I_node = sum_j w_j I_j, drawn from the node
    gate lines p of negative sources --[k units]--+

Kirchhoff's current law does the sum. What hangs on the node decides what the row is: a rectifier (hidden unit or
candidate) or the readout's virtual ground.
"""

from dataclasses import dataclass

from cosim.cells.mirror import weight_of
from cosim.cells.transistor import transistor
from cosim.circuit.elements import Subcircuit
from cosim.technology.types import Technology


@dataclass(frozen=True)
class Term:
    """One weight of a row: a transistor between a source's gate line and the row's node.

    source: stem of the source's nets; count: unit devices, negative for a negative weight; origin: learned parameter.
    """

    source: str
    count: int
    origin: str

    @property
    def line(self) -> str:
        """Return the name of the gate line that the weight's transistor is on: the source's n if positive, else p."""
        return f"{self.source}_n" if self.count > 0 else f"{self.source}_p"


def linear_row(name: str, terms: list[Term], technology: Technology, summary: str) -> Subcircuit:
    """Build the cell of a row of weights: one transistor per weight, all on one summing node.

    Ports: node vdd, then each gate line once in order of first use. Terms of count 0 are left out.
    """
    built = [term for term in terms if term.count]
    lines = tuple(dict.fromkeys(term.line for term in built))
    devices = tuple(
        mos
        for index, term in enumerate(terms)
        if term.count
        for mos in transistor(f"w{index}", weight_of(term.count, technology, term.origin), "node", term.line)
    )
    return Subcircuit(name, ("node", "vdd", *lines), devices, summary)
