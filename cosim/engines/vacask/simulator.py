"""VACASK as one of the simulators: a process of its own for every bench.

Its BSIM4 is ngspice's, translated from C to Verilog-A and compiled (OSDI), so the device equations are shared; parser,
Newton solver, operating point, integration and step control are not. A run sees nothing but its deck: it stands in a
folder of its own, reads no settings of a user's and no variables that point to other models, and no shell is involved.
Source: A. Buermen, VACASK, https://codeberg.org/arpadbuermen/VACASK. What was checked with it:
docs/reference/dialects.md.
"""

import ctypes
import os
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.circuit.bench import PRECISE, Bench, Dc, DrainCurrent, Op, Probe, Tolerances
from cosim.circuit.dialects.vacask import RUN, SWEPT, format_bench, option_texts, printed
from cosim.engines.engine import Description, Failure, FailureKind, Vectors, Waveforms
from cosim.engines.processor import wait_within
from cosim.engines.vacask.program import find_vacask, vacask_version
from cosim.technology.types import Technology

_DECK, _SETTINGS = "deck.sim", "settings.toml"
_NEWS = re.compile(r"error|abort|fail|nan|not found|unexpected|unknown|many|few|singular|converge", re.IGNORECASE)
_PARENT_DIED = 1  # PR_SET_PDEATHSIG of prctl(2)
_PROCESS = ctypes.CDLL(None)


@dataclass(frozen=True)
class Vacask:
    """VACASK, which stops itself in time and then clears up."""

    name: str = "vacask"
    grace: float = 10.0
    lanes: int = 1

    def write(self, bench: Bench) -> str:
        """Return the deck of a bench as this engine gives it to VACASK's process."""
        return format_bench(bench)

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Simulate a bench in VACASK. Raises MissingToolError without VACASK.

        A bench with tighter tolerances that finds no convergence runs again with the default ones, reltol 1e-4.
        """
        vectors = run_deck(format_bench(bench), timeout)
        if isinstance(vectors, Failure) and vectors.kind is FailureKind.CONVERGENCE and bench.tolerances == PRECISE:
            vectors = run_deck(format_bench(replace(bench, tolerances=Tolerances())), timeout)
        if isinstance(vectors, Failure):
            return vectors
        match bench.analysis:
            case Op():
                axis = np.empty(0)
            case Dc():
                axis = vectors[SWEPT]
            case _:
                axis = vectors["time"]
        parallel = _in_parallel(bench)
        return Waveforms(axis, {one: parallel.get(one, 1) * vectors[printed(one)] for one in bench.probes})

    def check(self) -> None:
        """Check that VACASK is installed; raises MissingToolError."""
        find_vacask()

    def describe(self, technology: Technology) -> Description:
        """Return VACASK's version and the options that a deck sets."""
        return Description(vacask_version(), option_texts(Tolerances(), technology))


def _in_parallel(bench: Bench) -> dict[Probe, int]:
    """Return how many devices each saved transistor stands for: VACASK gives the current of one."""
    if not any(isinstance(probe, DrainCurrent) for probe in bench.probes):
        return {}
    return {DrainCurrent(mos.name): mos.m for mos in bench.circuit.flatten()}


def run_deck(deck: str, timeout: float) -> Vectors | Failure:
    """Run a deck in VACASK for at most `timeout` seconds of the processor; return its vectors by its own names.

    Raises MissingToolError without VACASK.
    """
    program = str(find_vacask())
    with tempfile.TemporaryDirectory(prefix="cosim-") as name:
        folder = Path(name)
        (folder / _DECK).write_text(deck, encoding="utf-8")
        (folder / _SETTINGS).touch()
        try:
            process = subprocess.Popen(
                [program, "--quiet-progress", "--skip-postprocess", "--tomlfile", _SETTINGS, "--ncpu", "1", _DECK],
                cwd=folder, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=_die_with_parent,
            )  # fmt: skip
            said = wait_within(process, timeout)
        except subprocess.TimeoutExpired:
            return Failure(FailureKind.TIMEOUT, f"after {timeout:g} s of processor time", deck)
        raw = folder / f"{RUN}.raw"
        if process.returncode == 0 and "aborted" not in said and raw.is_file():
            return read_raw(raw.read_bytes())
    return Failure(_kind(process.returncode), _news(said) or f"exit status {process.returncode}", deck)


def read_raw(content: bytes) -> dict[str, NDArray[np.float64]]:
    """Return the vectors of VACASK's binary raw file of real numbers, by name."""
    head, _, body = content.partition(b"Binary:\n")
    lines = head.decode("ascii").splitlines()
    count = int(next(line for line in lines if line.startswith("No. Points:")).split(":")[1])
    names = [line.split()[1] for line in lines[lines.index("Variables:") + 1 :]]
    values = np.frombuffer(body, dtype="<f8", count=count * len(names)).reshape(count, len(names))
    return {name: values[:, column].copy() for column, name in enumerate(names)}


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SIM_")}


def _die_with_parent() -> None:
    """Ask Linux in the VACASK process to kill it once the worker that started it is gone."""
    if hasattr(_PROCESS, "prctl"):
        _PROCESS.prctl(_PARENT_DIED, signal.SIGKILL)


def _kind(status: int) -> FailureKind:
    """Return the kind of failure by exit status: 0 where an analysis failed, 1 where the deck was refused."""
    if status < 0:
        return FailureKind.CRASH
    return FailureKind.DECK if status else FailureKind.CONVERGENCE


def _news(output: str) -> str:
    """Return the last lines of a simulator's output that report errors, joined, without its greeting."""
    lines = [line.strip() for line in output.splitlines() if _NEWS.search(line)]
    return "; ".join(dict.fromkeys(lines[-5:]))
