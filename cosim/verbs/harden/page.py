"""The files of a hardening's folder: harden.json, the picture, the page, and the network and overrides to go on with.

The picture shows yield, power and area of every circuit that was tried.
"""

import shlex
from pathlib import Path

from cosim.base.seal import seal_json
from cosim.base.text import is_file
from cosim.base.write import write_together
from cosim.cli import load_verb
from cosim.cli.settings import setting_name
from cosim.cli.verb import option_words
from cosim.results.figures import (
    BLUE,
    FONT,
    GREY,
    LIGHT,
    RED,
    Figure,
    few_ticks,
    figure_bytes,
    picture_of,
    plain,
    styled,
)
from cosim.results.html import show
from cosim.results.kept_page import REPORT_FILE, write_page
from cosim.results.metrics import Estimate, percent
from cosim.results.page import Blocks, Facts, Links, Page, PageSubject, Section, Table
from cosim.verbs.explore.circuits import OF_CHIPS
from cosim.verbs.explore.study import AREA_NOTE, OVERRIDES, SearchTrial, shown_figure
from cosim.verbs.harden.study import AS_GIVEN, Hardening, HardeningStep, remarks, say_yield, verdict
from cosim.verbs.inner import InnerVerb

NETWORK_FILE, OVERRIDES_FILE = "network.pt", "overrides.toml"
_FIGURES = ("accuracy", "power", "area")
_RUNS = {  # start of a folder's name -> what ran there
    "trial": "its chips",
    "fresh": "fresh chips",
    "transistors": "without mismatch, on transistors",
    "chips": "fresh chips, on transistors",
}
_LOSS = (
    "How far the mean accuracy falls where the transistors of these mirrors alone deviate, by the equations. A mirror "
    "is all transistors on one gate line; # stands for a number. A chip with a cell that does not reset counts as "
    "wrong in every sample. With n devices in parallel in place of each, about 1 / n of it is lost."
)
_HEIGHT, _ROW = 0.9, 0.28  # inches, of the picture: its frame, and each circuit


def write_hardening(folder: Path, found: Hardening, network: bytes, overrides: bytes | None, chips: InnerVerb) -> None:
    """Write all files of a hardening's result, or none.

    network: content of the chosen network's file; overrides: of the file with the mirrors' devices, None where no
    mirror has more; chips: montecarlo's command line, for the commands on the page. Raises InputError when a file
    cannot be written.
    """
    figure = draw_hardening(found) if found.before.figures else None
    page = hardening_page(found, figure, folder, chips)
    if overrides is None:
        (folder / OVERRIDES_FILE).unlink(missing_ok=True)  # of an earlier result
    files = {"harden.json": seal_json(found), NETWORK_FILE: network}
    if overrides is not None:
        files[OVERRIDES_FILE] = overrides
    if figure is not None:
        files |= {"harden.svg": page.pictures[0].content, "harden.png": figure_bytes(figure, "png")}
    write_together({folder / name: content for name, content in files.items()})
    write_page(folder, page)


def hardening_page(found: Hardening, figure: Figure | None, folder: Path, chips: InnerVerb) -> Page:
    """Return the page of a hardening; folder: where it stands; chips: montecarlo's command line, as it was typed."""
    caption = "Yield, power and area of each circuit; the line is the yield that was asked for."
    drawn = () if figure is None else (picture_of(figure, f"{caption} {verdict(found)}.", caption),)
    return Page(
        verb="harden",
        subject=PageSubject(found.network, found.network_hash),
        title=f"{found.network} on {found.technology}: {verdict(found)}",
        lead=f"{len(found.steps)} circuits tried, one after another, until {percent(found.least_yield)} of the chips "
        "work by the behavioral model.",
        cards=_cards(found),
        answer=f"{verdict(found)}.",
        notes=tuple(remarks(found)),
        sections=(
            Section("What each step brought", (*drawn, _steps(found))),
            Section("Before and after", (_confirmed(found),) if found.before.figures else ()),
            *((Section("Where mismatch costs accuracy", _mirrors(found)),) if found.mirrors else ()),
            Section("How to go on", (Facts(_commands(found, folder, chips)),)),
            Section("The runs", (Links(tuple(_runs(found, folder))),), detail=True),
            Section("How it was done", (Facts(_settings(found)),), detail=True),
        ),
        provenance={"network": found.network_hash, "file": found.file, **found.made_with},
    )


def _cards(found: Hardening) -> tuple[tuple[str, str], ...]:
    before, after = found.before, found.after
    if not before.figures or not after.figures:
        return ()
    cards = [(_short(after.fresh, "yield"), f"of fresh chips work, {_short(before.fresh, 'yield')} before")]
    for name in _FIGURES:
        now, then = after.figures[name], before.figures[name]
        words = f"{name}, {now.value / then.value:.2f} times" if name != "accuracy" else "mean accuracy of the chips"
        cards.append((_short(now, name), f"{words}, {_short(then, name)} before"))
    return tuple(cards)


def _short(figure: Estimate | None, name: str) -> str:
    return shown_figure(name, figure).partition(" [")[0]


def _steps(found: Hardening) -> Table:
    head = ("circuit", "change", "yield", "mean accuracy", "power", "area", "kept")
    rows = tuple(_step(found, k, step) for k, step in enumerate(found.steps))
    return Table(head, rows, (0, 2, 3, 4, 5))


def _step(found: Hardening, number: int, step: HardeningStep) -> tuple[str, ...]:
    figures = step.circuit.figures
    shown = (say_yield(figures.get("yield")), *(_short(figures.get(name), name) for name in _FIGURES))
    kept = "yes" if number == found.chosen else ("" if figures else "not possible")
    return (str(number), step.change, *shown, kept)


def _confirmed(found: Hardening) -> Table:
    """Return the table of what fresh chips and transistors say about the circuit as given and the chosen one."""
    steps = [found.steps[0], *([found.steps[found.chosen]] if found.chosen else [])]
    rows = [("fresh chips that work, by the equations", *(say_yield(one.circuit.fresh) for one in steps))]
    seen = [one.circuit.transistors for one in steps]
    if any(seen):
        for name, words in (("accuracy", "accuracy of the circuit without mismatch, on transistors"),
                            ("state_agreement", "its states as in software"), ("power", "its power")):  # fmt: skip
            rows.append((words, *(shown_figure(name, one.figures.get(name) if one else None) for one in seen)))
    if any(one is not None and one.chips for one in seen):
        count = max(one.chips or 0 for one in seen if one is not None)
        rows.append((f"first {count} fresh chips that work, on transistors",
                     *(say_yield(one.yield_ if one else None) for one in seen)))  # fmt: skip
    return Table(("", AS_GIVEN, *(["hardened"] if found.chosen else [])), tuple(rows), (1, 2)[: len(steps)])


def _mirrors(found: Hardening) -> Blocks:
    """Return the table of what the mismatch of each group of mirrors costs, and how many devices it has in the end."""
    rows = tuple(
        (one.mirrors, str(one.transistors), f"{one.area:.0f}", f"{100 * one.loss:.2f}", str(one.times))
        for one in sorted(found.mirrors, key=lambda one: -one.loss)
    )
    head = ("mirrors on gate lines", "transistors", "gates, um2", "accuracy lost, points", "devices in place of one")
    return (f"{_LOSS} Measured on circuit {found.measured}.", Table(head, rows, (1, 2, 3, 4)))


def _commands(found: Hardening, folder: Path, chips: InnerVerb) -> tuple[tuple[str, str], ...]:
    """Return (what it does, command) to go on with the chosen circuit, with those typed options that the verb has."""
    own = {"overrides": folder / OVERRIDES_FILE} if OVERRIDES in found.after.values else {}
    network = str(folder / NETWORK_FILE)

    def command(verb: str, *more: str) -> str:
        known = {setting_name(one) for one in load_verb(verb).params}
        left_out = ("chips", *(() if verb == "montecarlo" else OF_CHIPS))
        given = {
            name: value for name, value in {**chips.given, **own}.items() if name in known and name not in left_out
        }
        typed = [word for name, value in given.items() for word in option_words(name, value)]
        return shlex.join(["cosim", verb, *typed, *more, *(["--"] if network.startswith("-") else []), network])

    bits = found.after.values.get("bits")
    return (
        ("the netlist", command("compile")),
        ("more chips", command("montecarlo", "--chips=1000")),
        *((("the trim codes", command("trim", f"--bits={bits}")),) if bits else ()),
        ("corners, temperatures and supplies", command("compare", "--pvt")),
    )


def _runs(found: Hardening, folder: Path) -> list[tuple[str, str]]:
    return [
        (f"{step.change}: {words}", place)
        for number, step in enumerate(found.steps)
        for kind, words in _RUNS.items()
        if is_file(folder / (place := f"{kind}-{number:03d}/{REPORT_FILE}"))
    ]


def _settings(found: Hardening) -> tuple[tuple[str, str], ...]:
    return (
        *((f"training: {name}", show(value)) for name, value in found.training.items()),
        *((name.replace("-", " "), show(value)) for name, value in found.options.items()),
        ("areas", AREA_NOTE),
    )


@styled
def draw_hardening(found: Hardening) -> Figure:
    """Draw yield with its interval, power and area of all circuits of a hardening that could be tried, a row each."""
    there = [(k, step) for k, step in enumerate(found.steps) if step.circuit.figures]
    figure = Figure(figsize=(7.0, _HEIGHT + _ROW * len(there)), layout="constrained")
    yields, powers, areas = figure.subplots(1, 3, sharey=True, width_ratios=(2, 1, 1))
    rows = range(len(there))
    colors = [BLUE if k == found.chosen else GREY for k, _ in there]
    for row, color, (_, step) in zip(rows, colors, there, strict=True):
        value, low, high = _in_percent(step.circuit)
        yields.errorbar(
            value, row, xerr=[[value - low], [high - value]], fmt="o", ms=4.5, color=color, capsize=2, lw=0.9
        )
    yields.axvline(100 * found.least_yield, color=RED, lw=0.8)
    yields.set_xlim(-2, 102)
    yields.set_xlabel("yield (%)")
    for panel, name, factor, label in ((powers, "power", 1e9, "power (nW)"), (areas, "area", 1.0, "area (um2)")):
        values = [factor * step.circuit.figures[name].value for _, step in there]
        panel.barh(rows, values, height=0.55, color=[LIGHT if color == GREY else BLUE for color in colors])
        panel.set_xlabel(label)
        panel.set_xlim(0, 1.15 * max(values))
    for panel, most in ((yields, 3), (powers, 3), (areas, 2)):
        few_ticks(panel, "x", most)
    yields.set_yticks(rows, [step.change for _, step in there])
    yields.set_ylim(len(there) - 0.5, -0.5)
    plain(yields, powers, areas, size=FONT)
    return figure


def _in_percent(circuit: SearchTrial) -> tuple[float, float, float]:
    found = circuit.figures["yield"]
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return 100 * found.value, 100 * low, 100 * high
