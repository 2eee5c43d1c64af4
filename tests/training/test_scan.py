"""The parallel scan is the sequential recurrence, in values and gradients, for every epsilon and every length."""

import pytest

torch = pytest.importorskip("torch")

from cosim.training.scan import LOOP_STEPS, linear_scan, scan_parallel, scan_sequential  # noqa: E402

N, WIDTH = 3, 5
LENGTHS = [1, 2, 3, 7, 8, LOOP_STEPS, LOOP_STEPS + 1, 31, 64, 101]


def inputs(steps: int, epsilon: float, seed: int = 43):
    """Gates as the cells make them: a is 1 (retain) or epsilon (update)."""
    rng = torch.Generator().manual_seed(seed)
    z = torch.randint(0, 2, (N, steps, WIDTH), generator=rng).double()
    a = (1 - (1 - epsilon) * z).requires_grad_()
    b = torch.randn(N, steps, WIDTH, generator=rng, dtype=torch.float64).requires_grad_()
    start = torch.randn(WIDTH, generator=rng, dtype=torch.float64).requires_grad_()
    weight = torch.randn(N, steps, WIDTH, generator=rng, dtype=torch.float64)
    return a, b, start, weight


def complex_inputs(steps: int, seed: int = 47):
    """Rotations with a decay, as of a linear recurrent unit."""
    rng = torch.Generator().manual_seed(seed)
    size, angle = (torch.rand(N, steps, WIDTH, generator=rng, dtype=torch.float64) for _ in range(2))
    a = torch.polar(0.8 + 0.2 * size, 2 * torch.pi * angle).requires_grad_()
    b, weight = (torch.randn(N, steps, WIDTH, generator=rng, dtype=torch.complex128) for _ in range(2))
    start = torch.randn(WIDTH, generator=rng, dtype=torch.complex128)
    return a, b.requires_grad_(), start.requires_grad_(), weight


def naive(a, b, start):
    states = []
    h = start
    for t in range(a.shape[1]):
        h = a[:, t] * h + b[:, t]
        states.append(h)
    return torch.stack(states, dim=1)


@pytest.mark.parametrize("steps", LENGTHS)
@pytest.mark.parametrize("epsilon", [-1.0, -0.7, 0.0, 0.3, 1.0])
def test_scan_equals_the_recurrence(steps: int, epsilon: float) -> None:
    a, b, start, weight = inputs(steps, epsilon)
    results = []
    for function in (linear_scan, naive):
        h = function(a, b, start)
        results.append((h, *torch.autograd.grad((h * weight).sum(), (a, b, start))))
    for name, ours, theirs in zip(("h", "da", "db", "dstart"), *results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("steps", LENGTHS)
def test_scan_over_complex_numbers(steps: int) -> None:
    a, b, start, weight = complex_inputs(steps)
    results = []
    for function in (linear_scan, naive):
        h = function(a, b, start)
        loss = (h * weight).real.sum() + (h.abs() ** 2).sum()
        results.append((h, *torch.autograd.grad(loss, (a, b, start))))
    for name, ours, theirs in zip(("h", "da", "db", "dstart"), *results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}")


def of_two_units(a, b, start):
    """One sequence, because finite differences take a run for every number."""
    return tuple(part.detach().requires_grad_() for part in (a[:1, :, :2], b[:1, :, :2], start[:2]))


def test_complex_gradient_by_finite_differences() -> None:
    assert torch.autograd.gradcheck(linear_scan, of_two_units(*complex_inputs(LOOP_STEPS + 2)[:3]))


@pytest.mark.parametrize("steps", LENGTHS)
def test_both_routes_agree(steps: int) -> None:
    a, b, _, _ = inputs(steps, 0.4)
    torch.testing.assert_close(scan_parallel(a, b), scan_sequential(a, b), rtol=1e-12, atol=1e-12)


def test_single_precision_stays_within_1e_5_over_a_long_sequence() -> None:
    a, b, start, _ = inputs(784, 0.9)
    single = linear_scan(a.float(), b.float(), start.float())
    exact = naive(a, b, start)
    assert (single.double() - exact).abs().max() <= 1e-5 * exact.abs().max()


def test_gradient_by_finite_differences() -> None:
    assert torch.autograd.gradcheck(linear_scan, of_two_units(*inputs(LOOP_STEPS + 2, 0.5)[:3]))


def test_long_sequences_take_logarithmically_many_dependent_operations() -> None:
    def depth(steps: int) -> int:
        a, b, _, _ = inputs(steps, 0.5)
        with torch.profiler.profile() as profile:
            linear_scan(a.detach(), b.detach(), torch.zeros(WIDTH, dtype=torch.float64))
        return sum(event.count for event in profile.key_averages() if event.key == "aten::addcmul")

    assert depth(1024) == 2 * 10  # two per level; a loop would take 1023
    assert depth(4096) - depth(1024) == 4
