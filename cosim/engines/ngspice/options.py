"""The simulator's tolerances: explicit in every deck, and in every report.

ngspice's defaults are made for milliampere: gmin 1e-12 alone adds 2.5 pA of leakage that no device has.
"""

from dataclasses import dataclass
from typing import Any

from cosim.circuit.deck import device_sizes, format_circuit, format_number
from cosim.circuit.elements import Circuit
from cosim.engines.ngspice.library import effective_options, find_ngspice_library, ngspice_version
from cosim.technology.devices import device_cards
from cosim.technology.types import Technology


@dataclass(frozen=True)
class SimulatorOptions:
    """ngspice `.options`: siemens, ampere, volt, coulomb; reltol and trtol relative.

    xmu: weight of the trapezoidal rule, 0.5 undamped; below that its ringing after a switch event dies out.
    `bypass` is off in every deck; `cosim.engines.ngspice.rest` switches it on where it is safe.
    """

    gmin: float = 1e-16
    abstol: float = 1e-15
    vntol: float = 1e-6
    chgtol: float = 1e-17
    reltol: float = 1e-4
    trtol: float = 20.0
    xmu: float = 0.4


DEFAULT_OPTIONS = SimulatorOptions()
PRECISE_OPTIONS = SimulatorOptions(abstol=1e-17, vntol=1e-8, chgtol=1e-19, reltol=1e-5, trtol=1.0, xmu=0.5)


def format_options(options: SimulatorOptions, technology: Technology, bypass: bool = False) -> str:
    """The `.options` and `.temp` lines; `bypass` where the operating point is known, see cosim.engines.ngspice.rest."""
    fields = ("gmin", "abstol", "vntol", "chgtol", "reltol", "trtol", "xmu")
    settings = " ".join(f"{name}={format_number(getattr(options, name))}" for name in fields)
    return f".options {settings} bypass={int(bypass)}\n.temp {format_number(technology.celsius)}\n"


def describe_simulator(technology: Technology, options: SimulatorOptions = DEFAULT_OPTIONS) -> dict[str, Any]:
    """What decks with these options run in: ngspice's version, and all of its options that are in effect there.

    As ngspice itself lists them, those included that no deck of ours sets. Raises MissingToolError without ngspice.
    """
    library = find_ngspice_library()
    deck = f"* options\nv1 a 0 1\nr1 a 0 1\n{format_options(options, technology)}.op\n.end\n"
    return {"ngspice": ngspice_version(library), "options": effective_options(library, deck)}


def relaxed(deck: str) -> str:
    """The deck with a charge tolerance ten times larger, for a run whose time step collapsed.

    At a clock edge a node of a few femtofarad may otherwise ask for steps under 1 fs, the more so the smaller chgtol.
    """
    strict = f"chgtol={format_number(DEFAULT_OPTIONS.chgtol)}"
    return deck.replace(strict, f"chgtol={format_number(10 * DEFAULT_OPTIONS.chgtol)}")


def format_deck(circuit: Circuit, technology: Technology, options: SimulatorOptions, analysis: str, save: str) -> str:
    """One self-contained deck: netlist, device models, options, what to save, one analysis."""
    netlist, devices = format_circuit(circuit, technology), device_cards(technology, device_sizes(circuit))
    tail = f"{format_options(options, technology)}.save {save}\n{analysis}\n.end\n"
    return f"{netlist}\n{devices}\n{tail}"
