"""Noise of a technology's transistors, measured in its reference simulator once.

Each device that carries a current is measured as a diode: its slope and capacitances by small signals, its noise by a
noise analysis. The density of the noise current is that of the voltage, V^2/Hz, times |Y|^2, where Y is the diode's
admittance. The thermal part is read below the diode's own pole, flicker at 10 mHz and 1 Hz.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.bench import Current, SmallSignalBench, Voltage
from cosim.circuit.elements import GROUND, Circuit, Source
from cosim.engines.engine import SmallSignals
from cosim.engines.simulation.inference import compute_small_signals
from cosim.engines.table import reference_simulator
from cosim.technology.noise import KINDS, NOISE_FILE, DeviceNoise, NoiseFit
from cosim.technology.types import HOLD_CAPACITANCE, Technology
from cosim.verbs.calibrate.decision import measure_decision
from cosim.verbs.calibrate.find import Progress
from cosim.verbs.calibrate.fingerprint import circuits_fingerprint, simulator_version

Array = NDArray[np.float64]
Point = dict[str, float]  # net -> V
_CHARGE = 1.602176634e-19  # C
CURRENTS = (5e-12, 1e-11, 3e-11, 1e-10, 3e-10, 1e-9, 3e-9, 1e-8)  # A, of one unit device
_AT = 1e-9  # A, where capacitances are taken
_SLOW, _ONE, _FAST = 1e-2, 1.0, 1e6  # Hz
_BELOW = 0.1  # of a diode's own pole, where its thermal noise is read: above it other parasitics show
_STEPS, _SEEN = (
    8,
    0.05,
)  # of the separation; below this share of the thermal part the exponent stays as it was


def find_noise(technology: Technology, progress: Progress = lambda text: None) -> NoiseFit:
    """Return the noise figures that fit a technology's device cards and sizes: shipped, kept, or newly measured.

    New ones are kept. Raises MissingToolError when they must be measured and the reference simulator is missing,
    InputError when the library lacks a size.
    """
    lacking = (
        f"no noise figures of {technology.name} fit this version, and new ones need {reference_simulator(technology)}"
    )
    name = f"{technology.name}.{'flicker.' if technology.flicker == 'worst' else ''}noise.json"
    fingerprint = noise_fingerprint(technology)
    return NOISE_FILE.find(name, fingerprint, lambda: measure_noise(technology, progress), lacking, progress)


def noise_fingerprint(technology: Technology) -> str:
    """Return the fingerprint of a technology's noise figures; they must be measured again when it changes.

    It is a hash of the device cards, sizes and conditions that the figures follow from.
    """
    circuits = {kind: _circuit(technology, kind) for kind in KINDS}
    content = {
        "format": NOISE_FILE.format,
        "sizes": {kind: [(mos.w, mos.l) for mos in circuit.flatten()] for kind, circuit in circuits.items()},
        "currents": CURRENTS,
        **({} if technology.hold_capacitance == HOLD_CAPACITANCE else {"hold": technology.hold_capacitance}),
    }
    return circuits_fingerprint(technology, circuits.values(), content)


def measure_noise(technology: Technology, progress: Progress = lambda text: None) -> NoiseFit:
    """Measure the noise of all device kinds of a technology, and its decision node.
    Raises SimulationError or MissingToolError."""
    version = simulator_version(technology)
    devices = dict[str, DeviceNoise]()
    for kind in KINDS:
        progress(f"noise: {kind}")
        devices[kind] = _measure(technology, kind)
    progress("noise: decision node")
    decision = measure_decision(technology, float(devices["cell_p"].slope(_AT)))
    return NoiseFit(technology.name, noise_fingerprint(technology), version, technology.celsius, devices, decision)


def _measure(technology: Technology, kind: str) -> DeviceNoise:
    point, diode = _rest(technology, kind)
    gate, drain = _capacitances(technology, kind, point)
    slopes, parts = list[float](), list[tuple[float, float, float]]()
    for current in reversed(CURRENTS):  # each begins where the one before it was
        fast = _BELOW * current / (technology.thermal_voltage * 2 * np.pi * diode)
        point, conductance, densities = _diode(technology, kind, current, point, fast)
        slopes.insert(0, current / conductance / technology.thermal_voltage)
        parts.insert(0, _parts(densities / (2 * _CHARGE * current), fast))
    thermal, flicker, exponents = zip(*parts, strict=True)
    return DeviceNoise(
        CURRENTS, tuple(slopes), thermal, flicker, exponents[int(np.argmax(flicker))], gate, drain, diode
    )


def _parts(densities: Array, fast: float) -> tuple[float, float, float]:
    """Split a device's noise densities into (thermal part, flicker at 1 Hz, exponent of flicker).

    densities: at _SLOW, _ONE and `fast` Hz.
    """
    slow, one, both = densities.tolist()
    thermal, flicker, exponent = both, 0.0, 1.0
    for _ in range(_STEPS):
        flicker = max(one - thermal, 0.0)
        if flicker > _SEEN * thermal:
            exponent = float(np.log((slow - thermal) / flicker) / np.log(_ONE / _SLOW))
        thermal = max(both - flicker * fast**-exponent, 0.0)
    return thermal, flicker, exponent


def _circuit(technology: Technology, kind: str, drain: str = "d", gate: str = "d") -> Circuit:
    """Return a circuit of one device between its drain and its rail, together with the supply; kind: of the device."""
    polarity = "n" if kind.endswith("_n") else "p"
    devices = transistor("device", TransistorDesign("inner", polarity, getattr(technology.sizing, kind)), drain, gate)
    supply = Source("dd", "v", "vdd", GROUND, technology.supply)
    return Circuit(f"{kind} of {technology.name}", (), (*devices, *((supply,) if polarity == "p" else ())))


def _small_signals(bench: SmallSignalBench, start: Point) -> SmallSignals:
    """Compute the small signals of a bench from first guesses of its nets; start: net -> V, also of other nets."""
    nets = {net for mos in bench.circuit.flatten() for net in (mos.drain, mos.source)} - {"vdd", GROUND}
    known = tuple((net, volt) for net, volt in start.items() if net in nets)
    return compute_small_signals(replace(bench, start=known))


def _driven(technology: Technology, kind: str, current: float, start: Point, hertz: tuple[float, ...]) -> SmallSignals:
    """Compute small signals and noise of a diode-connected transistor, into which a source drives a current, A."""
    ends = (GROUND, "d") if kind.endswith("_n") else ("d", GROUND)
    drive = Source("test", "i", *ends, current)
    return _small_signals(SmallSignalBench(_circuit(technology, kind), technology, drive, hertz, "d"), start)


def _rest(technology: Technology, kind: str) -> tuple[Point, float]:
    """Measure a diode-connected transistor at a current of _AT: its net voltages, V, and its capacitance, F."""
    found = _driven(technology, kind, _AT, {"d": technology.supply / 2}, (_FAST,))
    return dict(found.point), _farad(1 / found.response[Voltage("d")])


def _diode(technology: Technology, kind: str, current: float, start: Point, fast: float) -> tuple[Point, float, Array]:
    """Measure a diode-connected transistor: net voltages, V, conductance, S, and noise densities, A^2/Hz.

    start: net -> first guess, V. The densities are at _SLOW, _ONE and `fast` Hz.
    """
    found = _driven(technology, kind, current, start, (_SLOW, _ONE, fast))
    admittances = 1 / np.abs(found.response[Voltage("d")])
    return dict(found.point), float(admittances[0]), found.noise * admittances**2


def _capacitances(technology: Technology, kind: str, point: Point) -> tuple[float, float]:
    """Measure the capacitances (gate, drain) of a saturated transistor, F; point: voltages of it as a diode, V."""
    apart = _circuit(technology, kind, "d", "g")
    ends = {"g": point["d"], "d": technology.supply / 2}

    def seen(end: str) -> float:
        drive, *fixed = (Source(net, "v", net, GROUND, ends[net]) for net in sorted(ends, key=lambda net: net != end))
        circuit = replace(apart, elements=(*apart.elements, *fixed))
        found = _small_signals(SmallSignalBench(circuit, technology, drive, (_FAST,)), {**point, **ends})
        return _farad(-found.response[Current(end)])

    return seen("g"), seen("d")


def _farad(admittance: NDArray[np.complex128]) -> float:
    return float(abs(admittance[0].imag) / (2 * np.pi * _FAST))
