"""Blocks of a compiled network: by what its supply current, its energy and its area are counted.

    inputs    diodes of the inputs, of the unit current and of the pedestal
    rails     copies that make the lines n of signals
    rows      candidate and ReLU diodes, and the weights on them: those that push draw from V_DD, those that pull draw
              through the diode
    readout   weights of the readout's rows; what they pull comes from V_DD through the virtual ground, what they push
              goes on to ground
    cells     recurrent units: memory, quantiser, pedestal sink, and beta's copies into their lines
    bias      currents into the bias pins, and the diodes that they flow through

So a block holds every device whose current its own supply net delivers, and rows draw what their positive weights
pull. Clocks, pulses and reset are not blocks: their drivers stand outside, and so does OUTSIDE.
"""

from collections.abc import Collection

BLOCKS: tuple[str, ...] = ("inputs", "rails", "rows", "readout", "cells", "bias")
OUTSIDE = (
    "current reference and bias tree", "input converters", "clock generator and drivers", "readout stage's own bias",
    "pooling and decision", "wires", "pads",
)  # fmt: skip
_INSTANCES = {
    "diode_": "inputs",
    "rails_": "rails",
    "row_": "rows",
    "cand_": "rows",
    "relu_": "rows",
    "cell_": "cells",
    "quantiser_": "cells",
    "pedestal_": "cells",
    "thresh_row_": "cells",
    "width_row_": "cells",
    "bias_": "bias",
}  # how the names of instances begin, see cosim.cells.builder


def device_block(name: str, outputs: Collection[str]) -> str:
    """The block of a device of the flat circuit, such as `network.cell_layer1_0.4`; outputs: the readout's pins."""
    instance = name.split(".")[1]
    if instance.removeprefix("row_") in outputs:
        return "readout"
    return next(block for prefix, block in _INSTANCES.items() if instance.startswith(prefix))
