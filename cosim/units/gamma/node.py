"""The dispersive delay line as data: what it is in the graph, its bias current, and a chip's factors."""

from dataclasses import dataclass
from typing import ClassVar

from cosim.ir.nodes import Memory


@dataclass(frozen=True)
class Gamma(Memory):
    """`order` filters in a row, of n / p time constants in a frame each; h = step s, s = 1: full scale. Its cells stand
    on a floor: a tau-cell follows no current that is next to 0."""

    tolerance: ClassVar[float] = 0.03
    floor: ClassVar[int] = 3

    order: int = 1
    position: float = 1.0


@dataclass(frozen=True)
class GammaPins:
    """i_tau: of all its cells, ampere, which is the position; i_rest: of the gate line that the reset puts them on."""

    i_tau: float
    i_rest: float


@dataclass(frozen=True)
class GammaFactors:
    """A chip's factors of each cell of a line; empty where all are nominal. targets: settled value over input; rates:
    I_tau."""

    targets: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
