"""VACASK as a simulator: one process for each bench.

Its BSIM4 is ngspice's, translated from C to Verilog-A and compiled (OSDI), so both share the device equations; parser,
Newton solver, operating point, integration and step control are VACASK's own. A run sees nothing but its deck: it has a
folder of its own, no settings of a user, no variables that point to other models, and no shell.
Source: A. Buermen, VACASK, https://codeberg.org/arpadbuermen/VACASK. What was checked with it:
docs/reference/dialects.md.
"""

import ctypes
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.errors import SimulationError
from cosim.circuit.bench import (
    PRECISE,
    SMALL_SIGNAL,
    Bench,
    Current,
    Dc,
    DrainCurrent,
    Op,
    Probe,
    SmallSignalBench,
    Tolerances,
    Voltage,
)
from cosim.circuit.dialects.vacask import (
    NOISE,
    POINT,
    RUN,
    SIGNALS,
    SWEPT,
    format_bench,
    format_small_signals,
    option_texts,
    printed,
)
from cosim.engines.engine import DEFAULT_TIMEOUT, Description, Failure, FailureKind, SmallSignals, Vectors, Waveforms
from cosim.engines.processor import wait_within
from cosim.engines.vacask.program import find_vacask, vacask_version
from cosim.technology.foundry import model_family
from cosim.technology.types import Technology

_THROUGH = ":flow(br)"  # what the name of a source's current ends with
_DECK, _SETTINGS = "deck.sim", "settings.toml"
_NEWS = re.compile(r"error|abort|fail|nan|not found|unexpected|unknown|many|few|singular|converge", re.IGNORECASE)
_PARENT_DIED = 1  # PR_SET_PDEATHSIG of prctl(2)
_PROCESS = ctypes.CDLL(None)


@dataclass(frozen=True)
class Vacask:
    """The simulator VACASK, which ends a run at its time-out by itself."""

    name: str = "vacask"
    grace: float = 10.0
    lanes: int = 1

    def write(self, bench: Bench) -> str:
        """Return the VACASK deck of a bench."""
        return format_bench(bench)

    def run(self, bench: Bench, timeout: float) -> Waveforms | Failure:
        """Simulate a bench in VACASK; timeout: seconds of processor time. Raises MissingToolError without VACASK.

        A bench with PRECISE tolerances that does not converge runs again with the default ones, reltol 1e-4.
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
        parallel, family = _in_parallel(bench), model_family(bench.technology)
        return Waveforms(axis, {one: parallel.get(one, 1) * vectors[printed(one, family)] for one in bench.probes})

    def small_signals(self, bench: SmallSignalBench) -> SmallSignals:
        """Compute small signals and noise in VACASK. Raises SimulationError or MissingToolError."""
        files = (POINT, SIGNALS, *([NOISE] if bench.noisy else []))
        found = run_analyses(format_small_signals(bench, SMALL_SIGNAL), DEFAULT_TIMEOUT, files)
        if isinstance(found, Failure):
            raise SimulationError(f"{bench.circuit.title}: {found}")
        point, signals, *noise = found
        response: dict[Voltage | Current, NDArray[np.complex128]] = {}
        for name, values in signals.items():
            if name.endswith(_THROUGH):
                response[Current(name[2:].removesuffix(_THROUGH))] = values.astype(np.complex128)
            elif name != "frequency":
                response[Voltage(name.replace(":", "."))] = values.astype(np.complex128)
        return SmallSignals(
            {name.replace(":", "."): float(values[0].real) for name, values in point.items() if "(" not in name},
            response,
            noise[0]["onoise"] if noise else np.empty(0),
        )

    def check(self) -> None:
        """Raise MissingToolError where VACASK is not installed."""
        find_vacask()

    def describe(self, technology: Technology) -> Description:
        """Return VACASK's version and the options that a deck sets."""
        return Description(vacask_version(), option_texts(Tolerances(), technology))


def _in_parallel(bench: Bench) -> dict[Probe, int]:
    """Return for each saved transistor the number of parallel devices; VACASK saves the current of one of them."""
    if not any(isinstance(probe, DrainCurrent) for probe in bench.probes):
        return {}
    return {DrainCurrent(mos.name): mos.m for mos in bench.circuit.flatten()}


def run_deck(deck: str, timeout: float) -> Vectors | Failure:
    """Run a deck with one analysis in VACASK and return its vectors by VACASK's names.

    timeout: seconds of processor time. Raises MissingToolError without VACASK.
    """
    found = run_analyses(deck, timeout, (RUN,))
    return found if isinstance(found, Failure) else found[0]


def run_analyses(deck: str, timeout: float, names: Sequence[str]) -> list[Mapping[str, NDArray[Any]]] | Failure:
    """Run a deck in VACASK for at most `timeout` seconds of processor time, and return the vectors of its analyses.

    names: of the analyses; the vectors have VACASK's names. Raises MissingToolError without VACASK.
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
        results = [folder / f"{name}.raw" for name in names]
        if process.returncode == 0 and "aborted" not in said and all(raw.is_file() for raw in results):
            return [read_raw(raw.read_bytes()) for raw in results]
    return Failure(_kind(process.returncode), _news(said) or f"exit status {process.returncode}", deck)


def read_raw(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the vectors, real or complex, by name, in the content of a binary raw file of VACASK or ngspice."""
    head, _, body = content.partition(b"Binary:\n")
    lines = head.decode("ascii").splitlines()
    count = int(next(line for line in lines if line.startswith("No. Points:")).split(":")[1])
    names = [line.split()[1] for line in lines[lines.index("Variables:") + 1 :]]
    kind = "<c16" if "Flags: complex" in lines else "<f8"
    values = np.frombuffer(body, dtype=kind, count=count * len(names)).reshape(count, len(names))
    return {name: values[:, column].copy() for column, name in enumerate(names)}


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SIM_")}


def _die_with_parent() -> None:
    """Let Linux kill this VACASK process when the worker that started it ends."""
    if hasattr(_PROCESS, "prctl"):
        _PROCESS.prctl(_PARENT_DIED, signal.SIGKILL)


def _kind(status: int) -> FailureKind:
    """Return the kind of failure for VACASK's exit status: 0 means a failed analysis, more a refused deck."""
    if status < 0:
        return FailureKind.CRASH
    return FailureKind.DECK if status else FailureKind.CONVERGENCE


def _news(output: str) -> str:
    """Return the last lines of a simulator's output that report errors, joined, without its greeting."""
    lines = [line.strip() for line in output.splitlines() if _NEWS.search(line)]
    return "; ".join(dict.fromkeys(lines[-5:]))
