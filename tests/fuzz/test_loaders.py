"""Fuzz of every loader: a mutated file is read or refused, in little memory and time, and runs no code; and single
flipped bits of everything that is kept: refused, measured anew, or without a difference."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")

MEMORY_MB = 100.0  # beyond what torch, scipy, matplotlib and the loaders take before the first mutation
MUTATIONS = 2000  # of all loaders together, which take turns; five seeds are a campaign of 10,000
FLIPS = 200


def call(script, *arguments):
    """In a process of its own: a crash there is one fault, and its memory is its own."""
    command = [sys.executable, str(Path(__file__).parent / script), *map(str, arguments)]
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "1000000"}  # what is freed goes back, and counts no more
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(found):
    """No fault, no code, within the limits; and every loader has both read and refused something."""
    assert not found["faults"], "\n".join(found["faults"][:3])
    assert not found["code_ran"]
    assert found["peak_mb"] - found["start_mb"] <= MEMORY_MB
    assert sum(sum(kinds.values()) for kinds in found["outcomes"].values()) == MUTATIONS
    unread = {name for name, kinds in found["outcomes"].items() if not kinds["read"]}
    summed = ("store, ", "diff of montecarlo, ", "state.pt")  # whole files have a checksum elsewhere, or in them
    assert all(name.startswith(summed) or name.endswith(", broken") for name in unread)


@pytest.mark.timeout(1500)
def test_mutated_files_are_read_or_refused():
    check(call("run.py", 0, MUTATIONS))


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_more_mutated_files_are_read_or_refused(seed):
    check(call("run.py", seed, MUTATIONS))


def check_flips(found, count):
    """No other numbers, no traceback; and no kind of file takes every flipped bit for what it was."""
    assert not found["faults"], "\n".join(found["faults"][:3])
    assert sum(sum(kinds.values()) for kinds in found["outcomes"].values()) == count
    kept = {name for name, kinds in found["outcomes"].items() if not kinds["refused"] + kinds["measured anew"]}
    assert kept <= {"search, search.json"}  # written again: each trial's line has a checksum with the search in it


@pytest.mark.timeout(1500)
def test_a_flipped_bit_gives_no_other_numbers():
    check_flips(call("flips.py", 0, FLIPS), FLIPS)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_more_flipped_bits_give_no_other_numbers():
    check_flips(call("flips.py", 1, 1000), 1000)
