"""Cells over time: the scan is the recurrence of the paper's equations, in double precision to 1e-9."""

import pytest

torch = pytest.importorskip("torch")

from cosim.papers.backbone import _cell  # noqa: E402
from cosim.papers.cells import (  # noqa: E402
    Drive,
    HysteresisCell,
    Lru,
    ParallelCells,
)
from cosim.papers.shape import CELLS, BackboneShape  # noqa: E402
from cosim.training.scan import clamped_count  # noqa: E402

N, M, D = 3, 6, 4
STEPS = (1, 2, 33, 100)  # a loop up to 32, above it the merging
EPSILONS = {"cmru": (1.0, 0.3, 0.0, -1.0), "alphacmru": (1.0, 0.0)}


def build(kind, epsilon=None, threshold="input", seed=5):
    torch.manual_seed(seed)
    cell = _cell(kind, BackboneShape(1, 1, cell=kind, width=M, threshold=threshold), D).double()
    if epsilon is not None:
        cell.epsilon = epsilon
    return cell


def step_by_step(cell, kind, x):
    """The equations as they are printed, one step after the other."""
    states, h = [], torch.zeros(len(x), D, dtype=torch.complex128 if kind == "lru" else torch.float64)
    outputs = []
    for t in range(x.shape[1]):
        u = x[:, t]
        if kind == "lru":
            size = torch.exp(-torch.exp(cell.nu) - 1e-6)
            eigenvalue = size * torch.exp(1j * torch.exp(cell.theta))
            h = eigenvalue * h + torch.sqrt(1 - size**2) * (u.cdouble() @ torch.complex(*cell.b).T)
            outputs.append((h @ torch.complex(*cell.c).T).real + u @ cell.d.weight.T)
        elif kind == "mingru":
            z = torch.sigmoid(cell.gate(u))
            h = (1 - z) * h + z * cell.candidate(u)
            outputs.append(h)
        else:
            candidate = cell.candidate(u)
            beta = cell.bias.abs() if cell.threshold is None else cell.threshold(u).abs()
            alpha = cell.alpha if cell.scale is None else cell.scale(u)
            new = torch.where(candidate >= 0, 1.0, -1.0) * alpha + cell.epsilon * h
            h = torch.where(candidate.abs() >= beta, new, h)
            outputs.append(h)
        states.append(h)
    return torch.stack(outputs, dim=1)


CASES = [(kind, epsilon) for kind in CELLS for epsilon in EPSILONS.get(kind, (None,))]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(("kind", "epsilon"), CASES)
def test_scan_is_the_equation(kind, epsilon, steps):
    cell = build(kind, epsilon)
    x = torch.randn(N, steps, M, dtype=torch.float64, generator=torch.Generator().manual_seed(steps))
    torch.testing.assert_close(cell(x), step_by_step(cell, kind, x), rtol=1e-9, atol=1e-9)


def test_fixed_threshold_is_one_for_each_unit():
    cell = build("cmru", 0.0, "fixed")
    x = torch.randn(N, 50, M, dtype=torch.float64)
    torch.testing.assert_close(cell(x), step_by_step(cell, "cmru", x), rtol=1e-9, atol=1e-9)
    threshold = cell.drive(x).threshold
    assert (threshold == cell.bias.abs()).all() and cell.bias.shape == (D,)
    cell(x).sum().backward()
    assert (cell.bias.grad != 0).all()


@pytest.mark.parametrize("kind", ["cmru", "alphacmru", "lru", "mingru"])
def test_every_parameter_of_a_cell_has_a_gradient(kind):
    cell = build(kind)
    (cell(torch.randn(8, 40, M, dtype=torch.float64)) ** 2).sum().backward()
    for name, parameter in cell.named_parameters():
        assert parameter.grad is not None and (parameter.grad != 0).any(), name


def test_a_bmru_state_is_zero_or_plus_or_minus_alpha():
    cell = build("bmru")
    cell.alpha.data = torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64)
    sizes = cell(torch.randn(N, 200, M, dtype=torch.float64)).abs()
    assert ((sizes == 0) | (sizes == cell.alpha)).all() and (sizes[:, -1] == cell.alpha).all()


def test_memory_can_be_cut_out_and_put_back():
    cell, x = build("cmru", 0.0), torch.randn(N, 60, M, dtype=torch.float64)
    seen: list[Drive] = []

    def memory(drive):
        seen.append(drive)
        return cell.decide(drive).flip(2)

    cell.memory = memory
    cut = cell(x)
    cell.memory = None
    assert torch.equal(cut.flip(2), cell(x))
    drive = seen[0]
    assert drive.candidate.shape == drive.threshold.shape == drive.level.shape == (N, 60, D)
    assert (drive.threshold >= 0).all()


@pytest.mark.parametrize("start", ["zero", "low"])
def test_a_count_stays_at_its_ends(start):
    """Step by step, with the gradient of the steps that reach no end."""
    torch.manual_seed(3)
    cell, x = HysteresisCell(M, D, levels=5).double(), torch.randn(N, 60, M, dtype=torch.float64)
    cell.start = start
    drive = cell.drive(x)
    steps = (drive.candidate.abs() >= drive.threshold) * drive.candidate.sign()
    state, found = torch.full((N, D), -1.0 if start == "low" else 0.0), []
    for t in range(60):
        state = (state + steps[:, t]).clamp(-2, 3)
        found.append(state)
    assert torch.equal(cell(x), torch.stack(found, 1).double())
    assert {state.min().item(), state.max().item()} <= set(range(-2, 4)) and torch.stack(found).max() == 3


def test_the_gradient_of_a_count_is_that_without_ends():
    """A unit that stays at an end all the time can learn to leave it."""
    steps = torch.ones(2, 50, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    counts = clamped_count(steps, 0.0, -1.0, 2.0)
    assert (counts[:, 2:] == 2).all()
    (found,) = torch.autograd.grad((counts * weight).sum(), steps)
    (expected,) = torch.autograd.grad((steps.cumsum(1) * weight).sum(), steps)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_parallel_cells_stand_side_by_side():
    parts = [build("mingru"), build("cmru", 1.0), build("lru")]
    x = torch.randn(N, 40, M, dtype=torch.float64)
    both = ParallelCells(parts)
    assert both.outputs == 3 * D
    assert torch.equal(both(x), torch.cat([part(x) for part in parts], dim=2))


def test_lru_begins_in_its_ring():
    torch.manual_seed(0)
    sizes, phases = (lambda value: (value.abs(), value.angle()))(Lru(4, 4000).eigenvalues().detach())
    # |lambda|^2 is uniform in [0.81, 0.998]: mean 0.904, standard error 0.188 / sqrt(12 * 4000) = 0.0009
    assert sizes.min() >= 0.9 - 1e-5 and sizes.max() <= 0.999 + 1e-5
    assert abs((sizes**2).mean() - 0.904) < 0.004
    assert abs(phases.mean()) < 0.12 and phases.min() < -3.1 and phases.max() > 3.1  # pi / sqrt(3 * 4000) = 0.03


@pytest.mark.parametrize("rate", [1e-3, 1.0])
def test_lru_stays_stable_after_random_steps_of_adamw(rate):
    torch.manual_seed(1)
    cell = Lru(4, 64)
    before = cell.nu.detach().clone()
    optimiser = torch.optim.AdamW(cell.parameters(), rate, (0.9, 0.99), weight_decay=1e-4)
    for i in range(100):
        for parameter in cell.parameters():
            parameter.grad = torch.randn_like(parameter)
        cell.nu.grad = cell.nu.grad + 5.0  # pushed towards |lambda| = 1
        optimiser.step()
        if i % 25 == 24:
            assert (cell.eigenvalues().abs() < 1).all()
    assert (cell.nu < before - 0.4 * 100 * rate).all()  # it did move
    h = cell(torch.randn(2, 64, 4))
    assert torch.isfinite(h).all()
