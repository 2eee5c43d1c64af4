"""A unit from outside the package: one file and one entry in `cosim.units.table.UNITS`, docs/develop/add-a-unit.md."""

import importlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.base.errors import MappingError, NetworkError
from cosim.circuit.elements import Capacitor
from cosim.compiler.passes import compile_network
from cosim.engines.behavioral.model import run_behavioral
from cosim.engines.engine import Inference
from cosim.engines.simulation.inference import run_inference
from cosim.engines.simulation.read import read_plan
from cosim.engines.simulation.testbench import inference_bench
from cosim.engines.table import simulator_named
from cosim.exchange.checkpoint import load_network, save_checkpoint
from cosim.network.reference import run_reference
from cosim.network.types import DelayedSignal, InputEncoding, Network, Readout, check_network
from cosim.tasks.testset import TestSet
from cosim.technology.calibration import load_calibration, write_calibration
from cosim.units import table
from cosim.variation.draws import VariationPlan
from cosim.verbs.compare.agreement import compare_engines, summarize_comparison
from cosim.verbs.montecarlo.trial import Trial, run_chip

FRAMES = 8


@pytest.fixture
def leaky(monkeypatch):
    """The toy's module, its unit in the table."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "toys"))
    module = importlib.import_module("leaky")
    monkeypatch.setattr(table, "UNITS", (*table.UNITS, module.Leaky))
    return module


@pytest.fixture
def network(leaky):
    rng = np.random.default_rng(7)
    layer = leaky.LeakyLayer(
        "layer0", ("input",), rng.integers(1, 7, (3, 2)) / 8, np.zeros(3), np.array([2.0, 4.0, 7.0])
    )
    readout = Readout(("layer0",), rng.integers(-8, 9, (2, 3)) / 8, np.zeros(2))
    encoding = InputEncoding(np.zeros(2), np.ones(2))
    return check_network(Network(encoding, (layer,), readout, weight_grid=1 / 8))


@pytest.fixture
def samples(network):
    x = np.random.default_rng(11).uniform(0, 1, (3, FRAMES, 2))
    wanted = run_reference(network, x).decisions
    return TestSet(x, wanted, np.full(3, FRAMES), np.arange(3))


@pytest.fixture
def design(network, technology, calibration):
    return compile_network(network, technology, calibration)


def test_its_states_are_between_the_levels(design, samples):
    """Behavioral equations against software: 0.95 of the last frame has passed, and gains are within 2 % of 1.

    A state of 1 that moves by 1 in a frame at rate 2 is 2 % behind after 0.95 of it, e^-1.9 against e^-2.
    """
    software = run_reference(design.network, samples.x).signals["layer0"]
    trace = run_behavioral(design, samples.x)
    states = np.stack([trace.states[f"layer0.{i}"] for i in range(3)], axis=2)
    assert states.dtype == np.float64 and np.ptp(software) > 0.1 and len(np.unique(software)) > 20
    np.testing.assert_allclose(states, software, atol=0.04)


def test_feedback_needs_units_that_go_on_from_a_state(leaky, network, samples, technology, calibration):
    """In software it does, from `before`; its `compute_states` begins anew, so a circuit that feeds back is refused."""
    (layer,) = network.layers
    whole = layer.run(samples.x)
    front = layer.run(samples.x[:, :3])
    np.testing.assert_array_equal(layer.run(samples.x[:, 3:], front.last).h, whole.h[:, 3:])
    reader = replace(layer, sources=("input", "layer0_1"), weight=np.concatenate([layer.weight, np.eye(3) / 8], axis=1))
    fed = check_network(replace(network, layers=(reader,), late={"layer0_1": DelayedSignal("layer0")}))
    with pytest.raises(
        MappingError, match="layer0: a network that feeds back must be of units that go on from a state"
    ):
        compile_network(fed, technology, calibration)


def test_a_checkpoint_keeps_it(network, tmp_path):
    save_checkpoint(tmp_path / "net.npz", network)
    (layer,) = load_network(tmp_path / "net.npz").layers
    assert type(layer) is type(network.layers[0])
    for name, array in network.layers[0].arrays().items():
        np.testing.assert_array_equal(layer.arrays()[name], array)


def test_without_its_entry_a_checkpoint_is_refused(network, tmp_path, monkeypatch):
    save_checkpoint(tmp_path / "net.npz", network)
    monkeypatch.setattr(table, "UNITS", table.UNITS[:-1])
    with pytest.raises(
        NetworkError, match="kind must be one of relu, and, first-quadrant, signed, mingru, gamma, not 'leaky'"
    ):
        load_network(tmp_path / "net.npz")


@pytest.mark.ngspice
def test_ngspice_agrees_with_its_equation(design, samples):
    """States on transistors within the toy's tolerance of 0.03 of a level, decisions the software's."""
    benches = [inference_bench(design, x) for x in samples.x]
    assert "cell_layer0_1" in simulator_named("ngspice").write(benches[0])
    outcomes = [run_inference(bench, read_plan(design, FRAMES)) for bench in benches]
    assert all(isinstance(outcome, Inference) for outcome in outcomes)
    comparison = compare_engines(design, samples, outcomes)
    assert comparison is not None
    summary = summarize_comparison(comparison)
    assert summary.state_agreement_behavioral == 1.0
    assert summary.task_agreement == 1.0
    found = comparison.engines["ngspice"].states
    assert np.abs(found - comparison.engines["software"].states).max() < 0.06
    powers = comparison.power_w
    np.testing.assert_allclose(powers["behavioral"], powers["ngspice"], rtol=0.05)


@pytest.mark.ngspice
def test_it_measures_what_it_needs(leaky, network, technology, calibration, tmp_path):
    """n U_T of the diode: within 5 % of the technology's slope factor; kept in a calibration's file, and built from."""
    own = {"Leaky": leaky.Leaky.measure_fit(technology, calibration, "ngspice")}
    (swing,) = own["Leaky"]["swing"]
    assert swing == pytest.approx(technology.pfet.slope_factor * technology.thermal_voltage, rel=0.05)
    write_calibration(tmp_path / "own.json", replace(calibration, own=own))
    kept = load_calibration(tmp_path / "own.json")
    assert kept.own["Leaky"]["swing"] == pytest.approx((swing,), rel=1e-8)
    sizes = [
        next(one for one in design.flat.elements if isinstance(one, Capacitor)).value
        for design in (compile_network(network, technology, calibration), compile_network(network, technology, kept))
    ]
    assert sizes[1] / sizes[0] == pytest.approx(technology.pfet.slope_factor * technology.thermal_voltage / swing)


def test_its_chips_are_drawn(design, samples):
    record = run_chip(Trial(design, samples, VariationPlan("local", 3, 4)), 1)
    assert record.status == "ok" and record.behavioral.state_agreement < 1.0  # mirrors deviate by more than 0.03


def test_it_is_trained(leaky, tmp_path):
    """The torch cell is the numpy layer to float32, and a training lowers its loss."""
    torch = pytest.importorskip("torch")
    from cosim.training.backbone import HardwareNetwork
    from cosim.training.config import Architecture

    torch.manual_seed(3)
    backbone = HardwareNetwork(
        Architecture(cells=4, layers=1, unit="leaky", ramp=False), InputEncoding(np.zeros(2), np.ones(2)), 2
    )
    x = torch.rand(32, 9, 2)
    y = (x[:, :, 0].mean(dim=1) > 0.5).long()
    optimiser = torch.optim.Adam(backbone.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.cross_entropy(8 * backbone(x).scores, y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    trained = backbone.to_network()
    trace = run_reference(trained, x.numpy().astype(np.float64))
    np.testing.assert_allclose(trace.readout, backbone(x).readout.detach().numpy(), atol=1e-5)
