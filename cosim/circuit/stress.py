"""A bench under stress: a supply that is not still, a supply that comes up, and clocks that are not in step.

The bench's own sources are bent, so that every engine runs the same. All logic comes from drivers on the same supply:
what is high follows it. Bias and input currents stay what they are, but while the supply comes up they grow with it,
and so does what the readout's ground is below it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import Bench
from cosim.circuit.elements import GROUND, Element, Source

SUPPLY = "dd"  # the source of V_DD
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ripple:
    """A stress in a bench: a triangle of `volts` from peak to peak on the supply, at `hertz`, from time 0 on."""

    volts: float
    hertz: float


@dataclass(frozen=True)
class Step:
    """A stress in a bench: the supply is `volts` higher (below 0: lower) from `start` to `end`, s.

    Each edge takes `edge`, s.
    """

    volts: float
    start: float
    end: float
    edge: float


@dataclass(frozen=True)
class PowerUp:
    """A stress in a bench: at time 0 all sources are at `floor` of their values, and reach these at `end`, s."""

    end: float
    floor: float


@dataclass(frozen=True)
class Skew:
    """A stress in a circuit's bench: clock nets that come late.

    Each has its own delay, uniform within +-`seconds`, from a hash of `seed` and its name.
    """

    seconds: float
    seed: int


Stress = Ripple | Step | PowerUp | Skew


def stressed(bench: Bench, stress: Stress) -> Bench:
    """Bend the waveforms in the data of a circuit's bench by the stress of its supply or clocks, and return the bench.

    Its analysis, what it saves and its tolerances are unchanged.
    """
    elements = tuple(_bent(element, stress, bench) for element in bench.circuit.elements)
    return replace(bench, circuit=replace(bench.circuit, elements=elements))


def _bent(element: Element, stress: Stress, bench: Bench) -> Element:
    if not isinstance(element, Source):
        return element
    if isinstance(stress, Skew):
        return _late(element, stress) if _is_logic(element) else element
    if not (_is_logic(element) or element.name == SUPPLY or isinstance(stress, PowerUp)):
        return element
    times, factors = _supply_profile(stress, bench)
    return replace(element, value=_product(element.value, times, factors))


def _is_logic(source: Source) -> bool:
    """Tell whether a source in the data of a circuit's bench drives a clock, reset or the like.

    Its waveform is then a changing voltage to ground.
    """
    return source.kind == "v" and source.b == GROUND and isinstance(source.value, tuple)


def _late(source: Source, skew: Skew) -> Source:
    assert isinstance(source.value, tuple)
    digest = np.frombuffer(f"{source.name}".encode(), dtype=np.uint8)
    delay = skew.seconds * np.random.default_rng([skew.seed, *digest.tolist()]).uniform(-1.0, 1.0)
    (begin, level), *others = source.value
    return replace(source, value=((begin, level), *((time + delay, value) for time, value in others)))


def _supply_profile(stress: Ripple | Step | PowerUp, bench: Bench) -> tuple[Array, Array]:
    """Return the corners by which stress bends the supply's waveform in a circuit's bench.

    These are times in s, and factors of the nominal supply.
    """
    supply = bench.technology.supply
    match stress:
        case Ripple(volts, hertz):
            quarters = np.arange(int(np.ceil(2 * hertz * bench.transient.end)) + 1)
            times = np.concatenate([[0.0], (0.25 + 0.5 * quarters) / hertz])
            swing = np.concatenate([[0.0], np.where(quarters % 2, -0.5, 0.5)]) * volts
            return times, 1.0 + swing / supply
        case Step(volts, start, end, edge):
            there = 1.0 + volts / supply
            return np.array([0.0, start, start + edge, end, end + edge]), np.array([1.0, 1.0, there, there, 1.0])
        case PowerUp(end, floor):
            return np.array([0.0, end]), np.array([floor, 1.0])


def _product(
    value: float | Iterable[tuple[float, float]], times: Array, factors: Array
) -> tuple[tuple[float, float], ...]:
    """Return the points (s, value) of a waveform in a circuit's bench times another course, with the corners of both.

    value: the source's own, constant or (s, value); times, s, and factors: the other course.
    """
    if isinstance(value, float | int):
        return tuple(zip(times.tolist(), (value * factors).tolist(), strict=True))
    own = np.array(list(value))
    every = np.union1d(own[:, 0], times)
    level = np.interp(every, own[:, 0], own[:, 1]) * np.interp(every, times, factors)
    return tuple(zip(every.tolist(), level.tolist(), strict=True))
