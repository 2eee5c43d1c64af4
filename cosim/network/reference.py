"""The discrete-time reference: the network's own equations, one time step after the other, in float64.

This is what "the software" means in every comparison: no circuit effect, no calibration, no scan.
"""

from dataclasses import dataclass

import numpy as np

from cosim.errors import InputError
from cosim.network.types import INPUT, Array, FirstQuadrantLayer, InputEncoding, Layer, Network, ReluLayer, SignedLayer


@dataclass(frozen=True)
class EncodedInputs:
    """Input currents in units, (n, time, width), as `encode_inputs` makes them: a type of their own, because raw inputs
    have the same shape and would be taken for currents without a word."""

    units: Array

    def scaled(self, factor: float) -> "EncodedInputs":
        """All of them times a factor: what converters deliver away from their nominal point."""
        return EncodedInputs(factor * self.units)


@dataclass(frozen=True)
class Trace:
    """What a network did on a batch; samples first, then time.

    inputs: what the first layers read; signals: layer name -> (n, time, width) outputs
    candidates: recurrent layer name -> (n, time, width) h_hat (rectified in the first-quadrant form)
    betas: signed layer name -> (n, time, width) threshold
    readout: (n, time, outputs) per step; scores: (n, outputs) pooled; lengths: (n,) valid steps
    """

    inputs: EncodedInputs
    signals: dict[str, Array]
    candidates: dict[str, Array]
    betas: dict[str, Array]
    readout: Array
    scores: Array
    lengths: np.ndarray

    @property
    def decisions(self) -> np.ndarray:
        """Index of the largest pooled output, shape (n,)."""
        return self.scores.argmax(axis=1)


def encode_inputs(encoding: InputEncoding, x: np.ndarray, origin: str = "data") -> EncodedInputs:
    """Raw (n, time, features) to input currents in units, (n, time, width) in [0, 1].

    Raises InputError when they are encoded already, the number of features differs or a value is not finite.
    """
    if isinstance(x, EncodedInputs):
        raise InputError(f"{origin}: x must be raw inputs, not encoded ones, which would be encoded twice")
    x = np.asarray(x, dtype=np.float64)
    check_inputs(encoding, x, origin)
    encoded = np.clip((x - encoding.offset) / encoding.scale, 0.0, 1.0)
    if encoding.ramp_steps is not None:
        ramp = np.minimum((np.arange(x.shape[1]) + 1) / encoding.ramp_steps, 1.0)
        encoded = np.concatenate([encoded, np.broadcast_to(ramp[None, :, None], (*x.shape[:2], 1))], axis=2)
    return EncodedInputs(encoded if encoding.levels is None else np.rint(encoded * encoding.levels) / encoding.levels)


def check_inputs(encoding: InputEncoding, x: np.ndarray, origin: str) -> None:
    """Raises InputError where raw inputs have another number of features, or a value that is not finite."""
    if x.ndim != 3 or x.shape[2] != encoding.features:
        raise InputError(
            f"{origin}: x must have shape (samples, time, {encoding.features}) for this network, not {x.shape}; "
            "use the data that the network was trained on or retrain it on this data"
        )
    if not np.isfinite(x).all():
        raise InputError(
            f"{origin}: x holds {np.count_nonzero(~np.isfinite(x))} values that are not finite; remove them"
        )


def run_reference(network: Network, x: np.ndarray, lengths: np.ndarray | None = None, origin: str = "data") -> Trace:
    """Evaluate a network on raw inputs x (n, time, features); `lengths` (n,) valid steps, default all.

    Raises InputError when the number of features differs or a value is not finite.
    """
    encoded = encode_inputs(network.encoding, x, origin)
    signals: dict[str, Array] = {}
    candidates: dict[str, Array] = {}
    betas: dict[str, Array] = {}
    for layer in network.layers:
        inputs = read_sources(layer.sources, encoded, signals)
        signals[layer.name] = _run_layer(layer, inputs, candidates, betas)
    readout = read_sources(network.readout.sources, encoded, signals) @ network.readout.weight.T + network.readout.bias
    lengths = np.full(len(x), x.shape[1]) if lengths is None else np.asarray(lengths)
    scores = pool_readout(readout, lengths, network.readout.pooling)
    return Trace(encoded, signals, candidates, betas, readout, scores, lengths)


def read_sources(sources: tuple[str, ...], inputs: EncodedInputs, signals: dict[str, Array]) -> Array:
    """What a layer reads, side by side, (n, time, inputs)."""
    return np.concatenate([inputs.units if source == INPUT else signals[source] for source in sources], axis=2)


def pool_readout(readout: Array, lengths: np.ndarray, pooling: str) -> Array:
    """Pool per-step outputs (n, time, outputs) over the valid steps to (n, outputs)."""
    n, steps, outputs = readout.shape
    valid = np.arange(steps)[None, :] < lengths[:, None]
    if pooling == "last":
        return readout[np.arange(n), lengths - 1]
    if pooling == "vote":
        readout = np.eye(outputs)[readout.argmax(axis=2)]
    return (readout * valid[:, :, None]).sum(axis=1) / lengths[:, None]


def _run_layer(layer: Layer, x: Array, candidates: dict[str, Array], betas: dict[str, Array]) -> Array:
    drive = x @ layer.weight.T + layer.bias
    if isinstance(layer, ReluLayer):
        return np.maximum(drive, 0.0)
    if isinstance(layer, FirstQuadrantLayer):
        candidates[layer.name] = drive = np.maximum(drive, 0.0)
        # Compared with the thresholds themselves, not with centre and half width: a candidate on the threshold must
        # not be decided by how (hi + lo) / 2 was rounded.
        sets, resets = drive >= layer.beta_hi, drive <= layer.beta_lo
        q = _scan(sets | resets, np.where(sets, 1.0, -1.0), layer.epsilon, np.full(layer.width, -1.0))
        return layer.alpha * (1.0 + q) / 2.0
    return _run_signed(layer, x, drive, candidates, betas)


def _run_signed(
    layer: SignedLayer, x: Array, drive: Array, candidates: dict[str, Array], betas: dict[str, Array]
) -> Array:
    weight_beta = np.zeros_like(layer.weight) if layer.weight_beta is None else layer.weight_beta
    beta = np.abs(x @ weight_beta.T + layer.bias_beta)
    alpha = layer.alpha if layer.weight_alpha is None else x @ layer.weight_alpha.T + layer.alpha
    candidates[layer.name], betas[layer.name] = drive, beta
    return _scan(np.abs(drive) >= beta, np.where(drive >= 0, 1.0, -1.0) * alpha, layer.epsilon, -layer.alpha)


def _scan(update: np.ndarray, target: Array, epsilon: float, start: Array) -> Array:
    """h_t = target_t + epsilon h_{t-1} where update_t, else h_{t-1} (eq. 7), one step after the other."""
    states = np.empty_like(target)
    state = np.broadcast_to(start, target[:, 0].shape)
    for t in range(target.shape[1]):
        state = np.where(update[:, t], target[:, t] + epsilon * state, state)
        states[:, t] = state
    return states
