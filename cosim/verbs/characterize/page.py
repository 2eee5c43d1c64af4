"""The page of a characterised cell: ideal, as drawn and calibrated, a section for each condition."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cosim.base.quantities import format_quantity
from cosim.results.figures import picture_of
from cosim.results.html import Picture
from cosim.results.page import Facts, Page, PageSubject, Section, Table
from cosim.technology.calibration import Calibration
from cosim.technology.types import Technology
from cosim.verbs.characterize.figures import draw_characterisation, draw_staircase
from cosim.verbs.characterize.ladder import LadderStudy, LadderSummary, LadderTrace, level_rows
from cosim.verbs.characterize.study import CellFigure, Characterisation
from cosim.verbs.provenance import calibration_origins
from cosim.verbs.words import say_conditions

_LEAST = 600  # pixels under which the picture's words cannot be read
_CAPTION = "Grey: the cell's equation; red: as drawn, with the bias currents of that equation; blue: calibrated."
_STAIRS = (
    "Input, output and supply power of a ladder that climbs to its top and comes down. Grey: the staircase asked for; "
    "red: as drawn; blue: calibrated."
)


def cell_page(
    cell: str, found: Sequence[Characterisation], calibration: Calibration, made_with: Mapping[str, str]
) -> Page:
    """Return the page of a cell that is not a ladder; made_with: name of the simulator -> its version."""
    rows = [row for one in found for row in one.rows]
    drawn, calibrated = (_largest(rows, which) for which in (0, 1))
    lost = sum(math.isnan(row.calibrated) for row in rows)
    name, conditions = found[0].technology.name, _count(len(found))
    return Page(
        verb=f"characterize {cell}",
        subject=PageSubject(f"{cell} cell"),
        title=f"{cell} on {name}: at most {_percent(calibrated)} from ideal calibrated, {_percent(drawn)} as drawn",
        lead=f"{len(found[0].rows)} figures of the cell in each of {conditions}, by {', '.join(made_with)}: by its "
        "equation, as drawn with the bias currents of that equation, and with those of the calibration, which is of "
        "the nominal condition.",
        cards=(
            (_percent(calibrated), "largest error, calibrated"),
            (_percent(drawn), "largest error, as drawn"),
            *(((str(lost), "figures not found"),) if lost else ()),
        ),
        sections=tuple(
            Section(say_conditions(one.technology), (_picture(cell, one), figures_table(one.rows))) for one in found
        ),
        provenance=calibration_origins(calibration, made_with),
    )


@dataclass(frozen=True)
class LadderCondition:
    """A ladder at one corner, temperature and supply."""

    technology: Technology
    traces: Sequence[LadderTrace]
    summary: LadderSummary


def ladder_page(
    study: LadderStudy, found: Sequence[LadderCondition], calibration: Calibration, made_with: Mapping[str, str]
) -> Page:
    """Return the page of a ladder; made_with: name of the simulator -> its version."""
    checked, wrong, updates = (
        sum(getattr(one.summary, key) for one in found) for key in ("steps_checked", "wrong_levels", "wrong_updates")
    )
    error = max(one.summary.level_error_max for one in found)
    power = max(one.summary.power_w for one in found)
    name, conditions = found[0].technology.name, _count(len(found))
    return Page(
        verb="characterize ladder",
        subject=PageSubject(f"ladder of {study.rungs} rungs"),
        title=f"ladder of {study.rungs} rungs on {name}: {wrong} of {checked} levels wrong",
        lead=f"{study.sequences} random sequence{'s' * (study.sequences > 1)} of {study.steps} updates in "
        f"{conditions}, a frame of "
        f"{format_quantity(study.timing.step, 's')} each, by {', '.join(made_with)} against software.",
        cards=(
            (f"{wrong} of {checked}", f"levels wrong, after {updates} wrong updates"),
            (_percent(error), "largest error of a level"),
            (format_quantity(power, "W"), "mean supply power, at most"),
        ),
        sections=tuple(_ladder_section(study, one) for one in found),
        provenance=calibration_origins(calibration, made_with),
    )


def _ladder_section(study: LadderStudy, one: LadderCondition) -> Section:
    title = say_conditions(one.technology)
    picture = picture_of(draw_staircase(study, one.traces, title), _STAIRS, _STAIRS, _LEAST, "png")
    return Section(title, (picture, Facts(_facts(one.summary)), figures_table(level_rows(study, one.traces))))


def _facts(summary: LadderSummary) -> tuple[tuple[str, str], ...]:
    first = summary.first_wrong
    split = ((f"power of {block}", format_quantity(watt, "W")) for block, watt in summary.power_split_w.items())
    where = "none" if first is None else (
        f"in sequence {first.sequence}, step {first.step}: level {first.found}, not {first.expected}"
    )  # fmt: skip
    return (
        ("steps of random sequences", str(summary.steps_checked)),
        ("wrong levels", f"{summary.wrong_levels}, by {summary.wrong_updates} wrong updates"),
        ("first wrong level", where),
        ("steps held", f"{summary.retention_steps}, {summary.retention_wrong} of them wrong"),
        ("wrong steps of the staircase", f"{summary.staircase_wrong}; as drawn {summary.staircase_wrong_uncalibrated}"),
        ("an update is done after", f"{format_quantity(summary.update_time_max_s, 's')} or sooner"),
        ("mean supply power", format_quantity(summary.power_w, "W")),
        *split,
    )


def _picture(cell: str, one: Characterisation) -> Picture:
    figure = draw_characterisation(cell, one)
    alt = f"{cell} at {say_conditions(one.technology)}. {_CAPTION}"
    return picture_of(figure, alt, _CAPTION, _LEAST, "png")


def figures_table(rows: Sequence[CellFigure]) -> Table:
    """Return the table of a cell's figures: ideal, as drawn and calibrated, each of the two with its error."""
    head = ("set-point", "figure", "ideal", "as drawn", "error", "calibrated", "error")
    return Table(head, tuple(map(_row, rows)), tuple(range(2, len(head))))


def _row(row: CellFigure) -> tuple[str, ...]:
    ideal, drawn, calibrated = (_quantity(value, row.unit) for value in (row.ideal, row.measured, row.calibrated))
    errors = [_signed(error) for error in row.errors]
    return row.set_point, row.quantity, ideal, drawn, errors[0], calibrated, errors[1]


def _quantity(value: float, unit: str) -> str:
    return "not found" if math.isnan(value) else format_quantity(value, unit, 4)


def _signed(error: float) -> str:
    return "" if math.isnan(error) else f"{100 * error:+.2f} %"


def _percent(error: float) -> str:
    return f"{100 * error:.2f} %"


def _largest(rows: Sequence[CellFigure], which: int) -> float:
    return max((abs(row.errors[which]) for row in rows if not math.isnan(row.errors[which])), default=math.nan)


def _count(conditions: int) -> str:
    return f"{conditions} condition{'s' * (conditions > 1)}"
