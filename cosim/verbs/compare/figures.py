"""Figures of a comparison: who decides what, and what corner, temperature and supply change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, TwoSlopeNorm
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from cosim.base.quantities import format_quantity
from cosim.results.figures import (
    BLACK,
    BLUE,
    BLUE_TO_RED,
    DOUBLE,
    FONT,
    GREY,
    GREYS,
    INK,
    LIGHT,
    REDS,
    Axes,
    Figure,
    engine_colors,
    few_ticks,
    plain,
    styled,
)
from cosim.verbs.compare.agreement import Comparison
from cosim.verbs.compare.pvt import PvtCondition, Sweep, nominal_condition

Array = NDArray[np.float64]
_MOST_COUNTED = 20  # classes whose counts can be read
_DARK = 0.6  # of the colours: beyond, digits are white
_WHITE = 1e-12


Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Confusion:
    """counts (classes, classes): samples of a class, in rows, that the software decides so, in columns.

    changes: engine -> its counts minus those; decided: engine -> samples that it decides otherwise than the software,
    which may cancel out in its changes.
    """

    counts: Counts
    changes: Mapping[str, Counts]
    decided: Mapping[str, int]


@styled
def draw_confusion(comparison: Comparison, labels: Sequence[str]) -> Figure:
    """Draw for a comparison the software's decisions as counts, under them what the others change, and the accuracy of
    all three."""
    found, classes = find_confusion(comparison, len(labels)), len(labels)
    figure = Figure(figsize=(DOUBLE, 4.6 if classes > 4 else 3.2), layout="constrained")
    matrix, accuracy = figure.subplots(1, 2, width_ratios=(2.1, 1))
    matrix.imshow(found.counts, cmap=GREYS, vmin=0, vmax=found.counts.max())
    if classes <= _MOST_COUNTED:
        _write_counts(matrix, found)
    turned = 90 if max(map(len, labels)) > 3 else 0
    step = max(1, round(classes / _MOST_COUNTED))
    matrix.set_xticks(range(0, classes, step), labels[::step], rotation=turned)
    matrix.set_yticks(range(0, classes, step), labels[::step])
    matrix.set_xticks(np.arange(classes + 1) - 0.5, minor=True)
    matrix.set_yticks(np.arange(classes + 1) - 0.5, minor=True)
    matrix.grid(which="minor", color=LIGHT, lw=0.4)
    matrix.tick_params(which="both", length=0, labelsize=FONT)
    matrix.spines[:].set_visible(True)
    matrix.set_xlabel("decision")
    matrix.set_ylabel("class")
    matrix.set_title(f"samples as the software decides them,\n{_changes_text(found)}", fontsize=9)
    _draw_accuracies(accuracy, comparison)
    return figure


def _write_counts(axis: Axes, found: Confusion) -> None:
    """Write counts into the fields, and in the colour of each engine what it adds or takes away."""
    colors = engine_colors([*found.changes])
    changed = np.any([change != 0 for change in found.changes.values()], axis=0)
    for row, column in np.argwhere((found.counts > 0) | changed):
        text = str(found.counts[row, column])
        axis.text(column, row - (0.12 if changed[row, column] else 0), text, ha="center", va="center", fontsize=FONT)
        for k, (engine, change) in enumerate(found.changes.items()):
            if change[row, column]:
                style = {
                    "ha": "center",
                    "va": "center",
                    "fontsize": FONT,
                    "weight": "bold",
                    "color": INK.get(colors[engine], colors[engine]),
                }
                axis.text(column + (-0.24, 0.24)[k % 2], row + 0.3, _minus(f"{change[row, column]:+d}"), **style)


def _changes_text(found: Confusion) -> str:
    """Return how many samples each engine decides otherwise than the software, in words."""
    if not any(found.decided.values()):
        return f"and {' and '.join(found.decided)} decide every sample the same"
    texts = (f"{engine} decides {count} otherwise" for engine, count in found.decided.items())
    return ", ".join(texts) + " (±)"


def _draw_accuracies(axis: Axes, comparison: Comparison) -> None:
    engines = list(comparison.engines)
    for place, (engine, color) in enumerate(engine_colors(engines).items()):
        value, low, high = (100 * share for share in comparison.accuracy(engine))
        axis.errorbar(value, place, xerr=[[value - low], [high - value]], fmt="o", color=color, ms=6, capsize=4, lw=1.6)
        axis.annotate(f"{value:.1f} %", (value, place), (0, 8), textcoords="offset points", ha="center", fontsize=FONT)
    axis.set_yticks(range(len(engines)), engines)
    axis.set_ylim(len(engines) - 0.5, -0.6)
    axis.set_xlabel(f"accuracy (%) of {len(comparison.y)} samples,\n95 % interval")
    axis.grid(axis="x")
    plain(axis)


@dataclass(frozen=True)
class _Layer:
    """A row of heat maps: its name, the number of a condition, how that is written, and its colours."""

    name: str
    value: Callable[[PvtCondition], float | None]
    text: Callable[[float], str]
    colors: LinearSegmentedColormap
    norm: Normalize
    whole: bool = False


@styled
def draw_pvt(sweep: Sweep) -> Figure:
    """Draw wrong states, changed decisions and power of each condition, a column of panels for a corner.

    Wrong states are on a logarithmic scale, on which one in a thousand can be seen beside one in ten; power is per cent
    of the nominal condition's, which has a frame. A condition in which every simulation failed is crossed out.
    """
    corners = list(dict.fromkeys(row.corner for row in sweep.conditions))
    layers = _layers(sweep)
    figure = Figure(figsize=(max(DOUBLE, 1.2 + 1.2 * len(corners)), 5.0), layout="constrained")
    panels = figure.subplots(len(layers), len(corners), sharex=True, sharey=True, squeeze=False)
    for layer, axes in zip(layers, panels, strict=True):
        for axis, corner in zip(axes, corners, strict=True):
            _draw_layer(axis, layer, sweep, corner)
        bar = figure.colorbar(axes[0].collections[0], ax=list(axes), pad=0.01, aspect=14)
        bar.set_label(layer.name, fontsize=FONT)
        bar.ax.tick_params(labelsize=FONT)
        bar.outline.set_visible(False)
        _mark_bar(bar.ax, layer)
        axes[0].set_ylabel("supply (V)")
    for axis, corner in zip(panels[0], corners, strict=True):
        axis.set_title(corner, fontsize=9)
    figure.supxlabel("temperature (°C)", fontsize=FONT)
    nominal, samples = nominal_condition(sweep), max(row.samples for row in sweep.conditions)
    power = "" if nominal is None else f"; framed: nominal, {format_quantity(nominal.power_w or 0.0, 'W')}"
    figure.suptitle(f"{samples} samples in each of {len(sweep.conditions)} conditions{power}", fontsize=9)
    return figure


def _mark_bar(axis: Axes, layer: _Layer) -> None:
    """Write numbers beside a colour bar, none of them as a power of ten."""
    if isinstance(layer.norm, LogNorm):
        low, high = axis.get_ylim()
        found = [digit * 10.0**power for power in range(-6, 3) for digit in (1, 2, 5)]
        axis.set_yticks([value for value in found if low <= value <= high])
        axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter("{x:g}")
    else:
        few_ticks(axis, "y", 4, integer=layer.whole)


def _draw_layer(axis: Axes, layer: _Layer, sweep: Sweep, corner: str) -> None:
    celsius = sorted({row.celsius for row in sweep.conditions})
    supplies = sorted({row.supply_v for row in sweep.conditions})
    nominal = nominal_condition(sweep)
    grid = np.full((len(supplies), len(celsius)), np.nan)
    for row in (row for row in sweep.conditions if row.corner == corner):
        y, x = supplies.index(row.supply_v), celsius.index(row.celsius)
        value = layer.value(row)
        if value is None:
            axis.plot(x, y, "x", color=BLACK, ms=8)
            continue
        grid[y, x] = value
        share = float(layer.norm(value)) if value > 0 or not isinstance(layer.norm, LogNorm) else 0.0
        dark = abs(share - 0.5) > 0.4 if layer.colors is BLUE_TO_RED else share > _DARK
        axis.text(x, y, layer.text(value), ha="center", va="center", fontsize=FONT, color="white" if dark else BLACK)
        if row is nominal:
            axis.plot(
                x + np.array([-1, 1, 1, -1, -1]) * 0.47, y + np.array([-1, -1, 1, 1, -1]) * 0.47, color=BLACK, lw=1.4
            )
    axis.pcolormesh(
        np.arange(len(celsius) + 1) - 0.5, np.arange(len(supplies) + 1) - 0.5, np.ma.masked_invalid(grid),
        cmap=layer.colors, norm=layer.norm, zorder=0, edgecolors="white", linewidths=1.2,
    )  # fmt: skip
    axis.set_xticks(range(len(celsius)), [f"{t:g}" for t in celsius])
    axis.set_yticks(range(len(supplies)), [f"{v:g}" for v in supplies])
    axis.tick_params(labelsize=FONT, length=0)
    axis.spines[:].set_visible(False)


def _layers(sweep: Sweep) -> tuple[_Layer, ...]:
    """Return the rows of the figure, each with a scale on which its conditions differ."""
    nominal = nominal_condition(sweep)
    reference = nominal.power_w if nominal else None

    def wrong(row: PvtCondition) -> float | None:
        return None if row.accuracy is None else 100 * (1 - row.state_agreement)

    def changed(row: PvtCondition) -> float | None:
        return None if row.accuracy is None else float(row.samples - round(row.task_agreement * row.samples))

    def power(row: PvtCondition) -> float | None:
        return None if row.power_w is None or not reference else 100 * (row.power_w / reference - 1)

    found = [value for row in sweep.conditions if (value := wrong(row)) is not None and value > _WHITE]
    low, high = (min(found), max(found)) if found else (0.1, 1.0)
    decisions = [value for row in sweep.conditions if (value := changed(row)) is not None]
    spread = max([abs(value) for row in sweep.conditions if (value := power(row)) is not None] or [0.0]) or 1.0
    samples = max(row.samples for row in sweep.conditions)
    return (
        _Layer("wrong states (%)", wrong, _short, REDS, LogNorm(low / 1.5, max(high, 1.5 * low))),
        _Layer(
            f"decisions changed\nof {samples}",
            changed,
            "{:.0f}".format,
            REDS,
            Normalize(0, max([*decisions, 1.0])),
            whole=True,
        ),
        _Layer("power over\nnominal (%)", power, _signed, BLUE_TO_RED, TwoSlopeNorm(0.0, -spread, spread)),
    )


def _short(value: float) -> str:
    """Format a share, given in per cent, in four letters."""
    if value < _WHITE:
        return "0"
    return (
        "<.01" if value < 0.005 else f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:.0f}"
    )


def _signed(value: float) -> str:
    return "0" if abs(value) < 0.05 else _minus(f"{value:+.1f}" if abs(value) < 10 else f"{value:+.0f}")


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def find_confusion(comparison: Comparison, classes: int) -> Confusion:
    """Count the confusion of all engines, of so many classes, for the picture on the page of `cosim compare`."""
    decisions = {name: engine.decisions.astype(np.int64) for name, engine in comparison.engines.items()}
    counts = {name: count_decisions(comparison.y.astype(np.int64), found, classes) for name, found in decisions.items()}
    software = decisions["software"]
    others = [name for name in counts if name != "software"]
    return Confusion(
        counts=counts["software"],
        changes={name: counts[name] - counts["software"] for name in others},
        decided={name: int((decisions[name] != software).sum()) for name in others},
    )


def count_decisions(y: NDArray[np.int64], decisions: NDArray[np.int64], classes: int) -> Counts:
    """Count a comparison's samples by class and decision, (classes, classes)."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(counts, (y, decisions), 1)
    return counts


def draw_values(comparison: Comparison) -> Figure:
    """Draw for a comparison the answers over targets for each engine, all outputs, with the equal line and the
    tolerance on both sides of it."""
    figure, errors, y = Figure(figsize=(9.6, 3.5), layout="constrained"), comparison.errors(), comparison.y
    assert errors is not None
    answers = [one.decisions for one in comparison.engines.values()]
    low, high = (float(end(np.stack([y, *answers]))) for end in (np.min, np.max))
    ends = np.array([low, high]) + np.array([-0.04, 0.04]) * (high - low)
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    for axis, (engine, found) in zip(axes, comparison.engines.items(), strict=True):
        axis.fill_between(ends, ends - errors.tolerance, ends + errors.tolerance, color=GREY, alpha=0.18, lw=0)
        axis.plot(ends, ends, color=GREY, lw=0.9, ls="--")
        axis.scatter(np.ravel(y), np.ravel(found.decisions), s=7, color=BLUE, alpha=0.5, lw=0)
        axis.set_title(f"{engine}: rms error {errors.engines[engine].rmse:.3g}", fontsize=9)
        axis.set_xlabel("target", fontsize=8)
        axis.set_xlim(*ends)
        axis.set_ylim(*ends)
    axes[0].set_ylabel("answer", fontsize=8)
    plain(*axes)
    return figure
