"""Circuits that a search tried for one network: what was varied, what each costs and does, and which none beats.

Fields of `Exploration` are the keys of explore.json, see `json_object`; values of knobs are in SI, figures in SI,
fractions or um2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cosim.results.metrics import METRICS, Estimate
from cosim.verbs.sweep.study import Value

# of a trial: figure -> where a run of chips has it; the last three are of the circuit without mismatch
FIGURES = {
    "yield": "yield",
    "accuracy": "accuracy",
    "power": "power",
    "area": "nominal.area",
    "energy": "nominal.energy",
    "latency": "nominal.latency",
}
OBJECTIVES = {name: METRICS[name].better for name in FIGURES}
DEFAULT_OBJECTIVES = ("yield", "power", "area")
DRAWN = {"mirror-area": "mirrors", "cell-area": "cells", "switch-area": "switches"}  # knob -> group of transistors
HOLD, BITS = "hold", "bits"


@dataclass(frozen=True)
class Knob:
    """An option that `cosim explore` varies, by its name, with the unit of its values.

    A range from low to high, by equal factors with `log`; or `values`, one of which is taken. start: where the search
    begins.
    """

    option: str
    unit: str
    start: Value
    low: float | None = None
    high: float | None = None
    log: bool = False
    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class OnTransistors:
    """The circuit without mismatch at transistor level; missed: which limits it misses there, '' for none.

    yield_: of `chips` chips with mismatch at that level, the first of the fresh ones.
    """

    engine: str
    samples: int
    figures: dict[str, Estimate]
    missed: str = ""
    chips: int | None = None
    yield_: Estimate | None = None


@dataclass(frozen=True)
class Tried:
    """One circuit: the values of its knobs and its figures by FIGURES; without figures, the reason.

    folder: of its chips, below the search's; fresh: the yield of as many other chips, of a circuit of the front.
    """

    number: int
    folder: str
    values: dict[str, Value]
    figures: dict[str, Estimate]
    reason: str | None = None
    transistors: OnTransistors | None = None
    fresh: Estimate | None = None

    @property
    def refuted(self) -> bool:
        """Tell whether the transistors miss the spec that the behavioral model met."""
        return self.transistors is not None and bool(self.transistors.missed)


@dataclass(frozen=True)
class Exploration:
    """The content of explore.json. options: those of the chips that are not defaults; spec: what a chip must do;
    least_yield: what a circuit must have to be on the front; front: numbers of trials; unvaried: what stayed as it is.
    """

    network: str
    network_hash: str
    file: str
    options: Mapping[str, object]
    knobs: tuple[Knob, ...]
    objectives: tuple[str, ...]
    spec: tuple[str, ...]
    least_yield: float
    seed: int
    trials: tuple[Tried, ...]
    front: tuple[int, ...]
    unvaried: tuple[str, ...]
    notes: tuple[str, ...]
    made_with: Mapping[str, str]

    @property
    def on_front(self) -> tuple[Tried, ...]:
        """The trials of the front, in its order."""
        by_number = {one.number: one for one in self.trials}
        return tuple(by_number[number] for number in self.front)


def worth(tried: Tried, objectives: Sequence[str]) -> tuple[float, ...]:
    """Return the objectives of a trial of `cosim explore`, each so that more is better."""
    return tuple(OBJECTIVES[name] * tried.figures[name].value for name in objectives)


def violation(tried: Tried, least_yield: float) -> float:
    """Return by how much a trial fails to be a choice: 0 where it is one; missing yield, 1 more where transistors
    refute it, 2 where there are no figures."""
    if not tried.figures:
        return 2.0
    return max(least_yield - tried.figures["yield"].value, 0.0) + tried.refuted


def front_of(trials: Sequence[Tried], objectives: Sequence[str], least_yield: float) -> tuple[Tried, ...]:
    """Return the choices that no other choice beats (Pareto), the best in the first objective first.

    One beats another that is nowhere worse and somewhere better; of equal ones the first tried stays.
    """
    choices = [(one, worth(one, objectives)) for one in trials if not violation(one, least_yield)]
    found = [
        (one, mine)
        for one, mine in choices
        if not any(
            all(a >= b for a, b in zip(theirs, mine, strict=True)) and (theirs != mine or other.number < one.number)
            for other, theirs in choices
            if other is not one
        )
    ]
    return tuple(one for one, _ in sorted(found, key=lambda pair: ([-value for value in pair[1]], pair[0].number)))
