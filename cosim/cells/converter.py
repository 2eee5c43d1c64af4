"""Current-steering converter: a code of bits draws its current from an input pin.

    out o---+------------+------------+---------+
            |            |            |         |
     bit0 --|     bit1 --|     bit2 --|  ...    |            switches
            |            |            |         |
    level --|1   level --|2   level --|4        |-- rest     unit devices: 1, 2, 4 ... of one size
            0            0            0         0

    I = I_rest + (sum of 2^k bit_k) I_level / L

`level` is the gate line of a diode of L unit devices that carries I_level, the current of 1.0, and L is the number of
steps that the network was trained with: so a code is the level that the training had, and the largest code is 1.0. Each
bit is a current source below a switch, as in `steering.py`; a bit that is off draws nothing. `rest` is the pedestal, a
device that always draws.
Source: binary-weighted current mirrors, T. Delbruck, R. Berner, P. Lichtsteiner and C. Dualibe, "32-bit configurable
bias current generator with sub-off-current capability", Proc. IEEE ISCAS 2010, 1647.
"""

from collections.abc import Sequence

from cosim.cells.mirror import INPUT_DIODE, input_diode
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.bench import PRECISE, Bench, Current, Tran
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Source, Subcircuit
from cosim.technology.types import Technology

CONVERTER, LEVEL_DIODE = "converter", "level_diode"
STEP = 20e-3  # s, of a code in `converter_bench`


def converter(technology: Technology, bits: int) -> Subcircuit:
    """Build the current-steering converter cell, which draws the current of a code of `bits` bits.

    Ports out level rest, then one for each bit, the lowest first.
    """
    n, switch = technology.sizing.cell_n, TransistorDesign("switch", "n", technology.sizing.latch_switch)
    gates = tuple(f"bit{k}" for k in range(bits))
    devices = [
        mos
        for k, gate in enumerate(gates)
        for mos in (
            *transistor(f"s{k}", switch, "out", gate, f"a{k}"),
            *transistor(f"source{k}", TransistorDesign("level", "n", n, 2**k), f"a{k}", "level"),
        )
    ]
    return Subcircuit(
        f"{CONVERTER}_{bits}",
        ("out", "level", "rest", *gates),
        (*devices, *transistor("rest", TransistorDesign("sink", "n", n), "out", "rest")),
        f"converter: a code of {bits} bits draws its current from out",
    )


def level_diode(technology: Technology, levels: int) -> Subcircuit:
    """Build the diode of a converter's level line: `levels` unit devices, which carry the current of code `levels`.

    Port line.
    """
    diode = TransistorDesign("bias", "n", technology.sizing.cell_n, levels)
    summary = f"bias diode of {levels} unit devices: the current of code {levels} into line"
    return Subcircuit(f"{LEVEL_DIODE}_{levels}", ("line",), transistor("diode", diode, "line", "line"), summary)


def converter_bench(technology: Technology, levels: int, units: int, i_level: float, codes: Sequence[int]) -> Bench:
    """Return a bench that tests a converter cell on an input diode, one code after the other for STEP second each.

    The pedestal is 0. Saves the current that the converter draws, through the source `out`.
    """
    bits, end = levels.bit_length(), STEP * len(codes)
    waves = [
        tuple(
            ((k + at) * STEP, technology.supply * (code >> bit & 1)) for k, code in enumerate(codes) for at in (0.01, 1)
        )
        for bit in range(bits)
    ]
    elements: tuple[Element, ...] = (
        Source("dd", "v", "vdd", GROUND, technology.supply),
        Source("level", "i", "vdd", "level", i_level),
        Instance("level", ("level",), f"{LEVEL_DIODE}_{levels}"),
        Instance("in", ("p", "vdd"), f"{INPUT_DIODE}_{units}"),
        Source("out", "v", "p", "drawn", 0.0),
        Instance("cell", ("drawn", "level", GROUND, *(f"bit{k}" for k in range(bits))), f"{CONVERTER}_{bits}"),
        *(Source(f"bit{k}", "v", f"bit{k}", GROUND, wave) for k, wave in enumerate(waves)),
    )
    blocks = level_diode(technology, levels), input_diode(technology, units), converter(technology, bits)
    circuit = Circuit("converter bench", blocks, elements)
    return Bench(circuit, technology, Tran(STEP / 20, end), (Current("out"),), PRECISE)
