"""The circuit simulators by name: a transient run as a deck of each, and one function that runs it.

Whatever runs, a deck is text that needs nothing else, what comes back are waveforms under the same names (ngspice's:
`x.net`, `vsource#branch`) or a Failure, and a source's current counts from its first net through it to the second.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cosim.circuit.deck import fold, format_number
from cosim.circuit.elements import Circuit
from cosim.engines.exercise import Bench, format_vacask, vacask_options
from cosim.engines.ngspice.options import DEFAULT_OPTIONS, SimulatorOptions, describe_simulator, format_deck
from cosim.engines.ngspice.rest import run_from_rest
from cosim.engines.outcome import Failure, Waveforms
from cosim.engines.vacask.process import run_vacask
from cosim.engines.vacask.program import SimulatorName, vacask_version
from cosim.technology.types import Technology

_GRACE = 10.0  # s in which a simulator that stops itself in time also clears up


@dataclass(frozen=True)
class Simulator:
    """deck: text of a circuit's transient run; run: of a deck, in at most so many seconds; grace: further seconds.

    describe: version, under the simulator's name, and options in effect, for whoever reads the results later. `run` may
    leave the time-out to whoever called it, as ngspice does, which runs in the caller's own process.
    """

    deck: Callable[[Circuit, Bench, Technology, SimulatorOptions], str]
    run: Callable[[str, float], Waveforms | Failure]
    describe: Callable[[Technology], dict[str, Any]]
    grace: float = 0.0


def _ngspice_deck(circuit: Circuit, bench: Bench, technology: Technology, options: SimulatorOptions) -> str:
    step = format_number(bench.step)
    analysis = [f".tran {step} {format_number(bench.end)} 0e+00 {step}"]
    if bench.preset:
        supply = format_number(technology.supply)
        analysis = fold(f".ic {' '.join(f'v({net})={supply}' for net in bench.preset)}") + analysis
    return format_deck(circuit, technology, options, "\n".join(analysis), " ".join(bench.saved))


def _describe_vacask(technology: Technology) -> dict[str, Any]:
    return {"vacask": vacask_version(), "options": vacask_options(technology, DEFAULT_OPTIONS)}


SIMULATORS: Mapping[SimulatorName, Simulator] = {
    "ngspice": Simulator(_ngspice_deck, lambda deck, timeout: run_from_rest(deck), describe_simulator),
    "vacask": Simulator(format_vacask, run_vacask, _describe_vacask, _GRACE),
}
