"""Noise of candidates: the covariances against Lyapunov's equation, the numbers, who is refused, what changes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov

from cosim.base.errors import InputError
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral, run_noisy
from cosim.engines.behavioral.noise import CHARGE, Candidates, noise_model
from cosim.engines.ngspice.noise import held_noise
from cosim.network.layers import MinGruLayer
from cosim.network.types import InputEncoding, Network, Readout
from cosim.variation.noise import NoiseSimulation


def candidates_of(design, fit, trace):
    """The lines of a design at the currents of a trace, with every candidate among them."""
    currents = lambda source, *, late: trace.currents[source]  # noqa: E731
    found = Candidates(noise_model(design, NoiseSimulation(fit), design.technology.thermal_voltage), currents)
    for node in design.graph.memories:
        found.frozen(node, trace.candidates[node.name])
    return found


@pytest.mark.ngspice
def test_sigma_is_what_ngspice_says_at_the_hold_nodes(design, fit, inputs):
    """15 %: gates and drains are lumped on their nets, at one bias, and the slope of a line is that of its diode."""
    (spectra, _), trace = held_noise(design, inputs[2], 6), run_noisy(design, inputs, NoiseSimulation(fit, card=True))
    checked = 0
    for cell, spectrum in spectra.items():
        if (current := trace.candidates[cell][2, 6]) > 2e-11:
            siemens = current / (fit.devices["cell_p"].slope(current) * design.technology.thermal_voltage)
            assert trace.frozen[cell][2, 6] == pytest.approx(siemens * np.sqrt(spectrum.variance), rel=0.15)
            checked += 1
    assert checked >= 4


def test_an_analog_state_is_refused_by_name(technology, calibration, fit):
    weight = np.full((1, 2), 0.5)
    layer = MinGruLayer("layer0", ("input",), weight, np.zeros(1), weight_gate=weight, bias_gate=np.ones(1))
    readout = Readout(("layer0",), np.eye(1), np.zeros(1), "last")
    network = Network(InputEncoding(np.zeros(2), np.ones(2)), (layer,), readout)
    design = compile_network(network, technology, calibration)
    with pytest.raises(InputError, match="layer0.0 holds an analog state"):
        run_noisy(design, np.zeros((1, 3, 2)), NoiseSimulation(fit))


def test_covariances_solve_lyapunovs_equation(design, fit, inputs):
    """A P + P A' + Q = 0 with dx/dt = A x + w: the same equation, solved by linear algebra in one place and frame."""
    found = candidates_of(design, fit, run_behavioral(design, inputs))
    keys = list(found.lines)
    lag, white = (
        np.array([np.broadcast_to(getattr(found.lines[key], name), (7, 11))[3, 4] for key in keys])
        for name in ("lag", "white")
    )
    gains = np.zeros((len(keys), len(keys)))
    for i, key in enumerate(keys):
        for other, gain in found.lines[key].into:
            gains[i, keys.index(other)] = np.broadcast_to(gain, (7, 11))[3, 4]
    scale, density = lag.mean(), white.mean()  # numbers of about 1
    matrix = (gains - np.eye(len(keys))) * (scale / lag)[:, None]
    wanted = solve_continuous_lyapunov(matrix, -np.diag(white / density / 2 * (scale / lag) ** 2)) * density / scale
    for k, a in enumerate(keys):
        for j, b in enumerate(keys):
            mine = np.broadcast_to(found.covariance(a, b), (7, 11))[3, 4]
            assert mine == pytest.approx(wanted[k, j], rel=1e-9, abs=1e-9 * wanted.max())


def test_a_line_alone_has_s_gm_over_4c(design, fit, inputs):
    """An input's line p, whose current comes from outside, has the noise of its diode alone: 2 q I g_m / (4 C)."""
    trace = run_behavioral(design, inputs)
    found = candidates_of(design, fit, trace)
    current, device = trace.currents["in.1"], fit.devices["mirror_p"]
    each = current / design.graph.units
    siemens = current / (device.slope(each) * design.technology.thermal_voltage)
    farad = found.model.loads.of("in_1_p")
    wanted = 2 * CHARGE * current * device.physical(each) * siemens / (4 * farad)
    np.testing.assert_allclose(found.covariance(("in.1", "p", False), ("in.1", "p", False)), wanted, rtol=1e-12)


def test_sigma_grows_with_what_the_row_adds(design, fit, inputs):
    """A candidate is a difference: the noise of what is added and taken away stays, whatever is left."""
    trace = run_noisy(design, inputs, NoiseSimulation(fit))
    name = next(iter(trace.sigmas))
    noisier = replace(fit, devices={kind: replace(one, thermal=(2.0,) * 8) for kind, one in fit.devices.items()})
    more = run_noisy(design, inputs, NoiseSimulation(noisier, card=True))
    assert (more.sigmas[name] > trace.sigmas[name]).all()
    assert set(trace.sigmas) == set(trace.states)
    assert all(1e-13 < sigma.max() < 1e-10 for sigma in trace.sigmas.values())


def test_numbers_are_normal_and_depend_on_nothing_beside_them(fit):
    """Mean and variance of 20,000 within four standard errors, 1/sqrt(n) and sqrt(2/n); the same in any company."""
    noise = NoiseSimulation(fit, seed=3, samples=np.arange(400))
    drawn = noise.normals("layer1.0", (400, 50))
    assert abs(drawn.mean()) < 4 / np.sqrt(drawn.size)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(2 / drawn.size)
    some = replace(noise, samples=np.array([17, 3]))
    np.testing.assert_array_equal(some.normals("layer1.0", (2, 20), first=5), drawn[[17, 3], 5:25])
    for other in (replace(noise, seed=4), replace(noise, chip=1)):
        assert abs(np.corrcoef(other.normals("layer1.0", (400, 50)).ravel(), drawn.ravel())[0, 1]) < 4 / 141
    assert abs(np.corrcoef(noise.normals("layer1.1", (400, 50)).ravel(), drawn.ravel())[0, 1]) < 4 / 141


def test_a_run_repeats_and_another_seed_differs(design, fit, inputs):
    first, again = (run_noisy(design, inputs, NoiseSimulation(fit, seed=1)) for _ in range(2))
    for cell, states in first.states.items():
        np.testing.assert_array_equal(states, again.states[cell])


def test_states_that_feed_back_have_a_number_for_every_frame(late, technology, calibration, fit):
    """Frames of a counter are evaluated one after the other: its sigmas and numbers are those of its frames."""
    design = compile_network(late.counter(3), technology, calibration)
    x = np.random.default_rng(2).integers(0, 2, size=(4, 12, 1)).astype(float)
    trace = run_noisy(design, x, NoiseSimulation(fit))
    quiet = run_behavioral(design, x)
    for cell, states in quiet.states.items():
        assert trace.sigmas[cell].shape == (4, 12)
        np.testing.assert_array_equal(trace.states[cell], states)  # its margins are many sigma
