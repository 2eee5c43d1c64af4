"""Node and edge types of the graph. They represent and never evaluate.

A node is one current, identified by its `name`. An edge carries one weight. `cosim.network.ir.graph` says what each
stage of the compiler adds.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

Role = Literal["drive", "beta", "value", "gate", "rate"]
UNIT_CURRENT = "one"
PEDESTAL = "zero"


@dataclass(frozen=True)
class InputCurrent:
    """A graph node for one input of the network: I = x_j i_unit with x_j in [0, 1], a feature or the time ramp.

    step: x_j is a multiple of it; None for a continuous input.
    """

    name: str
    index: int
    step: float | None = None


@dataclass(frozen=True)
class UnitCurrent:
    """A graph node for the constant 1 of the network's equations: I = i_unit. Every bias is a weight on this node."""

    name: str = UNIT_CURRENT


PEDESTAL_UNITS = 0.05  # of i_unit: gate lines of a 0 then settle with C n u_t / I, about 1 ms
PEDESTAL_STRENGTH = 8  # its rail loads every row and carries little: built so much stronger, it settles in time


@dataclass(frozen=True)
class Pedestal:
    """A graph node for the pedestal, a constant current I = i_pedestal that every input and state carries as well.

    It lets their gate lines settle: a mirror whose current falls to 0 discharges its own gate line as I = C n u_t / t,
    that is, never. Each row subtracts the pedestals again by one weight on this node, minus the sum of the row's
    weights.
    """

    name: str = PEDESTAL


@dataclass(frozen=True)
class Rectifier:
    """A graph node for a ReLU of the network: I = max(sum of drive, 0).

    offset: the constant current that was added to the sum, in software units.
    """

    name: str
    layer: str
    index: int
    offset: float = 0.0


@dataclass(frozen=True)
class And:
    """A graph node for a product of bits in the network: I = i_unit if all bits of its gate edges are on, else 0.

    The bits are inputs of one bit or memories of two states. Each reader has switches of its own, so the node has no
    gate line, and a reader can only pull with it. An And that is off carries exactly 0.
    """

    name: str
    layer: str
    index: int


@dataclass(frozen=True)
class Memory:
    """A graph node for a recurrent unit: I = level s with its state s >= 0, and h = zero + step s in software.

    Its candidate is u = max(sum of drive, 0). level: a current in software units; zero, step: in those of h; stage:
    number of recurrent layers in front, because cells of one stage are sampled together. The kinds of unit are in
    `cosim.units`. tolerance: how many steps two equal states may differ by, more than 0 for an analog state. floor:
    current that its output carries at state 0 beside the pedestal, in pedestals; rows subtract it, exactly, with the
    pedestal.
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
        """Return the highest state that this node's recurrent unit can have."""
        return 1

    @property
    def start(self) -> int:
        """Return the state into which the reset puts this node's recurrent unit."""
        return 0

    @property
    def behind(self) -> int:
        """Return by how many frames this state is behind that of unit `index` of `layer`; above 0 for shift cells."""
        return 0


@dataclass(frozen=True)
class ThresholdUnit(Memory):
    """A graph node for a recurrent unit with whole states, which compares its candidate u with thresholds.

    rise, fall: upper and lower threshold, in software units; offset: the common-mode current that was added to u, rise
    and fall; two_sided: whether `fall` is used.
    """

    two_sided: ClassVar[bool] = True

    rise: float
    fall: float
    offset: float = 0.0


@dataclass(frozen=True)
class LevelMemory(ThresholdUnit):
    """A graph node for a recurrent unit that stores a level: the number of its turns that a value exceeds.

    turns: in software units. Two value edges bring values: the first is stored at u >= rise, the second at u <= fall.
    """

    turns: tuple[float, ...] = ()

    @property
    def most(self) -> int:
        """Return the highest state of this node, that of a value above all turns."""
        return len(self.turns)


@dataclass(frozen=True)
class Output:
    """A graph node for one readout output of the network.

    I = sum of drive, signed, which flows into the readout's virtual ground.
    """

    name: str
    index: int


Node = InputCurrent | UnitCurrent | Pedestal | Rectifier | And | Memory | Output


@dataclass(frozen=True)
class Weight:
    """The weight of an edge in a network's graph.

    target: the weight wanted; origin: its learned parameter, such as `layer0.weight[3,5]`; role: what the edge does;
    late: whether the target sees the source's state of the frame before, because the source decides with it or after
    it.
    """

    target: float
    origin: str
    role: Role = "drive"
    late: bool = False


@dataclass(frozen=True)
class MemoryCurrents:
    """Set-points of a recurrent unit in the graph, ampere: thresholds of its candidate, and level of a state step."""

    i_rise: float
    i_fall: float
    i_high: float


@dataclass(frozen=True)
class Mirror:
    """A weight of a network's graph as built: a signed count of unit devices; realised: count over units per 1.0.

    The weight of an And is a bias current, so its count is 0.
    """

    count: int
    realised: float
