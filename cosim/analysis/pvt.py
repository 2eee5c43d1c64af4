"""Process, supply and temperature: the conditions of a sweep, and its table."""

from collections.abc import Mapping, Sequence
from itertools import product
from textwrap import wrap
from typing import Any

from cosim.analysis.tables import format_outside, percent
from cosim.cells.blocks import OUTSIDE
from cosim.errors import InputError
from cosim.technology.conditions import at
from cosim.technology.foundry import read_section
from cosim.technology.types import Technology
from cosim.units import format_quantity

CELSIUS = (0.0, 27.0, 60.0)
SUPPLIES = (0.95, 1.0, 1.05)  # of the nominal one
NAMED = 6  # of the worst conditions, where there are more


def pvt_grid(technology: Technology) -> tuple[Technology, ...]:
    """Every corner that the technology has, at CELSIUS and SUPPLIES.

    Raises InputError when its devices are not made for one of the supplies, or its library has not one of the sections.
    """
    most = round(max(SUPPLIES) * technology.supply, 6)
    if most > technology.supply_max:
        raise InputError(
            f"--pvt needs {max(SUPPLIES):.0%} of the supply, {most:g} V; {technology.name} has supply_max "
            f"{technology.supply_max:g} V. Lower its supply, or run single conditions with --corner, --temp, --supply"
        )
    library = technology.library
    for section in library.sections.values():
        read_section(library.file, section, library.also)
    return tuple(
        at(technology, corner, celsius, round(share * technology.supply, 6))
        for corner, celsius, share in product(library.sections, CELSIUS, SUPPLIES)
    )


def summarize_pvt(
    conditions: Sequence[Technology], summaries: Sequence[Mapping[str, Any] | None], samples: int
) -> dict[str, Any]:
    """One row per condition, from `summarize_comparison` (None: every simulation failed), and the worst of all.

    samples: how many were to be simulated in each.

    The worst have the smallest task agreement, then the smallest state agreement; a condition that failed is worse.
    There is none among conditions that are all equal.
    """
    rows = [
        {"corner": there.corner, "celsius": there.celsius, "supply_v": there.supply, **_figures(summary, samples)}
        for there, summary in zip(conditions, summaries, strict=True)
    ]
    least = min(map(_agreement, rows))
    worst = [row for row in rows if _agreement(row) == least]
    return {
        "conditions": rows,
        "worst": worst if len(worst) < len(rows) else [],
        "failed": sum(row["failed"] for row in rows),
        "power_outside": list(OUTSIDE),
    }


def _agreement(row: Mapping[str, Any]) -> tuple[float, float]:
    return row["task_agreement"], row["state_agreement"]


def _figures(summary: Mapping[str, Any] | None, samples: int) -> dict[str, Any]:
    if summary is None:
        return {"samples": 0, "failed": samples, "state_agreement": 0.0, "task_agreement": 0.0} | dict.fromkeys(
            ("task_agreement_interval", "accuracy", "power_w"), None
        )
    names = ("samples", "failed", "state_agreement", "task_agreement", "task_agreement_interval")
    figures = {name: summary[name] for name in names}
    simulator = summary["simulator"]
    return figures | {"accuracy": summary["accuracy"][simulator], "power_w": summary["power_w"][simulator]}


def format_pvt(sweep: Mapping[str, Any]) -> list[str]:
    """The terminal table of `summarize_pvt`, under 80 columns."""
    lines = [f"{'corner':6} {'temp':>6} {'supply':>8}  {'states':>9} {'decisions':>10}  {'accuracy':>8} {'power':>9}"]
    lines += [_line(row) for row in sweep["conditions"]]
    rows = sweep["conditions"]
    samples = rows[0]["samples"] + rows[0]["failed"]
    lines += [
        "",
        f"samples         {samples} in each of {len(rows)} conditions, {sweep['failed']} runs failed",
        "agreement       states and decisions, software vs the simulator",
        *_format_worst(sweep["worst"], rows),
        *format_outside(),
    ]
    return lines


def _format_worst(worst: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    one = (worst or rows)[0]
    low, high = one["task_agreement_interval"] or (0.0, 1.0)
    figures = (
        f"decisions {percent(one['task_agreement'])} [{percent(low)}, {percent(high)}], "
        f"states {percent(one['state_agreement'], 2)}"
    )
    if not worst:
        return [f"worst           none of {len(rows)}: all have equal", f"                {figures}"]
    places = [f"{row['corner']} {row['celsius']:g} C {row['supply_v']:g} V" for row in worst]
    more = [f"and {len(places) - NAMED} more"] if len(places) > NAMED else []
    named = ", ".join(places[:NAMED] + more)
    text = f"{'worst':16}{named if len(worst) == 1 else f'{len(worst)} alike: {named}'}"
    return [*wrap(text, 79, subsequent_indent=16 * " "), f"                {figures}"]


def _line(row: Mapping[str, Any]) -> str:
    where = f"{row['corner']:6} {row['celsius']:>4g} C {row['supply_v']:>6.4g} V"
    if row["accuracy"] is None:
        return f"{where}  every simulation failed"
    states, decisions = percent(row["state_agreement"], 2), percent(row["task_agreement"])
    return (
        f"{where}  {states:>9} {decisions:>10}  {percent(row['accuracy']):>8} {format_quantity(row['power_w'], 'W'):>9}"
    )
