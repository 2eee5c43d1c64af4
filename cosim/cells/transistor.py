"""One transistor of a current: plain, or a self-cascode where a technology's output conductance demands it.

    drain o---+                      The same gate drives both. In weak inversion the upper device, wide and short,
              |--- upper, w/l = S    leaves the lower one  V_DS = U_T ln(1 + S / s)  (84 mV at S / s = 25), enough to
     gate o---+  mid                 saturate it, and takes what the drain moves: the output conductance of the pair is
              |--- lower, w/l = s    that of the lower one over the intrinsic gain of the upper. No second bias line,
    source o--+                      no head-room beyond those 84 mV.

sky130's n device changes its current by 13 %/V at any length; 1u/5u under 5u/1u of the same type: 0.9 %/V.
Source: C. Galup-Montoro, M. C. Schneider and I. J. B. Loss, IEEE J. Solid-State Circuits 29 (1994) 1094.
"""

from cosim.circuit.elements import Mos
from cosim.technology.types import Geometry, Polarity


def transistor(
    name: str,
    drain: str,
    gate: str,
    source: str,
    bulk: str,
    polarity: Polarity,
    geometry: Geometry,
    m: int = 1,
    origin: str = "",
    l: float | None = None,  # noqa: E741
) -> tuple[Mos, ...]:
    """`m` units of a geometry: one device, or two with the net `mid_<name>` between. `l` replaces the drawn length."""
    length = geometry.l if l is None else l
    if geometry.cascode is None:
        return (Mos(name, drain, gate, source, bulk, polarity, geometry.w, length, m, origin),)
    middle, (upper_w, upper_l) = f"mid_{name}", geometry.cascode
    return (
        Mos(name, middle, gate, source, bulk, polarity, geometry.w, length, m, origin),
        Mos(f"{name}c", drain, gate, middle, bulk, polarity, upper_w, upper_l, m),
    )
