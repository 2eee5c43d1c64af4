# pyright: basic
# numba compiles these functions: what it hands them has no type that pyright knows.
"""LU of all instances' matrices by the program of one pattern, and what it solves."""

from typing import Any

from cosim.engines.batch.compiled import jit
from cosim.engines.batch.lanes import as_in, load, splat, store
from cosim.engines.batch.layout import Solver


@jit
def decompose(p: Solver, a: Any) -> None:
    """LU in place; a pivot's place then holds its reciprocal."""
    for k in range(p.pivot.size):
        inverse = splat(1.0) / load(a, p.pivot[k])
        store(a, p.pivot[k], inverse)
        first, width = p.right_at[k], p.right_at[k + 1] - p.right_at[k]
        for e in range(p.below_at[k], p.below_at[k + 1]):
            factor = as_in(a, load(a, p.below[e]) * inverse)
            store(a, p.below[e], factor)
            at = p.target_at[e]
            for m in range(width):
                t = p.target[at + m]
                store(a, t, load(a, t) - factor * load(a, p.right[first + m]))


@jit
def substitute(p: Solver, a: Any, b: Any) -> None:
    """Solve for the right-hand side in place."""
    n = p.pivot.size
    for k in range(n):
        value = load(b, k)
        for e in range(p.below_at[k], p.below_at[k + 1]):
            row = p.below_row[e]
            store(b, row, load(b, row) - load(a, p.below[e]) * value)
    for k in range(n - 1, -1, -1):
        value = load(b, k)
        for e in range(p.right_at[k], p.right_at[k + 1]):
            value = value - load(a, p.right[e]) * load(b, p.right_row[e])
        store(b, k, value * load(a, p.pivot[k]))


@jit
def substitute_transposed(p: Solver, a: Any, b: Any) -> None:
    """Solve with the transpose of what `decompose` has left, in place."""
    n = p.pivot.size
    for k in range(n):
        value = load(b, k) * load(a, p.pivot[k])
        store(b, k, value)
        for e in range(p.right_at[k], p.right_at[k + 1]):
            row = p.right_row[e]
            store(b, row, load(b, row) - load(a, p.right[e]) * value)
    for k in range(n - 1, -1, -1):
        value = load(b, k)
        for e in range(p.below_at[k], p.below_at[k + 1]):
            value = value - load(a, p.below[e]) * load(b, p.below_row[e])
        store(b, k, value)
