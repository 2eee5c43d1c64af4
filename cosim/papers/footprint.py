"""Memory footprint of a network: parameters, and the past that its convolutions read (mGRADE, app. B).

    parameters   encoder, decoder; in each layer K H taps, or 2 K H with learned positions (12),
                 minGRU 2 H^2 + 2 H (14), MLP 4 H^2 + 3 H (15), norm 2 H (16)
    buffer       H S numbers, S = sum over layers of the largest delay in use (19, which has a factor L too many)

On the chip a delay of one bit by one frame is a shift cell, and a channel takes as many as its largest delay; so what
is counted is the deployed network, with delays that no tap reads left out. The encoder is linear and without memory, so
what its channels delay the inputs may delay in their place: bits where the channels are not.
"""

import math
from dataclasses import dataclass

from cosim.base.errors import InputError
from cosim.papers.delays import FixedDelays, LearnedDelays
from cosim.papers.gamma import GammaDelays
from cosim.papers.mgrade import Mgrade

WORD = 32
PARTS: tuple[str, ...] = ("encoder", "convolution", "cell", "mlp", "norm", "decoder")
CELL_TRANSISTORS = 20
CELL_POWER = 3.3  # W per ampere of unit current, at 1.8 V and random bits: 3.3 nW at 1 nA


@dataclass(frozen=True)
class Footprint:
    """Numbers kept, and their bits: of parameters, and of past signals."""

    parameters: int
    buffer: int
    parameter_bits: int
    buffer_bits: int

    @property
    def total(self) -> int:
        """Numbers."""
        return self.parameters + self.buffer


@dataclass(frozen=True)
class Silicon:
    """The delays as circuits. cells: that shift a bit; filters: of dispersive lines; capacitance in fF, power in W."""

    cells: int
    filters: int
    transistors: int
    capacitance: float
    power: float


def memory_footprint(model: Mgrade, signal_bits: int = WORD, *, widths: bool = False) -> Footprint:
    """Count numbers and bits of the deployed model.

    signal_bits: of a number in the buffer, 1 for symbols and states of one bit. A learned position is kept as a whole
    number of ceil(log2(reach + 1)) bits, everything else in 32. widths: count a third number for each learned tap, its
    width, of 32 bits; the paper's tables are met with it. A dispersive delay keeps the states of its filters.
    """
    if signal_bits < 1:
        raise InputError(f"signal_bits must be at least 1, not {signal_bits}")
    parameters = bits = buffer = 0
    for value in model.parameters():
        parameters += value.numel()
        bits += WORD * value.numel()
    width = model.shape.width
    for one in model.convolutions:
        if isinstance(one, LearnedDelays):
            taps = one.positions.numel()
            bits -= taps * (WORD - math.ceil(math.log2(one.reach + 1)))
            parameters += taps * widths
            bits += WORD * taps * widths
        if isinstance(one, LearnedDelays | FixedDelays):
            buffer += width * int(one.used().max())
        elif isinstance(one, GammaDelays):
            buffer += one.positions.numel() * one.order
    return Footprint(parameters, buffer, bits, signal_bits * buffer)


def silicon_footprint(
    model: Mgrade, unit_current: float, hold_capacitance: float, filter_capacitance: float = 1e-12
) -> Silicon:
    """Count the taps of a model on signals of one bit as shift cells: 20 transistors and 3.3 nW each at 1 nA.

    Of the first layer's taps each input takes the largest delay. Channels of later layers take their own, and must be
    bits to be built so: the states of a bistable cell without what skips it.
    hold_capacitance: of each cell, F, as a technology has it; filter_capacitance: of each filter of a dispersive line,
    whose transistors and power are those of the line and not counted. Rows, recurrence and readout are not counted.
    """
    if not (unit_current > 0 and hold_capacitance > 0 and filter_capacitance > 0):
        raise InputError(
            f"unit current and capacitances must be positive, not {unit_current:g} A, {hold_capacitance:g} F and "
            f"{filter_capacitance:g} F"
        )
    cells = filters = 0
    for place, one in enumerate(model.convolutions):
        if isinstance(one, LearnedDelays | FixedDelays):
            cells += int(one.used().sum()) if place else model.shape.inputs * int(one.used().max())
        elif isinstance(one, GammaDelays):
            filters += one.positions.numel() * one.order
    capacitance = 1e15 * (cells * hold_capacitance + filters * filter_capacitance)
    return Silicon(cells, filters, cells * CELL_TRANSISTORS, capacitance, cells * CELL_POWER * unit_current)


def parameters_by_part(model: Mgrade) -> dict[str, int]:
    """Return the numbers of parameters of encoder, convolutions, recurrence, MLP, norm and decoder, over all layers."""
    found: dict[str, int] = dict.fromkeys(PARTS, 0)
    for name, value in model.named_parameters():
        part = next(part for part in found if part in name.split("."))
        found[part] += value.numel()
    return found
