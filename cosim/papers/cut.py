"""A backbone cut into partitions: cells whose states a circuit keeps, and the software around them.

The cut is at a cell's `memory`. Whole traces are handed over: software up to the first cell, that cell's states over
all steps from whoever keeps them, software up to the next one. So a later block reads what the cells in front did.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cosim.base.errors import MappingError
from cosim.network.layers import Array
from cosim.network.reference import range_of_states, valid_steps
from cosim.network.software_only import why_software
from cosim.papers.backbone import CHUNK, listening, record, to_tensors
from cosim.papers.cells import Drive, HysteresisCell
from cosim.papers.converter import (
    DECIDED,
    NEITHER,
    KeptStates,
    Partition,
    States,
    calibrate,
    compared,
    level_numbers,
    steps_of,
)
from cosim.papers.file import Model
from cosim.papers.shape import HYSTERESIS
from cosim.papers.sources import BackboneData, Samples

SEEN = 256  # training samples that converters are calibrated with
Memory = Callable[
    [Partition, Array, NDArray[np.int64]], States
]  # what crosses the cut, (n, time, converters), and lengths (n,) to (n, time, units)


@dataclass(frozen=True)
class BackbonePart:
    """A part of a backbone: its name, whether it is software or circuit, its learned parameters, and the reason."""

    part: str
    where: str
    parameters: int
    reason: str


@dataclass(frozen=True)
class CutTrace:
    """The result of running a backbone with some cells as circuits.

    scores: (n, outputs); drives: cell -> values that software hands to the circuit, (n, time, converters); states: cell
    -> (n, time, units).
    """

    scores: Array
    drives: dict[str, Array]
    states: dict[str, States]

    @property
    def decisions(self) -> NDArray[np.int64]:
        """Return the class with the largest score of each sample, (n,)."""
        return self.scores.argmax(axis=1)


@dataclass(frozen=True)
class PartitionedBackbone:
    """A backbone in software with its partitions, the cells whose states a circuit keeps, in the order in which they
    run."""

    model: Model
    partitions: tuple[Partition, ...]

    def run(self, samples: Samples, memory: Memory | None = None) -> CutTrace:
        """Run the backbone on samples, with the states of the partitions from `memory`, or from software if it is None.

        memory: called for each partition with the partition, the values that it receives, (CHUNK or fewer samples,
        time, converters), and the samples' lengths; returns the states.
        """
        n, longest = len(samples.lengths), int(samples.lengths.max())
        samples = Samples(samples.x[:, :longest], samples.y, samples.lengths)
        chunks = [samples.take(np.arange(first, min(first + CHUNK, n))) for first in range(0, n, CHUNK)]
        runs = [self._run(chunk, memory, longest) for chunk in chunks]
        cells = [partition.cell for partition in self.partitions]
        return CutTrace(
            np.concatenate([one.scores for one in runs]),
            {cell: np.concatenate([one.drives[cell] for one in runs]) for cell in cells},
            {cell: np.concatenate([one.states[cell] for one in runs]) for cell in cells},
        )

    @torch.no_grad()
    def _run(self, samples: Samples, memory: Memory | None, longest: int) -> CutTrace:
        backbone, drives, states = self.model.backbone, dict[str, Array](), dict[str, States]()
        x, lengths = to_tensors(samples, backbone.output.weight.device)
        x = torch.nn.functional.pad(x, [0, 0] * (x.ndim - 2) + [0, longest - x.shape[1]])

        partitions = {partition.cell: partition for partition in self.partitions}
        cells = {name: backbone.hysteresis[name] for name in partitions}

        def heard(name: str, drive: Drive) -> Tensor:
            crossing = crossing_values(cells[name], drive)
            if memory is None:
                values = cells[name].decide(drive)
                kept = states_of(cells[name], values, drive)
            else:
                kept = memory(partitions[name], crossing, samples.lengths)
                values = values_of(cells[name], torch.from_numpy(kept).to(drive.level), drive)
            drives[name], states[name] = crossing, kept
            return values

        with listening(cells, heard):
            scores = backbone.eval()(x, lengths)
        return CutTrace(scores.double().cpu().numpy(), drives, states)

    def parts(self) -> list[BackbonePart]:
        """Return the parts of the backbone from input to output, each with the reason why it is software or circuit."""
        backbone, cut = self.model.backbone, {partition.cell for partition in self.partitions}
        found = [
            BackbonePart(
                "encoder", "software", _count(backbone.encoder, backbone.encoder_mlp), "its perceptron is gated"
            )
        ]
        for i, block in enumerate(backbone.blocks):
            cells = {name: cell for name, cell in backbone.hysteresis.items() if name.startswith(f"blocks.{i}.")}
            reasons = ["LayerNorm, products of signals, and the weights of the drive"]
            reasons += _why_kinds(backbone.shape.cells_of(i))
            reasons += [f"{name} {why}" for name in cells if name not in cut and (why := _why_not(cells[name]))]
            found.append(BackbonePart(f"block {i + 1}", "software", _count(block), "; ".join(reasons)))
            found += [
                BackbonePart(
                    partition.name,
                    "circuit",
                    0,
                    f"states of {partition.cell}: {partition.units} {partition.circuits}",
                )
                for partition in self.partitions
                if partition.cell in cells
            ]
        rest = _count(backbone.decoder, backbone.decoder_mlp, backbone.output)
        return [*found, BackbonePart("pooling and decoder", "software", rest, "its perceptron is gated")]


def cut_backbone(model: Model, seen: Samples, bits: int | None = None, origin: str = "backbone") -> PartitionedBackbone:
    """Divide a backbone into software and partitions, the cells that have a circuit, with calibrated converters
    between.

    seen: samples to calibrate with; bits: as in `calibrate`; origin: name in errors. Raises InputError for bits that
    cannot be built, MappingError if no cell has a circuit.
    """
    if bits is not None:
        steps_of(bits)
    backbone, cells = model.backbone, cells_to_cut(model, origin)
    x, lengths = to_tensors(seen, backbone.output.weight.device)
    valid = valid_steps(seen.lengths, x.shape[1])
    partitions = list[Partition]()
    for name, (drive, values) in record(backbone, x, lengths).items():
        if name in cells:
            cell = backbone.hysteresis[name]
            kept = KeptStates(levels=cell.levels if cell.scale is not None else None)
            if cell.counts:
                counts = states_of(cell, values, drive)[valid]
                first = -1 if cell.start == "low" else 0
                counts = np.concatenate([np.full((1, counts.shape[1]), first), counts]).astype(np.float64)
                seen_ends = range_of_states(counts, np.ones(counts.shape[1]), cell.epsilon)
                kept = KeptStates(round(cell.epsilon), first=first, seen=seen_ends, ends=cell.ends)
            g = crossing_values(cell, drive)[valid][:, : cell.state]
            partitions.append(calibrate(name, g, bits, kept))
    return PartitionedBackbone(model, tuple(partitions))


def crossing_values(cell: HysteresisCell, drive: Drive) -> Array:
    """Return the values that software hands to a cell's circuit at each step, (n, time, converters).

    These are the candidates over their thresholds. For an alphaCMRU they are rounded: DECIDED above the upper
    threshold, 0 between both, -DECIDED below the lower one; the values to store follow on the last axis.
    """
    g = compared(drive.candidate.detach().cpu().numpy(), drive.threshold.detach().cpu().numpy())
    if cell.scale is None:
        return g
    g = np.where(np.abs(g) >= 1, DECIDED * np.sign(g), 0.0)
    return np.concatenate([g, drive.level.detach().cpu().numpy().astype(np.float64)], axis=2)


def values_of(cell: HysteresisCell, states: Tensor, drive: Drive) -> Tensor:
    """Return the software values of a cell for its integer states, (n, time, units); the inverse of `states_of`."""
    if cell.scale is not None:
        assert cell.levels is not None
        return states * (2.0 / cell.levels) - 1.0
    return drive.level * (states if cell.counts else 2.0 * states - 1.0)


def states_of(cell: HysteresisCell, values: Tensor, drive: Drive) -> States:
    """Return the integer states of a backbone's cell for its software values, (n, time, units).

    States are level numbers for an alphaCMRU, counts of steps of alpha at epsilon 1 and -1, else bits.
    """
    if cell.scale is not None:
        assert cell.levels is not None
        return level_numbers(values.detach().cpu().numpy(), cell.levels)
    if cell.counts:
        steps = torch.where(drive.level == 0, 0.0, values / drive.level)
        return steps.round().detach().cpu().numpy().astype(np.int16)
    bits = torch.where(values == 0, NEITHER, (values * drive.level.sign() > 0).int())
    return bits.detach().cpu().numpy().astype(np.int16)


def cells_to_cut(model: Model, origin: str = "backbone") -> list[str]:
    """Return the names of the backbone's cells that have a circuit, in order.

    Raises MappingError, with the reasons, if there is none; origin: name of the backbone in the error.
    """
    backbone = model.backbone
    kinds = _why_kinds(backbone.shape.cells)
    ending = {name: _why_not(cell) for name, cell in backbone.hysteresis.items()}
    cells = [name for name, why in ending.items() if why is None]
    if not cells:
        reasons = "; ".join([*kinds, *(f"{name} {why}" for name, why in ending.items())])
        raise MappingError(f"{origin}: no cell of it has a circuit: {reasons}. Train one with --cell cmru")
    return cells


def training_samples(source: BackboneData, count: int = SEEN) -> Samples:
    """Return a fixed batch of `count` training samples, with which converters are calibrated."""
    return source.batch(np.random.default_rng([3, 0]), count)


def _why_kinds(kinds: Iterable[str]) -> list[str]:
    """Return why the cells of these kinds that have no thresholds stay software."""
    return [why for kind in kinds if kind not in HYSTERESIS and (why := why_software(kind))]


def _why_not(cell: HysteresisCell) -> str | None:
    """Return why a cell with thresholds stays software; None for one that has a circuit."""
    if cell.scale is not None and cell.levels is None:
        return "stores any value, and a register holds one of some levels (nearest: --levels 6)"
    if cell.scale is not None and cell.epsilon != 0:
        return f"has epsilon {cell.epsilon:g}, and a register replaces what it holds (nearest: --epsilon anneal)"
    if cell.epsilon in (-1, 0, 1):
        return None
    return (
        f"has epsilon {cell.epsilon:g}, and its state is neither a bit nor a count (nearest: --epsilon 1 or -1, or "
        "--epsilon anneal, which ends at 0)"
    )


def _count(*modules: torch.nn.Module) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())
