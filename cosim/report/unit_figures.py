"""Several chosen units of one inference under each other, on one axis of time."""

from collections.abc import Sequence

import numpy as np

from cosim.circuit.waveforms import Timing
from cosim.design import Design
from cosim.ir.nodes import Comparing
from cosim.report.figures import BLUE, GREEN, GREY, RED, Axes, Figure, plain
from cosim.study.probing import Recorded, watchable

MOST = 24  # panels of one picture; the files have all
_NANO, _MILLI = 1e9, 1e3
_TALL = 1.05  # inch, a panel


def draw_units(design: Design, recorded: Recorded, names: Sequence[str], timing: Timing) -> Figure:
    """A panel for each name: of a memory its candidate, thresholds and state, of others their current; then power."""
    there, shown = watchable(design), names[:MOST]
    figure = Figure(figsize=(7.2, 0.9 + _TALL * (len(shown) + 1)), layout="constrained")
    axes: list[Axes] = list(figure.subplots(len(shown) + 1, 1, sharex=True, squeeze=False)[:, 0])
    after = recorded.time >= timing.start
    time = _MILLI * (recorded.time[after] - timing.start)
    for axis, name in zip(axes, shown, strict=False):
        for k, vector in enumerate(there[name] or (name,)):
            values = _NANO * recorded.vectors[vector][after]
            state = k > 0 and name in design.graph.nodes
            axis.plot(time, values, color=GREY if state else BLUE, lw=0.9 if state else 1.2, label=_label(vector, name))
        _draw_thresholds(axis, design, name)
        axis.set_ylabel(f"{_shortened(name)}\n(nA)", fontsize=8)
        above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
        axis.legend(**above, fontsize=6, frameon=False, ncols=4)
    axes[-1].plot(time, _NANO * recorded.vectors["power"][after], color=GREY, lw=0.9)
    axes[-1].set_ylim(bottom=0, top=1.4 * _NANO * float(np.percentile(recorded.vectors["power"][after], 99)))
    axes[-1].set_ylabel("power\n(nW)", fontsize=8)
    axes[-1].set_xlabel("time (ms)", fontsize=8)
    axes[-1].set_xlim(0, time[-1])
    frame = _MILLI * timing.t_step
    for axis in axes:
        axis.set_xticks(np.arange(0, time[-1] + 1e-6, frame * max(1, round(time[-1] / frame / 10))))
        axis.grid(axis="x", lw=0.3)
    plain(*axes, size=7)
    more = f", {len(names) - MOST} more in the files" if len(names) > MOST else ""
    task = design.network.task or "network"
    figure.suptitle(f"{task} on {design.assembly.transistors} transistors, one inference{more}", fontsize=10)
    return figure


def _draw_thresholds(axis: Axes, design: Design, name: str) -> None:
    node = design.graph.nodes.get(name)
    if isinstance(node, Comparing):
        asked = design.graph.currents[name]
        axis.axhline(_NANO * asked.i_rise, color=RED, lw=0.8, ls="--", label="upper")
        if node.two_sided:
            axis.axhline(_NANO * asked.i_fall, color=GREEN, lw=0.8, ls="--", label="lower")


def _label(vector: str, name: str) -> str:
    return vector.removeprefix(name).lstrip(". ") or "current"


def _shortened(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "\N{HORIZONTAL ELLIPSIS}"
