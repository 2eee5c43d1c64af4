"""A comparison over process, supply and temperature: its run, the files of its folder, and its page."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cosim.base.errors import SimulationError
from cosim.base.quantities import format_quantity
from cosim.base.seal import seal_npz
from cosim.base.store import write_results, write_texts
from cosim.base.write import write_atomically
from cosim.cells.blocks import outside_of
from cosim.circuit.deck import device_sizes
from cosim.compiler.design import Design
from cosim.engines.engine import Outcome, Progress, Run, part_of
from cosim.engines.simulation.audit import AuditableRun, audit_conditions
from cosim.engines.simulation.simulated import engine_named
from cosim.engines.table import simulator_beside
from cosim.results.figures import picture_of, save_figure
from cosim.results.html import Picture
from cosim.results.intervals import IntervalEnds
from cosim.results.kept_page import write_page
from cosim.results.metrics import percent, within
from cosim.results.page import Page, Section, Table
from cosim.tasks.testset import TestSet, find_clipping
from cosim.technology.conditions import format_conditions
from cosim.technology.devices import device_cards
from cosim.verbs.bias import WORDS, bias_words, biased
from cosim.verbs.compare.agreement import ComparisonSummary, compare_engines, summarize_comparison
from cosim.verbs.compare.figures import draw_pvt
from cosim.verbs.compare.pvt import Conditions, PvtCondition, Sweep, pvt_grid, summarize_pvt
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.provenance import circuit_section, origins, subject_of
from cosim.verbs.simulate.sample_table import tabulate_samples
from cosim.verbs.simulate.samples import clear_failures, simulate_test_set
from cosim.verbs.trust import say_audit

CONDITIONS = 6  # that are named, where there are more
_LEAST = 700  # pixels under which the picture's words cannot be read


def pvt_page(design: Design, sweep: Sweep, made_with: dict[str, str]) -> Page:
    """Return the page of a sweep over conditions. made_with: name of the simulator -> its version."""
    subject, rows = subject_of(design), sweep.conditions
    one = (sweep.worst or rows)[0]
    bounds = within(one.task_agreement_interval or IntervalEnds(0.0, 1.0))
    count, simulator = len(rows), ", ".join(made_with)
    powers = [row.power_w for row in rows if row.power_w is not None]
    span = " to ".join(format_quantity(power, "W") for power in (min(powers), max(powers))) if powers else "none"
    verdict = f"at worst {percent(one.task_agreement)} of decisions as software {bounds}"
    return Page(
        verb="compare --pvt",
        subject=subject,
        title=f"{subject.name} on {design.technology.name} in {count} conditions, {sweep.bias} bias: {verdict}",
        lead=f"{one.samples + one.failed} test samples in each of {count} corners, temperatures and supplies, by "
        f"{simulator} on {design.assembly.transistors} transistors compiled once; {sweep.failed} simulations failed.",
        answer=f"{say_worst(sweep)} Assumed: {say_basis(sweep)}.",
        cards=(
            (percent(one.task_agreement), f"decisions as software at worst {bounds}"),
            (percent(min(row.state_agreement for row in rows), 2), "of the states equal the software's at worst"),
            (span, "mean supply power"),
            (str(sweep.failed), "simulations failed"),
        ),
        notes=() if sweep.clipped is None else (f"{sweep.clipped}.",),
        sections=(
            Section("States and decisions equal to the software's", (_picture(sweep),)),
            Section("Every condition", (condition_table(sweep), f"Not in power: {', '.join(sweep.power_outside)}.")),
            Section("Audit", tuple(f"{line}." for line in say_audit(sweep.audit))),
            circuit_section(design),
        ),
        provenance=origins(design, made_with),
    )


def say_worst(sweep: Sweep) -> str:
    """Return a sentence with the worst conditions of a comparison over process, supply and temperature."""
    if not sweep.worst:
        return "All conditions have equal figures."
    places = [_where(row) for row in sweep.worst]
    more = f" and {len(places) - CONDITIONS} more" if len(places) > CONDITIONS else ""
    return f"Worst: {'; '.join(places[:CONDITIONS])}{more}."


def _where(row: PvtCondition) -> str:
    return f"{row.corner}, {row.celsius:g} °C, {row.supply_v:.4g} V"


def _picture(sweep: Sweep) -> Picture:
    caption = (
        "A column for each corner: states that differ from the software's, on a logarithmic scale; samples decided "
        "otherwise than the software decides; power over that of the framed, nominal condition."
    )
    alt = f"{caption} {say_worst(sweep)}"
    return picture_of(draw_pvt(sweep), alt, caption, _LEAST, "png")


def condition_table(sweep: Sweep) -> Table:
    """Return the table of `compare --pvt`: the figures of every condition."""
    head = ("corner", "temperature", "supply", "states", "decisions", "95 % interval", "accuracy", "power")
    return Table(head, tuple(map(_row, sweep.conditions)), tuple(range(1, len(head))))


def _row(row: PvtCondition) -> tuple[str, ...]:
    where = row.corner, f"{row.celsius:g} °C", f"{row.supply_v:.4g} V"
    if row.accuracy is None or row.power_w is None or row.task_agreement_interval is None:
        return (*where, "failed", "", "", "", "")
    same = percent(row.state_agreement, 2), percent(row.task_agreement), within(row.task_agreement_interval)
    return (*where, *same, percent(row.accuracy), format_quantity(row.power_w, "W"))


def say_basis(sweep: Sweep) -> str:
    """Return what bias currents the figures of a sweep rest on; of ideal ones also how to see others."""
    ideal = sweep.bias_assumed == WORDS["constant"]
    return sweep.bias_assumed + ("; for those of a chip, add --bias reference or --bias tracking" if ideal else "")


@dataclass(frozen=True)
class Listener:
    """Functions that hear of a sweep's progress: within each run, and by a line after each condition and an audit."""

    progress: Progress
    finished: Callable[[str], None] = lambda line: None


def run_pvt(design: Design, test_set: TestSet, run: Run, listener: Listener, asked: Conditions = Conditions()) -> Sweep:
    """Simulate the samples in every condition of `pvt_grid`; write pvt.json, whose content it returns, pvt.png and the
    page.

    The network is compiled once, at the nominal point.
    """
    bias, conditions = asked.bias, pvt_grid(design.technology, asked)
    sizes = device_sizes(design.assembly.circuit)
    for technology in conditions:
        device_cards(technology, sizes)  # what a library does not have is said before the first run
    write_texts(run.place, {})
    clear_failures(run.place)
    summaries: list[ComparisonSummary | None] = []
    runs: list[AuditableRun] = []
    found: dict[str, list[Outcome] | None] = {}
    count = len(test_set.y)
    total = len(conditions) * count + min(asked.audit, len(conditions) * count)
    for k, technology in enumerate(conditions):
        name = format_conditions(technology)
        where = f"{k + 1}/{len(conditions)} {name}"
        try:
            there = replace(run, condition=biased(design, technology, bias, simulator_beside(run.engine)))
        except SimulationError as error:
            summaries.append(None)
            found[name] = None
            listener.finished(f"{where}: {error}")
            continue

        found[name] = outcomes = simulate_test_set(
            design, test_set, there, part_of(listener.progress, k * count, total)
        )
        runs.append(AuditableRun(design, test_set, outcomes, there))
        comparison = compare_engines(design, test_set, outcomes, there)
        summaries.append(None if comparison is None else summarize_comparison(comparison))
        listener.finished(where)
    sweep = summarize_pvt(conditions, summaries, count, bias, find_clipping(design.network.encoding, test_set))
    outside = outside_of(design.assembly.blocks)
    sweep = replace(sweep, power_outside=outside, bias_assumed=bias_words(design, bias))
    if asked.audit:
        audited = part_of(listener.progress, len(conditions) * count, total)
        sweep = replace(sweep, audit=audit_conditions(runs, asked.audit, audited))
        listener.finished(f"audit of {asked.audit}")
    write_results(run.place, {"design.json": summarize(design), "pvt.json": sweep})
    rows = tabulate_samples(design, test_set, found, run.engine)
    write_atomically(run.place / "pvt.npz", seal_npz({**rows, "conditions": np.array(tuple(found))}))
    save_figure(draw_pvt(sweep), run.place / "pvt.png")
    version = engine_named(run.engine).describe(run.standing(design).technology).version
    write_page(run.place, pvt_page(design, sweep, {run.engine: version}))
    return sweep
