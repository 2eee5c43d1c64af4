"""Process, supply and temperature: the conditions of a sweep, and the worst of them."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from cosim.cells.blocks import OUTSIDE
from cosim.errors import InputError
from cosim.technology.conditions import at
from cosim.technology.foundry import read_section
from cosim.technology.types import Technology

CELSIUS = (0.0, 27.0, 60.0)
SUPPLIES = (0.95, 1.0, 1.05)  # of the nominal one


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
