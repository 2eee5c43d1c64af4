"""A run of chips as text: what fits a terminal."""

from collections.abc import Mapping

from cosim.quantities import format_quantity
from cosim.report.tables import format_outside, percent
from cosim.study.chips import ChipCount, ChipSummary, Contribution, Pair, SpecYield, TrimSummary

NAMED = 4  # cells on a line
SHOWN = ("5", "50", "95")
FAITHFUL = 0.9  # of the decisions: below it the nominal circuit is not the trained network


def format_summary(summary: ChipSummary) -> list[str]:
    """The terminal table of a run's summary, under 80 columns."""
    simulated = f"{summary.chips} chips, {summary.failed} failed; {summary.samples} samples each"
    lines = [
        f"{simulated}; engine {summary.engine}, variation {summary.variation.kind}",
        "",
        f"{'':15}  {'nominal':>9}  {'mean':>9}  {'sd':>7}  {'5 %':>9}  {'median':>9}  {'95 %':>9}",
    ]
    for metric, found in summary.figures.items():
        values = [summary.nominal[metric], found.mean, found.sd, *(found.quantiles[q] for q in SHOWN)]
        texts = [_value(metric, value) for value in values]
        widths = (9, 9, 7, 9, 9, 9)
        cells = "  ".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))
        lines.append(f"{metric.replace('_', ' '):15}  {cells}")
    kept = summary.nominal.task_agreement
    if kept < FAITHFUL:
        lines += [
            "",
            f"nominal circuit   only {percent(kept)} of its decisions are the software's;",
            f"                  software accuracy {percent(summary.software_accuracy)}; cosim compare says why",
        ]
    lines += ["", *format_yield(summary.yield_)]
    lines += format_unreset(summary)
    for reason, count in summary.reasons.items():
        lines.append(f"failed            {count}: {reason}")
    lines += [
        f"paired            {metric.replace('_', ' ')}: {_pair(metric, pair)}"
        for metric, pair in (summary.paired or {}).items()
    ]
    return lines + format_outside()


def format_yield(found: SpecYield) -> list[str]:
    """The yield with its interval, and without failed simulations where there are any."""
    low, high = found.interval
    lines = [
        f"yield             {percent(found.value)} [{percent(low)}, {percent(high)}], {found.passed} of "
        f"{found.chips} chips with {' and '.join(found.spec)}",
        f"                  {100 * found.confidence:.3g} % interval, {found.method}",
    ]
    without = found.without_failed
    if without and without.chips != found.chips:
        low, high = without.interval
        lines.append(
            f"                  {percent(without.value)} [{percent(low)}, {percent(high)}] of the "
            f"{without.chips} that were simulated"
        )
    return lines


def format_unreset(summary: ChipCount) -> list[str]:
    """Chips with a cell that does not reset, and which cells; nothing without such chips."""
    found = summary.unreset
    if not found.chips:
        return []
    cells = [f"{cell} ({count})" for cell, count in found.cells.items()]
    more = f" and {len(cells) - NAMED} more" if len(cells) > NAMED else ""
    return [
        f"does not reset    {found.chips} chips, which do not count; {found.meet_spec} of them meet the spec",
        f"                  {', '.join(cells[:NAMED])}{more}",
    ]


def format_contributions(contributions: Mapping[str, Contribution], metric: str = "accuracy") -> list[str]:
    """Shares of the variance of one figure, by block and by kind of transistor."""
    lines = []
    for name, division in contributions[metric].divisions.items():
        lines += ["", f"share of the variance of {metric.replace('_', ' ')} by {name}:"]
        if needed := division.chips_needed:
            lines.append(f"  too few chips: intervals are wider than 0 to 100 %; about --chips {needed} narrow them")
            continue
        for share in division.shares:
            bounds = f"[{percent(share.low)}, {percent(share.high)}]"
            lines.append(f"  {share.group:24} {share.transistors:5} transistors  {percent(share.value):>7} {bounds}")
        lines.append(f"  {'R2':24} {'':5}              {percent(division.r2):>7}")
    return lines


def format_trim(summary: TrimSummary) -> list[str]:
    """Yield before and after trimming, by the number of bits."""
    spans = ", ".join(f"{name} +-{percent(value)}" for name, value in summary.ranges.items())
    lines = [
        f"{summary.chips} chips, {summary.failed} failed; {summary.samples} samples each; engine "
        f"{summary.engine}; converters: {spans}",
        f"yield: chips with {' and '.join(summary.spec)}, 95 % interval; p: McNemar, exact",
        "",
        f"{'bits':>6}  {'yield':>7}  {'95 % interval':>17}  {'won':>4}  {'lost':>4}  {'p':>8}  {'accuracy':>8}  "
        f"{'states':>8}",
    ]
    for row in summary.rows:
        low, high = row.yield_.interval
        figures = "  ".join(
            f"{percent(found.mean) if found else '-':>8}" for found in (row.accuracy, row.state_agreement)
        )
        bounds = f"[{percent(low)}, {percent(high)}]"
        lines.append(
            f"{'none' if row.bits is None else row.bits:>6}  {percent(row.yield_.value):>7}  {bounds:>17}  "
            f"{row.won:>4}  {row.lost:>4}  {row.p:>8.2g}  {figures}"
        )
    return lines


def _pair(metric: str, pair: Pair) -> str:
    low, high = (_value(metric, value, 2) for value in pair.bias_interval)
    correlation = "no correlation: one engine sees no spread"
    if pair.correlation is not None and (bounds := pair.correlation_interval):
        correlation = f"r {pair.correlation:.3f} [{bounds.low:.3f}, {bounds.high:.3f}]"
    return f"{correlation}, behavioral - ngspice {_value(metric, pair.bias, 2)} [{low}, {high}]"


def _value(metric: str, value: float, digits: int = 1) -> str:
    return format_quantity(value, "W") if metric == "power" else percent(value, digits)
