"""The table of engines, each loaded when it is asked for.

To add one, write a module or a folder, and an entry here.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cosim.base.errors import InputError, MissingToolError
from cosim.base.resources import install_command

if TYPE_CHECKING:
    from cosim.engines.engine import Simulator

INSTALL_NUMBA = install_command("batch")
INSTALL_CUDA = install_command("cuda")


def check_numba() -> None:
    """Raise MissingToolError where numba, which the batched engine needs, is missing."""
    if importlib.util.find_spec("numba") is None:
        raise MissingToolError(
            "numba is missing: the engines batch and cuda need it, nothing else does. Install it "
            f"({INSTALL_NUMBA}), or choose --engine ngspice"
        )


def check_cuda() -> None:
    """Raise MissingToolError where the batched engine lacks numba, or a GPU that numba can compile for."""
    check_numba()
    from numba import cuda

    if not cuda.is_available():
        raise MissingToolError(
            "no CUDA device was found: --engine cuda needs one, its driver (530 or newer), and numba's compiler for it "
            f"({INSTALL_CUDA}); choose --engine batch, which runs the same on the processor"
        )


@dataclass(frozen=True)
class Entry:
    """An engine by name; `load` imports and returns it.

    simulator: `load` returns a Simulator, from which an engine is made, not an Engine; cells: runs any bench, also one
    of a single cell or a sweep; inside: saves the currents of transistors; quick: has device models of its own and is
    so fast that a verb runs all samples by default, and audits some of them in ngspice.
    """

    name: str
    load: Callable[[], Any]
    simulator: bool = True
    cells: bool = True
    inside: bool = False
    quick: bool = False


def _behavioral() -> object:
    from cosim.engines.behavioral.model import Behavioral

    return Behavioral()


def _ngspice() -> object:
    from cosim.engines.ngspice.simulator import Ngspice

    return Ngspice()


def _vacask() -> object:
    from cosim.engines.vacask.simulator import Vacask

    return Vacask()


def _batch() -> object:
    check_numba()  # before its modules, which are compiled with it
    from cosim.engines.batch.simulator import BatchSimulator

    return BatchSimulator()


def _cuda() -> object:
    check_cuda()
    from cosim.engines.batch.cuda import run_transients_on_device
    from cosim.engines.batch.simulator import BatchSimulator

    return BatchSimulator("cuda", lanes=1024, runner=run_transients_on_device, installed=check_cuda)


BEHAVIORAL, NGSPICE, BATCH, CUDA = "behavioral", "ngspice", "batch", "cuda"
ENGINES: tuple[Entry, ...] = (
    Entry(BEHAVIORAL, _behavioral, simulator=False),
    Entry(NGSPICE, _ngspice, inside=True),
    Entry("vacask", _vacask),
    Entry(BATCH, _batch, cells=False, inside=True, quick=True),
    Entry(CUDA, _cuda, cells=False, inside=True, quick=True),
)


def engine_entry(name: str) -> Entry:
    """Return the table's entry of the engine of this name. Raises InputError for any other name."""
    return _named(name, "engine", ENGINES)


def engines() -> tuple[Entry, ...]:
    """Return the entries of all engines in the table."""
    return ENGINES


def simulators() -> tuple[Entry, ...]:
    """Return the entries of all engines that are circuit simulators."""
    return tuple(entry for entry in ENGINES if entry.simulator)


def cell_simulators() -> tuple[Entry, ...]:
    """Return the entries of all simulators that run any bench, also one of a single cell."""
    return tuple(entry for entry in simulators() if entry.cells)


def simulator_beside(name: str) -> str:
    """Return the name of the simulator that runs single cells for an engine: its own if it can, else ngspice."""
    entry = engine_entry(name)
    return name if entry.simulator and entry.cells else NGSPICE


def simulator_named(name: str) -> "Simulator":
    """Return the simulator of this name, loaded. Raises InputError where there is no such simulator."""
    return _named(name, "simulator", simulators()).load()


def _named(name: str, what: str, entries: tuple[Entry, ...]) -> Entry:
    found = next((entry for entry in entries if entry.name == name), None)
    if found is None:
        raise InputError(f"{what} must be one of {', '.join(one.name for one in entries)}, not {name!r}; choose one")
    return found
