"""Operating points and sweeps in the batch engine, as slow transients, against ngspice's own `.op` and `.dc`."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.cells.benches import schmitt_circuit, supply_of
from cosim.circuit.bench import PRECISE, Bench, Current, Dc, DrainCurrent, Op, TransientNoise, Voltage
from cosim.circuit.elements import Capacitor, Circuit, Mos, Source
from cosim.engines.batch import sweep
from cosim.engines.engine import Failure, FailureKind
from cosim.engines.ngspice.simulator import Ngspice

pytestmark = pytest.mark.ngspice

W, L = 1e-6, 5e-6
FINE = replace(PRECISE, reltol=1e-7)  # finer than a datasheet's


@pytest.fixture
def both(batch):
    """(bench) -> waveforms of the batch engine and of ngspice."""

    def run(bench):
        found = batch.run(bench, 60.0), Ngspice().run(replace(bench, tolerances=PRECISE), 60.0)
        for one in found:
            assert not isinstance(one, Failure), one.detail
        return found

    return run


@pytest.fixture
def mirror(technology):
    """A mirror with a copy that deviates, behind a capacitor, and a source that moves in time."""
    elements = (
        supply_of(technology),
        Source("in", "i", "vdd", "g", ((0.0, 2e-9), (1e-3, 5e-9))),
        Mos("diode", "g", "g", "0", "0", "n", W, L, 8),
        Mos("copy", "d", "g", "0", "0", "n", W, L, 8, vt_shift=0.01, beta_factor=1.02),
        Mos("pdiode", "d", "d", "vdd", "vdd", "p", W, L, 8),
        Mos("pcopy", "f", "d", "vdd", "vdd", "p", W, L, 4),
        Source("f", "v", "f", "0", 1.0),
        Capacitor("c", "d", "0", 1e-12),
    )
    probes = Voltage("g"), Voltage("d"), Current("f"), DrainCurrent("copy")
    return Bench(Circuit("mirror", (), elements), technology, Op(), probes, FINE)


def agree(mine, theirs):
    """Gates within 0.1 % of a current, 0.04 mV; currents of two tables with a deviation, 0.4 % as in a transient."""
    for probe in mine.probes:
        tolerance = {"atol": 1e-4} if isinstance(probe, Voltage) else {"rtol": 4e-3, "atol": 1e-14}
        np.testing.assert_allclose(mine.probes[probe], theirs.probes[probe], err_msg=str(probe), **tolerance)


def test_an_operating_point_is_that_of_time_0(both, mirror):
    mine, theirs = both(mirror)
    assert len(mine.time) == len(theirs.time) == 0 and all(len(values) == 1 for values in mine.probes.values())
    agree(mine, theirs)
    assert mine.drain("copy")[0] < 2e-9  # 2 nA less 10 mV of threshold, and not 5 nA


@pytest.mark.parametrize(
    "analysis",
    [Dc("i", "in", 0.1e-9, 6e-9, 0.1e-9), Dc("i", "in", 6e-9, 0.1e-9, -0.1e-9), Dc("v", "f", 0.0, 1.75, 0.1)],
)
def test_a_sweep_has_the_values_of_ngspice(both, mirror, analysis, monkeypatch):
    """The last value of 1.75 V in steps of 0.1 V is 1.7 V. A ramp half as fast gives the same: charges do not count.

    What half the speed changes is what Newton's method leaves, some nV.
    """
    bench = replace(mirror, circuit=sweep.as_transient(mirror).circuit, analysis=analysis)
    mine, theirs = both(bench)
    np.testing.assert_allclose(mine.time, theirs.time, rtol=1e-9, atol=1e-12)
    agree(mine, theirs)
    monkeypatch.setattr(sweep, "_SECONDS", 2e5)
    slower, _ = both(bench)
    for probe, values in mine.probes.items():
        np.testing.assert_allclose(values, slower.probes[probe], rtol=1e-6, atol=1e-7 * isinstance(probe, Voltage))


@pytest.mark.parametrize("step", [5e-12, -5e-12])
def test_a_jump_between_two_states_is_followed(both, technology, calibration, step):
    """A 9T cell sets at its upper threshold and resets at its lower one, 300 pA apart; tables err by some pA."""
    cell = schmitt_circuit(technology, 8, (0.6e-9, 0.3e-9, 0.9e-9), 0.0, calibration.v_node)
    ends = (0.0, 1.2e-9) if step > 0 else (1.2e-9, 0.0)
    bench = Bench(cell, technology, Dc("i", "in", *ends, step), (Voltage("xcell.v0"),), FINE)
    flips = []
    for waves in both(bench):
        high = waves.voltage("xcell.v0") > technology.supply / 2
        (place,) = np.flatnonzero(high[1:] != high[:-1])
        flips.append(waves.time[place])
    assert flips[0] == pytest.approx(flips[1], abs=10e-12)
    assert (flips[0] > 0.45e-9) == (step > 0)


def test_what_no_sweep_can_be_is_said(batch, mirror):
    noise = TransientNoise(1e-6, 1, (("g", 1e-12),))
    for bench, said in (
        (replace(mirror, analysis=Dc("v", "none", 0, 1, 0.1)), "a sweep of vnone, which is not at the top level"),
        (replace(mirror, noise=noise), "noise of an operating point or of a sweep"),
    ):
        found = batch.run(bench, 60.0)
        assert isinstance(found, Failure) and found.kind is FailureKind.UNSUPPORTED and said in found.detail
