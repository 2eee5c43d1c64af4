"""Several chosen units of one inference under each other, on one axis of time."""

from collections.abc import Sequence

import numpy as np

from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.network.ir.nodes import ThresholdUnit
from cosim.results.figures import (
    BLACK,
    BLUE,
    DOUBLE,
    GREY,
    LOWER,
    LOWER_DASH,
    UPPER,
    UPPER_DASH,
    Axes,
    Figure,
    legend_beside,
    styled,
)
from cosim.verbs.simulate.probing import ProbedInference, watchable
from cosim.verbs.simulate.waveform_figure import draw_clocks, mark_frames, shade_decisions, title_of
from cosim.verbs.simulate.waveforms import WaveLabels

MOST = 24  # panels of one picture; the files have all
_NANO, _MILLI = 1e9, 1e3
_TALL = 1.05  # inch, a panel


@styled
def draw_units(
    design: Design, recorded: ProbedInference, names: Sequence[str], labels: Sequence[WaveLabels], timing: Timing
) -> Figure:
    """Draw a panel for each name: of a memory its candidate, thresholds and state, of others their current; then power.

    labels: of each memory among the names, or of any one; frames and decisions are marked as in `draw_waveforms`.
    """
    shown, first = names[:MOST], labels[0]
    count = len(shown) + 1
    lane = 0.16 + 0.12 * first.stages
    figure = Figure(figsize=(DOUBLE, 0.9 + lane + _TALL * count), layout="constrained")
    clock, *axes = figure.subplots(count + 1, 1, sharex=True, height_ratios=(lane, *count * (1.0,)))
    after = recorded.time >= timing.start
    time = _MILLI * (recorded.time[after] - timing.start)
    frames = round(time[-1] / (_MILLI * timing.t_step))
    draw_clocks(clock, first, timing, frames)
    of_unit = {one.unit: one for one in labels}
    for axis, name in zip(axes, shown, strict=False):
        _draw_unit(axis, design, recorded, (name, timing))
        if name in of_unit:
            shade_decisions((axis,), of_unit[name], timing, frames)
    axes[-1].plot(time, _NANO * recorded.vectors["power"][after], color=GREY, lw=0.9)
    axes[-1].set_ylim(bottom=0, top=1.4 * _NANO * float(np.percentile(recorded.vectors["power"][after], 99)))
    axes[-1].set_ylabel("supply\npower (nW)")
    mark_frames((clock, *axes), timing, frames)
    figure.align_ylabels(axes)
    more = f"; {len(names) - MOST} more in the files" if len(names) > MOST else ""
    figure.suptitle(f"{title_of(first)}{more}")
    return figure


def _draw_unit(axis: Axes, design: Design, recorded: ProbedInference, which: tuple[str, Timing]) -> None:
    """Draw the currents of one name, and its thresholds where it compares."""
    name, timing = which
    after = recorded.time >= timing.start
    time = _MILLI * (recorded.time[after] - timing.start)
    for vector in watchable(design)[name] or (name,):
        label = vector.removeprefix(name).lstrip(". ") or "current"
        color = BLUE if label == "state" else BLACK
        axis.plot(time, _NANO * recorded.vectors[vector][after], color=color, label=label)
    node = design.graph.nodes.get(name)
    if isinstance(node, ThresholdUnit):
        asked = design.graph.currents[name]
        axis.axhline(_NANO * asked.i_rise, color=UPPER, ls=UPPER_DASH, label="upper threshold")
        if node.two_sided:
            axis.axhline(_NANO * asked.i_fall, color=LOWER, ls=LOWER_DASH, label="lower threshold")
    axis.set_ylabel(f"{_shortened(name)}\n(nA)")
    legend_beside(axis)


def _shortened(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "\N{HORIZONTAL ELLIPSIS}"
