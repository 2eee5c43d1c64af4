"""The register as data: what it is in the graph, its bias currents, and a chip's factors."""

from dataclasses import dataclass

from cosim.ir.nodes import Storing


@dataclass(frozen=True)
class Register(Storing):
    """alphaCMRU at epsilon = 0: the number of turns that +v exceeds at u >= rise, that -v exceeds at u <= fall, else
    kept; s starts at `first`."""

    first: int = 0

    @property
    def start(self) -> int:
        """The levels that the reset leaves on."""
        return self.first


@dataclass(frozen=True)
class RegisterPins:
    """Bias-pin currents in ampere; i_turns: of each level."""

    i_upper: float
    i_lower: float
    i_gain: float
    i_keep: float
    i_release: float
    i_turns: tuple[float, ...]


@dataclass(frozen=True)
class RegisterFactors:
    """upper, lower: the comparators' currents; turns, levels: threshold and output of each level, none for all
    nominal."""

    upper: float = 1.0
    lower: float = 1.0
    turns: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()
