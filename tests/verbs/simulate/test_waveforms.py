"""Waveforms of one sample: what is drawn is what flows, and a failed run says so."""

import numpy as np
import pytest

from cosim.base.errors import SimulationError
from cosim.circuit.bench import Voltage
from cosim.circuit.waveforms import Timing
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Failure, FailureKind, Run, Waveforms
from cosim.engines.ngspice.simulator import Ngspice
from cosim.verbs.calibrate import measure as calibrate
from cosim.verbs.simulate.waveforms import record_waveforms


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), technology, calibration)


def test_failed_run_names_the_cell(design, monkeypatch):
    monkeypatch.setattr(Ngspice, "run", lambda self, bench, timeout: Failure(FailureKind.CRASH, "exit code 9", ""))
    with pytest.raises(SimulationError, match=r"waveforms of layer0\.1: the simulator process died: exit code 9"):
        record_waveforms(design, np.zeros((2, 3)), "layer0.1")


@pytest.mark.ngspice
def test_waveforms_are_those_of_the_cell(design):
    x = np.random.default_rng(0).uniform(size=(3, 3))
    timing = Timing()
    waves, labels = record_waveforms(design, x, "layer0.1", Run(timing=timing))
    trace = run_behavioral(design, x[None])
    settled = timing.start + (np.arange(3) + 0.6) * timing.t_step  # before the only stage decides, at 0.7
    candidate = np.interp(settled, waves["time"], waves["candidate"])
    # 3 %/V and 1 mV of settling on a traffic of 3 units: 0.05 units
    np.testing.assert_allclose(candidate, trace.candidates["layer0.1"][0], atol=0.05e-9)
    state = np.interp(timing.sample_times(3), waves["time"], waves["state"]) > 0.5e-9
    np.testing.assert_array_equal(state, trace.states["layer0.1"][0])
    np.testing.assert_allclose(np.interp(settled, waves["time"], waves["input.2"]), 1e-9 * x[:, 2], rtol=1e-9)
    assert (labels.unit, labels.outputs) == ("layer0.1", ["class 0", "class 1"])
    layer = design.network.layers[0]
    assert (labels.i_rise, labels.i_fall) == pytest.approx(
        (1e-9 * layer.beta_hi[1], 1e-9 * layer.beta_lo[1]), rel=1e-12, abs=0
    )
    assert (waves["power"][waves["time"] > timing.start] > 0).all()


def test_clocked_cell_that_never_flips_says_so(technology, monkeypatch):
    time = np.linspace(0, 1, 50)
    waves = Waveforms(time, {Voltage("xcell.latch"): np.zeros(50)})
    monkeypatch.setattr(Ngspice, "run", lambda self, bench, timeout: waves)
    with pytest.raises(SimulationError, match=r"clocked 9T cell did not flip .* A beyond its threshold of 1e-09 A"):
        calibrate.measure_frame_shift(technology, 8, (1e-9, 5e-10, 1e-9), (1e-9, 5e-10), sets=True)
