"""Small signals and noise in ngspice: what `.ac` and `.noise` say of one transistor, and of any net of a circuit."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.circuit.bench import Tolerances
from cosim.circuit.deck import format_number
from cosim.circuit.dialects.ngspice import format_deck, format_options
from cosim.circuit.elements import Circuit
from cosim.engines.engine import Failure, Vectors
from cosim.engines.ngspice.session import run_analyses
from cosim.technology.types import Technology

Array = NDArray[np.float64]
_TOLERANCES = Tolerances(gmin=1e-14)  # tighter ones end in no operating point where self-cascodes carry picoamperes
_STIMULUS = "vstimulus stimulus 0 dc 0 ac 1\nrstimulus stimulus 0 1e3\n"  # `.noise` wants an input; it drives nothing


@dataclass(frozen=True)
class FrequencyBand:
    """Frequencies of an ngspice analysis, Hz, so many in a decade."""

    low: float = 1.0
    high: float = 1e7
    points: int = 10

    def __str__(self) -> str:
        return f"dec {self.points} {format_number(self.low)} {format_number(self.high)}"


@dataclass(frozen=True)
class Spectrum:
    """Noise of a net over frequency, by ngspice: Hz, and V^2/Hz."""

    frequency: Array
    density: Array

    @property
    def variance(self) -> float:
        """Return the net's noise by ngspice, V^2, over the band that was asked for."""
        return float(np.trapezoid(self.density * self.frequency, np.log(self.frequency)))


def analyse(circuit: Circuit, technology: Technology, lines: Sequence[str], analyses: Sequence[str]) -> list[Vectors]:
    """Run ngspice analyses of a circuit with further lines of SPICE, such as sources with an `ac` value.

    Raises SimulationError where ngspice fails, MissingToolError without it.
    """
    more = "".join(f"{line}\n" for line in lines)
    deck = format_deck(circuit, technology, format_options(_TOLERANCES, technology), more, "all")
    found = run_analyses(deck, analyses)
    if isinstance(found, Failure):
        raise SimulationError(f"{circuit.title}: {found.kind.value}: {found.detail}")
    return found


def net_noise(
    circuit: Circuit,
    technology: Technology,
    lines: Sequence[str],
    nets: Sequence[str],
    band: FrequencyBand = FrequencyBand(),
) -> tuple[dict[str, float], dict[str, Spectrum]]:
    """Return, by ngspice, a circuit's operating point, net -> V, and the noise of each of `nets`, V^2/Hz.

    Raises as `analyse`.
    """
    asked = ["op", *(f"noise v({net}) vstimulus {band}" for net in nets)]
    point, *spectra = analyse(circuit, technology, [_STIMULUS.rstrip(), *lines], asked)
    voltages = {name: float(values[0]) for name, values in point.items() if "#" not in name}
    noises = {
        net: Spectrum(found["frequency"], found["onoise_spectrum"] ** 2)
        for net, found in zip(nets, spectra, strict=True)
    }
    return voltages, noises
