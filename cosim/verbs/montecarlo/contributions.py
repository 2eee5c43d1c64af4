"""Sources of the spread of figures over chips: the share of variance that each group of transistors explains alone.

Two independent sets of chips A and B are drawn. Y_A and Y_B are a figure of chip k in A and in B; Y_g is the figure of
chip k in B after the transistors of group g got the draws of chip k in A:

    S_g = mean((Y_A - mean) (Y_g - Y_B)) / var(Y)          (first-order index, pick and freeze)

S_g is the fraction of the variance that the deviations in g explain alone, between 0 and 1. An interval as wide as
WIDEST therefore rules nothing out, and its share is not shown. Intervals narrow as 1 / sqrt(chips). If the groups
contain every transistor, a model that adds up the effects of the groups explains R2 = sum S_g; the rest is interplay
between groups. Source: A. Saltelli et al., Comput. Phys. Commun. 181 (2010) 259, table 2 (b); intervals are from a
bootstrap over chips.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.elements import Role
from cosim.results.metrics import CHIP_METRICS
from cosim.variation.draws import Chip, VaryingDevice
from cosim.verbs.montecarlo.chips import Division, VarianceShare
from cosim.verbs.montecarlo.trial import Trial, run_behavioral_chip

Array = NDArray[np.float64]

MIRRORS: set[Role | None] = {"diode", "copy", "weight", "output"}  # what carries signals
_BOOTSTRAPS = 200
WIDEST = 1.0


def group_of(device: VaryingDevice) -> str:
    """Return the group of a transistor in the division of variance by block: the group of its part of the network."""
    assert device.part is not None
    return device.part.group


def kind_of(device: VaryingDevice) -> str:
    """Return the group of a transistor in the division of variance by kind.
    Groups are "switches", and n or p "mirrors" (carry signals) or "cells" (make the currents of a memory cell)."""
    if device.role == "switch":
        return "switches"
    return f"{device.polarity} {'mirrors' if device.role in MIRRORS else 'cells'}"


DIVISIONS: dict[str, Callable[[VaryingDevice], str]] = {"block": group_of, "kind": kind_of}


def mixed_chip(own: Chip, other: Chip, chosen: NDArray[np.bool_]) -> Chip:
    """Return chip `other` with the draws of chip `own` in the transistors that are True in `chosen`, (devices,)."""
    return replace(
        other,
        vt_shift=np.where(chosen, own.vt_shift, other.vt_shift),
        beta_factor=np.where(chosen, own.beta_factor, other.beta_factor),
    )


def chip_figures(trial: Trial, number: int) -> dict[str, list[float]]:
    """Compute for pair `number` of chips what `share_variance` needs: metric -> figures, (2 + groups,).

    The figures are those of the chip of set A (first half of the trial's chips), of the chip of set B (second half),
    and of chip B with the draws of chip A in one group after the other, division by division.
    """
    own, other = trial.chip(number), trial.chip(number + trial.plan.chips // 2)
    chips = [own, other]
    for division in DIVISIONS.values():
        names = np.array([division(device) for device in own.devices])
        chips += [mixed_chip(own, other, names == name) for name in sorted(set(names.tolist()))]
    found = [run_behavioral_chip(trial, chip) for chip in chips]
    return {metric: [figures[metric] for figures in found] for metric in CHIP_METRICS}


def share_variance(devices: Sequence[VaryingDevice], figures: Array, seed: int) -> dict[str, Division]:
    """Compute each group's share of the variance of one metric: division ("block" or "kind") -> shares.
    figures: (pairs of chips, 2 + groups), in rows as `chip_figures` returns them for this metric; seed: of the
    bootstrap."""
    start, found = 2, {}
    rng = np.random.default_rng(seed)
    picks = rng.integers(len(figures), size=(_BOOTSTRAPS, len(figures)))
    for name, division in DIVISIONS.items():
        members = [division(device) for device in devices]
        shares = []
        for k, group in enumerate(sorted(set(members))):
            triple = figures[:, (0, 1, start + k)]
            low, high = np.quantile([_index(triple[pick]) for pick in picks], (0.025, 0.975))
            shares.append(VarianceShare(group, members.count(group), _index(triple), float(low), float(high)))
        start += len(shares)
        shares.sort(key=lambda share: -share.value)
        widest = max(share.high - share.low for share in shares)
        found[name] = Division(sum(share.value for share in shares), tuple(shares), _needed(figures, widest))
    return found


def _needed(figures: Array, widest: float) -> int:
    """Return how many chips, in hundreds, would make every interval narrower than WIDEST, 0 if they are.

    figures: (pairs of chips, 2 + groups); widest: width of the widest interval from these pairs.
    """
    return 0 if widest < WIDEST else 100 * math.ceil(2 * len(figures) * (widest / WIDEST) ** 2 / 100)


def _index(figures: Array) -> float:
    """Compute S_g from the figures of A, of B, and of B with the draws of A in group g, (pairs of chips, 3)."""
    first, second, mixed = figures.T
    both = figures[:, :2]
    variance = both.var()
    return float(((first - both.mean()) * (mixed - second)).mean() / variance) if np.ptp(both) > 0 else 0.0
