"""The files of a search's folder: explore.json, explore.csv, the picture, and its page."""

from pathlib import Path

from cosim.base.seal import seal_json
from cosim.base.text import is_file
from cosim.base.write import write_together
from cosim.results.figures import Figure, figure_bytes
from cosim.results.html import Picture, show
from cosim.results.kept_page import REPORT_FILE, write_page
from cosim.results.page import Facts, Links, Page, PageSubject, Section, Table
from cosim.verbs.explore.figure import draw_exploration
from cosim.verbs.explore.study import OBJECTIVES, Exploration, Tried
from cosim.verbs.explore.table import (
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
)

_READABLE = 88  # pixels an inch under which a picture's words cannot be read


def write_exploration(folder: Path, found: Exploration) -> None:
    """Write all of it; without a trial that could be run there is no picture. Raises InputError when it cannot."""
    files = {"explore.json": seal_json(found), "explore.csv": format_exploration_csv(found)}
    figure = draw_exploration(found) if any(one.figures for one in found.trials) else None
    if figure is not None:
        files |= {f"explore.{kind}": figure_bytes(figure, kind) for kind in ("svg", "png")}
    write_together({folder / name: content for name, content in files.items()})
    runs = [(f"{kind} {one.number}", f"{kind}-{one.number:03d}/{REPORT_FILE}")
            for one in found.on_front for kind in ("trial", "transistors", "fresh", "chips")]  # fmt: skip
    write_page(folder, explore_page(found, figure, Links(tuple(run for run in runs if is_file(folder / run[1])))))


def explore_page(found: Exploration, figure: Figure | None, links: Links) -> Page:
    """Return the page of a search. links: to the pages of the runs of the front."""
    said, sought = verdict(found), " and ".join(found.objectives)
    caption = f"{found.objectives[0].capitalize()} over the others; numbers are those of trials."
    drawn = () if figure is None else (_picture(figure, f"{caption} {said}.", caption),)
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


def _picture(figure: Figure, alt: str, caption: str) -> Picture:
    return Picture("svg+xml", figure_bytes(figure, "svg"), alt, caption, round(_READABLE * figure.get_figwidth()))


def _best(found: Exploration, name: str) -> tuple[str, str]:
    best = max(found.on_front, key=lambda one: OBJECTIVES[name] * one.figures[name].value)
    text = shown_figure(name, best.figures[name]).partition(" [")[0]
    return text, f"{'largest' if OBJECTIVES[name] > 0 else 'smallest'} {name} on the front, trial {best.number}"


def _trials(found: Exploration) -> Table:
    names = shown_figures(found)
    head = ("trial", *map(name_knob, found.knobs), *names, "what became of it")
    return Table(head, tuple(_row(found, one) for one in found.trials), tuple(range(len(head) - 1)), tall=True)


def _row(found: Exploration, one: Tried) -> tuple[str, ...]:
    values = (shown_value(knob, one.values[knob.option]) for knob in found.knobs)
    figures = (shown_figure(name, one.figures.get(name)) for name in shown_figures(found))
    return (str(one.number), *values, *figures, state_of(found, one))


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
