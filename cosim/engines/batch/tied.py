# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""Devices whose source and bulk are one net: sums of RANK products of their two lines' functions."""

from typing import Any

from cosim.engines.batch.compiled import inner, jit
from cosim.engines.batch.lanes import add_to, count_as, counted, exp, load, splat, store
from cosim.engines.batch.layout import GROUND, MATRIX, NEARBY
from cosim.engines.batch.tables import RANK, RESPONSES


@jit
def refresh_tied(s: Any, v: Any, asked: int, varied: bool) -> None:
    """The devices of which a line was evaluated since they were; those between known nets where currents are asked."""
    gate_version, drain_version, version, tied = v.gate_version, v.drain_version, v.tied_version, s.tied
    first, last = s.groups[1] if asked == NEARBY else 0, s.groups[1] if asked == MATRIX else s.groups[2]
    for device in range(first, last):
        now = counted(gate_version, tied[device, 0]) + counted(drain_version, tied[device, 1])
        if now != counted(version, device):
            count_as(version, device, now)
            _refresh(s, v, device, varied)


@jit
def _refresh(s: Any, v: Any, device: int, varied: bool) -> None:
    """Current and conductances of a device where its lines were evaluated, of all that are parallel."""
    line, at = s.tied[device, 0], 3 * device
    current, gm, gd = _products(v.gate, line * 2 * RANK, v.drain, s.tied[device, 1] * 2 * RANK)
    size = splat(s.tied_size[device])
    if not varied:
        _keep(v.tied_kept, at, (current, gm, gd), size)
        return
    power, bend = _answer(v.response, line * 2 * RESPONSES, v.tied_drawn, 4 * device)
    if s.cascode[device]:
        more, bends = _answer(v.response, line * 2 * RESPONSES + 3, v.tied_drawn, 4 * device + 2)
        power, bend = power + more, bend + bends
    _keep(v.tied_kept, at, (current, gm + current * bend, gd), exp(power) * size)


@inner
def _keep(kept: Any, at: int, found: Any, size: Any) -> None:
    store(kept, at, found[0] * size)
    store(kept, at + 1, found[1] * size)
    store(kept, at + 2, found[2] * size)


@inner
def _products(gate: Any, at: int, drain: Any, by: int) -> Any:
    """Current, and its derivatives by V_GS and V_DS, of a device of size 1 as drawn."""
    f, b = load(gate, at), load(drain, by)
    current, gm, gd = f * b, load(gate, at + RANK) * b, f * load(drain, by + RANK)
    for k in range(1, RANK):
        f, b = load(gate, at + k), load(drain, by + k)
        current = current + f * b
        gm = gm + load(gate, at + RANK + k) * b
        gd = gd + f * load(drain, by + RANK + k)
    return current, gm, gd


@inner
def _answer(response: Any, by: int, drawn: Any, at: int) -> Any:
    """ln of how much more a deviating device carries, and its derivative by V_GS; or one of the two of a cascode."""
    volt, factor = load(drawn, at), load(drawn, at + 1)
    half, bends = volt * volt * 0.5, by + RESPONSES
    power = load(response, by) * volt + load(response, by + 1) * half + load(response, by + 2) * factor
    bend = load(response, bends) * volt + load(response, bends + 1) * half + load(response, bends + 2) * factor
    return power, bend


@inner
def _tangent(kept: Any, device: int, x_apart: Any, y_apart: Any) -> Any:
    """A device's current so near to where it was evaluated."""
    return load(kept, 3 * device) + load(kept, 3 * device + 1) * x_apart + load(kept, 3 * device + 2) * y_apart


@jit
def tied_current(s: Any, v: Any, device: int) -> Any:
    """Current from drain to source of an n device, A, of all that are parallel, after a whole evaluation."""
    x_apart, y_apart = load(v.gate_apart, s.tied[device, 0]), load(v.drain_apart, s.tied[device, 1])
    return _tangent(v.tied_kept, device, x_apart, y_apart)


@jit
def add_tied(s: Any, v: Any, asked: int) -> None:
    """Currents of tied devices: for MATRIX out of nets that are unknown; or of all.

    For NEARBY those that sources fix are whole, but for ground, which nobody asks for.
    """
    tied, sign, out, kept, gate, drain = s.tied, s.tied_sign, v.current, v.tied_kept, v.gate_apart, v.drain_apart
    first = s.groups[3] if asked == NEARBY else 0
    last, both = (s.groups[1], s.groups[0]) if asked == MATRIX else (s.groups[2], 0)
    at_drain = at_source = splat(0.0)  # devices of one net follow each other: a sum in memory would wait for the last
    here, there = GROUND, GROUND
    for device in range(first, last):
        x_apart, y_apart = load(gate, tied[device, 0]), load(drain, tied[device, 1])
        current = _tangent(kept, device, x_apart, y_apart) * sign[device]
        if tied[device, 2] != here:
            add_to(out, here, at_drain)
            here, at_drain = tied[device, 2], splat(0.0)
        at_drain = at_drain + current
        if device >= both:
            if tied[device, 3] != there:
                add_to(out, there, at_source)
                there, at_source = tied[device, 3], splat(0.0)
            at_source = at_source - current
    add_to(out, here, at_drain)
    add_to(out, there, at_source)


@jit
def conductances(s: Any, v: Any) -> None:
    """Tied devices in the matrix."""
    tied, alone, last, matrix, kept = s.tied, s.groups[0], s.groups[1], v.matrix, v.tied_kept
    for device in range(last):
        gm, gd = load(kept, 3 * device + 1), load(kept, 3 * device + 2)
        add_to(matrix, tied[device, 4], gm)
        add_to(matrix, tied[device, 5], gd)
        if device >= alone:
            add_to(matrix, tied[device, 6], splat(0.0) - gm - gd)
            add_to(matrix, tied[device, 7], splat(0.0) - gm)
            add_to(matrix, tied[device, 8], splat(0.0) - gd)
            add_to(matrix, tied[device, 9], gm + gd)
