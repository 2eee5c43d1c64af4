"""ngspice in this process, through PySpice's shared-library binding. The only module that imports PySpice.

One library instance per process; threads would crash it, worker processes are in `cosim.simulation.inference`.
PySpice 1.5 treats every note on stderr as a failure and never unloads circuits; here a run has failed when ngspice
says that it aborted or when the analysis has no data, and every run removes its circuit, so memory stays flat.
"""

import logging
import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.circuit.bench import Bench, Dc, Op
from cosim.circuit.dialects.ngspice import format_bench, vector
from cosim.engines.engine import Failure, FailureKind, Vectors, Waveforms
from cosim.engines.ngspice.library import (
    MINIMUM_NGSPICE,
    find_ngspice_library,
    is_new_enough,
    start_environment,
    start_folder,
)
from cosim.errors import MissingToolError

_FATAL = re.compile(
    r"error|aborted|singular matrix|too small|no convergence|fatal|can't find model|unknown", re.IGNORECASE
)
_CONVERGENCE = re.compile(r"too small|no convergence|singular|aborted|gmin|iteration limit", re.IGNORECASE)


def run_bench(bench: Bench) -> Waveforms | Failure:
    """Run a bench as it is written. Raises MissingToolError without libngspice."""
    vectors = run_deck(format_bench(bench))
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


def run_deck(deck: str) -> Vectors | Failure:
    """Load a deck, run the analysis that it asks for, and return its saved vectors by lower-case name.

    The deck carries its own `.options`, `.save` and one analysis line. Raises MissingToolError without libngspice.
    """
    session = _session()
    session.clear()
    try:
        session.shared.load_circuit(deck)
    except Exception:  # PySpice raises bare NameError and an empty error class; the words are in its output
        return session.fail(FailureKind.DECK, deck)
    try:
        session.command("run")
        name = session.shared.last_plot
        if name == "const":
            return session.fail(FailureKind.DECK, deck)
        waveforms = session.vectors(name)
        if not waveforms or any(len(values) == 0 for values in waveforms.values()) or session.aborted():
            return session.fail(FailureKind.CONVERGENCE, deck)
        return waveforms
    finally:
        session.command("destroy all")
        session.command("remcirc")


def run_analyses(deck: str, analyses: Sequence[str]) -> list[Vectors] | Failure:
    """Load a deck once and run analyses on it, such as `noise v(out) v1 dec 10 1 1e6`: the vectors of each one's first
    plot, complex ones as they are.

    Raises MissingToolError without libngspice.
    """
    session = _session()
    session.clear()
    try:
        session.shared.load_circuit(deck)
    except Exception:  # as in `run_deck`
        return session.fail(FailureKind.DECK, deck)
    try:
        found = list[Vectors]()
        for analysis in analyses:
            before = set(session.shared.plot_names)
            session.command(analysis)
            new = [name for name in session.shared.plot_names if name not in before]
            if not new or session.aborted():
                return session.fail(FailureKind.CONVERGENCE, deck)
            found.append(session.vectors(min(new, key=_plot_number)))
        return found
    finally:
        session.command("destroy all")
        session.command("remcirc")


def _plot_number(name: str) -> int:
    return int(re.sub(r"\D", "", name) or 0)


class _Session:
    """The process's one ngspice, with its output collected instead of raised."""

    def __init__(self) -> None:
        os.environ["NGSPICE_LIBRARY_PATH"] = str(find_ngspice_library().absolute())
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySpice 1.5's own invalid escapes and deprecations
            from PySpice.Spice.NgSpice.Shared import NgSpiceShared  # pyright: ignore[reportMissingTypeStubs]
        logging.getLogger("PySpice").setLevel(logging.CRITICAL)
        logging.getLogger("PySpice.Spice.NgSpice.Shared").setLevel(logging.CRITICAL)
        self.output: list[str] = []
        output = self.output

        class Shared(NgSpiceShared):  # send_char is PySpice's documented hook for the simulator's messages
            def send_char(self, message: str, ngspice_id: int) -> Literal[0]:
                output.append(message.partition(" ")[2])
                return 0

        with _apart():
            self.shared: Any = Shared(ngspice_id=0, send_data=False)
        version = str(self.shared.ngspice_version)
        if not is_new_enough(version):
            raise MissingToolError(
                f"ngspice must be at least {MINIMUM_NGSPICE}, not {version} ({find_ngspice_library()}); install a "
                "newer libngspice, or name another one with NGSPICE_LIBRARY_PATH"
            )
        self.command("set num_threads=1")

    def clear(self) -> None:
        self.output.clear()
        self.shared.clear_output()

    def command(self, text: str) -> None:
        # exec_command raises on any stderr line; the return code and the data decide instead.
        self.shared._ngspice_shared.ngSpice_Command(text.encode("ascii"))

    def vectors(self, plot_name: str) -> dict[str, NDArray[np.float64]]:
        plot = self.shared.plot(None, plot_name)
        return {name.lower(): _plain(vector._data) for name, vector in plot.items()}

    def aborted(self) -> bool:
        return any("aborted" in line or "too small" in line for line in self.output)

    def fail(self, kind: FailureKind, deck: str) -> Failure:
        lines = [line for line in self.output if _FATAL.search(line)] or self.output[-5:]
        if kind is FailureKind.DECK and any(_CONVERGENCE.search(line) for line in lines):
            kind = FailureKind.CONVERGENCE
        return Failure(kind, "; ".join(dict.fromkeys(line.strip() for line in lines[:5])), deck)


@contextmanager
def _apart() -> Generator[None, None, None]:
    """Around the start of ngspice: this process stands where no start file of anyone's is read."""
    before = dict(os.environ)
    with start_folder() as folder:
        here = os.open(os.curdir, os.O_RDONLY)
        try:
            os.chdir(folder)
            _set_environment(start_environment(folder))
            yield
        finally:
            os.fchdir(here)
            os.close(here)
            _set_environment(before)


def _set_environment(wanted: Mapping[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in wanted.items() if os.environ.get(name) != value})


def _plain(values: ArrayLike) -> NDArray[Any]:
    """Numbers as they are: of an AC analysis complex, else real."""
    found = np.array(values)
    return found if np.iscomplexobj(found) else found.astype(np.float64)


@cache
def _session() -> _Session:
    return _Session()
