"""The page of a backbone with its cells on transistors: what runs where, and how the whole did."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from cosim.base.quantities import format_quantity
from cosim.base.seal import checksum
from cosim.base.version import __version__
from cosim.compiler.design import Design, network_hash
from cosim.results.page import Facts, Page, PageSubject, Section, Table
from cosim.technology.types import Technology
from cosim.verbs.partitions.study import DeployedSummary, PartitionSummary
from cosim.verbs.tables import format_outside, percent, within
from cosim.verbs.trust import format_audit, say_audit
from cosim.verbs.words import say_conditions

if TYPE_CHECKING:
    from cosim.papers.cut import BackbonePart


_LEVELS = {
    "software": "software, as trained",
    "converters": "software with converters",
    "behavioral": "behavioral equations",
}


@dataclass(frozen=True)
class PartitionSubject:
    """A backbone cut into partitions: its task, its parts, the design of each partition by name, and the technology as
    it ran."""

    task: str
    parts: "Sequence[BackbonePart]"
    designs: Mapping[str, Design]
    technology: Technology


def partitions_page(cut: PartitionSubject, summary: DeployedSummary) -> Page:
    """Return the page of a backbone's comparison."""
    technology, simulator = cut.technology, summary.simulator
    subject = PageSubject(
        f"{cut.task} backbone", checksum(*(network_hash(one).encode() for one in cut.designs.values()))
    )
    same, bounds = summary.agreement["end_to_end"], within(summary.agreement_interval["end_to_end"])
    transistors = sum(one.transistors for one in summary.partitions)
    verdict = f"{percent(same)} of {summary.samples} decisions as software {bounds}"
    return Page(
        verb="compare",
        subject=subject,
        title=f"{subject.name} on {technology.name}: {verdict}",
        lead=f"A backbone whose cells run on {transistors} transistors of {technology.name} "
        f"({say_conditions(technology)}) in {len(summary.partitions)} partition"
        f"{'s' * (len(summary.partitions) > 1)}, and the rest in software. {summary.samples} test samples, whole "
        f"traces through {simulator}; {summary.failed} failed.",
        cards=(
            (percent(same), f"decisions as software {bounds}"),
            (
                percent(summary.accuracy[simulator]),
                f"accuracy {within(summary.accuracy_interval[simulator])}; software "
                f"{percent(summary.accuracy['software'])}",
            ),
            (percent(summary.state_agreement, 3), f"of {summary.states} states as software with converters"),
            (format_quantity(summary.power_w[simulator], "W"), "mean supply power of the circuits"),
        ),
        sections=(
            Section("Four runs of the same samples", (_levels(summary), _SAME)),
            Section("What runs where", (_parts(cut),)),
            *(Section(f"Partition {one.name}", (Facts(_facts(one, simulator)),)) for one in summary.partitions),
            Section("Converters", (_conversions(summary),)),
            Section("What power leaves out", (f"{', '.join(summary.power_outside)}.".capitalize(),)),
        ),
        provenance=_provenance(cut),
    )


_SAME = (
    "Equal states and decisions: converters with software, the others with converters. Intervals: Clopper-Pearson at "
    "95 %."
)


def _provenance(cut: PartitionSubject) -> dict[str, str]:
    first = next(iter(cut.designs.values())).calibration
    networks = {f"network of {name}": network_hash(design) for name, design in cut.designs.items()}
    calibration = f"{first.fingerprint}, measured with {first.simulator}"
    return {**networks, "calibration": calibration, "cosim": __version__}


def _levels(summary: DeployedSummary) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, value in summary.accuracy.items():
        states = decisions = power = ""
        if name in summary.wrong_states:
            states = percent(1.0 - summary.wrong_states[name] / summary.states, 3)
            decisions = percent(summary.agreement[name])
        if name in summary.power_w:
            power = format_quantity(summary.power_w[name], "W")
        bounds = within(summary.accuracy_interval[name])
        rows.append((_LEVELS.get(name, name), percent(value), bounds, states, decisions, power))
    head = ("run", "accuracy", "95 % interval", "equal states", "equal decisions", "power")
    return Table(head, tuple(rows), tuple(range(1, len(head))))


def _parts(cut: PartitionSubject) -> Table:
    rows = tuple((one.part, one.where, str(one.parameters or ""), one.reason) for one in cut.parts)
    return Table(("part", "runs in", "learned numbers", "why there"), rows, (2,))


def _facts(one: PartitionSummary, simulator: str) -> tuple[tuple[str, str], ...]:
    wrong = "; ".join(f"{count} by {_LEVELS.get(name, name)}" for name, count in one.wrong.items())
    margin = "not measured" if one.least_margin_a is None else format_quantity(one.least_margin_a, "A")
    near = one.undecided
    return (
        ("cells", str(one.cells)),
        ("transistors", str(one.transistors)),
        ("power", format_quantity(one.power_w[simulator], "W")),
        ("converters", f"{one.cells} of {one.bits} bits, {one.codes} codes"),
        ("their ranges", f"{min(one.ranges):.3g} to {max(one.ranges):.3g} thresholds"),
        ("candidates beyond them", percent(one.out_of_range, 2)),
        ("wrong states", f"{wrong}, of {one.states}"),
        ("wrong on what the circuit itself got", str(one.wrong_here)),
        ("nearest to a threshold", margin),
        *(() if near is None else (("undecided", f"{near.near} of {near.decisions} under "
                                                 f"{format_quantity(near.limit, 'A')}"),)),
        *(("audit", line) for line in say_audit(one.audit)),
    )  # fmt: skip


def _conversions(summary: DeployedSummary) -> str:
    rate = sum(one.conversions_per_s for one in summary.partitions)
    even = sum(one.power_w[summary.simulator] for one in summary.partitions) / rate
    if summary.conversion_j is None:
        each = format_quantity(even, "J")
        return f"{rate:.4g} conversions a second, not counted: at {each} each they take what the circuits take."
    power, each = format_quantity(summary.conversion_j * rate, "W"), format_quantity(summary.conversion_j, "J")
    return f"{rate:.4g} conversions a second take {power} at {each} each."


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
