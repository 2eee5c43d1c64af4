"""Noise at the hold nodes of a whole network in ngspice, at one moment of an inference.

The inference is simulated to the moment before its last stage closes. Sources are then constant, and every latch, which
floats while its cell tracks, is held on its state by 1 TOhm: that gives a defined operating point, whose small signals
and noise are those of the moment.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.circuit.bench import started
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.elements import Circuit, Element, Mos, Source
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.engines.engine import Failure, Vectors
from cosim.engines.ngspice.noise import FrequencyBand, Spectrum, net_noise
from cosim.engines.ngspice.session import run_deck
from cosim.engines.ngspice.simulator import resting_point
from cosim.engines.simulation.testbench import inference_bench

Array = NDArray[np.float64]
BEFORE = 0.005  # of a frame, before the last stage closes


def held_noise(
    design: Design, x: Array, frame: int, band: FrequencyBand = FrequencyBand()
) -> tuple[dict[str, Spectrum], dict[str, float]]:
    """Return memory -> noise of its hold node, before the last decision of a frame of a raw sample x (time, features);
    and net -> V there. Raises SimulationError where ngspice fails, MissingToolError without it."""
    circuit, voltages = standing(design, x, frame)
    latches = sorted({net for shown in design.assembly.decisions.values() if isinstance(shown, tuple) for net in shown})
    rails = ["vdd" if voltages[net] > design.technology.supply / 2 else "0" for net in latches]
    lines = [f"rlatch{k} {net} {rail} 1e12" for k, (net, rail) in enumerate(zip(latches, rails, strict=True))]
    lines += [f".nodeset v({net})={volt:.9g}" for net, volt in voltages.items()]
    holds = {cell: hold_net(circuit, candidate) for cell, candidate in design.assembly.candidates.items()}
    point, noises = net_noise(circuit, design.technology, lines, list(holds.values()), band)
    return {cell: noises[net] for cell, net in holds.items()}, point


def standing(design: Design, x: Array, frame: int) -> tuple[Circuit, dict[str, float]]:
    """Return the flat circuit with its sources fixed just before a frame's last decision, and net -> V at that moment.
    Raises SimulationError where it cannot be simulated."""
    timing = Timing()
    at = timing.start + (frame + timing.closes(len(design.assembly.clocks))[-1] - BEFORE) * timing.t_step
    bench = inference_bench(design, x)
    point = resting_point(bench)
    if isinstance(point, Failure):
        raise SimulationError(f"{bench.circuit.title}: {point.kind.value}: {point.detail}")
    short = replace(bench, probes=(), analysis=replace(bench.transient, end=at))
    vectors: Vectors | Failure = run_deck(format_bench(started(short, point)))
    if isinstance(vectors, Failure):
        raise SimulationError(f"{bench.circuit.title}: {vectors.kind.value}: {vectors.detail}")
    elements = tuple(_still(element, at) for element in bench.circuit.elements)
    voltages = {net: float(values[-1]) for net, values in vectors.items() if net != "time" and "#" not in net}
    return replace(bench.circuit, elements=elements).flat(), voltages


def _still(element: Element, at: float) -> Element:
    """Return a source fixed at its value at a moment, s; other elements are returned as they are."""
    if not (isinstance(element, Source) and isinstance(element.value, tuple)):
        return element
    times, values = np.array(element.value).T
    return replace(element, value=float(np.interp(at, times, values)))


def hold_net(circuit: Circuit, candidate: str) -> str:
    """Return the net behind the sample gate of a candidate's net."""
    gates = (mos for mos in circuit.elements if isinstance(mos, Mos) and mos.role == "switch")
    return next(mos.drain for mos in gates if mos.source == candidate)
