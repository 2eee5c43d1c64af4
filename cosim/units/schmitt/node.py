"""The Schmitt trigger as data: what it is in the graph, its bias currents, and a chip's factors."""

from dataclasses import dataclass

from cosim.ir.nodes import ThresholdUnit


@dataclass(frozen=True)
class Schmitt(ThresholdUnit):
    """epsilon = 0: s becomes 1 at u >= rise + beta, 0 at u <= fall - beta, else kept; s starts at 0, or at 1 if `on`.

    beta = sum of the beta edges (0 without them).
    """

    on: bool = False

    @property
    def start(self) -> int:
        return int(self.on)


@dataclass(frozen=True)
class SchmittBias:
    """Bias-pin currents in ampere that realise the thresholds and the level.

    With an input-dependent threshold the pins carry the constant part, and the diodes of the two lines are
    of other lengths: they carry `trim_thresh` and `trim_width` times what the cell compares, so that beta arrives with
    the right slope.
    """

    i_thresh: float
    i_width: float
    i_gain: float
    trim_thresh: float = 1.0
    trim_width: float = 1.0


@dataclass(frozen=True)
class SchmittFactors:
    """compared: what the cell compares, over its candidate; thresh, width: its threshold and width currents; level: of
    its state."""

    compared: float = 1.0
    thresh: float = 1.0
    width: float = 1.0
    level: float = 1.0
