"""The table of engines, each loaded when it is asked for.

To add one, write a module or a folder, and an entry here.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cosim.base.errors import InputError, MissingToolError
from cosim.base.resources import install_command
from cosim.technology.foundry import model_family
from cosim.technology.types import Technology

if TYPE_CHECKING:
    from cosim.engines.engine import Simulator

INSTALL_NUMBA = install_command("batch")
INSTALL_CUDA = install_command("cuda")


def check_numba() -> None:
    """Raise MissingToolError where numba, which the batched engine needs, is missing."""
    if importlib.util.find_spec("numba") is None:
        raise MissingToolError(
            "numba is missing: the engines batch and cuda need it, nothing else does. Install it "
            f"({INSTALL_NUMBA}), or choose another --engine"
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
    of a single cell or a sweep; quick: has device models of its own and is
    so fast that a verb runs all samples by default, and audits some of them in the reference simulator; osdi: runs
    devices whose models are loaded as compiled Verilog-A, such as PSP103, and not only those of SPICE simulators.
    """

    name: str
    load: Callable[[], Any]
    simulator: bool = True
    cells: bool = True
    quick: bool = False
    osdi: bool = True


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
    Entry(NGSPICE, _ngspice, osdi=False),
    Entry("vacask", _vacask),
    Entry(BATCH, _batch, cells=False, quick=True),
    Entry(CUDA, _cuda, cells=False, quick=True),
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


def reference_simulator(technology: Technology) -> str:
    """Return the name of the simulator that measures a technology's devices and audits the batched engine there.

    The family of its device models names it: ngspice for BSIM4, VACASK for PSP103. Raises InputError where the
    technology's library has no models that cosim knows.
    """
    return model_family(technology).simulator


def check_models(name: str, technology: Technology) -> None:
    """Raise InputError where an engine cannot run the models of a technology's devices."""
    family = model_family(technology)
    if family.osdi and not engine_entry(name).osdi:
        able = [entry.name for entry in simulators() if entry.osdi]
        raise InputError(
            f"--engine {name} has no {family.name}, the models of {technology.name}; choose one of {', '.join(able)}"
        )


def simulator_beside(name: str, technology: Technology) -> str:
    """Return the name of the simulator that runs single cells for an engine: its own if it can, else the reference."""
    entry = engine_entry(name)
    return name if entry.simulator and entry.cells else reference_simulator(technology)


def simulator_named(name: str) -> "Simulator":
    """Return the simulator of this name, loaded. Raises InputError where there is no such simulator."""
    return _named(name, "simulator", simulators()).load()


def _named(name: str, what: str, entries: tuple[Entry, ...]) -> Entry:
    found = next((entry for entry in entries if entry.name == name), None)
    if found is None:
        raise InputError(f"{what} must be one of {', '.join(one.name for one in entries)}, not {name!r}; choose one")
    return found
