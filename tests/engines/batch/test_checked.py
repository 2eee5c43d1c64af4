"""Kernels in their checked mode: an access beyond an array is found, a raw one of `lanes`, too. `make test-checked`."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from cosim.circuit.bench import Bench, Tran, Voltage
from cosim.circuit.elements import Capacitor, Circuit, Source

pytest.importorskip("numba")

PLANTED = """
import numpy as np
from cosim.engines.batch.compiled import jit
from cosim.engines.batch.lanes import LANES, aligned_zeros, aligned_zeros_single, extract, load, load_consecutive
from cosim.engines.batch.lanes import splat, store, store_where

@jit
def read(rows, k):
    store(rows, 0, load(rows, k))

@jit
def write(rows, k):
    store(rows, k, splat(21.0))

@jit
def write_where(rows, k):
    store_where(rows, k, splat(1.0), splat(21.0))

@jit
def read_table(rows, k):
    store(rows, 0, load_consecutive(rows.reshape(-1), k * LANES))

@jit
def read_lane(rows, k):
    rows[0, 0] = extract(load(rows, 0), k * LANES // 4)

@jit
def write_number(rows, k):
    rows[k, 0] = 21.0

for kernel in (read, write, write_where, read_table, read_lane, write_number):
    rows = aligned_zeros_single(4) if kernel is read_table else aligned_zeros(4)
    for k, good in ((0, True), (3, True), (4, False), (1 << 40, False)):
        try:
            kernel(rows, k)
            found = True
        except IndexError as error:
            found = str(error) != "index is out of bounds"
        if found != good:
            print(kernel.__name__, k)
"""


def test_an_access_beyond_an_array_is_found(tmp_path):
    """Each way to reach an array, at its first and last row, behind it and far away."""
    environment = {**os.environ, "COSIM_CHECKED": "1", "XDG_CACHE_HOME": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run([sys.executable, "-c", PLANTED], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_a_planted_violation_is_found_in_the_engine(technology):
    """A net whose row is not there: the evaluation would read, and the residual write, behind their arrays."""
    from cosim.engines.batch.compiled import CHECKED
    from cosim.engines.batch.operating_point import operating_points
    from cosim.engines.batch.simulator import assemble_benches, run_transients, solve_benches

    elements = Source("i", "i", "0", "a", 1e-12), Capacitor("c", "a", "0", 1e-12), Source("v", "v", "b", "0", 1.0)
    bench = Bench(Circuit("planted", (), elements), technology, Tran(1e-3, 1e-2), (Voltage("b"),))
    circuit, flat = assemble_benches([bench])
    limit = math.inf  # kernels are compiled by the first call
    points = operating_points(circuit, [bench], flat)
    solve_benches(circuit, [bench], points, limit, run_transients)
    row = np.where(circuit.arrays.row == 0, circuit.nets.unknowns + 5, circuit.arrays.row)
    planted = replace(circuit, arrays=circuit.arrays._replace(row=row))
    if not CHECKED:
        pytest.skip("kernels are not checked: make test-checked")
    with pytest.raises(IndexError, match="index is out of bounds"):
        solve_benches(planted, [bench], operating_points(planted, [bench], flat), limit, run_transients)
