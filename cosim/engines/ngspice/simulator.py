"""ngspice as one of the simulators: in this process, from the resting point where a bench has one."""

from dataclasses import dataclass

from cosim.circuit.bench import Bench, Tolerances
from cosim.circuit.dialects.ngspice import format_bench, format_options
from cosim.engines.engine import Description, Failure, Waveforms
from cosim.engines.ngspice.library import effective_options, find_ngspice_library, ngspice_version
from cosim.engines.ngspice.rest import run_from_rest
from cosim.engines.ngspice.session import run_bench
from cosim.technology.types import Technology


@dataclass(frozen=True)
class Ngspice:
    """ngspice in this process; a run that takes too long ends with the process, which is up to the caller."""

    name: str = "ngspice"
    grace: float = 0.0

    def write(self, bench: Bench) -> str:
        """The deck of a bench."""
        return format_bench(bench)

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Run a bench. Raises MissingToolError without libngspice."""
        return run_from_rest(bench) if bench.from_rest else run_bench(bench)

    def check(self) -> None:
        """Raises MissingToolError without libngspice."""
        find_ngspice_library()

    def describe(self, technology: Technology) -> Description:
        """ngspice's version, and all of its options in effect as it lists them, those included that no deck sets."""
        library = find_ngspice_library()
        deck = f"* options\nv1 a 0 1\nr1 a 0 1\n{format_options(Tolerances(), technology)}.op\n.end\n"
        return Description(ngspice_version(library), effective_options(library, deck))
