"""A comparison on a test set: its run, the files of its folder (comparison.json and figures), and its page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cosim.base.errors import SimulationError
from cosim.base.quantities import format_quantity
from cosim.base.store import write_results, write_texts
from cosim.base.write import write_atomically
from cosim.circuit.elements import Capacitor
from cosim.compiler.design import Design
from cosim.engines.engine import Description, Progress, Run, part_of
from cosim.engines.simulation.audit import AuditableRun, audit_samples, find_undecided
from cosim.engines.simulation.simulated import engine_named, simulate_samples
from cosim.engines.table import BATCH, engine_entry
from cosim.results.figures import Figure, picture_of
from cosim.results.html import Picture
from cosim.results.kept_page import write_page
from cosim.results.metrics import percent, within
from cosim.results.page import Blocks, Facts, Page, Section, Table
from cosim.tasks.testset import Clipping, TestSet, find_clipping
from cosim.verbs.automaton.section import format_automaton
from cosim.verbs.compare.agreement import Comparison, ComparisonSummary, compare_engines, summarize_comparison
from cosim.verbs.compare.figures import draw_confusion, draw_values
from cosim.verbs.compare.noise import compare_noisy, noise_section, study_noise
from cosim.verbs.compare.value_errors import errors_section
from cosim.verbs.compile.cross_probing import cross_probe
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.compile.page import format_inside
from cosim.verbs.provenance import circuit_section, origins, subject_of
from cosim.verbs.simulate.samples import (
    WAVES,
    check_any,
    clear_failures,
    draw_sample,
    simulate_test_set,
    write_simulation,
)
from cosim.verbs.simulate.waveforms import liveliest_cell
from cosim.verbs.trust import trust_rows
from cosim.verbs.words import say_answer, say_conditions, say_target

LEAST = 672  # pixels, of seven inches, under which a picture's words cannot be read
_STEPS = {
    "rounding": "rounding of weights to the mirror grid",
    "statics": "statics: what calibration leaves of gains, thresholds and levels",
    "dynamics": "dynamics: settling, charge injection, glitches (simulator against behavioral)",
}


@dataclass(frozen=True)
class ComparisonContent(ComparisonSummary):
    """The content of comparison.json.

    bias_scale, input_scale: bias currents and input currents over the nominal ones; clipped: inputs beyond the trained
    range; made_with: version and options of the simulator.
    """

    bias_scale: float
    input_scale: float
    clipped: Clipping | None
    made_with: Mapping[str, object]


@dataclass(frozen=True)
class ComparisonSubject:
    """A comparison with its design, its samples and the settings of its run.

    watched: names of the signals whose waveforms are drawn; empty for the cell whose state changes most often.
    """

    design: Design
    test_set: TestSet
    comparison: Comparison
    run: Run
    watched: tuple[str, ...] = ()

    @property
    def labels(self) -> list[str]:
        """Return the names of the network's classes, or the numbers of its outputs if classes have no names."""
        return list(self.design.network.labels) or [str(k) for k in range(self.design.network.readout.width)]


def report_comparison(compared: ComparisonSubject) -> ComparisonContent:
    """Summarize a comparison as the content of comparison.json."""
    design, there = compared.design, compared.run.standing(compared.design)
    return ComparisonContent(
        **vars(summarize_comparison(compared.comparison)),
        bias_scale=there.bias_scale,
        input_scale=there.input_scale,
        clipped=find_clipping(design.network.encoding, compared.test_set),
        made_with=_describe(compared).as_json(compared.comparison.simulator),
    )


def write_comparison(compared: ComparisonSubject) -> ComparisonContent:
    """Write the results, figures and page of a comparison, and return the content of comparison.json.
    Waveforms whose simulation fails are left out."""
    design, comparison, run = compared.design, compared.comparison, compared.run
    folder, there, found = run.place, run.standing(design), report_comparison(compared)
    write_results(folder, {"design.json": summarize(design, there), "comparison.json": found})
    name, figure, caption = (
        ("confusion", draw_confusion(comparison, compared.labels), DECISIONS)
        if found.errors is None
        else ("values", draw_values(comparison), ANSWERS)
    )
    decisions = _picture(figure, caption)
    write_atomically(folder / f"{name}.png", decisions.content)
    try:
        waveforms = _picture(_draw_first(compared), f"{say_sample(compared)} {INFERENCE}")
        write_atomically(folder / "waveforms.png", waveforms.content)
    except SimulationError as error:
        waveforms = f"Waveforms were left out: {error}"
        (folder / "waveforms.png").unlink(missing_ok=True)  # of an earlier run
    write_page(folder, comparison_page(compared, found, (waveforms, decisions)))
    return found


INFERENCE = (
    f"{WAVES} Spikes at the edges of the clock are what its switches and the cells that flip couple into the lines."
)
DECISIONS = (
    "What the software decides, and what the other two change of it, in their colours; accuracy with its 95 % interval."
)
ANSWERS = "Answers of the three engines over their targets, on the same samples; grey: what counts as right."


def say_sample(compared: ComparisonSubject) -> str:
    """Return a sentence about the first sample: its number, its target, and the answer of each engine."""
    network, comparison = compared.design.network, compared.comparison
    answered = ", ".join(
        f"{say_answer(network, one.decisions[0])} by {name}" for name, one in comparison.engines.items()
    )
    return f"Test sample {comparison.indices[0]}, {say_target(network, comparison.y[0])}; decided: {answered}."


def _draw_first(compared: ComparisonSubject) -> Figure:
    """Draw waveforms of the first sample. Raises SimulationError when the run fails, or its engine records none."""
    comparison = compared.comparison
    position = int(np.flatnonzero(compared.test_set.indices == comparison.indices[0])[0])
    states = comparison.engines[comparison.simulator].states[0]
    names = compared.watched or (liveliest_cell(comparison.cells, states),)
    return draw_sample(compared.design, compared.test_set, position, names, compared.run)[0]


def _picture(figure: Figure, caption: str) -> Picture:
    return picture_of(figure, caption, caption, LEAST, "png")


def comparison_page(compared: ComparisonSubject, found: ComparisonContent, pictures: Blocks) -> Page:
    """Return the page of a comparison.

    found: content of comparison.json; pictures: waveforms of the first sample, and decisions or answers of all.
    """
    design, there = compared.design, compared.run.standing(compared.design)
    subject, technology = subject_of(design), there.technology
    answers = "decisions" if found.errors is None else "answers"
    verdict = f"{percent(found.task_agreement)} of {found.samples} {answers} as software"
    trust = trust_rows(found.elsewhere, found.undecided, found.audit)
    changed = say_source(found.dominant_error_source, compared.run.timing.t_step, design.calibration.units)
    page = Page(
        verb="compare",
        subject=subject,
        title=f"{subject.name} on {technology.name}: {verdict} {within(found.task_agreement_interval)}",
        lead=f"{found.samples} test samples, each by software, by the behavioral equations and by {found.simulator} on "
        f"{found.transistors} transistors of {technology.name} ({say_conditions(technology)})"
        f"{' with the wires of their layout' if wire_facts(design) else ''}; "
        f"{found.failed} simulations failed.",
        cards=comparison_cards(found),
        notes=() if found.clipped is None else (f"{found.clipped}.",),
        sections=(
            Section("Three engines, the same inputs", engine_blocks(found)),
            Section("Where states and decisions change", (changed, _sources(found), *_remarks(found))),
            Section("Errors", () if found.errors is None else errors_section(found.errors)),
            Section("Noise", noise_section(found.noise)),
            Section("The automaton", format_automaton(design.network, found.transitions)),
            Section("One inference, and all decisions", pictures, sheet=True),
            *(Section(name, blocks, detail=True) for name, blocks in format_inside(design).items()),
            Section("How far the engine can be trusted", (Facts(trust),) if trust else ()),
            circuit_section(design),
            Section("How it was run", (Facts(tuple(_run_facts(compared, found))),), detail=True),
        ),
        provenance=origins(design, {found.simulator: _describe(compared).version}),
    )
    return cross_probe(page, design)


def _describe(compared: ComparisonSubject) -> Description:
    return engine_named(compared.run.engine).describe(compared.run.standing(compared.design).technology)


def _run_facts(compared: ComparisonSubject, found: ComparisonContent) -> list[tuple[str, str]]:
    timing, indices = compared.run.timing, compared.comparison.indices
    options = ", ".join(f"{name} {value}" for name, value in _describe(compared).options.items())
    return [
        ("samples, by number in the test set", ", ".join(map(str, indices))),
        ("frame", format_quantity(timing.t_step, "s", 4)),
        ("edges of inputs and of clocks", f"{percent(timing.edge)} and {percent(timing.clock_edge)} of a frame"),
        ("bias currents over nominal ones", f"{found.bias_scale:.4g}"),
        ("inputs over nominal ones", f"{found.input_scale:.4g}"),
        *((("options in effect", options),) if options else ()),
        *wire_facts(compared.design),
    ]


def wire_facts(design: Design) -> tuple[tuple[str, str], ...]:
    """Return number and sum of the wires' capacitors, which --extracted adds, as a row; nothing without them."""
    found = [one.value for one in design.flat.elements if isinstance(one, Capacitor) and one.part is None]
    return (("wires", f"{len(found)} capacitors of the layout, {format_quantity(sum(found), 'F')}"),) if found else ()


def comparison_cards(summary: ComparisonSummary) -> tuple[tuple[str, str], ...]:
    """Return the headline figures of a comparison as pairs (value, text)."""
    balanced, simulator = summary.balanced_accuracy, summary.simulator
    accuracy, answers = ("accuracy", "decisions") if summary.errors is None else ("right answers", "answers")
    right = f"{accuracy} of the transistors {within(summary.accuracy_interval[simulator])}"
    states = f"of {summary.state_bits} states equal the software's"
    if tolerance := summary.analog_tolerance:
        states += f"; analog states are equal within {percent(tolerance, 0)} of full scale"
    return (
        (percent(summary.task_agreement), f"{answers} as software {within(summary.task_agreement_interval)}"),
        *(() if balanced is None else ((percent(balanced[simulator]), "balanced accuracy of the transistors"),)),
        (percent(summary.accuracy[simulator]), f"{right}; software {percent(summary.accuracy['software'])}"),
        (percent(summary.state_agreement, 2), states),
        (format_quantity(summary.power_w[simulator] or 0.0, "W"), "mean supply power"),
    )


def engine_blocks(summary: ComparisonSummary) -> Blocks:
    """Return the table of a comparison with accuracy and power of each engine, and notes below it."""
    rows, balanced = [], summary.balanced_accuracy
    for engine in summary.accuracy:
        power = summary.power_w[engine]
        watt = "" if power is None else format_quantity(power, "W")
        first = [] if balanced is None else [percent(balanced[engine])]
        bounds = within(summary.accuracy_interval[engine])
        rows.append((engine, *first, percent(summary.accuracy[engine]), bounds, watt))
    right = "accuracy" if summary.errors is None else "right"
    head = ("engine", *(() if balanced is None else ("balanced",)), right, "95 % interval", "power")
    correlation = summary.readout_correlation
    beside = "" if correlation is None else f" and a correlation of {correlation:.4f}"
    diverged = summary.first_divergence
    earliest = f", in frame {diverged.earliest_frame} at the earliest" if diverged.samples_diverged else ""
    return (
        Table(head, tuple(rows), tuple(range(1, len(head)))),
        f"Intervals: Clopper-Pearson at 95 %. Not in power: {', '.join(summary.power_outside)}.",
        f"The readout has an RMSE of {summary.readout_rmse_units:.3f} units{beside} against software. A state differs "
        f"in {diverged.samples_diverged} of {summary.samples} samples{earliest}.",
    )


def _remarks(summary: ComparisonSummary) -> Iterator[str]:
    """Yield sentences on states that differ between simulator and equations, and on how far wrong states are off."""
    same = percent(summary.state_agreement_behavioral, 2)
    yield f"Of the states of the behavioral equations {same} are those of {summary.simulator}."
    if summary.largest_margin_of_a_wrong_bit is not None:
        yield f"A wrong state is up to {summary.largest_margin_of_a_wrong_bit:.3f} units from its threshold."
    if summary.saturated_states:
        yield f"{summary.saturated_states} states are beyond their ladder or counter; use more --headroom."


def say_source(step: str, t_step: float, units: int) -> str:
    """Return a sentence with the step of realism that changes most states or decisions, and what helps against it.

    step: key of `_STEPS`, else nothing differs; t_step: duration of a frame, s; units: unit devices per weight 1.0.
    """
    if step not in _STEPS:
        return "No state and no decision differs."
    helps = {
        "rounding": "training on the grid of the mirrors, --grid" if units >= 16 else "--units 16",
        "statics": "training with a larger --margin",
        "dynamics": f"longer frames (--t-step {2e3 * t_step:g}m)",
    }
    return f"Most of what differs comes from: {step}. What helps: {helps[step]}."


def _sources(summary: ComparisonSummary) -> Table:
    rows = tuple(
        (text, str(summary.error_sources[step]), str(summary.decision_sources[step])) for step, text in _STEPS.items()
    )
    return Table(("step of realism", "states", "decisions"), rows, (1, 2))


def run_comparison(
    design: Design, test_set: TestSet, run: Run, progress: Progress, *, audit: int = 0, watched: Sequence[str] = ()
) -> ComparisonContent:
    """Simulate and compare the samples, write comparison.json, figures and page, and return comparison.json's content.

    run: with noise, the samples run both without it and with it, in the behavioral model, and on transistors if the
    engine is the batched one; audit: number of samples that run in ngspice as well; watched: names of the signals whose
    waveforms are drawn, empty for the cell whose state changes most often. Raises SimulationError when every simulation
    failed; results of an earlier run then remain.
    """
    quiet = replace(run, noise=None)
    write_texts(run.place, {})
    clear_failures(run.place)
    samples, audited = len(test_set.y), min(audit, len(test_set.y))
    outcomes = simulate_test_set(design, test_set, quiet, part_of(progress, 0, samples + audited))
    check_any(outcomes, run.place)
    write_simulation(run.place, design, test_set, outcomes, quiet)
    comparison = compare_engines(design, test_set, outcomes, quiet)
    assert comparison is not None
    if run.noise is not None:
        noise = study_noise(design, test_set, run.noise, quiet)
        if engine_entry(run.engine).name == BATCH:
            noisy = simulate_samples(design, test_set, run, progress)
            noise = replace(noise, transistors=compare_noisy(design, test_set, (outcomes, noisy), quiet))
        comparison = replace(comparison, noise=noise)
    ran = AuditableRun(design, test_set, outcomes, quiet)
    if engine_entry(run.engine).quick:
        comparison = replace(comparison, undecided=find_undecided(ran, lambda done, total: None))
    if audit:
        found = audit_samples(ran, audit, part_of(progress, samples, samples + audited))
        comparison = replace(comparison, audit=found)
    return write_comparison(ComparisonSubject(design, test_set, comparison, quiet, tuple(watched)))
