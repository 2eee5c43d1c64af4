"""A bench: a circuit with everything that drives it, what is run, what is saved, and where it begins; data, no text.

Another run of the same bench is a changed copy (`dataclasses.replace`): `held`, `resting`, `started`, `relaxed`. The
functions `with_...` apply a stress by changing the bench's sources, so that every engine runs the same: a supply that
is not constant, a supply that comes up, and clocks that are not in step. All logic comes from drivers on the same
supply, so a high level follows the supply. Bias and input currents stay constant; but while the supply comes up they
grow with it, and so does the voltage between the supply and the readout's ground.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
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

    gmin: S; abstol: A; vntol: V; chgtol: C; reltol, trtol: relative. xmu: weight of the trapezoidal rule: at 0.5 it is
    undamped, below that its ringing after a switch event dies out. ngspice's own defaults are made for milliampere:
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


# of small signals and operating points: below 1e-14 S some circuits of self-cascodes have no operating point
SMALL_SIGNAL = Tolerances(gmin=1e-14)


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
    """A bench's analysis: operating points while the value of a source, V or A, is swept from start to stop by `step`.

    kind: of the source, voltage or current; source: its name, such as `pull`.
    """

    kind: Literal["v", "i"]
    source: str
    start: float
    stop: float
    step: float


Analysis = Tran | Op | Dc


@dataclass(frozen=True)
class Voltage:
    """A probe in a circuit's bench: the voltage of a net to ground, V.

    net: for an inner net its path, such as `xnetwork.xcell.v0`.
    """

    net: str


@dataclass(frozen=True)
class Current:
    """A probe in a circuit's bench: the current through a voltage source at the top level, A.

    It is positive if it enters the source at the first net.
    """

    source: str


@dataclass(frozen=True)
class DrainCurrent:
    """A probe in a circuit's bench: a transistor's drain current, A, with the simulator's sign.

    device: path of the transistor, such as `network.cell.4`.
    """

    device: str


Probe = Voltage | Current | DrainCurrent


@dataclass(frozen=True)
class SmallSignalBench:
    """A circuit at its operating point, whose small signals and noise are computed at some frequencies.

    circuit: without `drive`; drive: the ac source, whose value, V or A, sets the operating point, and whose amplitude
    is 1 V or 1 A; hertz: frequencies in rising order; noisy: the net whose noise is computed, "" for none; start: (net,
    V) from which the search of the operating point begins.
    """

    circuit: Circuit
    technology: Technology
    drive: Source
    hertz: tuple[float, ...]
    noisy: str = ""
    start: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class TransientNoise:
    """White noise currents in a bench's transient: normal random numbers `step` s apart, linear in between.

    Their one-sided density is 2 rms^2 step, up to half of 1/step. key: 64-bit seed of the numbers. sources: (net, rms
    A), currents from a net to ground. slopes: slope factors I / (g_m U_T) of n and p devices in weak inversion; if
    given, every transistor whose source is tied to its bulk has the noise of its own current. every: transistors with
    another bulk have it, too, if slopes are given; all transistors have 4 k T g_ds as well, which counts near V_DS = 0;
    and resistors have 4 k T / R.
    """

    step: float
    key: int
    sources: tuple[tuple[str, float], ...] = ()
    slopes: tuple[float, float] | None = None
    every: bool = False


@dataclass(frozen=True)
class Bench:
    """A bench: a circuit as data with all that a simulator needs to run it: analysis, technology, probes and start.

    technology: of the devices, at its corner, temperature and supply; probes: what is saved, () for the voltage of
    every net; preset: (net, V) that is held until a transient begins; start: (net, V) where the search of the operating
    point begins; skip_still: whether devices whose terminals do not move are not evaluated, which is safe if the start
    is known; from_rest: whether other benches are the same circuit at time 0, so that a simulator may find that point
    once and begin there; notes: comments; noise: of a transient, None for none.
    """

    circuit: Circuit
    technology: Technology
    analysis: Analysis
    probes: tuple[Probe, ...] = ()
    tolerances: Tolerances = Tolerances()
    preset: tuple[tuple[str, float], ...] = ()
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
    """Return a copy of the bench whose sources keep their values of time 0 for `seconds` s."""
    return replace(_with_elements(bench, _frozen), analysis=replace(bench.transient, end=seconds))


def resting(bench: Bench) -> Bench:
    """Return a bench as data for the voltages at time 0 alone: the same circuit and a transient of one step.

    Its sources are constant, and the voltages are the same for all samples of a network. It is a transient because
    `preset` acts in a transient's operating point alone.
    """
    return replace(_with_elements(bench, _frozen), analysis=Tran(_AT_ONCE, _AT_ONCE), probes=(), from_rest=False)


def pointed(bench: Bench) -> Bench:
    """Return a bench whose analysis is a sweep of a source that drives nothing, in place of an operating point.

    Its operating point is at 0 V of that source. ngspice has `.meas` of a sweep, but none of an operating point. A
    bench with another analysis is returned as it is.
    """
    if not isinstance(bench.analysis, Op):
        return bench
    taken = repr(bench.circuit)
    name = next(one for k in count() if (one := f"point{k}") not in taken)
    elements = (*bench.circuit.elements, Source(name, "v", name, GROUND, 0.0))
    return replace(bench, circuit=replace(bench.circuit, elements=elements), analysis=Dc("v", name, 0.0, 1.0, 1.0))


def started(bench: Bench, start: tuple[tuple[str, float], ...]) -> Bench:
    """Return a copy of a circuit's bench that begins at these voltages, (net, V), and skips devices at rest."""
    return replace(bench, start=start, skip_still=True, from_rest=False)


def relaxed(bench: Bench) -> Bench:
    """Return a copy of a circuit's bench with a ten times larger charge tolerance, for a run whose step collapsed.

    At a clock edge a node of a few femtofarad may otherwise need steps under 1 fs; the smaller chgtol, the more so.
    """
    return replace(bench, tolerances=replace(bench.tolerances, chgtol=10 * bench.tolerances.chgtol))


def _with_elements(bench: Bench, changed: Callable[[Element], Element]) -> Bench:
    """Return a copy of a circuit's bench with the function `changed` applied to each element at the top level."""
    return replace(bench, circuit=replace(bench.circuit, elements=tuple(map(changed, bench.circuit.elements))))


def _frozen(element: Element) -> Element:
    """Return a bench's source as a constant, its value at time 0; return any other element as it is."""
    match element:
        case Source(value=tuple() as points):
            return replace(element, value=points[0][1])
        case _:
            return element


Stress = Callable[[Bench], Bench]  # a function below of a bench, what it takes beyond that given


def with_ripple(bench: Bench, volts: float, hertz: float) -> Bench:
    """Return a copy of the bench with a triangle on the supply from time 0 on: `volts` peak to peak, at `hertz`."""
    quarters = np.arange(int(np.ceil(2 * hertz * bench.transient.end)) + 1)
    times = np.concatenate([[0.0], (0.25 + 0.5 * quarters) / hertz])
    swing = np.concatenate([[0.0], np.where(quarters % 2, -0.5, 0.5)]) * volts
    return _with_supply(bench, times, 1.0 + swing / bench.technology.supply)


def with_step(bench: Bench, volts: float, start: float, end: float, edge: float) -> Bench:
    """Return a copy of the bench whose supply is `volts` higher (lower, if negative) from `start` to `end`, s.

    edge: duration of each edge, s.
    """
    there = 1.0 + volts / bench.technology.supply
    return _with_supply(
        bench, np.array([0.0, start, start + edge, end, end + edge]), np.array([1.0, 1.0, there, there, 1.0])
    )


def with_power_up(bench: Bench, end: float) -> Bench:
    """Return a copy of the bench whose sources are 0 at time 0 and reach their values at `end`, s."""
    return _with_supply(bench, np.array([0.0, end]), np.array([0.0, 1.0]), currents=True)


def with_skew(bench: Bench, seconds: float, seed: int) -> Bench:
    """Return a copy of the bench in which each clock net is delayed by its own time.

    Delays are uniform within +-`seconds`, from a hash of `seed` and the net's name.
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
    """Tell whether a source in a bench drives a clock, reset or the like: a changing voltage to ground."""
    return source.kind == "v" and source.b == GROUND and isinstance(source.value, tuple)


def _with_supply(bench: Bench, times: Array, factors: Array, *, currents: bool = False) -> Bench:
    """Return a copy of the bench with supply and logic levels multiplied by `factors` at `times`, s, linear in between.

    currents: whether all other sources are multiplied as well.
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
