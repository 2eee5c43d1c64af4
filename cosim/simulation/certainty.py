"""How certain decisions are: the candidate of every Schmitt trigger, when its stage closes, against its threshold.

The candidate is the current of its diode: in the cell itself the decision node takes whatever voltage makes the
currents into it cancel. The threshold is the upper one of a cell that was off in the frame before, the lower one of one
that was on, as it was asked for and as the chip's draws move it; what calibration leaves of it, some percent, is not in
it.
"""

from dataclasses import replace

import numpy as np

from cosim.cells.builder import instance, net
from cosim.circuit.bench import Bench, DrainCurrent
from cosim.design import Design
from cosim.engines.engine import Run
from cosim.simulation.inference import Margin, ReadPlan
from cosim.units.schmitt.node import Schmitt, SchmittFactors
from cosim.variation.chip import deviations_of


def decision_margins(design: Design, run: Run) -> tuple[Margin | None, ...]:
    """Of each memory, in the order of the decisions; None for one that is no Schmitt trigger of constant thresholds."""
    there = run.standing(design)
    deviations, roles = deviations_of(design, there, run.chip), design.assembly.circuit.roles()
    closes = run.timing.closes(len(design.assembly.clocks))
    found: dict[str, Margin] = {}
    for cell in design.graph.of(Schmitt):
        if design.graph.into(cell.name, "beta"):
            continue
        factors, asked = deviations.cells.get(cell.name, SchmittFactors()), design.graph.currents[cell.name]
        assert isinstance(factors, SchmittFactors)
        scale = there.bias_scale / factors.compared
        rise = scale * factors.thresh * asked.i_rise
        fall = rise - scale * factors.width * (asked.i_rise - asked.i_fall)
        diode = roles[instance(f"cand_{net(cell.name)}"), "candidate"]
        found[cell.name] = Margin(diode, rise, fall, closes[cell.stage])
    return tuple(found.get(name) for name in design.assembly.decisions)


def with_candidates(bench: Bench, margins: tuple[Margin | None, ...]) -> Bench:
    """The bench that saves what margins are read from, too."""
    known = set(bench.probes)
    wanted = dict.fromkeys(DrainCurrent(margin.device) for margin in margins if margin is not None)
    return replace(bench, probes=(*bench.probes, *(probe for probe in wanted if probe not in known)))


def with_margins(plan: ReadPlan, margins: tuple[Margin | None, ...], run: Run) -> ReadPlan:
    """The plan that reads them, too."""
    closes = [run.timing.moments(len(plan.times), 0.0 if margin is None else margin.close) for margin in margins]
    return replace(plan, margins=margins, closes=np.array(closes))
