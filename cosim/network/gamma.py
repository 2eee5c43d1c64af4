"""Dispersive delays as a layer: every unit is a line of equal first-order filters, whose mean delay is learned.

n filters of time constant tau answer a pulse by t^(n-1) e^(-t/tau) / ((n-1)! tau^n), with a mean of p = n tau. If the
input is constant within a frame and the line is read at the end of frames, this is exactly the kernel of
`cosim.papers.mgrade`.
Source: J. C. Principe, B. de Vries, P. G. de Oliveira, IEEE Trans. Signal Processing 41 (1993) 649 (gamma memory); its
filters here are continuous in time.
"""

from dataclasses import dataclass

import numpy as np

from cosim.base.errors import NetworkError
from cosim.network.layers import Array, LayerTrace, RecurrentLayer, format_range

MOST_FILTERS = 16  # of a line
LEAST_RATE, MOST_RATE = 0.02, 2.0  # n / p: time constants of a filter in a frame; beyond, the input moves too fast


def line_step(rates: Array) -> tuple[Array, Array]:
    """Return E (n, n) and F (n,) of the update y <- E y + F u that one frame makes to a delay line's n filters.

    rates: time constants of each filter in a frame, (n,). dy_k/dt = r_k (y_{k-1} - y_k), y_0 = u.
    """
    from scipy.linalg import expm  # loaded where there is a delay line, so that other processes start sooner

    n = len(rates)
    flow = np.zeros((n + 1, n + 1))
    flow[np.arange(n), np.arange(n)] = -rates
    flow[np.arange(1, n), np.arange(n - 1)] = rates[1:]
    flow[0, n] = rates[0]
    moved = np.asarray(expm(flow), dtype=np.float64)
    return moved[:n, :n], moved[:n, n]


@dataclass(frozen=True)
class GammaLayer(RecurrentLayer):
    """A software layer of dispersive delay lines.

    u_t = max(W x_t + b, 0); h_t is the output of a line of n filters with mean delay p frames, which reads u and begins
    at 0. b <= 0, because a line is at rest before the first step. position (width,): p; order (width,): n, whole
    numbers. h_t = sum over m of (P(n, (m + 1) n / p) - P(n, m n / p)) u_{t-m}, P the regularised incomplete gamma
    function.
    """

    kind = "gamma"
    torch = "cosim.training.cells:GammaCell"

    position: Array
    order: Array

    @property
    def start(self) -> Array:
        return np.zeros(self.width)

    def check(self, origin: str) -> None:
        """Raise NetworkError if a delay or number of filters of the layer is one that no circuit has."""
        for i, (order, position) in enumerate(zip(self.order.tolist(), self.position.tolist(), strict=True)):
            if order % 1 or not 1 <= order <= MOST_FILTERS:
                raise NetworkError(
                    f"{origin}: {self.name}.order[{i}] must be a whole number of filters from 1 to {MOST_FILTERS}, not "
                    f"{order:g}"
                )
            if self.bias[i] > 0:
                raise NetworkError(
                    f"{origin}: {self.name}.bias[{i}] must be at most 0, not {self.bias[i]:g}: a delay line begins at "
                    "rest; add the constant where the line is read"
                )
            least, most = order / MOST_RATE, order / LEAST_RATE
            if not least <= position <= most:
                raise NetworkError(
                    f"{origin}: {self.name}.position[{i}] must lie in {least:g} to {most:g} frames, not {position:g}; "
                    f"a line of {order:g} tau-cells has no other delays"
                )

    @property
    def analog_parameters(self) -> str:
        """Describe the layer's delays and numbers of filters in words, for reports."""
        return f"delays of {format_range(self.position)} frames on average, {self.order.max():g} filters in a line"

    def run(self, x: Array, before: Array | None = None) -> LayerTrace:
        candidate = np.maximum(self.drive(x), 0.0)
        orders = self.order.astype(int)
        filters = np.zeros((len(x), self.width, orders.max())) if before is None else before.copy()
        states = np.empty_like(candidate)
        for i, n in enumerate(orders.tolist()):
            kept, taken = line_step(np.full(n, n / self.position[i]))
            line = filters[:, i, :n]
            for t in range(x.shape[1]):
                line = line @ kept.T + candidate[:, t, i, None] * taken
                states[:, t, i] = line[:, -1]
            filters[:, i, :n] = line
        return LayerTrace(states, candidate, state=filters)
