"""The protocols of engines and simulators, and what a run of them needs and returns.

An engine runs a design on samples. A simulator runs one circuit, from its bench to waveforms. Both return a Failure
with its reason where there is no result. cosim.engines.simulation.simulated makes an engine of a simulator.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench, Current, DrainCurrent, Probe, SmallSignalBench, Stress, Voltage
from cosim.circuit.measures import Interpolation
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
    """Return a progress function for one part of a run of `total` simulations, `before` of which precede the part."""
    return lambda done, _: progress(before + done, total)


@dataclass(frozen=True)
class Waveforms:
    """Simulated waveforms of a bench's probes over `time`, s.

    An operating point has one value of each probe, and an empty `time`.
    """

    time: Array
    probes: Mapping[Probe, Array]

    def voltage(self, net: str) -> Array:
        """Return the simulated voltage of a net, V."""
        return self.probes[Voltage(net)]

    def through(self, source: str) -> Array:
        """Return the simulated current through a voltage source, from its first net to its second, A."""
        return self.probes[Current(source)]

    def delivered(self, source: str) -> Array:
        """Return the simulated current that a voltage source delivers out of its first net, A."""
        return -self.probes[Current(source)]

    def drain(self, device: str) -> Array:
        """Return the magnitude of a transistor's simulated drain current, A."""
        return np.abs(self.probes[DrainCurrent(device)])


class FailureKind(Enum):
    """Reasons why an engine's run has no result; each value is the sentence that a user reads."""

    DECK = "the simulator rejected the deck"
    CONVERGENCE = "the simulator found no convergence"
    TIMEOUT = "the run exceeded its time-out"
    CRASH = "the simulator process died"
    UNSUPPORTED = "the engine has no model for this"


@dataclass(frozen=True)
class Failure:
    """A failed run of an engine: its kind, the simulator's own words, and the deck, empty for none."""

    kind: FailureKind
    detail: str
    deck: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.detail}"


@dataclass(frozen=True)
class Inference:
    """An engine's result for one sample.

    states: (frames, cells), whole numbers, or real ones where a state is a current; readout: (frames, outputs), ampere.
    power_w: mean over the frames, watt: what transistors, bias and input currents take from V_DD, and what a readout
    stage delivers to an output that pulls. What an output pushes counts as well: the stage sinks it to ground, and no
    supply gets it back.
    delivered: mean current that each meter's source delivers in each window, (windows, meters), ampere.
    margins: distance of each decision's candidate from its threshold, (frames, cells), ampere, inf for a cell that
    compares nothing, empty where margins were not measured.
    latches: distance of the nearest net that shows a state from its threshold, (frames, cells), volt; empty as
    `margins`. For a quantiser the distance of its pulse from half a step counts, where a whole step is worth the
    threshold voltage.
    elsewhere: the simulator that ran in place of the run's simulator, and why, in words; empty where none did.
    lines: which class lines are high when the chip's own decision is read, (outputs,); empty for a chip without one.
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
        """Return the class that the simulated chip itself decided, None where the chip has no class lines."""
        return chosen_class(self.lines)


Outcome = Inference | Failure


@dataclass(frozen=True)
class Run:
    """The settings of an engine's run.

    folder: where finished inferences are kept, None for nowhere; jobs: number of worker processes, 0 to run samples in
    this process, one after the other as their outcomes are asked for; timeout: seconds for each inference; timing: of
    the frames; engine: its name; condition: None for the nominal one; chip: None for transistors that do not deviate;
    noise: at decisions of the behavioral model, or of the devices in a simulated transient, None for none; stress:
    function that changes each bench of a simulator, None for none.
    """

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
        """Return the folder of the engine's run; a run without one is an AssertionError."""
        assert self.folder is not None, "this needs a folder for its results"
        return self.folder

    def standing(self, design: Design) -> Condition:
        """Return the condition in which the engine runs a design: the run's, with its chip's supply and temperature."""
        return standing(design, self.condition, self.chip)


@dataclass(frozen=True)
class Description:
    """The provenance of an engine's results: the version of its simulator, and the options in effect, name -> value."""

    version: str
    options: Mapping[str, str]

    def as_json(self, simulator: str) -> dict[str, object]:
        """Return the engine's description as result files keep it, with the version under the simulator's name."""
        return {simulator: self.version, "options": dict(self.options)}


def count_elsewhere(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Count the samples that an engine gave to another simulator, by the simulator and the reason."""
    return dict(Counter(found.elsewhere for found in outcomes if isinstance(found, Inference) and found.elsewhere))


def chosen_class(lines: NDArray[np.bool_]) -> int | None:
    """Return the class that the class lines of a chip show, NO_CLASS unless exactly one line is high.

    lines: which of them are high, (outputs,), empty for a chip without class lines, for which None is returned.
    """
    if not lines.size:
        return None
    return int(lines.argmax()) if lines.sum() == 1 else NO_CLASS


def decided_by(inferences: Sequence[Inference], answers: Answers) -> Answers:
    """Return the answers (n,) of simulated samples; the class lines of a chip count before its readout.

    answers: those of the readout, which are kept for samples of chips without class lines.
    """
    answers = answers.copy()
    for k, one in enumerate(inferences):
        if one.chosen is not None:
            answers[k] = one.chosen
    return answers


class Engine(Protocol):
    """An engine, which runs inferences of a design; it can be pickled, so that worker processes can have it."""

    @property
    def name(self) -> str:
        """Return the engine's name, which the command line and results use."""
        ...

    def infer(self, design: Design, test_set: TestSet, run: Run, progress: Progress) -> Iterator[Outcome]:
        """Yield the engine's outcome of each sample, in the order of the samples, each as long as its valid steps."""
        ...

    def unreset(self, design: Design, test_set: TestSet, run: Run) -> tuple[str, ...] | Failure:
        """Return the 9T cells that the reset does not turn off in this engine; `test_set` must have a sample."""
        ...

    def decks(self, design: Design, test_set: TestSet, run: Run) -> Iterator[str]:
        """Yield the deck of each sample for the engine's simulator, or nothing for an engine without one."""
        ...

    def check(self) -> None:
        """Raise MissingToolError where a tool that the engine needs is not installed."""
        ...

    def describe(self, technology: Technology) -> Description:
        """Return the engine's version and options for designs of this technology. Raises the errors of `check`."""
        ...


class Simulator(Protocol):
    """A circuit simulator; it and its Failure can be pickled, so that worker processes can have them."""

    @property
    def name(self) -> str:
        """Return the simulator's name, which the command line and results use."""
        ...

    @property
    def grace(self) -> float:
        """Return the seconds after a time-out within which the simulator stops by itself; its caller waits so long."""
        ...

    @property
    def lanes(self) -> int:
        """Return how many benches of one circuit the simulator runs at once; with more than 1 it is a `Batched`."""
        ...

    def write(self, bench: Bench) -> str:
        """Return the simulator's complete deck of a bench; a result is kept under the hash of its deck."""
        ...

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Simulate a bench for at most `timeout` seconds and return its waveforms, or why there are none.

        A simulator that runs in the caller's own process may leave the time-out to the caller. A Failure has the deck
        of `write`. Raises MissingToolError where the simulator is not installed.
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


@dataclass(frozen=True)
class SmallSignals:
    """Small signals and noise of a circuit at the frequencies of its bench.

    point: net -> V at the operating point; response: net or source -> complex amplitude, V, or A from the source's
    first net through it to its second, (frequencies,); noise: one-sided density of the noisy net's voltage, V^2/Hz,
    (frequencies,), empty without such a net.
    """

    point: Mapping[str, float]
    response: Mapping[Voltage | Current, NDArray[np.complex128]]
    noise: Array


@runtime_checkable
class SmallSignalSimulator(Simulator, Protocol):
    """A simulator that also computes small signals and noise."""

    def small_signals(self, bench: SmallSignalBench) -> SmallSignals:
        """Compute the small signals and the noise of a circuit.

        Raises SimulationError where the simulator fails, MissingToolError where it is not installed.
        """
        ...


@runtime_checkable
class Starting(Simulator, Protocol):
    """A simulator that finds the operating point of a bench once and begins there."""

    def begun(self, bench: Bench) -> Bench:
        """Return the bench as the simulator runs it, from its operating point, or unchanged where none is found."""
        ...


@runtime_checkable
class Batched(Simulator, Protocol):
    """A simulator that runs benches side by side: one circuit, with values of sources and deviations of their own.

    The result of a bench does not depend on the other benches. A bench that the simulator has no model for is a Failure
    of kind UNSUPPORTED, whose detail names what is unsupported; the technology's reference simulator runs that bench,
    unless it has noise of its transistors.
    """

    def run_all(self, benches: Sequence[Bench], timeout: float) -> list[Waveforms | Failure]:
        """Simulate at most `lanes` benches for at most `timeout` seconds in all; they may end at different times.

        Returns one result for each bench, in their order. Results that share one `time` array are read faster, most of
        all if a probe's values are rows of one array.
        """
        ...


@runtime_checkable
class ChipBatched(Batched, Protocol):
    """A batched simulator that takes one bench and the deviations of many chips, in place of a bench for each chip."""

    @property
    def interpolation(self) -> Interpolation:
        """Return the rule by which measures are read from its transients."""
        ...

    def run_chips(self, bench: Bench, chips: Sequence[Chip], timeout: float) -> list[Waveforms | Failure]:
        """Simulate a bench on drawn chips for at most `timeout` seconds in all, and return one result for each chip.

        The transistors of the chips deviate; supply and temperature are the bench's.
        """
        ...
