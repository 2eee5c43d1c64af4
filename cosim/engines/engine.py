"""What a circuit simulator is: a bench goes in, and out come waveforms, or a reason why there are none."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, Voltage
from cosim.technology.types import Technology

Array = NDArray[np.float64]
Vectors = Mapping[str, Array]  # what a simulator prints, by its own names


@dataclass(frozen=True)
class Waveforms:
    """The probes of a bench over `time`, s; of an operating point one value each, and no time."""

    time: Array
    probes: Mapping[Probe, Array]

    def voltage(self, net: str) -> Array:
        """Of a net, V."""
        return self.probes[Voltage(net)]

    def through(self, source: str) -> Array:
        """What flows through a voltage source from its first net to its second, A."""
        return self.probes[Current(source)]

    def delivered(self, source: str) -> Array:
        """What a voltage source delivers out of its first net, A."""
        return -self.probes[Current(source)]

    def drain(self, device: str) -> Array:
        """The size of a transistor's drain current, A."""
        return np.abs(self.probes[DrainCurrent(device)])


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


@dataclass(frozen=True)
class Description:
    """What whoever reads results later wants to know: a simulator's version, and its options in effect."""

    version: str
    options: Mapping[str, str]

    def as_json(self, simulator: str) -> dict[str, object]:
        """As results keep it: the version under the simulator's name."""
        return {simulator: self.version, "options": dict(self.options)}


class Simulator(Protocol):
    """A circuit simulator. It travels to worker processes, so it can be pickled, and so does its Failure."""

    @property
    def name(self) -> str:
        """How the command line and results call it."""
        ...

    @property
    def grace(self) -> float:
        """Seconds beyond a time-out in which it stops by itself; whoever called it waits so long."""
        ...

    def write(self, bench: Bench) -> str:
        """The deck of a bench, which needs nothing else; results are kept under its hash."""
        ...

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Run a bench for at most `timeout` seconds; one in the caller's own process may leave that to the caller.

        A Failure carries what `write` gives. Raises MissingToolError where the simulator is not installed.
        """
        ...

    def check(self) -> None:
        """Raises MissingToolError where the simulator is not installed."""
        ...

    def describe(self, technology: Technology) -> Description:
        """What benches of this technology run in. Raises MissingToolError where the simulator is not installed."""
        ...
