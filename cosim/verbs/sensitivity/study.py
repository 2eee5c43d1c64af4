"""Sensitivity of a sample to every transistor and bias current, from one run each way.

    margin    what is read out of the decided class over that of the runner-up, pooled over the frames as the network
              does; or the current of one output, as always where answers are real numbers, or of one frame
    decision  of a memory in a frame: its candidate's current over its threshold, below
    sigma     sqrt((d/dV_T sigma_vt)^2 + (d/dln beta sigma_beta)^2) of each transistor, with the technology's mismatch
    share     of the variance, the sum of the squares of all sigmas

The derivatives are those of the batch engine's own steps (`engines.batch.adjoint`), to first order. States are whole
numbers: where a deviation turns one, the margin jumps, and its derivatives do not say so. Between two such jumps it is
smooth. How near a jump is, and which transistors bring it, is what the decisions say, each as if all states before it
were what they are.

A decision's margin is the candidate's current over the threshold, see `simulation.certainty`. The candidate's
derivatives are those of the transistors; the threshold and its derivatives are those of the behavioral model
(`variation.effects`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cosim.base.errors import InputError, SimulationError
from cosim.base.quantities import format_quantity
from cosim.circuit.bench import Current, DrainCurrent
from cosim.circuit.elements import Role, block_of
from cosim.compiler.design import Design
from cosim.engines.behavioral.effects import effects_of
from cosim.engines.engine import Inference, Run, Waveforms
from cosim.engines.simulation.read import (
    ReadPlan,
    decision_margins,
    read_inference,
    read_plan,
    with_candidates,
    with_margins,
)
from cosim.engines.simulation.testbench import inference_benches
from cosim.engines.table import BATCH, simulator_named
from cosim.network.reference import pool_readout
from cosim.results.metrics import percent
from cosim.results.page import Page, Section, Table
from cosim.units.schmitt import Schmitt
from cosim.variation.draws import VariationPlan, VaryingDevice, varying_devices
from cosim.verbs.provenance import origins, subject_of

if TYPE_CHECKING:
    from cosim.engines.batch.sensitivity import Gradients, Reading

Array = NDArray[np.float64]
_PINS = 5  # that are shown


@dataclass(frozen=True)
class Closing:
    """A decision of a cell whose sensitivities are asked for.

    candidate: the transistor whose current it is; time: s; margin: that current over the threshold, A; rise: the upper
    threshold, and width: by how much the one that was compared with is lower, A.
    """

    cell: str
    frame: int
    candidate: str
    time: float
    margin: float
    rise: float
    width: float


@dataclass(frozen=True)
class SensitivityTarget:
    """The figure whose sensitivity to every transistor is asked.

    frame: the one that is read, None for the network's own pooling; output: whose current is asked for, None for the
    margin; area: of the devices over drawn, for their mismatch; decisions: how many of the least certain are looked at.
    """

    frame: int | None = None
    output: int | None = None
    area: float = 1.0
    decisions: int = 8


@dataclass(frozen=True)
class Sensitivity:
    """One transistor. vt_shift: by the magnitude of its threshold, A/V; ln_beta: by ln of its current factor, A, and so
    by ln of its width, as far as that multiplies its current; sigma_a: what its mismatch alone does, A; share: of the
    variance."""

    device: str
    block: str
    role: Role | None
    vt_shift: float
    ln_beta: float
    sigma_a: float
    share: float


@dataclass(frozen=True)
class Decision:
    """Sensitivity of one memory's decision in a frame. margin_a: its candidate's current over its threshold, A;
    sigma_a: its spread by mismatch; flips: share of chips in which it comes out the other way, to first order; devices:
    the most decisive first."""

    cell: str
    frame: int
    margin_a: float
    sigma_a: float
    flips: float
    devices: tuple[Sensitivity, ...]


@dataclass(frozen=True)
class Sensitivities:
    """Sensitivities of one sample. value_a: the margin, or the current that is asked for, A; outputs: of the two
    classes whose difference it is, or one; sigma_a: its spread by mismatch while no state flips, A; devices: the most
    decisive first; pins: A/A; decisions: the likeliest to flip first."""

    outputs: tuple[int, ...]
    value_a: float
    sigma_a: float
    devices: tuple[Sensitivity, ...]
    pins: dict[str, float]
    decisions: tuple[Decision, ...]


def sensitivities(
    design: Design, samples: Sequence[Array], run: Run = Run(), asked: SensitivityTarget = SensitivityTarget()
) -> list[Sensitivities]:
    """Compute for `cosim sensitivity` the figures of raw samples, each (time, features), in the batch engine.

    The condition and the chip are those of `run`; as many samples run at once as the engine has lanes. Raises
    InputError for a frame or an output that is not there, a pooling that has no derivative, and a technology without
    mismatch coefficients; SimulationError where the engine cannot run it; MissingToolError without numba.
    """
    simulator = simulator_named(BATCH)
    for x in samples:
        _check_asked(design, len(x), asked)
    found: list[Sensitivities] = []
    for first in range(0, len(samples), simulator.lanes):
        found += _tile(design, samples[first : first + simulator.lanes], run, asked)
    return found


def _check_asked(design: Design, frames: int, asked: SensitivityTarget) -> None:
    count, pooling = len(design.assembly.outputs), design.network.readout.pooling
    if asked.frame is not None and not 0 <= asked.frame < frames:
        raise InputError(f"no frame {asked.frame}: the sample has frames 0 to {frames - 1}; choose one of them")
    if asked.output is not None and not 0 <= asked.output < count:
        raise InputError(f"no output {asked.output}: the network has outputs 0 to {count - 1}; choose one of them")
    if asked.output is None and design.network.regression and count > 1:
        raise InputError(
            "the network was trained for real numbers, which have no margin; choose one of its outputs, 0 to "
            f"{count - 1} (--readout)"
        )
    if asked.frame is None and pooling == "vote":
        raise InputError("readout.pooling is vote: votes are counted, and a count has no derivative; choose a frame")


def _tile(design: Design, samples: Sequence[Array], run: Run, asked: SensitivityTarget) -> list[Sensitivities]:
    """Compute the figures of `cosim sensitivity` for at most as many samples as there are lanes."""
    from cosim.engines.batch.circuit import Unsupported
    from cosim.engines.batch.sensitivity import Reading, gradients, record  # numba, which need not be there
    from cosim.engines.batch.simulator import SimulationTimeout

    margins = decision_margins(design, run)
    benches = inference_benches(design, samples, run.timing, run.condition, run.chip)
    driven = [with_candidates(bench, margins) for bench in benches]
    try:
        recorded = record(driven, run.timeout * len(driven))
    except Unsupported as reason:
        raise SimulationError(f"the batch engine cannot run this sample: {reason}") from None
    except SimulationTimeout:
        raise SimulationError(f"this sample takes longer than {run.timeout:g} s; give more --timeout") from None
    read = [_read(design, recorded.waveforms(lane), len(x), run, asked) for lane, x in enumerate(samples)]
    objectives = [[list(readings.values()) for readings, _, _ in read]]
    for k in range(max(len(closings) for _, _, closings in read)):
        at = [closings[k : k + 1] for _, _, closings in read]
        objectives.append(
            [[Reading(DrainCurrent(one.candidate), np.array([one.time]), np.ones(1)) for one in few] for few in at]
        )
    found = gradients(recorded, objectives)
    plan = VariationPlan("local", seed=0, chips=1, area=asked.area)
    spreads = {one.name: one for one in varying_devices(design.assembly.circuit, design.technology, plan)}
    shown = {*design.bias_pins(run.standing(design)), "unit", "pedestal"}
    results: list[Sensitivities] = []
    for lane, (readings, value, closings) in enumerate(read):
        devices = _ranked(found, (0, lane), spreads, {})
        pins = zip(found.sources, found.current[0, lane].tolist(), strict=True)
        decisions = [
            _decision(one, _ranked(found, (1 + k, lane), spreads, threshold_slopes(design, run, one)))
            for k, one in enumerate(closings)
        ]
        results.append(
            Sensitivities(
                outputs=tuple(readings),
                value_a=value,
                sigma_a=_total(devices),
                devices=devices,
                pins={pin: slope for pin, slope in pins if pin in shown},
                decisions=tuple(sorted(decisions, key=lambda one: -one.flips)),
            )
        )
    return results


def _read(
    design: Design, waves: Waveforms, frames: int, run: Run, asked: SensitivityTarget
) -> "tuple[dict[int, Reading], float, list[Closing]]":
    """Return of a simulated sample the readings, by output, whose sum `cosim sensitivity` differentiates, that sum in
    A, and the least certain decisions."""
    from cosim.engines.batch.sensitivity import Reading

    plan = read_plan(design, frames, run.timing, run.standing(design))
    plan = with_margins(plan, decision_margins(design, run), run)
    inference, weights = read_inference(waves, plan), _frame_weights(design, frames, asked)
    pooled = weights @ inference.readout
    signs = _signs(pooled, asked)
    readings = {
        k: Reading(Current(design.assembly.outputs[k]), plan.times, sign * weights) for k, sign in signs.items()
    }
    value = sum(sign * float(pooled[k]) for k, sign in signs.items())
    return readings, value, least_certain(design, plan, inference, waves, asked.decisions)


def _decision(closing: Closing, devices: tuple[Sensitivity, ...]) -> Decision:
    sigma = _total(devices)
    flips = float(ndtr(-abs(closing.margin) / sigma)) if sigma else 0.0
    return Decision(closing.cell, closing.frame, closing.margin, sigma, flips, devices)


def _total(devices: Sequence[Sensitivity]) -> float:
    return float(np.sqrt(sum(one.sigma_a**2 for one in devices)))


def _ranked(
    slopes: "Gradients",
    place: tuple[int, int],
    spreads: Mapping[str, VaryingDevice],
    less: Mapping[str, tuple[float, float]],
) -> tuple[Sensitivity, ...]:
    """Return the transistors with their share of the variance, the most decisive first.

    place: of the objective, and of the sample's lane; less: transistor -> A/V and A to subtract.
    """
    found: list[tuple[VaryingDevice, float, float, float]] = []
    volts, betas = slopes.vt_shift[place].tolist(), slopes.ln_beta[place].tolist()
    for name, volt, beta in zip(slopes.transistors, volts, betas, strict=True):
        one, (less_volt, less_beta) = spreads[name], less.get(name, (0.0, 0.0))
        by_volt, by_beta = volt - less_volt, beta - less_beta
        found.append((one, by_volt, by_beta, float(np.hypot(by_volt * one.sigma_vt, by_beta * one.sigma_beta))))
    variance = sum(sigma**2 for *_, sigma in found) or 1.0
    every = [
        Sensitivity(one.name, block_of(one.part), one.role, by_volt, by_beta, sigma, sigma**2 / variance)
        for one, by_volt, by_beta, sigma in found
    ]
    return tuple(sorted(every, key=lambda device: (-device.share, device.device)))


def _frame_weights(design: Design, frames: int, asked: SensitivityTarget) -> Array:
    """Return the weight of each frame, (frames,), in the readout that `cosim sensitivity` is asked for: one frame, or
    the network's pooling."""
    if asked.frame is not None:
        return np.eye(frames)[asked.frame]
    each = np.eye(frames)[:, :, None]
    return pool_readout(each, np.full(frames, frames), design.network.readout.pooling)[:, 0]


def _signs(pooled: Array, asked: SensitivityTarget) -> dict[int, float]:
    """Return output -> its sign in the margin whose sensitivities `cosim sensitivity` computes."""
    if asked.output is not None:
        return {asked.output: 1.0}
    order = np.argsort(-pooled, kind="stable").tolist()
    return {order[0]: 1.0} | dict.fromkeys(order[1:2], -1.0)


def least_certain(design: Design, plan: ReadPlan, inference: Inference, waves: Waveforms, count: int) -> list[Closing]:
    """Return the `count` decisions with the smallest margins, the smallest first, of cells with fixed thresholds, for
    `cosim sensitivity`."""
    found: list[Closing] = []
    for k, (cell, margin) in enumerate(zip(design.assembly.decisions, plan.margins, strict=True)):
        if margin is None or margin.lines or not isinstance(design.graph.nodes[cell], Schmitt):
            continue
        thresholds = margin.thresholds(())
        rise, fall = float(thresholds.while_off[0]), float(thresholds.while_on[0])
        current = waves.probes[DrainCurrent(margin.device)]
        for frame, close in enumerate(plan.closes[k].tolist()):
            was_on = frame > 0 and inference.states[frame - 1, k] > 0
            width = rise - fall if was_on else 0.0
            read = abs(float(np.interp(close, waves.time, current)))
            found.append(Closing(cell, frame, margin.device, close, read - rise + width, rise, width))
    return sorted(found, key=lambda one: abs(one.margin))[:count]


def threshold_slopes(design: Design, run: Run, closing: Closing) -> dict[str, tuple[float, float]]:
    """Return a sensitivity: transistor -> d threshold / d vt_shift, A/V, and d threshold / d ln beta, A."""
    thermal = run.standing(design).technology.thermal_voltage
    weights = {"thresh": closing.rise, "width": -closing.width, "compared": closing.width - closing.rise}
    found: dict[str, tuple[float, float]] = {}
    for one in effects_of(design):
        if one.factors is None or one.key != closing.cell or one.field not in weights:
            continue
        for (device, sign), slope in zip(one.devices, one.slopes, strict=True):
            by_volt, by_beta = found.get(device, (0.0, 0.0))
            ampere = sign * weights[one.field]
            found[device] = by_volt - ampere / (slope * thermal), by_beta + ampere
    return found


def sensitivity_page(design: Design, sample: int, found: Sensitivities, top: int) -> Page:
    """Return the page of one sample's sensitivities, with its `top` most decisive transistors."""
    decided, *other = found.outputs
    what = f"output {decided} over {other[0]}" if other else f"output {decided}"
    value, sigma = format_quantity(found.value_a, "A"), format_quantity(found.sigma_a, "A")
    shown = found.devices[:top]
    explained = percent(sum(one.share for one in shown))
    pins = sorted(found.pins.items(), key=lambda pin: -abs(pin[1]))[:_PINS]
    return Page(
        verb="sensitivity",
        subject=subject_of(design),
        title=f"test sample {sample}: {what} is {value}, which mismatch moves by {sigma} (1 sigma)",
        lead=f"{len(found.devices)} transistors. {len(shown)} of them explain {explained} of the variance together.",
        cards=(),
        sections=(
            Section("The transistors that decide it", (_devices(shown),)),
            Section("The states that are likeliest to flip", _decisions(found.decisions)),
            Section("Bias pins", (Table(("pin", "A per A"), tuple((pin, f"{by:+.4g}") for pin, by in pins), (1,)),)),
        ),
        provenance=origins(design),
    )


def _devices(shown: Sequence[Sensitivity]) -> Table:
    rows = tuple(
        (
            _inner(one.device),
            one.block,
            one.role or "",
            format_quantity(1e-3 * one.vt_shift, "A"),
            format_quantity(1e-2 * one.ln_beta, "A"),
            format_quantity(one.sigma_a, "A"),
            percent(one.share),
        )
        for one in shown
    )
    head = ("transistor", "block", "role", "by 1 mV", "by 1 % width", "sigma", "of the variance")
    return Table(head, rows, (3, 4, 5, 6))


def _decisions(decisions: Sequence[Decision]) -> tuple[Table, ...]:
    """Return a row for each of the least certain decisions, with its most decisive transistor; none without them."""
    rows = tuple(
        (
            one.cell,
            str(one.frame),
            format_quantity(one.margin_a, "A"),
            format_quantity(one.sigma_a, "A"),
            percent(one.flips),
            f"{_inner(one.devices[0].device)} {100 * one.devices[0].share:.0f} %",
        )
        for one in decisions
    )
    head = ("decision", "frame", "margin", "sigma", "flips", "most by")
    return (Table(head, rows, (1, 2, 3, 4)),) if rows else ()


def _inner(name: str) -> str:
    """Return a transistor's name within the network, for the page of `cosim sensitivity`."""
    return name.partition(".")[2]
