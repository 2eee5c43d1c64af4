"""Step functions that can be trained through.

Forward they are exact steps; backward the derivative is replaced by 1 / (1 + (pi x)^2), the surrogate of the seed paper
arXiv 2605.11855, appendix F.8 (alpha_surr = 1).
"""

import math

import torch
from torch import Tensor


def _surrogate_derivative(x: Tensor) -> Tensor:
    return 1.0 / (1.0 + (math.pi * x) ** 2)


class _Heaviside(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.Function, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (x >= 0).to(x.dtype)

    @staticmethod
    def backward(ctx: torch.autograd.Function, *grads: Tensor) -> Tensor:
        return grads[0] * _surrogate_derivative(ctx.saved_tensors[0])


class _Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.Function, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (x >= 0).to(x.dtype) * 2 - 1

    @staticmethod
    def backward(ctx: torch.autograd.Function, *grads: Tensor) -> Tensor:
        return grads[0] * _surrogate_derivative(ctx.saved_tensors[0])


def heaviside(x: Tensor) -> Tensor:
    """Return 1 where x >= 0, else 0, with a surrogate gradient for training; any shape."""
    return _Heaviside.apply(x)  # type: ignore[no-any-return]


def sign(x: Tensor) -> Tensor:
    """Return +1 where x >= 0, else -1 (never 0), with a surrogate gradient for training; any shape."""
    return _Sign.apply(x)  # type: ignore[no-any-return]
