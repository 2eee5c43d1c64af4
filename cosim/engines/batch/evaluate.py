# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Currents, charges and the Jacobian of all instances at their voltages."""

from typing import Any

from cosim.engines.batch.compiled import inner, jit
from cosim.engines.batch.floating import FLOAT_KEPT, add_floating
from cosim.engines.batch.lanes import add_to, load, splat, store
from cosim.engines.batch.layout import GROUND, MATRIX
from cosim.engines.batch.lines import drain_lines, gate_lines
from cosim.engines.batch.tied import add_tied, conductances, refresh_tied


@jit
def evaluate(s: Any, v: Any, slope: Any, varied: bool, asked: int) -> None:
    """Fill current and charge, and where it is asked the matrix, from x, offset and source.

    slope: d(dQ/dt)/dQ of each lane, 1/s; varied: chips deviate; asked: MATRIX, which leaves out currents and charges
    of nets that are known, WHOLE, or NEARBY.
    """
    _begin(s.row, v.x, v.offset, v.volt)
    _zero(v.current)
    _zero(v.charge)
    gate_lines(s, v, varied, asked)
    drain_lines(s, v, asked)
    refresh_tied(s, v, asked, varied)
    add_tied(s, v, asked)
    add_floating(s, v, asked)
    _linear(s, v)
    if asked == MATRIX:
        _scaled(v.matrix, s.constant, slope)
        conductances(s, v)
        _capacitances(s, v, slope)


@jit
def _begin(row: Any, x: Any, offset: Any, volt: Any) -> None:
    for net in range(row.size):
        store(volt, net, load(x, row[net]) + load(offset, net))


@inner
def _zero(rows: Any) -> None:
    for row in range(rows.shape[0]):
        store(rows, row, splat(0.0))


@jit
def _linear(s: Any, v: Any) -> None:
    """Capacitors and current sources."""
    volt, current, charge, source, currents = v.volt, v.current, v.charge, v.source, s.currents
    begin, others, farad = s.capacitor_at, s.capacitor_net, s.farad
    for net in range(GROUND + 1, volt.shape[0]):  # a sum of all nets, which nobody asks for
        coulomb = load(charge, net)
        for k in range(begin[net], begin[net + 1]):
            coulomb = coulomb + load(volt, others[k]) * farad[k]
        store(charge, net, coulomb)
    for k in range(currents.shape[0]):
        ampere = load(source, currents[k, 2])
        add_to(current, currents[k, 0], ampere)
        add_to(current, currents[k, 1], splat(0.0) - ampere)


@jit
def _scaled(matrix: Any, constant: Any, slope: Any) -> None:
    for row in range(constant.size):
        store(matrix, row, slope * constant[row])


@jit
def _capacitances(s: Any, v: Any, slope: Any) -> None:
    """Charges of lines and floating devices in the matrix, and what those conduct."""
    matrix, gate, drain = v.matrix, v.gate_charge, v.drain_charge
    gates, drains, gate_size, drain_size = s.gates, s.drains, s.gate_size, s.drain_size
    gate_alone, drain_alone = s.gate_alone, s.drain_alone
    for line in range(gates.shape[0]):
        _line(matrix, gates, line, load(gate, 2 * line + 1) * (slope * gate_size[line]), gate_alone[line])
    for line in range(drains.shape[0]):
        _line(matrix, drains, line, load(drain, 2 * line + 1) * (slope * drain_size[line]), drain_alone[line])
    devices, kept, sizes = s.floating, v.kept, s.float_size
    for device in range(devices.shape[0]):
        at, size = device * FLOAT_KEPT, sizes[device]
        for k in range(3):
            flows = 0.0 if k == 0 else (-size if k == 1 else size)
            for column in range(3):
                stamp = load(kept, at + 4 + column) * flows + load(kept, at + 8 + 4 * k + column) * (slope * size)
                add_to(matrix, devices[device, 5 + 3 * k + column], stamp)


@inner
def _line(matrix: Any, lines: Any, k: int, stamp: Any, alone: bool) -> None:
    """A conductance between a line's net and its source, at its four places; at the first where the source is known."""
    add_to(matrix, lines[k, 3], stamp)
    if not alone:
        add_to(matrix, lines[k, 4], splat(0.0) - stamp)
        add_to(matrix, lines[k, 5], splat(0.0) - stamp)
        add_to(matrix, lines[k, 6], stamp)
