"""The ladder as data: what it is in the graph, its bias currents, and a chip's factors."""

from dataclasses import dataclass

from cosim.cells.ladder import LadderBias
from cosim.ir.nodes import ThresholdUnit


@dataclass(frozen=True)
class Ladder(ThresholdUnit):
    """epsilon = 1: s + 1 at u >= rise, s - 1 at u <= fall, else kept, within 0 ... rungs; s starts at `first`."""

    rungs: int = 1
    first: int = 0

    @property
    def most(self) -> int:
        """The highest state: all rungs on."""
        return self.rungs

    @property
    def start(self) -> int:
        """The rungs that the reset turns on."""
        return self.first


@dataclass(frozen=True)
class LadderPins:
    """Bias-pin currents in ampere of a ladder with its quantiser."""

    i_upper: float
    i_lower: float
    i_base: float
    i_delta: float
    ladder: LadderBias


@dataclass(frozen=True)
class LadderFactors:
    """upper, lower: the comparators' currents; levels: of each rung from the first on, none for all nominal."""

    upper: float = 1.0
    lower: float = 1.0
    levels: tuple[float, ...] = ()
