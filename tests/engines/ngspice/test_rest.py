"""Every sample starts where the network rests: one deck for all of them, and the same states, readout and power."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.circuit.bench import Bench, Tolerances, Tran, held, relaxed, resting, started
from cosim.circuit.dialects.ngspice import format_bench
from cosim.circuit.elements import Circuit, Instance, Source
from cosim.compiler.passes import compile_network
from cosim.engines.engine import Failure, FailureKind
from cosim.engines.ngspice import simulator as rest
from cosim.engines.ngspice.process import run_bench, run_deck
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import read_inference, read_plan
from cosim.engines.simulation.testbench import inference_bench

FRAMES = 3


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(11, widths=(3,), outputs=2), technology, calibration)


@pytest.fixture(scope="module")
def benches(design):
    inputs = np.random.default_rng(7).uniform(size=(2, FRAMES, 3))
    return [inference_bench(design, x) for x in inputs]


def test_all_samples_rest_at_one_point(benches, design):
    assert format_bench(benches[0]) != format_bench(benches[1])
    still = format_bench(resting(benches[0]))
    assert still == format_bench(resting(benches[1]))
    assert "pwl(" not in still
    dark = inference_bench(design, np.zeros((FRAMES, 3)))  # inputs that never move are dc sources from the start
    assert "iin_0_p in_0_p 0 dc " in format_bench(dark) and format_bench(resting(dark)) == still
    assert still.endswith(".save all\n.tran 1e-05 1e-05\n.end\n")
    brighter = replace(inference_bench(design, np.zeros((FRAMES, 3))), preset=(("xnet.a", 1.8),))
    assert format_bench(resting(brighter)) != still


@pytest.fixture
def staircase(technology):
    source = Source("1", "i", "a", "0", ((0.0, 2.5e-9), (1e-3, 2.5e-9), (2e-3, 7e-9)))
    return Bench(Circuit("one source", (), (source,)), technology, Tran(1e-5, 1e-2), preset=(("y", 1.8),))


def test_sources_stay_what_they_are_at_time_0(staircase):
    for bench, end in ((resting(staircase), 1e-5), (held(staircase, 3e-3), 3e-3)):
        assert bench.circuit.elements == (Source("1", "i", "a", "0", 2.5e-9),)
        assert bench.analysis == Tran(1e-5, end)
    assert format_bench(held(staircase, 3e-3)).endswith("\n.tran 1e-05 3e-03 0e+00 1e-05\n.end\n")


def test_a_started_bench_keeps_its_analysis_and_its_preset(staircase):
    plain, text = format_bench(staircase), format_bench(started(staircase, (("x", 0.3),)))
    assert " bypass=0 " in plain and plain.endswith("\n.ic v(y)=1.8e+00\n.tran 1e-05 1e-02 0e+00 1e-05\n.end\n")
    begun = plain.replace("\n.tran", "\n.nodeset v(x)=3e-01\n.tran").replace("bypass=0", "bypass=1")
    assert text == begun


@pytest.mark.parametrize(("chgtol", "text"), [(1e-17, "1e-16"), (1e-19, "1e-18")])
def test_a_relaxed_bench_has_ten_times_the_charge_tolerance(staircase, chgtol, text):
    bench = replace(staircase, tolerances=Tolerances(chgtol=chgtol))
    strict = format_bench(bench)
    assert format_bench(relaxed(bench)) == strict.replace(f"chgtol={chgtol:.0e}", f"chgtol={text}") != strict


@pytest.mark.ngspice
def test_found_once_and_the_same_results(benches, design, monkeypatch):
    """States equal; readout within the 0.002 i_unit rms that bypass costs, times 5 for the largest of 12."""
    ran = []
    rest._rest.cache_clear()
    monkeypatch.setattr(rest, "run_deck", lambda deck, timeout: ran.append(deck) or run_deck(deck))
    monkeypatch.setattr(rest, "run_bench", lambda bench, timeout: ran.append(format_bench(bench)) or run_bench(bench))
    plan = read_plan(design, FRAMES)
    for bench in benches:
        found, alone = run_inference(bench, plan), read_inference(run_bench(bench), plan)
        np.testing.assert_array_equal(found.states, alone.states)
        np.testing.assert_allclose(found.readout, alone.readout, atol=0.01 * design.i_unit)
        assert found.power_w == pytest.approx(alone.power_w, rel=1e-3, abs=0)
    assert ["\n.tran 1e-05 1e-05\n" in deck for deck in ran] == [True, False, False]


@pytest.mark.ngspice
def test_a_network_without_a_resting_point_runs_on_its_own(benches, design, monkeypatch):
    def unsettled(deck, timeout):
        return (
            Failure(FailureKind.CONVERGENCE, "gmin stepping failed", deck)
            if "\n.tran 1e-05 1e-05\n" in deck
            else run_deck(deck)
        )

    rest._rest.cache_clear()
    monkeypatch.setattr(rest, "run_deck", unsettled)
    plan = read_plan(design, FRAMES)
    found = run_inference(benches[0], plan)
    rest._rest.cache_clear()
    np.testing.assert_array_equal(found.states, read_inference(run_bench(benches[0]), plan).states)


@pytest.mark.ngspice
def test_a_failure_carries_the_deck_as_it_was_given(benches):
    elements = (*benches[0].circuit.elements, Instance("broken", ("vdd",), "no_such_block"))
    broken = replace(benches[0], circuit=replace(benches[0].circuit, elements=elements))
    failure = rest.run_from_rest(broken)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.deck) == (FailureKind.DECK, format_bench(broken))
