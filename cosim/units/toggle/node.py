"""The toggle as data: what it is in the graph, its bias currents, and a chip's factors."""

from dataclasses import dataclass
from typing import ClassVar

from cosim.ir.nodes import ThresholdUnit


@dataclass(frozen=True)
class Toggle(ThresholdUnit):
    """epsilon = -1: s becomes 1 - s at u >= rise, else kept; s starts at 0. `fall` is not used."""

    two_sided: ClassVar[bool] = False


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
class ToggleFactors:
    """upper: its comparator's current; level: of its state."""

    upper: float = 1.0
    level: float = 1.0
