"""Deviations of a chip in the behavioral model: factors of currents."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cosim.network.ir.graph import Edge


@dataclass(frozen=True)
class Deviations:
    """One drawn chip's factors of currents in the behavioral model; what is absent is 1, that is, nominal.

    lines_p, lines_n: signal -> what its gate line p or n delivers
    weights: (source, target) -> that weight
    cells: memory -> the factors of its kind of unit
    betas: (source, memory) -> (into the threshold line, into the width line)
    pedestals: memory -> what its state of 0 carries
    symbols: input or memory -> what its line p delivers in its symbol comparator, over the threshold
    """

    lines_p: Mapping[str, float] = field(default_factory=dict[str, float])
    lines_n: Mapping[str, float] = field(default_factory=dict[str, float])
    weights: Mapping[Edge, float] = field(default_factory=dict[Edge, float])
    cells: Mapping[str, object] = field(default_factory=dict[str, object])
    betas: Mapping[Edge, tuple[float, float]] = field(default_factory=dict[Edge, tuple[float, float]])
    pedestals: Mapping[str, float] = field(default_factory=dict[str, float])
    symbols: Mapping[str, float] = field(default_factory=dict[str, float])
