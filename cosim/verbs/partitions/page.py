"""The page of a backbone with its cells on transistors: what runs where, and how the whole did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cosim.base.quantities import format_quantity
from cosim.base.seal import checksum
from cosim.base.version import __version__
from cosim.compiler.design import Design, network_hash
from cosim.results.kept_page import REPORT_FILE
from cosim.results.metrics import percent, within
from cosim.results.page import Facts, Links, Page, PageSubject, Section, Table
from cosim.technology.types import Technology
from cosim.verbs.partitions.study import DeployedSummary, PartitionSummary
from cosim.verbs.trust import say_audit
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


def compiled_page(cut: PartitionSubject, partitions: Sequence[Mapping[str, Any]]) -> Page:
    """Return the page of a compiled backbone; partitions: the rows of partitions.json."""
    technology, subject = cut.technology, _subject(cut)
    transistors, cells = (sum(one[name] for one in partitions) for name in ("transistors", "cells"))
    power, rate = (sum(one[name] for one in partitions) for name in ("power_behavioral_w", "conversions_per_s"))
    links = tuple((name, f"{name}/{REPORT_FILE}") for name in cut.designs)
    several = f"{len(partitions)} partition{'s' * (len(partitions) > 1)}"
    return Page(
        verb="compile",
        subject=subject,
        title=f"{subject.name} on {technology.name}: {cells} cells on {transistors} transistors, the rest in software",
        lead=f"{technology.name}, {say_conditions(technology)}. Nothing was simulated: power is that of the behavioral "
        "equations on the samples that the converters were calibrated with.",
        cards=(
            (f"{transistors}", f"transistors in {several}"),
            (format_quantity(power, "W", 4), "mean supply power of the circuits, without converters"),
            (f"{rate:.4g}", "conversions a second"),
        ),
        sections=(
            Section("What runs where", (_parts(cut),)),
            Section("Partitions", (_partitions(partitions),)),
            Section("Pages of the partitions", (Links(links),)),
        ),
        provenance=_provenance(cut),
    )


def _partitions(partitions: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            one["name"],
            str(one["cells"]),
            str(one["transistors"]),
            format_quantity(one["power_behavioral_w"], "W", 4),
            f"{one['cells']} converters of {one['bits']} bits",
            f"{one['conversions_per_s']:.4g}",
        )
        for one in partitions
    )
    return Table(
        ("partition", "cells", "transistors", "power", "converters", "conversions a second"), rows, (1, 2, 3, 5)
    )


def partitions_page(cut: PartitionSubject, summary: DeployedSummary) -> Page:
    """Return the page of a backbone's comparison."""
    technology, simulator = cut.technology, summary.simulator
    subject = _subject(cut)
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
            Section("Four runs of the same samples", (_levels(summary), _SAME, _scores(summary))),
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


def _subject(cut: PartitionSubject) -> PageSubject:
    hashes = (network_hash(one).encode() for one in cut.designs.values())
    return PageSubject(f"{cut.task} backbone", checksum(*hashes))


def _scores(summary: DeployedSummary) -> str:
    return f"Scores by {summary.simulator} are at most {summary.largest_score_error:.3g} from those with converters."


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
        counted = f"at {each} each they take what the circuits take; --conversion counts them"
        return f"{rate:.4g} conversions a second, not counted: {counted}."
    power, each = format_quantity(summary.conversion_j * rate, "W"), format_quantity(summary.conversion_j, "J")
    return f"{rate:.4g} conversions a second take {power} at {each} each."
