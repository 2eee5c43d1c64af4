"""Node and edge types of the graph. They represent and never evaluate.

A node is one current, known by its `name`. An edge carries one weight. What each stage adds: `cosim.ir.graph`.
"""

from dataclasses import dataclass
from typing import Literal

from cosim.ir.ladder import LadderBias

Role = Literal["drive", "beta"]
UNIT_CURRENT = "one"
PEDESTAL = "zero"


@dataclass(frozen=True)
class InputCurrent:
    """I = x_j i_unit, x_j in [0, 1]: a feature or the time ramp; a multiple of `step`, None: continuous."""

    name: str
    index: int
    step: float | None = None


@dataclass(frozen=True)
class UnitCurrent:
    """I = i_unit, constant: every bias is a weight on it."""

    name: str = UNIT_CURRENT


@dataclass(frozen=True)
class Pedestal:
    """I = i_pedestal, constant: what an input or a state of 0 carries, so that its gate lines settle.

    A mirror whose current falls to 0 discharges its own gate line as I = C n u_t / t: never. Inputs and states
    therefore ride on a pedestal, and each row takes it out again by one weight on this node, minus the sum of the
    row's weights.
    """

    name: str = PEDESTAL


@dataclass(frozen=True)
class Rectifier:
    """I = max(sum of drive, 0)."""

    name: str
    layer: str
    index: int


@dataclass(frozen=True)
class Memory:
    """A recurrent unit: I = level s with the whole number s >= 0 as its state; h = zero + step s in the software.

    u = max(sum of drive, 0). rise, fall, level, offset as currents in software units; zero, step in those of h.
    `stage` counts the recurrent layers in front: cells of one stage are sampled together.
    `offset` is the common-mode current that was added to u, rise and fall.
    """

    name: str
    layer: str
    index: int
    stage: int
    rise: float
    fall: float
    level: float
    zero: float
    step: float
    offset: float = 0.0


@dataclass(frozen=True)
class Schmitt(Memory):
    """epsilon = 0: s becomes 1 at u >= rise + beta, 0 at u <= fall - beta, else kept; s starts at 0.

    beta = sum of the beta edges (0 without them).
    """


@dataclass(frozen=True)
class Ladder(Memory):
    """epsilon = 1: s + 1 at u >= rise, s - 1 at u <= fall, else kept, within 0 ... rungs; s starts at `start`."""

    rungs: int = 1
    start: int = 0


@dataclass(frozen=True)
class Toggle(Memory):
    """epsilon = -1: s becomes 1 - s at u >= rise, else kept; s starts at 0. `fall` is not used."""


@dataclass(frozen=True)
class Output:
    """I = sum of drive, signed, into the readout's virtual ground."""

    name: str
    index: int


Node = InputCurrent | UnitCurrent | Pedestal | Rectifier | Memory | Output


@dataclass(frozen=True)
class Weight:
    """An edge: the weight wanted and the learned parameter that it comes from, such as `layer0.weight[3,5]`."""

    target: float
    origin: str
    role: Role = "drive"


@dataclass(frozen=True)
class MemoryCurrents:
    """Thresholds of the candidate and level of one state step in ampere."""

    i_rise: float
    i_fall: float
    i_high: float


@dataclass(frozen=True)
class SchmittBias:
    """Bias-pin currents in ampere that realise the thresholds and the level.

    With an input-dependent threshold the pins carry the constant part, and the diodes of the two lines have their
    width trimmed (`trim_thresh`, `trim_width`, over nominal) so that beta arrives with the right slope.
    """

    i_thresh: float
    i_width: float
    i_gain: float
    trim_thresh: float = 1.0
    trim_width: float = 1.0


@dataclass(frozen=True)
class LadderPins:
    """Bias-pin currents in ampere of a ladder with its quantiser."""

    i_upper: float
    i_lower: float
    i_base: float
    i_delta: float
    ladder: LadderBias


@dataclass(frozen=True)
class TogglePins:
    """Bias-pin currents in ampere of a toggle."""

    i_upper: float
    i_base: float
    i_delta: float
    i_thresh: float
    i_width: float
    i_gain: float


@dataclass(frozen=True)
class Mirror:
    """A weight as built: a signed count of unit devices, `realised` = count / units."""

    count: int
    realised: float
