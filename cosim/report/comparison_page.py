"""The HTML report of a comparison: one self-contained page."""

from collections.abc import Mapping

from cosim.cells.blocks import OUTSIDE
from cosim.quantities import format_quantity
from cosim.report.html import Picture, escape, flat_rows, format_cards, format_figure, format_page, format_table
from cosim.report.tables import percent
from cosim.study.agreement import ComparisonSummary

_LEAST = 600  # pixels under which a picture's words cannot be read
_STEPS = {
    "rounding": "rounding of weights to the mirror grid",
    "statics": "statics: what calibration leaves of gains, thresholds and levels",
    "dynamics": "dynamics: settling, charge injection, glitches (simulator against behavioral)",
}


def format_report(
    title: str,
    summary: ComparisonSummary,
    design: Mapping[str, object],
    settings: Mapping[str, object],
    pictures: Mapping[str, bytes],
) -> str:
    """The page. summary: of the comparison; design: of the compiled network; pictures: caption -> PNG bytes."""
    figures = "".join(format_figure(Picture("png", png, caption, caption, _LEAST)) for caption, png in pictures.items())
    body = (
        f"<h1>{escape(title)}</h1>"
        f'<p class="lead">{summary.samples} test samples, each simulated by {escape(summary.simulator)} on '
        f"{summary.transistors} transistors of {escape(design['technology'])}; {summary.failed} simulations "
        "failed.</p>"
        f"{format_cards(_cards(summary))}"
        f"<h2>Three engines, the same inputs</h2>{_engines(summary)}"
        f"<h2>Where states and decisions change</h2><p>Dominant: <b>{escape(summary.dominant_error_source)}</b>.</p>"
        + format_table(
            ("step of realism", "states", "decisions"),
            [(text, summary.error_sources[step], summary.decision_sources[step]) for step, text in _STEPS.items()],
            (1, 2),
        )
        + f"<h2>Figures</h2>{figures}"
        f"<h2>Design</h2>{format_table(('quantity', 'value'), list(flat_rows(design)))}"
        f"<h2>Settings</h2>{format_table(('setting', 'value'), list(flat_rows(settings)))}"
    )
    return format_page(title, body)


def _cards(summary: ComparisonSummary) -> list[tuple[str, str]]:
    low, high = summary.task_agreement_interval
    balanced, simulator = summary.balanced_accuracy, summary.simulator
    return [
        *([] if balanced is None else [(percent(balanced[simulator]), "balanced accuracy of the transistors")]),
        (percent(summary.accuracy[simulator]), "accuracy of the transistors"),
        (percent(summary.state_agreement, 2), f"of {summary.state_bits} states equal the software's"),
        (percent(summary.task_agreement), f"same decision [{percent(low)}, {percent(high)}]"),
        (format_quantity(summary.power_w[simulator] or 0.0, "W"), "mean supply power"),
    ]


def _engines(summary: ComparisonSummary) -> str:
    rows, balanced = [], summary.balanced_accuracy
    for engine in summary.accuracy:
        low, high = summary.accuracy_interval[engine]
        power = summary.power_w[engine]
        watt = "" if power is None else format_quantity(power, "W")
        first = [] if balanced is None else [percent(balanced[engine])]
        rows.append((engine, *first, percent(summary.accuracy[engine]), f"{percent(low)} to {percent(high)}", watt))
    head = ["engine", *([] if balanced is None else ["balanced"]), "accuracy", "95 % interval", "power"]
    notes = f"Intervals: Clopper-Pearson at 95 %. Not in power: {escape(', '.join(OUTSIDE))}."
    return f"{format_table(head, rows, range(1, len(head)))}<p>{notes}</p>"
