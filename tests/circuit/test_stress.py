"""A bench under stress: what its sources are then, against what the stress says."""

import numpy as np
import pytest

from cosim.circuit.bench import with_power_up, with_ripple, with_skew, with_step
from cosim.circuit.elements import GROUND, Source
from cosim.compiler.passes import compile_network
from cosim.engines.simulation.testbench import inference_bench


@pytest.fixture(scope="module")
def bench(late, technology, calibration):
    design = compile_network(late.register(2), technology, calibration)
    return inference_bench(design, np.zeros((4, 1)))


def sources(bench):
    return {one.name: one for one in bench.circuit.elements if isinstance(one, Source)}


def at(source, times):
    if not isinstance(source.value, tuple):
        return np.full(len(times), source.value)
    own = np.array(source.value)
    return np.interp(times, own[:, 0], own[:, 1])


def corners(*found):
    """Every time at which one of the sources has a corner: between them all are straight."""
    return np.unique([time for one in found if isinstance(one.value, tuple) for time, _ in one.value])


def test_ripple_moves_the_supply_and_all_logic_with_it(bench, technology):
    bent, plain = sources(with_ripple(bench, 0.1, 250.0)), sources(bench)
    end, supply = bench.transient.end, technology.supply
    peaks = np.arange(0.001, end, 0.004)  # a quarter of a period behind the first zero, then every period
    np.testing.assert_allclose(at(bent["dd"], peaks), supply + 0.05, rtol=1e-12)
    np.testing.assert_allclose(at(bent["dd"], peaks + 0.002), supply - 0.05, rtol=1e-12)
    logic = [name for name, one in plain.items() if one.kind == "v" and one.b == GROUND and name != "dd"]
    assert {"resetb", "clk0", "clkb0"} <= set(logic)
    for name in logic:
        times = corners(bent[name])
        wanted = at(plain[name], times) * at(bent["dd"], times) / supply
        np.testing.assert_allclose(at(bent[name], times), wanted, atol=1e-12)
    assert {name: bent[name] for name in plain if name not in (*logic, "dd")} == {
        name: plain[name] for name in plain if name not in (*logic, "dd")
    }


def test_a_step_is_there_from_start_to_end(bench, technology):
    bent = sources(with_step(bench, -0.2, 0.01, 0.02, 1e-5))["dd"]
    times = np.array([0.0, 0.01, 0.01 + 1e-5, 0.02, 0.02 + 1e-5, bench.transient.end])
    np.testing.assert_allclose(at(bent, times), technology.supply - np.array([0, 0, 0.2, 0.2, 0, 0]), rtol=1e-12)


def test_at_power_up_currents_grow_with_the_supply(bench, technology):
    bent, plain = sources(with_power_up(bench, 2e-3)), sources(bench)
    for name in ("dd", "unit", "ground", "pedestal"):
        np.testing.assert_allclose(
            at(bent[name], [0.0, 1e-3, 2e-3]), at(plain[name], [0.0, 1e-3, 2e-3]) * [0, 0.5, 1], atol=1e-18
        )


def test_skew_delays_each_clock_by_its_own_time_and_the_same_again(bench):
    bent, plain = sources(with_skew(bench, 3e-4, 7)), sources(bench)
    delays = {}
    for name, one in plain.items():
        if one.kind == "v" and one.b == GROUND and isinstance(one.value, tuple):
            moved = np.array(bent[name].value)[1:, 0] - np.array(one.value)[1:, 0]
            np.testing.assert_allclose(moved, moved[0], atol=1e-15)
            delays[name] = moved[0]
        else:
            assert bent[name] == one
    assert len(set(delays.values())) == len(delays) > 2
    assert 0 < max(map(abs, delays.values())) <= 3e-4
    assert sources(with_skew(bench, 3e-4, 7)) == bent
    assert sources(with_skew(bench, 3e-4, 8)) != bent
