"""A unit's rows of the mapping report: the pins that make its thresholds and its level."""

from dataclasses import dataclass

from cosim.ir.nodes import MemoryCurrents


@dataclass(frozen=True)
class LearnedParameters:
    """upper, lower, alpha: names of what was learned; above, below: how the circuit's thresholds came from that;
    asked: the set-points in ampere; pins: the bias pins of the cell, in the order of its record."""

    upper: str
    lower: str
    alpha: str
    above: str
    below: str
    asked: MemoryCurrents
    pins: tuple[str, ...]


@dataclass(frozen=True)
class PinRow:
    """A learned parameter, the pin that makes it, the current wanted at the cell and the one on the pin, ampere."""

    parameter: str
    pin: str
    target: float
    realised: float
    note: str
