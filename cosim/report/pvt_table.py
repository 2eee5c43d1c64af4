"""The terminal table of a sweep over process, supply and temperature."""

from collections.abc import Sequence
from textwrap import wrap

from cosim.quantities import format_quantity
from cosim.report.tables import format_outside, percent
from cosim.study.pvt import Condition, Sweep

NAMED = 6  # of the worst conditions, where there are more


def format_pvt(sweep: Sweep) -> list[str]:
    """The terminal table of `summarize_pvt`, under 80 columns."""
    lines = [f"{'corner':6} {'temp':>6} {'supply':>8}  {'states':>9} {'decisions':>10}  {'accuracy':>8} {'power':>9}"]
    rows = sweep.conditions
    lines += [_line(row) for row in rows]
    samples = rows[0].samples + rows[0].failed
    lines += [
        "",
        f"samples         {samples} in each of {len(rows)} conditions, {sweep.failed} runs failed",
        "agreement       states and decisions, software vs the simulator",
        *_format_worst(sweep.worst, rows),
        *format_outside(),
    ]
    return lines


def _format_worst(worst: Sequence[Condition], rows: Sequence[Condition]) -> list[str]:
    one = (worst or rows)[0]
    low, high = one.task_agreement_interval or (0.0, 1.0)
    figures = (
        f"decisions {percent(one.task_agreement)} [{percent(low)}, {percent(high)}], "
        f"states {percent(one.state_agreement, 2)}"
    )
    if not worst:
        return [f"worst           none of {len(rows)}: all have equal", f"                {figures}"]
    places = [f"{row.corner} {row.celsius:g} C {row.supply_v:g} V" for row in worst]
    more = [f"and {len(places) - NAMED} more"] if len(places) > NAMED else []
    named = ", ".join(places[:NAMED] + more)
    text = f"{'worst':16}{named if len(worst) == 1 else f'{len(worst)} alike: {named}'}"
    return [*wrap(text, 79, subsequent_indent=16 * " "), f"                {figures}"]


def _line(row: Condition) -> str:
    where = f"{row.corner:6} {row.celsius:>4g} C {row.supply_v:>6.4g} V"
    if row.accuracy is None or row.power_w is None:
        return f"{where}  every simulation failed"
    states, decisions = percent(row.state_agreement, 2), percent(row.task_agreement)
    return f"{where}  {states:>9} {decisions:>10}  {percent(row.accuracy):>8} {format_quantity(row.power_w, 'W'):>9}"
