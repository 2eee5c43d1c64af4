"""One transistor of a current: plain, or a self-cascode where a technology's output conductance demands it.

    drain o---+                      The same gate drives both. In weak inversion the upper device, wide and short,
              |--- upper, w/l = S    leaves the lower one  V_DS = U_T ln(1 + S / s)  (84 mV at S / s = 25), enough to
     gate o---+  mid                 saturate it, and takes what the drain moves: the output conductance of the pair is
              |--- lower, w/l = s    that of the lower one over the intrinsic gain of the upper. No second bias line,
    source o--+                      no head-room beyond those 84 mV.

sky130's n device changes its current by 13 %/V at any length; 1u/5u under 5u/1u of the same type: 0.9 %/V.
Source: C. Galup-Montoro, M. C. Schneider and I. J. B. Loss, IEEE J. Solid-State Circuits 29 (1994) 1094.
"""

from dataclasses import dataclass, replace

from cosim.circuit.elements import GROUND, Mos, Role
from cosim.technology.types import Geometry, Polarity

_RAIL: dict[Polarity, str] = {"n": GROUND, "p": "vdd"}


@dataclass(frozen=True)
class TransistorDesign:
    """One transistor of a cell as designed: role and size.

    It is `m` units of a geometry; length: where it differs from the geometry's. match: matched group that a layout
    keeps together, "" for the transistor's gate line; a switch is in none. origin: where it comes from.
    """

    role: Role
    polarity: Polarity
    geometry: Geometry
    m: int = 1
    length: float | None = None
    match: str = ""
    origin: str = ""


def pair_of(role: Role, n: Geometry, p: Geometry) -> tuple[TransistorDesign, TransistorDesign]:
    """Return an n and a p transistor with the same role in a cell."""
    return TransistorDesign(role, "n", n), TransistorDesign(role, "p", p)


def transistor(name: str, device: TransistorDesign, drain: str, gate: str, source: str = "") -> tuple[Mos, ...]:
    """Return the devices of one transistor: a single one, or a self-cascode of two with the net `mid_<name>` between.

    Bulk, and source if `source` is empty, are on the rail: ground for n, vdd for p.
    """
    polarity, geometry, m, role = device.polarity, device.geometry, device.m, device.role
    rail, length = _RAIL[polarity], geometry.l if device.length is None else device.length
    source, match = source or rail, "" if role == "switch" else device.match or gate
    lower = Mos(name, drain, gate, source, rail, polarity, geometry.w, length, m, device.origin, role=role, match=match)
    if geometry.cascode is None:
        return (lower,)
    middle, (w, l) = f"mid_{name}", geometry.cascode  # noqa: E741
    upper = replace(lower, name=f"{name}c", source=middle, w=w, l=l, origin="", match=f"{match}.upper")
    return replace(lower, drain=middle), upper
