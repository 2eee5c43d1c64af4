"""Blocks of a compiled network, in which its supply current, its energy and its area are counted.

    inputs    diodes of the inputs, of the unit current and of the pedestal
    rails     copies that make the lines n of signals, and symbol comparators
    rows      candidate and ReLU diodes, and the weights on them: those that push draw from V_DD, those that pull draw
              through the diode
    readout   weights of the readout's rows; what they pull comes from V_DD through the virtual ground, what they push
              goes on to ground
    cells     recurrent units: memory, quantiser, pedestal sink, and beta's copies into their lines
    bias      currents into the bias pins, and the diodes that they flow through
    converters  inputs from codes: their level's current; what they draw comes through the diodes of the inputs
    clock     generator of all phases, from one clock
    tree      reference, lines of the bias tree, and the currents into all pins
    decision  averages, winner-take-all and class lines, and what outputs pull

So a block holds every device whose current its own supply net delivers, and rows draw what their positive weights
pull. Clocks, pulses and reset are not blocks if their drivers are outside the chip. OUTSIDE lists the parts of a chip
that are in no block of a network.
"""

from collections.abc import Iterable

from cosim.circuit.elements import Attribution

BLOCKS: tuple[str, ...] = ("inputs", "rails", "rows", "readout", "cells", "bias")
OUTSIDE = (
    "current reference and bias tree", "input converters", "clock generator and drivers", "readout stage's own bias",
    "pooling and decision", "wires", "pads",
)  # fmt: skip
_INSIDE = {
    "converters": {"input converters"},
    "decision": {"readout stage's own bias", "pooling and decision"},
    "clock": {"clock generator and drivers"},
    "tree": {"current reference and bias tree"},
}  # what of OUTSIDE a block of the chip is
INPUT_DIODES, LINE_COPIES = Attribution("input diodes", "inputs"), Attribution("line copies", "rails")
COMPARATORS = Attribution("symbol comparators", "rails")
CANDIDATES, RECTIFIERS = Attribution("candidate diodes", "rows"), Attribution("rectifiers", "rows")
CELLS, QUANTISERS, PEDESTALS, BETAS = (
    Attribution(group, "cells") for group in ("cells", "quantisers", "pedestals", "threshold copies")
)
BIAS_DIODES = Attribution("bias diodes", "bias")
CONVERTERS, DECISION = Attribution("input converters", "converters"), Attribution("decision", "decision")
CLOCK_GENERATOR, BIAS_TREE = Attribution("clock generator", "clock"), Attribution("bias tree", "tree")


def outside_of(blocks: Iterable[str]) -> tuple[str, ...]:
    """Return the names of those parts of a chip (OUTSIDE) that none of these power blocks contains."""
    inside = {what for block in blocks for what in _INSIDE.get(block, ())}
    return tuple(what for what in OUTSIDE if what not in inside)
