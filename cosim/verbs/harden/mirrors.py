"""Mirrors of a circuit that get more devices in parallel, so that its chips lose least accuracy for a given gate area.

Mirrors of one kind, such as all `bias_thresh_#`, are a group. The loss L_g of a group is how far the mean accuracy
falls on chips of which its transistors alone deviate, where a chip with a cell that does not reset has an accuracy of
0. With n_g times as many devices in parallel the variance of their mismatch is divided by n_g (M. Pelgrom et al., IEEE
J. Solid-State Circuits 24 (1989) 1433). The loss is assumed to be proportional to it. The smallest sum of losses for a
gate area,

    min sum L_g / n_g    with    sum A_g n_g <= area,    is near    n_g ~ sqrt(L_g / A_g)

by a Lagrange multiplier. For whole numbers it is approached step by step: the group whose loss falls most for the area
gets one device more, as long as one fits. A mirror that grows as a whole keeps its ratio, so nothing is calibrated
anew, but its gate line settles n_g times as slowly.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cosim.cli.progress import progress_bar
from cosim.compiler.overrides import Overrides, TransistorOverride, line_of
from cosim.variation.draws import VariationPlan
from cosim.verbs.montecarlo.contributions import mixed_chip
from cosim.verbs.montecarlo.execute import map_chips
from cosim.verbs.montecarlo.trial import Trial, run_behavioral_chip

_CHIPS = 100  # on which a group's transistors alone deviate
_MOST = 16  # devices in parallel in place of one
_ROUNDED = 1e-9  # relative


@dataclass(frozen=True)
class MirrorGroup:
    """Mirrors of one kind in a circuit, and what their mismatch costs.

    mirrors: the pattern of their gate lines, as overrides have it; transistors: how many there are; area: their gate
    area, um2; loss: how far the mean accuracy falls by their mismatch alone, a fraction, where a chip with a cell that
    does not reset has an accuracy of 0; times: number of devices in the kept circuit for each one in the measured.
    """

    mirrors: str
    transistors: int
    area: float
    loss: float
    times: int = 1


def measure_mirrors(trial: Trial, jobs: int) -> tuple[MirrorGroup, ...]:
    """Measure the loss of accuracy by the mismatch of each group of mirrors, on chips of the trial's own seed.

    jobs: worker processes. The behavioral model evaluates the chips.
    """
    plan = VariationPlan("local", trial.plan.seed, _CHIPS, area=trial.plan.area)
    drawn, groups = replace(trial, plan=plan, gradient=None), _groups(trial)
    accuracies: list[list[float]] = []
    with progress_bar("mirrors") as progress:
        work = partial(_accuracies, groups=tuple(groups.values()))
        for done, found in enumerate(map_chips(work, drawn, range(_CHIPS), jobs), start=1):
            progress(done, _CHIPS)
            accuracies.append(found)
    losses = trial.nominal.accuracy - np.mean(accuracies, axis=0)
    areas = {mos.name: 1e12 * mos.gate_area for mos in trial.design.assembly.circuit.flatten()}
    return tuple(
        MirrorGroup(pattern, len(names), sum(areas[name] for name in names), max(float(loss), 0.0))
        for (pattern, names), loss in zip(groups.items(), losses, strict=True)
    )


def _groups(trial: Trial) -> dict[str, list[str]]:
    """Return pattern of gate lines -> names of the transistors on them; switches are in no group."""
    found: dict[str, list[str]] = defaultdict(list)
    for mos in trial.design.assembly.circuit.flatten():
        if line := line_of(mos):
            found[re.sub(r"\d+", "#", line)].append(mos.name)
    return dict(sorted(found.items()))


def _accuracies(trial: Trial, number: int, groups: Sequence[Sequence[str]]) -> list[float]:
    """Return the accuracy of one drawn chip if the transistors of one group alone deviate, group by group.

    It is 0 where a cell does not reset, because such a chip counts as one that does not work.
    """
    chip, nominal = trial.chip(number), trial.nominal_chip
    names = [device.name for device in chip.devices]
    found = [run_behavioral_chip(trial, mixed_chip(chip, nominal, np.isin(names, members))) for members in groups]
    return [0.0 if figures.unreset else figures.accuracy for figures in found]


def enlarge_mirrors(groups: Sequence[MirrorGroup], more: float) -> dict[str, int]:
    """Return pattern of gate lines -> factor on the number of devices, with which the sum of losses is smallest.

    Groups whose factor is 1 are left out. more: area that may be added to the circuit, um2.
    """
    times = dict.fromkeys((one.mirrors for one in groups), 1)

    def gain(one: MirrorGroup) -> float:
        n = times[one.mirrors]
        return one.loss * (1 / n - 1 / (n + 1)) / one.area

    more *= 1 + _ROUNDED
    while able := [one for one in groups if one.area <= more and one.loss > 0 and times[one.mirrors] < _MOST]:
        best = max(able, key=gain)
        times[best.mirrors] += 1
        more -= best.area
    return {pattern: n for pattern, n in times.items() if n > 1}


def with_more_devices(given: Overrides, times: Mapping[str, int]) -> Overrides:
    """Return the given overrides and entries that multiply devices. times: what `enlarge_mirrors` returns."""
    more = tuple(TransistorOverride(mirror=pattern, times=n) for pattern, n in times.items())
    return Overrides((*given.transistors, *more), given.bias)
