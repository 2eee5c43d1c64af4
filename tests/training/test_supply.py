"""Supply current in training: against the equations of compiled circuits, and a loss that lowers it."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosim.circuit.waveforms import Timing  # noqa: E402
from cosim.compiler.passes import compile_network  # noqa: E402
from cosim.engines.behavioral.model import behavioral_power, run_behavioral  # noqa: E402
from cosim.network.ir.nodes import PEDESTAL_UNITS  # noqa: E402
from cosim.network.types import InputEncoding  # noqa: E402
from cosim.tasks.task import Task, full_lengths  # noqa: E402
from cosim.training.backbone import HardwareNetwork  # noqa: E402
from cosim.training.config import Architecture, TrainingConfig  # noqa: E402
from cosim.training.supply import supply_currents  # noqa: E402
from cosim.training.trainer import train  # noqa: E402

ARCHITECTURES = {
    "first-quadrant": Architecture(cells=6),
    "signed": Architecture(cells=6, unit="signed", skip=False),
    "hidden": Architecture(cells=4, hidden=5, layers=1),
}


class Immediate(Timing):
    """States change at the beginning of their frame, as in software."""

    def closes(self, stages):
        return (0.0,) * stages


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_block_draws_what_its_circuit_draws(name, technology, calibration):
    """Rows and readout are sums of the same weights; in the rest the measured gains of mirrors and cells differ from 1.

    `push` multiplies the rails, `push` and M2's gain the decision branch of a cell. Bias currents are those at which
    measured cells switch at the thresholds; the bias of levels and of pedestal sinks is left out.
    """
    torch.manual_seed(5)
    steps = 9
    encoding = InputEncoding(np.zeros(3), np.ones(3), levels=16)
    model = HardwareNetwork(ARCHITECTURES[name], encoding, 4)
    design = compile_network(model.to_network(), technology, calibration)
    x = np.random.default_rng(2).uniform(size=(40, steps, 3))
    trace = run_behavioral(design, x, ideal=True)
    expected = {
        block: power.mean() / (technology.supply * design.i_unit)
        for block, power in behavioral_power(design, trace, Immediate()).items()
    }
    valid = torch.ones(x.shape[:2], dtype=torch.bool)
    with torch.no_grad():
        output = model(torch.from_numpy(x.astype(np.float32)))
        found = {block: current.item() for block, current in supply_currents(model, output, valid).items()}
    assert found.keys() == expected.keys()
    for block in ("inputs", "rows", "readout"):
        assert found[block] == pytest.approx(expected[block], rel=1e-4), block
    mirror = calibration.mirror
    assert found["rails"] == pytest.approx(expected["rails"], rel=abs(1 - mirror.push) + 1e-3)
    assert found["cells"] == pytest.approx(expected["cells"], rel=0.05)
    level = 2.0 if name == "signed" else 1.0
    assert found["bias"] + level + PEDESTAL_UNITS == pytest.approx(expected["bias"], rel=0.05)


LATE = Architecture(cells=3, taps=2, feedback=True, input_levels=1)


@pytest.mark.parametrize("architecture", [ARCHITECTURES["signed"], LATE, Architecture(unit="mingru")])
def test_only_valid_steps_count(architecture):
    """Also with cells that are fed back, shifted inputs, and a unit without thresholds."""
    torch.manual_seed(5)
    model = HardwareNetwork(architecture, InputEncoding(np.zeros(2), np.ones(2)), 3)
    x = torch.rand((10, 6, 2))
    spoiled = x.clone()
    spoiled[:, 4:] = 1.0
    valid = torch.arange(6).expand(10, 6) < 4
    whole, cut = (supply_currents(model, model(values), valid) for values in (spoiled, x))
    assert whole == cut
    short = supply_currents(model, model(x[:, :4]), valid[:, :4])
    assert {name: value.item() for name, value in short.items()} == pytest.approx(
        {name: value.item() for name, value in cut.items()}, rel=1e-6
    )


def test_a_price_of_power_lowers_the_power_of_the_circuit(tmp_path, technology, calibration):
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
    assert power[1] < 0.7 * power[0]
