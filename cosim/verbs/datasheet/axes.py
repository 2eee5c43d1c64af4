"""The conditions of a datasheet as a table, and each measure over one of them at a time as a picture."""

from collections.abc import Iterator, Sequence

import numpy as np

from cosim.base.quantities import format_quantity, parse_quantity
from cosim.base.text import format_csv
from cosim.results.figures import (
    BLUE,
    GREY,
    SINGLE,
    Figure,
    few_ticks,
    log_axis,
    picture_of,
    plain,
    styled,
)
from cosim.results.html import Picture
from cosim.verbs.datasheet.sheet import Datasheet, DatasheetCondition, SheetMeasure
from cosim.verbs.datasheet.statistics import named_values
from cosim.verbs.datasheet.study import DatasheetChip

_FEWEST = 3  # values of an axis that is drawn
_MANY = 30.0  # ratio of the ends of an axis that is logarithmic
_LEAST = 340  # px
_UNITS = {"celsius": "C", "supply": "V"}
SweptValue = tuple[float, float | None]


def conditions_csv(sheet: Datasheet, records: Sequence[DatasheetChip]) -> str:
    """Return the text of a .csv file with every condition of a datasheet and its measures, and why one has none.

    records: of the conditions, in their order. A measure with the name of a condition, such as corner, is the column
    `measure corner`.
    """
    given_names = ["corner", *axes_of(sheet.nominal)]
    rows: list[list[object]] = []
    for there, record in zip(sheet.conditions, records, strict=True):
        given = [there.technology.corner, *axes_of(there).values()]
        values = [*given, *named_values(sheet, record).values(), record.reason]
        rows.append(["" if value is None else value for value in values])
    measures = [f"measure {one.name}" if one.name in given_names else one.name for one in sheet.measures]
    return format_csv([*given_names, *measures, "reason"], rows, 9)


def axes_of(condition: DatasheetCondition) -> dict[str, float | None]:
    """Return axis -> value of a condition: celsius, supply in V, None where the sheet has none, and each parameter."""
    given = {"celsius": condition.technology.celsius, "supply": condition.supply}
    return {**given, **dict(condition.parameters)}


def swept_pictures(sheet: Datasheet, records: Sequence[DatasheetChip]) -> tuple[Picture, ...]:
    """Return a picture of each measure over each axis of a sheet that `swept_points` finds."""
    pictures: list[Picture] = []
    for name, measure, points in swept_points(sheet, records):
        caption = f"{measure.name} over {name}, all else nominal"
        pictures.append(picture_of(draw_sweep(measure, name, points), caption, caption, _LEAST))
    return tuple(pictures)


def swept_points(
    sheet: Datasheet, records: Sequence[DatasheetChip]
) -> Iterator[tuple[str, SheetMeasure, list[SweptValue]]]:
    """Yield the points of each measure over each axis of three or more values, in order, all else nominal.

    They are (axis, measure, points), a point (value of the axis, value of the measure). records: of the conditions, in
    their order. A measure without any value is left out.
    """
    nominal, corner = axes_of(sheet.nominal), sheet.nominal.technology.corner
    for name in nominal:
        along: list[tuple[float, dict[str, float | None]]] = []
        for one, record in zip(sheet.conditions, records, strict=True):
            there = axes_of(one)
            value, there[name] = there[name], nominal[name]
            if value is not None and one.technology.corner == corner and there == nominal:
                along.append((value, named_values(sheet, record)))
        along.sort(key=lambda pair: pair[0])
        for measure in sheet.measures if len(along) >= _FEWEST else ():
            points = [(value, values[measure.name]) for value, values in along]
            if any(value is not None for _, value in points):
                yield name, measure, points


@styled
def draw_sweep(measure: SheetMeasure, name: str, points: Sequence[SweptValue]) -> Figure:
    """Draw a measure over an axis, with its limits as lines; points: in order, a value of None is a gap."""
    figure = Figure(figsize=(SINGLE, 2.3), layout="constrained")
    axis = figure.subplots()
    plain(axis)
    x, y = (np.array([np.nan if one is None else one for one in column]) for column in zip(*points, strict=True))
    across, along = _prefixed_axis(name, float(np.abs(x).max())), prefixed(float(np.nanmax(np.abs(y))), measure.unit)
    axis.plot(x / across[0], y / along[0], color=BLUE, marker="o", ms=3)
    low, high = axis.get_ylim()
    for limit in (measure.low, measure.high):
        if limit is not None and low - (high - low) <= limit / along[0] <= high + (high - low):
            axis.axhline(limit / along[0], color=GREY, ls="--", lw=1.0)
    few_ticks(axis, "both")
    if x[0] > 0 and x[-1] > _MANY * x[0]:
        log_axis(axis, "x", x[0] / across[0], x[-1] / across[0])
    axis.set_xlabel(f"{name}{f' ({across[1]})' if across[1] else ''}")
    axis.set_ylabel(f"{measure.name}{f' ({along[1]})' if along[1] else ''}")
    return figure


def _prefixed_axis(name: str, largest: float) -> tuple[float, str]:
    """Return the factor that suits the values of an axis, and its unit; a parameter has a prefix alone, as in 10n."""
    if unit := _UNITS.get(name):
        return 1.0, unit
    prefix = format_quantity(largest, "", 3).partition(" ")[2]
    return (parse_quantity(f"1{prefix}", "") if prefix else 1.0), prefix


def prefixed(largest: float, unit: str) -> tuple[float, str]:
    """Return the factor of the SI prefix that suits a number, and the unit with it; 1 without a unit."""
    if not unit or not largest:
        return 1.0, unit
    text = format_quantity(largest, unit, 3).rpartition(" ")[2]
    return parse_quantity(f"1{text.removesuffix(unit)}", ""), text
