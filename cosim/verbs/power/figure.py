"""The figure of a power study: supply power by block, dynamic energy, area."""

import numpy as np

from cosim.results.figures import COLORS, DOUBLE, FONT, GREY, Axes, Figure, plain, styled
from cosim.results.intervals import shows_sign
from cosim.verbs.power.study import DRIVERS, PowerRow, PowerSummary

_NANO = 1e9
_PICO, _MILLI2 = 1e12, 1e-6  # um2 in mm2


@styled
def draw_power(summary: PowerSummary) -> Figure:
    """Draw the figure of `summarize_power`; without a simulator it has no panel of dynamic energy."""
    simulated = len(summary.engines) > 1
    figure = Figure(figsize=(DOUBLE if simulated else 5.0, 3.0), layout="constrained")
    panels = figure.subplots(1, 3 if simulated else 2, width_ratios=(1.3, 1, 1) if simulated else (1.3, 1))
    _draw_stacks(panels[0], summary)
    _draw_areas(panels[-1], summary.blocks)
    if simulated:
        _draw_dynamic(panels[1], summary)
    plain(*panels)
    return figure


def _draw_stacks(axis: Axes, summary: PowerSummary) -> None:
    engines = summary.engines
    base = np.zeros(len(engines))
    for block, row in summary.blocks.items():
        powers = np.array([_NANO * found.mean for found in row.power_w.values() if found is not None])
        axis.bar(engines, powers, 0.55, base, color=COLORS[block], edgecolor=GREY, lw=0.4, label=block)
        base += powers
    intervals = [found for found in summary.total.power_w.values() if found is not None]
    halves = [_NANO * (found.high - found.mean) for found in intervals if found.high is not None]
    if halves:
        axis.errorbar(engines, base, halves, fmt="none", ecolor="black", elinewidth=0.9, capsize=3)
    axis.set_ylabel("supply power (nW)")
    handles, labels = axis.get_legend_handles_labels()
    axis.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.0)


def _draw_dynamic(axis: Axes, summary: PowerSummary) -> None:
    """Draw the energy per frame beyond the static one: blocks, and the drivers of clocks and pulses."""
    drivers = {rail: row.energy_frame_j for rail, row in summary.rails.items() if rail in DRIVERS}
    lags = {block: row.dynamic_frame_j for block, row in summary.blocks.items() if row.dynamic_frame_j is not None}
    parts = lags | drivers
    names = [name for name in parts if name not in ("bias", "reset")]  # constant; once an inference
    shown = [name in drivers or shows_sign(parts[name]) for name in names]
    means = [_PICO * parts[name].mean * known for name, known in zip(names, shown, strict=True)]
    highs = [parts[name].high if known else None for name, known in zip(names, shown, strict=True)]
    halves = [0.0 if high is None else _PICO * high - mean for high, mean in zip(highs, means, strict=True)]
    axis.barh(names, means, 0.6, xerr=halves, color=[COLORS.get(name, GREY) for name in names], error_kw={"lw": 0.9})
    for place, known in enumerate(shown):
        if not known:
            axis.text(0, place, " too few samples", va="center", fontsize=FONT)
    axis.axvline(0, color="black", lw=0.6)
    axis.invert_yaxis()
    axis.set_xlabel("dynamic energy a frame (pJ)")


def _draw_areas(axis: Axes, blocks: dict[str, PowerRow]) -> None:
    names = list(blocks)
    gates = np.array([_MILLI2 * blocks[name].gate_area_um2 for name in names])
    capacitors = np.array([_MILLI2 * blocks[name].capacitor_area_um2 for name in names])
    axis.barh(names, gates, 0.6, color=[COLORS[name] for name in names], edgecolor=GREY, lw=0.4)
    axis.barh(
        names, capacitors, 0.6, gates, color="white", edgecolor="#555555", hatch="////", lw=0.6, label="capacitors"
    )
    axis.invert_yaxis()
    axis.set_xlim(0, 1.05 * float((gates + capacitors).max()))
    axis.set_xlabel("area of gates (mm²)")
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))
