"""Whole waveforms of one sample, for the eye."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.builder import instance, net
from cosim.circuit.bench import DrainCurrent
from cosim.design import Design
from cosim.engines.engine import Run
from cosim.engines.table import NGSPICE, engine_entry
from cosim.ir.states import States
from cosim.simulation.inference import drawn_power
from cosim.simulation.plans import read_plan
from cosim.simulation.single import run_bench
from cosim.simulation.testbench import encode_sample, inference_bench


@dataclass(frozen=True)
class WaveLabels:
    """What waveforms show: the memory node, its thresholds in A as asked for, names of the outputs, a title.

    own: the thresholds (upper, lower) of the node on one chip, A.
    """

    unit: str
    i_rise: float
    i_fall: float
    outputs: list[str]
    title: str
    own: tuple[float, float] | None = None


def record_waveforms(
    design: Design, x: NDArray[np.float64], cell: str, run: Run = Run()
) -> tuple[dict[str, NDArray[np.float64]], WaveLabels]:
    """Simulate one raw sample (time, features) and return what `draw_waveforms` draws, with its labels.

    cell: the memory node to show. The candidate is probed at its diode: M1 leaves saturation once the cell is set.
    Raises SimulationError when the run fails.
    """
    inputs, timing = encode_sample(design, x), run.timing
    roles = design.assembly.circuit.roles()
    candidate = roles[instance(f"cand_{net(cell)}"), "candidate"]
    state = roles[instance(f"cell_{net(cell)}"), "output"]
    bench = inference_bench(design, x, timing, run.condition, run.chip)
    bench = replace(bench, probes=(*bench.probes, DrainCurrent(candidate), DrainCurrent(state)))
    waves = run_bench(bench, f"waveforms of {cell}", run.engine if engine_entry(run.engine).inside else NGSPICE)
    time = waves.time
    frames = np.clip(((time - timing.start) / timing.t_step).astype(int), 0, len(inputs) - 1)
    drawn = {f"input.{j}": design.i_unit * inputs[frames, j] * (time >= timing.start) for j in range(inputs.shape[1])}
    outputs = {f"output.{k}": waves.through(pin) for k, pin in enumerate(design.assembly.outputs)}
    currents = design.graph.currents[cell]
    labels = WaveLabels(
        unit=cell,
        i_rise=currents.i_rise,
        i_fall=currents.i_fall,
        outputs=list(design.network.labels) or [str(k) for k in range(len(design.assembly.outputs))],
        title=f"{design.network.task or 'network'} on {design.assembly.transistors} transistors, one inference",
    )
    return {
        "time": time,
        "candidate": waves.drain(candidate),
        "state": waves.drain(state),
        "power": drawn_power(waves, read_plan(design, len(x), timing, run.standing(design)).supplies),
        **drawn,
        **outputs,
    }, labels


def liveliest_cell(cells: tuple[str, ...], states: States) -> str:
    """The cell whose state (time, cells) changes most often; the first of equals."""
    changes = (states[1:] != states[:-1]).sum(axis=0)
    return cells[int(changes.argmax())]
