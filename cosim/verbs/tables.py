"""Summaries as text: what fits a terminal."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

from cosim.base.quantities import format_quantity
from cosim.results.metrics import METRICS, percent, within
from cosim.verbs.characterize.ladder import LadderSummary
from cosim.verbs.compare.noise_table import format_chip_noise, format_gradient
from cosim.verbs.montecarlo.advice import UNRESET, advise
from cosim.verbs.montecarlo.chips import (
    LEAST_PAIRED,
    ChipCount,
    ChipSummary,
    Contribution,
    Pair,
    SpecYield,
)
from cosim.verbs.trust import format_trust

CELLS = 4  # that are named, where there are more
SHOWN = ("5", "50", "95")
FAITHFUL = 0.9  # of the decisions: below it the nominal circuit is not the trained network


def format_ladder(summary: LadderSummary) -> list[str]:
    """Return the figures of `summarize_ladder` as lines under 80 columns."""
    split = [f"{block} {format_quantity(watt, 'W')}" for block, watt in summary.power_split_w.items()]
    first = summary.first_wrong
    lines = [
        f"steps checked     {summary.steps_checked}, of random sequences",
        f"wrong levels      {summary.wrong_levels}; updates that went wrong {summary.wrong_updates}",
        f"retention         {summary.retention_steps} steps held, {summary.retention_wrong} wrong",
        f"staircase         wrong steps: {summary.staircase_wrong}, as drawn {summary.staircase_wrong_uncalibrated}",
        f"update            done {format_quantity(summary.update_time_max_s, 's')} after the pulse began, or sooner",
        f"level error       at most {100 * summary.level_error_max:.2f} % of alpha per rung",
        f"power             {format_quantity(summary.power_w, 'W')} on average",
        f"                  {', '.join(split[:3])},",
        f"                  {', '.join(split[3:])}",
    ]
    if first is not None:
        lines.insert(
            2,
            f"                  first in sequence {first.sequence}, step {first.step}: level {first.found}, "
            f"not {first.expected}",
        )
    return [f"  {line}" for line in lines]


def format_outside(outside: Sequence[str]) -> list[str]:
    """Return the last lines of a power table: the parts of a chip that its figures do not contain."""
    return wrap(f"{'not in power':18}{', '.join(outside)}", 79, subsequent_indent=18 * " ")


def format_summary(summary: ChipSummary, network: str = "NETWORK") -> list[str]:
    """Return the terminal table of a run's summary, under 80 columns but for commands; network: its file, as these have
    it."""
    simulated = f"{summary.chips} chips, {summary.failed} failed; {summary.samples} samples each"
    lines = [
        f"{simulated}; engine {summary.engine}, variation {summary.variation.kind}",
        "",
        f"{'':15}  {'nominal':>9}  {'mean':>9}  {'sd':>7}  {'5 %':>9}  {'median':>9}  {'95 %':>9}",
    ]
    for metric, found in summary.figures.items():
        values = [summary.nominal[metric], found.mean, found.sd, *(found.quantiles[q] for q in SHOWN)]
        texts = [METRICS[metric].format(value, 1) for value in values]
        widths = (9, 9, 7, 9, 9, 9)
        cells = "  ".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))
        lines.append(f"{METRICS[metric].title:15}  {cells}")
    kept = summary.nominal.task_agreement
    if kept < FAITHFUL:
        lines += [
            "",
            f"nominal circuit   only {percent(kept)} of its decisions are the software's;",
            f"                  software accuracy {percent(summary.software_accuracy)}; cosim compare says why",
        ]
    lines += ["", *format_yield(summary.yield_), *_beside_yield(summary)]
    lines += format_unreset(summary)
    for k, (what, command) in enumerate(advise(summary, network)):
        lines += [f"{'' if k else 'what helps':18}{what}:", f"{'':20}{command}"]
    for reason, count in summary.reasons.items():
        lines.append(f"failed            {count}: {reason}")
    for metric, pair in (summary.paired or {}).items():
        correlation = (
            f"r {found}" if (found := format_correlation(pair)) else f"no correlation: {why_no_correlation(pair)}"
        )
        bias = f"behavioral - {summary.engine} {format_bias(metric, pair)}"
        lines.append(f"paired            {METRICS[metric].title}: {correlation}, {bias}")
    lines += [*format_gradient(summary.gradient), *format_chip_noise(summary.noise)]
    return [*lines, *format_trust(summary), *format_outside(summary.power_outside)]


def format_yield(found: SpecYield) -> list[str]:
    """Return lines with the yield and its interval, and without failed simulations where there are any."""
    lines = [
        f"yield             {percent(found.value)} {within(found.interval)}, {found.passed} of "
        f"{found.chips} chips with {' and '.join(found.spec)}",
        f"                  {100 * found.confidence:.3g} % interval, {found.method}",
    ]
    without = found.without_failed
    if without and without.chips != found.chips:
        of = f"of the {without.chips} that were simulated"
        lines.append(f"                  {percent(without.value)} {within(without.interval)} {of}")
    return lines


def _beside_yield(summary: ChipSummary) -> list[str]:
    """Return the line with the accuracy of nominal circuit and software: a bad network makes a limit easy to keep."""
    nominal, software = percent(summary.nominal.accuracy), percent(summary.software_accuracy)
    return [f"                  nominal circuit: accuracy {nominal}, software {software}"]


def format_unreset(summary: ChipCount) -> list[str]:
    """Return lines on chips with a cell that does not reset, and which cells; nothing without such chips."""
    found = summary.unreset
    if not found.chips:
        return []
    cells = [f"{cell} ({count})" for cell, count in found.cells.items()]
    more = f" and {len(cells) - CELLS} more" if len(cells) > CELLS else ""
    return [
        f"does not reset    {found.chips} chips, which do not count; {found.meet_spec} of them meet the spec",
        f"                  {', '.join(cells[:CELLS])}{more}",
        *wrap(UNRESET, 79, initial_indent=18 * " ", subsequent_indent=18 * " "),
    ]


def format_contributions(contributions: Mapping[str, Contribution], metric: str = "accuracy") -> list[str]:
    """Return lines with shares of the variance of one figure, by block and by kind of transistor."""
    lines = []
    for name, division in contributions[metric].divisions.items():
        lines += ["", f"share of the variance of {METRICS[metric].title} by {name}:"]
        if needed := division.chips_needed:
            lines.append(f"  too few chips: intervals are wider than 0 to 100 %; about --chips {needed} narrow them")
            continue
        for share in division.shares:
            bounds = within((share.low, share.high))
            lines.append(f"  {share.group:24} {share.transistors:5} transistors  {percent(share.value):>7} {bounds}")
        lines.append(f"  {'R2':24} {'':5}              {percent(division.r2):>7}")
    return lines


def format_bias(metric: str, pair: Pair) -> str:
    """Format behavioral minus the other engine over chips, with its interval."""
    mean, low, high = (METRICS[metric].format(value, 2) for value in (pair.bias, *pair.bias_interval))
    return f"{mean} [{low}, {high}]"


def why_no_correlation(pair: Pair) -> str:
    """Return why `format_correlation` has nothing to say."""
    return f"only {pair.chips} chips" if pair.chips < LEAST_PAIRED else "one engine sees no spread"


def format_correlation(pair: Pair) -> str:
    """Return the correlation of both engines over chips with its interval; empty where there is none, see `Pair`."""
    if pair.correlation is None or (bounds := pair.correlation_interval) is None:
        return ""
    return f"{pair.correlation:.3f} [{bounds.low:.3f}, {bounds.high:.3f}]"
