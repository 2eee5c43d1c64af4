"""Runs of a backbone whose cells are circuits: cut it, compile each partition, compare the whole with software.

The pages say which part runs where, and how the whole performs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.base.errors import InputError, SimulationError, importing
from cosim.base.quantities import format_quantity
from cosim.base.resources import install_command
from cosim.base.seal import checksum
from cosim.base.store import write_results
from cosim.base.version import __version__
from cosim.base.write import make_folder, write_atomically
from cosim.circuit.dialects.dialect import Dialect
from cosim.circuit.dialects.ngspice import NGSPICE
from cosim.compiler.design import network_hash
from cosim.compiler.settings import CompilerSettings
from cosim.engines.engine import Progress, Run
from cosim.exchange.checkpoint import npz_bytes, save_checkpoint
from cosim.results.kept_page import REPORT_FILE, write_page
from cosim.results.metrics import percent, within
from cosim.results.page import Facts, Links, Page, PageSubject, Section, Table
from cosim.technology.types import Technology
from cosim.verbs.compile.outputs import Exercise
from cosim.verbs.compile.page import design_page, write_design
from cosim.verbs.loading import TargetTechnology, compile_at
from cosim.verbs.partitions.study import (
    BackboneRuns,
    CompiledPartition,
    DeployedSummary,
    PartitionSummary,
    deploy,
    equations,
    mean_power,
    summarize_deployed,
)
from cosim.verbs.trust import say_audit
from cosim.verbs.words import say_conditions

if TYPE_CHECKING:
    from cosim.papers.cut import PartitionedBackbone
    from cosim.papers.sources import BackboneData, Samples


_LEVELS = {
    "software": "software, as trained",
    "converters": "software with converters",
    "behavioral": "behavioral equations",
}
_SAME = (
    "Equal states and decisions: converters with software, the others with converters. Intervals: Clopper-Pearson at "
    "95 %."
)
PARTITIONS = "partitions.json"
INPUTS = "inputs.npz"  # what a partition's circuit got, as the test data of its network
Say = Callable[[str], None]


@dataclass(frozen=True)
class CutBackbone:
    """A backbone that was cut into partitions, the cells of one block each, and software.
    cut: the partitions; source: data of its task; seen: samples that the converters were calibrated with; origin: name
    for messages; compiled: the partitions, each in the condition in which it runs, empty until they are compiled."""

    cut: "PartitionedBackbone"
    source: "BackboneData"
    seen: "Samples"
    origin: str
    compiled: tuple[CompiledPartition, ...] = ()

    def tests(self, count: int | None, seed: int, say: Say) -> "Samples":
        """Return test samples of a backbone's task: all, or `count` drawn by the seed; say: called if fewer exist.
        Raises InputError for a task without classes."""
        test = self.source.test()
        n = len(test.lengths)
        if not self.source.labels or test.y.ndim != 1:
            raise InputError(f"{self.origin}: compare counts decisions, and task {self.source.name} has no classes")
        if count is not None and count > n:
            say(f"--samples {count}: the test set has {n} samples; all are used")
        if count is None or count >= n:
            return test
        return test.take(np.random.default_rng(seed).permutation(n)[:count])

    def compile(self, place: TargetTechnology, settings: CompilerSettings, say: Say) -> "CutBackbone":
        """Compile each partition in order; return the backbone with the compiled partitions.

        Several devices in a comparator are used only in partitions that have comparators, if any has. Raises the errors
        of `compile_at`, with the partition's name.
        """
        compiled: list[CompiledPartition] = []
        several = any(one.has_comparators for one in self.cut.partitions)
        for one in self.cut.partitions:
            mine = settings if one.has_comparators or not several else replace(settings, comparator_devices=1)
            design, condition = compile_at(one.network, f"{self.origin}: {one.name}", place, mine, say)
            compiled.append(CompiledPartition(one, design, Run(condition=condition)))
        return replace(self, compiled=tuple(compiled))

    def place(self, run: Run) -> list[CompiledPartition]:
        """Return the compiled partitions, each to run in its own condition and its own folder below the run's."""
        return [
            replace(one, run=replace(run, folder=run.place / one.partition.name, condition=one.run.condition))
            for one in self.compiled
        ]

    @property
    def technology(self) -> Technology:
        """Return the technology of the backbone's circuits, in the condition in which they run."""
        return self.compiled[0].run.standing(self.compiled[0].design).technology


def compiled_page(backbone: CutBackbone, partitions: Sequence[Mapping[str, Any]]) -> Page:
    """Return the page of a compiled backbone; partitions: the rows of partitions.json."""
    technology, subject = backbone.technology, _subject(backbone)
    transistors, cells = (sum(one[name] for one in partitions) for name in ("transistors", "cells"))
    power, rate = (sum(one[name] for one in partitions) for name in ("power_behavioral_w", "conversions_per_s"))
    links = tuple((one["name"], f"{one['name']}/{REPORT_FILE}") for one in partitions)
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
            Section("What runs where", (_parts(backbone),)),
            Section("Partitions", (_partitions(partitions),)),
            Section("Pages of the partitions", (Links(links),)),
        ),
        provenance=_provenance(backbone),
    )


def _partitions(partitions: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            one["name"],
            str(one["cells"]),
            str(one["transistors"]),
            format_quantity(one["power_behavioral_w"], "W", 4),
            _converters(one["cells"], one["bits"], one["value_bits"]),
            f"{one['conversions_per_s']:.4g}",
        )
        for one in partitions
    )
    return Table(
        ("partition", "cells", "transistors", "power", "converters", "conversions a second"), rows, (1, 2, 3, 5)
    )


def _converters(cells: int, bits: int, value_bits: int) -> str:
    values = f", for candidates; {cells} of {value_bits} bits for values" if value_bits else ""
    return f"{cells} of {bits} bits, {2**bits - 1} codes{values}"


def partitions_page(backbone: CutBackbone, summary: DeployedSummary) -> Page:
    """Return the page of a backbone's comparison: its decisions and states with cells as circuits, and as software."""
    technology, simulator = backbone.technology, summary.simulator
    subject = _subject(backbone)
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
            Section("What runs where", (_parts(backbone),)),
            *(Section(f"Partition {one.name}", (Facts(_facts(one, simulator)),)) for one in summary.partitions),
            Section("Converters", (_conversions(summary),)),
            Section("What power leaves out", (f"{', '.join(summary.power_outside)}.".capitalize(),)),
        ),
        provenance=_provenance(backbone),
    )


def _subject(backbone: CutBackbone) -> PageSubject:
    hashes = (network_hash(one.design).encode() for one in backbone.compiled)
    return PageSubject(f"{backbone.source.name} backbone", checksum(*hashes))


def _scores(summary: DeployedSummary) -> str:
    return f"Scores by {summary.simulator} are at most {summary.largest_score_error:.3g} from those with converters."


def _provenance(backbone: CutBackbone) -> dict[str, str]:
    first = backbone.compiled[0].design.calibration
    networks = {f"network of {one.partition.name}": network_hash(one.design) for one in backbone.compiled}
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


def _parts(backbone: CutBackbone) -> Table:
    rows = tuple((one.part, one.where, str(one.parameters or ""), one.reason) for one in backbone.cut.parts())
    return Table(("part", "runs in", "learned numbers", "why there"), rows, (2,))


def _facts(one: PartitionSummary, simulator: str) -> tuple[tuple[str, str], ...]:
    wrong = "; ".join(f"{count} by {_LEVELS.get(name, name)}" for name, count in one.wrong.items())
    margin = "not measured" if one.least_margin_a is None else format_quantity(one.least_margin_a, "A")
    near = one.undecided
    return (
        ("cells", str(one.cells)),
        ("transistors", str(one.transistors)),
        ("power", format_quantity(one.power_w[simulator], "W")),
        ("converters", _converters(one.cells, one.bits, one.value_bits)),
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


_EXTRA = install_command("train")


def open_cut(path: Path, data: Path | None, bits: int | None) -> CutBackbone:
    """Read a backbone and cut it into partitions; converters are calibrated with its task's training samples.

    data: folder of the task; bits: of the converters, None for the default. Raises InputError where the file or the
    data cannot be used, MappingError where no cell has a circuit, MissingToolError without torch.
    """
    with importing("a backbone", _EXTRA):
        from cosim.papers.cut import cells_to_cut, cut_backbone, training_samples
        from cosim.papers.file import load_model
    from cosim.papers.sources import load_source

    model = load_model(path)
    cells_to_cut(model, str(path))  # said before the data are read
    shape = model.backbone.shape
    source = load_source(model.task, data)
    if (source.inputs, source.tokens, source.labels) != (shape.inputs, shape.tokens, model.labels):
        raise InputError(
            f"{path}: was trained with {shape.inputs} inputs and the labels {list(model.labels)}, but the data of task "
            f"{model.task} have {source.inputs} and {list(source.labels)}; give those that it was trained with"
        )
    seen = training_samples(source)
    return CutBackbone(cut_backbone(model, seen, bits, str(path)), source, seen, str(path))


def write_partitions(
    backbone: CutBackbone,
    folder: Path,
    exercise: Exercise,
    dialect: Dialect = NGSPICE,
    say: Say = lambda line: None,
) -> dict[str, object]:
    """Write a folder for each partition (its files by `write_design`, and its network), PARTITIONS, and the page.

    Returns the content of PARTITIONS. Power is by the behavioral equations, on the samples that the converters were
    calibrated with.
    """
    trace = backbone.cut.run(backbone.seen, lambda partition, g, lengths: equations(partition, g))
    rows: list[dict[str, object]] = []
    for placed in backbone.place(Run(folder, timing=exercise.timing)):
        partition, place, condition = placed.partition, placed.run.place, placed.run.condition
        write_design(placed.design, place, replace(exercise, condition=condition), dialect, say)
        write_page(place, design_page(placed.design, condition))
        save_checkpoint(place / "network.npz", partition.network)
        power = mean_power(placed, trace.drives[partition.cell], backbone.seen.lengths)
        cells, converters = partition.units, partition.converters
        rows.append({
            "name": partition.name,
            "cell": partition.cell,
            "cells": cells,
            "transistors": placed.design.assembly.transistors,
            "bits": partition.bits,
            "codes": partition.codes,
            "value_bits": partition.value_bits,
            "ranges": partition.ranges.tolist(),
            "thresholds": partition.thresholds.tolist(),
            "out_of_range": partition.clipped,
            "conversions_per_frame": converters,
            "conversions_per_s": converters / exercise.timing.t_step,
            "power_behavioral_w": float(power.mean()),
        })  # fmt: skip
    parts = [asdict(part) for part in backbone.cut.parts()]
    content: dict[str, object] = {"model": backbone.origin, "parts": parts, "partitions": rows}
    write_results(folder, {PARTITIONS: content})
    write_page(folder, compiled_page(backbone, rows))
    return content


def run_partitions(
    backbone: CutBackbone, samples: "Samples", run: Run, progress: Progress = lambda done, total: None
) -> BackboneRuns:
    """Simulate the partitions one after the other, each in its own folder.

    INPUTS in each folder is test data of the partition's network, for other verbs. Raises SimulationError where no
    sample went through all partitions.
    """
    placed = backbone.place(run)
    for one in placed:
        make_folder(one.run.place)
    deployed = deploy(backbone.cut, placed, samples, progress)
    for ledger in deployed.ledgers.values():
        got = ledger.ran(samples.lengths).test_set
        arrays = {"x_test": got.x, "y_test": got.y, "len_test": got.lengths}
        write_atomically(ledger.placed.run.place / INPUTS, npz_bytes(arrays))
    if not deployed.good.any():
        raise SimulationError(f"all {len(deployed.good)} samples failed in a partition; their decks are in {run.place}")
    return deployed


def report_partitions(
    backbone: CutBackbone, deployed: BackboneRuns, folder: Path, conversion: float | None = None, audit: int = 0
) -> DeployedSummary:
    """Write the figures and the page of a backbone's comparison; return the figures.

    conversion: energy of one conversion, J; audit: number of samples of each partition that ngspice runs as well.
    """
    summary = summarize_deployed(deployed, conversion, audit)
    write_results(folder, {PARTITIONS: summary})
    write_page(folder, partitions_page(backbone, summary))
    return summary
