"""The protocol of a recurrent unit: one class that is the unit's node in the graph and has its equations.

Stages own the loops over a network, and each kind of unit owns its equations. The stages of the compiler ask in this
order: whether a layer becomes this kind (`accepts`), which nodes it becomes (`lower_layer`), which currents its
set-points are (`set_points`), which bias currents make them (`solve_bias`), its circuit (`build_circuit`) and the rows
of the mapping report (`report_pins`). The behavioral engine asks for a unit's states frame by frame (`compute_states`),
its output (`output_current`), its supply current (`supply_current`) and the candidates at which its decision changes
(`switching_thresholds`). The study of variation asks how mismatch of its transistors acts (`mismatch_effects`).

The other classes are records that the methods of `UnitKind` take and return.
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
    """One recurrent unit on a chip: the numbers that its kind's equations need beside the unit's node.

    set_points: (rise, fall, high) that the compiler wanted, ampere; bias: the unit's bias currents; factors: those of
    the chip's mismatch; ideal: whether gains are 1 and set-points exactly as wanted. beta: current of its beta edges,
    ampere, (n, time) or 0, first as it arrives in the threshold line, then as it arrives once in the width line; for
    rate edges the first is their sum. initial_states: states before the first frame, (n,), None for the reset's;
    values: currents of its value edges, (n, time) each, ampere.
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
        """Return the unit's states before the first frame, (n,): its `initial_states`, or `reset` if it has none.

        candidate: (n, time), for n; reset: the state that the reset leaves.
        """
        return np.full(len(candidate), reset) if self.initial_states is None else self.initial_states

    def level_current(self, i_gain: float) -> float:
        """Return the output current of one state step on the chip, ampere, for a bias current of `i_gain` ampere."""
        return self.set_points[2] if self.ideal else float(self.calibration.schmitt.i_high(np.float64(i_gain)))


@dataclass(frozen=True)
class CellSignals:
    """Signals of one recurrent unit, each (n, time), from which its kind computes its supply current.

    candidate: u, ampere; states: its states; output_current: ampere; state_changes: function that returns 1 where the
    frame's decision changed the state, else 0; beta: the sum of the unit's beta or rate edges, ampere.
    """

    candidate: Array
    states: States
    output_current: Array
    state_changes: Callable[[], NDArray[np.int16]]
    beta: Array | np.float64


@dataclass(frozen=True)
class SwitchingThresholds:
    """The candidates at which a recurrent unit's decision changes, ampere, each a scalar or (frames,).

    while_off: thresholds that count while the state before is 0; while_on: those that count while it is not 0.
    own_devices: whether each threshold has devices of its own; otherwise the lower one is the upper one less a width.
    turns: of a unit that stores a value, the values at which it writes another level, ampere. They are compared with +v
    where the candidate is above the first threshold, and with -v where it is below the second.
    """

    while_off: tuple[Array, ...]
    while_on: tuple[Array, ...]
    own_devices: bool = False
    turns: tuple[float, ...] = ()


@dataclass(frozen=True)
class Effect:
    """One mismatch effect: a factor of a recurrent unit's currents, and the transistors whose mismatch makes it.

    field: name of the factor in `Deviations`, or in the unit's `factors_type` if `factors` is that type; key: node or
    edge that the factor belongs to; place: index if the field has several values; devices: (transistor, +1 or -1), the
    sign with which its deviation counts; current: through each of them, ampere; slopes: slope factor n of each at that
    current.
    """

    field: str
    key: Key
    place: int | None
    devices: tuple[tuple[str, int], ...]
    current: float
    slopes: tuple[float, ...] = ()
    factors: type[object] | None = None


def effect(field: str, key: Key, current: float, *devices: tuple[str, int], place: int | None = None) -> Effect:
    """Return the mismatch effect of these transistors, each (name, +1 or -1), on a unit's currents; see `Effect`."""
    return Effect(field, key, place, devices, current)


@dataclass(frozen=True)
class CellDevices:
    """The transistors of one recurrent unit in its circuit, looked up by their role.

    name: of the unit's node; pins: its bias pins; set_points: ampere; roles: `Circuit.roles` of the network.
    """

    name: str
    pins: tuple[str, ...]
    set_points: MemoryCurrents
    roles: Mapping[tuple[str, Role], str]

    def device(self, role: Role, block: str = "") -> str:
        """Return the name of the transistor with this role in the unit's cell, or in block `block` of that cell."""
        return self.roles[instance(f"cell_{net(self.name)}{block and '.'}{block}"), role]

    def bias_diode(self, pin: str) -> str:
        """Return the name of the transistor that is the diode of a bias pin of the unit."""
        return self.roles[instance(pin), "bias"]

    @property
    def candidate_diode(self) -> str:
        """Return the name of the transistor that is the diode of the unit's candidate."""
        return self.roles[instance(f"cand_{net(self.name)}"), "candidate"]

    def comparator_effect(self, side: str, current: float, comparator: str, pin: str) -> Effect:
        """Return the mismatch effect on a comparator: M2 against its bias diode, the candidate diode against M1.

        side: field of the effect; current: of the threshold, ampere; comparator: path of its instance; pin: its bias
        pin.
        """
        threshold, compare = self.roles[comparator, "threshold"], self.roles[comparator, "compare"]
        devices = (threshold, 1), (self.bias_diode(pin), -1), (compare, -1), (self.candidate_diode, 1)
        return effect(side, self.name, current, *devices)


@dataclass(frozen=True)
class LearnedParameters:
    """Names of a recurrent unit's learned parameters, for its rows in the mapping report.

    upper, lower, alpha: names of its thresholds and level; upper_note, lower_note: how the circuit's thresholds follow
    from the learned ones; set_points: ampere; pins: the unit's bias pins, in the order of its pin record.
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

    target, realised: both in `unit`. For a weight (unit 1) they are the weight wanted and built. For a threshold or
    level (unit A, status calibrated) they are the current wanted at the cell, and the bias current on the pin that
    makes it. status: exact, rounded, rounds to zero, cut at the largest mirror, calibrated, or left out (with a cell
    that is constant); note: what was folded into the parameter (cosim.compiler.mapping).
    """

    parameter: str
    element: str
    target: float
    realised: float
    unit: str
    status: str
    note: str = ""


def pin_row(parameter: str, pin: str, target: float, realised: float, note: str) -> MappingRow:
    """Return the mapping report's row for a unit's threshold or level and the bias pin that makes it, both ampere."""
    return MappingRow(parameter, pin, target, realised, "A", "calibrated", note)


class UnitKind(Memory, ABC, Generic[B, F]):
    """A kind of recurrent unit: a node of the graph, with the functions and properties that the package's stages need.

    factors_type: type of a chip's factors on the unit, all 1 by default; layer_types: types of layer that may become
    it. resumes_from_state: whether `compute_states` begins with `CellEquations.initial_states`, which feedback needs.
    updates_in_pulse: whether the unit's state changes in a pulse after the decision; has_time_constant: whether it is a
    slow unit, with `tau`; samples_candidate: whether a sample gate freezes its candidate, whose noise is then known.
    has_comparators: whether comparators decide about its candidate; these may have several devices in parallel.
    trimmed: (index of a bias pin of the cell, field of a chip's factors that scales with that pin's current), in the
    order upper threshold, lower threshold or width, level, then other fields that scale with the level's pin; empty for
    a unit that is not trimmed. measure_fit: function of (technology, calibration of the cells, simulator) that measures
    the unit's own circuit; its result goes into `Calibration.own`. None for a unit that needs no measurement.
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
        """Tell whether a layer becomes this kind of unit; False for a kind that only other parts of cosim create."""
        return False

    @staticmethod
    def lower_layer(layer: Any, placement: LayerPlacement) -> None:  # noqa: ANN401 - one of `layer_types`
        """Add to the graph a unit of this kind for each software unit of a layer, with the rows of its weights."""
        raise NotImplementedError(f"{layer.name} becomes no unit of this kind")

    @staticmethod
    def check_timing(i_unit: float, t_step: float, tau: float, calibration: Calibration, origin: str) -> None:
        """Raise MappingError if this kind of unit cannot work at this i_unit, ampere per 1.0, and frame t_step, s.

        tau: time constant of slow units, s; origin: file, for the message.
        """

    def set_points(self, currents: MemoryCurrents, *, moving: bool) -> tuple[SetPoint, ...]:
        """Return those of the unit's currents, ampere, that have limits, each with its limits.

        moving: whether the unit's thresholds move with the input.
        """
        return ()

    def settled_state(self, candidate: float) -> int | None:
        """Return the state that the unit keeps from the first frame on if its candidate never changes.

        None if the state goes on changing, or a threshold is too near to say. candidate: in software units.
        """
        return None

    @abstractmethod
    def solve_bias(self, sizing: SizingInput) -> B:
        """Return the bias currents that make the unit's set-points. Raises UnitCurrentError if none do."""

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
        """Return the unit's states (n, time): whole numbers, or h over full scale where the state is analog.

        candidate: (n, time), ampere.
        """

    @abstractmethod
    def output_current(self, cell: CellEquations[B, F], states: States) -> Array:
        """Return the current that the unit delivers in these states, without its pedestal, ampere, (n, time)."""

    @abstractmethod
    def supply_current(self, cell: CellEquations[B, F], signals: CellSignals) -> Array:
        """Return the current that the unit draws from V_DD, its output and pedestal included, ampere, (n, time)."""

    @abstractmethod
    def mismatch_effects(self, bias: B, circuit: CellDevices, /) -> Iterator[Effect]:
        """Yield the effects that mismatch of the unit's transistors has on its currents, fields of `factors_type`."""

    def switching_thresholds(self, cell: CellEquations[B, F], lines: Sequence[Array]) -> SwitchingThresholds:
        """Return the candidates at which the unit's decision changes, ampere; none for an analog state.

        lines: currents of the unit's threshold lines, ampere, (frames,) each, if it has lines of its own.
        """
        return SwitchingThresholds((), ())

    def stays_on_through_reset(self, cell: CellEquations[B, F]) -> bool:
        """Tell whether a unit that was on stays on at a candidate of 0, so that the reset does not turn it off."""
        return False

    def line_currents(self, bias: B, mirror: MirrorFit, beta: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return the currents of the unit's two threshold lines, those of its first two bias pins, ampere.

        bias: its bias currents; beta: what its beta adds to the first and to the second line, ampere.
        """
        raise NotImplementedError(f"beta flows into {self.name}, which has no lines for it")

    @property
    def moving_lines(self) -> tuple[str, str]:
        """Return the names of the two lines into which an input-dependent beta flows, as in their rows' names."""
        return ("upper", "beta") if self.has_comparators else ("thresh", "width")


AnyUnit = UnitKind[Any, Any]


def select_levels(levels: Array, states: States) -> Array:
    """Look up levels[state] for each of a unit's whole states. levels: (states,); states: (n, time)."""
    return levels[states.astype(np.intp)]


def iterate_states(
    candidate: Array, start: States, step: Callable[[NDArray[np.int16], int], NDArray[np.int16]]
) -> NDArray[np.int16]:
    """Iterate a recurrent unit's states from `start` (n,) over all frames; return them, whole numbers (n, time).

    candidate: (n, time), for the shape; step: function (states before, t) -> states after frame t, (n,).
    """
    states = np.empty(candidate.shape, dtype=np.int16)
    state = start.astype(np.int16)
    for t in range(candidate.shape[1]):
        state = step(state, t)
        states[:, t] = state
    return states
