"""A backbone with its cells in circuits: cut, compile each partition, compare the whole with its software."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cosim.base.errors import InputError, SimulationError, importing
from cosim.base.resources import install_command
from cosim.base.store import write_results
from cosim.base.write import make_folder, write_atomically
from cosim.circuit.dialects.dialect import Dialect
from cosim.circuit.dialects.ngspice import NGSPICE
from cosim.compiler.design import Condition, Design
from cosim.compiler.settings import CompilerSettings
from cosim.engines.engine import Progress, Run
from cosim.exchange.checkpoint import npz_bytes, save_checkpoint
from cosim.results.kept_page import write_page
from cosim.technology.types import Technology
from cosim.verbs.compile.outputs import Exercise
from cosim.verbs.compile.page import design_page, write_design
from cosim.verbs.loading import TargetTechnology, compile_at
from cosim.verbs.partitions.page import PartitionSubject, compiled_page, partitions_page
from cosim.verbs.partitions.study import (
    CompiledPartition,
    DeployedSummary,
    deploy,
    equations,
    mean_power,
    summarize_deployed,
)

if TYPE_CHECKING:
    from cosim.papers.cut import PartitionedBackbone
    from cosim.papers.sources import BackboneData, Samples

PARTITIONS = "partitions.json"
INPUTS = "inputs.npz"  # what a partition's circuit got, as the test data of its network
_EXTRA = install_command("train")
Say = Callable[[str], None]


@dataclass(frozen=True)
class Opened:
    """A backbone that was cut, the samples of its task, and those that its converters are calibrated with."""

    cut: "PartitionedBackbone"
    source: "BackboneData"
    seen: "Samples"
    origin: str

    def tests(self, count: int | None, seed: int, say: Say) -> "Samples":
        """Test samples, drawn as everywhere; `say` hears where there are fewer than asked for."""
        test = self.source.test()
        n = len(test.lengths)
        if not self.source.labels or test.y.ndim != 1:
            raise InputError(f"{self.origin}: compare counts decisions, and task {self.source.name} has no classes")
        if count is None or count >= n:
            if count is not None and count > n:
                say(f"--samples {count}: the test set has {n} samples; all are used")
            return test
        return test.take(np.random.default_rng(seed).permutation(n)[:count])

    def compile(self, place: TargetTechnology, settings: CompilerSettings, say: Say) -> "Built":
        """Compile each partition, in order. Raises the errors of `compile_at`, naming the partition."""
        designs = [
            compile_at(one.network, f"{self.origin}: {one.name}", place, settings, say) for one in self.cut.partitions
        ]
        return Built(self, tuple(design for design, _ in designs), tuple(condition for _, condition in designs))


@dataclass(frozen=True)
class Built:
    """A cut backbone with the design of each partition, and the condition that it is run in."""

    opened: Opened
    designs: tuple[Design, ...]
    conditions: tuple[Condition, ...]

    def place(self, run: Run) -> list[CompiledPartition]:
        """Return the partitions as they run; each has its own condition, and its own folder below the run's."""
        return [
            CompiledPartition(
                one, design, replace(run, folder=run.folder and run.folder / one.name, condition=condition)
            )
            for one, design, condition in zip(self.opened.cut.partitions, self.designs, self.conditions, strict=True)
        ]

    def subject(self, technology: Technology) -> PartitionSubject:
        """Return what a page is about, in a technology as it runs."""
        cut = self.opened.cut
        designs = {one.name: design for one, design in zip(cut.partitions, self.designs, strict=True)}
        return PartitionSubject(self.opened.source.name, cut.parts(), designs, technology)


def open_cut(path: Path, data: Path | None, bits: int) -> Opened:
    """Read a backbone and cut it, with converters calibrated from its task's training samples.

    Raises InputError where the file or the data cannot be used, MappingError where no cell has a circuit,
    MissingToolError without torch.
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
    return Opened(cut_backbone(model, seen, bits, str(path)), source, seen, str(path))


def write_partitions(
    built: Built,
    folder: Path,
    exercise: Exercise,
    dialect: Dialect = NGSPICE,
    say: Say = lambda line: None,
) -> dict[str, object]:
    """Write a folder for each partition, as `write_design` makes it, with its network, PARTITIONS, and the page; return
    the content of PARTITIONS.

    Power is that of the behavioral equations on the samples that the converters were calibrated with.
    """
    opened = built.opened
    trace = opened.cut.run(opened.seen, lambda partition, g, lengths: equations(partition, g))
    rows: list[dict[str, object]] = []
    for placed in built.place(Run(folder, timing=exercise.timing)):
        partition, place, condition = placed.partition, placed.run.place, placed.run.condition
        write_design(placed.design, place, replace(exercise, condition=condition), dialect, say)
        write_page(place, design_page(placed.design, condition))
        save_checkpoint(place / "network.npz", partition.network)
        power = mean_power(placed, trace.drives[partition.cell], opened.seen.lengths)
        cells = len(partition.ranges)
        rows.append({
            "name": partition.name,
            "cell": partition.cell,
            "cells": cells,
            "transistors": placed.design.assembly.transistors,
            "bits": partition.bits,
            "codes": 1 + (partition.network.encoding.levels or 0),
            "ranges": partition.ranges.tolist(),
            "thresholds": partition.thresholds.tolist(),
            "out_of_range": partition.clipped,
            "conversions_per_frame": cells,
            "conversions_per_s": cells / exercise.timing.t_step,
            "power_behavioral_w": float(power.mean()),
        })  # fmt: skip
    parts = [asdict(part) for part in opened.cut.parts()]
    content: dict[str, object] = {"model": opened.origin, "parts": parts, "partitions": rows}
    write_results(folder, {PARTITIONS: content})
    write_page(folder, compiled_page(built.subject(built.conditions[0].technology), rows))
    return content


@dataclass(frozen=True)
class PartitionReportOptions:
    """Options of the judgment on a run: the energy of a conversion, J, and how many samples ngspice audits."""

    conversion: float | None = None
    audit: int = 0


def run_partitions(
    built: Built,
    samples: "Samples",
    run: Run,
    judging: PartitionReportOptions = PartitionReportOptions(),
    progress: Progress = lambda done, total: None,
) -> DeployedSummary:
    """Simulate the partitions one behind the other, each in a folder of its own; write and return the figures.

    INPUTS in such a folder is what other verbs take as the data of the partition's network.
    Raises SimulationError where no sample went through all of them.
    """
    placed = built.place(run)
    for one in placed:
        make_folder(one.run.place)
    deployed = deploy(built.opened.cut, placed, samples, progress)
    for one in placed:
        got = deployed.ledgers[one.partition.cell].ran(one, samples.lengths).test_set
        arrays = {"x_test": got.x, "y_test": got.y, "len_test": got.lengths}
        write_atomically(one.run.place / INPUTS, npz_bytes(arrays))
    if not deployed.good.any():
        raise SimulationError(f"all {len(deployed.good)} samples failed in a partition; their decks are in {run.place}")
    summary = summarize_deployed(deployed, placed, judging.conversion, judging.audit)
    write_results(run.place, {PARTITIONS: summary})
    technology = placed[0].run.standing(placed[0].design).technology
    write_page(run.place, partitions_page(built.subject(technology), summary))
    return summary
