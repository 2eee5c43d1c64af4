"""What the compiler refuses is a bound of training: a cost near it, a cut at it, a check of what is kept."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import MappingError  # noqa: E402
from cosim.compiler.passes import check_mapping, check_sizes  # noqa: E402
from cosim.exchange.checkpoint import load_network  # noqa: E402
from cosim.network.layers import FirstQuadrantLayer, SignedLayer  # noqa: E402
from cosim.network.types import InputEncoding  # noqa: E402
from cosim.technology.scale import MAX_COUNT, MAX_RISE  # noqa: E402
from cosim.training.backbone import HardwareNetwork  # noqa: E402
from cosim.training.config import Architecture, TrainingConfig  # noqa: E402
from cosim.training.hardware import (  # noqa: E402
    NEAR_BOUND,
    Chips,
    GridLinear,
    bound_excess,
    largest_threshold,
    largest_weight,
    reset_excess,
)
from cosim.training.own import CMRU, Encode, bound_loss, clip_, export  # noqa: E402
from cosim.training.trainer import TrainingJob, run_job, train, train_seeds  # noqa: E402
from cosim.variation.sigma import MismatchModel  # noqa: E402
from tests.training.test_trainer import make_task  # noqa: E402

UNIT = 1e-9  # A, what is compiled for without options
ENCODING = InputEncoding(np.zeros(3), np.ones(3), levels=16)
# Steps of 1 in every parameter at first: without cost and cut, thresholds end at 11 and 18 units.
WILD = TrainingConfig(Architecture(cells=5, layers=2), iterations=40, batch=17, seed=0, learning_rate=1.0)


def beyond(**options):
    """A network whose thresholds have run away, as the optimiser may leave them."""
    torch.manual_seed(0)
    backbone = HardwareNetwork(Architecture(cells=6, **options), ENCODING, 3)
    with torch.no_grad():
        for name, parameter in backbone.named_parameters():
            if name.endswith("_free"):
                parameter.mul_(200.0)
    return backbone


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
@pytest.mark.parametrize("unit", ["first-quadrant", "signed"])
def test_what_is_cut_compiles(technology, calibration, unit, epsilon):
    """Ladders have their states' ranges from data, here those of the start."""
    backbone = beyond(unit=unit)
    backbone.set_epsilon(epsilon)

    def ranged():
        network = backbone.to_network()
        return replace(network, state_ranges={layer.name: np.stack([layer.start] * 2) for layer in network.layers})

    with pytest.raises(MappingError, match=r"must be at most 8 nA|bias\[\d\] must lie within \+-32"):
        check_sizes(ranged(), technology, calibration)
    assert bound_loss(backbone) > 1
    clip_(backbone)
    network = ranged()
    check_sizes(network, technology, calibration)
    assert {type(layer) for layer in network.layers} <= {FirstQuadrantLayer, SignedLayer}
    highest = max(layer.thresholds(i)[0] for layer in network.layers for i in range(layer.width))
    assert highest > 3  # cut, not put back to the start


def test_cuts_leave_alone_what_fits():
    torch.manual_seed(0)
    backbone = HardwareNetwork(Architecture(cells=6), ENCODING, 3)
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    clip_(backbone)
    assert all(torch.equal(before[name], value) for name, value in backbone.state_dict().items())
    assert bound_loss(backbone) == 0


MISMATCH = MismatchModel("fictive", 1.0, 8, 0.064, 0.064, 0.03, 0.03)


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.2), (0.1, 1.5), (0.3, 1.5), (0.5, 1.0)])
def test_the_excess_counts_deviations_of_the_chips_that_are_drawn(lower, upper):
    """The standard deviation of 100,000 draws is within 4 / sqrt(2 x 100,000) = 0.9 % of that of the distribution,
    which exp() makes 0.1 % larger than the first order: 1 % of lower / sigma, a third of which is the excess."""
    chips = Chips(MISMATCH, 100_000, torch.Generator().manual_seed(0))
    ends = torch.tensor([lower]), torch.tensor([upper])
    _, drawn, _ = chips.compare(torch.zeros(chips.count, 1, 1), *ends)
    distance = lower / drawn.std().item()
    assert reset_excess(*ends, MISMATCH).item() == pytest.approx(max(3 - distance, 0) / 3, abs=0.01 * distance / 3)
    assert reset_excess(*ends, None) == 0


def test_wide_windows_cost_where_chips_would_not_reset():
    torch.manual_seed(0)
    model = CMRU(3, 4)
    with torch.no_grad():
        model.cell.width_free.fill_(2.0)
        losses = []
        for free in (0.0, 0.1, 0.6):
            model.cell.lo_free.fill_(free)
            losses.append(bound_loss(model, MISMATCH))
    assert bound_loss(model) == 0
    assert losses[0] > losses[1] > losses[2] == 0


def test_the_bounds_are_the_compilers():
    assert largest_threshold(0.125) == MAX_RISE / UNIT - 1 / 16  # half a step of the grid is for centred thresholds
    assert [largest_weight(grid) for grid in (0.125, 1 / 16, 1 / 32, None)] == [4.0, 4.0, MAX_COUNT / 32, 4.0]


def test_near_a_bound_it_costs():
    value = torch.tensor([NEAR_BOUND * 8.0, 7.5], requires_grad=True)
    cost = bound_excess(value, 8.0)
    cost.backward()
    assert cost.item() == pytest.approx(0.25)
    assert value.grad is not None
    assert value.grad.tolist() == [0.0, 0.5]  # a mean of two


def test_weights_of_a_fine_grid_stay_within_its_mirrors():
    """At 1/32 the largest mirror of 64 unit devices is a weight of 2."""
    torch.manual_seed(0)
    backbone = HardwareNetwork(Architecture(cells=6, grid=1 / 32), ENCODING, 3)
    with torch.no_grad():
        for module in backbone.modules():
            if isinstance(module, GridLinear):
                module.weight.mul_(100.0)
    clip_(backbone)
    network = backbone.to_network()
    assert max(np.abs(layer.weight).max() for layer in network.layers) == 2.0
    check_mapping(network)


def test_training_ends_within_them(tmp_path, technology, calibration):
    network = run_job(TrainingJob(WILD, make_task(), check=check_mapping), tmp_path / "model.pt")
    check_sizes(network, technology, calibration)
    assert "refused" not in network.history["figures"]


def refuse(network):
    raise MappingError(f"no circuit for {network.task}")


CONFIG = TrainingConfig(Architecture(cells=5, layers=1), iterations=60, batch=17, seed=3)


def test_what_compiles_is_kept_before_what_does_not(tmp_path):
    """Only the first candidate compiles; later ones have a smaller loss."""
    config, asked = replace(CONFIG, seed=6), []  # whose loss falls three times

    def check(network):
        asked.append(network.layers[0].beta_hi)
        if not np.array_equal(asked[-1], asked[0]):
            raise MappingError("not the first one")

    free = run_job(TrainingJob(config, make_task()), tmp_path / "free.pt")
    result = run_job(TrainingJob(config, make_task(), check=check), tmp_path / "first.pt")
    assert len(asked) > 2
    np.testing.assert_array_equal(result.layers[0].beta_hi, asked[0])
    assert result.history["figures"]["validation_loss"] > free.history["figures"]["validation_loss"]
    assert "refused" not in result.history["figures"]


def test_where_none_compiles_the_best_is_written_and_says_so(tmp_path):
    free = run_job(TrainingJob(CONFIG, make_task()), tmp_path / "free.pt")
    found = run_job(TrainingJob(CONFIG, make_task(), check=refuse), tmp_path / "model.pt")
    assert found.history["figures"]["validation_loss"] == free.history["figures"]["validation_loss"]
    assert load_network(tmp_path / "model.pt").history["figures"]["refused"] == "no circuit for which"


def test_of_several_seeds_one_that_compiles_is_kept(tmp_path):
    """Whatever its loss: the check takes each seed's network in turn."""
    task, seeds = make_task(), (3, 4)
    for kept in seeds:
        own = train(replace(CONFIG, seed=kept), task, tmp_path / "own.pt")
        wanted = own.layers[0].bias

        def check(network, wanted=wanted):
            if not np.array_equal(network.layers[0].bias, wanted):
                raise MappingError("another seed")

        found = train_seeds(TrainingJob(CONFIG, task, check=check), seeds, tmp_path / f"best{kept}.pt")
        assert found.history["settings"]["seed"] == kept
        assert sum("refused" in figures for figures in found.history["seeds"].values()) == 1


def test_a_loop_of_ones_own_has_them(technology, calibration):
    torch.manual_seed(0)
    memory, readout = CMRU(3, 4), GridLinear(4, 2, 0.125)
    model = torch.nn.Sequential(Encode(ENCODING), memory, readout)
    assert bound_loss(model) == 0
    assert bound_loss(readout) == 0
    with torch.no_grad():
        memory.cell.width_free.fill_(24.0)
    assert bound_loss(model) > 10
    clip_(model)
    memory.epsilon = 0.0
    network = export({"memory": memory, "readout": readout}, ENCODING)
    check_sizes(network, technology, calibration)
