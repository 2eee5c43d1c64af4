"""The circuit simulators: an entry each, loaded when it is asked for. One more is a folder and an entry here."""

from collections.abc import Callable
from dataclasses import dataclass

from cosim.engines.engine import Simulator
from cosim.errors import InputError


@dataclass(frozen=True)
class Entry:
    """A simulator by name; `load` imports it."""

    name: str
    load: Callable[[], Simulator]


def _ngspice() -> Simulator:
    from cosim.engines.ngspice.simulator import Ngspice

    return Ngspice()


def _vacask() -> Simulator:
    from cosim.engines.vacask.simulator import Vacask

    return Vacask()


SIMULATORS: tuple[Entry, ...] = (Entry("ngspice", _ngspice), Entry("vacask", _vacask))


def simulator_named(name: str) -> Simulator:
    """The simulator of this name. Raises InputError for one that is not of SIMULATORS."""
    found = next((entry for entry in SIMULATORS if entry.name == name), None)
    if found is None:
        raise InputError(f"simulator must be one of {', '.join(e.name for e in SIMULATORS)}, not {name!r}; choose one")
    return found.load()
