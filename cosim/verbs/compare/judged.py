"""The figures of a comparison that a spec may be on, each with its 95 % interval where it has one."""

import numpy as np
from numpy.typing import NDArray

from cosim.compiler.design import Design, block_areas
from cosim.results.intervals import mean_interval
from cosim.results.metrics import Estimate

Figures = dict[str, Estimate]  # by metric


def measure_cost(design: Design, watts: NDArray[np.float64], lengths: NDArray[np.int64], t_step: float) -> Figures:
    """Compute power, energy of an inference, latency of the longest one and area of the gates. watts, lengths: (n,)."""
    power, energy = (mean_interval(values) for values in (watts, watts * lengths * t_step))
    return {
        "power": Estimate(power.mean, power.low, power.high),
        "energy": Estimate(energy.mean, energy.low, energy.high),
        "latency": Estimate(latency(lengths, t_step)),
        "area": Estimate(gate_area(design)),
    }


def latency(lengths: NDArray[np.int64], t_step: float) -> float:
    """Return the time of the longest inference in a comparison, from the first frame to the end of the last, s."""
    return float(lengths.max()) * t_step


def gate_area(design: Design) -> float:
    """Return the area that a comparison reports: transistors and capacitors as drawn, um2, without wells and wires."""
    return 1e12 * sum(gates + capacitors for gates, capacitors in block_areas(design).values())


def decision_margin(pooled: NDArray[np.float64], pooling: str) -> float | None:
    """Return the smallest difference, over all samples, between the two largest of pooled readouts (n, outputs), in
    their unit; None for votes, or one output."""
    if pooling == "vote" or pooled.shape[1] < 2:
        return None
    top = np.sort(pooled, axis=1)
    return float((top[:, -1] - top[:, -2]).min())
