"""Sensitivity of a sample to every transistor and bias current, from one run forward and one backward.

    margin    readout of the decided class minus that of the runner-up, pooled over the frames as the network does; or
              the current of one output, which real-valued answers need, or either of them in one frame
    decision  of a memory in a frame; its margin is the candidate's current minus the threshold
    sigma     sqrt((d/dV_T sigma_vt)^2 + (d/dln beta sigma_beta)^2) of each transistor, with the technology's mismatch
    share     sigma^2 of a transistor over the sum of all transistors' sigma^2

The derivatives are those of the batch engine's own steps (`engines.batch.adjoint`), to first order. States are whole
numbers: a deviation that flips a state makes the margin jump, which derivatives do not show. Between two jumps the
margin is smooth. The decisions show how near a jump is and which transistors cause it; each decision assumes that all
states before it stay as they are.

The margin of a decision is that of `engines.simulation.read`. The candidate's derivatives are those of the transistors;
the threshold and its derivatives are those of the behavioral model (`engines.behavioral.effects`).
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
from cosim.verbs.compile.cross_probing import cross_probe
from cosim.verbs.compile.page import format_cells
from cosim.verbs.provenance import origins, subject_of

if TYPE_CHECKING:
    from cosim.engines.batch.sensitivity import Gradients, Reading
    from cosim.verbs.sensitivity.suggest import MirrorSuggestion

Array = NDArray[np.float64]
_PINS = 5  # that are shown


@dataclass(frozen=True)
class ProbedDecision:
    """One decision of a memory cell whose sensitivities are computed.

    candidate: name of the transistor whose drain current is the candidate; time: when the decision is taken, s; margin:
    candidate minus threshold, A; rise: the upper threshold, A; width: upper threshold minus the one that is compared,
    A.
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
    """The figure whose sensitivity to every transistor is computed.

    frame: the frame that is read, None for the network's pooling; output: the output whose current is the figure, None
    for the margin of the decided class; area: gate area of devices over the drawn area, for mismatch alone; decisions:
    how many of the least certain decisions are studied as well.
    """

    frame: int | None = None
    output: int | None = None
    area: float = 1.0
    decisions: int = 8


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of a figure to one transistor.

    vt_shift: derivative by the magnitude of its threshold voltage, A/V; ln_beta: derivative by ln of its current
    factor, A, equal to that by ln of its width as far as width scales its current; sigma_a: spread of the figure by its
    mismatch, A; share: its share of the figure's variance.
    """

    device: str
    block: str
    role: Role | None
    vt_shift: float
    ln_beta: float
    sigma_a: float
    share: float


@dataclass(frozen=True)
class Decision:
    """Sensitivity of one memory's decision in a frame.

    margin_a: candidate minus threshold, A; sigma_a: spread of the margin by mismatch, A; flips: share of chips on which
    the decision comes out otherwise, to first order; devices: transistors, the one with the largest share first.
    """

    cell: str
    frame: int
    margin_a: float
    sigma_a: float
    flips: float
    devices: tuple[Sensitivity, ...]


@dataclass(frozen=True)
class Sensitivities:
    """Sensitivities of one sample.

    outputs: decided class and runner-up, or the one output that was chosen; value_a: the margin between them, or the
    current of the output, A; sigma_a: spread of this value by mismatch as long as no state flips, A; devices:
    transistors, the one with the largest share first; pins: bias pin -> derivative of the value by its current, A/A;
    decisions: the likeliest to flip first.
    """

    outputs: tuple[int, ...]
    value_a: float
    sigma_a: float
    devices: tuple[Sensitivity, ...]
    pins: dict[str, float]
    decisions: tuple[Decision, ...]


def sensitivities(
    design: Design, samples: Sequence[Array], run: Run = Run(), asked: SensitivityTarget = SensitivityTarget()
) -> list[Sensitivities]:
    """Compute for `cosim sensitivity` how each transistor moves the decision of raw samples, each (time, features).

    run: has condition, chip and time-out; as many samples run at once as the engine has lanes. Raises InputError for a
    frame or an output that does not exist, a pooling without derivative, and a technology without mismatch
    coefficients; SimulationError where the engine cannot run a sample; MissingToolError without numba.
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
    """Compute the sensitivities of at most as many samples as the batch engine runs at once (its lanes)."""
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
) -> "tuple[dict[int, Reading], float, list[ProbedDecision]]":
    """Read a simulated sample: return (output -> term of the differentiated sum, sum in A, least certain decisions).

    The sum is the margin or the output's current.
    """
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


def _decision(closing: ProbedDecision, devices: tuple[Sensitivity, ...]) -> Decision:
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
    """Return the sensitivity of one figure to each transistor, the largest share of the variance first.

    place: (figure, lane of the sample) in `slopes`; spreads: transistor -> its mismatch; less: transistor ->
    derivatives of the threshold, A/V and A, which are subtracted.
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
    """Return the weight of each frame in the readout, (frames,): one frame in `asked`, or the network's pooling."""
    if asked.frame is not None:
        return np.eye(frames)[asked.frame]
    each = np.eye(frames)[:, :, None]
    return pool_readout(each, np.full(frames, frames), design.network.readout.pooling)[:, 0]


def _signs(pooled: Array, asked: SensitivityTarget) -> dict[int, float]:
    """Return output -> its sign in the figure: 1 for the chosen output, or 1 and -1 for decided class and runner-up.
    pooled: (outputs,) readouts."""
    if asked.output is not None:
        return {asked.output: 1.0}
    order = np.argsort(-pooled, kind="stable").tolist()
    return {order[0]: 1.0} | dict.fromkeys(order[1:2], -1.0)


def least_certain(
    design: Design, plan: ReadPlan, inference: Inference, waves: Waveforms, count: int
) -> list[ProbedDecision]:
    """Return the `count` decisions of a sample with the smallest margins by magnitude, the smallest first.

    Only 9T cells with constant thresholds count. waves: the sample's simulated waveforms, with the candidates.
    """
    found: list[ProbedDecision] = []
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
            found.append(ProbedDecision(cell, frame, margin.device, close, read - rise + width, rise, width))
    return sorted(found, key=lambda one: abs(one.margin))[:count]


def threshold_slopes(design: Design, run: Run, closing: ProbedDecision) -> dict[str, tuple[float, float]]:
    """Return transistor -> derivatives of a decision's threshold by its vt_shift, A/V, and by its ln beta, A."""
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


def sensitivity_page(
    design: Design, sample: int, found: Sensitivities, top: int, suggestion: "MirrorSuggestion | None" = None
) -> Page:
    """Return the page of one sample's sensitivities.

    sample: number in the test set; top: transistors in its table; suggestion: written for the sample, None for none.
    """
    decided, *other = found.outputs
    what = f"output {decided} over {other[0]}" if other else f"output {decided}"
    value, sigma = format_quantity(found.value_a, "A"), format_quantity(found.sigma_a, "A")
    shown = found.devices[:top]
    explained = percent(sum(one.share for one in shown))
    pins = sorted(found.pins.items(), key=lambda pin: -abs(pin[1]))[:_PINS]
    page = Page(
        verb="sensitivity",
        subject=subject_of(design),
        title=f"test sample {sample}: {what} is {value}, which mismatch moves by {sigma} (1 sigma)",
        lead=f"{len(found.devices)} transistors. {len(shown)} of them explain {explained} of the variance together.",
        cards=(),
        sections=(
            Section("The transistors that decide it", (_devices(shown),)),
            Section("The states that are likeliest to flip", _decisions(found.decisions)),
            *(() if suggestion is None else (_suggested(suggestion),)),
            Section("Bias pins", (Table(("pin", "A per A"), tuple((pin, f"{by:+.4g}") for pin, by in pins), (1,)),)),
            *(Section(name, blocks, detail=True) for name, blocks in format_cells(design).items()),
        ),
        provenance=origins(design),
    )
    return cross_probe(page, design)


def _suggested(found: "MirrorSuggestion") -> Section:
    title = "Suggested: devices in place of one"
    if not found.times:
        return Section(
            title, ("Twice any mirror would add more than a tenth to the area of all gates: no file is written.",)
        )
    rows = tuple((line, str(n)) for line, n in sorted(found.times.items(), key=lambda row: (-row[1], row[0])))
    sigma = format_quantity(found.sigma_a, "A")
    predicted = (
        f"With them the sample's spread by mismatch should be {sigma}, in {found.area:.3g} times the area of gates. "
        "They are chosen for this sample; cosim harden chooses for all."
    )
    return Section(title, (Table(("mirror", "devices"), rows, (1,)), predicted))


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
    """Return a table with a row for each of the least certain decisions; nothing without decisions."""
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
    """Return a transistor's name without that of the network's instance in front of it."""
    return name.partition(".")[2]
