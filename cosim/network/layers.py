"""The layers of a network, each with its equations in numpy: what it learned, and what it computes.

Each kind of recurrent layer is a class: its fields are its arrays, `run` is its equation. Its circuit is in a kind of
unit (cosim.units), its torch cell is the class that `torch` names.

Equations: seed paper arXiv 2605.11855 eq. 2-5 (BMRU), 7 (CMRU), 10-11 (alphaCMRU); first-quadrant form
arXiv 2605.15216.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.base.errors import NetworkError

Array = NDArray[np.float64]
MOST_BITS = 4  # of an AND: switches in series above a current source
MOST_LEVELS = 32  # of a stored value
MOST_STATES = 256  # of a unit that counts
LEAST_RATE, MOST_RATE = 0.5, 16.0  # of a ratio gate: z of 0.39 and of 1 - 1e-7
FULL_SCALE = 1.0  # of a stored value on a grid: it lies between -1 and 1
# Of its level, at which a cell that follows a bit is set and reset: off the middle, towards the 0, because a 1 arrives
# with the spread of some mirrors, and a 0 with that of leakage.
RISE, FALL = 0.55, 0.35


@dataclass(frozen=True)
class LayerTrace:
    """A software run of one recurrent layer.

    h, candidate: (n, time, width); window: lower and upper threshold of the candidate, broadcastable to (n, time,
    width), None for a layer that compares nothing; state: the value from which the next step goes on, (n, width), None
    where that is the last h.
    """

    h: Array
    candidate: Array
    window: tuple[Array, Array] | None = None
    state: Array | None = None

    @property
    def last(self) -> Array:
        """Return the state from which the layer's next time step goes on, (n, width)."""
        return self.h[:, -1] if self.state is None else self.state


@dataclass(frozen=True)
class Layer(ABC):
    """A layer of a trained network.

    sources: names of the signals that it reads; weight: (width, inputs), columns in the order of the sources; bias:
    (width,).
    """

    kind: ClassVar[str]  # its name in a checkpoint

    name: str
    sources: tuple[str, ...]
    weight: Array
    bias: Array

    @property
    def width(self) -> int:
        """Return the layer's number of outputs."""
        return len(self.bias)

    @classmethod
    def array_fields(cls) -> tuple[str, ...]:
        """Return the names of the layer's learned arrays, in the order in which files store them."""
        return tuple(field.name for field in fields(cls) if field.name not in ("name", "sources", "epsilon"))

    def arrays(self) -> dict[str, Array]:
        """Return name -> learned array of the layer, without optional arrays that are None."""
        found = {name: getattr(self, name) for name in self.array_fields()}
        return {name: value for name, value in found.items() if value is not None}

    def drive(self, x: Array) -> Array:
        """Compute the layer's W x + b for x (n, time, inputs); returns (n, time, width)."""
        return x @ self.weight.T + self.bias

    def check(self, origin: str) -> None:  # noqa: B027 - most kinds allow all values
        """Raise NetworkError for learned values that no circuit of this kind of layer can have; origin: its file."""


@dataclass(frozen=True)
class ReluLayer(Layer):
    """A feed-forward layer of a trained network: y_t = max(W x_t + b, 0)."""

    kind = "relu"


@dataclass(frozen=True)
class AndLayer(ReluLayer):
    """A network layer of products of bits: y_t = 1 if all k bits of a row are on, else 0.

    A row has weight 1 / level at each of its bits, 0 elsewhere, and the bias 1 - k. On bits this is the rectifier's own
    equation, max(W x_t + b, 0). On the chip a row is a steering AND (cosim.cells.steering) if it reads bits only.
    """

    kind = "and"

    def check(self, origin: str) -> None:
        """Raise NetworkError if a row of the layer has no bits, or too many."""
        bits = (self.weight != 0).sum(axis=1)
        for i, count in enumerate(bits):
            if not 1 <= count <= MOST_BITS:
                raise NetworkError(
                    f"{origin}: {self.name}.weight[{i},*] must read 1 to {MOST_BITS} bits, not {count}; split the row, "
                    "or use a layer of kind relu"
                )


class RecurrentLayer(Layer):
    """A layer of a trained network that has a state.

    torch: the class of the cell that trains it, as `module:Class`.
    """

    torch: ClassVar[str]

    @property
    @abstractmethod
    def start(self) -> Array:
        """Return the layer's h before the first step, (width,)."""

    @abstractmethod
    def run(self, x: Array, before: Array | None = None) -> LayerTrace:
        """Compute all time steps of the layer in software, for x (n, time, inputs).

        before: `LayerTrace.last` of the steps before these, None to begin at the start.
        """

    def thresholds(self, index: int) -> tuple[float, float]:
        """Return upper and lower threshold of a unit of the layer; if they depend on the input, the constant part."""
        raise NotImplementedError(f"{type(self).__name__} {self.name} has no thresholds at unit {index}")

    @property
    def threshold_names(self) -> tuple[str, str]:
        """Return the names of the learned upper and lower threshold, in which `{}` stands for the unit's index."""
        return "", ""

    @property
    def smallest_width(self) -> float | None:
        """Return the layer's smallest hysteresis width, software units; None without one or if the input moves it."""
        return None

    @property
    def analog_parameters(self) -> str:
        """Describe in words what the layer learned for an analog state, beside its weights; "" for other layers."""
        return ""


class EpsilonLayer(RecurrentLayer):
    """A network layer with hysteresis: h_t = z_t (S_t alpha + epsilon h_{t-1}) + (1 - z_t) h_{t-1} (eq. 7)."""

    epsilon: float

    def check(self, origin: str) -> None:
        if not -1 <= self.epsilon <= 1:
            raise NetworkError(f"{origin}: {self.name}.epsilon must lie in [-1, 1], not {self.epsilon:g}")

    @property
    @abstractmethod
    def increment(self) -> Array:
        """Return the amount that an update at epsilon 1 adds to h of each unit of the layer, (width,)."""


@dataclass(frozen=True)
class FirstQuadrantLayer(EpsilonLayer):
    """A network layer of recurrent units with fixed thresholds and non-negative signals (arXiv 2605.15216).

    u_t = max(W x_t + b, 0); with centre c = (beta_hi + beta_lo) / 2 and half width w = (beta_hi - beta_lo) / 2,
    z_t = H(|u_t - c| - w), q_t = z_t (S(u_t - c) + epsilon q_{t-1}) + (1 - z_t) q_{t-1}, q_{-1} = 2 initial - 1,
    h_t = alpha (1 + q_t) / 2. At epsilon = 0: h becomes alpha at u >= beta_hi, 0 at u <= beta_lo, and is kept else.
    initial: 1 for a unit that begins on, 0 for one that begins off; None for all off.
    """

    kind = "first-quadrant"
    torch = "cosim.training.cells:FirstQuadrantCell"

    beta_lo: Array
    beta_hi: Array
    alpha: Array
    epsilon: float = 0.0
    initial: Array | None = None

    @property
    def start(self) -> Array:
        return np.zeros(self.width) if self.initial is None else self.alpha * self.initial

    def run(self, x: Array, before: Array | None = None) -> LayerTrace:
        u = np.maximum(self.drive(x), 0.0)
        # Compared with the thresholds themselves, not with centre and half width: a candidate on the threshold must
        # not be decided by how (hi + lo) / 2 was rounded.
        sets, resets = u >= self.beta_hi, u <= self.beta_lo
        first = np.full(self.width, -1.0) if self.initial is None else 2.0 * self.initial - 1.0
        first = first if before is None else before
        q = scan(sets | resets, np.where(sets, 1.0, -1.0), self.epsilon, first)
        return LayerTrace(self.alpha * (1.0 + q) / 2.0, u, (self.beta_lo, self.beta_hi), q[:, -1])

    @property
    def increment(self) -> Array:
        return self.alpha / 2

    def thresholds(self, index: int) -> tuple[float, float]:
        return float(self.beta_hi[index]), float(self.beta_lo[index])

    @property
    def threshold_names(self) -> tuple[str, str]:
        return "beta_hi{}", "beta_lo{}"

    @property
    def smallest_width(self) -> float | None:
        return float((self.beta_hi - self.beta_lo).min())

    def check(self, origin: str) -> None:
        width = self.beta_hi - self.beta_lo
        if not (width > 0).all():
            unit = int(np.argmin(width))
            raise NetworkError(
                f"{origin}: {self.name}.beta_hi[{unit}] - {self.name}.beta_lo[{unit}] is the hysteresis width and must "
                f"be positive, not {width[unit]:g}; raise the minimum width in training"
            )
        if self.initial is not None and not np.isin(self.initial, (0.0, 1.0)).all():
            unit = int(np.argmin(np.isin(self.initial, (0.0, 1.0))))
            raise NetworkError(
                f"{origin}: {self.name}.initial[{unit}] must be 0 (off) or 1 (on), not {self.initial[unit]:g}; leave "
                "the array out for units that all begin off"
            )
        super().check(origin)


def following(
    name: str, sources: tuple[str, ...], weight: Array, bias: float = 0.0, initial: Array | None = None
) -> FirstQuadrantLayer:
    """Return a layer of first-quadrant units that copy a bit: each becomes 1 or 0 as its row W x + b is near 1 or 0.

    The thresholds leave room for errors of either value. weight: (width, inputs); initial: see `FirstQuadrantLayer`.
    """
    ones = np.ones(len(weight))
    return FirstQuadrantLayer(name, sources, weight, bias * ones, FALL * ones, RISE * ones, ones, initial=initial)


@dataclass(frozen=True)
class SignedLayer(EpsilonLayer):
    """A network layer of the seed paper's recurrent units, eq. 2-5 and 7.

    h_hat = W x + b, beta = |W_beta x + b_beta|, z = H(|h_hat| - beta), h_t = z (S(h_hat) a + epsilon h_{t-1}) + (1 - z)
    h_{t-1}, h_{-1} = initial, or -alpha where that is None, with a = alpha, or a = W_alpha x + alpha for the alphaCMRU
    (eq. 10-11; `weight_alpha` not None, alpha is b_alpha). `weight_beta` None means a threshold constant in time, beta
    = |b_beta|. `levels` K of an alphaCMRU: the stored values, S(h_hat) a and h_{-1}, are rounded to the nearest of the
    K + 1 values -1, -1 + 2 / K ... 1, half way to the upper one. `ends` of a state that counts (epsilon 1): how many
    steps of alpha the state goes below and above h_{-1} at most, such as (-8, 7); at an end it stays, as in a ladder or
    counter of so many states. None means no end.
    """

    kind = "signed"
    torch = "cosim.training.cells:SignedCell"

    bias_beta: Array
    alpha: Array
    weight_beta: Array | None = None
    weight_alpha: Array | None = None
    epsilon: float = 0.0
    levels: int | None = None
    ends: tuple[int, int] | None = None
    initial: Array | None = None

    @classmethod
    def array_fields(cls) -> tuple[str, ...]:
        return "weight", "bias", "weight_beta", "bias_beta", "weight_alpha", "alpha", "initial"

    @property
    def start(self) -> Array:
        return self.stored(-self.alpha if self.initial is None else self.initial)

    def run(self, x: Array, before: Array | None = None) -> LayerTrace:
        candidate = self.drive(x)
        weight_beta = np.zeros_like(self.weight) if self.weight_beta is None else self.weight_beta
        beta = np.abs(x @ weight_beta.T + self.bias_beta)
        target = self.stored(np.where(candidate >= 0, 1.0, -1.0) * self.step(x))
        first = self.start if before is None else before
        h = scan(np.abs(candidate) >= beta, target, self.epsilon, first, self._limits())
        return LayerTrace(h, candidate, (-beta, beta))

    def _limits(self) -> tuple[Array, Array] | None:
        """Return the layer's lowest and highest h, (width,) each; None if its states have no ends."""
        if self.ends is None:
            return None
        low, high = (self.start + steps * self.alpha for steps in self.ends)
        return np.minimum(low, high), np.maximum(low, high)

    def step(self, x: Array) -> Array:
        """Return a, the amount that an update of h stores or adds, for x (n, time, inputs).

        Its shape is broadcastable to (n, time, width).
        """
        return self.alpha if self.weight_alpha is None else x @ self.weight_alpha.T + self.alpha

    def stored(self, value: Array) -> Array:
        """Return values as an update of the layer stores them: rounded to its levels if it has some. Any shape."""
        return value if self.levels is None else on_levels(value, self.levels)

    def check(self, origin: str) -> None:
        if self.levels is not None and self.weight_alpha is None:
            raise NetworkError(
                f"{origin}: {self.name}.levels is for an alphaCMRU, whose value depends on the input, and the layer "
                "has no weight_alpha; leave it out"
            )
        if self.levels is not None and not 1 <= self.levels <= MOST_LEVELS:
            raise NetworkError(f"{origin}: {self.name}.levels must lie in 1 to {MOST_LEVELS}, not {self.levels}")
        if self.ends is not None:
            self._check_ends(self.ends, origin)
        if self.initial is not None and abs(self.epsilon) != 1 and self.levels is None:
            raise NetworkError(
                f"{origin}: {self.name}.initial is for a state that counts or has levels, and this one begins at "
                "-alpha; leave it out"
            )
        super().check(origin)

    def _check_ends(self, ends: tuple[int, int], origin: str) -> None:
        """Raise NetworkError if the states of this layer cannot have these ends."""
        if self.epsilon != 1 or self.weight_alpha is not None:
            raise NetworkError(
                f"{origin}: {self.name}.ends are for a state that counts, with epsilon 1 and a constant alpha; leave "
                "them out"
            )
        if not (ends[0] <= 0 <= ends[1] and 1 <= ends[1] - ends[0] < MOST_STATES):
            raise NetworkError(
                f"{origin}: {self.name}.ends must have 0 between them and be 1 to {MOST_STATES - 1} apart, not "
                f"{list(ends)}"
            )

    @property
    def increment(self) -> Array:
        return self.alpha

    def thresholds(self, index: int) -> tuple[float, float]:
        upper = 0.0 if self.weight_beta is not None else abs(float(self.bias_beta[index]))
        return upper, -upper

    @property
    def threshold_names(self) -> tuple[str, str]:
        # where beta arrives by its own weights, the pins carry the offset alone
        field = "bias_beta" if self.weight_beta is None else "offset"
        return f"{field}{{}} (upper)", f"{field}{{}} (lower)"

    @property
    def smallest_width(self) -> float | None:
        return None if self.weight_beta is not None else float(2 * np.abs(self.bias_beta).min())


def on_levels(value: Array, levels: int) -> Array:
    """Round to the nearest of the levels + 1 values -1, -1 + 2 / levels ... 1; from half way, to the upper one."""
    steps = np.floor((value + FULL_SCALE) * levels / (2 * FULL_SCALE) + 0.5)
    return np.clip(steps, 0, levels) * (2 * FULL_SCALE / levels) - FULL_SCALE


def turn_distance(value: Array, levels: int) -> Array:
    """Return how far values are from the nearest turn, the middle between two levels, where `on_levels` changes."""
    step = 2 * FULL_SCALE / levels
    turns = np.clip(np.floor((value + FULL_SCALE) / step), 0, levels - 1) + 0.5
    return np.abs(value + FULL_SCALE - turns * step)


@dataclass(frozen=True)
class MinGruLayer(RecurrentLayer):
    """A network layer of minGRU units with an exponential gate: leaky integrators whose rate is an input.

    a_t = max(W_gate x_t + b_gate, 0), r_t = a_t, z_t = 1 - exp(-r_t), u_t = max(W x_t + b, 0),
    h_t = (1 - z_t) h_{t-1} + z_t u_t, from h = 0 on. The published unit has a logistic gate and a signed candidate.
    top (width,), None for no ratio gate: with one, r_t = top a_t / (top + a_t), which is logistic in ln a_t.
    """

    kind = "mingru"
    torch = "cosim.training.cells:MinGruCell"

    weight_gate: Array
    bias_gate: Array
    top: Array | None = None

    @property
    def start(self) -> Array:
        return np.zeros(self.width)

    def check(self, origin: str) -> None:
        """Raise NetworkError if `top`, a unit's largest rate, is one that no ratio gate can have."""
        for i, top in enumerate(() if self.top is None else self.top):
            if not LEAST_RATE <= top <= MOST_RATE:
                raise NetworkError(
                    f"{origin}: {self.name}.top[{i}] must lie in {LEAST_RATE:g} to {MOST_RATE:g}, not {top:g}; it is "
                    "the largest rate of a ratio gate"
                )

    @property
    def analog_parameters(self) -> str:
        """Describe the layer's gate, and the range of its weights and biases, in words."""
        gate = "exponential gate" if self.top is None else f"ratio gate with tops of {format_range(self.top)}"
        return f"{gate}; rate: weight {format_range(self.weight_gate)}, bias {format_range(self.bias_gate)}"

    def run(self, x: Array, before: Array | None = None) -> LayerTrace:
        candidate, gate = np.maximum(self.drive(x), 0.0), np.maximum(x @ self.weight_gate.T + self.bias_gate, 0.0)
        gate = gate if self.top is None else self.top * gate / (self.top + gate)
        kept, state = np.exp(-gate), self.start if before is None else before
        states = np.empty_like(candidate)
        for t in range(x.shape[1]):
            states[:, t] = state = candidate[:, t] + kept[:, t] * (state - candidate[:, t])
        return LayerTrace(states, candidate)


def format_range(array: Array) -> str:
    """Format the smallest and largest value of a layer's array: `0.125 to 3`."""
    return f"{array.min():.3g} to {array.max():.3g}"


def scan(
    update: NDArray[np.bool_],
    target: Array,
    epsilon: float,
    start: Array,
    limits: tuple[Array, Array] | None = None,
) -> Array:
    """Compute h_t = target_t + epsilon h_{t-1} where update_t, else h_{t-1} (eq. 7 of the seed paper), step by step.

    update, target: (n, time, width); start: h before the first step; limits: lowest and highest h, to which every step
    is clipped, None for none.
    """
    states = np.empty_like(target)
    state = np.broadcast_to(start, target[:, 0].shape)
    for t in range(target.shape[1]):
        state = np.where(update[:, t], target[:, t] + epsilon * state, state)
        state = state if limits is None else np.clip(state, *limits)
        states[:, t] = state
    return states


OFFSET_MARGIN = 0.25  # software units between the largest beta and the offset, so that fall stays off the leakage floor
OFFSET_STEP = 0.125


def common_mode_offset(beta: ArrayLike) -> NDArray[np.floating]:
    """Return the offset that makes all currents of a signed unit non-negative, in software units.

    beta: the largest threshold at which the unit may reset, in software units, any shape.
    """
    return np.ceil((np.asarray(beta) + OFFSET_MARGIN) / OFFSET_STEP) * OFFSET_STEP


def largest_beta(upper: float) -> float:
    """Return the largest constant beta of a signed unit whose upper threshold, offset included, is `upper`.

    Both are in software units.
    """
    return (upper - OFFSET_MARGIN - OFFSET_STEP) / 2
