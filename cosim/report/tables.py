"""A comparison as text: what fits a terminal."""

from textwrap import wrap

from cosim.cells.blocks import OUTSIDE
from cosim.quantities import format_quantity
from cosim.study.agreement import ComparisonSummary


def format_comparison(summary: ComparisonSummary) -> list[str]:
    """The terminal table of `summarize_comparison`, under 80 columns."""
    accuracy, bounds, power = summary.accuracy, summary.accuracy_interval, summary.power_w
    balanced = summary.balanced_accuracy
    first = "" if balanced is None else f"  {'balanced':>8}"
    lines = [f"{'':12}{first}  {'accuracy':>8}  {'95 % interval':>16}  {'mean power':>10}"]
    for engine in accuracy:
        low, high = bounds[engine]
        watt = "-" if (mean := power[engine]) is None else format_quantity(mean, "W")
        first = "" if balanced is None else f"  {percent(balanced[engine]):>8}"
        right = f"{percent(accuracy[engine]):>8}  {percent(low):>7} {percent(high):>8}"
        lines.append(f"{engine:12}{first}  {right}  {watt:>10}")
    low, high = summary.task_agreement_interval
    diverged = summary.first_divergence
    states, answers = (
        ", ".join(f"{step} {count}" for step, count in sources.items())
        for sources in (summary.error_sources, summary.decision_sources)
    )
    counts = f"{summary.samples} simulated, {summary.failed} failed; {summary.transistors} transistors"
    equal = f"{percent(summary.state_agreement, 2)} of {summary.state_bits} states"
    decisions = f"{percent(summary.task_agreement)} [{percent(low)}, {percent(high)}]"
    rmse = f"RMSE {summary.readout_rmse_units:.3f} units"
    correlation = summary.readout_correlation
    readout = rmse if correlation is None else f"correlation {correlation:.4f}, {rmse}"
    lines += [
        "",
        f"samples           {counts}",
        f"state agreement   {equal}, software vs {summary.simulator}",
        f"                  {percent(summary.state_agreement_behavioral, 2)} behavioral vs {summary.simulator}",
        f"task agreement    {decisions}, software vs {summary.simulator}",
        f"first divergence  in {diverged.samples_diverged} of {summary.samples} samples"
        + (f", earliest in frame {diverged.earliest_frame}" if diverged.samples_diverged else ""),
        f"readout           {readout}",
        f"changed by        {states} (states)",
        f"                  {answers} (decisions)",
        f"                  dominant: {summary.dominant_error_source}",
    ]
    if summary.largest_margin_of_a_wrong_bit is not None:
        lines.append(f"wrong states      up to {summary.largest_margin_of_a_wrong_bit:.3f} units from a threshold")
    if summary.saturated_states:
        lines.append(f"saturated         {summary.saturated_states} states beyond their ladder; use more --headroom")
    return lines + format_outside()


def format_outside() -> list[str]:
    """What no figure of power holds, as the last lines of a table."""
    return wrap(f"{'not in power':18}{', '.join(OUTSIDE)}", 79, subsequent_indent=18 * " ")


def percent(value: float, digits: int = 1) -> str:
    """0.9512 -> '95.1 %'."""
    return f"{100 * value:.{digits}f} %"
