"""What can be watched by name, and what is recorded."""

import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Run
from cosim.verbs.simulate import waveforms as probing
from cosim.verbs.simulate.waveforms import choose, record_signals, watchable


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    network = make_network(26, hidden=2, widths=(3,), outputs=2, alphas=(1.0,))
    return compile_network(network, technology, calibration)


def test_names_are_those_of_the_graph_and_of_the_mapping(design):
    names = watchable(design)
    assert set(names["layer0.1"]) == {"layer0.1.candidate", "layer0.1.state"}
    assert names["in.0"] == names["readout.1"] == {}
    transistors = {mos.name for mos in design.assembly.circuit.flatten()}
    assert {device for devices in names.values() for device in devices.values()} <= transistors
    built = [design.graph.weights[edge].origin for edge in design.assembly.weights]
    assert set(built) <= set(names)


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["layer0.2"], ["layer0.2"]),
        (["layer0.*"], ["layer0.0", "layer0.1", "layer0.2"]),  # units before weights
        (["layer0.?", "layer0.1"], ["layer0.0", "layer0.1", "layer0.2"]),
        (["readout.1", "hidden.*"], ["readout.1", "hidden.0", "hidden.1"]),
    ],
)
def test_patterns(design, patterns, found):
    assert list(choose(design, patterns)) == found


def test_brackets_of_weights_are_no_wild_cards(design):
    row = [name for name in watchable(design) if name.startswith("layer0.weight[1,")]
    assert row and list(choose(design, ["layer0.weight[1,*]"])) == row
    assert list(choose(design, row[:1])) == row[:1]


def test_a_wrong_name_is_told_those_near_it(design, monkeypatch):
    with pytest.raises(
        InputError, match=r"--probe 'layr0\.1': no unit and no weight has this name; near it: layer0\.1"
    ):
        choose(design, ["layr0.1"])
    with pytest.raises(InputError, match=r"the units are in\.0, in\.1, in\.2, hidden\.0"):
        choose(design, ["["])
    monkeypatch.setattr(probing, "MOST", 3)
    with pytest.raises(InputError, match=r"3 names are more than the 3 currents that a run saves; choose fewer"):
        choose(design, ["layer0.*"])


@pytest.mark.ngspice
@pytest.mark.parametrize("engine", ["ngspice", "batch"])
def test_recorded_currents_are_those_of_the_equations(design, engine):
    if engine == "batch":
        pytest.importorskip("numba")
    x = np.random.default_rng(0).uniform(size=(3, 3))
    edge, element = next((edge, at) for edge, at in design.assembly.weights.items() if edge[0] == "in.2")
    weight, mirror = design.graph.weights[edge], design.graph.mirrors[edge]
    recorded = record_signals(design, x, ("hidden.0", weight.origin, "layer0.1"), Run(engine=engine))
    trace, timing = run_behavioral(design, x[None]), Run().timing
    settled = timing.start + (np.arange(3) + 0.6) * timing.t_step  # before the only stage decides, at 0.7

    def at(name):
        return np.interp(settled, recorded.time, recorded.vectors[name])

    # a copy of input and pedestal: 5 % for what copies deviate by at any current here, 5 pA for settling
    carried = abs(mirror.realised) * (1e-9 * x[:, 2] + design.graph.i_pedestal)
    np.testing.assert_allclose(at(weight.origin), carried, rtol=0.05, atol=5e-12, err_msg=element)
    # 3 %/V and 1 mV of settling on a traffic of 3 units: 0.05 units
    np.testing.assert_allclose(at("layer0.1.candidate"), trace.candidates["layer0.1"][0], atol=0.05e-9)
    for cell, states in trace.states.items():
        read = np.searchsorted(recorded.time, timing.sample_times(3))
        np.testing.assert_array_equal(recorded.states[cell][read], states[0])
    clock = recorded.logic["clk0"]
    assert np.flatnonzero(np.diff(clock) < 0).size == 3  # closes once a frame
    assert set(recorded.vectors) >= {"in.0", "in.1", "in.2", "readout.0", "readout.1", "power", "hidden.0"}
