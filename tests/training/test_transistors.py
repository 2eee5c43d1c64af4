"""A circuit as a function of torch tensors: values are those of the transistors, gradients also pass through states."""

from dataclasses import replace

import numpy as np
import pytest

from cosim.base.errors import InputError, MappingError
from cosim.base.resources import trained_network_path
from cosim.compiler.passes import compile_network
from cosim.engines.batch.gradients import SimulatedCircuit
from cosim.network.reference import encode_inputs
from cosim.network.types import InputEncoding
from cosim.tasks.testset import load_test_set

torch = pytest.importorskip("torch")

import cosim  # noqa: E402
from cosim.training.cells import BETA_MIN  # noqa: E402
from cosim.training.hardware import GridLinear  # noqa: E402
from cosim.training.own import BMRU, export, learned  # noqa: E402
from cosim.training.transistors import TransistorCircuit  # noqa: E402

pytestmark = pytest.mark.ngspice  # device tables are measured in it


@pytest.fixture(scope="module")
def digits(digits_circuit):
    return digits_circuit


@pytest.fixture(scope="module")
def x(digits):
    test_set = load_test_set(digits.design.network, None)
    return torch.from_numpy(np.stack([test_set.inputs(k) for k in (51, 5)]))


class Two(torch.nn.Module):
    """A unit behind another one, and a readout.

    No candidate is below 0, where the circuit's is 0 and software's goes on; thresholds are in the middle between two
    candidates, where the compiler leaves them: so both have the same distances, at which the surrogate is taken.
    """

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer1, self.layer2, self.readout = BMRU(2, 3), BMRU(3, 2), GridLinear(2, 2, 1 / 8)
        rows = {
            self.layer1.cell: ([[2.0, 0.5], [0.5, 2.0], [1.0, 1.0]], [0.0, 0.0, 0.0], 0.4, 1.2),
            self.layer2.cell: ([[1.5, 0.5, 0.0], [0.5, 1.0, 1.0]], [0.0, 0.5], 0.75, 1.25),
        }
        with torch.no_grad():
            for cell, (weight, bias, lower, upper) in rows.items():
                cell.linear.weight.copy_(torch.tensor(weight))
                cell.linear.bias.copy_(torch.tensor(bias))
                cell.lo_free.fill_(lower - BETA_MIN)
                cell.width_free.fill_(upper - lower - cell.width_min)

    def forward(self, units):
        first = self.layer1(units)
        second = self.layer2(first)
        return self.readout(second), torch.cat([first, second], dim=2)

    @property
    def parts(self):
        return {"layer1": self.layer1, "layer2": self.layer2, "readout": self.readout}


ENCODING = InputEncoding(np.zeros(2), np.ones(2))
RAW = np.array([[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.5], [0.5, 0.5], [1.0, 0.0]]])


@pytest.fixture(scope="module")
def two(batch, technology, calibration):
    model = Two()
    network = export(model.parts, ENCODING, ("no", "yes"))
    design = compile_network(network, technology, calibration)
    return model, TransistorCircuit(SimulatedCircuit(design, design.nominal))


def test_values_are_those_of_the_circuit_over_the_unit_current(digits, x):
    out = TransistorCircuit(digits)(x)
    run = digits.simulate([one.numpy() for one in x], {}, {}, {})
    assert out.readout.numpy() == pytest.approx(run.readout / run.i_unit, rel=1e-12)
    assert np.array_equal(out.h.numpy(), run.states)
    assert out.from_upper.numpy() == pytest.approx((run.candidate - run.thresholds[:, None, :, 0]) / run.i_unit)
    on = np.concatenate([np.zeros((2, 1, 8)), run.states[:, :-1]], axis=1) > 0
    assert out.distance.numpy() == pytest.approx(np.abs(np.where(on, out.from_lower, out.from_upper)))
    assert out.cells == run.cells


def test_gradients_are_those_of_the_networks_own_training(two):
    """What flows through states is what software computes: gains of mirrors and voltages of nodes leave 3 %.

    The loss knows states alone: readouts of the circuit differ by their mirrors' gains, which gradients do not have.
    """
    model, circuit = two
    units = torch.from_numpy(encode_inputs(ENCODING, RAW).units).float()
    weights = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 4, 5)))
    _, states = model(units)
    (states * weights).sum().backward()
    theirs = {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}
    model.zero_grad()
    out = circuit(torch.from_numpy(RAW), learned(model.parts))
    assert torch.equal(out.h, states.detach().double())
    (out.h * weights).sum().backward()
    ours = {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
    for name in (
        "layer1.cell.lo_free",
        "layer1.cell.width_free",
        "layer2.cell.linear.weight",
        "layer2.cell.linear.bias",
    ):
        scale = theirs[name].abs().max()
        assert scale > 0.01, name
        assert (ours[name] - theirs[name]).abs().max() < 0.03 * scale, name


def test_a_readout_bias_passes_its_gradient_straight(two):
    _, circuit = two
    found = circuit.new_parameters()
    out = circuit(torch.from_numpy(RAW), found)
    out.readout[:, :, 1].sum().backward()
    assert found["readout.bias"].grad.tolist() == pytest.approx([0.0, 8.0], rel=0.02)  # 2 samples of 4 frames; gain


def test_padding_counts_for_nothing(two):
    """Each sample's gradients are those that it has alone, a readout's bias of 0 included, which has no transistor."""
    _, circuit = two
    weights = torch.from_numpy(np.random.default_rng(2).normal(size=(2, 5, 2)))
    x, lengths = torch.cat([torch.from_numpy(RAW), torch.ones(2, 1, 2)], dim=1), torch.tensor([4, 2])

    def gradients(raw, weights, lengths=None):
        found = {**circuit.new_parameters(), "readout.bias": torch.zeros(2, dtype=torch.float64, requires_grad=True)}
        out = circuit(raw, found, lengths=lengths)
        ((out.readout + out.h[:, :, 3:]) * weights).sum().backward()
        return out, {name: one.grad.numpy() for name, one in found.items()}

    out, both = gradients(x, weights, lengths)
    _, first = gradients(x[:1, :4], weights[:1, :4])
    _, second = gradients(x[1:, :2], weights[1:, :2])
    assert out.readout.shape == (2, 5, 2)
    assert out.readout[1, 2:].abs().max() == 0
    assert torch.isinf(out.distance[1, 2:]).all()
    for name, one in both.items():
        scale = np.abs(first[name] + second[name]).max()
        assert one == pytest.approx(first[name] + second[name], abs=0.01 * scale), name  # other steps beside each other


def test_learned_arrays_of_own_modules_are_those_of_the_export(two):
    model, circuit = two
    found = learned(model.parts)
    own = circuit.circuit.arrays
    assert {name: tuple(value.shape) for name, value in found.items()} == {
        name: value.shape for name, value in own.items()
    }
    network = circuit.network(found)
    assert all(
        np.array_equal(network.layers[0].arrays()[name], own[f"layer1.{name}"]) for name in ("weight", "beta_lo")
    )


def test_without_gradients_no_step_is_kept(two, monkeypatch):
    _, circuit = two
    kept = []
    simulate = SimulatedCircuit.simulate

    def spied(self, *values, keep=True):
        kept.append(simulate(self, *values, keep=keep))
        return kept[-1]

    monkeypatch.setattr(SimulatedCircuit, "simulate", spied)
    found = circuit.new_parameters()
    with torch.no_grad():
        circuit(torch.from_numpy(RAW), found)
    circuit(torch.from_numpy(RAW), found)
    assert [len(run.tiles) for run in kept] == [0, 1]


def test_gradients_twice_and_second_ones(two):
    _, circuit = two
    found = circuit.new_parameters()
    total = circuit(torch.from_numpy(RAW), found).readout.sum()
    once = torch.autograd.grad(total, found["readout.weight"], retain_graph=True)[0]
    assert torch.equal(once, torch.autograd.grad(total, found["readout.weight"], retain_graph=True)[0])
    second = torch.autograd.grad(total, found["readout.weight"], create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        second.sum().backward()


def test_a_cell_that_begins_on_leaves_by_its_lower_threshold(batch, technology, calibration):
    model = Two()
    network = export(model.parts, ENCODING, ("no", "yes"))
    first = replace(network.layers[0], initial=np.array([1.0, 0.0, 0.0]))
    design = compile_network(replace(network, layers=(first, network.layers[1])), technology, calibration)
    out = TransistorCircuit(SimulatedCircuit(design, design.nominal))(torch.from_numpy(RAW))
    assert torch.equal(out.distance[:, 0, 0], out.from_lower[:, 0, 0].abs())
    assert torch.equal(out.distance[:, 0, 1], out.from_upper[:, 0, 1].abs())


def test_a_chip_is_trimmed_by_the_gradients_of_its_pins(digits, x):
    """Four steps against the margin loss of one chip: it falls."""
    circuit = TransistorCircuit(digits).on_chips([7])
    factors = {pin: torch.ones((), requires_grad=True) for pin in circuit.pins}
    optimiser, losses = torch.optim.Adam(factors.values(), 0.01), []
    for _ in range(4):
        out = circuit(x, pins=factors)
        loss = torch.relu(0.5 - out.distance).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 1e-3


def test_areas_have_gradients_on_chips_alone(digits, x):
    area = {role: torch.ones((), requires_grad=True) for role in ("compare", "weight")}
    out = TransistorCircuit(digits).on_chips([3], 3)(x, area=area)
    (out.readout.sum() + out.from_upper.sum()).backward()
    assert all(one.grad != 0 for one in area.values())
    with pytest.raises(InputError, match="area counts for mismatch alone; choose chips with `on_chips`"):
        TransistorCircuit(digits)(x, area=area)


def test_the_way_in_is_the_compiled_network(batch):
    chip = cosim.load(trained_network_path("digits_d4")).compile("generic180")
    circuit = chip.differentiable()
    assert circuit.pins == tuple(chip.design.assembly.bias_pins)
    assert set(circuit.new_parameters()) == set(circuit.circuit.arrays)
    native = cosim.load(trained_network_path("digits_native_d8")).compile("generic180")
    with pytest.raises(MappingError, match="has no derivatives through transistors"):
        native.differentiable()


@pytest.mark.parametrize(
    ("shape", "lengths", "text"),
    [
        ((0, 8, 8), None, r"x must have the shape \(n, time, 8\) with at least one sample and frame, not \(0, 8, 8\)"),
        ((2, 8), None, r"x must have the shape .*, not \(2, 8\)"),
        ((2, 8, 5), None, r"x must have the shape .*, not \(2, 8, 5\)"),
        ((2, 8, 8), [8], r"lengths must be 2 numbers from 1 to 8, not \[8\]"),
        ((2, 8, 8), [8, 9], r"lengths must be 2 numbers from 1 to 8, not \[8, 9\]"),
    ],
)
def test_shapes_that_do_not_fit(digits, shape, lengths, text):
    lengths = None if lengths is None else torch.tensor(lengths)
    with pytest.raises(InputError, match=text):
        TransistorCircuit(digits)(torch.zeros(shape), lengths=lengths)


def test_factors_are_single_numbers(digits, x):
    with pytest.raises(InputError, match="pins: bias_gain_0 must be one number, not a tensor of 2"):
        TransistorCircuit(digits)(x, pins={"bias_gain_0": torch.ones(2)})
