"""Tables of a device: its currents and charges over its voltages, measured in the simulator, as splines.

Voltages, currents and charges are those of an n device; a p device is its mirror image (`sign` -1 on all of them).

    Tied    source and bulk on one net, which holds for 85 to 100 % of a network's transistors. x = V_GS, y = V_DS:
            I = exp(a(x)) sum_k c_k(x) b_k(y)          k < RANK, a weighted low-rank fit of the sweeps
            Q_G = q(x) + C_gd (x - y),   Q_D = j(y) - C_gd (x - y)
            A self-cascode, two devices in series with one gate, is one such device: its inner net has no equation.
    Float   source and bulk on different nets. V_G, V_S, V_D to the bulk; the lower of source and drain is the source:
            I = exp(l) (1 - exp(-V_DS / U_T)),  l and the charges of gate, lower and higher end: functions of three
            I is what flows from the higher to the lower end; what an end loses to the bulk is left out.

A deviating device of a Tied carries exp(r dV + s dV^2 / 2 + e ln beta) times as much, r, s and e functions of x. In a
cascode dV and beta are those of the lower device, and a second such term has by how much the upper one deviates more:
dV_upper - dV_lower, beta_upper / beta_lower; what moves both then costs one term, and its square is right, too.
A deviating Float stands at V_G - shift dV, and carries beta times as much.
Source of the separated form: the study in docs/batch.md; BSIM4's `delvto` is not exactly a shift of the gate.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.technology.types import Polarity

Array = NDArray[np.float64]
RANK = 6  # 4 leaves 0.3 to 1 % at 20 to 100 nA and a low V_DS
GATE_COLUMNS = RANK + 2  # a, c_k, q
DRAIN_COLUMNS = RANK + 1  # b_k, j
RESPONSES = 6  # r, s, e of a device or of both of a cascode, then those of the upper one's difference
FLOAT_COLUMNS = 4  # l, Q_G, Q of the lower end, Q of the higher end


class Kind(NamedTuple):
    """A device to be measured: its size in m, whether its source floats, and the size of a cascode on top of it."""

    polarity: Polarity
    w: float
    l: float  # noqa: E741 - the field's own letter
    floating: bool = False
    cascode: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class GridAxis:
    """Equally spaced points from `start`, V."""

    start: float
    step: float
    count: int

    @property
    def points(self) -> Array:
        """Return the points of the axis, V."""
        return self.start + self.step * np.arange(float(self.count))

    @property
    def stop(self) -> float:
        """Return the last point, V."""
        return self.start + self.step * (self.count - 1)


@dataclass(frozen=True, eq=False)
class Tied:
    """gate (cells of x, GATE_COLUMNS, 4), drain (cells of y, DRAIN_COLUMNS, 4), responses (cells of x, RESPONSES, 4):

    cubics in the distance from the cell's lower end in V, the coefficient of power 0 first. c_gd: F. error: largest
    relative error of the current halfway between the points of the sweeps, from 1 pA to 100 nA, V_DS above 0.1 V.
    """

    x: GridAxis
    y: GridAxis
    gate: Array
    drain: Array
    responses: Array
    c_gd: float
    error: float


@dataclass(frozen=True, eq=False)
class Float:
    """values (V_G, V_S, V_DS, FLOAT_COLUMNS): coefficients of quadratic B-splines over the axes; shift: dV_G over dV.

    In cell i, at t = (v - start) / step - i with 0 <= t < 1, the value is the sum over j = 0, 1, 2 of w_j values[i + j]
    with w = ((1 - t)^2 / 2, 1/2 + t - t^2, t^2 / 2), so each axis has one value more than points. thermal: U_T, V.
    error: as `Tied.error`.
    """

    gate: GridAxis
    source: GridAxis
    drain: GridAxis
    values: Array
    thermal: float
    shift: float
    error: float


Table = Tied | Float
