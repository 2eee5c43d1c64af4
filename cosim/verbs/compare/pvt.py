"""Process, supply and temperature: the conditions of a sweep, and the worst of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from cosim.base.errors import InputError
from cosim.cells.blocks import OUTSIDE
from cosim.engines.simulation.audit import Audit
from cosim.results.intervals import IntervalEnds
from cosim.results.metrics import Estimate
from cosim.tasks.testset import Clipping
from cosim.technology.conditions import at
from cosim.technology.foundry import read_section
from cosim.technology.types import Technology
from cosim.verbs.bias import WORDS, Bias
from cosim.verbs.compare.agreement import ComparisonSummary

CELSIUS = (0.0, 27.0, 60.0)
SUPPLIES = (0.95, 1.0, 1.05)  # of the nominal one


@dataclass(frozen=True)
class PvtCondition:
    """One condition: celsius in degree, supply in V, power in W; None for what nothing is known of, as all failed.

    elsewhere: samples that something else ran in the simulator's place.
    """

    corner: str
    celsius: float
    supply_v: float
    samples: int
    failed: int
    state_agreement: float
    task_agreement: float
    task_agreement_interval: IntervalEnds | None
    accuracy: float | None
    power_w: float | None
    elsewhere: int = 0
    measured: dict[str, Estimate] = field(default_factory=dict[str, Estimate])


@dataclass(frozen=True)
class Sweep:
    """Every condition, and the worst of them: none among conditions that are all equal.

    bias_assumed: where every figure assumes that the bias currents come from, as a phrase.
    """

    bias: Bias
    clipped: Clipping | None
    conditions: tuple[PvtCondition, ...]
    worst: tuple[PvtCondition, ...]
    failed: int
    power_outside: tuple[str, ...]
    audit: Audit | None = None
    bias_assumed: str = WORDS["constant"]


@dataclass(frozen=True)
class Conditions:
    """Conditions of a sweep: corners, none for all that a technology has; temperatures in celsius; supplies over the
    nominal one; bias as in `biased`. audit: how many samples of all of them together go through ngspice, too."""

    corners: tuple[str, ...] = ()
    celsius: tuple[float, ...] = CELSIUS
    supplies: tuple[float, ...] = SUPPLIES
    bias: Bias = "constant"
    audit: int = 0


def pvt_grid(technology: Technology, grid: Conditions = Conditions()) -> tuple[Technology, ...]:
    """Return the technology for `compare --pvt` at every corner of the grid, at each of its temperatures and supplies.

    Raises InputError when its devices are not made for one of the supplies, or its library has not one of the sections.
    """
    most = round(max(grid.supplies) * technology.supply, 6)
    if most > technology.supply_max:
        raise InputError(
            f"--pvt needs {max(grid.supplies):.0%} of the supply, {most:g} V; {technology.name} has supply_max "
            f"{technology.supply_max:g} V. Lower its supply, or run single conditions with --corner, --temp, --supply"
        )
    library = technology.library
    for section in library.sections.values():
        read_section(library.file, section, library.also)
    return tuple(
        at(technology, corner, celsius, round(share * technology.supply, 6))
        for corner, celsius, share in product(grid.corners or library.sections, grid.celsius, grid.supplies)
    )


def summarize_pvt(
    conditions: Sequence[Technology],
    summaries: Sequence[ComparisonSummary | None],
    samples: int,
    bias: Bias = "constant",
    clipped: Clipping | None = None,
) -> Sweep:
    """Return one row per condition, from `summarize_comparison` (None: every simulation failed), and the worst of all.

    samples: how many were to be simulated in each.

    The worst have the smallest task agreement, then the smallest state agreement; a condition that failed is worse.
    """
    rows = tuple(_row(there, summary, samples) for there, summary in zip(conditions, summaries, strict=True))
    ranks = [(row.task_agreement, row.state_agreement) for row in rows]
    worst = tuple(row for row, rank in zip(rows, ranks, strict=True) if rank == min(ranks))
    failed = sum(row.failed for row in rows)
    shown = worst if len(worst) < len(rows) else ()
    return Sweep(bias, clipped, rows, shown, failed, OUTSIDE, bias_assumed=WORDS[bias])


def nominal_condition(sweep: Sweep) -> PvtCondition | None:
    """Return the first corner's condition at the middle of temperatures and supplies; None where nothing is known of
    its power."""
    celsius, supplies = (sorted({getattr(row, name) for row in sweep.conditions}) for name in ("celsius", "supply_v"))
    wanted = sweep.conditions[0].corner, celsius[len(celsius) // 2], supplies[len(supplies) // 2]
    found = (row for row in sweep.conditions if (row.corner, row.celsius, row.supply_v) == wanted)
    return next((row for row in found if row.power_w is not None), None)


def _row(there: Technology, found: ComparisonSummary | None, samples: int) -> PvtCondition:
    where = there.corner, there.celsius, there.supply
    if found is None:
        return PvtCondition(*where, 0, samples, 0.0, 0.0, None, None, None)
    same = found.state_agreement, found.task_agreement, found.task_agreement_interval
    right, power = found.accuracy[found.simulator], found.power_w[found.simulator]
    return PvtCondition(
        *where, found.samples, found.failed, *same, right, power, sum(found.elsewhere.values()), found.measured
    )
