"""A search: trials by the behavioral model, each round's front on transistors; what these refute is no choice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cosim.verbs.explore.kept import TrialStore
from cosim.verbs.explore.search import Space, belongs, propose
from cosim.verbs.explore.study import OnTransistors, Tried, front_of
from cosim.verbs.explore.table import shown_value
from cosim.verbs.sweep.study import Value

Run = Callable[[int, dict[str, Value]], Tried]
Check = Callable[[Tried], OnTransistors]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Search:
    """A search and its extent: trials, and after how many of them transistors are asked; how a trial runs, how a
    circuit is checked on transistors (None: not at all), and who hears of it."""

    space: Space
    trials: int
    round: int
    run: Run
    check: Check | None
    say: Say


def explore(search: Search, kept: TrialStore) -> tuple[Tried, ...]:
    """Run all trials of a search, fewer where there is nothing new to try; every trial of the front is checked on
    transistors."""
    tried = list[Tried]()
    while len(tried) < search.trials:
        number = len(tried)
        if (one := kept.trials.get(number)) is None or not belongs(search.space, one):
            values = propose(search.space, tried)
            if values is None:
                search.say(f"nothing new to try after {number} trials")
                break
            named = (f"{knob.option} {shown_value(knob, values[knob.option])}" for knob in search.space.knobs)
            search.say(f"trial {number + 1} of {search.trials}: {', '.join(named)}")
            kept.trial(one := search.run(number, values))
        tried.append(one)
        if len(tried) % search.round == 0:
            tried = _settle(search, kept, tried)
    return tuple(_settle(search, kept, tried))


def _settle(search: Search, kept: TrialStore, tried: Sequence[Tried]) -> list[Tried]:
    """Return the trials with those of the front checked on transistors.

    Where transistors refute one, others come onto the front and are checked as well.
    """
    found = list(tried)
    if search.check is None:
        return found
    while unchecked := [one for one in _front(search, found) if one.transistors is None]:
        search.say(f"{len(unchecked)} circuits of the front on transistors")
        for one in unchecked:
            if (seen := kept.checks.get(one.number)) is None:
                kept.check(one.number, seen := search.check(one))
            found[one.number] = replace(one, transistors=seen)
    return found


def _front(search: Search, tried: Sequence[Tried]) -> tuple[Tried, ...]:
    return front_of(tried, search.space.objectives, search.space.least_yield)
