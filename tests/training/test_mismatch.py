"""Chips that vary: their deviations are those of the equations, nominal ones change nothing, gradients pass."""

import dataclasses
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import InputError  # noqa: E402
from cosim.compiler.lower import lower  # noqa: E402
from cosim.exchange.checkpoint import load_network  # noqa: E402
from cosim.network.layers import SignedLayer, common_mode_offset  # noqa: E402
from cosim.network.types import InputEncoding, Network  # noqa: E402
from cosim.tasks.task import Task, full_lengths  # noqa: E402
from cosim.technology.catalog import load_technology  # noqa: E402
from cosim.technology.scale import units_for  # noqa: E402
from cosim.technology.types import Geometry  # noqa: E402
from cosim.training.backbone import HardwareNetwork  # noqa: E402
from cosim.training.cells import FirstQuadrantCell, SignedCell  # noqa: E402
from cosim.training.config import Architecture, TrainingConfig, check_config, describe_config, state_path  # noqa: E402
from cosim.training.hardware import Chips, Lines  # noqa: E402
from cosim.training.trainer import train  # noqa: E402
from cosim.units.schmitt import Schmitt  # noqa: E402
from cosim.variation.sigma import MismatchModel, derive_mismatch  # noqa: E402

GENERIC = load_technology("generic180")
COUNT = 20011  # chips of a statistical test
MODEL = MismatchModel("test", 1.0, 8, mirror_n=0.05, mirror_p=0.07, cell_n=0.02, cell_p=0.03)  # all different
NOMINAL = MismatchModel("test", 1.0, 8, 0.0, 0.0, 0.0, 0.0)
CONFIG = TrainingConfig(
    Architecture(cells=5, layers=1), iterations=60, batch=17, seed=3, mismatch=derive_mismatch(GENERIC, 0.125)
)


def make_task(n: int = 211) -> Task:
    """Three classes: which of three inputs is high at the first of seven steps; 50 test samples."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 0.3, (n, 7, 3)).astype(np.float32)
    y = rng.integers(0, 3, n)
    x[np.arange(n), 0, y] = 1.0
    half = n - 50
    parts = x[:half], y[:half], x[half:], y[half:], full_lengths(x[:half]), full_lengths(x[half:])
    return Task("which", *parts, ("a", "b", "c"), np.zeros(3), np.ones(3))


class Stop(Exception):
    pass


def stop_at(iteration: int):
    def progress(now: int, _: dict[str, float]) -> None:
        if now == iteration:
            raise Stop

    return progress


@pytest.fixture
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def draw(model: MismatchModel = MODEL, count: int = COUNT, seed: int = 1, *, compared: bool = False) -> Chips:
    return Chips(model, count, torch.Generator().manual_seed(seed), compared=compared)


def ideal_lines(chips: Chips, width: int) -> Lines:
    zeros = torch.zeros(chips.count, width)
    return Lines(chips, zeros, zeros, torch.zeros(width))


def assert_deviation(values, sigma: float) -> None:
    """Standard error of a standard deviation from n draws is s / sqrt(2 n); five of them, and of the mean."""
    n = len(values)
    assert float(values.std()) == pytest.approx(sigma, abs=5 * sigma / math.sqrt(2 * n))
    assert float(values.mean()) == pytest.approx(0.0, abs=5 * sigma / math.sqrt(n))


def assert_covariance(a, b, covariance: float) -> None:
    """Standard error of the covariance of two normals is sqrt((va vb + c^2) / n)."""
    error = math.sqrt((float(a.var()) * float(b.var()) + covariance**2) / len(a))
    assert float((a * b).mean()) == pytest.approx(covariance, abs=5 * error)


def test_deviations_of_a_technology_by_hand() -> None:
    """5 mV um and 0.5 % um: in 1 x 5 um2, 2.236 mV over 1.32 x 25.865 mV = 34.14 mV, 6.55 %, and 0.22 % beside it."""
    weak = {side: dataclasses.replace(getattr(GENERIC, side), response=()) for side in ("nfet", "pfet")}
    model = derive_mismatch(dataclasses.replace(GENERIC, **weak), 0.125)
    assert model.units == 8
    u_t = 1.380649e-23 * 300.15 / 1.602176634e-19
    assert model.mirror_n == pytest.approx(math.hypot(5e-3 / math.sqrt(5) / (1.32 * u_t), 5e-3 / math.sqrt(5)), 1e-4)
    assert model.mirror_p == pytest.approx(math.hypot(5e-3 / math.sqrt(5) / (1.31 * u_t), 5e-3 / math.sqrt(5)), 1e-4)
    assert model.cell_n == pytest.approx(model.mirror_n / math.sqrt(5))  # 5 x 5 um2
    assert model.cell_p == pytest.approx(model.mirror_p / math.sqrt(5))
    assert 0.06 < model.mirror_n < model.mirror_p < 0.07


def test_the_slope_is_that_of_the_current_of_one() -> None:
    """A unit of a mirror carries 1/8 nA in w/l = 1/5, as 0.625 nA in a square; a cell's device 1 nA in a square."""
    curve = ((0.624e-9, 1.4), (0.626e-9, 1.6), (0.999e-9, 1.7), (1.001e-9, 1.9))
    bent = dataclasses.replace(GENERIC, nfet=dataclasses.replace(GENERIC.nfet, response=curve, a_beta=0.0))
    model, u_t = derive_mismatch(bent, 0.125), GENERIC.thermal_voltage
    assert model.mirror_n == pytest.approx(5e-9 / math.sqrt(5e-12) / (1.5 * u_t), 1e-3)
    assert model.cell_n == pytest.approx(5e-9 / math.sqrt(25e-12) / (1.8 * u_t), 1e-3)


def test_deviations_fall_with_the_root_of_area_and_nothing_else_changes() -> None:
    drawn, larger = derive_mismatch(GENERIC, 0.125), derive_mismatch(GENERIC, 0.125, 4.0)
    for name in ("mirror_n", "mirror_p", "cell_n", "cell_p"):
        assert getattr(larger, name) == pytest.approx(getattr(drawn, name) / 2)
    assert (larger.units, larger.technology, larger.area) == (drawn.units, drawn.technology, 4.0)


def test_of_a_self_cascode_the_lower_device_counts() -> None:
    geometry = dataclasses.replace(GENERIC.sizing.mirror_n, cascode=(7e-6, 1e-6))
    cascoded = dataclasses.replace(GENERIC, sizing=dataclasses.replace(GENERIC.sizing, mirror_n=geometry))
    assert derive_mismatch(cascoded, 0.125) == derive_mismatch(GENERIC, 0.125)
    wider = dataclasses.replace(GENERIC.sizing, mirror_n=Geometry(2e-6, 10e-6))  # four times the area, the same n
    found = derive_mismatch(dataclasses.replace(GENERIC, sizing=wider), 0.125)
    assert found.mirror_n == pytest.approx(derive_mismatch(GENERIC, 0.125).mirror_n / 2)


@pytest.mark.parametrize("grid", [None, 1.0, 0.125, 1 / 64, 1 / 128])
def test_as_many_units_as_the_compiler_takes(grid) -> None:
    backbone = HardwareNetwork(Architecture(cells=2, grid=grid), InputEncoding(np.zeros(3), np.ones(3)), 2)
    assert derive_mismatch(GENERIC, grid).units == units_for(backbone.to_network().weight_grid)


@pytest.mark.parametrize("area", [0.0, -1.0, math.inf, math.nan])
def test_area_must_be_an_area(area: float) -> None:
    with pytest.raises(InputError, match="--area must be positive and finite, not .*; 1 takes the devices as drawn"):
        derive_mismatch(GENERIC, 0.125, area)


def test_a_technology_without_coefficients_is_refused() -> None:
    silent = dataclasses.replace(GENERIC, pfet=dataclasses.replace(GENERIC.pfet, a_vt=0.0))
    with pytest.raises(
        InputError, match=r"generic180: pfet\.a_vt must be positive for --variation local, not 0; write"
    ):
        derive_mismatch(silent, 0.125)


def test_lines_deviate_by_their_diodes_and_copies() -> None:
    """p: -D. n: C - D - Dn, so both share D. Eight units each."""
    lines = draw().draw_lines(3)
    for column in range(3):
        assert_deviation(lines.p[:, column], 0.07 / math.sqrt(8))
        assert_deviation(lines.n[:, column], math.sqrt((2 * 0.07**2 + 0.05**2) / 8))
        assert_covariance(lines.p[:, column], lines.n[:, column], 0.07**2 / 8)
    assert_covariance(lines.p[:, 0], lines.p[:, 1], 0.0)
    assert_covariance(lines.n[:, 0], lines.n[:, 2], 0.0)


def test_levels_deviate_on_both_lines_and_share_one_bias_diode() -> None:
    chips = draw()
    first, second = chips.draw_state_lines(torch.zeros(2)), chips.draw_state_lines(torch.zeros(1))
    assert_deviation(first.p[:, 1], math.sqrt(2 * 0.02**2 + 0.07**2 / 8))
    assert_deviation(first.n[:, 0], math.sqrt(2 * 0.02**2 + (2 * 0.07**2 + 0.05**2) / 8))
    assert_covariance(first.p[:, 0], first.n[:, 0], 2 * 0.02**2 + 0.07**2 / 8)
    for other in (first.p[:, 1], second.p[:, 0], second.n[:, 0]):  # of the same layer and of another one
        assert_covariance(first.p[:, 0], other, 0.02**2)


def test_a_weight_deviates_by_the_root_of_its_units() -> None:
    """k / 8 and -k / 8 of nMOS and pMOS units; no weight, no deviation."""
    chips = draw()
    w = torch.tensor([[0.125, -0.125, 1.0], [-1.0, 4.0, 0.0]])
    deviations = torch.log(chips.draw_weights(w, ideal_lines(chips, 3)) / w)
    for (row, column), sigma in (
        ((0, 0), 0.05), ((0, 1), 0.07), ((0, 2), 0.05 / 8**0.5), ((1, 0), 0.07 / 8**0.5), ((1, 1), 0.05 / 32**0.5),
    ):  # fmt: skip
        assert_deviation(deviations[:, row, column], sigma)
    assert_covariance(deviations[:, 0, 0], deviations[:, 1, 1], 0.0)
    assert (chips.draw_weights(w, ideal_lines(chips, 3))[:, 1, 2] == 0).all()


def test_cells_deviate_in_candidate_threshold_and_width() -> None:
    lo, hi = torch.tensor([0.3, 0.5]), torch.tensor([0.7, 1.6])
    u, lower, upper = draw().compare(torch.full((COUNT, 1, 2), 0.4), lo, hi)
    for column in range(2):
        width = (upper - lower)[:, 0, column] / (hi - lo)[column]
        assert_deviation(torch.log(u[:, 0, column] / 0.4), math.sqrt(2) * 0.03)
        assert_deviation(torch.log(upper[:, 0, column] / hi[column]), math.sqrt(2) * 0.02)
        assert_deviation(torch.log(width), math.sqrt(2 * 0.02**2 + 2 * 0.03**2))
        assert_covariance(torch.log(u[:, 0, column] / 0.4), torch.log(width), 0.0)
    assert_covariance(torch.log(u[:, 0, 0] / 0.4), torch.log(u[:, 0, 1] / 0.4), 0.0)


def test_a_lower_threshold_below_zero_is_never_reached() -> None:
    """The rectifier lets no candidate below 0; above zero the candidate keeps its gradient."""
    u = torch.full((COUNT, 1, 1), -5.0, requires_grad=True)
    found, lower, _ = draw().compare(u, torch.tensor([0.01]), torch.tensor([2.0]))
    assert 0.1 < float((lower < 0).double().mean()) < 0.9
    assert ((found <= lower) == (lower >= 0)).all()


def test_what_no_candidate_resets_starts_on(double) -> None:
    """A lower threshold below 0: on from the first step, in any unit; gradients raise the threshold."""
    for unit, off in (("first-quadrant", 0.0), ("signed", -1.0)):
        backbone = build(unit=unit, layers=1)
        cell = backbone.cells["layer1"]
        with torch.no_grad():
            cell.linear.weight.zero_()
            cell.linear.bias.fill_(-4.0)
            if isinstance(cell, FirstQuadrantCell):
                cell.width_free.fill_(3.0)
            else:
                assert cell.beta_free is not None
                cell.beta_free.fill_(3.0)
        chips = draw(MismatchModel("test", 1.0, 8, 0.0, 0.0, 0.2, 0.2), 400)
        output = backbone(torch.zeros(400, 4, 3), chips=chips)
        h, distances = output.signals["layer1"], output.distances["layer1"]
        stuck = (h == 1.0).all(dim=1)
        assert (stuck | (h == off).all(dim=1)).all()
        assert 0.1 < float(stuck.double().mean()) < 0.9
        assert torch.equal(distances, distances[:, :1].expand_as(distances))  # one threshold decides from the start on


def test_lines_and_weights_meet_as_the_circuit_wires_them() -> None:
    """Two chips, signs mixed: by hand, with the devices of the weights nominal."""
    chips = draw(NOMINAL, 2)
    factors_p, factors_n = torch.tensor([[2.0, 3.0, 5.0], [7.0, 11.0, 13.0]]), torch.tensor([[1.1, 1.3, 1.7]] * 2)
    chips.one = Lines(chips, torch.tensor([[0.19], [0.23]]).log(), torch.tensor([[0.29], [0.31]]).log(), torch.zeros(1))
    lines = Lines(chips, factors_p.log(), factors_n.log(), torch.tensor([0.0, -1.0, 0.0]))
    x = torch.tensor([[[0.5, 1.0, 0.25]], [[0.5, -1.0, 0.75]]])
    found = chips.linear(x, torch.tensor([[1.0, -0.5, 2.0]]), torch.tensor([-1.0]), lines, torch.tensor([0.25]))
    # currents 0.5, x + 1, x; bias -1 + 0.5 + 0.25 = -0.25, on line p
    first = 1.0 * 1.1 * 0.5 - 0.5 * 3.0 * 2.0 + 2.0 * 1.7 * 0.25 - 0.25 * 0.19
    second = 1.0 * 1.1 * 0.5 - 0.5 * 11.0 * 0.0 + 2.0 * 1.7 * 0.75 - 0.25 * 0.23
    np.testing.assert_allclose(found[:, 0, 0].numpy(), [first, second], rtol=1e-6)


def build(seed: int = 0, **options) -> HardwareNetwork:
    torch.manual_seed(seed)
    encoding = InputEncoding(np.array([-1.0, 0.0, 0.5]), np.array([3.0, 1.0, 0.7]), 10)
    return HardwareNetwork(Architecture(cells=5, **options), encoding, 2)


@pytest.mark.parametrize(
    ("unit", "hidden", "skip", "epsilon"),
    list(itertools.product(["first-quadrant", "signed"], [0, 7], [True, False], [0.0, 0.6, 1.0, -1.0])),
)
def test_nominal_chips_compute_what_no_chips_do(double, unit, hidden, skip, epsilon) -> None:
    backbone = build(unit=unit, hidden=hidden, skip=skip)
    backbone.set_epsilon(epsilon)
    x = torch.from_numpy(np.random.default_rng(5).normal(0.5, 1.0, (12, 13, 3)))
    lengths = torch.arange(1, 13)
    with torch.no_grad():
        plain = backbone(x, lengths)
        for count in (1, 3, 12):
            found = backbone(x, lengths, chips=draw(NOMINAL, count, compared=abs(epsilon) == 1))
            torch.testing.assert_close(found.scores, plain.scores)
            for name in backbone.cells:
                torch.testing.assert_close(found.signals[name], plain.signals[name])
                torch.testing.assert_close(found.distances[name], plain.distances[name])


def test_comparators_share_the_candidates_diode_and_nothing_else() -> None:
    """ln of each threshold: two n devices, M1 and the candidate diode; the diode is in both thresholds."""
    chips = draw(compared=True)
    u, low, high = chips.compare(torch.ones(COUNT, 1, 1), torch.tensor([0.5]), torch.tensor([2.0]))
    assert (u == 1).all()
    lower, upper = (torch.log(value[:, 0, 0] / nominal) for value, nominal in ((low, 0.5), (high, 2.0)))
    sigma = math.sqrt(2 * MODEL.cell_n**2 + 2 * MODEL.cell_p**2)
    for found in (lower, upper):
        assert_deviation(found, sigma)
    assert_covariance(lower, upper, MODEL.cell_p**2)


def test_the_levels_of_many_steps_average() -> None:
    """8 steps have 4 sources on: half the deviation of one, beside that of their diode and of the lines."""
    chips = draw(compared=True)
    few, many = (chips.draw_state_lines(torch.zeros(1), steps).p[:, 0] + chips.gain_diode[:, 0] for steps in (1.0, 8.0))
    line = MODEL.mirror_p**2 / MODEL.units
    assert_deviation(few, math.sqrt(MODEL.cell_n**2 + line))
    assert_deviation(many, math.sqrt(MODEL.cell_n**2 / 4 + line))


@pytest.mark.parametrize("unit", ["first-quadrant", "signed"])
def test_every_sample_runs_on_its_own_chip(double, unit) -> None:
    """Samples of a group see one chip, groups different ones; equal generators draw equal chips."""
    backbone = build(unit=unit, hidden=7)
    x = torch.from_numpy(np.random.default_rng(5).normal(0.5, 1.0, (1, 13, 3))).repeat(6, 1, 1)
    with torch.no_grad():
        readout = backbone(x, chips=draw(MODEL, 3)).readout
        again = backbone(x, chips=draw(MODEL, 3)).readout
    assert torch.equal(readout, again)
    torch.testing.assert_close(readout[0::2], readout[1::2])
    assert (readout[0] != readout[2]).all()
    assert (readout[2] != readout[4]).all()


@pytest.mark.parametrize("unit", ["first-quadrant", "signed"])
def test_gradients_reach_every_parameter(unit) -> None:
    backbone = build(unit=unit, hidden=7)
    backbone.set_epsilon(1.0)
    x = torch.from_numpy(np.random.default_rng(5).normal(0.5, 1.0, (64, 13, 3)).astype(np.float32))
    backbone(x, chips=draw(MODEL, 64)).scores.square().sum().backward()
    for name, parameter in backbone.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert (parameter.grad != 0).any(), name


def test_the_gradient_of_a_weight_is_its_factor() -> None:
    """Also where |w| sets the deviation: sigma is a constant to the gradient."""
    chips = draw(MODEL, 7)
    w = torch.tensor([[0.125, -1.0, 3.0]], requires_grad=True)
    realised = chips.draw_weights(w, ideal_lines(chips, 3))
    realised.sum().backward()
    assert w.grad is not None
    torch.testing.assert_close(w.grad, (realised / w).sum(dim=0).detach())


def test_the_offset_of_signed_units_is_the_compilers() -> None:
    torch.manual_seed(2)
    backbone = HardwareNetwork(Architecture(cells=5, unit="signed"), InputEncoding(np.zeros(3), np.ones(3)), 2)
    graph = lower(backbone.to_network())
    for name, cell in backbone.cells.items():
        offsets = common_mode_offset(cell.bias_beta().detach().double().numpy())  # pyright: ignore[reportCallIssue]
        nodes = [graph.nodes[f"{name}.{i}"] for i in range(5)]
        assert all(isinstance(node, Schmitt) for node in nodes)
        assert offsets.tolist() == [node.offset for node in nodes]


def test_nominal_settings_do_not_mention_mismatch(tmp_path: Path) -> None:
    """The bytes of a nominal checkpoint are those from before there was any."""
    plain = dataclasses.replace(CONFIG, mismatch=None)
    later = {"power_cost", "mismatch", "margin_sigma", "device_noise", "spread"}
    assert describe_config(plain).keys() == dataclasses.asdict(plain).keys() - later
    result = train(plain, make_task(), tmp_path / "model.pt")
    assert "mismatch" not in load_network(tmp_path / "model.pt").history["settings"]
    assert "chips" not in result.history["figures"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a training on chips leaves that nobody stopped."""
    path = tmp_path_factory.mktemp("whole") / "model.pt"
    train(CONFIG, make_task(), path)
    return path


@pytest.mark.parametrize(
    "stopped", [pytest.param(20, marks=pytest.mark.slow), 51, pytest.param(59, marks=pytest.mark.slow)]
)
def test_a_resumed_run_ends_in_the_same_bytes(tmp_path: Path, whole: Path, stopped: int) -> None:
    broken = tmp_path / "broken.pt"
    with pytest.raises(Stop):
        train(CONFIG, make_task(), broken, stop_at(stopped))
    train(CONFIG, make_task(), broken, resume=True)
    assert whole.read_bytes() == broken.read_bytes()


def test_history_holds_the_settings_and_what_chips_score(whole: Path) -> None:
    history = load_network(whole).history
    assert CONFIG.mismatch is not None
    assert history["settings"]["mismatch"] == dataclasses.asdict(CONFIG.mismatch)
    chips = history["figures"]["chips"]
    assert chips["count"] == 64
    assert 0 <= chips["test_accuracy_worst"] < chips["test_accuracy"] <= 1


def test_a_resume_on_other_devices_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with pytest.raises(Stop):
        train(CONFIG, make_task(), path, stop_at(30))
    larger = dataclasses.replace(CONFIG, mismatch=derive_mismatch(GENERIC, 0.125, 4.0))
    with pytest.raises(InputError, match=r"other settings: area 1\.0 not 4\.0, mirror_n 0\.064"):
        train(larger, make_task(), path, resume=True)
    with pytest.raises(InputError, match=r"other settings: variation 'local' not 'none'; go on"):
        train(dataclasses.replace(CONFIG, mismatch=None), make_task(), path, resume=True)
    assert state_path(path).is_file()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"architecture": Architecture(unit="signed", beta="input")},
            "--variation local needs --beta fixed: the offset",
        ),
        (
            {"architecture": Architecture(unit="signed", cell="alphacmru")},
            "--variation local knows no register yet: train --cell cmru or bmru",
        ),
        ({"epsilon": 0.5}, "--variation local needs --epsilon anneal, 0, 1 or -1, not 0.5: it knows the"),
    ],
)
def test_what_has_no_transistors_here_is_refused(change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_config(dataclasses.replace(CONFIG, **change))
    check_config(dataclasses.replace(CONFIG, **change, mismatch=None))


@pytest.mark.parametrize("unit", ["first-quadrant", pytest.param("signed", marks=pytest.mark.slow)])
def test_training_on_chips_makes_chips_better(tmp_path: Path, unit) -> None:
    """A tenth of the area: 21 % in a unit device. Both networks on the same chips, which neither has seen."""
    model = derive_mismatch(GENERIC, 0.125, 0.1)
    accuracy = {}
    for mismatch in (None, model):
        architecture = Architecture(cells=5, layers=1, unit=unit)
        config = TrainingConfig(architecture, iterations=200, batch=64, noise=0.0, mismatch=mismatch)
        task = make_task(n=811)
        network = train(config, task, tmp_path / "model.pt")
        accuracy[mismatch is None] = chip_accuracy(network, model, task.x_test, task.y_test)
    assert accuracy[False] > accuracy[True] + 0.03


def chip_accuracy(network: Network, model: MismatchModel, x: np.ndarray, y: np.ndarray) -> float:
    """Mean over 200 chips, from the exported weights: no part of the training's own state."""
    (layer,) = network.recurrent_layers
    backbone = HardwareNetwork(
        Architecture(
            cells=layer.width, layers=1, unit="signed" if isinstance(layer, SignedLayer) else "first-quadrant"
        ),
        network.encoding,
        network.readout.width,
    )
    cell = backbone.cells["layer1"]
    if isinstance(layer, SignedLayer):
        assert isinstance(cell, SignedCell)
        assert cell.beta_free is not None
        values = {cell.beta_free: layer.bias_beta - 0.1}
    else:
        assert isinstance(cell, FirstQuadrantCell)
        values = {cell.lo_free: layer.beta_lo - 0.1, cell.width_free: layer.beta_hi - layer.beta_lo - 0.2}
    values |= {cell.linear.weight: layer.weight, cell.linear.bias: layer.bias}
    values |= {backbone.readout.weight: network.readout.weight, backbone.readout.bias: network.readout.bias}
    with torch.no_grad():
        for parameter, value in values.items():
            parameter.copy_(torch.from_numpy(value))
        scores = backbone(torch.from_numpy(x).repeat(200, 1, 1), chips=draw(model, 200, seed=77)).scores
    return float((scores.argmax(dim=1) == torch.from_numpy(y).repeat(200)).double().mean())
