"""Figures of a comparison, of power, of conditions and of trimmed chips, and how any figure is written."""

import io
from pathlib import Path
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cosim.circuit.waveforms import Timing
from cosim.files.write import write_atomically
from cosim.study.agreement import Comparison
from cosim.study.chips import TrimSummary
from cosim.study.intervals import shows_sign
from cosim.study.power import DRIVERS, PowerRow, PowerSummary
from cosim.study.pvt import Condition, Sweep
from cosim.study.waveforms import WaveLabels

matplotlib.rcParams["text.parse_math"] = False  # names come from files: a label with a dollar sign is no formula
matplotlib.rcParams["svg.hashsalt"] = "cosim"  # ids in an SVG are otherwise random: same input, same bytes
BLUE, RED, GREEN, GREY = "#0b5394", "#b3261e", "#2e7d32", "#888888"
_NANO = 1e9
_PICO, _MILLI2 = 1e12, 1e-6  # um2 in mm2
COLORS = {
    "inputs": "#7fb3d5",
    "rails": "#0b5394",
    "rows": "#2e7d32",
    "readout": "#a5c77f",
    "cells": "#b3261e",
    "bias": "#c9c9c9",
}
_LEAST_SPAN = 0.01  # of the colours, below all states equal
_DARK = 0.4  # of them, from below: where digits are white


def plain(*axes: Axes, size: float = 8) -> None:
    """Without the spines at top and right, with small numbers."""
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=size)


def draw_waveforms(waves: dict[str, NDArray[np.float64]], labels: WaveLabels, timing: Timing) -> Figure:
    """One sample on the circuit: inputs, one unit's candidate with its thresholds, its state, the readout, the power.

    waves: time in s; `input.*`, candidate, state, `output.*` in A; power in W.
    """
    figure = Figure(figsize=(7.0, 7.6), layout="constrained")
    axes = figure.subplots(5, 1, sharex=True)
    shown = waves["time"] >= timing.start  # the axes are scaled to what they show, not to the reset
    waves = {name: values[shown] for name, values in waves.items()}
    time = 1e3 * (waves["time"] - timing.start)
    inputs = sorted((name for name in waves if name.startswith("input.")), key=lambda name: int(name.split(".")[1]))
    for k, name in enumerate(inputs):
        axes[0].plot(time, _NANO * waves[name], lw=0.9, color=_shade(k, len(inputs)))
    axes[0].set_ylabel("inputs (nA)")
    axes[1].plot(time, _NANO * waves["candidate"], color=BLUE, lw=1.2)
    axes[1].axhline(_NANO * labels.i_rise, color=RED, lw=0.9, ls="--", label="upper threshold")
    axes[1].axhline(_NANO * labels.i_fall, color=GREEN, lw=0.9, ls="--", label="lower threshold")
    axes[1].set_ylabel(f"candidate of\n{labels.unit} (nA)")
    _legend_above(axes[1])
    axes[2].plot(time, _NANO * waves["state"], color=BLUE, lw=1.2)
    axes[2].set_ylabel(f"state of\n{labels.unit} (nA)")
    _draw_outputs(axes[3], time, waves, labels.outputs)
    axes[4].plot(time, _NANO * waves["power"], color=GREY, lw=0.9)
    axes[4].set_ylabel("supply power (nW)")
    axes[4].set_ylim(bottom=0, top=1.4 * _NANO * float(np.percentile(waves["power"], 99)))
    axes[4].set_xlabel("time (ms)")
    axes[4].set_xlim(0, time[-1])
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xticks(
            np.arange(0, time[-1] + 1e-6, 1e3 * timing.t_step * max(1, round(time[-1] / 1e3 / timing.t_step / 10)))
        )
        axis.grid(axis="x", lw=0.3)
    figure.suptitle(labels.title, fontsize=10)
    return figure


def _draw_outputs(
    axis: Axes, time: NDArray[np.float64], waves: dict[str, NDArray[np.float64]], names: list[str]
) -> None:
    """The four largest readout currents in colour, the others grey."""
    outputs = [f"output.{k}" for k in range(len(names))]
    order = sorted(range(len(outputs)), key=lambda k: -float(np.trapezoid(waves[outputs[k]], time)))
    for k in reversed(order):
        rank = order.index(k)
        color, width = (_shade(rank, 4), 1.2) if rank < 4 else ("#cccccc", 0.6)
        axis.plot(time, _NANO * waves[outputs[k]], color=color, lw=width, label=names[k] if rank < 4 else None)
    axis.set_ylabel("readout (nA)")
    _legend_above(axis)


def _legend_above(axis: Axes) -> None:
    """Where no trace can be under it."""
    place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
    axis.legend(**place, fontsize=7, frameon=False, ncols=len(axis.get_legend_handles_labels()[1]))


def draw_confusion(comparison: Comparison, labels: list[str]) -> Figure:
    """Confusion matrices of the three engines, counts in the cells."""
    figure = Figure(figsize=(9.6, 3.5), layout="constrained")
    classes = len(labels)
    for axis, engine in zip(figure.subplots(1, 3), comparison.engines, strict=True):
        counts = np.zeros((classes, classes), dtype=int)
        np.add.at(counts, (comparison.y, comparison.engines[engine].decisions), 1)
        axis.imshow(counts, cmap="Blues", vmin=0)
        for row, column in np.argwhere(counts):
            color = "white" if counts[row, column] > counts.max() / 2 else "black"
            axis.text(column, row, str(counts[row, column]), ha="center", va="center", fontsize=7, color=color)
        axis.set_xticks(range(classes), labels, fontsize=7)
        axis.set_yticks(range(classes), labels, fontsize=7)
        value, low, high = comparison.accuracy(engine)
        axis.set_title(f"{engine}: {100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]", fontsize=9)
        axis.set_xlabel("decision")
    figure.axes[0].set_ylabel("class")
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write without time stamps, so that the same data give the same bytes.

    Raises InputError when it cannot be written.
    """
    buffer = io.BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    figure.savefig(buffer, format=path.suffix[1:], dpi=160, metadata=metadata)
    write_atomically(path, buffer.getvalue())


def figure_bytes(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """The figure as a file's content: the same data give the same bytes."""
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, dpi=130, metadata=metadata)
    return buffer.getvalue()


def _shade(k: int, count: int) -> tuple[float, float, float, float]:
    return matplotlib.colormaps["viridis"](0.9 * k / max(count - 1, 1))


def draw_power(summary: PowerSummary) -> Figure:
    """The figure of `summarize_power`; without a simulator it has no panel of dynamic energy."""
    simulated = len(summary.engines) > 1
    figure = Figure(figsize=(7.4 if simulated else 5.0, 3.1), layout="constrained")
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
        axis.bar(engines, powers, 0.55, base, color=COLORS[block], label=block)
        base += powers
    intervals = [found for found in summary.total.power_w.values() if found is not None]
    halves = [_NANO * (found.high - found.mean) for found in intervals if found.high is not None]
    if halves:
        axis.errorbar(engines, base, halves, fmt="none", ecolor="black", elinewidth=0.9, capsize=3)
    axis.set_ylabel("supply power (nW)", fontsize=9)
    axis.set_xlim(-0.5, len(engines) + 0.25)
    handles, labels = axis.get_legend_handles_labels()
    axis.legend(handles[::-1], labels[::-1], loc="center right", fontsize=7, frameon=False, handlelength=1.0)


def _draw_dynamic(axis: Axes, summary: PowerSummary) -> None:
    """Energy per frame beyond the static one: blocks, and the drivers of clocks and pulses."""
    drivers = {rail: row.energy_frame_j for rail, row in summary.rails.items() if rail in DRIVERS}
    lags = {block: row.dynamic_frame_j for block, row in summary.blocks.items() if row.dynamic_frame_j is not None}
    parts = lags | drivers
    names = [name for name in parts if name not in ("bias", "reset")]  # constant; once an inference
    shown = [name in drivers or shows_sign(parts[name]) for name in names]
    means = [_PICO * parts[name].mean * known for name, known in zip(names, shown, strict=True)]
    highs = [parts[name].high if known else None for name, known in zip(names, shown, strict=True)]
    halves = [0.0 if high is None else _PICO * high - mean for high, mean in zip(highs, means, strict=True)]
    axis.barh(
        names, means, 0.6, xerr=halves, color=[COLORS.get(name, "#888888") for name in names], error_kw={"lw": 0.9}
    )
    for place, known in enumerate(shown):
        if not known:
            axis.text(0, place, " too few samples", va="center", fontsize=7)
    axis.axvline(0, color="black", lw=0.6)
    axis.invert_yaxis()
    axis.set_xlabel("dynamic energy a frame (pJ)", fontsize=9)


def _draw_areas(axis: Axes, blocks: dict[str, PowerRow]) -> None:
    names = list(blocks)
    gates = np.array([_MILLI2 * blocks[name].gate_area_um2 for name in names])
    capacitors = np.array([_MILLI2 * blocks[name].capacitor_area_um2 for name in names])
    axis.barh(names, gates, 0.6, color=[COLORS[name] for name in names])
    axis.barh(
        names, capacitors, 0.6, gates, color="white", edgecolor="#555555", hatch="////", lw=0.6, label="capacitors"
    )
    axis.invert_yaxis()
    axis.set_xlim(0, 1.05 * float((gates + capacitors).max()))
    axis.set_xlabel("area of gates (mm2)", fontsize=9)
    axis.legend(loc="lower right", fontsize=7, frameon=False)


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


def draw_trim(summary: TrimSummary) -> Figure:
    """Yield against the bits of the converters, with its interval; without converters as a dashed line and band."""
    before, *rows = summary.rows
    figure = Figure(figsize=(5.0, 3.4), layout="constrained")
    axis = figure.subplots()
    bits = [row.bits or 0 for row in rows]
    values = 100 * np.array([row.yield_.value for row in rows])
    bounds = 100 * np.array([row.yield_.interval for row in rows])
    errors = np.abs(bounds.T - values)
    axis.errorbar(bits, values, errors, marker="o", ms=4, lw=1.2, capsize=3, color=BLUE, label="trimmed")
    low, high = (100 * value for value in before.yield_.interval)
    axis.axhspan(low, high, color=GREY, alpha=0.2, lw=0)
    axis.axhline(100 * before.yield_.value, color=GREY, ls="--", lw=1, label="as fabricated")
    axis.set_xticks(bits)
    axis.set_xlabel("bits of the converter at each bias pin")
    axis.set_ylabel(f"yield (%), {' and '.join(summary.spec)}")
    axis.set_ylim(0, 102)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    axis.spines[["top", "right"]].set_visible(False)
    return figure
