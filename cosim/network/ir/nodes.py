"""Node and edge types of the graph. They represent and never evaluate.

A node is one current, known by its `name`. An edge carries one weight. What each stage adds: `cosim.network.ir.graph`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

Role = Literal["drive", "beta", "value", "gate", "rate"]
UNIT_CURRENT = "one"
PEDESTAL = "zero"


@dataclass(frozen=True)
class InputCurrent:
    """A graph node for one input of the network.

    I = x_j i_unit, x_j in [0, 1]: a feature or the time ramp; a multiple of `step`, None: continuous.
    """

    name: str
    index: int
    step: float | None = None


@dataclass(frozen=True)
class UnitCurrent:
    """A graph node for the constant 1 of the network's equations.

    I = i_unit, constant: every bias is a weight on it.
    """

    name: str = UNIT_CURRENT


PEDESTAL_UNITS = 0.05  # of i_unit: gate lines of a 0 then settle with C n u_t / I, about 1 ms


@dataclass(frozen=True)
class Pedestal:
    """A graph node for the constant pedestal current.

    I = i_pedestal, constant: what an input or a state of 0 carries, so that its gate lines settle. A mirror whose
    current falls to 0 discharges its own gate line as I = C n u_t / t: never. Inputs and states therefore ride on a
    pedestal, and each row takes it out again by one weight on this node, minus the sum of the row's weights.
    """

    name: str = PEDESTAL


@dataclass(frozen=True)
class Rectifier:
    """A graph node for a ReLU of the network.

    I = max(sum of drive, 0); offset: the constant current that was added to the sum, in software units.
    """

    name: str
    layer: str
    index: int
    offset: float = 0.0


@dataclass(frozen=True)
class And:
    """A graph node for a product of bits in the network.

    I = i_unit where all bits of its gate edges are on, else exactly 0: inputs of one bit, memories of two states. Each
    of its readers has switches of its own, so it has no gate line, and can be pulled with only.
    """

    name: str
    layer: str
    index: int


@dataclass(frozen=True)
class Memory:
    """A graph node for a recurrent unit of the network.

    I = level s with its state s >= 0; h = zero + step s in the software.
    u = max(sum of drive, 0). level as a current in software units; zero, step in those of h. `stage` counts the
    recurrent layers in front: cells of one stage are sampled together. The kinds of unit are in `cosim.units`.
    tolerance: how far two states may differ and be the same, in steps: more than 0 for an analog state. floor: what its
    output carries at state 0 beside the pedestal, in pedestals, so that rows take it out with that, exactly.
    """

    tolerance: ClassVar[float] = 0.0
    floor: ClassVar[int] = 0

    name: str
    layer: str
    index: int
    stage: int
    level: float
    zero: float
    step: float

    @property
    def most(self) -> int:
        """Return the highest state of this node's recurrent unit."""
        return 1

    @property
    def start(self) -> int:
        """Return the state to which the reset takes this node's recurrent unit."""
        return 0

    @property
    def behind(self) -> int:
        """Return by how many frames the node lags unit `index` of network layer `layer`; above 0 for shift cells."""
        return 0


@dataclass(frozen=True)
class ThresholdUnit(Memory):
    """A graph node for a recurrent unit with whole states that compares u with thresholds, in software units.

    offset: the common-mode current that was added to u, rise and fall; two_sided: whether `fall` is used.
    """

    two_sided: ClassVar[bool] = True

    rise: float
    fall: float
    offset: float = 0.0


@dataclass(frozen=True)
class Storing(ThresholdUnit):
    """A graph node for a recurrent unit that stores a level.

    That is how many of its turns, in software units, the value exceeds that arrives by its value edges: the first of
    them at u >= rise, the second at u <= fall.
    """

    turns: tuple[float, ...] = ()

    @property
    def most(self) -> int:
        """Return the highest state of this node, which a value above all turns has."""
        return len(self.turns)


@dataclass(frozen=True)
class Output:
    """A graph node for one readout output of the network.

    I = sum of drive, signed, into the readout's virtual ground.
    """

    name: str
    index: int


Node = InputCurrent | UnitCurrent | Pedestal | Rectifier | And | Memory | Output


@dataclass(frozen=True)
class Weight:
    """An edge of a network's graph: the weight wanted and its learned parameter, such as `layer0.weight[3,5]`.

    late: reads a memory that decides when the target does, or after it, and so its state of the frame before.
    """

    target: float
    origin: str
    role: Role = "drive"
    late: bool = False


@dataclass(frozen=True)
class MemoryCurrents:
    """Currents of a recurrent unit in the graph, ampere: thresholds of the candidate and level of one state step."""

    i_rise: float
    i_fall: float
    i_high: float


@dataclass(frozen=True)
class Mirror:
    """A weight of a network's graph as built: a signed count of unit devices, `realised` = count / units.

    Of an And, whose weight is a bias current: count 0.
    """

    count: int
    realised: float
