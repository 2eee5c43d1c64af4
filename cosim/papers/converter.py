"""The converters at the cut, and the circuit's network behind them. Free of torch.

The state of a CMRU is a bit at epsilon 0, which a 9T cell keeps, and at epsilon 1 a count of steps of alpha, which a
ladder or a counter keeps. That of an alphaCMRU with levels is the number of one of them, which a register keeps.

What crosses the cut is g = h^ / beta, the candidate over its threshold: software has both, so the circuit's thresholds
are constants, whether beta is learned or made from the input, and a unit takes one converter. Its b bits are L + 1
codes, an odd number, so that 0 is one of them:

    code = rint(L (clip(g, -R, R) + R) / (2 R)) ,  L = 2^b - 2 ,  R = (L / 2) / (j + 1/2)

R is calibrated: the smallest range of this form that has COVER of the candidates seen in training. In this form 1 and
-1 lie half-way between two codes, so rounding and clipping change no decision, at any b; and a current in the circuit
has half a step to either side of its threshold.

A unit of an alphaCMRU takes a second converter, for the value alpha_t that its update stores, with a code for each of
its K + 1 levels. Its first one has 2 bits: 0 and the two ends, which are codes of K steps as well.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosim.base.bounds import CONVERTER_BITS
from cosim.base.errors import InputError
from cosim.network.layers import FULL_SCALE, Array, SignedLayer
from cosim.network.types import InputEncoding, Network, Readout, check_network

BITS, FEWEST_BITS, MOST_BITS = 2, int(CONVERTER_BITS.low), int(CONVERTER_BITS.high)
States = NDArray[np.int16]  # 0 low, 1 high, NEITHER; at epsilon 1 and -1 counts
NEITHER = -1  # a bit before the first update, where software begins at 0
COVER = 0.999  # of the candidates of a unit
CODES_SCALE = 4.0  # units, of the current that carries a code, rounded down to an even number of steps
LEVEL = 1.0  # units, of a state that is high
_GRID = 0.125  # of weights, at most: what the unit devices of a technology are by default
_LARGEST = 1e9  # of g where beta is next to nothing
# 1 itself must be on the upper side of its boundary: by less than single precision has between 1 and what is before it,
# and more than double precision loses in the sum above
_BELOW = 1.0 - 2.0**-40
DECIDED = 2.0 * _BELOW  # the range of a converter of 2 bits, and what an alphaCMRU's candidates beyond a threshold are


@dataclass(frozen=True)
class Partition:
    """A backbone's cell that runs as a circuit.

    cell: the cell's name in the backbone; network: the cell as a network to compile. The network's inputs are g = h^ /
    beta, through converters, then, for an alphaCMRU, the values to store. Its output h is 0 for low and `LEVEL` for
    high, or a count in steps of LEVEL / 2, or a level. bits: of the candidates' converters; clipped: share of the
    candidates seen in training that is out of the converters' range.
    """

    cell: str
    network: Network
    bits: int
    clipped: float

    @property
    def name(self) -> str:
        """Return the cell's name for files: block1, or block1_cell2 if a block has cells in parallel."""
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
        """Tell whether the states of a backbone's cell are counts: it has epsilon 1 or -1."""
        return self.layer.epsilon != 0

    @property
    def has_comparators(self) -> bool:
        """Tell whether comparators decide in the cell's circuit, which is so if the cell counts or stores levels."""
        return self.counts or self.layer.levels is not None

    @property
    def circuits(self) -> str:
        """Return the name of the circuit that keeps the cell's states: registers, ladders or counters, or 9T cells."""
        if self.layer.levels:
            return "registers"
        return {0: "9T cells", 1: "ladders or counters", -1: "toggles or reflectors"}[round(self.layer.epsilon)]

    def read_software(self, h: Array) -> States:
        """Return the integer states (n, time, units), as levels, counts or bits, for the outputs h of the cell's
        network."""
        if self.layer.levels:
            return level_numbers(h, self.layer.levels)
        return (np.rint(h / self.layer.alpha) if self.counts else h > 0).astype(np.int16)

    @property
    def units(self) -> int:
        """Return how many units a backbone's cell has."""
        return self.layer.width

    @property
    def codes(self) -> int:
        """Return the number of codes of a converter for candidates."""
        return steps_of(self.bits) + 1

    @property
    def value_bits(self) -> int:
        """Return the number of bits of a converter for the values that an alphaCMRU stores; 0 for another cell."""
        return self.layer.levels.bit_length() if self.layer.levels else 0

    @property
    def converters(self) -> int:
        """Return the number of converters into the cell's circuit: one for each unit, two for each unit of an
        alphaCMRU."""
        return self.network.encoding.features

    @property
    def ranges(self) -> Array:
        """Return the range R of each unit's converter, which takes g = h^ / beta from -R to R, (units,)."""
        return self.network.encoding.scale[: self.units] / 2.0

    @property
    def thresholds(self) -> Array:
        """Return each unit's threshold in steps of its converter, j + 1/2 with an integer j, (units,)."""
        return self.layer.bias_beta / step_of(self.bits)


def level_numbers(h: Array, levels: int) -> States:
    """Return the numbers, 0 to `levels`, of the levels that a backbone's alphaCMRU stores.

    h: stored values, -1 to 1, any shape.
    """
    return np.rint((np.asarray(h) + FULL_SCALE) * levels / (2 * FULL_SCALE)).astype(np.int16)


def steps_of(bits: int) -> int:
    """Return L = 2^bits - 2, the steps of a converter from its lowest to its highest code.

    Raises InputError for a number of bits that cannot be built.
    """
    if bits not in CONVERTER_BITS:
        raise InputError(
            f"--bits {CONVERTER_BITS.refuse(bits)}: three codes tell set, hold and reset apart, "
            f"and more than {MOST_BITS} bits leave steps under {1000 * step_of(MOST_BITS):g} thousandths of a unit"
        )
    return 2**bits - 2


def step_of(bits: int) -> float:
    """Return the size of one converter step in the circuit's network, in units of full scale (1.0)."""
    return CODES_SCALE / 2**bits


def compared(candidate: np.ndarray, threshold: np.ndarray) -> Array:
    """Return g = candidate / threshold, which decides at 1 and -1 as the candidate does at +-threshold.

    In double precision the quotient of two single-precision numbers is at least 1 exactly if candidate >= threshold.
    For a threshold of 0, g is large, with the sign of the candidate.
    """
    h, beta = np.asarray(candidate, np.float64), np.asarray(threshold, np.float64)
    ratio = np.where(h >= 0, _LARGEST, -_LARGEST)
    np.divide(h, beta, out=ratio, where=beta > 0)
    return np.clip(ratio, -_LARGEST, _LARGEST)


@dataclass(frozen=True)
class KeptStates:
    """The kind of states that a backbone's cell keeps: counts, levels of an alphaCMRU, or else bits.

    epsilon: 1 or -1 for counts, else 0; first: count before the first step; seen: `range_of_states` of the counts in
    training, (2 or 3, units); ends: counts at which the states saturate; levels: of an alphaCMRU, number of levels less
    one.
    """

    epsilon: int = 0
    first: int = 0
    seen: Array | None = None
    ends: tuple[int, int] | None = None
    levels: int | None = None


def calibrate(cell: str, g: Array, bits: int | None = None, kept: KeptStates = KeptStates()) -> Partition:
    """Return a backbone's cell as a circuit whose converters fit the candidates seen in training.

    g: candidates over their thresholds, (frames, units); bits: of the candidates' converters, None for BITS. Raises
    InputError for bits that cannot be built.
    """
    bits = BITS if bits is None else bits
    if kept.levels is not None and bits != BITS:
        raise InputError(f"--bits of an alphaCMRU's candidates is {BITS}, not {bits}; leave it out")
    half, step = steps_of(bits) // 2, step_of(bits)
    reach = np.maximum(np.quantile(np.abs(g), COVER, axis=0), 1e-9)
    j = np.clip(np.floor(half / reach - 0.5), 0, half - 1)
    ranges = _BELOW * half / (j + 0.5)
    width = len(ranges)
    reads = ranges
    if kept.levels is not None:
        reads = np.concatenate([ranges, np.full(width, FULL_SCALE)])
    network = Network(
        InputEncoding(-reads, 2 * reads, levels=kept.levels or 2 * half),
        (_layer(half, step, j, kept),),
        # nothing reads the states as currents: what leaves the circuit are the latches
        Readout(("cell",), np.zeros((1, width)), np.zeros(1), "last"),
        weight_grid=min(_GRID, step),
        state_ranges={} if kept.seen is None else {"cell": LEVEL / 2 * kept.seen},
    )
    return Partition(cell, check_network(network, cell), bits, float((np.abs(g) > ranges).mean()))


def _layer(half: int, step: float, j: Array, kept: KeptStates) -> SignedLayer:
    """Return a backbone's cell as a layer of the circuit's network.

    half: half the converter's steps; step: of the converter, in units of full scale; j: threshold less 1/2, in steps.
    """
    ones, unit = np.ones(len(j)), np.eye(len(j))
    layer = SignedLayer(
        "cell", ("input",), 2 * half * step * unit, -half * step * ones, (j + 0.5) * step, LEVEL / 2 * ones
    )
    if kept.epsilon:
        ends = kept.ends and (kept.ends[0] - kept.first, kept.ends[1] - kept.first)
        return replace(layer, epsilon=float(kept.epsilon), ends=ends, initial=LEVEL / 2 * kept.first * ones)
    if kept.levels is None:
        return layer
    return replace(
        layer, weight=np.hstack([layer.weight, 0 * unit]), weight_alpha=np.hstack([0 * unit, 2 * FULL_SCALE * unit]),
        alpha=-FULL_SCALE * ones, levels=kept.levels, initial=0 * ones,
    )  # fmt: skip
