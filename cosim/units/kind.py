"""The protocol of a recurrent unit: one class, its node in the graph. Stages own the loops over a network, units the
equations.

The stages of the compiler ask in this order: whether a layer becomes this kind (`accepts`), which nodes it becomes
(`lower_layer`), which currents its set-points are (`set_points`), which bias currents make them (`solve_bias`), its
circuit (`build_circuit`) and the rows of the mapping report (`report_pins`). The behavioral engine asks for its states
frame by frame (`compute_states`), what they deliver (`output_current`), what the cell draws (`supply_current`) and at
which candidates its decision turns (`switching_thresholds`); the study of variation, what the mismatch of its
transistors does to it (`mismatch_effects`).

Beside `UnitKind` stand the records that these functions take and return.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.elements import Role
from cosim.network.ir.nodes import Memory, MemoryCurrents
from cosim.network.ir.states import States
from cosim.network.layers import RecurrentLayer
from cosim.technology.calibration import Calibration, MirrorFit, Own
from cosim.technology.types import Technology
from cosim.units.builder import Builder, instance, net
from cosim.units.placement import LayerPlacement
from cosim.units.sizing import SetPoint, SizingInput

Array = NDArray[np.float64]
Key = str | tuple[str, str]

B = TypeVar("B")
F = TypeVar("F")


@dataclass(frozen=True)
class CellEquations(Generic[B, F]):
    """One recurrent unit on the chip, as its kind's equations see it beside its node.

    set_points: (rise, fall, high) that the compiler wanted, ampere; bias: its bias currents; factors: those of the
    chip; ideal: gains of 1, and set-points exactly as wanted; beta: what its beta edges add, ampere, (n, time) or 0, as
    it arrives in the threshold line and, once, in the width line; of rate edges, the sum is the first; initial_states:
    (n,) in front of the first frame, None for those that the reset leaves; values: what arrives by its value edges,
    (n, time), ampere.
    """

    set_points: tuple[float, float, float]
    bias: B
    factors: F
    calibration: Calibration
    ideal: bool
    beta: tuple[Array, Array]
    initial_states: States | None = None
    values: tuple[Array, ...] = ()

    def states_before(self, candidate: Array, reset: float) -> States:
        """Return the unit's states in front of the first frame, (n,), `reset` for those that the reset leaves.

        candidate: (n, time).
        """
        return np.full(len(candidate), reset) if self.initial_states is None else self.initial_states

    def level_current(self, i_gain: float) -> float:
        """Return the current of a unit's state on the chip, ampere, for a bias current of `i_gain` ampere."""
        return self.set_points[2] if self.ideal else float(self.calibration.schmitt.i_high(np.float64(i_gain)))


@dataclass(frozen=True)
class CellSignals:
    """Signals of one recurrent unit, each (n, time), from which its kind computes its supply current.

    candidate: u, ampere; states; output_current: ampere; state_changes: returns 1 where the frame's decision changed
    the state, else 0; beta: the sum of its beta or rate edges, ampere.
    """

    candidate: Array
    states: States
    output_current: Array
    state_changes: Callable[[], NDArray[np.int16]]
    beta: Array | np.float64


@dataclass(frozen=True)
class SwitchingThresholds:
    """The candidates at which a recurrent unit's decision turns, ampere, each a number or one for every frame.

    while_off: those that count while the state before is 0; while_on: those that count while it is not; own_devices:
    whether each has devices of its own; otherwise the lower one is the upper one less a width. turns: the values at
    which a unit that stores a value writes another level, ampere: +v where the candidate is above the first threshold,
    -v where it is below the second.
    """

    while_off: tuple[Array, ...]
    while_on: tuple[Array, ...]
    own_devices: bool = False
    turns: tuple[float, ...] = ()


@dataclass(frozen=True)
class Effect:
    """One factor of a recurrent unit's currents that its transistors make by their mismatch.

    field: of `Deviations`, or of a unit's `factors_type` (`factors`); key: whose it is; place: in a value of several;
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
    """Return the mismatch effect of these transistors of a recurrent unit."""
    return Effect(field, key, place, devices, current)


@dataclass(frozen=True)
class CellDevices:
    """The transistors of one recurrent unit in its circuit.

    name: of its node; pins: its bias pins; set_points: ampere; roles: `Circuit.roles` of the network.
    """

    name: str
    pins: tuple[str, ...]
    set_points: MemoryCurrents
    roles: Mapping[tuple[str, Role], str]

    def device(self, role: Role, block: str = "") -> str:
        """Return a unit's transistor of a role, in a block of its cell or not, for its kind's mismatch effects."""
        return self.roles[instance(f"cell_{net(self.name)}{block and '.'}{block}"), role]

    def bias_diode(self, pin: str) -> str:
        """Return the transistor that is the diode of a unit's bias pin, for its kind's mismatch effects."""
        return self.roles[instance(pin), "bias"]

    @property
    def candidate_diode(self) -> str:
        """Return the transistor that is a recurrent unit's candidate diode, for its kind's mismatch effects."""
        return self.roles[instance(f"cand_{net(self.name)}"), "candidate"]

    def comparator_effect(self, side: str, current: float, comparator: str, pin: str) -> Effect:
        """Return the mismatch effect on the unit's comparator current.

        It is M2 against its bias diode, the candidate diode against M1.
        """
        threshold, compare = self.roles[comparator, "threshold"], self.roles[comparator, "compare"]
        devices = (threshold, 1), (self.bias_diode(pin), -1), (compare, -1), (self.candidate_diode, 1)
        return effect(side, self.name, current, *devices)


@dataclass(frozen=True)
class LearnedParameters:
    """The names of what a recurrent unit has learned, for its rows in the mapping report.

    upper, lower, alpha: names of thresholds and level; upper_note, lower_note: how the circuit's thresholds came from
    them; set_points: ampere; pins: the bias pins of the cell, in the order of its record.
    """

    upper: str
    lower: str
    alpha: str
    upper_note: str
    lower_note: str
    set_points: MemoryCurrents
    pins: tuple[str, ...]


@dataclass(frozen=True)
class MappingRow:
    """A row of the mapping report: one learned parameter and the circuit element that it was compiled to.

    target and realised in `unit`. A weight (unit 1): wanted and built. A threshold or level (unit A, status
    calibrated): the current wanted at the cell, and the bias current on the pin that makes it. `status`: exact,
    rounded, rounds to zero, cut at the largest mirror, left out (with a cell that is constant); `note`: what was folded
    in (cosim.compiler.mapping).
    """

    parameter: str
    element: str
    target: float
    realised: float
    unit: str
    status: str
    note: str = ""


def pin_row(parameter: str, pin: str, target: float, realised: float, note: str) -> MappingRow:
    """Return a recurrent unit's row of the mapping report for a threshold or level and its bias pin, both ampere."""
    return MappingRow(parameter, pin, target, realised, "A", "calibrated", note)


class UnitKind(Memory, ABC, Generic[B, F]):
    """One kind of recurrent unit: its node, with the functions and properties that the stages of the package ask for.

    factors_type: type of a chip's factors on it, all 1 by default; layer_types: types of layer that may become it.
    resumes_from_state: whether `compute_states` begins with `CellEquations.initial_states`, which feedback needs.
    updates_in_pulse: whether its state changes in a pulse after the decision; has_time_constant: whether it is a slow
    one, with `tau`; samples_candidate: whether a sample gate freezes its candidate, whose noise is then known.
    has_comparators: whether comparators decide about its candidate, which may have several devices in parallel.
    trimmed: (place of a bias pin among those of its cell, field of a chip's factors that scales with its current), in
    the order upper threshold, lower threshold or width, level, then what else scales with the level's pin; empty for
    a unit that is not trimmed.
    measure_fit: (technology, calibration of the cells, simulator) -> what it needs beyond that, `Calibration.own`.
    """

    factors_type: ClassVar[type[Any]]
    layer_types: ClassVar[tuple[type[RecurrentLayer], ...]] = ()
    resumes_from_state: ClassVar[bool] = False
    updates_in_pulse: ClassVar[bool] = False
    has_time_constant: ClassVar[bool] = False
    samples_candidate: ClassVar[bool] = False
    has_comparators: ClassVar[bool] = False
    trimmed: ClassVar[tuple[tuple[int, str], ...]] = ()
    measure_fit: ClassVar[Callable[[Technology, Calibration, str], Own] | None] = None

    @staticmethod
    def accepts(layer: RecurrentLayer) -> bool:
        """Tell whether a layer becomes this kind of unit; False for a kind whose nodes another part of cosim adds."""
        return False

    @staticmethod
    def lower_layer(layer: Any, placement: LayerPlacement) -> None:  # noqa: ANN401 - one of `layer_types`
        """Add a unit for each software unit of a layer of `layer_types`, with the rows of its weights."""
        raise NotImplementedError(f"{layer.name} becomes no unit of this kind")

    @staticmethod
    def check_timing(i_unit: float, t_step: float, tau: float, calibration: Calibration, origin: str) -> None:
        """Raise MappingError where this kind of unit cannot work with this unit current, ampere, frame and tau, s."""

    def set_points(self, currents: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
        """Return the unit's currents, ampere, that have limits, and between which of these each can be built.

        moving: whether its thresholds move with the input.
        """
        return ()

    def settled_state(self, candidate: float) -> int | None:
        """Return the state that the unit is in from the first frame on, where its candidate, in units, never changes.

        It is None where the state goes on changing, or a threshold is too near to say.
        """
        return None

    @abstractmethod
    def solve_bias(self, sizing: SizingInput) -> B:
        """Return the bias currents that make the unit's set-points. Raises UnitCurrentError where there are none."""

    @abstractmethod
    def build_circuit(self, builder: Builder, bias: B, /) -> None:
        """Add the unit's circuit: its candidate, its bias lines, its cell, and the lines of its state."""

    @abstractmethod
    def report_pins(self, bias: B, learned: LearnedParameters, /) -> list[MappingRow]:
        """Return the unit's rows of the mapping report, one for each learned parameter and the pin that makes it."""

    @property
    def schematics(self) -> tuple[str, ...]:
        """Return the names of the drawings that show the unit, keys of cosim.verbs.compile.schematics.CELLS."""
        return ()

    @abstractmethod
    def compute_states(self, cell: CellEquations[B, F], candidate: Array) -> States:
        """Return the unit's states (n, time), whole numbers or over full scale; candidate: (n, time), ampere."""

    @abstractmethod
    def output_current(self, cell: CellEquations[B, F], states: States) -> Array:
        """Return the current that the unit delivers in these states beside its pedestal, ampere, (n, time)."""

    @abstractmethod
    def supply_current(self, cell: CellEquations[B, F], signals: CellSignals) -> Array:
        """Return what the unit draws from V_DD, with its output and its pedestal, ampere, (n, time)."""

    @abstractmethod
    def mismatch_effects(self, bias: B, circuit: CellDevices, /) -> Iterator[Effect]:
        """Yield what the mismatch of the unit's transistors does to its currents: the fields of its `factors_type`."""

    def switching_thresholds(self, cell: CellEquations[B, F], lines: Sequence[Array]) -> SwitchingThresholds:
        """Return the candidates at which the unit's decision turns, ampere; none for an analog state.

        lines: currents of its threshold lines, ampere (frames,), where it has lines of its own.
        """
        return SwitchingThresholds((), ())

    def stays_on_through_reset(self, cell: CellEquations[B, F]) -> bool:
        """Tell whether a unit that was on stays on at a candidate of 0: the reset does not turn it off."""
        return False

    def line_currents(self, bias: B, mirror: MirrorFit, beta: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return the currents of the unit's two threshold lines, ampere, with what beta adds to either.

        They belong to its first two bias pins.
        """
        raise NotImplementedError(f"beta flows into {self.name}, which has no lines for it")

    @property
    def moving_lines(self) -> tuple[str, str]:
        """Return what a unit's lines are called into which an input-dependent beta flows, as in their rows' names."""
        return ("upper", "beta") if self.has_comparators else ("thresh", "width")


AnyUnit = UnitKind[Any, Any]


def select_levels(levels: Array, states: States) -> Array:
    """Return a recurrent unit's level of every whole state."""
    return levels[states.astype(np.intp)]


def iterate_states(
    candidate: Array, start: States, step: Callable[[NDArray[np.int16], int], NDArray[np.int16]]
) -> NDArray[np.int16]:
    """Return a recurrent unit's whole states (n, time) from `start` (n,) on, by step(state, t)."""
    states = np.empty(candidate.shape, dtype=np.int16)
    state = start.astype(np.int16)
    for t in range(candidate.shape[1]):
        state = step(state, t)
        states[:, t] = state
    return states
