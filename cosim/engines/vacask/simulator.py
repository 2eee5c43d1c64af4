"""VACASK as one of the simulators: a process for every bench."""

from dataclasses import dataclass

import numpy as np

from cosim.circuit.bench import Bench, Op, Tolerances
from cosim.circuit.dialects.vacask import format_bench, option_texts, printed
from cosim.engines.engine import Description, Failure, Waveforms
from cosim.engines.vacask.process import run_deck
from cosim.engines.vacask.program import find_vacask, vacask_version
from cosim.technology.types import Technology


@dataclass(frozen=True)
class Vacask:
    """VACASK, which stops itself in time and then clears up."""

    name: str = "vacask"
    grace: float = 10.0

    def write(self, bench: Bench) -> str:
        """The deck of a bench."""
        return format_bench(bench)

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Run a bench. Raises MissingToolError without VACASK."""
        vectors = run_deck(format_bench(bench), timeout)
        if isinstance(vectors, Failure):
            return vectors
        time = np.empty(0) if isinstance(bench.analysis, Op) else vectors["time"]
        return Waveforms(time, {probe: vectors[printed(probe)] for probe in bench.probes})

    def check(self) -> None:
        """Raises MissingToolError without VACASK."""
        find_vacask()

    def describe(self, technology: Technology) -> Description:
        """Its version and the options that a deck sets."""
        return Description(vacask_version(), option_texts(Tolerances(), technology))
