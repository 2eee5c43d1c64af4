"""What a run of a simulator gives: waveforms, or a reason why there are none. The same for every simulator."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Waveforms = Mapping[str, NDArray[np.float64]]


class FailureKind(Enum):
    """Why a run has no result; the value is the sentence that a user reads."""

    DECK = "the simulator rejected the deck"
    CONVERGENCE = "the simulator found no convergence"
    TIMEOUT = "the run exceeded its time-out"
    CRASH = "the simulator process died"


@dataclass(frozen=True)
class Failure:
    """A run that failed: its kind, the simulator's own words, and the deck that did it."""

    kind: FailureKind
    detail: str
    deck: str
