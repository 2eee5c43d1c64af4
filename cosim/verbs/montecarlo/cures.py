"""Cures of a low yield, each tried by the behavioral model on some of the chips of a run."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cosim.base.errors import InputError
from cosim.results.intervals import interval
from cosim.variation.draws import Chip
from cosim.verbs.montecarlo.chips import Cure
from cosim.verbs.montecarlo.spec import Spec, passes_specs
from cosim.verbs.montecarlo.trial import Trial, run_behavioral_chip
from cosim.verbs.trim.trim import check_trimmable, measure_behavioral, trim_codes, trim_ranges

ENOUGH = 0.9  # of the chips: from there on nothing is advised
LARGER = 3.0  # times the area of the devices, at which mismatch is 0.58 of what it was
BITS = 2  # of the converters; more bring little
_MOST, _LEAST, _WORK = 50, 10, 20_000  # chips that are tried, at most a quarter of the run's; chips times samples


def try_cures(trial: Trial, nominal: Chip, specs: Sequence[Spec]) -> tuple[Cure, ...]:
    """Count how many of a run's first chips would work with larger devices, and with trim bits.

    nominal: the chip without deviations. A cure that does not apply is left out: larger devices where nothing varies by
    itself, trim bits where a cell has none.
    """
    most = min(_MOST, trial.plan.chips // 4, _WORK // len(trial.test_set.y))
    count = min(trial.plan.chips, max(_LEAST, most))
    found = list[Cure]()
    if trial.plan.kind in ("local", "all"):
        larger = replace(trial, plan=replace(trial.plan, area=LARGER * trial.plan.area))
        found.append(_count("area", count, specs, lambda number: (larger, larger.chip(number))))
    try:
        check_trimmable(trial.design, "")
    except InputError:
        return tuple(found)
    wanted, ranges = measure_behavioral(trial, nominal), trim_ranges(trial)
    condition = trial.condition or trial.design.nominal

    def trimmed(number: int) -> tuple[Trial, Chip]:
        chip = trial.chip(number)
        pins = trim_codes(trial.design, measure_behavioral(trial, chip), wanted, BITS, ranges)
        return replace(trial, condition=replace(condition, pins=pins)), chip

    return (*found, _count("trim", count, specs, trimmed))


def _count(name: str, chips: int, specs: Sequence[Spec], cured: Callable[[int], tuple[Trial, Chip]]) -> Cure:
    passed = sum(passes_specs(run_behavioral_chip(*cured(number)), specs) for number in range(chips))
    value, low, high = interval(passed, chips)
    return Cure(name, value, low, high, passed, chips)
