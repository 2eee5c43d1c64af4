"""The protocol of a recurrent unit: one record of functions. Stages own the loops over a network, units the equations.

The stages ask in this order: whether a layer is of this kind (`takes`), what it becomes in the graph (`lower`), which
bias currents make its set-points (`bias`), its circuit (`build`) and the rows of the mapping report (`report`); then,
frame by frame, its states (`decide`) and what they deliver (`deliver`), what the cell draws (`supply`), what turns its
decision (`turns`), and what the mismatch of its transistors does to it (`effects`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import Builder, instance, net
from cosim.circuit.elements import Role
from cosim.ir.nodes import Memory, MemoryCurrents
from cosim.ir.states import States
from cosim.network.layers import RecurrentLayer
from cosim.technology.calibration import Calibration, Own
from cosim.technology.types import Technology
from cosim.units.limits import SetPoint
from cosim.units.placing import Placing
from cosim.units.sizing import SizingInput

Array = NDArray[np.float64]
Key = str | tuple[str, str]

N = TypeVar("N", bound=Memory)
B = TypeVar("B")
F = TypeVar("F")


@dataclass(frozen=True)
class CellEquations(Generic[N, B, F]):
    """One memory as its equations see it.

    asked: (rise, fall, high) that the compiler wanted, ampere; bias: its bias currents; factors: those of the chip;
    ideal: gains of 1 and set-points as asked for; beta: what its beta edges add, ampere, (n, time) or 0: as it arrives
    in the threshold line and, once, in the width line; what rate edges add is the first; before: states (n,) in front
    of the first frame, None for those that the reset leaves; values: what arrives by its value edges, (n, time),
    ampere.
    """

    node: N
    asked: tuple[float, float, float]
    bias: B
    factors: F
    calibration: Calibration
    ideal: bool
    beta: tuple[Array, Array]
    before: States | None = None
    values: tuple[Array, ...] = ()


@dataclass(frozen=True)
class Standing:
    """One memory between two decisions: u, (n, time) ampere; states; current: its output, ampere; updated: whether the
    frame's decision changed its state; beta: the sum of its beta or rate edges, ampere."""

    candidate: Array
    states: States
    current: Array
    updated: Callable[[], NDArray[np.int16]]
    beta: Array | np.float64


@dataclass(frozen=True)
class Turns:
    """The candidates at which a decision turns, ampere, each a number or one for every frame: those that count while
    the state before it is 0, and those while it is not.

    own: whether each has devices of its own; otherwise the lower one is the upper one less a width.
    """

    off: tuple[Array, ...]
    on: tuple[Array, ...]
    own: bool = False


@dataclass(frozen=True)
class Effect:
    """One factor: the field of `Deviations` or of a unit's `factors`, its key, its place in a value of several, and
    what makes it.

    devices: (transistor, +1 or -1); current: ampere through each of them; slopes: n of each at that current.
    """

    field: str
    key: Key
    place: int | None
    devices: tuple[tuple[str, int], ...]
    current: float
    slopes: tuple[float, ...] = ()
    factors: type[object] | None = None


def effect(field: str, key: Key, current: float, *devices: tuple[str, int], place: int | None = None) -> Effect:
    """An effect of these transistors."""
    return Effect(field, key, place, devices, current)


@dataclass(frozen=True)
class Site:
    """A memory in its circuit: name, its bias pins, its set-points in ampere; roles: `Circuit.roles` of the network."""

    name: str
    pins: tuple[str, ...]
    asked: MemoryCurrents
    roles: Mapping[tuple[str, Role], str]

    def device(self, role: Role, block: str = "") -> str:
        """The transistor of a role in its cell or a block of that."""
        return self.roles[instance(f"cell_{net(self.name)}{block and '.'}{block}"), role]

    def bias(self, pin: str) -> str:
        """The diode of a bias pin."""
        return self.roles[instance(pin), "bias"]

    @property
    def candidate(self) -> str:
        """Return the candidate diode of the cell."""
        return self.roles[instance(f"cand_{net(self.name)}"), "candidate"]

    def comparator(self, side: str, current: float, comparator: str, pin: str) -> Effect:
        """Factor of a comparator's current: M2 against its bias diode, the candidate diode against M1."""
        threshold, compare = self.roles[comparator, "threshold"], self.roles[comparator, "compare"]
        devices = (threshold, 1), (self.bias(pin), -1), (compare, -1), (self.candidate, 1)
        return effect(side, self.name, current, *devices)


@dataclass(frozen=True)
class LearnedParameters:
    """upper, lower, alpha: names of what was learned; above, below: how the circuit's thresholds came from that;
    asked: the set-points in ampere; pins: the bias pins of the cell, in the order of its record."""

    upper: str
    lower: str
    alpha: str
    above: str
    below: str
    asked: MemoryCurrents
    pins: tuple[str, ...]


@dataclass(frozen=True)
class PinRow:
    """A learned parameter, the pin that makes it, the current wanted at the cell and the one on the pin, ampere."""

    parameter: str
    pin: str
    target: float
    realised: float
    note: str


def _never(cell: object, lines: Sequence[Array]) -> Turns:
    """Return no turns, for an analog state."""
    return Turns((), ())


def _no_points(node: object, asked: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
    """Return nothing for a unit without thresholds."""
    return ()


def _allow(i_unit: float, t_step: float, tau: float, calibration: Calibration, origin: str) -> None:
    """Accept any frame and unit current, for a unit that has no limits of its own."""


@dataclass(frozen=True)
class UnitKind(Generic[N, B, F]):
    """One kind of unit.

    node, factors: types of its node and of a chip's factors on it, all 1 by default; layers: kinds of layer that it
    may take.
    points: (node, set-points in ampere, moving: whether its thresholds move with the input) -> those currents and what
    can be built of them.
    turns: from the currents of its threshold lines, where it has lines of its own, ampere (frames,).
    unreset: whether this cell stays on at a candidate of 0.
    drawings: schematics that show it, cosim.report.schematics.CELLS.
    measure: (technology, calibration of the cells, simulator) -> what it needs beyond that, `Calibration.own`.
    resumes: whether `decide` begins with `CellEquations.before`, which feedback needs.
    settles: (node, candidate in units) -> the state that it is in from the first frame on, where that candidate never
    changes; None where the state goes on changing, or a threshold is too near to say.
    pulsed: whether its state changes in a pulse after the decision; slow: whether it has a time constant.
    samples: whether it compares a candidate that a sample gate froze, whose noise is then known.
    check: (i_unit, t_step, tau, calibration, origin): raises MappingError where the kind cannot work so.
    """

    node: type[N]
    factors: type[F]
    layers: tuple[type[RecurrentLayer], ...]
    takes: Callable[[RecurrentLayer], bool]
    lower: Callable[[Any, Placing], None]
    bias: Callable[[N, SizingInput], B]
    build: Callable[[Builder, N, B], None]
    report: Callable[[N, B, LearnedParameters], list[PinRow]]
    decide: Callable[[CellEquations[N, B, F], Array], States]
    deliver: Callable[[CellEquations[N, B, F], States], Array]
    supply: Callable[[CellEquations[N, B, F], Standing], Array]
    effects: Callable[[N, B, Site], Iterator[Effect]]
    points: Callable[..., tuple[SetPoint, ...]] = _no_points
    turns: Callable[[CellEquations[N, B, F], Sequence[Array]], Turns] = _never
    unreset: Callable[[CellEquations[N, B, F]], bool] = lambda cell: False
    drawings: tuple[str, ...] = ()
    measure: Callable[[Technology, Calibration, str], Own] | None = None
    resumes: bool = False
    settles: Callable[[N, float], int | None] = lambda node, candidate: None
    pulsed: bool = False
    slow: bool = False
    samples: bool = False
    check: Callable[[float, float, float, Calibration, str], None] = _allow


AnyUnit = UnitKind[Any, Any, Any]


def pick(levels: Array, states: States) -> Array:
    """The level of every whole state."""
    return levels[states.astype(np.intp)]


def step_through(
    candidate: Array, start: States, step: Callable[[NDArray[np.int16], int], NDArray[np.int16]]
) -> NDArray[np.int16]:
    """Whole states (n, time) from `start` (n,) on, by step(state, t)."""
    states = np.empty(candidate.shape, dtype=np.int16)
    state = start.astype(np.int16)
    for t in range(candidate.shape[1]):
        state = step(state, t)
        states[:, t] = state
    return states
