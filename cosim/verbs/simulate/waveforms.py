"""Whole waveforms of one sample, for the eye."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assembly import Carried
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Run
from cosim.network.ir.nodes import InputCurrent, Output
from cosim.network.ir.states import States
from cosim.network.reference import pool_readout, run_reference
from cosim.network.types import InputEncoding, Network
from cosim.tasks.testset import TestSet
from cosim.verbs.simulate.probing import ProbedInference, record

Waves = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class WaveLabels:
    """Labels of a sample's waveforms: the memory node, its thresholds in A as asked for, names of the outputs, a title.

    i_rise, i_fall: 0 where the node compares nothing; own: its thresholds (upper, lower) on one chip, A; i_pedestal:
    what
    its state of 0 carries, A; stage, stages: in which of how many stages it decides; inputs: names of the input
    currents;
    verdict: what was decided.
    """

    unit: str
    i_rise: float
    i_fall: float
    outputs: list[str]
    title: str
    own: tuple[float, float] | None = None
    i_pedestal: float = 0.0
    stage: int = 0
    stages: int = 1
    inputs: tuple[str, ...] = ()
    verdict: "SampleDecisions | None" = None

    @property
    def compares(self) -> bool:
        """Tell whether the node has thresholds; an analog state has none."""
        return self.i_rise > 0


@dataclass(frozen=True)
class SampleDecisions:
    """One sample by its number in the full test set: its class, and what each engine decides, as places of outputs."""

    sample: int
    wanted: int
    decided: Mapping[str, int] = field(default_factory=dict[str, int])


def record_waveforms(
    design: Design, x: NDArray[np.float64], cell: str, run: Run = Run()
) -> tuple[dict[str, NDArray[np.float64]], WaveLabels]:
    """Simulate one raw sample (time, features) and return what `draw_waveforms` draws, with its labels.

    cell: the memory node to show. The candidate is probed at its diode: M1 leaves saturation once the cell is set.
    Raises SimulationError when the run fails.
    """
    return waves_of(design, record(design, x, (cell,), run), cell, run)


def waves_of(
    design: Design, recorded: ProbedInference, cell: str, run: Run
) -> tuple[dict[str, NDArray[np.float64]], WaveLabels]:
    """Return the waveforms that `draw_waveforms` draws of a memory node in a recorded run, with their labels."""
    found = recorded.vectors
    waves = {"candidate": found[f"{cell}.candidate"], "state": found[f"{cell}.state"]}
    return waves | ends_of(design, recorded), labels_of(design, cell, run)


def ends_of(design: Design, recorded: ProbedInference) -> dict[str, NDArray[np.float64]]:
    """Return the waveforms that any picture of a run shows: `time`, `power`, `input.0`, ..., `output.0`, ..."""
    found, graph = recorded.vectors, design.graph
    return {
        "time": recorded.time,
        "power": found["power"],
        **{f"input.{k}": found[node.name] for k, node in enumerate(graph.of(InputCurrent))},
        **{f"output.{k}": found[node.name] for k, node in enumerate(graph.of(Output))},
    }


def labels_of(design: Design, cell: str, run: Run) -> WaveLabels:
    """Return the labels of a memory node's waveforms, without a verdict."""
    graph, currents, shown = design.graph, design.graph.currents[cell], design.assembly.decisions[cell]
    rest = shown.rest if isinstance(shown, Carried) else graph.i_pedestal
    return WaveLabels(
        unit=cell,
        i_rise=currents.i_rise,
        i_fall=currents.i_fall,
        outputs=list(design.network.labels) or [str(k) for k in range(len(design.assembly.outputs))],
        title=f"{design.network.task or 'network'} on {design.assembly.transistors} transistors",
        i_pedestal=run.standing(design).bias_scale * rest,
        stage=next(node.stage for node in graph.memories if node.name == cell),
        stages=len(design.assembly.clocks),
        inputs=input_names(design.network.encoding),
    )


def input_names(encoding: InputEncoding) -> tuple[str, ...]:
    """Return the names of the input currents: features by their number, and the ramp of time."""
    names = (str(k) for k in range(encoding.features))
    return (*names, "ramp") if encoding.ramp_steps is not None else tuple(names)


def judge_sample(design: Design, test_set: TestSet, position: int, waves: Waves, run: Run) -> SampleDecisions | None:
    """Return how software, behavioral model and the run's engine, whose waves these are, decide the sample at
    `position`; None where targets are real numbers."""
    if test_set.tolerance is not None:
        return None
    frames = int(test_set.lengths[position])
    x, network = test_set.x[position : position + 1, :frames], design.network
    readouts = {
        "software": run_reference(network, x).readout[0],
        "behavioral": run_behavioral(design, x, run.condition, run.chip).readout[0],
        run.engine: read_outputs(waves, run.timing, frames),
    }
    decided = {engine: decide(network, readout) for engine, readout in readouts.items()}
    return SampleDecisions(int(test_set.indices[position]), int(test_set.y[position]), decided)


def read_outputs(waves: Waves, timing: Timing, frames: int) -> NDArray[np.float64]:
    """Return the readout (frames, outputs) at the moments at which it is read, ampere."""
    times, outputs = timing.sample_times(frames), sum(name.startswith("output.") for name in waves)
    return np.stack([np.interp(times, waves["time"], waves[f"output.{k}"]) for k in range(outputs)], axis=1)


def decide(network: Network, readout: NDArray[np.float64]) -> int:
    """Return the decision on a sample that `cosim simulate` draws, from its readout (frames, outputs)."""
    pooled = pool_readout(readout[None], np.array([len(readout)]), network.readout.pooling)
    return int(pooled[0].argmax())


def liveliest_cell(cells: tuple[str, ...], states: States) -> str:
    """Return the cell that `cosim simulate` draws: its state (time, cells) changes most often; the first of equals."""
    changes = (states[1:] != states[:-1]).sum(axis=0)
    return cells[int(changes.argmax())]
