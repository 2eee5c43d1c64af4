"""Thresholds that depend on the input: the offset that they ride on, their lines, chips, and transistors."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import MappingError
from cosim.compiler.lower import lower
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.effects import Deviations, effects_of
from cosim.engines.behavioral.evaluate import cell_of, evaluate, threshold_lines
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.simulated import simulate_samples
from cosim.network.ir.states import software_states
from cosim.network.layers import OFFSET_MARGIN, SignedLayer
from cosim.network.reference import encode_inputs, measure_state_ranges, run_reference
from cosim.network.types import DelayedSignal, InputEncoding, Network, Readout, check_network
from cosim.tasks.testset import TestSet
from cosim.units.table import unit_of

FRAMES = 16
KINDS = ("ladder", "counter", "toggle", "register")


def moving(kind, **fields):
    """Two units of inputs x, y, w with beta = |x - y + 1/8| and |x/2 + y/4|, and candidates that cross both sides.

    A toggle's candidates are never negative: it turns by updates of one sign.
    """
    weight, bias = np.array([[0.5, -0.25, 2.0], [-1.0, 0.25, 2.25]]), np.array([-1.0, -0.625])
    if kind == "toggle":
        weight, bias = np.abs(weight), np.array([0.0, 0.125])
    layer = SignedLayer(
        "layer0", ("input",), weight, bias, np.array([0.125, 0.0]), np.ones(2),
        weight_beta=np.array([[1.0, -1.0, 0.0], [0.5, 0.25, 0.0]]), epsilon=-1.0 if kind == "toggle" else 1.0,
        ends=(-8, 7) if kind in ("ladder", "counter") else None,
    )  # fmt: skip
    if kind == "register":
        value = np.array([[0.0, 1.0, 0.0], [-1.0, 0.5, 0.5]])
        layer = replace(layer, epsilon=0.0, levels=8, weight_alpha=value, alpha=np.array([-0.25, 0.375]))
    encoding = InputEncoding(np.zeros(3), np.ones(3), levels=16)
    network = Network(encoding, (replace(layer, **fields),), Readout(("layer0",), np.eye(2), np.zeros(2), "last"), "t")
    network = check_network(replace(network, weight_grid=1 / 8))
    if kind != "toggle":
        return network
    x = inputs(40)
    return replace(network, state_ranges=measure_state_ranges(network, x, np.full(len(x), FRAMES)))


def inputs(n, seed=5):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, 17, (n, FRAMES)) / 16 for _ in range(3)], axis=2)


def compiled(kind, technology, calibration, **settings):
    cell = kind if kind in ("ladder", "counter") else "auto"
    return compile_network(moving(kind), technology, calibration, CompilerSettings(cell=cell, **settings))


def states_of(design, trace):
    return np.stack([trace.states[node.name] for node in design.graph.memories], axis=2)


@pytest.mark.parametrize("kind", KINDS)
def test_behavioral_states_are_the_softwares(kind, technology, calibration):
    """Ideal and as calibrated: candidates and beta are on 1/128, and a threshold stands half of that from either side,
    3.9 pA; of the rows' sums at 1 to 3 nA the fits leave 3 pA. Both sides happen, and betas beyond the offset."""
    design, x = compiled(kind, technology, calibration), inputs(30)
    wanted = software_states(design.graph, run_reference(design.network, x))
    assert len(np.unique(wanted)) >= 2
    for ideal in (True, False):
        trace = run_behavioral(design, x, ideal=ideal)
        np.testing.assert_array_equal(states_of(design, trace), wanted)
    if kind == "toggle":
        (layer,) = design.network.layers
        still = replace(layer, weight_beta=None, bias_beta=np.zeros(2)).run(
            encode_inputs(design.network.encoding, x).units
        )
        assert (still.h != layer.run(encode_inputs(design.network.encoding, x).units).h).any()
    else:
        for node in design.graph.memories:
            betas = sum(trace.currents[source] for source, _ in design.graph.into(node.name, "beta"))
            up, down = np.diff(wanted[:, :, node.index]).max(), np.diff(wanted[:, :, node.index]).min()
            assert up > 0 > down
            assert betas.max() > 0.5e-9
    power = sum(behavioral_power(design, trace).values())
    assert ((power > 1e-9) & (power < 1e-6)).all()


@pytest.mark.parametrize("seed", range(12))
def test_no_candidate_meets_a_line_without_current(make_network, seed):
    """Of random units, at random inputs and at corners: beta or -h_hat is below the offset by its margin, so either the
    lower threshold or the candidate is above it."""
    network = make_network(seed, "signed_input", alphas=(1.0,), widths=(6,))
    (layer,) = network.layers
    layer = replace(layer, epsilon=1.0)
    network = replace(network, layers=(layer,), state_ranges={"layer0": np.tile([[-3.0], [3.0]], 6)})
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(0, 1, (2000, 3)), rng.integers(0, 2, (50, 3))])
    reading = encode_inputs(network.encoding, x[:, None]).units[:, 0]
    candidate = reading @ layer.weight.T + layer.bias
    beta = np.abs(reading @ layer.weight_beta.T + layer.bias_beta)
    lesser = np.minimum(beta, -candidate).max(axis=0)
    for node in lower(network).memories:
        assert node.offset >= max(lesser[node.index], 0.0) + OFFSET_MARGIN - 1e-9
        assert node.offset <= max(lesser[node.index], 0.0) + 1.0  # 2,050 points come near the worst input of three


@pytest.mark.parametrize("kind", ["ladder", "counter", "register"])
def test_margins_read_the_lines(kind, technology, calibration):
    """A simulation's margins are measured from the currents of both lines: the thresholds of the equations."""
    design = compiled(kind, technology, calibration)
    trace = run_behavioral(design, inputs(3))
    for node in design.graph.memories:
        unit, cell = unit_of(node), cell_of(design.graph, node, calibration)
        lines = threshold_lines(design.graph, node, trace, calibration)
        beta = sum(trace.currents[source] for source, _ in design.graph.into(node.name, "beta"))
        found = unit.switching_thresholds(cell, lines).while_on
        inside = unit.switching_thresholds(replace(cell, beta=(beta, beta)), ()).while_on
        wanted = (node.rise * 1e-9 + beta, node.fall * 1e-9 - beta)
        for one, same, asked in zip(found, inside, wanted, strict=True):
            np.testing.assert_array_equal(one, same)
            clear = (asked > 0.25e-9) & (asked < 3e-9)
            assert clear.any()
            np.testing.assert_allclose(one[clear], asked[clear], rtol=0.012)  # mirrors: gains of 1 within 1 %


@pytest.mark.parametrize("kind", ["ladder", "counter", "register"])
def test_chips_vary_both_lines(kind, technology, calibration):
    """What beta pushes into the upper line, and into the mirror that pulls it out of the lower one."""
    design, x = compiled(kind, technology, calibration), inputs(30)
    effects = [effect for effect in effects_of(design) if effect.field == "betas"]
    assert len(effects) == 8  # two units of two rectifiers, either line
    assert len([effect for effect in effects_of(design) if effect.field == "pulled"]) == 2
    calm, encoded = run_behavioral(design, x), encode_inputs(design.network.encoding, x)
    source, factors = "layer0.0.beta_pos", unit_of(next(iter(design.graph.memories))).factors_type
    for deviations in (
        Deviations(betas={(source, "layer0.0"): (3.0, 1.0)}),
        Deviations(betas={(source, "layer0.0"): (1.0, 3.0)}),
        Deviations(cells={"layer0.0": factors(pulled=1.5)}),
    ):
        moved = evaluate(design.graph, calibration, encoded, deviations)
        assert (moved.states["layer0.0"] != calm.states["layer0.0"]).any()
        np.testing.assert_array_equal(moved.states["layer0.1"], calm.states["layer0.1"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_threshold_that_reads_late_is_refused(kind):
    (layer,) = moving(kind).layers
    columns = {
        name: np.concatenate([getattr(layer, name), np.ones((2, 2))], axis=1)
        for name in ("weight", "weight_beta", *(("weight_alpha",) if kind == "register" else ()))
    }
    if kind == "register":
        columns["weight_alpha"][:, -2:] = 0
    fed = replace(layer, sources=("input", "layer0_1"), **columns)
    network = replace(moving(kind), layers=(fed,), late={"layer0_1": DelayedSignal("layer0")})
    with pytest.raises(MappingError, match=r"layer0\.weight_beta\[0,\*\] reads layer0\.0 late, .* `beta=fixed`"):
        lower(network)


@pytest.mark.ngspice
@pytest.mark.parametrize(
    ("kind", "devices"),
    [
        *((kind, 1) for kind in KINDS),
        ("ladder", 4),
        *(pytest.param(kind, 4, marks=pytest.mark.slow) for kind in KINDS if kind != "ladder"),
    ],
)
def test_transistors_decide_as_the_software_does(batch, kind, devices, technology, calibration):
    """Every state of 6 samples, with one device in each comparator and with four in parallel."""
    design, x = compiled(kind, technology, calibration, comparator_devices=devices), inputs(6, seed=2)
    test_set = TestSet(x, np.zeros(6, dtype=np.int64), np.full(6, FRAMES), np.arange(6))
    outcomes = simulate_samples(design, test_set, Run(engine="batch"))
    assert all(isinstance(outcome, Inference) for outcome in outcomes)
    assert np.isfinite(np.stack([outcome.margins for outcome in outcomes])).all()
    wanted = software_states(design.graph, run_reference(design.network, x))
    np.testing.assert_array_equal(np.stack([outcome.states for outcome in outcomes]), wanted)
    assert np.ptp(wanted) >= 1


@pytest.mark.ngspice
def test_ngspice_decides_as_the_software_does(technology, calibration):
    design, x, frames = compiled("ladder", technology, calibration), inputs(1, seed=3)[:, :6], 6
    (outcome,) = simulate_samples(design, TestSet(x, np.zeros(1, np.int64), np.full(1, frames), np.arange(1)), Run())
    assert isinstance(outcome, Inference)
    (wanted,) = software_states(design.graph, run_reference(design.network, x))
    np.testing.assert_array_equal(outcome.states, wanted)
    assert {-1, 1} <= {int(move) for move in np.diff(wanted, axis=0).ravel()}
