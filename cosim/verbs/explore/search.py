"""Proposals of a search by Optuna's tree-structured Parzen estimator; only this module imports Optuna.

S. Watanabe, arXiv 2304.11127; several objectives: Y. Ozaki et al., J. Artif. Intell. Res. 73 (2022) 1209. A proposal
depends only on the seed, its number and the earlier results: Optuna's study is made anew for each proposal, in memory.
An interrupted search therefore continues with the same proposals.
"""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from cosim.base.errors import MissingToolError
from cosim.base.resources import install_command
from cosim.base.store import RecordFormat, RecordStore, continue_run, settings_key
from cosim.base.text import check_plain, json_object, typed
from cosim.cli.progress import say
from cosim.verbs.explore.study import (
    Exploration,
    Knob,
    OnTransistors,
    SearchTrial,
    front_of,
    shown_value,
    violation,
    worth,
)
from cosim.verbs.sweep.study import Value

SEARCH_FILE, TRIALS_FILE, CHECKS_FILE = "search.json", "trials.jsonl", "transistors.jsonl"
_REPAIR = "choose another folder with -o"
STARTUP = 12  # trials at random before the estimator has something to estimate from
_DIGITS = 3  # of a value of a range: a folder's settings stay short
_ATTEMPTS = 60  # at something new
Run = Callable[[int, dict[str, Value]], SearchTrial]
Check = Callable[[SearchTrial], OnTransistors]


def optuna() -> ModuleType:
    """Import and return Optuna. Raises MissingToolError where it is missing or too old."""
    try:
        import optuna as found
    except ImportError:
        found = None
    if found is None or int(found.__version__.partition(".")[0]) < 5:
        raise MissingToolError(f"cosim explore needs Optuna 5; install it with: {install_command('explore')}")
    found.logging.set_verbosity(found.logging.ERROR)
    return found


def belongs(about: Exploration, one: SearchTrial) -> bool:
    """Tell whether a kept trial belongs to this search: knobs within bounds, and all objectives among its figures.
    A trial without figures, which could not run, needs only the former."""
    if one.values.keys() != {knob.option for knob in about.knobs}:
        return False
    whole = not one.figures or {"yield", *about.objectives} <= one.figures.keys()
    return whole and all(_allowed(knob, one.values[knob.option]) for knob in about.knobs)


def _allowed(knob: Knob, value: Value) -> bool:
    if knob.values:
        return value in knob.values
    return isinstance(value, int | float) and knob.low is not None and knob.low <= value <= (knob.high or knob.low)


def propose(about: Exploration, tried: Sequence[SearchTrial]) -> dict[str, Value] | None:
    """Return knob values for the next trial, knob -> value; None where no new values are found.

    The first trial takes the start values of the knobs.
    """
    if not tried:
        return {knob.option: knob.start for knob in about.knobs}
    known = [one.values for one in tried]
    for attempt in range(_ATTEMPTS):
        seed = blake2b(f"{about.seed} {len(tried)} {attempt}".encode(), digest_size=4).digest()
        values = _ask(about, tried, int.from_bytes(seed, "big"))
        if values not in known:
            return values
    return None


def _ask(about: Exploration, tried: Sequence[SearchTrial], seed: int) -> dict[str, Value]:
    library, spread = optuna(), {knob.option: _distribution(knob) for knob in about.knobs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Optuna calls experimental
        sampler = library.samplers.TPESampler(
            n_startup_trials=STARTUP, seed=seed, multivariate=True, constant_liar=False
        )
        study = library.create_study(directions=len(about.objectives) * ["maximize"], sampler=sampler)
        study.add_trials(_told(about, tried, spread))
        asked = study.ask(spread).params
    return {knob.option: _value(knob, asked[knob.option]) for knob in about.knobs}


def _told(about: Exploration, tried: Sequence[SearchTrial], spread: Mapping[str, Any]) -> list[Any]:
    """Return the trials in Optuna's form; a trial without figures counts as the worst that was seen."""
    worths = {one.number: worth(one, about.objectives) for one in tried if one.figures}
    if not worths:
        return []
    worst = tuple(map(min, zip(*worths.values(), strict=True)))
    return [
        optuna().trial.create_trial(
            params={knob.option: _coded(knob, one.values[knob.option]) for knob in about.knobs},
            distributions=dict(spread),
            values=worths.get(one.number, worst),
            constraints={"choice": violation(one, about.least_yield)},
        )
        for one in tried
    ]


def _distribution(knob: Knob) -> Any:  # noqa: ANN401 - Optuna has a base class that it does not export
    found = optuna().distributions
    if knob.values:
        return found.IntDistribution(0, len(knob.values) - 1)
    return found.FloatDistribution(knob.low, knob.high, log=knob.log)


def _coded(knob: Knob, value: Value) -> Value:
    """Return a knob's value in Optuna's form; one of a list of values becomes its index in the list."""
    return knob.values.index(value) if knob.values else value


def _value(knob: Knob, coded: float) -> Value:
    if knob.values:
        return knob.values[int(coded)]
    assert knob.low is not None
    assert knob.high is not None
    return min(max(float(f"{coded:.{_DIGITS}g}"), knob.low), knob.high)


@dataclass(frozen=True)
class CheckedTrial:
    """A trial's number, and the result of its circuit on transistors."""

    number: int
    found: OnTransistors


def _read_trial(content: object, where: str) -> SearchTrial:
    return typed(check_plain(content, where, _REPAIR), SearchTrial, where, _REPAIR)


def _read_check(content: object, where: str) -> CheckedTrial:
    plain = check_plain(content, where, _REPAIR)
    if isinstance(plain, dict) and isinstance(found := plain.get("found"), dict):
        plain["found"] = {"yield_" if key == "yield" else key: value for key, value in found.items()}
    return typed(plain, CheckedTrial, where, _REPAIR)


_BY_NUMBER = attrgetter("number")
_TRIALS = RecordFormat[SearchTrial]("trials", _BY_NUMBER, lambda one: one, _read_trial)
_CHECKS = RecordFormat[CheckedTrial]("checks on transistors", _BY_NUMBER, lambda one: one, _read_check)


Stores = tuple[RecordStore[SearchTrial], RecordStore[CheckedTrial]]


def open_search(folder: Path, search: Mapping[str, object]) -> Stores:
    """Open a search's folder, and continue what it has; return finished trials, and checks on transistors.

    search: description of the search, which search.json keeps. Raises InputError where the folder holds another search,
    or only lines that cannot be matched to this one.
    """
    plain = json.loads(json.dumps(json_object(search)))
    key = settings_key(plain)
    trials = RecordStore(folder / TRIALS_FILE, key, _TRIALS)
    checks = RecordStore(folder / CHECKS_FILE, key, _CHECKS)
    continue_run(folder / SEARCH_FILE, plain, trials, checks)
    return trials, checks


@dataclass(frozen=True)
class Search:
    """A search: its description, its extent, and the functions that run a trial.

    about: the description, without trials; trials: how many; round: number of trials between checks on transistors;
    run: runs a trial; check: runs a circuit on transistors, None to check none.
    """

    about: Exploration
    trials: int
    round: int
    run: Run
    check: Check | None


def explore(search: Search, kept: Stores) -> tuple[SearchTrial, ...]:
    """Run all trials of a search, and check every trial on the front on transistors; return the trials.

    kept: stores of the search's folder, see `open_search`. There are fewer trials where no new values are found.
    """
    trials, checks = kept
    for store in kept:
        if store.damage:
            say(store.damage)
    tried = list[SearchTrial]()
    while len(tried) < search.trials:
        number = len(tried)
        if (one := trials.records.get(number)) is None or not belongs(search.about, one):
            values = propose(search.about, tried)
            if values is None:
                say(f"nothing new to try after {number} trials")
                break
            named = (f"{knob.option} {shown_value(knob, values[knob.option])}" for knob in search.about.knobs)
            say(f"trial {number + 1} of {search.trials}: {', '.join(named)}")
            trials.append(one := search.run(number, values))
        tried.append(one)
        if len(tried) % search.round == 0:
            tried = _settle(search, checks, tried)
    tried = _settle(search, checks, tried)
    for store in kept:
        store.tidy()
    return tuple(tried)


def _settle(search: Search, checks: RecordStore[CheckedTrial], tried: Sequence[SearchTrial]) -> list[SearchTrial]:
    """Return the trials, with those on the front checked on transistors.

    If transistors refute a circuit, others move onto the front and are checked as well.
    """
    found = list(tried)
    if search.check is None:
        return found
    sought = search.about.objectives, search.about.least_yield
    while unchecked := [one for one in front_of(found, *sought) if one.transistors is None]:
        say(f"{len(unchecked)} circuits of the front on transistors")
        for one in unchecked:
            if (seen := checks.records.get(one.number)) is None:
                checks.append(seen := CheckedTrial(one.number, search.check(one)))
            found[one.number] = replace(one, transistors=seen.found)
    return found
