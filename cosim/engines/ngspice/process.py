"""The process in which ngspice runs: it starts with the first deck, runs one deck after another, and is replaced if it
dies.

A simulator in C that has a fault can write anywhere in its process. What it spoils shows later and in other places, or
never. In a process of its own it can spoil only its own results. Text goes in, numbers come back, and nothing that it
sends is run. Each process of ours has one such child, which ends with it.
"""

import atexit
import json
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import MissingToolError
from cosim.circuit.bench import Bench, Dc, Op
from cosim.circuit.dialects.ngspice import format_bench, vector
from cosim.engines.engine import Failure, FailureKind, Vectors, Waveforms
from cosim.engines.ngspice.library import MINIMUM_NGSPICE, find_ngspice_library, is_new_enough
from cosim.engines.processor import Interpreter, ProcessDied

_TRIES = 2
_LONGEST = 1e8  # s, of a timer
_log = logging.getLogger("cosim")


def run_analyses(deck: str, analyses: Sequence[str] | None, timeout: float = inf) -> list[Vectors] | Failure:
    """Load a deck in the ngspice process once and run analyses on it, such as `noise v(out) v1 dec 10 1 1e6`.

    analyses: None runs the analysis that the deck asks for; timeout: seconds of processor time, inf for no limit.
    Returns the vectors of each analysis' first plot, which may be complex. A process that refused a deck is replaced:
    ngspice 39 keeps arrays of its parser (numparam) that may be too short for the next deck, and circuits in a list
    whose bounds nobody checks. Where ngspice dies, a line on stderr names the signal and the deck, which runs once more
    in a new process; if that dies, too, a Failure is returned. Raises MissingToolError without libngspice.
    """
    global _process
    how, title = "", deck.partition("\n")[0].lstrip("* ").strip()
    with _lock:
        for _ in range(_TRIES):
            if how:
                _log.warning("ngspice ended by %s on %s; a new one runs it again", how, title)
            try:
                if _process is None:
                    _process = NgspiceProcess()
                found = _process.ask(deck, analyses, timeout)
                if isinstance(found, Failure) and found.kind is FailureKind.DECK:
                    _process.close()
                    _process = None
                return found
            except ProcessDied as died:
                _process = None
                if died.status == -signal.SIGPROF:
                    return Failure(FailureKind.TIMEOUT, f"after {timeout:g} s of processor time", deck)
                how = str(died)
            except BaseException:  # Ctrl-C: nobody waits for the answer any more
                if _process is not None:
                    _process.close()
                _process = None
                raise
    return Failure(FailureKind.CRASH, f"ngspice ended by {how}, {_TRIES} times, on {title}", deck)


class NgspiceProcess(Interpreter):
    """An interpreter process with ngspice loaded in it.

    Raises MissingToolError where no libngspice is found, or only one older than MINIMUM_NGSPICE.
    """

    def __init__(self) -> None:
        library = str(find_ngspice_library().absolute())
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        super().__init__("cosim.engines.ngspice.server", library, stdout=subprocess.DEVNULL, environment=environment)
        version = str(json.loads(self.receive())["version"])
        if not is_new_enough(version):
            self.close()
            raise MissingToolError(
                f"ngspice must be at least {MINIMUM_NGSPICE}, not {version} ({library}); install a newer libngspice, "
                "or name another one with NGSPICE_LIBRARY_PATH"
            )

    def ask(self, deck: str, analyses: Sequence[str] | None, seconds: float) -> list[Vectors] | Failure:
        """Run a deck's analyses in the ngspice process and return their vectors. Raises ProcessDied where it ends."""
        limit = min(seconds, _LONGEST) if isfinite(seconds) else 0.0  # 0: no timer
        request = {"deck": deck, "analyses": analyses, "folder": _folder(), "seconds": limit}
        self.send(json.dumps(request).encode())
        head, numbers = json.loads(self.receive()), self.receive()
        if "kind" in head:
            return Failure(FailureKind[head["kind"]], str(head["words"]), deck)
        return _read_plots(head["plots"], numbers)


def _read_plots(layout: list[list[list[Any]]], numbers: bytes) -> list[Vectors]:
    """Return the vectors in `numbers`; layout: of each plot the vectors' names, types and lengths, in order."""
    found: list[Vectors] = []
    at = 0
    for plot in layout:
        vectors: dict[str, NDArray[Any]] = {}
        for name, kind, length in plot:
            vectors[name] = np.frombuffer(numbers, np.dtype(kind), length, at).copy()
            at += vectors[name].nbytes
        found.append(vectors)
    return found


def _folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


_lock = threading.Lock()
_process: NgspiceProcess | None = None


def _begin_anew() -> None:
    """Forget the ngspice process and the lock in a forked process, because they belong to the parent process."""
    global _lock, _process
    _lock = threading.Lock()
    if _process is not None:
        _process.forget()
        _process = None


def _end() -> None:
    if _process is not None:
        _process.close()


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(_end)


def run_bench(bench: Bench, timeout: float = inf) -> Waveforms | Failure:
    """Simulate a bench in ngspice without change and return its waveforms; arguments and errors as in `run_deck`."""
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
    """Load a deck in ngspice, run the analysis that it asks for, and return its saved vectors by lower-case name.

    The deck has its own `.options`, `.save` and one analysis line. timeout: seconds of processor time, inf for no
    limit. Raises MissingToolError without libngspice.
    """
    found = run_analyses(deck, None, timeout)
    return found if isinstance(found, Failure) else found[0]
