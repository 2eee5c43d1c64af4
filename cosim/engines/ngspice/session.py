"""Decks in ngspice: what a bench or a deck gives, by the names that ngspice has for it."""

from collections.abc import Sequence
from math import inf

import numpy as np

from cosim.circuit.bench import Bench, Dc, Op
from cosim.circuit.dialects.ngspice import format_bench, vector
from cosim.engines.engine import Failure, Vectors, Waveforms
from cosim.engines.ngspice.process import Request, ask_ngspice


def run_bench(bench: Bench, timeout: float = inf) -> Waveforms | Failure:
    """Simulate a bench in ngspice as it is written, as `run_deck` does."""
    vectors = run_deck(format_bench(bench), timeout)
    if isinstance(vectors, Failure):
        return vectors
    match bench.analysis:
        case Op():
            axis = np.empty(0)
        case Dc(kind):
            axis = vectors[f"{kind}-sweep"]
        case _:
            axis = vectors["time"]
    nested = bool(bench.circuit.subcircuits)
    return Waveforms(axis, {probe: vectors[vector(probe, nested=nested)] for probe in bench.probes})


def run_deck(deck: str, timeout: float = inf) -> Vectors | Failure:
    """Load a deck in ngspice, run the analysis it asks for, and return its saved vectors by lower-case name.

    The deck carries its own `.options`, `.save` and one analysis line; timeout: seconds of processor time, inf for any
    number. Raises MissingToolError without libngspice.
    """
    found = ask_ngspice(Request(deck), timeout)
    return found if isinstance(found, Failure) else found[0]


def run_analyses(deck: str, analyses: Sequence[str]) -> list[Vectors] | Failure:
    """Load a deck in ngspice once and run analyses on it, such as `noise v(out) v1 dec 10 1 1e6`.

    Returns the vectors of each one's first plot, complex ones as they are. Raises MissingToolError without libngspice.
    """
    return ask_ngspice(Request(deck, tuple(analyses)))
