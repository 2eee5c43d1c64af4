"""The files of a search's folder: explore.json, explore.csv, the picture and the page.

The picture shows the first objective over each of the others, for all trials, and the front with its intervals.
"""

from collections.abc import Sequence
from pathlib import Path

from cosim.base.seal import seal_json
from cosim.base.text import is_file
from cosim.base.write import write_together
from cosim.results.figures import (
    BLUE,
    FONT,
    GREY,
    LIGHT,
    RED,
    Axes,
    Figure,
    few_ticks,
    figure_bytes,
    log_axis,
    picture_of,
    plain,
    styled,
)
from cosim.results.html import show
from cosim.results.kept_page import REPORT_FILE, write_page
from cosim.results.metrics import PERCENT, Estimate
from cosim.results.page import Facts, Links, Page, PageSubject, Section, Table
from cosim.verbs.explore.study import (
    OBJECTIVES,
    Exploration,
    SearchTrial,
    cells_of,
    format_exploration_csv,
    head_of,
    name_knob,
    remarks,
    row_of,
    shown_figure,
    shown_figures,
    shown_value,
    state_of,
    verdict,
    violation,
)
from cosim.verbs.sweep.page import width_of_words
from cosim.verbs.sweep.study import scale_of

_PANEL = (3.4, 3.1)
_DECADES = 3.0  # of the values, from where an axis is logarithmic
_SMALL = 6.5


def write_exploration(folder: Path, found: Exploration) -> None:
    """Write all files of a search's result; without a trial that could be run there is no picture.

    Raises InputError when a file cannot be written.
    """
    files = {"explore.json": seal_json(found), "explore.csv": format_exploration_csv(found)}
    figure = draw_exploration(found) if any(one.figures for one in found.trials) else None
    runs = [(f"{kind} {one.number}", f"{kind}-{one.number:03d}/{REPORT_FILE}")
            for one in found.on_front for kind in ("trial", "transistors", "fresh", "chips")]  # fmt: skip
    page = explore_page(found, figure, Links(tuple(run for run in runs if is_file(folder / run[1]))))
    if figure is not None:
        files |= {"explore.svg": page.pictures[0].content, "explore.png": figure_bytes(figure, "png")}
    write_together({folder / name: content for name, content in files.items()})
    write_page(folder, page)


def explore_page(found: Exploration, figure: Figure | None, links: Links) -> Page:
    """Return the page of a search; links: to the pages of the runs of circuits on the front."""
    said, sought = verdict(found), " and ".join(found.objectives)
    caption = f"{found.objectives[0].capitalize()} over the others; numbers are those of trials."
    drawn = () if figure is None else (picture_of(figure, f"{caption} {said}.", caption, width_of_words(figure)),)
    checked = sum(one.transistors is not None for one in found.trials)
    refuted = sum(one.refuted for one in found.trials)
    head, rows = head_of(found), tuple(row_of(found, one) for one in found.on_front)
    front = (Table(head, rows, tuple(range(len(head)))),) if rows else ()
    return Page(
        verb="explore",
        subject=PageSubject(found.network, found.network_hash),
        title=f"{found.network}: {said}",
        lead=f"A search for {sought} by the behavioral model; {checked} circuits went through the batched engine "
        "without mismatch.",
        cards=tuple(_best(found, name) for name in found.objectives) if found.front else (),
        answer=f"{said[:1].upper()}{said[1:]}.",
        notes=tuple(f"{note[:1].upper()}{note[1:]}." for note in remarks(found)),
        sections=(
            Section("The front", (*drawn, *front)),
            Section("All trials", (_trials(found),), detail=True),
            Section("Runs of the front", (links,) if links.rows else ()),
            Section("What was searched", (Facts(_searched(found, checked, refuted)),), detail=True),
        ),
        provenance={"network": found.network_hash, "file": found.file, **found.made_with},
    )


def _best(found: Exploration, name: str) -> tuple[str, str]:
    best = max(found.on_front, key=lambda one: OBJECTIVES[name] * one.figures[name].value)
    text = shown_figure(name, best.figures[name]).partition(" [")[0]
    return text, f"{'largest' if OBJECTIVES[name] > 0 else 'smallest'} {name} on the front, trial {best.number}"


def _trials(found: Exploration) -> Table:
    head = ("trial", *map(name_knob, found.knobs), *shown_figures(found), "what became of it")
    rows = tuple((*cells_of(found, one), state_of(found, one)) for one in found.trials)
    return Table(head, rows, tuple(range(len(head) - 1)), tall=True)


def _searched(found: Exploration, checked: int, refuted: int) -> tuple[tuple[str, str], ...]:
    ranges = (
        (
            name_knob(knob),
            ", ".join(shown_value(knob, value) for value in knob.values)
            or f"{shown_value(knob, knob.low or 0.0)} to {shown_value(knob, knob.high or 0.0)}"
            + (", by equal factors" if knob.log else ""),
        )
        for knob in found.knobs
    )
    return (
        *ranges,
        ("as it was", ", ".join(found.unvaried)),
        ("circuits on transistors", f"{checked}, {refuted} of them refuted"),
        *((name.replace("-", " "), show(value)) for name, value in found.options.items()),
    )


@styled
def draw_exploration(found: Exploration) -> Figure:
    """Draw a search's first objective over each other objective, a panel each; a single one over the trial's number."""
    first, *others = found.objectives
    names = others or ["trial"]
    figure = Figure(figsize=(len(names) * _PANEL[0], _PANEL[1]), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True).ravel()
    for panel, name in zip(panels, names, strict=True):
        _draw(panel, found, (name, first))
    panels[0].set_ylabel(_label(found.trials, first))
    handles, words = panels[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside upper center", ncols=4)
    return figure


def _draw(panel: Axes, found: Exploration, names: tuple[str, str]) -> None:
    """Draw the trials in a panel; names: of the figures on the horizontal and the vertical axis."""
    there = [one for one in found.trials if one.figures]
    refuted = [one for one in there if one.refuted]
    lacking = [one for one in there if one not in refuted and violation(one, found.least_yield)]
    beaten = [one for one in there if one not in [*refuted, *lacking, *found.on_front]]
    factors = [scale_of(name, _largest(there, name))[0] for name in names]

    def place(some: Sequence[SearchTrial]) -> tuple[list[float], list[float]]:
        x, y = ([factor * _of(one, name).value for one in some] for name, factor in zip(names, factors, strict=True))
        return x, y

    low = f"yield under {100 * found.least_yield:g} %"
    for some, mark, color, label in (
        (lacking, "o", LIGHT, low), (beaten, "o", GREY, "beaten"), (refuted, "x", RED, "refuted by transistors")
    ):  # fmt: skip
        if some:
            panel.plot(*place(some), mark, ms=3.5, mfc="none" if some is lacking else color, mec=color, label=label)
    x, y = place(found.on_front)
    ends = [_ends(_of(one, names[1])) for one in found.on_front]
    below = [middle - factors[1] * low for middle, (low, _) in zip(y, ends, strict=True)]
    above = [factors[1] * high - middle for middle, (_, high) in zip(y, ends, strict=True)]
    panel.errorbar(x, y, (below, above), fmt="o", ms=4.5, color=BLUE, lw=0.8, capsize=2, label="front")
    for one, right, up in zip(found.on_front, x, y, strict=True):
        panel.annotate(str(one.number), (right, up), (3, 3), textcoords="offset points", fontsize=_SMALL)
    _finish(panel, found, names[0], [factors[0] * _of(one, names[0]).value for one in there])


def _finish(panel: Axes, found: Exploration, name: str, values: Sequence[float]) -> None:
    panel.set_xlabel(_label(found.trials, name))
    if values and min(values) > 0 and max(values) > _DECADES * min(values):
        log_axis(panel, "x", min(values), max(values))
    else:
        few_ticks(panel, "x")
    panel.grid(lw=0.3)
    plain(panel, size=FONT)


def _label(trials: Sequence[SearchTrial], name: str) -> str:
    if name == "trial":
        return "trial"
    unit = scale_of(name, _largest([one for one in trials if one.figures], name))[1]
    return f"{name} ({'%' if unit == PERCENT else unit})"


def _of(one: SearchTrial, name: str) -> Estimate:
    return Estimate(float(one.number)) if name == "trial" else one.figures[name]


def _ends(figure: Estimate) -> tuple[float, float]:
    return (figure.value if figure.low is None else figure.low, figure.value if figure.high is None else figure.high)


def _largest(trials: Sequence[SearchTrial], name: str) -> float:
    return max((abs(_of(one, name).value) for one in trials), default=0.0)
