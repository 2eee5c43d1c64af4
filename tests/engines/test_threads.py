"""A deck says by itself that one thread is enough: by default ngspice starts two, which wait for each other."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.cells.benches import mirror_bench
from cosim.circuit.bench import Tolerances
from cosim.circuit.dialects.ngspice import NGSPICE, format_bench, format_options
from cosim.engines.ngspice.library import START, find_ngspice_library, start_environment

NETLISTS = Path(__file__).resolve().parents[2] / "netlists"
# ngspice as whoever runs a deck by hand has it: no `set num_threads`, no variable of OpenMP.
BY_HAND = """
import ctypes, json, os, sys
said = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p)(lambda *_: 0)
ended = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_bool, ctypes.c_bool, ctypes.c_int, ctypes.c_void_p)(
    lambda *_: 0)
library = ctypes.CDLL(sys.argv[1])
library.ngSpice_Init(said, None, ended, None, None, None, None)
lines = [line.encode() for line in json.loads(sys.argv[2])]
library.ngSpice_Circ((ctypes.c_char_p * (len(lines) + 1))(*lines, None))
library.ngSpice_Command(b"run")
print(len(os.listdir("/proc/self/task")))
"""


def threads_of(deck):
    """How many threads a process has behind the run of a deck."""
    environment = {name: text for name, text in start_environment().items() if not name.startswith("OMP_")}
    library, lines = str(find_ngspice_library().absolute()), json.dumps(deck.splitlines())
    done = subprocess.run(
        [sys.executable, "-I", "-c", BY_HAND, library, lines],
        capture_output=True, text=True, cwd=START, env=environment, check=True,
    )  # fmt: skip
    return int(done.stdout)


@pytest.mark.ngspice
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_a_deck_by_hand_runs_in_one_thread(technology):
    """Without the option an ngspice with OpenMP has two."""
    assert threads_of(format_bench(mirror_bench(technology, 8, 1.0, 1e-9, 0.5))) == 1


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in NETLISTS.glob("*/testbench.sp")))
def test_every_testbench_says_so(folder):
    assert " num_threads=1\n" in (NETLISTS / folder / NGSPICE.files.testbench).read_text()


def test_options_do(technology):
    for still in (False, True):
        assert " num_threads=1\n" in format_options(Tolerances(), technology, skip_still=still)
