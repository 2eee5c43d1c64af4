"""Nested lists of digits under MAX, MIN, MED and SM in prefix notation, whose value is a digit (ListOps).

    [MAX 2 [MED 3 9 4 ] [SM 7 8 ] ]   is   5

MED is the median, of an even number of values rounded down, and SM the sum modulo 10 (N. Nangia and S. Bowman, 2018).
The expressions are generated here and follow no published file: a leaf, any one that is not too deep, becomes a list
until the wanted length is reached.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cosim.base.errors import InputError
from cosim.tasks.task import Task

OPERATORS = ("[MAX", "[MIN", "[MED", "[SM")
TOKENS = (*(str(digit) for digit in range(10)), *OPERATORS, "]")
LONGEST, MOST_TOKENS = 60, 2000
FEWEST_ARGUMENTS, MOST_ARGUMENTS, DEPTH = 2, 5, 10
_VALUES: tuple[Callable[[list[int]], int], ...] = (
    max,
    min,
    lambda values: (sorted(values)[(len(values) - 1) // 2] + sorted(values)[len(values) // 2]) // 2,
    lambda values: sum(values) % 10,
)
_FIRST_OPERATOR, _CLOSE = 10, len(TOKENS) - 1
_ADDED = FEWEST_ARGUMENTS + 1  # tokens that the smallest list adds to the digit whose place it takes


def generate_listops_task(longest: int = LONGEST, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate the listops task: x (n, time, 1), places in TOKENS, padded with 0; y (n,) the value.

    One seed gives the same task again. Lengths are uniform in a third of `longest` .. `longest`, nearly. Raises
    InputError for a length beyond 12 .. 2000.
    """
    if not 12 <= longest <= MOST_TOKENS:
        raise InputError(f"listops must have 12 to {MOST_TOKENS} tokens, not {longest}; give another length")
    rng = np.random.default_rng(seed)
    count = n_train + n_test
    wanted = rng.integers(longest // 3 + _ADDED - 1, longest + 1, count)
    x, y = np.zeros((count, longest, 1), dtype=np.float32), np.zeros(count, dtype=np.int64)
    lengths = np.zeros(count, dtype=np.int64)
    for k, length in enumerate(wanted):
        tokens = grow_expression(int(length), rng)
        x[k, : len(tokens), 0], y[k], lengths[k] = tokens, evaluate(tokens), len(tokens)
    train, test = slice(n_train), slice(n_train, None)
    parts = x[train], y[train], x[test], y[test], lengths[train], lengths[test]
    name = "listops" if longest == LONGEST else f"listops-{longest}"
    labels = TOKENS[:10]
    return Task(name, *parts, labels, np.zeros(1), np.full(1, len(TOKENS) - 1.0), tokens=len(TOKENS))


def grow_expression(length: int, rng: np.random.Generator) -> list[int]:
    """Return the places in TOKENS of one expression, at most `length` of them and at least `length` - 2."""
    draws = iter(rng.random(4 * length).tolist())

    def pick(first: int, last: int) -> int:
        return first + int(next(draws) * (last - first + 1))

    root: list[Any] = [0]
    leaves, size = (
        [(root, 0, 1)],
        1,
    )  # where a digit stands: its list, its place there, the depth of a list in its stead
    while size + _ADDED <= length and leaves:
        chosen = pick(0, len(leaves) - 1)
        leaves[chosen], leaves[-1] = leaves[-1], leaves[chosen]
        parent, place, depth = leaves.pop()
        arguments = pick(FEWEST_ARGUMENTS, min(MOST_ARGUMENTS, length - size - 1))
        parent[place] = [_FIRST_OPERATOR + pick(0, len(OPERATORS) - 1), *(pick(0, 9) for _ in range(arguments))]
        size += arguments + 1
        if depth < DEPTH:
            leaves.extend((parent[place], k, depth + 1) for k in range(1, arguments + 1))
    return _flat(root[0])


def _flat(node: Any) -> list[int]:  # noqa: ANN401 - a digit, or a list of an operator and such nodes
    if isinstance(node, int):
        return [node]
    return [node[0], *(token for child in node[1:] for token in _flat(child)), _CLOSE]


def evaluate(tokens: list[int]) -> int:
    """Return the value of a well-formed expression, a list of TOKENS' places."""
    stack: list[list[int]] = [[]]
    for token in tokens:
        if token == _CLOSE:
            operator, *values = stack.pop()
            stack[-1].append(_VALUES[operator - _FIRST_OPERATOR](values))
        elif token >= _FIRST_OPERATOR:
            stack.append([token])
        else:
            stack[-1].append(token)
    return stack[0][0]
