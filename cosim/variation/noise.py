"""Settings of device noise in a run, and the normal random numbers of its decisions.

A number is made from a hash of seed, chip, draw, cell, sample and frame. So it does not depend on what else runs or on
the number of workers. The hash of sample and frame is the finaliser of SplitMix64 (G. L. Steele, D. Lea and C. H.
Flood, OOPSLA 2014).
"""

from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.waveforms import Timing
from cosim.technology.noise import NoiseFit

Array = NDArray[np.float64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, eq=False)
class NoiseSimulation:
    """Settings and random numbers of device noise in a run.

    fit: noise measured on the technology's devices; card: take the thermal noise of the model cards, not that of
    physics; seed, chip, draw: select the random numbers; flat: if positive, standard deviation of the noise of every
    candidate, A, in place of the devices' noise; samples: (n,) indices of the samples in the full test set, empty for
    0, 1, 2, ...; timing: of the frames.
    """

    fit: NoiseFit
    seed: int = 0
    card: bool = False
    chip: int = 0
    draw: int = 0
    flat: float = 0.0
    samples: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    timing: Timing = Timing()

    @property
    def slopes(self) -> tuple[float, float]:
        """Return the slope factors I / (g_m U_T), for device noise, of a cell's n and p devices in weak inversion."""
        return self.fit.devices["cell_n"].slopes[0], self.fit.devices["cell_p"].slopes[0]

    def key(self, sample: int) -> int:
        """Return a 64-bit number that selects the noise of the transistors in a simulation of this sample."""
        text = f"{self.seed} {self.chip} {self.draw} {sample} transistors"
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")

    def normals(self, cell: str, shape: tuple[int, int], first: int = 0) -> Array:
        """Return a standard normal number for each decision of a cell, (n, time).

        shape: n samples, time frames; first: number of the first frame.
        """
        from scipy.special import ndtri  # as in cosim.variation.draws

        n, time = shape
        samples = self.samples if len(self.samples) else np.arange(n)
        digest = blake2b(f"{self.seed} {self.chip} {self.draw} {cell} noise".encode(), digest_size=8).digest()
        places = (samples.astype(np.uint64)[:, None] << np.uint64(32)) + np.arange(first, first + time, dtype=np.uint64)
        with np.errstate(over="ignore"):  # whole numbers of 64 bits wrap around
            mixed = _mix(_mix(places + _GOLDEN) * _GOLDEN + np.uint64(int.from_bytes(digest, "big")))
        return ndtri(((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
