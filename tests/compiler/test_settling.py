"""The shortest frame: the equation of a gate line, how it scales, and a line in ngspice."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.circuit.bench import DrainCurrent
from cosim.circuit.waveforms import LAST_CLOSE, Timing
from cosim.compiler.design import RESIDUE, gate_loads, slowest_line
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.ngspice.process import run_bench
from cosim.engines.simulation.testbench import inference_bench


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(26, widths=(3, 2), outputs=2, alphas=(1.0,)), technology, calibration)


def test_fall_time_is_that_of_the_differential_equation(design, technology):
    """dI/dt = I (I_p - I) / Q from 1.05 to 0.05 + RESIDUE units, in steps of which 1e-5 are to fall."""
    _, capacitance, t_step = slowest_line(design)
    swing = technology.nfet.slope_factor * technology.thermal_voltage  # the larger of the two
    current, seconds, step = 1.05e-9, 0.0, t_step * 1e-5
    while current > 0.05e-9 + RESIDUE * 1e-9:
        current += step * current * (0.05e-9 - current) / (capacitance * swing)
        seconds += step
    assert t_step == pytest.approx(seconds * 2 / LAST_CLOSE, rel=1e-3)  # two stages


def test_the_line_is_the_one_with_the_largest_gates(design):
    loads = gate_loads(design)
    signal, capacitance, _ = slowest_line(design)
    stem = signal.replace(".", "_")
    nets = [net for net in loads if net.rpartition(".")[2] in (f"{stem}_p", f"{stem}_n")]
    assert capacitance == max(loads[net] for net in nets) > 0


def test_frames_scale_with_the_current(make_network, technology, calibration):
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    (_, one_load, one), (_, half_load, half) = (
        slowest_line(compile_network(network, technology, calibration, CompilerSettings(unit)))
        for unit in (1e-9, 0.5e-9)
    )
    assert half == pytest.approx(2 * one, rel=1e-9)
    assert half_load == pytest.approx(one_load, rel=1e-9)


@pytest.mark.ngspice
def test_a_line_in_ngspice_settles_as_said(make_network, technology, calibration):
    """An input of 1, then of 0: its diode's current at the close of the only stage, in frames as short as allowed.

    The estimate lacks overlap and the rise of the depletion layer's share: tens of per cent of C. The residue falls as
    exp(-t / tau) from tau ln 10 on, so 30 % of tau are a factor of two.
    """
    design = compile_network(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), technology, calibration)
    signal, _, t_step = slowest_line(design)
    assert signal.startswith("in.")
    timing = Timing(t_step=t_step)
    stem = signal.replace(".", "_")
    diode = f"network.diode_{stem}.diode"
    bench = inference_bench(design, np.array([[1.0] * 3, [0.0] * 3]), timing)
    bench = replace(bench, probes=(*bench.probes, DrainCurrent(diode)))
    waves = run_bench(bench)
    at = timing.start + (1 + timing.edge / 2 + LAST_CLOSE) * timing.t_step
    left = np.interp(at, waves.time, waves.drain(diode)) / design.i_unit - 0.05
    assert RESIDUE / 2 < left < 2 * RESIDUE
