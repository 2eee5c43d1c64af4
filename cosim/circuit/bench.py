"""A bench: a circuit with everything that drives it, what is run, what is saved, and where it begins; data, no text.

What another run of the same bench is, is `dataclasses.replace` of it: `held`, `resting`, `started`, `relaxed`. A stress
bends its sources, so that every engine runs the same: a supply that is not still, a supply that comes up, and clocks
that are not in step. All logic comes from drivers on the same supply: what is high follows it. Bias and input currents
stay what they are, but while the supply comes up they grow with it, and so does what the readout's ground is below it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.elements import GROUND, Circuit, Element, Source
from cosim.technology.types import Technology

SUPPLY = "dd"  # the source of V_DD
Array = NDArray[np.float64]
_AT_ONCE = 1e-5  # s; a transient of one step


@dataclass(frozen=True)
class Tolerances:
    """Tolerances that a bench sets in a simulator, by ngspice's names.

    They are in siemens, ampere, volt, coulomb; reltol and trtol are relative. xmu: weight of the trapezoidal rule, 0.5
    undamped; below that its ringing after a switch event dies out. ngspice's own defaults are made for milliampere:
    gmin 1e-12 alone adds 2.5 pA of leakage that no device has.
    """

    gmin: float = 1e-16
    abstol: float = 1e-15
    vntol: float = 1e-6
    chgtol: float = 1e-17
    reltol: float = 1e-4
    trtol: float = 20.0
    xmu: float = 0.4


PRECISE = Tolerances(abstol=1e-17, vntol=1e-8, chgtol=1e-19, reltol=1e-5, trtol=1.0, xmu=0.5)


@dataclass(frozen=True)
class Tran:
    """A bench's analysis: a transient from 0 to `end` in steps of at most `step`, s."""

    step: float
    end: float


@dataclass(frozen=True)
class Op:
    """A bench's analysis: the operating point."""


@dataclass(frozen=True)
class Dc:
    """A bench's analysis: operating points while a source's value, such as that of `pull`, goes from start to stop."""

    kind: Literal["v", "i"]
    source: str
    start: float
    stop: float
    step: float


Analysis = Tran | Op | Dc


@dataclass(frozen=True)
class Voltage:
    """A probe in a circuit's bench: the voltage of a net to ground, V.

    An inner net goes by its path, such as `xnetwork.xcell.v0`.
    """

    net: str


@dataclass(frozen=True)
class Current:
    """A probe in a circuit's bench: the current through a voltage source, A.

    The source is at the top level; its first net is where the current enters.
    """

    source: str


@dataclass(frozen=True)
class DrainCurrent:
    """A probe in a circuit's bench: a transistor's drain current, A, with the simulator's sign.

    The transistor goes by its path, such as `network.cell.4`.
    """

    device: str


Probe = Voltage | Current | DrainCurrent


@dataclass(frozen=True)
class TransientNoise:
    """White noise currents in a bench's transient, normal numbers `step` s apart.

    They are linear in between, so one-sided 2 rms^2 step up to half of 1/step. key: 64 bits, of the numbers. sources:
    (net, rms A) from a net to ground. slopes: of n and p devices in weak inversion, I / (g_m U_T): with them every
    transistor whose source is on its bulk has the noise of its own current.
    """

    step: float
    key: int
    sources: tuple[tuple[str, float], ...] = ()
    slopes: tuple[float, float] | None = None


@dataclass(frozen=True)
class Bench:
    """A bench: a circuit as data with all that a simulator needs to run it: analysis, technology, probes and start.

    technology: of its devices, with corner, temperature and supply. probes: what is saved; none: every net's voltage.
    preset: nets that begin at the supply; start: (net, V) where the search of the operating point begins. skip_still:
    devices whose terminals stand still are not evaluated, which is safe from a known point on. from_rest: other benches
    are the same circuit at time 0, so a simulator may find that point once and begin there. notes: comments. noise:
    of a transient, None for none.
    """

    circuit: Circuit
    technology: Technology
    analysis: Analysis
    probes: tuple[Probe, ...] = ()
    tolerances: Tolerances = Tolerances()
    preset: tuple[str, ...] = ()
    start: tuple[tuple[str, float], ...] = ()
    skip_still: bool = False
    from_rest: bool = False
    notes: tuple[str, ...] = ()
    noise: TransientNoise | None = None

    @property
    def transient(self) -> Tran:
        """Return the bench's analysis, which must be a transient."""
        assert isinstance(self.analysis, Tran), f"{self.circuit.title} asks for {self.analysis}, not for a transient"
        return self.analysis


def held(bench: Bench, seconds: float) -> Bench:
    """Return the bench with a circuit's sources held for `seconds` s at their values of time 0."""
    return replace(_with_elements(bench, _frozen), analysis=replace(bench.transient, end=seconds))


def resting(bench: Bench) -> Bench:
    """Return a copy of a circuit's bench, as data, that finds all voltages at time 0 in a transient of one step.

    Sources stand still. The voltages are the same for all samples of a network. It is a transient, because `preset`
    holds nets in its operating point alone.
    """
    return replace(_with_elements(bench, _frozen), analysis=Tran(_AT_ONCE, _AT_ONCE), probes=(), from_rest=False)


def started(bench: Bench, start: tuple[tuple[str, float], ...]) -> Bench:
    """Return a copy of a circuit's bench, as data, with these voltages, net -> V, as its start.

    It skips devices whose voltages do not move.
    """
    return replace(bench, start=start, skip_still=True, from_rest=False)


def relaxed(bench: Bench) -> Bench:
    """Return a copy of a circuit's bench, as data, with a charge tolerance ten times larger, for a collapsed time step.

    At a clock edge a node of a few femtofarad may otherwise ask for steps under 1 fs, the more so the smaller chgtol.
    """
    return replace(bench, tolerances=replace(bench.tolerances, chgtol=10 * bench.tolerances.chgtol))


def _with_elements(bench: Bench, changed: Callable[[Element], Element]) -> Bench:
    """Return a copy of a circuit's bench, as data, with what the function makes of each element at the top level."""
    return replace(bench, circuit=replace(bench.circuit, elements=tuple(map(changed, bench.circuit.elements))))


def _frozen(element: Element) -> Element:
    """Return an element of a bench's circuit as data, a source as the constant that its waveform has at time 0.

    Any other element is returned as it is.
    """
    match element:
        case Source(value=tuple() as points):
            return replace(element, value=points[0][1])
        case _:
            return element


Stress = Callable[[Bench], Bench]  # a function below of a bench, what it takes beyond that given


def with_ripple(bench: Bench, volts: float, hertz: float) -> Bench:
    """Return the bench with a triangle of `volts` from peak to peak on the supply, at `hertz`, from time 0 on."""
    quarters = np.arange(int(np.ceil(2 * hertz * bench.transient.end)) + 1)
    times = np.concatenate([[0.0], (0.25 + 0.5 * quarters) / hertz])
    swing = np.concatenate([[0.0], np.where(quarters % 2, -0.5, 0.5)]) * volts
    return _with_supply(bench, times, 1.0 + swing / bench.technology.supply)


def with_step(bench: Bench, volts: float, start: float, end: float, edge: float) -> Bench:
    """Return the bench with a supply that is `volts` higher (below 0: lower) from `start` to `end`, s.

    Each edge takes `edge`, s.
    """
    there = 1.0 + volts / bench.technology.supply
    return _with_supply(
        bench, np.array([0.0, start, start + edge, end, end + edge]), np.array([1.0, 1.0, there, there, 1.0])
    )


def with_power_up(bench: Bench, end: float) -> Bench:
    """Return the bench with all sources at 0 at time 0, which reach their values at `end`, s."""
    return _with_supply(bench, np.array([0.0, end]), np.array([0.0, 1.0]), currents=True)


def with_skew(bench: Bench, seconds: float, seed: int) -> Bench:
    """Return the bench with clock nets of its circuit that come late.

    Each has its own delay, uniform within +-`seconds`, from a hash of `seed` and its name.
    """

    def late(element: Element) -> Element:
        if not (isinstance(element, Source) and _is_logic(element)):
            return element
        assert isinstance(element.value, tuple)
        digest = np.frombuffer(element.name.encode(), dtype=np.uint8)
        delay = seconds * np.random.default_rng([seed, *digest.tolist()]).uniform(-1.0, 1.0)
        (begin, level), *others = element.value
        return replace(element, value=((begin, level), *((time + delay, value) for time, value in others)))

    return _with_elements(bench, late)


def _is_logic(source: Source) -> bool:
    """Tell whether a source in the data of a circuit's bench drives a clock, reset or the like.

    Its waveform is then a changing voltage to ground.
    """
    return source.kind == "v" and source.b == GROUND and isinstance(source.value, tuple)


def _with_supply(bench: Bench, times: Array, factors: Array, *, currents: bool = False) -> Bench:
    """Return the bench with supply and logic times `factors` of their values at `times`, s, linear between them.

    currents: whether all other sources follow, too.
    """

    def bent(element: Element) -> Element:
        if not (isinstance(element, Source) and (_is_logic(element) or element.name == SUPPLY or currents)):
            return element
        if not isinstance(element.value, tuple):
            return replace(element, value=tuple(zip(times.tolist(), (element.value * factors).tolist(), strict=True)))
        own = np.array(element.value)
        every = np.union1d(own[:, 0], times)
        level = np.interp(every, own[:, 0], own[:, 1]) * np.interp(every, times, factors)
        return replace(element, value=tuple(zip(every.tolist(), level.tolist(), strict=True)))

    return _with_elements(bench, bent)
