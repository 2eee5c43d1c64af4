"""The protocols: an engine runs a design; a simulator runs a circuit, from a bench to its waveforms.

Either may have a reason why there is no result. cosim.engines.simulation.simulated makes an engine of a simulator.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, Stress, Voltage
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design
from cosim.engines.chip import standing
from cosim.network.ir.states import States
from cosim.tasks.target import Answers
from cosim.tasks.testset import TestSet
from cosim.technology.types import Technology
from cosim.variation.draws import Chip
from cosim.variation.noise import NoiseSimulation

Array = NDArray[np.float64]
Vectors = Mapping[str, Array]  # what a simulator prints, by its own names
DEFAULT_TIMEOUT = 600.0  # s per inference
NO_CLASS = -1
Progress = Callable[[int, int], None]


def part_of(progress: Progress, before: int, total: int) -> Progress:
    """Return the progress of a part of a run of `total` simulations; `before` of them come before this part."""
    return lambda done, _: progress(before + done, total)


@dataclass(frozen=True)
class Waveforms:
    """Simulated waveforms: the probes of a bench over `time`, s. An operating point has one value each, and no time."""

    time: Array
    probes: Mapping[Probe, Array]

    def voltage(self, net: str) -> Array:
        """Read a net's voltage from the waveforms that a simulator returned, V."""
        return self.probes[Voltage(net)]

    def through(self, source: str) -> Array:
        """Read from a simulator's waveforms the current in a voltage source from its first net to its second, A."""
        return self.probes[Current(source)]

    def delivered(self, source: str) -> Array:
        """Read from a simulator's waveforms the current that a voltage source delivers out of its first net, A."""
        return -self.probes[Current(source)]

    def drain(self, device: str) -> Array:
        """Read from a simulator's waveforms the size of a transistor's drain current, A."""
        return np.abs(self.probes[DrainCurrent(device)])


class FailureKind(Enum):
    """Reasons why an engine's run has no result; the value is the sentence that a user reads."""

    DECK = "the simulator rejected the deck"
    CONVERGENCE = "the simulator found no convergence"
    TIMEOUT = "the run exceeded its time-out"
    CRASH = "the simulator process died"
    UNSUPPORTED = "the engine has no model for this"


@dataclass(frozen=True)
class Failure:
    """A run that an engine failed to do: its kind, the simulator's own words, and the deck that did it, if one did."""

    kind: FailureKind
    detail: str
    deck: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.detail}"


@dataclass(frozen=True)
class Inference:
    """An engine's result for one sample.

    states (time, cells), whole; readout (time, outputs), ampere; power_w: mean over the frames, watt.
    power_w: what transistors, bias and input currents take from V_DD, and what a readout stage delivers to an output
    that pulls. What an output pushes is in it, too: the stage sinks that to ground, and no supply gets it back.
    delivered: mean current that each meter's source delivers in each window, (windows, meters), ampere.
    margins: how far each decision was from its threshold, (frames, cells), ampere, inf where it has none; empty where
    nothing measured them; latches: likewise how far the nearest net that shows it was from its threshold, volt, or a
    quantiser's pulse from half a step, which counts as the supply.
    elsewhere: what ran it in place of the run's simulator, and why; empty where nothing did.
    lines: which class lines were high when the decision on the chip was read, (outputs,); empty without one.
    """

    states: States
    readout: NDArray[np.float64]
    power_w: float
    delivered: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    margins: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    latches: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    elsewhere: str = ""
    lines: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def chosen(self) -> int | None:
        """Return the class that the simulated chip itself decided, None without lines.

        It is NO_CLASS unless one line alone is high.
        """
        if not self.lines.size:
            return None
        return int(self.lines.argmax()) if self.lines.sum() == 1 else NO_CLASS


Outcome = Inference | Failure


@dataclass(frozen=True)
class Run:
    """Settings of a run: by which engine, in which condition (None: the nominal one), on which chip (None: one that
    does not deviate), in what frames; by how many processes, for how many second each at most, and where finished ones
    are kept. Without processes, jobs 0, samples run one after the other as their outcomes are asked for. noise: of the
    behavioral model's decisions, None for none; stress: of the benches of a simulator, None for none."""

    folder: Path | None = None
    jobs: int = 1
    timeout: float = DEFAULT_TIMEOUT
    timing: Timing = Timing()
    engine: str = "ngspice"
    condition: Condition | None = None
    chip: Chip | None = None
    noise: NoiseSimulation | None = None
    stress: Stress | None = None

    @property
    def place(self) -> Path:
        """Return the folder of the engine's run; the run must have one."""
        assert self.folder is not None, "this needs a folder for its results"
        return self.folder

    def standing(self, design: Design) -> Condition:
        """Return the condition in which an engine runs a design, with supply and temperature of the run's chip if there
        is one."""
        return standing(design, self.condition, self.chip)


@dataclass(frozen=True)
class Description:
    """The provenance of an engine's results: a simulator's version, and its options in effect."""

    version: str
    options: Mapping[str, str]

    def as_json(self, simulator: str) -> dict[str, object]:
        """Return the engine's description as result files keep it: the version under the simulator's name."""
        return {simulator: self.version, "options": dict(self.options)}


def count_elsewhere(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Count the samples that an engine gave to another simulator, by which one and why."""
    return dict(Counter(found.elsewhere for found in outcomes if isinstance(found, Inference) and found.elsewhere))


def decided_by(inferences: Sequence[Inference], answers: Answers) -> Answers:
    """Return the answers (n,) of simulated samples: where a chip has decision lines of its own, the class they showed.

    answers: of the readout, which stand for samples without such lines.
    """
    answers = answers.copy()
    for k, one in enumerate(inferences):
        if one.chosen is not None:
            answers[k] = one.chosen
    return answers


class Engine(Protocol):
    """An engine, which runs inferences of a design. It travels to worker processes, so it can be pickled."""

    @property
    def name(self) -> str:
        """Return the engine's name, which the command line and results use."""
        ...

    def infer(self, design: Design, test_set: TestSet, run: Run, progress: Progress) -> Iterator[Outcome]:
        """Yield the engine's outcomes in the order of the samples, each as long as its valid steps."""
        ...

    def unreset(self, design: Design, test_set: TestSet, run: Run) -> tuple[str, ...] | Failure:
        """Return the 9T cells that the reset does not turn off in this engine; `test_set` has a sample at least."""
        ...

    def decks(self, design: Design, test_set: TestSet, run: Run) -> Iterator[str]:
        """Yield the deck of each sample for the engine's simulator; nothing where there is none."""
        ...

    def check(self) -> None:
        """Raise MissingToolError where something that the engine needs is not installed."""
        ...

    def describe(self, technology: Technology) -> Description:
        """Return the engine's version and options for designs of this technology. Raises the error of `check`."""
        ...


class Simulator(Protocol):
    """A circuit simulator. It travels to worker processes, so it can be pickled, and so does its Failure."""

    @property
    def name(self) -> str:
        """Return the simulator's name, which the command line and results use."""
        ...

    @property
    def grace(self) -> float:
        """Return the seconds beyond a time-out in which the simulator stops by itself; its caller waits so long."""
        ...

    @property
    def lanes(self) -> int:
        """Return how many benches of one circuit the simulator runs at once; one with more than 1 is a `Batched`."""
        ...

    def write(self, bench: Bench) -> str:
        """Return the simulator's deck of a bench, which needs nothing else; results are kept under its hash."""
        ...

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Simulate a bench for at most `timeout` seconds; one in the caller's own process may leave that to the caller.

        A Failure carries what `write` gives. Raises MissingToolError where the simulator is not installed.
        """
        ...

    def check(self) -> None:
        """Raise MissingToolError where the simulator is not installed."""
        ...

    def describe(self, technology: Technology) -> Description:
        """Return the simulator's version and options for benches of this technology.

        Raises MissingToolError where the simulator is not installed.
        """
        ...


@runtime_checkable
class Starting(Simulator, Protocol):
    """A simulator that finds the operating point of a bench once and begins there."""

    def begun(self, bench: Bench) -> Bench:
        """Return the bench as the simulator runs it, from its operating point; itself where none can be found."""
        ...


@runtime_checkable
class Batched(Simulator, Protocol):
    """A simulator that runs benches side by side: one circuit, in which values of sources and deviations differ.

    What it gives for a bench does not depend on those beside it. A bench that it has no model for is a Failure of kind
    UNSUPPORTED, whose detail says what for; `fallback` runs that one instead.
    """

    @property
    def fallback(self) -> str:
        """Return the name of the simulator that runs benches that this batched engine cannot."""
        ...

    def run_all(self, benches: Sequence[Bench], timeout: float) -> list[Waveforms | Failure]:
        """Simulate at most `lanes` benches, which may end at different times, for at most `timeout` seconds in all.

        Returns as many, in their order. Those that share one `time` array are read together, which is faster, most of
        all where the values of a probe are rows of one array.
        """
        ...
