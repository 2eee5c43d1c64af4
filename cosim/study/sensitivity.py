"""Which devices decide a sample: how a readout answers to every transistor and bias current, from one run each way.

    margin    what is read out of the decided class over that of the runner-up, pooled over the frames as the network
              does; or the current of one output, or of one frame
    sigma     sqrt((d/dV_T sigma_vt)^2 + (d/dln beta sigma_beta)^2) of each transistor, with the technology's mismatch
    share     of the variance of the margin, the sum of the squares of all sigmas

The derivatives are those of the batch engine's own steps (`engines.batch.adjoint`), to first order. States are whole
numbers: where a deviation turns one, the margin jumps, and no derivative says so. Between two such jumps it is smooth.
The decision margins of an audit say how far each state is from that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.cells.blocks import block_of
from cosim.circuit.elements import Role
from cosim.design import Design
from cosim.engines.engine import Run
from cosim.engines.table import BATCH, simulator_named
from cosim.errors import InputError, SimulationError
from cosim.network.reference import pool_readout
from cosim.simulation.testbench import inference_benches
from cosim.variation.draws import Device, Plan, varying_devices

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """frame: that is read, None for the network's own pooling; output: whose current is asked for, None for the margin.

    area: of the devices over drawn, for their mismatch.
    """

    frame: int | None = None
    output: int | None = None
    area: float = 1.0


@dataclass(frozen=True)
class Sensitivity:
    """One transistor. vt_shift: by the magnitude of its threshold, A/V; ln_beta: by ln of its current factor, A, and so
    by ln of its width, as far as that multiplies the current; sigma_a: what its mismatch alone does, A; share: of the
    variance."""

    device: str
    block: str
    role: Role | None
    vt_shift: float
    ln_beta: float
    sigma_a: float
    share: float


@dataclass(frozen=True)
class Sensitivities:
    """Of one sample. value_a: the margin, or the current that is asked for, A; outputs: of the two classes whose
    difference it is, or one; sigma_a: its spread by mismatch, A; devices: the most decisive first; pins: A/A."""

    outputs: tuple[int, ...]
    value_a: float
    sigma_a: float
    devices: tuple[Sensitivity, ...]
    pins: dict[str, float]


def sensitivities(design: Design, x: Array, run: Run = Run(), asked: Asked = Asked()) -> Sensitivities:
    """Of a raw sample x (time, features) in the batch engine, in the run's condition and on its chip.

    Raises InputError for a frame or an output that is not there, a pooling that has no derivative, and a technology
    without mismatch coefficients; SimulationError where the engine cannot run it; MissingToolError without numba.
    """
    return all_sensitivities(design, [x], run, asked)[0]


def all_sensitivities(
    design: Design, samples: Sequence[Array], run: Run = Run(), asked: Asked = Asked()
) -> list[Sensitivities]:
    """The same of several samples, as many at once as the engine has lanes."""
    simulator = simulator_named(BATCH)
    for x in samples:
        _check_asked(design, len(x), asked)
    found: list[Sensitivities] = []
    for first in range(0, len(samples), simulator.lanes):
        found += _tile(design, samples[first : first + simulator.lanes], run, asked)
    return found


def _check_asked(design: Design, frames: int, asked: Asked) -> None:
    count, pooling = len(design.assembly.outputs), design.network.readout.pooling
    if asked.frame is not None and not 0 <= asked.frame < frames:
        raise InputError(f"no frame {asked.frame}: the sample has frames 0 to {frames - 1}; choose one of them")
    if asked.output is not None and not 0 <= asked.output < count:
        raise InputError(f"no output {asked.output}: the network has outputs 0 to {count - 1}; choose one of them")
    if asked.frame is None and pooling == "vote":
        raise InputError("readout.pooling is vote: votes are counted, and a count has no derivative; choose a frame")


def _tile(design: Design, samples: Sequence[Array], run: Run, asked: Asked) -> list[Sensitivities]:
    """Of at most as many samples as there are lanes."""
    from cosim.engines.batch.sensitivity import Reading, gradients, record  # numba, which need not be there
    from cosim.engines.batch.solve import Late, Stuck
    from cosim.engines.batch.unsupported import Unsupported

    benches = list(inference_benches(design, samples, run.timing, run.condition, run.chip))
    pins = design.assembly.outputs
    try:
        recorded = record(benches, pins, run.timeout * len(benches))
    except (Stuck, Unsupported, Late) as reason:
        raise SimulationError(
            f"the batch engine cannot run this sample: {type(reason).__name__.lower()} {reason}"
        ) from None
    signs, values, objective = [], [], []
    for lane, x in enumerate(samples):
        times, waves = run.timing.sample_times(len(x)), recorded.waveforms(lane)
        readout = np.stack([np.interp(times, waves.time, waves.through(pin)) for pin in pins], axis=1)
        weights = _frame_weights(design, len(x), asked)
        pooled = weights @ readout
        sign = _signs(pooled, asked)
        objective.append([Reading(pins[k], times, one * weights) for k, one in sign.items()])
        signs.append(sign)
        values.append(sum(one * float(pooled[k]) for k, one in sign.items()))
    found, spreads = gradients(recorded, [objective]), _spreads(design, asked.area)
    bias = [name in {*design.bias_pins(run.standing(design)), "unit", "pedestal"} for name in found.sources]
    results: list[Sensitivities] = []
    for k, (sign, value) in enumerate(zip(signs, values, strict=True)):
        pairs = zip(found.transistors, found.vt_shift[0, k].tolist(), found.ln_beta[0, k].tolist(), strict=True)
        devices = _ranked([(spreads[name], *pair) for name, *pair in pairs])
        pins = zip(found.sources, found.current[0, k].tolist(), bias, strict=True)
        sigma = float(np.sqrt(sum(one.sigma_a**2 for one in devices)))
        results.append(
            Sensitivities(tuple(sign), value, sigma, devices, {pin: a for pin, a, is_bias in pins if is_bias})
        )
    return results


def _spreads(design: Design, area: float) -> dict[str, Device]:
    plan = Plan("local", seed=0, chips=1, area=area)
    return {device.name: device for device in varying_devices(design.assembly.circuit, design.technology, plan)}


def _ranked(found: Sequence[tuple[Device, float, float]]) -> tuple[Sensitivity, ...]:
    """(transistor, A/V, A) as sensitivities, the most decisive first."""
    sigmas = [float(np.hypot(by_volt * one.sigma_vt, by_beta * one.sigma_beta)) for one, by_volt, by_beta in found]
    variance = sum(sigma**2 for sigma in sigmas) or 1.0
    every = [
        Sensitivity(one.name, block_of(one.part), one.role, by_volt, by_beta, sigma, sigma**2 / variance)
        for (one, by_volt, by_beta), sigma in zip(found, sigmas, strict=True)
    ]
    return tuple(sorted(every, key=lambda device: (-device.share, device.device)))


def _frame_weights(design: Design, frames: int, asked: Asked) -> Array:
    """Of each frame in what is asked for."""
    if asked.frame is not None:
        return np.eye(frames)[asked.frame]
    each = np.eye(frames)[:, :, None]
    return pool_readout(each, np.full(frames, frames), design.network.readout.pooling)[:, 0]


def _signs(pooled: Array, asked: Asked) -> dict[int, float]:
    """Output -> its sign."""
    if asked.output is not None:
        return {asked.output: 1.0}
    order = np.argsort(-pooled, kind="stable").tolist()
    return {order[0]: 1.0} | dict.fromkeys(order[1:2], -1.0)
