"""ngspice through PySpice's shared library binding, in a process that does nothing else. The only importer of PySpice.

`serve` answers the requests of `cosim.engines.ngspice.process` one after the other. A request is JSON: the deck, what
to run on it, the folder from which it includes files, and how many seconds of processor time it may take. An answer is
JSON, followed by the numbers of all vectors as the processor has them.

PySpice 1.5 treats every note on stderr as a failure and never unloads circuits; here a run has failed when ngspice says
that it aborted or when the analysis has no data, and every run removes its circuit, so memory stays flat.
"""

import json
import logging
import os
import re
import signal
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosim.engines.ngspice.library import START, start_environment
from cosim.engines.processor import end_with_parent

_FATAL = re.compile(
    r"error|aborted|singular matrix|too small|no convergence|fatal|can't find model|unknown", re.IGNORECASE
)
_CONVERGENCE = re.compile(r"too small|no convergence|singular|aborted|gmin|iteration limit", re.IGNORECASE)

Plot = Mapping[str, NDArray[Any]]  # lower-case name of a vector -> its values, float64 or complex128


@dataclass(frozen=True)
class Refusal:
    """Reason why ngspice gave no result for a deck: the name of a FailureKind, and ngspice's own words."""

    kind: Literal["DECK", "CONVERGENCE"]
    words: str


class Session:
    """The ngspice that is loaded in this process; its output is collected in `output`, and raises no errors."""

    def __init__(self, library: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySpice 1.5's own invalid escapes and deprecations
            from PySpice.Spice.NgSpice.Shared import NgSpiceShared  # pyright: ignore[reportMissingTypeStubs]
        logging.getLogger("PySpice").setLevel(logging.CRITICAL)
        logging.getLogger("PySpice.Spice.NgSpice.Shared").setLevel(logging.CRITICAL)
        self.output: list[str] = []
        output = self.output

        class Shared(NgSpiceShared):
            LIBRARY_PATH = library

            # PySpice's documented hook for the simulator's messages
            def send_char(self, message: str, ngspice_id: int) -> Literal[0]:
                output.append(message.partition(" ")[2])
                return 0

        self.shared: Any = Shared(ngspice_id=0, send_data=False)
        self.version = str(self.shared.ngspice_version)
        self.command("set num_threads=1")

    def run(self, deck: str, analyses: Sequence[str] | None) -> list[Plot] | Refusal:
        """Load a deck in ngspice and return the first plot of each analysis; None: of the deck's own analysis."""
        self.clear()
        try:
            self.shared.load_circuit(deck)
        except Exception:  # PySpice raises bare NameError and an empty error class; the words are in its output
            return self._refuse("DECK")
        try:
            return self._run_deck() if analyses is None else self._run_analyses(analyses)
        finally:
            self.command("destroy all")
            self.command("remcirc")

    def clear(self) -> None:
        """Forget all output of ngspice so far."""
        self.output.clear()
        self.shared.clear_output()

    def command(self, text: str) -> None:
        """Run one ngspice command."""
        # exec_command raises on any stderr line; the return code and the data decide instead.
        self.shared._ngspice_shared.ngSpice_Command(text.encode("ascii"))

    def plot(self, name: str) -> dict[str, NDArray[Any]]:
        """Return copies of all vectors of an ngspice plot, by lower-case name."""
        return {each.lower(): _plain(vector._data) for each, vector in self.shared.plot(None, name).items()}

    def _run_deck(self) -> list[Plot] | Refusal:
        self.command("run")
        name = self.shared.last_plot
        if name == "const":
            return self._refuse("DECK")
        found = self.plot(name)
        if not found or any(len(values) == 0 for values in found.values()) or self._aborted():
            return self._refuse("CONVERGENCE")
        return [found]

    def _run_analyses(self, analyses: Sequence[str]) -> list[Plot] | Refusal:
        found: list[Plot] = []
        for analysis in analyses:
            before = set(self.shared.plot_names)
            self.command(analysis)
            new = [name for name in self.shared.plot_names if name not in before]
            if not new or self._aborted():
                return self._refuse("CONVERGENCE")
            found.append(self.plot(min(new, key=_plot_number)))
        return found

    def _aborted(self) -> bool:
        return any("aborted" in line or "too small" in line for line in self.output)

    def _refuse(self, kind: Literal["DECK", "CONVERGENCE"]) -> Refusal:
        lines = [line for line in self.output if _FATAL.search(line)] or self.output[-5:]
        if any(_CONVERGENCE.search(line) for line in lines):
            kind = "CONVERGENCE"
        return Refusal(kind, "; ".join(dict.fromkeys(line.strip() for line in lines[:5])))


def _plot_number(name: str) -> int:
    return int(re.sub(r"\D", "", name) or 0)


def _plain(values: ArrayLike) -> NDArray[Any]:
    """Copy an ngspice vector into an array: complex from an AC analysis, else real."""
    found = np.array(values)
    return found if np.iscomplexobj(found) else found.astype(np.float64)


def serve(connection: Connection, parent: int, library: str) -> None:
    """Answer requests for ngspice until the parent process, of this number, closes the connection or ends."""
    end_with_parent(connection, parent)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, also where the parent ignores it
    os.chdir(START)
    variables = start_environment()
    os.environ.clear()
    os.environ.update(variables)
    session = Session(library)
    connection.send_bytes(json.dumps({"version": session.version}).encode())
    with suppress(EOFError, OSError):
        while True:
            request = json.loads(connection.recv_bytes())
            with suppress(OSError):  # a folder that is gone: a deck that includes nothing needs none
                os.chdir(request["folder"] or START)
            signal.setitimer(signal.ITIMER_PROF, request["seconds"])
            found = session.run(request["deck"], request["analyses"])
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            _answer(connection, found)


def _answer(connection: Connection, found: list[Plot] | Refusal) -> None:
    if isinstance(found, Refusal):
        head, plots = {"kind": found.kind, "words": found.words}, []
    else:
        layout = [[(name, values.dtype.name, values.size) for name, values in plot.items()] for plot in found]
        head, plots = {"plots": layout}, found
    connection.send_bytes(json.dumps(head).encode())
    connection.send_bytes(b"".join(values.tobytes() for plot in plots for values in plot.values()))
