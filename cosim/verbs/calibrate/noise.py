"""Noise of a technology's transistors, measured in ngspice once.

Each device that carries a current is measured as a diode: its slope and capacitances by `.ac`, its noise by `.noise`.
The density of the noise current is that of the voltage, V^2/Hz, times |Y|^2, where Y is the diode's admittance by
`.ac`. The thermal part is read below the diode's own pole, flicker at 10 mHz and 1 Hz.
"""

import numpy as np
from numpy.typing import NDArray

from cosim.cells.transistor import TransistorDesign, transistor
from cosim.circuit.deck import format_number
from cosim.circuit.elements import GROUND, Circuit, Source
from cosim.engines.engine import Vectors
from cosim.engines.ngspice.noise import analyse
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
_STEPS, _SEEN = 8, 0.05  # of the separation of both parts; flicker that small has no exponent of its own


def find_noise(technology: Technology, progress: Progress = lambda text: None) -> NoiseFit:
    """Return the noise figures that fit a technology's device cards and sizes: shipped, kept, or newly measured.

    New ones are kept. Raises MissingToolError when they must be measured and ngspice is missing, InputError when the
    library lacks a size.
    """
    lacking = f"no noise figures of {technology.name} fit this version, and new ones need ngspice"
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
        point, conductance, densities = _diode(technology, kind, _drive(kind, technology, current, point), fast)
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


def _drive(kind: str, technology: Technology, current: float, start: Point) -> list[str]:
    """Return lines of a deck: a current source with `ac 1` into a diode, and first guesses of voltages.
    start: net -> first guess, V."""
    ends = "vdd d" if kind.endswith("_n") else "d 0"
    return [
        *_rail(kind, technology),
        f"itest {ends} dc {format_number(current)} ac 1",
        *(f".nodeset v({net})={format_number(volt)}" for net, volt in start.items()),
    ]


def _rail(kind: str, technology: Technology) -> list[str]:
    return [f"vdd vdd 0 {format_number(technology.supply)}"] if kind.endswith("_n") else []


def _rest(technology: Technology, kind: str) -> tuple[Point, float]:
    """Measure a diode-connected transistor at a current of _AT: its net voltages, V, and its capacitance, F."""
    lines = _drive(kind, technology, _AT, {"d": technology.supply / 2})
    point, diode = analyse(_circuit(technology, kind), technology, lines, ["op", f"ac {_single(_FAST)}"])
    return _voltages(point), _farad(1 / diode["d"])


def _diode(technology: Technology, kind: str, lines: list[str], fast: float) -> tuple[Point, float, Array]:
    """Measure a diode-connected transistor: net voltages, V, conductance, S, and noise densities, A^2/Hz.

    lines: of the deck, which drive the transistor. The densities are at _SLOW, _ONE and `fast` Hz.
    """
    asked = [f"{analysis} {_single(hertz)}" for hertz in (_SLOW, _ONE, fast) for analysis in ("noise v(d) itest", "ac")]
    point, *found = analyse(_circuit(technology, kind), technology, lines, ["op", *asked])
    admittances = [1 / abs(signal["d"][0]) for signal in found[1::2]]
    densities = [
        float(noise["onoise_spectrum"][0]) ** 2 * y**2 for noise, y in zip(found[::2], admittances, strict=True)
    ]
    return _voltages(point), float(admittances[0]), np.array(densities)


def _single(hertz: float) -> str:
    return f"lin 1 {format_number(hertz)} {format_number(hertz)}"


def _voltages(point: Vectors) -> Point:
    return {name: float(values[0]) for name, values in point.items() if "#" not in name}


def _capacitances(technology: Technology, kind: str, point: Point) -> tuple[float, float]:
    """Measure the capacitances (gate, drain) of a saturated transistor, F; point: voltages of it as a diode, V."""
    apart, half = _circuit(technology, kind, "d", "g"), technology.supply / 2
    start = [f".nodeset v({net})={format_number(volt)}" for net, volt in point.items() if net not in ("d", "vdd")]

    def seen(at_gate: str, at_drain: str, source: str) -> float:
        ends = [f"vg g 0 dc {format_number(point['d'])}{at_gate}", f"vd d 0 dc {format_number(half)}{at_drain}"]
        (found,) = analyse(apart, technology, [*_rail(kind, technology), *ends, *start], [f"ac {_single(_FAST)}"])
        return _farad(-found[f"{source}#branch"])

    return seen(" ac 1", "", "vg"), seen("", " ac 1", "vd")


def _farad(admittance: NDArray[np.generic]) -> float:
    return float(abs(np.imag(admittance[0])) / (2 * np.pi * _FAST))
