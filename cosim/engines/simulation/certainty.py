"""Certainty of decisions: a memory's candidate, when its stage closes, against the threshold that counts then.

The candidate is the current of its diode: in the cell itself the decision node takes whatever voltage makes the
currents into it cancel. The threshold is that of the unit's equations, as calibration measured it and as the chip's
draws move it; where it depends on the input, from the currents of the cell's own threshold lines. What calibration
leaves of it is not in it. A quantiser's comparators have no memory: the size of its pulse says whether they decided.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cosim.cells.builder import instance, net
from cosim.circuit.bench import Bench, DrainCurrent
from cosim.compiler.design import Design
from cosim.engines.behavioral.evaluate import cell_of
from cosim.engines.chip import deviations_of
from cosim.engines.engine import Run
from cosim.engines.simulation.read import Margin, ReadPlan
from cosim.network.ir.nodes import ThresholdUnit
from cosim.units.kind import Array, CellEquations, SwitchingThresholds
from cosim.units.table import unit_of
from cosim.units.timing import PULSE_END


@dataclass(frozen=True)
class _Scaled:
    """A function from a cell's line currents to its thresholds, with its bias currents `scale` times nominal."""

    cell: CellEquations[Any, Any, Any]
    scale: float

    def __call__(self, lines: Sequence[Array]) -> SwitchingThresholds:
        found = unit_of(self.cell.node).switching_thresholds(self.cell, [line / self.scale for line in lines])
        off, on = (tuple(one * self.scale for one in few) for few in (found.while_off, found.while_on))
        return SwitchingThresholds(off, on)


@dataclass(frozen=True)
class _Fixed:
    """A function that returns the thresholds of a cell whose thresholds do not move."""

    found: SwitchingThresholds

    def __call__(self, lines: Sequence[Array]) -> SwitchingThresholds:
        return self.found


def decision_margins(design: Design, run: Run) -> tuple[Margin | None, ...]:
    """Return how to measure each memory's margin in a simulation, in the order of the decisions.

    It is None for a memory that compares nothing. A ladder's margin is that of its quantiser, a toggle's that of its
    master: what follows them is a pulse of full size.
    """
    there, graph, assembly = run.standing(design), design.graph, design.assembly
    roles, closes = assembly.circuit.roles(), run.timing.closes(len(assembly.clocks))
    fixed = deviations_of(design, there, run.chip)
    moving = deviations_of(design, replace(there, pins={}), run.chip)  # a line's current has its pin's trim in it
    found: dict[str, Margin] = {}
    for node in graph.of(ThresholdUnit):
        own = bool(graph.into(node.name, "beta"))
        factors = (moving if own else fixed).cells.get(node.name)
        thresholds = _Scaled(cell_of(graph, node, design.calibration, factors), there.bias_scale)
        lines = tuple(roles[instance(pin), "bias"] for pin in assembly.cell_bias[node.name][:2]) if own else ()
        thresholds = thresholds if own else _Fixed(thresholds(()))
        diode = roles[instance(f"cand_{net(node.name)}"), "candidate"]
        pulse = assembly.drives.get(node.name)
        if pulse is not None:
            pulse = replace(pulse, rest=there.bias_scale * pulse.rest, step=there.bias_scale * pulse.step)
        found[node.name] = Margin(diode, closes[node.stage], thresholds, lines, node.start > 0, pulse)
    return tuple(found.get(name) for name in assembly.decisions)


def with_candidates(bench: Bench, margins: tuple[Margin | None, ...]) -> Bench:
    """Return the bench with probes of the simulated currents that decision margins are read from."""
    known = set(bench.probes)
    asked = [margin for margin in margins if margin is not None]
    devices = [device for margin in asked for device in (margin.device, *margin.lines)]
    pulses = [margin.pulse.device for margin in asked if margin.pulse is not None]
    wanted = dict.fromkeys(map(DrainCurrent, (*devices, *pulses)))
    return replace(bench, probes=(*bench.probes, *(probe for probe in wanted if probe not in known)))


def with_margins(plan: ReadPlan, margins: tuple[Margin | None, ...], run: Run) -> ReadPlan:
    """Return the plan of what to read from a simulation, with the decision margins as well."""
    closes = [run.timing.moments(len(plan.times), 0.0 if margin is None else margin.close) for margin in margins]
    return replace(plan, margins=margins, closes=np.array(closes), pulsed=PULSE_END * run.timing.t_step)
