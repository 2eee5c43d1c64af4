"""Figures of a comparison: decisions of the engines by class, and real-valued answers against targets."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.engines.engine import NO_CLASS
from cosim.results.figures import (
    BLUE,
    DOUBLE,
    FONT,
    GREY,
    GREYS,
    INK,
    LIGHT,
    Axes,
    Figure,
    engine_colors,
    plain,
    styled,
)
from cosim.verbs.compare.agreement import Comparison

Counts = NDArray[np.int64]
_MOST_COUNTED = 20  # classes whose counts can be read


@styled
def draw_confusion(comparison: Comparison, labels: Sequence[str]) -> Figure:
    """Draw the software's confusion matrix with the other engines' changes to it, and the accuracy of all engines.

    labels: names of the classes.
    """
    counts, classes = count_decisions(comparison, len(labels)), len(labels)
    software = counts.pop("software")
    figure = Figure(figsize=(DOUBLE, 4.6 if classes > 4 else 3.2), layout="constrained")
    matrix, accuracy = figure.subplots(1, 2, width_ratios=(2.1, 1))
    matrix.imshow(software, cmap=GREYS, vmin=0, vmax=software.max())
    if classes <= _MOST_COUNTED:
        _write_counts(matrix, software, {engine: found - software for engine, found in counts.items()})
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
    matrix.set_title(f"samples as the software decides them,\n{_changes_text(comparison)}", fontsize=9)
    _draw_accuracies(accuracy, comparison)
    return figure


def _write_counts(axis: Axes, counts: Counts, changes: Mapping[str, Counts]) -> None:
    """Write the software's counts into the fields of the matrix, below them each engine's changes in its colour."""
    colors = engine_colors([*changes])
    changed = np.any([change != 0 for change in changes.values()], axis=0)
    style = {"ha": "center", "va": "center", "fontsize": FONT}
    for row, column in np.argwhere((counts > 0) | changed):
        axis.text(column, row - (0.12 if changed[row, column] else 0), str(counts[row, column]), **style)
        for k, (engine, change) in enumerate(changes.items()):
            if change[row, column]:
                text = f"{change[row, column]:+d}".replace("-", "\N{MINUS SIGN}")
                color = INK.get(colors[engine], colors[engine])
                axis.text(column + (-0.24, 0.24)[k % 2], row + 0.3, text, weight="bold", color=color, **style)


def _changes_text(comparison: Comparison) -> str:
    """Return how many samples each engine decides otherwise than the software, in words.

    In the matrix such changes may cancel out.
    """
    decisions = {name: engine.decisions for name, engine in comparison.engines.items()}
    software = decisions.pop("software")
    counts = {name: int((found != software).sum()) for name, found in decisions.items()}
    if not any(counts.values()):
        return f"and {' and '.join(counts)} decide every sample the same"
    return ", ".join(f"{engine} decides {count} otherwise" for engine, count in counts.items()) + " (±)"


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


def count_decisions(comparison: Comparison, classes: int) -> dict[str, Counts]:
    """Count each engine's decisions: engine -> confusion matrix (classes, classes), with right classes in rows.

    Columns are decided classes. A sample for which the chip's own decision lines show no class is in no column.
    """
    y, counts = comparison.y.astype(np.int64), dict[str, Counts]()
    for name, engine in comparison.engines.items():
        counts[name] = np.zeros((classes, classes), dtype=np.int64)
        decided = engine.decisions.astype(np.int64)
        shown = decided != NO_CLASS
        np.add.at(counts[name], (y[shown], decided[shown]), 1)
    return counts


def draw_values(comparison: Comparison) -> Figure:
    """Draw real-valued answers against their targets, one panel for each engine, with the band of right answers."""
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
