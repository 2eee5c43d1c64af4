"""Yield against device area of a network trained on nominal devices and of one trained on chips that vary.

    python benchmarks/bench_yield_area.py [figure.png] [--jobs 1]

runs for each network and area

    cosim montecarlo models/trained/NETWORK.pt --chips 1000 --area AREA --spec 'accuracy>=0.8' --seed 7 -o FOLDER

(compiled circuit, behavioral engine, whole test set) with a store in runs/yield_area for each; chips that a store holds
are not run again. Intervals: Clopper-Pearson at 95 %. The chips of one area are the same draws for both networks as far
as the names of their transistors agree.
"""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from smoke import shrink

from cosim.base.resources import trained_network_path
from cosim.results.figures import BLUE, RED, Figure, save_figure
from cosim.verbs.montecarlo.command import command

NETWORKS = {"digits_d8": ("trained on nominal devices", RED), "digits_robust_d8": ("trained on chips that vary", BLUE)}
AREAS = (0.25, 0.35, 0.5, 0.7, 1.0, 2.0)
LIMIT, CHIPS, SEED = 0.8, 1000, 7
FOLDER = Path("runs/yield_area")
Rows = dict[str, list[dict[str, Any]]]


@click.command()
@click.argument("figure", type=click.Path(path_type=Path), required=False)
@click.option("--jobs", default=2, show_default=True)
def main(figure: Path | None, jobs: int) -> None:
    rows = {name: [run(name, area, jobs) for area in AREAS] for name in NETWORKS}
    click.echo("\n" + "\n".join(format_table(rows)))
    if figure is not None:
        save_figure(draw_figure(rows), figure)


def run(name: str, area: float, jobs: int) -> dict[str, Any]:
    """The summary of one store, which is filled first."""
    folder = FOLDER / f"{name}_{area:g}"
    options = {"chips": CHIPS, "area": area, "spec": f"accuracy>={LIMIT:g}", "seed": SEED, "jobs": jobs}
    arguments = [f"--{key}={value}" for key, value in options.items()]
    click.echo(f"\n{name}, area {area:g}")
    command([str(trained_network_path(name)), *arguments, f"--output={folder}"], standalone_mode=False)
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def format_table(rows: Rows) -> list[str]:
    """A line for each network and area, in percent."""
    lines = [f"{'network':18} {'area':>5} {'nominal':>8} {'mean':>7} {'5 %':>7} {'worst':>7}  yield"]
    for name, summaries in rows.items():
        for area, summary in zip(AREAS, summaries, strict=True):
            found, accuracy = summary["yield"], summary["accuracy"]
            low, high = found["interval"]
            lines.append(
                f"{name:18} {area:5g} {summary['nominal']['accuracy']:8.1%} {accuracy['mean']:7.1%} "
                f"{accuracy['quantiles']['5']:7.1%} {accuracy['quantiles']['0']:7.1%}  "
                f"{found['value']:.1%} [{low:.1%}, {high:.1%}]"
            )
    return lines


def draw_figure(rows: Rows) -> Figure:
    """Yield with its interval, and accuracy of 90 % of the chips, against area."""
    figure = Figure(figsize=(7.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, summaries in rows.items():
        label, color = NETWORKS[name]
        found = [summary["yield"] for summary in summaries]
        draw_band(left, [one["value"] for one in found], [one["interval"] for one in found], color, label)
        quantiles = [summary["accuracy"]["quantiles"] for summary in summaries]
        draw_band(right, [one["50"] for one in quantiles], [[one["5"], one["95"]] for one in quantiles], color, label)
    right.axhline(100 * LIMIT, color="black", ls="--", lw=0.9, label="required")
    left.set_title(f"chips of {100 * LIMIT:g} % accuracy or more; band: 95 % interval", fontsize=8)
    right.set_title("median chip; band: 5 to 95 % of the chips", fontsize=8)
    left.set_ylabel("yield (%)")
    right.set_ylabel("accuracy (%)")
    left.set_ylim(0, 102)
    figure.legend(*right.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    for axis in (left, right):
        axis.set_xscale("log", base=2)
        axis.set_xticks(AREAS, [f"{area:g}" for area in AREAS])
        axis.set_xlabel("gate area over drawn area")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(lw=0.3)
    return figure


def draw_band(axis: Any, values: list[float], bounds: list[list[float]], color: str, label: str) -> None:
    """A line with its band, from fractions to percent."""
    low, high = 100 * np.array(bounds).T
    axis.fill_between(AREAS, low, high, color=color, alpha=0.2, lw=0)
    axis.plot(AREAS, 100 * np.array(values), color=color, lw=1.6, marker="o", ms=3.5, label=label)


if __name__ == "__main__":
    shrink(globals(), "yield.png", "--jobs", "1", CHIPS=2, AREAS=(1.0, 2.0))
    main()
