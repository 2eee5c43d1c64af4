"""Transients with noise in the batched engine: its size by hand, and that it depends on nothing beside a bench."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.cells.benches import clocked_bench, supply_of
from cosim.cells.rectifier import CANDIDATE, candidate_diode
from cosim.circuit.bench import Bench, Tran, TransientNoise, Voltage
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Instance, Source
from cosim.circuit.waveforms import Timing
from cosim.engines.behavioral.noise import ClockedCells, apertures
from cosim.engines.engine import Failure
from cosim.technology.types import HOLD_CAPACITANCE
from cosim.verbs.calibrate.noise import find_noise

CHARGE, AMPERE, FARAD, STEP = 1.602176634e-19, 1e-9, 0.4e-12, 2e-6


@pytest.fixture(scope="module")
def diode(technology):
    elements = (
        supply_of(technology),
        Source("in", "i", "cand", GROUND, AMPERE),
        Instance("cand", ("cand", "vdd"), CANDIDATE),
        Capacitor("hold", "cand", "vdd", FARAD),
    )
    circuit = Circuit("diode", (candidate_diode(technology),), elements)
    return Bench(circuit, technology, Tran(1e-4, 0.04), (Voltage("cand"),))


def ran(batch, benches):
    found = batch.run_all(benches, 900.0)
    assert not any(isinstance(one, Failure) for one in found)
    return found


def banded(ratio):
    """Of a lag's variance: the autocorrelation of noise that is linear between points is a cubic B-spline."""
    x = np.linspace(0, 2, 4001)
    return 2 * np.trapezoid(np.where(x < 1, 2 / 3 - x**2 + x**3 / 2, (2 - x) ** 3 / 6) * np.exp(-x * ratio), x)


@pytest.mark.ngspice
@pytest.mark.parametrize("own", [False, True])
def test_a_diode_has_s_over_4_c_g(batch, technology, diode, own):
    """6 %: 20,000 lags are 10,000 independent values, 4 standard errors 1/sqrt(2 n) of which are 2.8 %; BDF takes up to
    3 % of what is fast."""
    device = find_noise(technology).devices["cell_p"]
    slopes = find_noise(technology).devices["cell_n"].slopes[0], device.slopes[0]
    thermal = float(device.physical(AMPERE)) if own else 1.0
    fixed = () if own else (("cand", float(np.sqrt(CHARGE * AMPERE / STEP))),)
    noises = [TransientNoise(STEP, 7 * k, fixed, slopes if own else None) for k in range(8)]
    times = np.arange(1e-3, 0.04, 2e-5)
    found = ran(batch, [replace(diode, noise=noise) for noise in noises])
    rms = np.std([np.interp(times, one.time, one.voltage("cand")) for one in found])
    siemens = AMPERE / (float(device.slope(AMPERE)) * technology.thermal_voltage)
    lag = (FARAD + device.diode) / siemens
    wanted = np.sqrt(thermal * 2 * CHARGE * AMPERE / (4 * siemens * (FARAD + device.diode)) * banded(STEP / lag))
    assert rms == pytest.approx(wanted, rel=0.06)


@pytest.mark.ngspice
def test_noise_is_a_benchs_own(batch, technology):
    """To the bit: alone, and in a tile whose other benches end earlier and make room; another key is another noise."""
    slopes = tuple(find_noise(technology).devices[kind].slopes[0] for kind in ("cell_n", "cell_p"))
    benches = [
        replace(
            clocked_bench(technology, 8, (1e-9, 3e-10, 1e-9), np.full(2, 1e-9), Timing()),
            analysis=Tran(1e-4, 2e-3 + 1e-4 * k),
            noise=TransientNoise(5e-6, k, slopes=slopes),
        )
        for k in range(11)
    ]
    together, latch = ran(batch, benches), "xcell.latch"
    for k in (0, 9):
        (alone,) = ran(batch, [benches[k]])
        np.testing.assert_array_equal(alone.time, together[k].time)
        np.testing.assert_array_equal(alone.voltage(latch), together[k].voltage(latch))
    (other,) = ran(batch, [replace(benches[0], noise=replace(benches[0].noise, key=99))])
    assert not np.array_equal(other.voltage(latch)[-50:], together[0].voltage(latch)[-50:])


def threshold(batch, technology, charge):
    """Of a clocked cell at 1 nA whose hold node gets so much, C, once its sample gate has closed, A."""
    timing = Timing()
    at = timing.start + (1 + timing.closes(2)[0] + 0.01) * timing.t_step
    wave = (0.0, 0.0), (at, 0.0), (at + 1e-7, charge / 2e-6), (at + 2e-6, charge / 2e-6), (at + 2.1e-6, 0.0)
    low, high = 0.95e-9, 1.02e-9
    for _ in range(2):
        tried, benches = np.linspace(low, high, 32), []
        for one in tried:
            bench = clocked_bench(technology, 8, (1e-9, 3e-10, 1e-9), np.array([0.2e-9, one]), timing)
            flat = bench.circuit.flat()
            driven = replace(flat, elements=(*flat.elements, Source("kick", "i", "xcell.hold", GROUND, wave)))
            benches.append(replace(bench, circuit=driven))
        on = [one.voltage("xcell.latch")[-1] > 0.3 * technology.supply for one in ran(batch, benches)]
        first = int(np.argmax(on))
        assert first > 0
        low, high = tried[first - 1], tried[first]
    return (low + high) / 2


@pytest.mark.ngspice
def test_a_cell_is_set_by_a_share_of_what_is_frozen(batch, technology):
    """Charge on the frozen hold node is current of the candidate by g_m over its capacitance; the threshold moves by
    `frozen` of that. 6 %: 0.1 pA of 4.4 pA in the bisection, and the hold node's capacitance is 2 % more than here."""
    fit = find_noise(technology)
    device, charge = fit.devices["cell_p"], 2e-16
    moved = threshold(batch, technology, 0.0) - threshold(batch, technology, charge)
    siemens = 0.98e-9 / (float(device.slope(1e-9)) * technology.thermal_voltage)
    current = charge / (HOLD_CAPACITANCE + device.gate) * siemens
    thresh = np.array([1e-9])
    cell = ClockedCells(
        thresh, 0.3 * thresh, np.array([False]), 2, Timing(), technology.supply, technology.thermal_voltage
    )
    assert moved / current == pytest.approx(apertures(cell, fit)[0].frozen, rel=0.06)


def test_ngspice_gets_sources_and_no_noise_of_transistors(diode):
    noisy = replace(diode, noise=TransientNoise(2e-6, 5, (("cand", 1e-11),)))
    deck = format_bench(noisy)
    assert "inoise0 cand 0 dc 0 trnoise(1e-11 2e-06 0 0)\n.options seed=6\n" in deck
    assert "trnoise" not in format_bench(diode)
    with pytest.raises(InputError, match="no noise of transistors in a transient; use --engine batch"):
        format_bench(replace(noisy, noise=replace(noisy.noise, slopes=(1.3, 1.3))))
