"""Partitions of a backbone as text: what runs where, and how the circuits did."""

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from cosim.base.quantities import format_quantity
from cosim.verbs.partitions.study import DeployedSummary, PartitionSummary
from cosim.verbs.tables import format_outside, percent, within
from cosim.verbs.trust import format_audit

if TYPE_CHECKING:
    from cosim.papers.cut import BackbonePart


def format_parts(parts: "list[BackbonePart]") -> list[str]:
    """Return a row for each part of a backbone, under 80 columns."""
    lines = [f"{'part':22}{'runs in':10}{'learned':>8}  why there"]
    for one in parts:
        learned = str(one.parameters) if one.parameters else "-"
        first, *rest = wrap(one.reason, 37)
        lines += [f"{one.part:22}{one.where:10}{learned:>8}  {first}", *(f"{'':42}{line}" for line in rest)]
    return lines


def format_deployed(summary: DeployedSummary) -> list[str]:
    """Return the terminal table of `summarize_deployed`, under 80 columns."""
    simulator = summary.simulator
    lines = [f"{'':12}{'accuracy':>9}  {'95 % interval':>18}  {'states':>9} {'decisions':>10}  {'power':>8}"]
    for name, value in summary.accuracy.items():
        row = f"{name:12}{percent(value):>9}  {within(summary.accuracy_interval[name]):>18}"
        if name in summary.wrong_states:
            states = 1.0 - summary.wrong_states[name] / summary.states
            row += f"  {percent(states, 3):>9} {percent(summary.agreement[name]):>10}"
        lines.append(row + (f"  {format_quantity(summary.power_w[name], 'W'):>8}" if name in summary.power_w else ""))
    whole, bounds = summary.agreement["end_to_end"], summary.agreement_interval["end_to_end"]
    lines += [
        "",
        f"samples           {summary.samples} simulated, {summary.failed} failed",
        "states, decisions equal: converters with software, the others with converters",
        f"end to end        {percent(whole)} {within(bounds)} of the decisions, software vs {simulator}",
        f"                  scores at most {summary.largest_score_error:.3g} apart",
    ]
    for one in summary.partitions:
        lines += ["", *_format_partition(one, simulator)]
    lines += _format_converters(summary)
    return [*lines, *format_outside()]


def _format_partition(one: PartitionSummary, simulator: str) -> Iterator[str]:
    codes = f"{one.bits} bits, {one.codes} codes"
    low, high = min(one.ranges), max(one.ranges)
    power = format_quantity(one.power_w[simulator], "W")
    yield f"{one.name:18}{one.cells} cells, {one.transistors} transistors, {power}"
    yield f"  converters      {one.cells} of {codes}, range {low:.3g} to {high:.3g} thresholds"
    yield f"                  {percent(one.out_of_range, 2)} of the candidates beyond it"
    counts = ", ".join(f"{name} {count}" for name, count in one.wrong.items())
    yield f"  wrong states    {counts}, of {one.states}"
    yield f"                  {one.wrong_here} on what the circuit itself got"
    if one.least_margin_a is not None:
        yield f"  nearest         {format_quantity(one.least_margin_a, 'A')} from a threshold"
    if (near := one.undecided) is not None:
        yield f"  undecided       {near.near} of {near.decisions} under {format_quantity(near.limit, 'A')}"
    yield from (f"  {line}" for line in format_audit(one.audit))


def _format_converters(summary: DeployedSummary) -> list[str]:
    rate = sum(one.conversions_per_s for one in summary.partitions)
    even = sum(one.power_w[summary.simulator] for one in summary.partitions) / rate
    if summary.conversion_j is None:
        cost = f"not counted; at {format_quantity(even, 'J')} each they take what the circuits take (--conversion)"
    else:
        each = format_quantity(summary.conversion_j, "J")
        cost = f"{format_quantity(summary.conversion_j * rate, 'W')} at {each} each, as --conversion says"
    return ["", *wrap(f"{'conversions':18}{rate:.4g} per second, {cost}", 79, subsequent_indent=18 * " ")]
