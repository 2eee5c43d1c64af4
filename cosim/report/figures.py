"""Figures of a comparison. With the report, the only importer of matplotlib."""

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
from cosim.study.waveforms import WaveLabels

matplotlib.rcParams["text.parse_math"] = False  # names come from files: a label with a dollar sign is no formula
matplotlib.rcParams["svg.hashsalt"] = "cosim"  # ids in an SVG are otherwise random: same input, same bytes
BLUE, RED, GREEN, GREY = "#0b5394", "#b3261e", "#2e7d32", "#888888"
_NANO = 1e9


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
    axes[1].legend(loc="upper right", fontsize=7, frameon=False, ncols=2)
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
    axis.legend(loc="upper right", fontsize=7, frameon=False, ncols=4)


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
