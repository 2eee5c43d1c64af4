"""Distances of decisions from their thresholds, in standard deviations by noise, mismatch and what calibration leaves.

The equations are those of `variation.sigma`, with the currents, mirrors and thresholds of a compiled design; the noise
is that of `engines.behavioral.noise`. A row's sum includes its pedestals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design
from cosim.engines.behavioral.evaluate import BehavioralTrace, cell_of, threshold_lines
from cosim.engines.behavioral.noise import Candidates, ClockedCells, apertures, gate_lag, noise_model
from cosim.network.ir.nodes import Memory, Rectifier, ThresholdUnit
from cosim.network.reference import later
from cosim.technology.noise import NoiseFit
from cosim.technology.scale import I_UNIT
from cosim.technology.types import Technology
from cosim.units.kind import SwitchingThresholds
from cosim.units.table import unit_of
from cosim.variation.noise import NoiseSimulation
from cosim.variation.sigma import (
    RowNoise,
    SigmaParts,
    WeightedRows,
    candidate_variance,
    derive_mismatch,
    left_by,
    row_noise,
    threshold_variance,
)

_WIDTH = 0.3  # of the threshold, of the cell whose share is taken
Array = NDArray[np.float64]


@dataclass(frozen=True)
class DecisionSpread:
    """The distances of a memory's decisions from their thresholds, and how they spread, (n, time), ampere.

    distance: of the candidate to the nearest threshold that counts, inf where none does; noise, mismatch, left:
    standard deviations of that distance by device noise, by mismatch, and by the error that calibration leaves.
    """

    distance: Array
    noise: Array
    mismatch: Array
    left: Array

    @property
    def sigma(self) -> Array:
        """Return the standard deviation of behavioral decisions' distances by all three parts together, ampere."""
        return np.sqrt(self.noise**2 + self.mismatch**2 + self.left**2)

    @property
    def sigmas(self) -> Array:
        """Return behavioral decisions' distances from the threshold over their standard deviations."""
        return self.distance / self.sigma


def decision_spread(
    design: Design, trace: BehavioralTrace, noise: NoiseSimulation, condition: Condition | None = None
) -> dict[str, DecisionSpread]:
    """Return the decisions of each memory in a behavioral trace without noise: memory -> distance and deviations.

    The trace is that of nominal transistors in the condition. Raises InputError for a unit whose noise is not modelled,
    or a technology without mismatch.
    """
    return _Study(design, trace, noise, condition or design.nominal).run()


def devices_of(technology: Technology, fit: NoiseFit, units: int, *, chips: bool) -> SigmaParts:
    """Return the spread of decisions for a training: noise, what calibration leaves, and mismatch if `chips`.

    units: unit devices per weight 1.0. Raises InputError for a technology without mismatch.
    """
    mismatch = derive_mismatch(technology, 1 / units) if chips else None
    return SigmaParts(units, left_by(technology.name), training_noise(technology, fit), mismatch)


def training_noise(technology: Technology, fit: NoiseFit) -> RowNoise:
    """Return the noise of a row for a training, by the behavioral engine's equations, at I_UNIT.

    share: a 9T cell's share of the candidate's noise, averaged over both edges, with the threshold at I_UNIT.
    """
    u_t, timing = technology.thermal_voltage, Timing()
    gate = gate_lag(fit, timing, technology.supply, u_t)
    hold = technology.hold_capacitance + fit.devices["cell_p"].gate
    found = row_noise(fit, I_UNIT, (hold, gate), 1.0)
    bias = np.full(2, I_UNIT)
    edges = apertures(
        ClockedCells(bias, _WIDTH * bias, np.array([False, True]), 2, timing, technology.supply, u_t), fit
    )
    lag = gate / found.gate  # of a candidate of I_UNIT
    shares = [
        edge.frozen**2 + (2 * edge.frozen * edge.tracked + edge.tracked**2 * edge.ran) * lag / (lag + edge.lag)
        for edge in edges
    ]
    return replace(found, share=float(np.sqrt(np.mean(shares))))


class _Study:
    def __init__(self, design: Design, trace: BehavioralTrace, noise: NoiseSimulation, condition: Condition) -> None:
        self.design, self.graph, self.trace = design, design.graph, trace
        model = noise_model(design, noise, condition.technology.thermal_voltage, condition.bias_scale)
        self.noisy = Candidates(model, self.current)
        grid = 1 / self.graph.units
        self.mismatch = SigmaParts(self.graph.units, None, mismatch=derive_mismatch(design.technology, grid))

    def run(self) -> dict[str, DecisionSpread]:
        """Return the decisions of each memory that compares, by name."""
        return {node.name: self.decided(node) for node in self.graph.of(ThresholdUnit)}

    def current(self, source: str, *, late: bool) -> Array:
        """Return the current of a signal in the trace, ampere, (n, time); with `late` that of the frame before."""
        found = self.trace.currents[source]
        return later(found, 1, found.min()) if late else found

    def decided(self, node: ThresholdUnit) -> DecisionSpread:
        candidate, unit = self.trace.candidates[node.name], self.graph.i_unit
        frozen = self.noisy.frozen(node, candidate)
        noise = self.noisy.decided(node, candidate, frozen)
        row, u = self.row(node.name), candidate / unit
        cell = cell_of(self.graph, node, self.design.calibration)
        lines = threshold_lines(self.graph, node, self.trace, self.design.calibration)
        thresholds = unit_of(node).switching_thresholds(cell, lines)
        distance, edge, rise = (one / unit for one in self.nearest(node, candidate, thresholds))
        left = SigmaParts(self.graph.units, left_by(self.design.technology.name, remembers=not thresholds.own_devices))
        parts = [
            np.sqrt(self.arriving(node.name, row, u, spread) + threshold_variance(rise, rise - edge, spread)) * unit
            for spread in (self.mismatch, left)
        ]
        return DecisionSpread(distance * unit, np.broadcast_to(noise, u.shape), *parts)

    def nearest(
        self, node: ThresholdUnit, candidate: Array, thresholds: SwitchingThresholds
    ) -> tuple[Array, Array, Array]:
        """Return the distance of a behavioral candidate to the nearest threshold that counts, and two currents, ampere.

        These are that threshold, and the threshold whose devices it has.
        """
        (off, at_off), (on, at_on) = (_nearest(candidate, few) for few in (thresholds.while_off, thresholds.while_on))
        was_on = later(self.trace.states[node.name], 1, node.start) > 0
        edge = np.where(was_on, at_on, at_off)
        every = (edge,) if thresholds.own_devices else (*thresholds.while_off, *thresholds.while_on)
        rise = np.max([np.broadcast_to(one, candidate.shape) for one in every], axis=0)
        return np.where(was_on, on, off), edge, rise

    def row(self, name: str) -> WeightedRows:
        """Return the row that a node adds up in a behavioral trace: weights, inputs, and which of them are states.

        Inputs are over the current of 1.0.
        """
        into, unit = self.graph.into(name), self.graph.i_unit
        weight = np.array([[self.graph.mirrors[source, name].realised for source, _ in into]])
        x = np.stack([self.current(source, late=weight.late) for source, weight in into], axis=-1) / unit
        states = np.array([isinstance(self.graph.nodes[source], Memory) for source, _ in into])
        return WeightedRows(weight, x, np.where(states, np.maximum(x - self.graph.i_pedestal / unit, 0.0), 0.0))

    def arriving(self, name: str, row: WeightedRows, u: Array, spread: SigmaParts) -> Array:
        """Return the variance of a row's sum, with that of the rectifiers which the row reads, units^2."""
        found = candidate_variance(row, u[..., None], spread)[..., 0]
        for source, weight in self.graph.into(name):
            if isinstance(self.graph.nodes[source], Rectifier):
                inner = self.current(source, late=weight.late) / self.graph.i_unit
                own = self.arriving(source, self.row(source), 0 * inner, spread) * (inner > 0)
                found = found + self.graph.mirrors[source, name].realised ** 2 * own
        return found


def _nearest(candidate: Array, thresholds: Sequence[Array]) -> tuple[Array, Array]:
    """Return the distance to the nearest of some thresholds, and that threshold, ampere; distance inf for none."""
    distance, edge = np.full(candidate.shape, np.inf), np.zeros(candidate.shape)
    for threshold in thresholds:
        away = np.abs(candidate - threshold)
        edge = np.where(away < distance, threshold, edge)
        distance = np.minimum(distance, away)
    return distance, edge
