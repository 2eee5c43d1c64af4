"""The least certain decisions of a sample: what a memory decides on when its stage closes, and what its threshold is.

A decision's margin is the candidate's current over the threshold, see `simulation.certainty`. The candidate's
derivatives are those of the transistors; the threshold and its derivatives are those of the behavioral model
(`variation.effects`).
"""

from dataclasses import dataclass

import numpy as np

from cosim.circuit.bench import DrainCurrent
from cosim.compiler.design import Design
from cosim.engines.engine import Inference, Run, Waveforms
from cosim.engines.simulation.read import ReadPlan
from cosim.units.schmitt import Schmitt
from cosim.variation.effects import effects_of


@dataclass(frozen=True)
class Closing:
    """A decision. candidate: the transistor whose current it is; time: s; margin: that current over the threshold, A;
    rise: the upper threshold, and width: by how much the one that was compared with is lower, A."""

    cell: str
    frame: int
    candidate: str
    time: float
    margin: float
    rise: float
    width: float


def least_certain(design: Design, plan: ReadPlan, inference: Inference, waves: Waveforms, count: int) -> list[Closing]:
    """Return the `count` decisions with the smallest margins, the smallest first, of cells with fixed thresholds."""
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
    """Return transistor -> d threshold / d vt_shift, A/V, and d threshold / d ln beta, A."""
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
