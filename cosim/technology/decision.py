"""Measured small-signal data of the decision node of a technology's clocked 9T cell.

While the cell tracks, M1 and M2 work on the decision node's own capacitance and output conductance; when the sample
gate has closed, on that of decision node and latch, and the hold node follows the decision node through M1's gate.
cosim.engines.behavioral.aperture says what follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
DECISION_CURRENTS = (5e-11, 2e-10, 1e-9, 5e-9)  # A, of the threshold


@dataclass(frozen=True)
class DecisionNode:
    """outputs: conductance of M1 and M2 together over the threshold current, 1/V, one for each of DECISION_CURRENTS;
    tracking, joined, loop: capacitance of the node, of it with the latch, and of the feedback's line, F; kick: volt of
    the hold node for a volt of the decision node; pedestal: what the closing sample gate leaves on the hold node, V;
    switch: (V, A) of M6 at two voltages of the latch; freezes, joins: when the sample gate lets go of the hold node
    and the decision gate begins to conduct, as fractions of the clock's edge."""

    outputs: tuple[float, ...]
    tracking: float
    joined: float
    loop: float
    kick: float
    pedestal: float
    switch: tuple[tuple[float, float], ...]
    freezes: float
    joins: float

    def output(self, i_thresh: ArrayLike) -> Array:
        """Return the conductance of M1 and M2 at a threshold current, S."""
        low, high = DECISION_CURRENTS[0], DECISION_CURRENTS[-1]
        ratio = np.interp(np.log(np.clip(i_thresh, low, high)), np.log(DECISION_CURRENTS), self.outputs)
        return np.asarray(i_thresh) * ratio

    def switched(self, latch: ArrayLike) -> Array:
        """Return the current that M6 could carry at a voltage of the latch, A: exponential, as a device in weak
        inversion."""
        (low, least), (high, most) = self.switch
        steep = np.log(most / least) / (high - low)
        return least * np.exp(np.minimum(steep * (np.asarray(latch) - low), _LARGEST))


_LARGEST = 40.0


def why_not_a_node(node: DecisionNode) -> str | None:
    """Return a sentence about the first field that is not as a decision node's must be; None where all are."""
    positive: Sequence[float] = (node.tracking, node.joined, node.loop, *node.outputs)
    if len(node.outputs) != len(DECISION_CURRENTS) or min(positive) <= 0:
        return f"decision.outputs must hold {len(DECISION_CURRENTS)} positive numbers, and its capacitances be positive"
    if len(node.switch) != 2 or any(len(pair) != 2 for pair in node.switch):
        return "decision.switch must hold two pairs of volt and ampere"
    (low, least), (high, most) = node.switch
    return None if low < high and 0 < least < most else "decision.switch must rise"
