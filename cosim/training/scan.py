"""Parallel scan over time for the linear recurrence h_t = a_t h_{t-1} + b_t.

Composing two steps gives a step of the same form, (a, b) then (a', b') = (a' a, a' b + b'), so neighbours are merged
pairwise: log2(T) levels and O(T) work. The gradient is the same recurrence run backwards,
g_t = dL/dh_t + a*_{t+1} g_{t+1}, dL/db_t = g_t, dL/da_t = g_t h*_{t-1}, and uses the same scan; * is the complex
conjugate,  which for a real number is the number itself.

Step functions with a gradient that training can use.

In the forward pass they are exact steps. In the backward pass their derivative is replaced by 1 / (1 + (pi x)^2), the
surrogate of the seed paper arXiv 2605.11855, appendix F.8 (alpha_surr = 1).
"""

import math

import torch
from torch import Tensor

from cosim.network.layers import FULL_SCALE

# Up to about this many steps a plain loop is faster on a CPU than the merging: with 64 to 128 samples and 8 to 32 units
# 0.07 against 0.14 ms at 8 steps, equal between 24 and 48, 1.2 against 0.5 ms at 128.
LOOP_STEPS = 32


def linear_scan(a: Tensor, b: Tensor, start: Tensor) -> Tensor:
    """Compute h_t = a_t h_{t-1} + b_t of a recurrent layer in training for all steps, with h_{-1} = start.

    a, b: (n, time, width), both real or both complex; start: broadcastable to (n, width). Returns (n, time, width).
    """
    first = a[:, :1] * start.expand(a.shape[0], a.shape[2])[:, None] + b[:, :1]
    h: Tensor = _Scan.apply(a, torch.cat([first, b[:, 1:]], dim=1))  # type: ignore[assignment]
    return h


def clamped_count(steps: Tensor, start: float, low: float, high: float) -> Tensor:
    """Compute c_t = min(max(c_{t-1} + s_t, low), high) of a counting state in training, with c_{-1} = start.

    steps: s, (n, time, width); returns c, (n, time, width). The gradient is that of a count without ends: a count that
    stays at an end has a gradient of 0, so a unit that does so from the beginning would never learn to leave it.
    """
    free = linear_scan(torch.ones_like(steps), steps, steps.new_full((1,), start))
    with torch.no_grad():
        counts, state = torch.empty_like(steps), torch.full_like(steps[:, 0], start)
        for t in range(steps.shape[1]):
            state = counts[:, t] = torch.clamp(state + steps[:, t], low, high)
    return free + (counts - free.detach())


class _Scan(torch.autograd.Function):
    """The linear recurrence h_0 = b_0, h_t = a_t h_{t-1} + b_t with its gradient; a_0 has no effect."""

    @staticmethod
    def forward(ctx: torch.autograd.Function, a: Tensor, b: Tensor) -> Tensor:
        h = _scan(a, b)
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx: torch.autograd.Function, *grads: Tensor) -> tuple[Tensor, Tensor]:
        a, h = list(ctx.saved_tensors)
        after = torch.cat([a[:, 1:], torch.zeros_like(a[:, :1])], dim=1).conj()
        g = _scan(after.flip(1), grads[0].flip(1)).flip(1)
        before = torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], dim=1)
        return g * before.conj(), g


def _scan(a: Tensor, b: Tensor) -> Tensor:
    return scan_sequential(a, b) if a.shape[1] <= LOOP_STEPS else scan_parallel(a, b)


def scan_sequential(a: Tensor, b: Tensor) -> Tensor:
    """Compute a trained layer's recurrence step by step from h_0 = b_0; a, b and the result are (n, time, width)."""
    states = [b[:, 0]]
    for t in range(1, b.shape[1]):
        states.append(torch.addcmul(b[:, t], a[:, t], states[-1]))
    return torch.stack(states, dim=1)


def scan_parallel(a: Tensor, b: Tensor) -> Tensor:
    """Compute a trained layer's recurrence by pairwise merging from h_0 = b_0, in 2 log2(time) dependent operations.

    a, b and the result are (n, time, width).
    """
    steps = b.shape[1]
    if steps == 1:
        return b
    later_a, later_b = a[:, 1::2], b[:, 1::2]
    pairs = later_a.shape[1]
    merged_b = torch.addcmul(later_b, later_a, b[:, 0 : 2 * pairs : 2])
    odd = scan_parallel(later_a * a[:, 0 : 2 * pairs : 2], merged_b)
    h = torch.empty_like(b)
    h[:, 1::2] = odd
    h[:, 0] = b[:, 0]
    h[:, 2::2] = torch.addcmul(b[:, 2::2], a[:, 2::2], odd[:, : (steps - 1) // 2])
    return h


class _Heaviside(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.Function, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (x >= 0).to(x.dtype)

    @staticmethod
    def backward(ctx: torch.autograd.Function, *grads: Tensor) -> Tensor:
        return grads[0] * (1.0 / (1.0 + (math.pi * ctx.saved_tensors[0]) ** 2))


class _Sign(_Heaviside):
    @staticmethod
    def forward(ctx: torch.autograd.Function, x: Tensor) -> Tensor:
        return _Heaviside.forward(ctx, x) * 2 - 1


def heaviside(x: Tensor) -> Tensor:
    """Return 1 where x >= 0, else 0, with a surrogate gradient for training; any shape."""
    return _Heaviside.apply(x)  # type: ignore[no-any-return]


def nearest_level(value: Tensor, levels: int) -> Tensor:
    """Round values in training to the nearest of K + 1 levels, K = `levels`, as `cosim.network.layers.on_levels` does.

    The gradient passes straight through.
    """
    steps = torch.floor((value.detach() + FULL_SCALE) * levels / (2 * FULL_SCALE) + 0.5)
    return value + (steps.clamp(0, levels) * (2 * FULL_SCALE / levels) - FULL_SCALE - value.detach())


def turn_distance(value: Tensor, levels: int) -> Tensor:
    """Return the distance of trained values, of any shape, from the nearest turn, where `nearest_level` changes."""
    step = 2 * FULL_SCALE / levels
    turns = torch.floor((value.detach() + FULL_SCALE) / step).clamp(0, levels - 1) + 0.5
    return (value + FULL_SCALE - turns * step).abs()


def sign(x: Tensor) -> Tensor:
    """Return +1 where x >= 0, else -1 (never 0), with a surrogate gradient for training; any shape."""
    return _Sign.apply(x)  # type: ignore[no-any-return]
