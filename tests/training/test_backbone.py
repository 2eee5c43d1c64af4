"""The torch network and the exported reference are the same function; thresholds and grid keep their promises."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import InputError  # noqa: E402
from cosim.network.layers import FirstQuadrantLayer, ReluLayer, SignedLayer  # noqa: E402
from cosim.network.reference import run_reference  # noqa: E402
from cosim.network.types import InputEncoding  # noqa: E402
from cosim.training.backbone import HardwareNetwork  # noqa: E402
from cosim.training.cells import BETA_MIN, FirstQuadrantCell, SignedCell, clip_  # noqa: E402
from cosim.training.config import Architecture, TrainingConfig, check_config  # noqa: E402

FEATURES, CELLS, HIDDEN, OUTPUTS, STEPS, N = 3, 5, 7, 2, 13, 11

UNITS = [
    {"unit": "first-quadrant"},
    {"unit": "signed"},
    {"unit": "signed", "beta": "input"},
    {"unit": "signed", "beta": "input", "cell": "alphacmru"},
    {"unit": "signed", "cell": "alphacmru"},
]


@pytest.fixture
def double():
    """Both sides in float64: the comparison is about the equations, not about rounding on a threshold."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def build(seed: int = 0, epsilon: float = 0.0, **options) -> HardwareNetwork:
    torch.manual_seed(seed)
    encoding = InputEncoding(
        np.array([-1.0, 0.0, 0.5]), np.array([3.0, 1.0, 0.7]), STEPS - 3 if options.get("ramp", True) else None
    )
    backbone = HardwareNetwork(Architecture(cells=CELLS, **options), encoding, OUTPUTS)
    backbone.set_epsilon(epsilon)
    return backbone


def samples(seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(0.5, 1.0, (N, STEPS, FEATURES)), rng.integers(1, STEPS + 1, N)


def assert_equal_function(backbone: HardwareNetwork) -> None:
    x, lengths = samples()
    with torch.no_grad():
        output = backbone(torch.from_numpy(x), torch.from_numpy(lengths))
    trace = run_reference(backbone.to_network(), x, lengths)
    expected = {"input": trace.inputs.units, **trace.signals}
    for name, signal in output.signals.items():
        if name in backbone.cells:
            np.testing.assert_array_equal(signal.numpy(), expected[name], err_msg=name)
        np.testing.assert_allclose(signal.numpy(), expected[name], atol=1e-12, err_msg=name)
    np.testing.assert_allclose(output.scores.numpy(), trace.scores, atol=1e-5)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("options", UNITS[:3])
@pytest.mark.parametrize("hidden", [0, HIDDEN])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, -1.0])
def test_states_equal_the_reference_to_the_bit(options: dict, hidden: int, epsilon: float) -> None:
    # With threshold weights on the grid, |h_hat| = beta happens exactly, and the order of a sum then decides: no grid.
    grid = None if options.get("beta") == "input" else 0.125
    for seed in range(3):
        assert_equal_function(build(seed, epsilon, hidden=hidden, grid=grid, **options))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("options", UNITS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, -0.6])
def test_scores_equal_the_reference(options: dict, epsilon: float) -> None:
    x, lengths = samples()
    backbone = build(7, epsilon, **options)
    with torch.no_grad():
        output = backbone(torch.from_numpy(x), torch.from_numpy(lengths))
    trace = run_reference(backbone.to_network(), x, lengths)
    for name in backbone.cells:
        np.testing.assert_allclose(output.signals[name].numpy(), trace.signals[name], atol=1e-12)
    np.testing.assert_allclose(output.scores.numpy(), trace.scores, atol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("pooling", "ramp", "skip", "grid", "layers"),
    [("last", True, True, 0.125, 3), ("vote", False, False, None, 2), ("mean", False, True, 0.25, 1)],
)
def test_every_form_of_the_backbone_exports(pooling, ramp, skip, grid, layers) -> None:
    assert_equal_function(build(11, 0.0, pooling=pooling, ramp=ramp, skip=skip, grid=grid, layers=layers))


def test_the_network_is_exercised() -> None:
    """The comparisons above would be empty if no unit ever changed its state."""
    backbone = build(0)
    x, _ = samples()
    states = backbone(torch.from_numpy(x).float()).signals["layer2"].detach()
    assert 0.1 < float(states.mean()) < 0.9
    assert (states[:, 1:] != states[:, :-1]).any()


def test_sources_are_skip_connections() -> None:
    network = build(hidden=HIDDEN, layers=2).to_network()
    assert [layer.sources for layer in network.layers] == [("input",), ("hidden",), ("input", "layer1")]
    assert network.readout.sources == ("layer1", "layer2")
    plain = build(hidden=HIDDEN, layers=2, skip=False).to_network()
    assert [layer.sources for layer in plain.layers] == [("input",), ("hidden",), ("layer1",)]
    assert plain.readout.sources == ("layer2",)
    assert [type(layer) for layer in network.layers] == [ReluLayer, FirstQuadrantLayer, FirstQuadrantLayer]


@pytest.mark.parametrize("options", UNITS)
def test_hardware_limits_hold_for_any_free_value(options: dict) -> None:
    backbone = build(13, width_min=0.3, hidden=HIDDEN, **options)
    rng = torch.Generator().manual_seed(17)
    with torch.no_grad():
        for parameter in backbone.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng) * 5)
    network = backbone.to_network()
    for layer in (*network.layers, network.readout):
        for name in ("weight", "bias", "weight_beta", "weight_alpha"):
            array = getattr(layer, name, None)
            if array is not None:
                assert np.array_equal(array * 8, np.round(array * 8))
                assert np.abs(array).max() <= 4
        if isinstance(layer, FirstQuadrantLayer):
            assert (layer.beta_lo >= BETA_MIN - 1e-7).all()
            assert (layer.beta_hi - layer.beta_lo >= 0.3 - 1e-6).all()
        if isinstance(layer, SignedLayer):
            # A constant threshold is a free bias current, with threshold weights it is a mirror weight.
            if layer.weight_beta is None:
                assert (layer.bias_beta >= 0.15 - 1e-7).all()
            mirrors = [layer.bias_beta] * (layer.weight_beta is not None) + [layer.alpha]
            for array in mirrors:
                assert np.array_equal(array * 8, np.round(array * 8))
                assert np.abs(array).max() <= 4


@pytest.mark.parametrize("options", UNITS)
def test_every_mirror_has_a_cost_and_free_values_within_its_range(options: dict) -> None:
    """W_beta, W_alpha and their biases too; thresholds that are bias currents have neither."""
    backbone = build(13, **options)
    with torch.no_grad():
        for parameter in backbone.parameters():
            parameter.fill_(9.0)
    clip_(backbone)
    free = {"lo_free", "width_free", "beta_free"}
    mirrors = [p for name, p in backbone.named_parameters() if name.split(".")[-1] not in free]
    kinds = {"input": 2, "alphacmru": 2}
    per_layer = 2 + sum(count for value, count in kinds.items() if value in options.values())
    assert len(mirrors) == 2 * per_layer + 2
    assert all(bool((p == 4.0).all()) for p in mirrors)
    backbone.total_weight().backward()
    assert all(p.grad is not None and bool((p.grad == 1.0).all()) for p in mirrors)
    assert float(backbone.total_weight().detach()) == pytest.approx(4.0 * sum(p.numel() for p in mirrors))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_alpha_of_the_alphacmru_is_learned_with_its_bias(epsilon: float) -> None:
    """Seed paper, eq. 10: alpha_t = W_alpha x_t + b_alpha. It begins with W_alpha x + 1; units start at -b_alpha."""
    backbone = build(29, epsilon, unit="signed", cell="alphacmru", layers=1)
    cell = backbone.cells["layer1"]
    assert isinstance(cell, SignedCell)
    assert cell.alpha is not None
    assert cell.start.tolist() == [-1.0] * CELLS
    with torch.no_grad():
        cell.alpha.bias.copy_(torch.tensor([0.5, -2.0, 1.3, 0.0, 3.0]))
    (layer,) = backbone.to_network().recurrent_layers
    assert layer.alpha.tolist() == [0.5, -2.0, 1.25, 0.0, 3.0]
    x, lengths = samples()
    output = backbone(torch.from_numpy(x), torch.from_numpy(lengths))
    trace = run_reference(backbone.to_network(), x, lengths)
    np.testing.assert_allclose(output.signals["layer1"].detach().numpy(), trace.signals["layer1"], atol=1e-12)
    output.scores.square().sum().backward()
    assert cell.alpha.bias.grad is not None
    assert (cell.alpha.bias.grad != 0).all()


@pytest.mark.parametrize("options", UNITS)
def test_every_parameter_gets_a_gradient(options: dict) -> None:
    backbone = build(19, epsilon=0.5, hidden=HIDDEN, **options)
    x, _ = samples()
    backbone(torch.from_numpy(x).float()).scores.square().sum().backward()
    for name, parameter in backbone.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_first_quadrant_unit_is_a_schmitt_trigger() -> None:
    """One unit, u = x: off below beta_hi, on until beta_lo, thresholds included on both sides."""
    torch.manual_seed(0)
    backbone = HardwareNetwork(Architecture(cells=1, layers=1, ramp=False), InputEncoding(np.zeros(1), np.ones(1)), 2)
    cell = backbone.cells["layer1"]
    with torch.no_grad():
        cell.linear.weight.fill_(1.0)
        cell.linear.bias.zero_()
        cell.lo_free.fill_(0.15)  # beta_lo 0.25, beta_hi 0.75 up to rounding
        cell.width_free.fill_(0.3)
    x = torch.tensor([0.0, 0.5, 0.7, 0.76, 0.5, 0.26, 0.24, 0.5, 0.9]).reshape(1, -1, 1)
    assert backbone(x).signals["layer1"].flatten().tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 1]
    # Off: distance to 0.75; on: distance to 0.25, each before the step.
    expected = [0.75, 0.25, 0.05, 0.01, 0.25, 0.01, 0.01, 0.25, 0.15]
    assert backbone(x).distances["layer1"].flatten().tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [
        # h' is -1, -1, 0, 1, 1, 0: both thresholds, always
        (1.0, [0.1, 0.4, 0.1, 0.1, 0.2, 0.2]),
        # -1, -1, 0.5, 1.25, 1.25, -0.375: an update changes -1 by 1.5 or -0.5, 1.25 by 0.375 or -1.625
        (0.5, [0.9, 0.4, 0.1, 0.9, 0.2, 0.2]),
        # -1, -1, 1, 1, 1, -1: only the threshold on the far side of the state
        (0.0, [0.9, 0.4, 1.1, 0.9, 0.2, 0.8]),
        # -1, -1, 1.5, 0.25, 0.25, -1.125: an update changes -1 by 2.5 or 0.5
        (-0.5, [0.9, 0.4, 0.1, 0.1, 0.2, 0.2]),
        # -1, -1, 2, -1, -1, 0: both, always
        (-1.0, [0.1, 0.4, 0.1, 0.1, 0.2, 0.2]),
    ],
)
@pytest.mark.parametrize("unit", ["first-quadrant", "signed"])
def test_a_threshold_decides_where_crossing_it_changes_the_next_state(
    unit: str, epsilon: float, expected: list[float]
) -> None:
    """Six steps by hand with eq. 7: a threshold decides where crossing it changes the next state by half of alpha.

    The upper one is 0.9, 0.4, 0.1, 0.1, 1.2, 0.8 away, the lower one 0.1, 1.4, 1.1, 0.9, 0.2, 0.2.
    """
    backbone = build(unit=unit, layers=1, ramp=False)
    cell = backbone.cells["layer1"]
    cell.epsilon = epsilon
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        cell.linear.weight[:, 0] = 1.0
        if isinstance(cell, FirstQuadrantCell):
            cell.lo_free.fill_(0.9)  # thresholds 1 and 2: a signed unit around 1.5
            cell.width_free.fill_(0.8)
            cell.linear.bias.fill_(1.5)
        else:
            assert cell.beta_free is not None
            cell.beta_free.fill_(0.4)  # thresholds -0.5 and 0.5
        candidates = torch.tensor([-0.4, 0.9, 0.6, 0.4, -0.7, -0.3])
        x = torch.zeros(1, 6, 3)
        x[0, :, 0] = candidates
        distances = cell(x).distance
    for i in range(CELLS):
        assert distances[0, :, i].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_value_that_is_written_near_a_turn_is_near_a_threshold() -> None:
    """Levels 0.5 apart, turns at -0.75 to 0.75; by hand. Candidates of 3 are 2.5 from a threshold at least.

    Values 0.7 and -0.7 are 0.05 from a turn; 0.52 is nearer to a level; 1.6 is beyond all turns; the last is not
    written: its candidate is 0.4 from a threshold at least."""
    backbone = build(unit="signed", cell="alphacmru", levels=4, layers=1, ramp=False)
    cell = backbone.cells["layer1"]
    assert isinstance(cell, SignedCell) and cell.alpha is not None and cell.beta_free is not None
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        cell.linear.weight[:, 0] = cell.alpha.weight[:, 1] = 1.0
        cell.beta_free.fill_(0.4)  # thresholds -0.5 and 0.5
    candidates, values = torch.tensor([3.0, -3.0, 3.0, 3.0, 0.1]), torch.tensor([0.7, 0.7, 0.52, 1.6, 0.7])
    x = torch.stack([candidates, values, torch.zeros(5)], dim=1)[None]
    distance = cell(x).distance[0]
    near = distance.detach().numpy()
    np.testing.assert_allclose(near[:2], 0.05, atol=1e-6)
    assert (near[2:4] >= 2.5 - 1e-6).all()
    assert (near[4] >= 0.4 - 1e-6).all()
    distance[0].sum().backward()
    assert (cell.alpha.weight.grad[:, 1] < 0).all()  # from the turn at 0.75 down to the level at 0.5


def test_noise_never_turns_a_window_around() -> None:
    """500 units with thresholds 0.6 and 0.64, each drawn with 30 % noise, over a candidate that rises and falls.

    Each must switch on once and off once. Noise of its own on both thresholds would turn every second window around.
    """
    cell = FirstQuadrantCell(1, Architecture(cells=500, grid=None, width_min=0.04))
    with torch.no_grad():
        cell.linear.weight.fill_(1.0)
        cell.linear.bias.zero_()
        cell.lo_free.fill_(0.5)
        cell.width_free.zero_()
        rise = torch.linspace(0.0, 6.0, 1200)
        h = cell(torch.cat([rise, rise.flip(0)])[None, :, None], 0.3, torch.Generator().manual_seed(2)).h[0]
    assert ((h[1:] != h[:-1]).sum(dim=0) == 2).all()
    ups, downs = h.argmax(dim=0), len(h) - h.flip(0).argmax(dim=0)
    assert len(ups.unique()) > 100  # the thresholds were drawn
    assert (ups < downs).all()


def test_noise_needs_a_generator_and_repeats_with_its_seed() -> None:
    backbone = build(23)
    x = torch.from_numpy(samples()[0]).float()
    scores = [
        backbone(x, None, noise, None if seed is None else torch.Generator().manual_seed(seed)).scores
        for noise, seed in ((0.0, 1), (0.1, None), (0.1, 2), (0.1, 2), (0.1, 3))
    ]
    same = [[bool(torch.equal(a, b)) for a in scores] for b in scores]
    expected = list(itertools.starmap(lambda i, j: (i < 2) == (j < 2) and (i < 2 or i == j or {i, j} == {2, 3}),
                                      itertools.product(range(5), range(5))))  # fmt: skip
    assert np.ravel(same).tolist() == expected


def test_taps_of_the_input():
    """In torch as in the reference: the first layer reads bits of the two frames before."""
    torch.manual_seed(3)
    architecture = Architecture(cells=3, layers=2, ramp=False, input_levels=1, taps=2)
    backbone = HardwareNetwork(architecture, InputEncoding(np.zeros(2), np.ones(2), levels=1), 4)
    backbone.set_epsilon(0.0)
    x = np.random.default_rng(3).integers(0, 2, (5, 12, 2)).astype(np.float64)
    network = backbone.to_network()
    assert network.layers[0].sources == ("input", "input_1", "input_2") and network.layers[1].sources[0] == "input"
    trace = run_reference(network, x)
    output = backbone(torch.from_numpy(x).to(torch.get_default_dtype()))
    np.testing.assert_allclose(output.readout.detach().numpy(), trace.readout, atol=1e-5)  # single precision
    assert np.ptp(trace.signals["layer1"])


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("unit", ["first-quadrant", "signed"])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, -1.0])
def test_feedback_of_the_states(unit: str, epsilon: float) -> None:
    """Step by step in torch as in the reference; gradients pass through states, and each step has the same noise."""
    backbone = build(3, epsilon, unit=unit, feedback=True)
    network = backbone.to_network()
    assert network.feeds_back and network.layers[-1].sources[-1] == "layer2_1"
    x = samples()[0]
    trace = run_reference(network, x)
    output = backbone(torch.from_numpy(x))
    for name in ("layer1", "layer2"):
        np.testing.assert_array_equal(output.signals[name].detach().numpy(), trace.signals[name])
        assert np.ptp(trace.signals[name])
    weight = next(p for n, p in backbone.named_parameters() if n == "layers.layer2.linear.weight")
    output.scores.sum().backward()
    assert weight.grad is not None and weight.grad[:, -backbone.architecture.cells :].abs().sum() > 0
    rng = torch.Generator().manual_seed(1)
    noisy = backbone(torch.from_numpy(x), None, 0.1, rng)
    rng.manual_seed(1)
    first = backbone(torch.from_numpy(x[:, :1]), None, 0.1, rng)  # of fewer steps: the noise is that of one
    torch.testing.assert_close(first.readout, noisy.readout[:, :1])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"taps": -1}, "--taps must lie in 0 to 64"),
        ({"taps": 2}, "--taps needs --input-levels 1"),
        ({"feedback": True, "unit": "leaky"}, "--feedback needs --unit first-quadrant or signed, not leaky"),
        (
            {"taps": 2, "unit": "mingru"},
            "--taps and --unit mingru do not go together: a tau-cell goes on from no state",
        ),
    ],
)
def test_taps_that_cannot_be(fields, text):
    with pytest.raises(InputError, match=text):
        check_config(TrainingConfig(Architecture(**fields)))


def test_epsilon_is_of_units_with_hysteresis():
    with pytest.raises(InputError, match="--epsilon and --cell are those of units with hysteresis; leave them out"):
        check_config(TrainingConfig(Architecture(unit="mingru"), epsilon=1.0))
    check_config(TrainingConfig(Architecture(unit="mingru")))
