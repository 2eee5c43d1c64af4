"""Small signals and noise in ngspice: of a single transistor, of nets of a circuit, or of a network at one moment.

A circuit is analysed by `.ac` and `.noise` at its operating point. For a network at a moment (`held_noise`), an
inference is first simulated to just before its last stage closes. Then the sources are constant, and each latch, which
floats while its cell tracks, is held in its state by 1 TOhm. That makes an operating point whose small signals and
noise are those of the moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.circuit.bench import SMALL_SIGNAL, Current, SmallSignalBench, Voltage, started
from cosim.circuit.deck import format_number
from cosim.circuit.dialects.ngspice import format_bench, format_deck, format_options, format_point
from cosim.circuit.elements import Circuit, Element, Mos, Source
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Design
from cosim.engines.engine import Failure, SmallSignals, Vectors
from cosim.engines.ngspice.process import run_analyses, run_deck
from cosim.engines.ngspice.simulator import resting_point
from cosim.engines.simulation.testbench import inference_bench
from cosim.technology.types import Technology

Array = NDArray[np.float64]
_STIMULUS = "vstimulus stimulus 0 dc 0 ac 1\nrstimulus stimulus 0 1e3\n"  # `.noise` wants an input; it drives nothing
_BAND = f"dec 10 {format_number(1.0)} {format_number(1e7)}"  # frequencies: ten in a decade, from and to Hz
BEFORE = 0.005  # of a frame, before the last stage closes


@dataclass(frozen=True)
class Spectrum:
    """The noise of a net over frequency, by ngspice.

    frequency: (n,), Hz; density: one-sided, (n,), V^2/Hz.
    """

    frequency: Array
    density: Array

    @property
    def variance(self) -> float:
        """Return the variance of the net's noise by ngspice over the spectrum's band, V^2."""
        return float(np.trapezoid(self.density * self.frequency, np.log(self.frequency)))


def analyse(circuit: Circuit, technology: Technology, lines: Sequence[str], analyses: Sequence[str]) -> list[Vectors]:
    """Run ngspice analyses of a circuit and return the vectors of each.

    lines: further lines of SPICE, such as sources with an `ac` value; analyses: commands such as `op`. Raises
    SimulationError where ngspice fails, MissingToolError without libngspice.
    """
    more = "".join(f"{line}\n" for line in lines)
    deck = format_deck(circuit, technology, format_options(SMALL_SIGNAL, technology), more, "all")
    found = run_analyses(deck, analyses)
    if isinstance(found, Failure):
        raise SimulationError(f"{circuit.title}: {found}")
    return found


def small_signals(bench: SmallSignalBench) -> SmallSignals:
    """Compute in ngspice the small signals of a circuit, and the noise of a net. Raises the errors of `analyse`.

    ngspice's noise analysis wants to know which source is the input; the density at the net does not depend on it.
    """
    drive = bench.drive
    lines = [
        f"{drive.kind}{drive.name} {drive.a} {drive.b} dc {format_number(float(np.asarray(drive.value)))} ac 1",
        *format_point(bench.start),
    ]
    noise = [f"noise v({bench.noisy}) {drive.kind}{drive.name}"] if bench.noisy else []
    asked = [f"{what} lin 1 {format_number(f)} {format_number(f)}" for f in bench.hertz for what in ("ac", *noise)]
    point, *found = analyse(bench.circuit, bench.technology, lines, ["op", *asked])
    signals = found[:: len(noise) + 1]
    response: dict[Voltage | Current, NDArray[np.complex128]] = {}
    for name in signals[0].keys() - {"frequency"}:
        probe = Current(name[1:].removesuffix("#branch")) if name.endswith("#branch") else Voltage(name)
        response[probe] = np.array([complex(one[name][0]) for one in signals])
    densities = [float(one["onoise_spectrum"][0]) ** 2 for one in found[1::2]] if noise else []
    return SmallSignals(
        {name: float(values[0]) for name, values in point.items() if "#" not in name}, response, np.array(densities)
    )


def net_noise(
    circuit: Circuit, technology: Technology, lines: Sequence[str], nets: Sequence[str]
) -> tuple[dict[str, float], dict[str, Spectrum]]:
    """Simulate in ngspice a circuit's operating point, net -> V, and the noise of each of `nets`.

    lines: further lines of SPICE. Raises the errors of `analyse`.
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
    """Simulate in ngspice the noise of memories' hold nodes just before the last decision of a frame.

    x: raw sample, (time, features). Returns memory -> noise, and net -> V at that moment. Raises SimulationError where
    ngspice fails, MissingToolError without libngspice.
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
    """Simulate a sample in ngspice until just before a frame's last decision, for the noise of that moment.

    Returns the flat circuit with its sources fixed at that moment, and net -> V. Raises SimulationError where ngspice
    fails.
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
    """Return a source with its value at the moment `at`, s, for noise in ngspice; other elements unchanged."""
    if not (isinstance(element, Source) and isinstance(element.value, tuple)):
        return element
    points = np.array(element.value, dtype=np.float64)  # (count, 2): time and value
    return replace(element, value=float(np.interp(at, points[:, 0], points[:, 1])))


def hold_net(circuit: Circuit, candidate: str) -> str:
    """Return the net behind the sample gate of a candidate's net, where ngspice reads the noise."""
    gates = (mos for mos in circuit.elements if isinstance(mos, Mos) and mos.role == "switch")
    return next(mos.drain for mos in gates if mos.source == candidate)
