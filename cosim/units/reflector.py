"""The binary reflector: the unit at epsilon = -1 whose updates have both signs.

    S alpha - h where u >= i_rise (S = 1) or u <= i_fall (S = -1),  else kept

In steps of alpha the state is a whole number m, and an update makes S - m of it. The node's state is m + 2^(bits - 1),
so its output is the sum of the currents of its bits, as of a counter. Where S - m would lie above the range, the state
becomes -1 - m.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import MappingError
from cosim.cells.counter import MOST_BITS
from cosim.cells.reflector import reflector
from cosim.circuit.elements import Subcircuit
from cosim.network.ir.states import States
from cosim.technology.types import Technology
from cosim.units.counter import Counter, CounterCell, level_of
from cosim.units.epsilon import EitherLayer, Lattice
from cosim.units.kind import Array, SwitchingThresholds, iterate_states
from cosim.units.placement import LayerPlacement


@dataclass(frozen=True)
class Reflector(Counter):
    """A binary reflector, the recurrent unit at epsilon = -1: S - m of its state m at an update, else kept.

    S is 1 at u >= rise and -1 at u <= fall. No layer becomes a reflector: the toggle hands over the units whose updates
    have both signs.
    """

    low_beside: ClassVar[int] = Counter.low_beside + 1  # `still` or `moves`

    @property
    def schematics(self) -> tuple[str, ...]:
        return ("reflector",)

    def cell(self, technology: Technology, units: int) -> Subcircuit:
        return reflector(technology, units, self.bits, self.start)

    def switching_thresholds(self, cell: CounterCell, lines: Sequence[Array]) -> SwitchingThresholds:
        """Return the thresholds at which the unit's decision changes: both of them in every state."""
        window = self.window(cell, lines)
        return SwitchingThresholds(window, window, own_devices=True)

    def compute_states(self, cell: CounterCell, candidate: Array) -> States:
        rise, fall = self.window(cell)
        sets, resets = candidate >= rise, candidate <= fall

        def step(state: NDArray[np.int16], t: int) -> NDArray[np.int16]:
            turned = self.most - state
            added = np.where(sets[:, t] & (state >= 2), 2, 0)
            return np.where(sets[:, t] | resets[:, t], turned + added, state)

        return iterate_states(candidate, cell.states_before(candidate, self.start), step)


def reflector_node(unit: Lattice, layer: EitherLayer, placement: LayerPlacement, offset: float) -> Reflector:
    """Return a reflector node that holds a unit's states over the data and headroom.

    Raises MappingError where the unit needs more bits than a reflector may have.
    """
    low, high = (unit.count + end for end in unit.circuit_ends(placement.headroom))
    bits = 1 + max(1, max(-low - 1, 0).bit_length(), high.bit_length())
    if bits > MOST_BITS:
        most = 2 ** (MOST_BITS - 1)
        raise MappingError(
            f"{unit.where}: a reflector holds {-most} to {most - 1} steps of alpha, and the state runs from {low} to "
            f"{high} over the training data and {placement.headroom} states beyond; train with "
            f"`range_max={(2 * most - 2 - 2 * placement.headroom) * unit.step:g}`, on shorter sequences or with wider "
            "thresholds",
            where=unit.name, value=max(-low, high), limit=most,
        )  # fmt: skip
    start = unit.count + 2 ** (bits - 1)
    return Reflector(
        unit.name, layer.name, unit.index, placement.stage, level_of(bits), unit.first - start * unit.step, unit.step,
        unit.rise + offset, unit.fall + offset, offset, first=start, bits=bits,
    )  # fmt: skip
