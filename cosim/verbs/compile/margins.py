"""Margins of decisions, that is distances of candidates from thresholds, in standard deviations, layer by layer.

Two standard deviations are used. That of the nominal circuit has noise and the error that calibration leaves; that of a
chip also has mismatch. Equations: `variation.sigma` and `engines.behavioral.noise`, at the currents of each decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.base.quantities import format_quantity
from cosim.compiler.design import Condition, Design
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.behavioral.sigma import DecisionSpread, decision_spread
from cosim.network.reference import valid_steps
from cosim.results.intervals import Interval, share_interval
from cosim.results.page import Blocks, Table
from cosim.tasks.testset import TestSet
from cosim.variation.noise import NoiseSimulation

Array = NDArray[np.float64]
NEAR = 3.0  # sigma
_MIDDLE = 50
_SAID = (
    "How far each candidate is from the threshold that counts, in standard deviations of that candidate: of the noise "
    "of its devices and of what calibration leaves, which grow with what its row adds; for chips of mismatch as well. "
    "Nominal circuit, behavioral model."
)


@dataclass(frozen=True)
class SigmaSummary:
    """The distances of decisions from their thresholds, in sigma.

    fewest: smallest distance of all decisions; within: share of decisions that are within NEAR sigma, with its
    interval.
    """

    fewest: float
    within: Interval


@dataclass(frozen=True)
class LayerMargins:
    """The distances of a layer's decisions from their thresholds.

    decisions: number of decisions; circuit: distances in sigma of noise and of what calibration leaves; chips:
    distances in sigma of these and of mismatch; noise_a, left_a, mismatch_a: median sigma of noise, of what calibration
    leaves and of mismatch, A.
    """

    layer: str
    decisions: int
    circuit: SigmaSummary
    chips: SigmaSummary
    noise_a: float
    left_a: float
    mismatch_a: float


@dataclass(frozen=True)
class Margins:
    """The distances of a network's decisions from their thresholds, on the samples of a test set.

    samples: number of samples; layers: one entry for each layer that compares with thresholds, in the network's order.
    """

    samples: int
    layers: tuple[LayerMargins, ...]


def study_margins(
    design: Design, test_set: TestSet, noise: NoiseSimulation, condition: Condition | None = None
) -> Margins:
    """Compute the margin, in sigma, of every decision of the nominal circuit on all samples, layer by layer.

    noise: the noise of the circuit's devices. Raises InputError for a unit whose noise is not modelled, or a technology
    without mismatch.
    """
    found = decision_spread(design, run_behavioral(design, test_set.x, condition), noise, condition)
    valid = valid_steps(test_set.lengths, test_set.x.shape[1])
    layers: dict[str, list[DecisionSpread]] = {}
    for node in design.graph.memories:
        if node.name in found:
            layers.setdefault(node.layer, []).append(found[node.name])
    return Margins(len(test_set.lengths), tuple(_layer(name, few, valid) for name, few in layers.items()))


def _layer(name: str, few: Sequence[DecisionSpread], valid: NDArray[np.bool_]) -> LayerMargins:
    distance, noise, mismatch, left = (
        np.stack([getattr(one, part) for one in few], axis=2) for part in ("distance", "noise", "mismatch", "left")
    )
    counted = valid[:, :, None] & np.isfinite(distance)
    circuit = np.hypot(noise, left)
    medians = (float(np.percentile(one[counted], _MIDDLE)) if counted.any() else 0.0 for one in (noise, left, mismatch))
    chips = _near(distance / np.hypot(circuit, mismatch), counted)
    return LayerMargins(name, int(counted.sum()), _near(distance / circuit, counted), chips, *medians)


def _near(sigmas: Array, counted: NDArray[np.bool_]) -> SigmaSummary:
    there = counted.sum(axis=(1, 2))
    shares = ((sigmas <= NEAR) & counted).sum(axis=(1, 2))[there > 0] / there[there > 0]
    return SigmaSummary(float(sigmas[counted].min(initial=np.inf)), share_interval(shares))


def margins_section(found: Margins) -> Blocks:
    """Return two tables: each layer's margins, for circuit and chips, and the median sigmas that they consist of."""
    margins = tuple(
        (one.layer, name, *_cells(near))
        for one in found.layers
        for name, near in (("circuit", one.circuit), ("chips", one.chips))
    )
    medians = tuple(
        (
            one.layer,
            str(one.decisions),
            *(format_quantity(value, "A") for value in (one.noise_a, one.left_a, one.mismatch_a)),
        )
        for one in found.layers
    )
    return (
        f"{found.samples} samples. {_SAID}",
        Table(("layer", "of", "fewest sigma", f"within {NEAR:g} sigma", "95 % interval"), margins, (2, 3, 4)),
        "Medians of a standard deviation's parts:",
        Table(("layer", "decisions", "noise", "calibration", "mismatch"), medians, (1, 2, 3, 4)),
    )


def _cells(near: SigmaSummary) -> tuple[str, str, str]:
    within = near.within
    ends = "" if within.low is None or within.high is None else f"[{100 * within.low:.2f} %, {100 * within.high:.2f} %]"
    return f"{near.fewest:.2f}", f"{100 * within.mean:.2f} %", ends
