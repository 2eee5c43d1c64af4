"""Sources of the spread: the share of variance that each group of transistors brings on its own.

Two independent sets of chips A and B are drawn. With Y a chip's figure, Y_g that of chip B with the group g of chip A,

    S_g = mean((Y_A - mean) (Y_g - Y_B)) / var(Y)          (first-order index, pick and freeze)

is the fraction of the variance that g's deviations explain alone. A fraction lies in 0 to 1: an interval as wide as
WIDEST rules nothing out, and its share is no figure; intervals narrow as 1 / sqrt(chips). Over groups that divide all
transistors, R2 = sum S_g is what a model that adds up the groups' effects can explain; the rest is their interplay.
Source: A. Saltelli et al., Comput. Phys. Commun. 181 (2010) 259, table 2 (b); intervals by bootstrap over chips.
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
    """Return the group of transistors, as Monte Carlo divides the variance, that the device's part of the network
    belongs to."""
    assert device.part is not None
    return device.part.group


def kind_of(device: VaryingDevice) -> str:
    """Return a device's kind, as Monte Carlo divides the variance: n or p, and whether it mirrors signals or makes a
    cell's currents; or that it only steers."""
    if device.role == "switch":
        return "switches"
    return f"{device.polarity} {'mirrors' if device.role in MIRRORS else 'cells'}"


DIVISIONS: dict[str, Callable[[VaryingDevice], str]] = {"block": group_of, "kind": kind_of}


def mixed_chip(own: Chip, other: Chip, chosen: NDArray[np.bool_]) -> Chip:
    """Return a Monte Carlo run's chip `other` with the draws of chip `own` for the transistors `chosen`, (devices,)."""
    return replace(
        other,
        vt_shift=np.where(chosen, own.vt_shift, other.vt_shift),
        beta_factor=np.where(chosen, own.beta_factor, other.beta_factor),
    )


def chip_figures(trial: Trial, number: int) -> dict[str, list[float]]:
    """Compute the figures, by metric, of a chip of A, of its chip of B, and of that with each group of A, by division.

    Set A is the first half of the trial's chips, B the second.
    """
    own, other = trial.chip(number), trial.chip(number + trial.plan.chips // 2)
    chips = [own, other]
    for division in DIVISIONS.values():
        names = np.array([division(device) for device in own.devices])
        chips += [mixed_chip(own, other, names == name) for name in sorted(set(names.tolist()))]
    found = [run_behavioral_chip(trial, chip) for chip in chips]
    return {metric: [figures[metric] for figures in found] for metric in CHIP_METRICS}


def share_variance(devices: Sequence[VaryingDevice], figures: Array, seed: int) -> dict[str, Division]:
    """Compute shares per division from figures (chips, 2 + groups), as `chip_figures` gives them for one metric."""
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
    """Return how many chips, in hundreds, make intervals narrower than WIDEST, from the widest one of len(figures)
    pairs; 0 where no more are needed."""
    return 0 if widest < WIDEST else 100 * math.ceil(2 * len(figures) * (widest / WIDEST) ** 2 / 100)


def _index(figures: Array) -> float:
    """Compute S_g from the figures of A, B and B with the group of A, (chips, 3)."""
    first, second, mixed = figures.T
    both = figures[:, :2]
    variance = both.var()
    return float(((first - both.mean()) * (mixed - second)).mean() / variance) if np.ptp(both) > 0 else 0.0
