"""The equations: hand-made rows, memory, and deviations that change what they name and nothing else."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from cosim.base.errors import InputError
from cosim.circuit.deck import format_number
from cosim.circuit.dialects.ngspice import format_bench
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.effects import Deviations
from cosim.engines.behavioral.evaluate import evaluate
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.simulation.testbench import inference_bench, meter
from cosim.network.reference import encode_inputs, run_reference
from cosim.network.types import InputEncoding
from cosim.units.schmitt import Schmitt, SchmittFactors

I_UNIT = 0.5e-9


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    return compile_network(make_network(26, hidden=5), technology, calibration, CompilerSettings(I_UNIT))


@pytest.fixture(scope="module")
def inputs():
    return np.random.default_rng(9).uniform(size=(7, 11, 3))


def run(design, inputs, deviations=Deviations(), **settings):
    encoded = encode_inputs(design.network.encoding, inputs)
    return evaluate(design.graph, design.calibration, encoded, deviations, **settings)


def test_first_row_by_hand(design, inputs):
    """hidden.2 against the sum written out: gains at each current, the node's swing, the rectifier."""
    mirror, graph = design.calibration.mirror, design.graph
    layer = design.network.layers[0]
    riding = sum(round(8 * w) for w in layer.weight[2])
    terms = [(inputs[:, :, j] * I_UNIT + graph.i_pedestal, layer.weight[2, j]) for j in range(3)]
    terms.append((np.full(inputs.shape[:2], I_UNIT), layer.bias[2]))
    terms.append((np.full(inputs.shape[:2], graph.i_pedestal), -riding / 8))
    pull = sum(w * i * mirror.interpolate(mirror.gain_n, i) for i, w in terms if w > 0)
    push = sum(-w * i * mirror.interpolate(mirror.gain_p, i) for i, w in terms if w < 0)
    drop = mirror.node_drop(pull - push) - mirror.relu_above
    expected = np.where(
        pull > push, pull * (1 - mirror.slope_n * drop) - push * (1 + mirror.slope_p * drop), pull - push
    )
    found = run(design, inputs).currents["hidden.2"]
    np.testing.assert_allclose(found, np.maximum(expected, 0), rtol=1e-12, atol=1e-24)
    assert (found > 0).any() and (found == 0).any()


def test_states_follow_the_thresholds_of_the_fit(design, inputs):
    trace = run(design, inputs)
    fit = design.calibration.schmitt
    for node in design.graph.of(Schmitt):
        bias = design.graph.biases[node.name]
        pair = np.float64(bias.i_thresh), np.float64(bias.i_width)
        rise, fall = fit.set_in_frame(fit.i_rise(*pair)), fit.reset_in_frame(fit.i_fall(*pair))
        candidate, state = trace.candidates[node.name], np.zeros(len(inputs), bool)
        for t in range(inputs.shape[1]):
            state = (candidate[:, t] >= rise) | (state & (candidate[:, t] > fall))
            np.testing.assert_array_equal(trace.states[node.name][:, t], state)


def test_samples_do_not_see_each_other(design, inputs):
    whole = run(design, inputs)
    for k in range(len(inputs)):
        np.testing.assert_array_equal(run(design, inputs[k : k + 1]).readout[0], whole.readout[k])


def test_no_deviations_is_nominal(design, inputs):
    deviations = Deviations(
        {"in.2": 1.0},
        {"in.2": 1.0},
        {("in.0", "hidden.1"): 1.0},
        {"layer0.1": SchmittFactors(), "layer1.0": SchmittFactors(level=1.0)},
    )
    np.testing.assert_array_equal(run(design, inputs, deviations).readout, run(design, inputs).readout)


def changed(design, inputs, deviations):
    """Nodes whose current differs from the nominal one."""
    nominal, other = run(design, inputs), run(design, inputs, deviations)
    return {name for name in nominal.currents if not np.array_equal(nominal.currents[name], other.currents[name])}


def test_one_mirror_changes_only_what_lies_behind_it(design, inputs):
    edge = next(
        (source, target)
        for source, target in design.graph.weights
        if source.startswith("in.") and target.startswith("hidden.") and design.graph.mirrors[source, target].count > 3
    )
    found = changed(design, inputs, Deviations(weights={edge: 1.1}))
    assert edge[1] in found
    assert found <= {edge[1], *nx.descendants(nx.DiGraph(list(design.graph.weights)), edge[1])}
    nominal, other = run(design, inputs), run(design, inputs, Deviations(weights={edge: 1.1}))
    # 10 % of one pulled term. Both sums see the swing of a node: at most 2.5 %/V, 35 mV per e-fold, of a traffic
    # that is up to 10 terms as large; and the path gain within 1 %.
    weight = design.graph.mirrors[edge].realised
    term = weight * nominal.currents[edge[0]]
    both = (nominal.currents[edge[1]] > 0) & (other.currents[edge[1]] > 0)
    difference = (other.currents[edge[1]] - nominal.currents[edge[1]])[both]
    assert both.any()
    np.testing.assert_allclose(difference, 0.1 * term[both], rtol=0.2)


def test_mirror_of_the_readout_changes_one_output(design, inputs):
    edge = next(
        (source, target)
        for source, target in design.graph.weights
        if target == "readout.3" and source.startswith("layer") and design.graph.mirrors[source, target].count
    )
    assert changed(design, inputs, Deviations(weights={edge: 0.9})) == {"readout.3"}


def test_rail_deviates_for_positive_readers_only(design, inputs):
    source = "layer1.0"
    readers = {target: design.graph.mirrors[source, target].count for _, target in design.graph.out_of(source)}
    found = changed(design, inputs, Deviations(lines_n={source: 1.05}))
    assert found == {target for target, count in readers.items() if count > 0}
    assert found and len(found) < len(readers)


@pytest.mark.parametrize(("field", "value"), [("thresh", 1.5), ("width", 0.5), ("compared", 0.7), ("level", 1.5)])
def test_one_cell_deviates(design, inputs, field, value):
    states = run(design, inputs).states
    cell = next(name for name, bits in states.items() if 0.2 < bits.mean() < 0.8)
    found = changed(design, inputs, Deviations(cells={cell: SchmittFactors(**{field: value})}))
    assert found <= {cell, *nx.descendants(nx.DiGraph(list(design.graph.weights)), cell)}
    if field == "level":
        nominal, other = run(design, inputs), run(design, inputs, Deviations(cells={cell: SchmittFactors(level=value)}))
        on = nominal.states[cell] == 1
        pedestal = design.graph.i_pedestal
        ratio = (other.currents[cell][on] - pedestal) / (nominal.currents[cell][on] - pedestal)
        np.testing.assert_allclose(ratio, 1.5, rtol=1e-12)
        np.testing.assert_array_equal(other.states[cell], nominal.states[cell])


def test_a_pedestal_deviates_where_the_state_is_0(design, inputs):
    nominal, other = run(design, inputs), run(design, inputs, Deviations(pedestals={"layer1.0": 1.2}))
    extra = other.currents["layer1.0"] - nominal.currents["layer1.0"]
    np.testing.assert_allclose(extra, 0.2 * design.graph.i_pedestal, rtol=1e-6)


def test_a_stronger_copy_of_the_candidate_is_lower_thresholds(design, inputs):
    """u c >= rise says u >= rise / c, and the fits are linear to 1 %: thresh and width divided by c do the same."""
    for node in design.graph.of(Schmitt):
        stronger = run(design, inputs, Deviations(cells={node.name: SchmittFactors(compared=1.25)}))
        lower = run(design, inputs, Deviations(cells={node.name: SchmittFactors(thresh=0.8, width=0.8)}))
        far = np.abs(stronger.candidates[node.name] / I_UNIT - node.rise * 0.8) > 0.02
        far &= np.abs(stronger.candidates[node.name] / I_UNIT - node.fall * 0.8) > 0.02
        if far.all():
            np.testing.assert_array_equal(stronger.states[node.name], lower.states[node.name])


def test_higher_threshold_sets_later_and_wider_hysteresis_resets_later(design, inputs):
    nominal = run(design, inputs)
    for node in design.graph.of(Schmitt):
        high = run(design, inputs, Deviations(cells={node.name: SchmittFactors(thresh=1.3)}))
        low = run(design, inputs, Deviations(cells={node.name: SchmittFactors(width=1.3)}))
        assert (high.states[node.name] <= nominal.states[node.name]).all()
        assert (low.states[node.name] >= nominal.states[node.name]).all()


def test_ideal_ignores_the_calibration(design, inputs):
    mirror = design.calibration.mirror
    calibration = replace(design.calibration, mirror=replace(mirror, gain_n=(0.5,) * len(mirror.currents)))
    other = replace(design, calibration=calibration)
    np.testing.assert_array_equal(run(design, inputs, ideal=True).readout, run(other, inputs, ideal=True).readout)
    assert not np.array_equal(run(other, inputs).readout, run(design, inputs).readout)


def test_raw_inputs_are_encoded_once_wherever_they_go_in(make_network, technology, calibration):
    """Raw values and currents have the same shape: each function takes one of them and refuses or encodes the other."""
    network = make_network(26, hidden=5)
    network = replace(network, encoding=InputEncoding(np.array([-3.0, 0.0, 5.0]), np.array([10.0, 16.0, 0.5])))
    design = compile_network(network, technology, calibration, CompilerSettings(I_UNIT))
    x = np.random.default_rng(9).uniform([-3, 0, 5], [7, 16, 5.5], size=(2, 4, 3))
    encoded = encode_inputs(network.encoding, x)
    expected = evaluate(design.graph, calibration, encoded).readout
    np.testing.assert_array_equal(run_behavioral(design, x).readout, expected)
    assert not np.array_equal(run_behavioral(design, encoded.units).readout, expected)
    with pytest.raises(InputError, match=r"inputs must be encoded, not ndarray: .* call run_behavioral\(design, x\)"):
        evaluate(design.graph, calibration, x)
    with pytest.raises(InputError, match="x must be raw inputs, not encoded ones, which would be encoded twice"):
        run_behavioral(design, run_reference(network, x).inputs)
    for bench_of in (inference_bench, lambda *given: meter(inference_bench(*given), given[0].assembly)):
        first = format_number(I_UNIT * encoded.units[0, 1, 0] + design.graph.i_pedestal)
        assert first in format_bench(bench_of(design, x[0]))


@pytest.mark.parametrize(
    ("deviations", "text"),
    [
        (Deviations(cells={"layer9.0": SchmittFactors(thresh=1.1)}), r"deviations\.cells: 'layer9\.0' is no node"),
        (Deviations(weights={("in.0", "nowhere"): 1.1}), r"deviations\.weights: \('in\.0', 'nowhere'\) is no weight"),
    ],
)
def test_unknown_deviations_are_refused(design, inputs, deviations, text):
    with pytest.raises(InputError, match=text):
        run(design, inputs, deviations)
