"""Whole waveforms of one sample, for the eye."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.cells.assemble import NETWORK, net
from cosim.design import Design, encode_sample, inference_deck, read_plan
from cosim.engines.ngspice.rest import run_from_rest
from cosim.engines.outcome import Failure
from cosim.errors import SimulationError
from cosim.ir.nodes import Ladder, Schmitt, Toggle
from cosim.simulation.inference import drawn_power
from cosim.simulation.testbench import Timing


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
    design: Design, x: NDArray[np.float64], cell: str, timing: Timing = Timing()
) -> tuple[dict[str, NDArray[np.float64]], WaveLabels]:
    """Simulate one raw sample (time, features) and return what `draw_waveforms` draws, with its labels.

    cell: the memory node to show. The candidate is probed at its diode: M1 leaves saturation once the cell is set.
    Raises SimulationError when the run fails.
    """
    inputs = encode_sample(design, x)
    stem = net(cell)
    candidate = drain_current(design, f"{NETWORK}.cand_{stem}.diode")
    node = next(node for node in design.graph.memories if node.name == cell)
    device = {Schmitt: "4", Ladder: "diode", Toggle: "slave.4"}[type(node)]
    state = drain_current(design, f"{NETWORK}.cell_{stem}.{device}")
    waves = run_from_rest(inference_deck(design, x, timing, probes=(candidate, state)))
    if isinstance(waves, Failure):
        raise SimulationError(f"waveforms of {cell}: {waves.kind.value}: {waves.detail}")
    time = waves["time"]
    frames = np.clip(((time - timing.start) / timing.t_step).astype(int), 0, len(inputs) - 1)
    drawn = {f"input.{j}": design.i_unit * inputs[frames, j] * (time >= timing.start) for j in range(inputs.shape[1])}
    outputs = {f"output.{k}": waves[f"v{pin}#branch"] for k, pin in enumerate(design.assembly.outputs)}
    currents = design.graph.currents[cell]
    labels = WaveLabels(
        unit=node.name,
        i_rise=currents.i_rise,
        i_fall=currents.i_fall,
        outputs=list(design.network.labels) or [str(k) for k in range(len(design.assembly.outputs))],
        title=f"{design.network.task or 'network'} on {design.assembly.transistors} transistors, one inference",
    )
    return {
        "time": time,
        "candidate": np.abs(waves[candidate]),
        "state": np.abs(waves[state]),
        "power": drawn_power(waves, read_plan(design, len(x), timing).supplies),
        **drawn,
        **outputs,
    }, labels


def drain_current(design: Design, device: str) -> str:
    """ngspice's name of a transistor's current; a varied chip's circuit is flat, and so are its names."""
    if not design.assembly.circuit.subcircuits:
        return f"@m{device}[id]"
    *path, name = device.split(".")
    return f"@m.{''.join(f'x{instance}.' for instance in path)}m{name}[id]"


def liveliest_cell(cells: tuple[str, ...], states: NDArray[np.int16]) -> str:
    """The cell whose state (time, cells) changes most often; the first of equals."""
    changes = (states[1:] != states[:-1]).sum(axis=0)
    return cells[int(changes.argmax())]
