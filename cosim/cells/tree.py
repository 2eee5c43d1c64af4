"""Bias tree: from one reference current, every bias pin's own current, in whole units of two sizes.

    reference 4 nA --> n diode 64 --+-- copy 16 -- p diode 32    line `coarse`, 33 pA a unit device
                                    +-- copy  1 -- p diode 64    line `fine`, 1 pA a unit device

    vdd                       vdd      vdd      vdd
     |                         |        |        |
     |-- coarse, k units       |1       |2  ...  |16 units, fine
     |                         |        |        |
     |                   t0 o--|  t1 o--|  t4 o--|            switches of the trim bits, on at the ground
     +-------------------------+--------+--------+---- pin

    I_pin = k I_coarse + (sum of 2^j t_j) I_fine

A pin's current is a count of unit devices, so all pins follow the reference together, over temperature, supply and
process. Their ratios, on which decisions depend, are ratios of whole devices. The trim bits of a pin are the remainder
below one coarse unit: set from the design, and adjustable on a chip. The output conductance of the sources adds some
current, which is measured once (`cosim.technology.calibration`) and taken into account in the counts.
Source: T. Delbruck, R. Berner, P. Lichtsteiner and C. Dualibe, "32-bit configurable bias current generator with
sub-off-current capability", Proc. IEEE ISCAS 2010, 1647; the reference is that of `reference.py`.
"""

from cosim.cells.bias import BIAS_DIODE, bias_diode
from cosim.cells.reference import REFERENCE, reference
from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.bench import PRECISE, Bench, Current, Tran
from cosim.circuit.elements import GROUND, Circuit, Element, Instance, Mos, Source, Subcircuit
from cosim.technology.types import Technology

TREE, TREE_SOURCE = "tree", "tree_source"
TRIM_BITS = 5
ALL_FINE = 2**TRIM_BITS - 1
TREE_COUNTS = (2, 8, 30, 120)  # coarse units in `tree_bench`: 0.07 to 4 nA
_REFERENCE, _COARSE, _FINE = 64, (16, 32), (1, 64)  # devices of the diode; of a line's copy and of its diode
REFERENCE_UNITS = _COARSE[1] * _REFERENCE // _COARSE[0]  # coarse units that are the reference's current
BRANCHES = 4 + (_COARSE[0] + _FINE[0]) / _REFERENCE  # of the reference and of the lines, in the reference's current


def tree(technology: Technology) -> Subcircuit:
    """Build the bias tree cell, which makes its two lines from a reference current. Ports in coarse fine vdd."""
    n, p = technology.sizing.mirror_n, technology.sizing.mirror_p
    devices = [*transistor("in", TransistorDesign("bias", "n", n, _REFERENCE), "in", "in")]
    for line, (copied, diode) in {"coarse": _COARSE, "fine": _FINE}.items():
        devices += transistor(f"{line}_copy", TransistorDesign("copy", "n", n, copied), line, "in")
        devices += transistor(f"{line}_diode", TransistorDesign("bias", "p", p, diode), line, line)
    return Subcircuit(TREE, ("in", "coarse", "fine", "vdd"), tuple(devices), "bias tree: coarse and fine line")


def source_name(count: int) -> str:
    """Return the name of the bias tree's source cell with `count` coarse units."""
    return f"{TREE_SOURCE}_{count}"


def tree_source(technology: Technology, count: int) -> Subcircuit:
    """Build the current source of one pin in the bias tree, with `count` coarse units.

    Ports pin coarse fine, the trim bits t0 ... (a bit tied to ground is on), vdd.
    """
    p, switch = technology.sizing.mirror_p, TransistorDesign("switch", "p", technology.sizing.latch_switch)
    bits = tuple(f"t{k}" for k in range(TRIM_BITS))
    devices: list[Mos] = []
    if count:
        devices += transistor("coarse", TransistorDesign("level", "p", p, count), "pin", "coarse")
    for k, bit in enumerate(bits):
        devices += transistor(f"fine{k}", TransistorDesign("level", "p", p, 2**k), f"a{k}", "fine")
        devices += transistor(f"on{k}", switch, "pin", bit, f"a{k}")
    return Subcircuit(
        source_name(count),
        ("pin", "coarse", "fine", *bits, "vdd"),
        tuple(devices),
        f"source of a bias pin: {count} coarse units and {TRIM_BITS} trim bits",
    )


def trim_nets(fine: int) -> tuple[str, ...]:
    """Return the nets to tie a bias tree source's trim bits to for `fine` fine units: ground where a bit is on."""
    return tuple(GROUND if fine >> k & 1 else "vdd" for k in range(TRIM_BITS))


def tree_bench(technology: Technology, end: float) -> Bench:
    """Return a bench that tests the current reference and bias tree cells, whose sources feed bias diodes.

    Each source has one of TREE_COUNTS coarse units and no bit on; one more has all bits on and no coarse unit. The
    supply comes up within 1 ms. Saves the currents through `sense<count>`. end: length of the run, s.
    """
    elements: list[Element] = [
        Source("dd", "v", "vdd", GROUND, ((0.0, 0.0), (1e-3, technology.supply))),
        Instance("reference", ("in", "vdd"), REFERENCE),
        Instance("tree", ("in", "coarse", "fine", "vdd"), TREE),
    ]
    counts = (0, *TREE_COUNTS)
    for count in counts:
        bits = trim_nets(0 if count else ALL_FINE)
        elements += [
            Instance(f"source{count}", (f"pin{count}", "coarse", "fine", *bits, "vdd"), source_name(count)),
            Source(f"sense{count}", "v", f"pin{count}", f"line{count}", 0.0),
            Instance(f"line{count}", (f"line{count}",), BIAS_DIODE),
        ]
    sources = (tree_source(technology, count) for count in counts)
    circuit = Circuit(
        "bias tree bench", (reference(technology), tree(technology), *sources, bias_diode(technology)), tuple(elements)
    )
    probes = tuple(Current(f"sense{count}") for count in counts)
    return Bench(circuit, technology, Tran(end / 200, end), probes, PRECISE)
