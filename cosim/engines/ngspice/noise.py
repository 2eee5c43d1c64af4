"""Small signals and noise in ngspice: of one transistor, of any net of a circuit, of a network at one moment.

`.ac` and `.noise` say the first two. For `held_noise` an inference is simulated to the moment before its last stage
closes. Sources are then constant, and every latch, which floats while its cell tracks, is held on its state by 1 TOhm:
that gives a defined operating point, whose small signals and noise are those of the moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.circuit.bench import Tolerances, started
from cosim.circuit.deck import format_number
from cosim.circuit.dialects.ngspice import format_bench, format_deck, format_options
from cosim.circuit.elements import Circuit, Element, Mos, Source
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.engines.engine import Failure, Vectors
from cosim.engines.ngspice.process import run_analyses, run_deck
from cosim.engines.ngspice.simulator import resting_point
from cosim.engines.simulation.testbench import inference_bench
from cosim.technology.types import Technology

Array = NDArray[np.float64]
_TOLERANCES = Tolerances(gmin=1e-14)  # tighter ones end in no operating point where self-cascodes carry picoamperes
_STIMULUS = "vstimulus stimulus 0 dc 0 ac 1\nrstimulus stimulus 0 1e3\n"  # `.noise` wants an input; it drives nothing
_BAND = f"dec 10 {format_number(1.0)} {format_number(1e7)}"  # frequencies: ten in a decade, from and to Hz
BEFORE = 0.005  # of a frame, before the last stage closes


@dataclass(frozen=True)
class Spectrum:
    """Noise of a net over frequency, by ngspice: Hz, and V^2/Hz."""

    frequency: Array
    density: Array

    @property
    def variance(self) -> float:
        """Return the net's noise by ngspice, V^2, over the band of the analysis."""
        return float(np.trapezoid(self.density * self.frequency, np.log(self.frequency)))


def analyse(circuit: Circuit, technology: Technology, lines: Sequence[str], analyses: Sequence[str]) -> list[Vectors]:
    """Run ngspice analyses of a circuit with further lines of SPICE, such as sources with an `ac` value.

    Raises SimulationError where ngspice fails, MissingToolError without it.
    """
    more = "".join(f"{line}\n" for line in lines)
    deck = format_deck(circuit, technology, format_options(_TOLERANCES, technology), more, "all")
    found = run_analyses(deck, analyses)
    if isinstance(found, Failure):
        raise SimulationError(f"{circuit.title}: {found}")
    return found


def net_noise(
    circuit: Circuit, technology: Technology, lines: Sequence[str], nets: Sequence[str]
) -> tuple[dict[str, float], dict[str, Spectrum]]:
    """Simulate in ngspice a circuit's operating point, net -> V, and the noise of each of `nets`, V^2/Hz.

    Raises as `analyse`.
    """
    asked = ["op", *(f"noise v({net}) vstimulus {_BAND}" for net in nets)]
    point, *spectra = analyse(circuit, technology, [_STIMULUS.rstrip(), *lines], asked)
    voltages = {name: float(values[0]) for name, values in point.items() if "#" not in name}
    noises = {
        net: Spectrum(found["frequency"], found["onoise_spectrum"] ** 2)
        for net, found in zip(nets, spectra, strict=True)
    }
    return voltages, noises


def held_noise(design: Design, x: Array, frame: int) -> tuple[dict[str, Spectrum], dict[str, float]]:
    """Run ngspice for the noise of memories' hold nodes before the last decision of a frame of a raw sample x (time,
    features).

    Returns memory -> noise, and net -> V there. Raises SimulationError where ngspice fails, MissingToolError without
    it.
    """
    circuit, voltages = held_circuit(design, x, frame)
    latches = sorted({net for shown in design.assembly.decisions.values() if isinstance(shown, tuple) for net in shown})
    rails = ["vdd" if voltages[net] > design.technology.supply / 2 else "0" for net in latches]
    lines = [f"rlatch{k} {net} {rail} 1e12" for k, (net, rail) in enumerate(zip(latches, rails, strict=True))]
    lines += [f".nodeset v({net})={volt:.9g}" for net, volt in voltages.items()]
    holds = {cell: hold_net(circuit, candidate) for cell, candidate in design.assembly.candidates.items()}
    point, noises = net_noise(circuit, design.technology, lines, list(holds.values()))
    return {cell: noises[net] for cell, net in holds.items()}, point


def held_circuit(design: Design, x: Array, frame: int) -> tuple[Circuit, dict[str, float]]:
    """Run ngspice until just before a frame's last decision, for the noise of that moment.

    Returns the flat circuit with its sources fixed, and net -> V. Raises SimulationError where it cannot be simulated.
    """
    timing = Timing()
    at = timing.start + (frame + timing.closes(len(design.assembly.clocks))[-1] - BEFORE) * timing.t_step
    bench = inference_bench(design, x)
    point = resting_point(bench)
    if isinstance(point, Failure):
        raise SimulationError(f"{bench.circuit.title}: {point}")
    short = replace(bench, probes=(), analysis=replace(bench.transient, end=at))
    vectors: Vectors | Failure = run_deck(format_bench(started(short, point)))
    if isinstance(vectors, Failure):
        raise SimulationError(f"{bench.circuit.title}: {vectors}")
    elements = tuple(_still(element, at) for element in bench.circuit.elements)
    voltages = {net: float(values[-1]) for net, values in vectors.items() if net != "time" and "#" not in net}
    return replace(bench.circuit, elements=elements).flat(), voltages


def _still(element: Element, at: float) -> Element:
    """Return a source fixed at its value at a moment, s, for a noise run in ngspice; other elements as they are."""
    if not (isinstance(element, Source) and isinstance(element.value, tuple)):
        return element
    points = np.array(element.value, dtype=np.float64)  # (count, 2): time and value
    return replace(element, value=float(np.interp(at, points[:, 0], points[:, 1])))


def hold_net(circuit: Circuit, candidate: str) -> str:
    """Return the net at which a run of ngspice reads the noise: the one behind the sample gate of a candidate's net."""
    gates = (mos for mos in circuit.elements if isinstance(mos, Mos) and mos.role == "switch")
    return next(mos.drain for mos in gates if mos.source == candidate)
