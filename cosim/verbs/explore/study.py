"""Results of a search: the circuits tried for one network, what each costs and does, and which no other beats.

Fields of `Exploration` are the keys of explore.json, see `json_object`. Knob values are in SI units, figures in SI
units, fractions or um2. Further functions return the results as text with units, and as explore.csv.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cosim.base.quantities import format_quantity
from cosim.base.text import format_csv
from cosim.results.metrics import METRICS, Estimate, percent
from cosim.verbs.sweep.study import Value, format_figure_of, format_one

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
OVERRIDES = "overrides"  # name of a file in the folder of the search or hardening
AREA_NOTE = "areas are gates and capacitors as drawn, without wires: cosim layout draws macros of 2.6 to 2.9 times that"
BITS_NOTE = "trim converters are in neither power nor area"
_MOST = 4
_OTHERS, _THERE, _STATES, _COUNTED = "other chips", "transistors", "states there", "chips there"  # columns
_WORDS = {
    "i-unit": "unit current",
    "t-step": "frame",
    "units": "units per weight",
    "mirror-area": "mirrors",
    "cell-area": "cells",
    "switch-area": "switches",
    "hold": "hold capacitor",
    "bits": "trim bits",
}


@dataclass(frozen=True)
class Knob:
    """An option that a search varies.

    option: its long name; unit: of its values; start: value of the first trial. It has either a range from low to high
    (log: in equal factors), or a list of values.
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
    """The result of a circuit on transistors, without mismatch.

    missed: limits that the circuit misses, '' for none; chips: number of fresh chips with mismatch that also ran on
    transistors; yield_: of these chips.
    """

    engine: str
    samples: int
    figures: dict[str, Estimate]
    missed: str = ""
    chips: int | None = None
    yield_: Estimate | None = None


@dataclass(frozen=True)
class SearchTrial:
    """A trial of a search: one circuit with the values of its knobs.

    folder: of its chips, below the search's; figures: name as in FIGURES -> figure, empty if the trial could not run;
    reason: why it could not run; transistors: result on transistors; fresh: yield on fresh chips, for circuits on the
    front.
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
        """Tell whether the circuit misses the spec on transistors, although the behavioral model met it."""
        return self.transistors is not None and bool(self.transistors.missed)


@dataclass(frozen=True)
class Exploration:
    """The result of a search, the content of explore.json.

    options: of montecarlo, without defaults; spec: what a chip must do; least_yield: yield that a circuit on the front
    must have; front: numbers of the trials that no other beats; unvaried: what stayed constant, in words.
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
    trials: tuple[SearchTrial, ...]
    front: tuple[int, ...]
    unvaried: tuple[str, ...]
    notes: tuple[str, ...]
    made_with: Mapping[str, str]

    @property
    def on_front(self) -> tuple[SearchTrial, ...]:
        """Return the trials on the front, in the front's order."""
        by_number = {one.number: one for one in self.trials}
        return tuple(by_number[number] for number in self.front)


def worth(tried: SearchTrial, objectives: Sequence[str]) -> tuple[float, ...]:
    """Return a trial's objectives, with signs such that more is better."""
    return tuple(OBJECTIVES[name] * tried.figures[name].value for name in objectives)


def violation(tried: SearchTrial, least_yield: float) -> float:
    """Return by how much a trial fails to be a choice; 0 if it is one.

    It is the yield that is missing, plus 1 where transistors refute the circuit; 2 where there are no figures.
    """
    if not tried.figures:
        return 2.0
    return max(least_yield - tried.figures["yield"].value, 0.0) + tried.refuted


def front_of(trials: Sequence[SearchTrial], objectives: Sequence[str], least_yield: float) -> tuple[SearchTrial, ...]:
    """Return the trials on the front, that is choices that no other choice beats (Pareto); best first objective first.

    One beats another if it is nowhere worse and somewhere better; of equal ones the first tried stays. A choice has the
    least yield and is not refuted.
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


def name_knob(knob: Knob) -> str:
    """Return a knob's name in words, as the page shows it."""
    return _WORDS.get(knob.option, knob.option)


def shown_value(knob: Knob, value: Value) -> str:
    """Return a knob's value as text, with its unit."""
    if isinstance(value, str):
        return value
    return format_quantity(value, knob.unit) if knob.unit else f"{value:g}"


def shown_figures(found: Exploration) -> tuple[str, ...]:
    """Return the names of the figures that tables show: the objectives, and accuracy."""
    return tuple(dict.fromkeys([*found.objectives, "accuracy"]))


def shown_figure(name: str, figure: Estimate | None) -> str:
    """Format a figure: a yield with its interval, others without, because the spread over chips says little."""
    if figure is None:
        return "-"
    return format_figure_of(name, figure) if name == "yield" else format_one(name, figure.value)


def head_of(found: Exploration) -> tuple[str, ...]:
    """Return the column names of the table of circuits on the front; `remarks` explains the last columns."""
    seen = [one.transistors for one in found.on_front if one.transistors]
    there = (_THERE, _STATES) if seen else ()
    counted = (_COUNTED,) if any(one.chips for one in seen) else ()
    return ("trial", *map(name_knob, found.knobs), *shown_figures(found), _OTHERS, *there, *counted)


def cells_of(found: Exploration, one: SearchTrial) -> tuple[str, ...]:
    """Return a trial's number, knob values and figures as cells of a table."""
    values = (shown_value(knob, one.values[knob.option]) for knob in found.knobs)
    figures = (shown_figure(name, one.figures.get(name)) for name in shown_figures(found))
    return (str(one.number), *values, *figures)


def row_of(found: Exploration, one: SearchTrial) -> tuple[str, ...]:
    """Return a circuit on the front as a row of the table whose columns are those of `head_of`."""
    seen = one.transistors
    more = {
        _OTHERS: shown_figure("yield", one.fresh),
        _THERE: shown_figure("accuracy", seen.figures.get("accuracy") if seen else None),
        _STATES: shown_figure("state_agreement", seen.figures.get("state_agreement") if seen else None),
        _COUNTED: shown_figure("yield", seen.yield_ if seen else None),
    }
    return (*cells_of(found, one), *(more[name] for name in head_of(found) if name in more))


def verdict(found: Exploration) -> str:
    """Return the result of a search as a sentence without full stop."""
    sought = _listed(found.objectives)
    tried = f"{len(found.trials)} circuits tried"
    if found.front:
        return f"{tried}; {len(found.front)} that none beats in {sought}"
    best = max((one for one in found.trials if one.figures), key=lambda one: one.figures["yield"].value, default=None)
    most = f"; the largest yield is {shown_figure('yield', best.figures['yield'])}" if best else ""
    return f"{tried}; none that transistors confirm has a yield of {percent(found.least_yield)} or more{most}"


def remarks(found: Exploration) -> list[str]:
    """Return remarks on a search: meaning of its figures, refuted circuits, and trials that could not run."""
    lines = [
        f"yield: chips with {', '.join(found.spec)}; 95 % intervals in brackets; a choice has at least "
        f"{percent(found.least_yield)}",
        *(_explained(name, found) for name in (_OTHERS, _THERE, _COUNTED) if found.front and name in head_of(found)),
    ]
    refuted = [one for one in found.trials if one.refuted]
    if refuted:
        some = ", ".join(f"{one.number} ({one.transistors.missed})" for one in refuted[:_MOST] if one.transistors)
        lines.append(
            f"refuted by transistors: {len(refuted)} circuits, {some}{', ...' if len(refuted) > _MOST else ''}"
        )
    reasons = Counter(one.reason for one in found.trials if one.reason and not one.figures)
    lines += [f"{count} not possible: {reason}" for reason, count in reasons.most_common(_MOST)]
    return [*lines, *found.notes]


def state_of(found: Exploration, one: SearchTrial) -> str:
    """Return the status of a trial in words: on the front, refuted, beaten, or the reason why it is no choice."""
    if not one.figures:
        return f"not possible: {one.reason}"
    if one.refuted:
        return f"refuted: {one.transistors.missed if one.transistors else ''}"
    if one.number in found.front:
        return "on the front"
    return "yield too low" if violation(one, found.least_yield) else "beaten"


def format_exploration_csv(found: Exploration) -> bytes:
    """Return all trials as CSV: knob values in SI, figures with the ends of their intervals, results on transistors."""
    columns = [f"{name}{end}" for name in (*FIGURES, "fresh_yield") for end in ("", "_low", "_high")]
    seen = ("transistors_accuracy", "transistors_state_agreement", "transistors_power", "transistors_yield")
    knobs = [f"{knob.option}_{knob.unit}" if knob.unit else knob.option for knob in found.knobs]
    rows = list[list[object]]()
    for one in found.trials:
        figures: Sequence[Estimate | None] = [*(one.figures.get(name) for name in FIGURES), one.fresh]
        ends = [end for each in figures for end in ((each.value, each.low, each.high) if each else (None, None, None))]
        on = one.transistors.figures if one.transistors else {}
        there = [on.get(name) for name in ("accuracy", "state_agreement", "power")]
        there.append(one.transistors.yield_ if one.transistors else None)
        values = [one.values[knob.option] for knob in found.knobs]
        rows.append(
            [one.number, *values, *ends, *(each.value if each else None for each in there), state_of(found, one)]
        )
    return format_csv(["trial", *knobs, *columns, *seen, "state"], rows).encode()


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _explained(column: str, found: Exploration) -> str:
    if column == _OTHERS:
        return (
            f"{_OTHERS}: the yield of as many chips that were drawn after the search, which chose by its own, so that "
            "the best of many look better than they are"
        )
    if column == _THERE:
        return f"{_THERE}: accuracy and states of the circuit without mismatch in the batched engine"
    chips = max(one.transistors.chips or 0 for one in found.on_front if one.transistors)
    return f"{_COUNTED}: the yield of the first {chips} of the other chips on transistors"
