"""Figures of the waveforms of one inference.

For one unit: inputs, clock, the unit's candidate and state, readout and supply power. For several units: a panel each,
one below the other, over a common time axis.
"""

import textwrap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.base.quantities import format_quantity
from cosim.circuit.waveforms import DECIDE, SAMPLE_AT, Timing
from cosim.compiler.design import Design
from cosim.engines.engine import NO_CLASS
from cosim.network.ir.nodes import ThresholdUnit
from cosim.results.figures import (
    BLACK,
    BLUE,
    DOUBLE,
    GREEN,
    GREY,
    LIGHT,
    LOWER,
    LOWER_DASH,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    UPPER,
    UPPER_DASH,
    Axes,
    Figure,
    few_ticks,
    legend_beside,
    line_of,
    plain,
    styled,
)
from cosim.verbs.simulate.waveforms import ProbedInference, WaveLabels, Waves, watchable

Array = NDArray[np.float64]
_NANO, _MILLI = 1e9, 1e3
_MOST_LINES = 12  # inputs that are told apart as lines; more are an image
_MOST_FRAMES = 40  # whose clock phases can be seen
_SHADE = "#e9eef3"
_NOTE = 118  # letters of a line under a figure
_OTHERS = (BLUE, SKY, ORANGE, PURPLE)
MOST = 24  # panels of one picture; the files have all
_TALL = 1.05  # inch, a panel


@styled
def draw_waveforms(waves: Waves, labels: WaveLabels, timing: Timing) -> Figure:
    """Draw the waveforms of one sample, with frames marked, and shaded while the unit's stage decides.

    waves: name -> values over time; `time` in s; `input.*`, `candidate`, `state`, `output.*` in A; `power` in W.
    """
    figure = Figure(figsize=(DOUBLE, 8.2), layout="constrained")
    inputs, clock, candidate, state, readout, power = axes = figure.subplots(
        6, 1, sharex=True, height_ratios=(1.35, 0.16 + 0.12 * labels.stages, 1, 0.8, 1.1, 0.8)
    )
    shown = waves["time"] >= timing.start  # the axes are scaled to what they show, not to the reset
    waves = {name: values[shown] for name, values in waves.items()}
    time = _MILLI * (waves["time"] - timing.start)
    frames = round(time[-1] / (_MILLI * timing.t_step))
    _draw_inputs(figure, inputs, time, waves, labels.inputs)
    draw_clocks(clock, labels, timing, frames)
    candidate.plot(time, _NANO * waves["candidate"], color=BLACK, label="candidate")
    if labels.compares:
        thresholds = ("upper", labels.i_rise, UPPER, UPPER_DASH), ("lower", labels.i_fall, LOWER, LOWER_DASH)
        for which, at, color, dash in thresholds:
            candidate.axhline(_NANO * at, color=color, ls=dash, label=_named(f"{which} threshold", at))
    candidate.set_ylabel(f"candidate of\n{labels.unit} (nA)")
    state.plot(time, _NANO * waves["state"], color=BLACK, label="state")
    if labels.i_pedestal:
        state.axhline(_NANO * labels.i_pedestal, color=PURPLE, ls=":", label=_named("pedestal", labels.i_pedestal))
    state.set_ylabel(f"state of\n{labels.unit} (nA)")
    state.set_ylim(bottom=min(0.0, 1.1 * _NANO * float(waves["state"].min())))
    _draw_outputs(readout, time, waves, labels)
    power.plot(time, _NANO * waves["power"], color=BLACK, lw=0.9, label="supply power")
    power.set_ylabel("supply\npower (nW)")
    power.set_ylim(bottom=0, top=1.3 * _NANO * float(np.percentile(waves["power"], 99)))
    for axis in axes[2:5]:
        legend_beside(axis)
    mark_reads(readout, timing, frames)
    shade_decisions((candidate, state), labels, timing, frames)
    mark_frames(axes, timing, frames)
    figure.align_ylabels(axes)
    figure.suptitle(title_of(labels), fontsize=9)
    figure.supxlabel(_note(labels, frames), fontsize=8, color="#444444")
    return figure


def title_of(labels: WaveLabels) -> str:
    """Return the title of a waveform figure: task, sample and its class, and each engine's decision."""
    verdict = labels.verdict
    if verdict is None:
        return labels.title
    decided = ", ".join(f"{engine} {labels.class_of(decision)}" for engine, decision in verdict.decided.items())
    name = labels.class_of(verdict.wanted)
    return f"{labels.title}: test sample {verdict.sample} of class {name}\ndecided by {decided}"


def _note(labels: WaveLabels, frames: int) -> str:
    """Return the note under a waveform figure that explains its marks."""
    texts = []
    if frames <= _MOST_FRAMES:
        shaded = (
            "this stage decides on candidates that its hold capacitors keep; else it tracks"
            if labels.compares
            else "in this time the cell's gate opens once, and its state goes on; else it holds"
        )
        texts.append(f"Shaded: {shaded}. Triangles: the readout is read.")
    if labels.i_pedestal:
        texts.append(
            "Pedestal: the current that a state of 0 still carries, so that its gate lines settle; every row that "
            "reads the state takes it out again."
        )
    return textwrap.fill(" ".join(texts), _NOTE)


def _named(text: str, current: float) -> str:
    return f"{text}\n{format_quantity(current, 'A')}"


def draw_clocks(axis: Axes, labels: WaveLabels, timing: Timing, frames: int) -> None:
    """Draw a lane for each stage, filled while the stage decides; with many frames, only the names of the lanes."""
    closes = timing.closes(labels.stages)
    starts = np.arange(frames)
    for stage, close in enumerate(closes if frames <= _MOST_FRAMES else ()):
        spans = [(_MILLI * timing.t_step * (start + close), _MILLI * timing.t_step * DECIDE) for start in starts]
        color = "#4a5a68" if stage == labels.stage else "#a9b4be"
        axis.broken_barh(spans, (stage - 0.36, 0.72), color=color, lw=0)
    axis.set_ylim(labels.stages - 0.4, -0.6)
    axis.set_yticks(range(labels.stages), [f"stage {stage + 1}" for stage in range(labels.stages)])
    axis.tick_params(axis="y", length=0)
    axis.set_ylabel("decides")


def shade_decisions(axes: Sequence[Axes], labels: WaveLabels, timing: Timing, frames: int) -> None:
    """Shade the panels of a waveform figure while the unit's stage decides."""
    if frames > _MOST_FRAMES:
        return
    close, step = timing.closes(labels.stages)[labels.stage], _MILLI * timing.t_step
    for axis in axes:
        for frame in range(frames):
            axis.axvspan(step * (frame + close), step * (frame + close + DECIDE), color=_SHADE, lw=0, zorder=0)


def mark_frames(axes: Sequence[Axes], timing: Timing, frames: int) -> None:
    """Mark frames in a figure of `cosim simulate`: numbers above the first panel, lines, time (ms) below the last."""
    step = _MILLI * timing.t_step
    edges = step * np.arange(0, frames + 1, max(1, round(frames / 10)))
    for axis in axes:
        axis.set_xlim(0, step * frames)
        axis.set_xticks(edges)
        axis.grid(axis="x", lw=0.5, color="#bfbfbf")
        plain(axis)
    axes[-1].set_xlabel("time (ms)")
    above = axes[0].secondary_xaxis("top")
    above.set_xticks(edges[:-1] + step / 2, [f"{frame / step:.0f}" for frame in edges[:-1]])
    above.tick_params(length=0, labelsize=8, pad=1)
    above.spines[:].set_visible(False)
    above.set_xlabel("frame", fontsize=8)


def _draw_inputs(figure: Figure, axis: Axes, time: Array, waves: Waves, names: Sequence[str]) -> None:
    """Draw input currents as lines in colours, or as an image if there are many."""
    places = sorted(int(name.split(".")[1]) for name in waves if name.startswith("input."))
    names = names or [str(place) for place in places]
    if len(places) <= _MOST_LINES:
        for place in places:
            name = names[place] if place < len(names) else str(place)
            color, dashes = line_of(place)
            axis.plot(time, _NANO * waves[f"input.{place}"], label=name, lw=1.1, color=color, ls=dashes)
        axis.set_ylabel("inputs (nA)")
        few_ticks(axis, "y")
        legend_beside(axis, "input", 2 if len(places) > 5 else 1)
        return
    moments = np.linspace(0, time[-1], 801)
    middles = (moments[1:] + moments[:-1]) / 2
    values = np.stack([np.interp(middles, time, _NANO * waves[f"input.{place}"]) for place in places])
    edges = np.arange(len(places) + 1) - 0.5
    image = axis.pcolormesh(moments, edges, values, cmap="cividis", vmin=0, rasterized=True)
    axis.set_ylabel("input")
    few_ticks(axis, "y", integer=True)
    figure.colorbar(image, ax=axis, label="current (nA)", pad=0.01, aspect=12)


def _draw_outputs(axis: Axes, time: Array, waves: Waves, labels: WaveLabels) -> None:
    """Draw output currents: in colour those of the class, of the decision and the largest others, the rest grey."""
    names = labels.outputs
    order = sorted(range(len(names)), key=lambda k: -float(np.trapezoid(waves[f"output.{k}"], time)))
    shown = {k: (color, names[k]) for k, color in zip(order[:4], _OTHERS, strict=False)}
    if labels.verdict is not None:
        wanted, decided = labels.verdict.wanted, [*labels.verdict.decided.values()][-1]
        if decided not in (wanted, NO_CLASS):
            shown[decided] = RED, f"{names[decided]}, decided"
        shown[wanted] = GREEN, f"{names[wanted]}, the class" + (", decided" if decided == wanted else "")
    for k in sorted(range(len(names)), key=lambda k: k in shown):
        if k not in shown:
            axis.plot(time, _NANO * waves[f"output.{k}"], color=LIGHT, lw=0.7)
    for k in sorted(shown, key=order.index):
        color, name = shown[k]
        strong = color in (GREEN, RED)
        axis.plot(
            time, _NANO * waves[f"output.{k}"], color=color, lw=1.6 if strong else 1.0, label=name, zorder=2 + strong
        )
    if len(shown) < len(names):
        axis.plot([], [], color=LIGHT, label="others")
    axis.set_ylabel("readout (nA)")


def mark_reads(axis: Axes, timing: Timing, frames: int) -> None:
    """Draw small triangles at the top of a panel where the readout is read."""
    if frames <= _MOST_FRAMES:
        moments = _MILLI * timing.t_step * (np.arange(frames) + SAMPLE_AT)
        axis.plot(moments, np.ones(frames), "v", color=GREY, ms=4, transform=axis.get_xaxis_transform(), clip_on=False)


@styled
def draw_units(
    design: Design, recorded: ProbedInference, names: Sequence[str], labels: Sequence[WaveLabels], timing: Timing
) -> Figure:
    """Draw a panel for each name, and one for power.

    A memory's panel has its candidate, thresholds and state, another's its current. labels: of each memory among the
    names, or, if there is none, of any; frames and decisions are marked as in `draw_waveforms`.
    """
    shown, first = names[:MOST], labels[0]
    count = len(shown) + 1
    lane = 0.16 + 0.12 * first.stages
    figure = Figure(figsize=(DOUBLE, 0.9 + lane + _TALL * count), layout="constrained")
    clock, *axes = figure.subplots(count + 1, 1, sharex=True, height_ratios=(lane, *count * (1.0,)))
    after = recorded.time >= timing.start
    time = _MILLI * (recorded.time[after] - timing.start)
    nano = {name: _NANO * values[after] for name, values in recorded.vectors.items()}
    frames = round(time[-1] / (_MILLI * timing.t_step))
    draw_clocks(clock, first, timing, frames)
    of_unit = {one.unit: one for one in labels}
    for axis, name in zip(axes, shown, strict=False):
        _draw_unit(axis, design, name, time, nano)
        if name in of_unit:
            shade_decisions((axis,), of_unit[name], timing, frames)
    axes[-1].plot(time, nano["power"], color=GREY, lw=0.9)
    axes[-1].set_ylim(bottom=0, top=1.4 * _NANO * float(np.percentile(recorded.vectors["power"][after], 99)))
    axes[-1].set_ylabel("supply\npower (nW)")
    mark_frames((clock, *axes), timing, frames)
    figure.align_ylabels(axes)
    more = f"; {len(names) - MOST} more in the files" if len(names) > MOST else ""
    figure.suptitle(f"{title_of(first)}{more}")
    return figure


def _draw_unit(axis: Axes, design: Design, name: str, time: Array, nano: Waves) -> None:
    """Draw the currents of one signal, with its thresholds if it compares; time: ms; nano: vector -> nA."""
    for vector in watchable(design)[name] or (name,):
        label = vector.removeprefix(name).lstrip(". ") or "current"
        color = BLUE if label == "state" else BLACK
        axis.plot(time, nano[vector], color=color, label=label)
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
