"""Supply current in training: against compiled circuits, its gradients, and a loss that lowers it."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.base.errors import InputError  # noqa: E402
from cosim.circuit.waveforms import Timing  # noqa: E402
from cosim.compiler.passes import compile_network  # noqa: E402
from cosim.engines.behavioral.model import behavioral_power, run_behavioral  # noqa: E402
from cosim.network.types import InputEncoding  # noqa: E402
from cosim.tasks.task import Task, full_lengths  # noqa: E402
from cosim.training.backbone import HardwareNetwork  # noqa: E402
from cosim.training.config import Architecture, TrainingConfig, check_config  # noqa: E402
from cosim.training.supply import supply_currents  # noqa: E402
from cosim.training.trainer import train  # noqa: E402

ARCHITECTURES = {
    "first-quadrant": Architecture(cells=6),
    "signed": Architecture(cells=6, unit="signed"),
    "hidden": Architecture(cells=4, hidden=5, layers=1),
}
ENCODING = InputEncoding(np.zeros(3), np.ones(3))  # without levels the compiler moves no threshold


class Immediate(Timing):
    """States change at the beginning of their frame, as in software."""

    def closes(self, stages):
        return (0.0,) * stages


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_block_draws_what_its_circuit_draws(name, technology, calibration):
    """Rows and readout are sums of the same weights. Elsewhere measured mirrors and cells stand for ideal ones.

    Rails are copies with the gain `push`. What cells draw is computed here from candidates, states and set-points.
    Bias currents are those at which measured cells switch: within 3 % of the thresholds at these set-points.
    """
    torch.manual_seed(5)
    model = HardwareNetwork(ARCHITECTURES[name], ENCODING, 4)
    design = compile_network(model.to_network(), technology, calibration)
    x = np.random.default_rng(2).uniform(size=(40, 9, 3))
    trace = run_behavioral(design, x, ideal=True)
    expected = {
        block: power.mean() / (technology.supply * design.i_unit)
        for block, power in behavioral_power(design, trace, Immediate()).items()
    }
    with torch.no_grad():
        output = model(torch.from_numpy(x.astype(np.float32)))
        blocks = supply_currents(model, output, torch.ones(x.shape[:2], dtype=torch.bool))
    found = {block: current.item() for block, current in blocks.items()}
    assert found.keys() == expected.keys()
    for block in ("inputs", "rows", "readout"):
        assert found[block] == pytest.approx(expected[block], rel=1e-4), block
    assert found["rails"] == pytest.approx(expected["rails"], rel=abs(1 - calibration.mirror.push) + 1e-3)
    assert found["bias"] == pytest.approx(expected["bias"], rel=0.03)
    cells = 0.0
    for node in design.graph.memories:
        on, width = trace.states[node.name] > 0, node.rise - node.fall
        feedback = width * on
        decision = np.minimum(trace.candidates[node.name] / design.i_unit + feedback, node.rise)
        cells += (decision + feedback + trace.currents[node.name] / design.i_unit).mean()
    assert found["cells"] == pytest.approx(cells, rel=1e-3)
    assert cells == pytest.approx(expected["cells"], rel=0.05)  # the gains of M1, M2 and of the feedback, 2 % each


def drawn(model: HardwareNetwork, x, **signals):
    """Return the supply current of a model whose signals are replaced by those given."""
    output = model(x)
    output = dataclasses.replace(output, signals={**output.signals, **signals})
    return supply_currents(model, output, torch.ones(x.shape[:2], dtype=torch.bool))


@pytest.mark.parametrize(("unit", "level"), [("first-quadrant", 1.0), ("signed", 2.0)])
def test_a_state_costs_its_output_and_its_feedback(unit, level):
    """A cell, half of the time on, with candidates far below its thresholds: W in the decision branch, W again, and x.

    Its state also flows on the rail that positive weights read, and through each of them.
    """
    model = HardwareNetwork(Architecture(cells=1, layers=1, unit=unit, ramp=False), ENCODING, 2)
    with torch.no_grad():
        model.layers["layer1"].linear.weight.zero_()
        model.layers["layer1"].linear.bias.fill_(-4.0)
        model.readout.weight.fill_(1.5)
    cell = model.layers["layer1"]
    width = cell.width_min + cell.width_free.abs().item() if unit == "first-quadrant" else 2 * cell.bias_beta().item()
    off = torch.full((5, 4, 1), float(cell.start))
    states = torch.cat([off[:, :2], off[:, 2:] + level], dim=1).requires_grad_()
    blocks = drawn(model, torch.rand((5, 4, 3)), layer1=states)
    assert blocks["cells"].item() == pytest.approx(0.05 + (2 * width + level) / 2, rel=1e-5)
    for block, slope in (("cells", 1 + 2 * width / level), ("rails", 1.0), ("readout", 2 * 1.5)):
        (by_state,) = torch.autograd.grad(blocks[block], states, retain_graph=True)
        assert by_state[:, :2].numpy() * 20 == pytest.approx(slope, rel=1e-5), block  # 20 steps


def test_thresholds_have_the_slope_of_their_bias_currents():
    """A signed unit: thresholds offset -+ beta, with an offset that rises with beta in steps. So 2 upper - lower, 4."""
    for unit, name, slope in (
        ("first-quadrant", "lo_free", 1.0),
        ("first-quadrant", "width_free", 2.0),
        ("signed", "beta_free", 4.0),
    ):
        model = HardwareNetwork(Architecture(cells=3, layers=1, unit=unit), ENCODING, 2)
        drawn(model, torch.rand((5, 4, 3)))["bias"].backward()
        assert getattr(model.layers["layer1"], name).grad.numpy() == pytest.approx(slope)


def test_only_valid_steps_count():
    torch.manual_seed(5)
    model = HardwareNetwork(ARCHITECTURES["signed"], ENCODING, 3)
    x = torch.rand((10, 6, 3))
    spoiled = x.clone()
    spoiled[:, 4:] = 1.0
    valid = torch.arange(6).expand(10, 6) < 4
    whole, cut = (supply_currents(model, model(values), valid) for values in (spoiled, x))
    assert whole == cut
    short = supply_currents(model, model(x[:, :4]), valid[:, :4])
    assert {name: value.item() for name, value in short.items()} == pytest.approx(
        {name: value.item() for name, value in cut.items()}, rel=1e-6
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"taps": 1, "input_levels": 1}, "--power-cost does not know what shift cells draw"),
        ({"unit": "mingru"}, "--power-cost needs --unit first-quadrant or signed"),
        ({"unit": "signed", "beta": "input"}, "--power-cost needs --beta fixed"),
        ({"unit": "signed", "cell": "alphacmru", "levels": 8}, "--power-cost knows no register yet"),
        ({"lines": 2}, "--power-cost knows the transistors of the 9T cell, not those of delay lines"),
    ],
)
def test_units_whose_current_is_not_known_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        check_config(TrainingConfig(Architecture(**change), power_cost=1e-3))
    with pytest.raises(InputError, match="--power-cost needs --epsilon anneal or 0, not 1"):
        check_config(TrainingConfig(Architecture(unit="signed"), power_cost=1e-3, epsilon=1.0))


def test_a_price_of_power_lowers_the_power_of_the_circuit(tmp_path, technology, calibration):
    """To 0.65 of it, with this seed; a loss that left rows or cells out would leave at least 0.8 of it."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 0.3, (211, 7, 3)).astype(np.float32), rng.integers(0, 3, 211)
    x[np.arange(211), 0, y] = 1.0
    halves = x[:160], y[:160], x[160:], y[160:], full_lengths(x[:160]), full_lengths(x[160:])
    task = Task("which", *halves, ("a", "b", "c"), np.zeros(3), np.ones(3))
    config = TrainingConfig(Architecture(cells=5, layers=1), iterations=250, batch=17, weight_cost=0.0, seed=3)
    power = []
    for cost in (0.0, 1e-2):
        network = train(dataclasses.replace(config, power_cost=cost), task, tmp_path / f"{cost}.pt")
        assert network.history["figures"]["test_accuracy"] > 0.6  # chance is 0.33
        design = compile_network(network, technology, calibration)
        blocks = behavioral_power(design, run_behavioral(design, task.x_test))
        power.append(sum(block.mean() for block in blocks.values()))
    assert power[1] < 0.75 * power[0]
