"""What a comparison leaves in its folder: comparison.json, figures, and report.html, one self-contained page."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.cells.blocks import OUTSIDE
from cosim.design import Design
from cosim.engines.engine import Description, Run
from cosim.errors import SimulationError
from cosim.outputs import summarize, write_results, write_texts
from cosim.quantities import format_quantity
from cosim.report.automaton_sheet import format_automaton
from cosim.report.figures import Figure, draw_confusion, figure_bytes, save_figure
from cosim.report.html import Picture, escape, flat_rows, format_cards, format_figure, format_page, format_table
from cosim.report.samples import draw_sample
from cosim.report.tables import percent, within
from cosim.report.trust import format_elsewhere, say_audit, say_undecided
from cosim.simulation.simulated import engine_named
from cosim.study.agreement import Comparison, ComparisonSummary, summarize_comparison
from cosim.tasks.clipping import Clipping, find_clipping
from cosim.tasks.testset import TestSet
from cosim.technology.conditions import format_conditions
from cosim.version import __version__

CAPTIONS = {
    "waveforms": "One inference on transistors: inputs, one unit's candidate and state, readout, supply power.",
    "confusion": "Decisions of the three engines on the same samples; accuracy with its 95 % interval.",
}
_LEAST = 600  # pixels under which a picture's words cannot be read
_STEPS = {
    "rounding": "rounding of weights to the mirror grid",
    "statics": "statics: what calibration leaves of gains, thresholds and levels",
    "dynamics": "dynamics: settling, charge injection, glitches (simulator against behavioral)",
}


@dataclass(frozen=True)
class Reported(ComparisonSummary):
    """What comparison.json holds. bias_scale, input_scale: bias currents and inputs over the nominal ones."""

    bias_scale: float
    input_scale: float
    clipped: Clipping | None
    made_with: Mapping[str, object]


def write_comparison(folder: Path, design: Design, test_set: TestSet, comparison: Comparison, run: Run) -> Reported:
    """Write all of it; returns the content of comparison.json. Waveforms that cannot be had are left out."""
    there = run.standing(design)
    made_with = engine_named(run.engine).describe(there.technology)
    found = Reported(
        **vars(summarize_comparison(comparison)),
        bias_scale=there.bias_scale,
        input_scale=there.input_scale,
        clipped=find_clipping(design.network.encoding, test_set),
        made_with=made_with.as_json(comparison.simulator),
    )
    write_results(folder, {"design.json": summarize(design, there), "comparison.json": found})
    settings = _settings(design, found, made_with, comparison, run)
    labels = list(design.network.labels) or [str(k) for k in range(design.network.readout.width)]
    figures = {"confusion": draw_confusion(comparison, labels)}
    try:
        figures = {"waveforms": _draw_first(design, test_set, comparison, run), **figures}
    except SimulationError as error:
        settings["waveforms"] = f"left out: {error}"
        (folder / "waveforms.png").unlink(missing_ok=True)  # of an earlier run
    for name, figure in figures.items():
        save_figure(figure, folder / f"{name}.png")
    pictures = {CAPTIONS[name]: figure_bytes(figure, "png") for name, figure in figures.items()}
    automaton = format_automaton(design.network, found.transitions)
    sections = {"The automaton": automaton, "Figures": format_pictures(pictures)}
    title = f"{design.network.task or 'network'}: from weights to transistors"
    write_texts(folder, {"report.html": format_report(title, found, summarize(design, there), settings, sections)})
    return found


def _settings(
    design: Design, found: Reported, made_with: Description, comparison: Comparison, run: Run
) -> dict[str, str]:
    timing = run.timing
    in_effect = ", ".join(f"{name} {value}" for name, value in made_with.options.items())
    return {
        "cosim": __version__,
        "calibration measured with": design.calibration.simulator,
        "samples, by number in the test set": ", ".join(map(str, comparison.indices)),
        "inputs": "all in the range of the network's encoding" if found.clipped is None else str(found.clipped),
        "frame": f"{timing.t_step:g} s, input edges {timing.edge:g}, clock edges {timing.clock_edge:g} of it",
        "conditions": format_conditions(run.standing(design).technology),
        "bias currents and inputs": f"{found.bias_scale:.4g} and {found.input_scale:.4g} of the nominal ones",
        "simulator": f"{found.simulator} {made_with.version}, {in_effect}",
        **({"simulated elsewhere": "; ".join(elsewhere)} if (elsewhere := format_elsewhere(found.elsewhere)) else {}),
        **({"undecided": "; ".join(near)} if (near := say_undecided(found.undecided)) else {}),
        **({"audit": "; ".join(audit)} if (audit := say_audit(found.audit)) else {}),
    }


def _draw_first(design: Design, test_set: TestSet, comparison: Comparison, run: Run) -> Figure:
    """Waveforms of the first compared sample; raises SimulationError when it fails with more probes, or has none."""
    position = int(np.flatnonzero(test_set.indices == comparison.indices[0])[0])
    return draw_sample(design, test_set, position, comparison.engines[comparison.simulator].states[0], run)


def format_report(
    title: str,
    summary: ComparisonSummary,
    design: Mapping[str, object],
    settings: Mapping[str, object],
    sections: Mapping[str, str],
) -> str:
    """The page. summary: of the comparison; design: of the compiled network; sections: heading -> HTML."""
    shown = "".join(f"<h2>{escape(name)}</h2>{content}" for name, content in sections.items() if content)
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
        + f"{shown}<h2>Design</h2>{format_table(('quantity', 'value'), list(flat_rows(design)))}"
        f"<h2>Settings</h2>{format_table(('setting', 'value'), list(flat_rows(settings)))}"
    )
    return format_page(title, body)


def format_pictures(pictures: Mapping[str, bytes]) -> str:
    """caption -> PNG bytes."""
    return "".join(format_figure(Picture("png", png, caption, caption, _LEAST)) for caption, png in pictures.items())


def _cards(summary: ComparisonSummary) -> list[tuple[str, str]]:
    balanced, simulator = summary.balanced_accuracy, summary.simulator
    return [
        *([] if balanced is None else [(percent(balanced[simulator]), "balanced accuracy of the transistors")]),
        (percent(summary.accuracy[simulator]), "accuracy of the transistors"),
        (percent(summary.state_agreement, 2), f"of {summary.state_bits} states equal the software's"),
        (percent(summary.task_agreement), f"same decision {within(summary.task_agreement_interval)}"),
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
