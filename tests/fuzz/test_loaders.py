"""Fuzz of every loader: a mutated file is read or refused, in little memory and time, and runs no code; and single
flipped bits of everything that is kept: refused, measured anew, written again, or without a difference."""

import json
import os
import subprocess
import sys
from collections import Counter
from importlib import import_module
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


def counted(found, count):
    """How often each kind of file came to each outcome, its broken ones included."""
    assert not found["faults"], "\n".join(found["faults"][:3])
    kinds = {}
    for name, outcomes in found["outcomes"].items():
        kinds.setdefault(name.removesuffix(", broken"), Counter()).update(outcomes)
    assert sum(kind.total() for kind in kinds.values()) == count
    return kinds


def check(found, count):
    """No fault, no code, within the limits; and every kind of file has been read and not been read, unless it cannot
    have been read because no mutation left it a checksum that fits."""
    kinds = counted(found, count)
    assert not found["code_ran"]
    assert found["peak_mb"] - found["start_mb"] <= MEMORY_MB
    assert not {name for name, kind in kinds.items() if not kind["read"] and kind["damaged"] < kind.total()}
    assert not {name for name, kind in kinds.items() if kind["read"] == kind.total()}


@pytest.mark.timeout(1500)
def test_mutated_files_are_read_or_refused():
    check(call("run.py", 0, MUTATIONS), MUTATIONS)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_more_mutated_files_are_read_or_refused(seed):
    check(call("run.py", seed, MUTATIONS), MUTATIONS)


def check_flips(found, count):
    """No other numbers, no traceback; one flipped bit of what has a checksum is never taken for what it was."""
    kinds = counted(found, count)
    assert found["sealed"]
    assert not {name for name in found["sealed"] if kinds[name]["the same"]}
    assert not {name for name, kind in kinds.items() if kind["the same"] == kind.total()}


def test_a_flipped_bit_gives_no_other_numbers(monkeypatch, tmp_path):
    """In this process: nothing of it is measured."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.chdir(tmp_path)  # from where it goes elsewhere
    check_flips(import_module("flips").main(0, FLIPS), FLIPS)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_more_flipped_bits_give_no_other_numbers():
    check_flips(call("flips.py", 1, 1000), 1000)
