"""The converters at the cut, one for each unit, and the circuit's network behind them. Free of torch.

At epsilon 0 a unit's state is a bit, at epsilon 1 a count of steps of alpha, which a ladder or a counter keeps.

What crosses the cut is g = h^ / beta, the candidate over its threshold: software has both, so the circuit's thresholds
are constants, whether beta is learned or made from the input, and a unit takes one converter. Its b bits are L + 1
codes, an odd number, so that 0 is one of them:

    code = rint(L (clip(g, -R, R) + R) / (2 R)) ,  L = 2^b - 2 ,  R = (L / 2) / (j + 1/2)

R is calibrated: the smallest range of this form that has COVER of the candidates seen in training. In this form 1 and
-1 lie half-way between two codes, so rounding and clipping change no decision, at any b; and a current in the circuit
has half a step to either side of its threshold.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.base.bounds import CONVERTER_BITS
from cosim.base.errors import InputError
from cosim.network.layers import Array, SignedLayer
from cosim.network.types import InputEncoding, Network, Readout, check_network

BITS, FEWEST_BITS, MOST_BITS = 2, int(CONVERTER_BITS.low), int(CONVERTER_BITS.high)
States = NDArray[np.int16]  # 0 low, 1 high, NEITHER; at epsilon 1 counts
NEITHER = -1  # a bit before the first update, where software begins at 0
COVER = 0.999  # of the candidates of a unit
FULL_SCALE = 4.0  # units, of the current that carries a code, rounded down to an even number of steps
LEVEL = 1.0  # units, of a state that is high
_GRID = 0.125  # of weights, at most: what the unit devices of a technology are by default
_LARGEST = 1e9  # of g where beta is next to nothing
# 1 itself must be on the upper side of its boundary: by less than single precision has between 1 and what is before it,
# and more than double precision loses in the sum above
_BELOW = 1.0 - 2.0**-40


@dataclass(frozen=True)
class Partition:
    """A cell of a backbone that is a circuit. cell: its name there; network: what is compiled, whose encoding holds the
    converters and reads g, and whose states are 0 for low and `LEVEL` for high, or steps of half of that; clipped: the
    share of the candidates seen in training that is out of range; first: the count before the first step."""

    cell: str
    network: Network
    bits: int
    clipped: float
    first: int = 0

    @property
    def name(self) -> str:
        """Return the name in files of a backbone's cell: block1, or block1_cell2 where cells are side by side."""
        numbers = [int(word) + 1 for word in self.cell.split(".") if word.isdigit()]
        return "_cell".join([f"block{numbers[0]}", *map(str, numbers[1:])])

    @property
    def layer(self) -> SignedLayer:
        """Return the only layer of the network of a backbone's cell."""
        (layer,) = self.network.layers
        assert isinstance(layer, SignedLayer)
        return layer

    @property
    def counts(self) -> bool:
        """Tell whether the states of a backbone's cell are counts: it has epsilon 1."""
        return self.layer.epsilon == 1

    def read_software(self, h: Array) -> States:
        """Return the states of a backbone's cell from h of its network, (n, time, units)."""
        if not self.counts:
            return (h > 0).astype(np.int16)
        return (np.rint(h / self.layer.alpha) + 1 + self.first).astype(np.int16)

    @property
    def ranges(self) -> Array:
        """Return the converter's range R of each unit of a backbone's cell, over its threshold."""
        return self.network.encoding.scale / 2.0

    @property
    def thresholds(self) -> Array:
        """Return j + 1/2 of each unit of a backbone's cell: its threshold in steps of its converter."""
        return self.layer.bias_beta / step_of(self.bits)


def steps_of(bits: int) -> int:
    """Return the steps L of the converter between backbone and cell. Raises InputError for one that cannot be built."""
    if bits not in CONVERTER_BITS:
        raise InputError(
            f"--bits {CONVERTER_BITS.refuse(bits)}: three codes tell set, hold and reset apart, "
            f"and more than {MOST_BITS} bits leave steps under {1000 * step_of(MOST_BITS):g} thousandths of a unit"
        )
    return 2**bits - 2


def step_of(bits: int) -> float:
    """Return the size of one step of the converter between a backbone and its cell, in software units."""
    return FULL_SCALE / 2**bits


def compared(candidate: np.ndarray, threshold: np.ndarray) -> Array:
    """Return g = h^ / beta of a backbone's cell, with which a threshold of 1 decides as beta does with h^.

    In double precision a quotient of single ones is at least 1 exactly where h^ >= beta. Where beta is 0, g has the
    sign that decides.
    """
    h, beta = np.asarray(candidate, np.float64), np.asarray(threshold, np.float64)
    ratio = np.where(h >= 0, _LARGEST, -_LARGEST)
    np.divide(h, beta, out=ratio, where=beta > 0)
    return np.clip(ratio, -_LARGEST, _LARGEST)


def calibrate(cell: str, g: Array, bits: int = BITS, counted: Array | None = None, first: int = 0) -> Partition:
    """Return a backbone's cell as a circuit, with converters for the drives g (frames, units) that it has seen.

    counted: smallest and largest count seen, (2, units), for a cell at epsilon 1; first: that before the first step.
    """
    half, step = steps_of(bits) // 2, step_of(bits)
    reach = np.maximum(np.quantile(np.abs(g), COVER, axis=0), 1e-9)
    j = np.clip(np.floor(half / reach - 0.5), 0, half - 1)
    ranges = _BELOW * half / (j + 0.5)
    width = len(ranges)
    layer = SignedLayer(
        "cell",
        ("input",),
        weight=2 * half * step * np.eye(width),
        bias=np.full(width, -half * step),
        bias_beta=(j + 0.5) * step,
        alpha=np.full(width, LEVEL / 2),
        epsilon=0.0 if counted is None else 1.0,
    )
    network = Network(
        InputEncoding(-ranges, 2 * ranges, levels=2 * half),
        (layer,),
        # nothing reads the states as currents: what leaves the circuit are the latches
        Readout(("cell",), np.zeros((1, width)), np.zeros(1), "last"),
        weight_grid=min(_GRID, step),
        state_ranges={} if counted is None else {"cell": LEVEL / 2 * (counted - first - 1)},
    )
    return Partition(cell, check_network(network, cell), bits, float((np.abs(g) > ranges).mean()), first)
