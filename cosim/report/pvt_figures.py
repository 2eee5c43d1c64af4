"""Figure of a sweep over conditions: one panel per corner, temperature against supply."""

import numpy as np

from cosim.report.figures import Figure
from cosim.study.pvt import Condition, Sweep

_LEAST_SPAN = 0.01  # of the colours, below all states equal
_DARK = 0.4  # of them, from below: where digits are white


def draw_pvt(sweep: Sweep) -> Figure:
    """The figure of `summarize_pvt`: states equal in colour and in the first line, decisions equal in the second.

    A condition in which every simulation failed is blank.
    """
    rows = sweep.conditions
    corners = list(dict.fromkeys(row.corner for row in rows))
    celsius = sorted({row.celsius for row in rows})
    supplies = sorted({row.supply_v for row in rows})
    lowest = min([row.state_agreement for row in rows if row.accuracy is not None] + [1 - _LEAST_SPAN])
    figure = Figure(figsize=(1.2 + 1.75 * len(corners), 2.5), layout="constrained")
    panels = figure.subplots(1, len(corners), sharey=True, squeeze=False)[0]
    for axis, corner in zip(panels, corners, strict=True):
        states = np.full((len(supplies), len(celsius)), np.nan)
        for row in (row for row in rows if row.corner == corner):
            y, x = supplies.index(row.supply_v), celsius.index(row.celsius)
            states[y, x] = np.nan if row.accuracy is None else row.state_agreement
            dark = states[y, x] < lowest + _DARK * (1 - lowest)
            axis.text(x, y, _entry(row), ha="center", va="center", fontsize=6.5, color="white" if dark else "black")
        axis.imshow(states, cmap="viridis", vmin=lowest, vmax=1.0, origin="lower", aspect="auto")
        axis.set_xticks(range(len(celsius)), [f"{t:g}" for t in celsius])
        axis.set_yticks(range(len(supplies)), [f"{v:g}" for v in supplies])
        axis.set_title(corner, fontsize=9)
        axis.tick_params(labelsize=8, length=0)
    panels[0].set_ylabel("supply (V)", fontsize=9)
    panels[len(corners) // 2].set_xlabel("temperature (C)", fontsize=9)
    bar = figure.colorbar(panels[0].get_images()[0], ax=list(panels), pad=0.01)
    bar.set_label("states equal", fontsize=8)
    bar.ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    bar.ax.tick_params(labelsize=7)
    return figure


def _entry(row: Condition) -> str:
    if row.accuracy is None:
        return "failed"
    same = round(row.task_agreement * row.samples)
    return f"{100 * row.state_agreement:.2f} %\n{same}/{row.samples}"
