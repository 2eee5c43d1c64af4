"""The kernels on a CUDA device, as numba's simulator of one runs them: the same waveforms as here.

Run as a script it is that simulator, which a process chooses before it imports numba.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cosim.circuit.bench import PRECISE, Bench, Current, DrainCurrent, Tran, Voltage
from cosim.circuit.elements import Capacitor, Circuit, Mos, Source

pytestmark = pytest.mark.ngspice

W, L = 1e-6, 5e-6


def mirror(technology, k):
    """Three-terminal devices, n and p, one that deviates, a four-terminal switch; benches have currents and ends."""
    from cosim.cells.benches import supply_of

    end = 0.13 + 0.02 * k
    steps = ((0.0, 1e-10), (0.1, 1e-10), (0.11, (1 + k) * 1e-9), (end, (1 + k) * 1e-9))
    elements = (
        supply_of(technology),
        Source("in", "i", "vdd", "g", steps),
        Mos("diode", "g", "g", "0", "0", "n", W, L, 8),
        Mos("copy", "d", "g", "0", "0", "n", W, L, 8),
        Mos("other", "e", "g", "0", "0", "n", W, L, 8, vt_shift=0.01 * k, beta_factor=1.02),
        Mos("pdiode", "d", "d", "vdd", "vdd", "p", W, L, 8),
        Mos("switch", "h", "g", "d", "0", "n", 4e-7, 4e-7, 1),
        Capacitor("h", "h", "0", 1e-14),
        Source("e", "v", "e", "0", 1.0),
    )
    probes = Voltage("g"), Voltage("d"), Voltage("h"), Current("e"), Current("dd"), DrainCurrent("copy")
    return Bench(Circuit("mirror", (), elements), technology, Tran(2e-2, end), probes)


def cell(technology):
    """A 9T cell that is set, and holds."""
    from cosim.cells.benches import schmitt_circuit
    from cosim.technology.calibration import load_calibration
    from cosim.verbs.calibrate.find import shipped_path

    candidate = ((0.0, 0.0), (0.5, 0.45e-9), (1.0, 0.8e-9), (1.5, 0.45e-9), (2.0, 0.45e-9))
    v_node = load_calibration(shipped_path(technology.name, 8)).v_node
    circuit = schmitt_circuit(technology, 8, (0.6e-9, 0.3e-9, 0.9e-9), candidate, v_node)
    return Bench(circuit, technology, Tran(0.05, 1.6), (Voltage("xcell.v0"), Current("out"), Current("dd")))


def compare():
    """(steps here, steps there, largest difference over the largest value) of every bench and probe.

    At steps of the mirror; of the cell while it rests: on its way it is where its step says.
    """
    from cosim.engines.table import simulator_named
    from cosim.technology.catalog import load_technology

    technology, found = load_technology("generic180"), []
    fine = replace(mirror(technology, 1), tolerances=replace(PRECISE, reltol=1e-6))  # of order 4
    rest = [0.4, 1.4, 1.6]
    for benches, times in ([mirror(technology, k) for k in range(2)], None), ([fine], None), ([cell(technology)], rest):
        here, there = (simulator_named(name).run_all(benches, 600.0) for name in ("batch", "cuda"))
        for bench, a, b in zip(benches, here, there, strict=True):
            for probe in bench.probes:
                mine, theirs = (np.interp(times or a.time, one.time, one.probes[probe]) for one in (a, b))
                found.append((len(a.time), len(b.time), np.abs(mine - theirs).max() / np.abs(mine).max()))
    return found


def beyond():
    """The largest difference of a four-terminal device's table and slopes, on the axes and beyond either end.

    They are of the order of 1 and 40 a volt, and both round in double precision.
    """
    from cosim.engines.batch import cuda_threads, table_lookup
    from cosim.engines.batch.compiled import jit
    from cosim.engines.batch.device_tables import FOUR_TERMINAL_COLUMNS
    from cosim.engines.batch.lanes import LANES

    @jit
    def here(values, first, rows, places, rates, out):
        return table_lookup.spline_columns(values, first, rows, places, rates, out)

    rows = np.random.default_rng(5).standard_normal((6**3 + LANES, FOUR_TERMINAL_COLUMNS)).astype(np.float32).ravel()
    apart = []
    for out in product((-0.06, 0.0, 0.07), repeat=3):
        asked = rows, 7, (6, 6), (0.2, 0.3, 0.9), (40.0,) * 3, out
        there = cuda_threads.spline_columns(*asked)
        apart.append(np.abs(np.array(here(*asked)) - np.array(there)).max())
    return max(apart)


def test_a_device_finds_what_the_processor_finds():
    """Its sums and exponentials round otherwise: 1e-7 of a device's current, kept in single precision, times a gain."""
    ran = subprocess.run(
        [sys.executable, __file__], env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    found, slopes_apart = json.loads(ran.stdout)
    assert slopes_apart < 1e-10
    mirrors, cells = found[:-3], found[-3:]
    assert len(mirrors) == 3 * 6
    for here, there, apart in found:
        assert min(here, there) > 20
        assert apart < 1e-5
    assert all(here == there for here, there, _ in mirrors)
    # a switching cell amplifies rounding, so the two differ by a few steps: 104 and 106 were seen
    assert all(abs(here - there) <= 3 for here, there, _ in cells)


if __name__ == "__main__":
    print(json.dumps([compare(), beyond()]))
