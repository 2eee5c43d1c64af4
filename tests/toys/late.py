"""Networks with late sources, built by hand: one-bit inputs, first-quadrant cells that follow a bit."""

import numpy as np

from cosim.network.layers import FirstQuadrantLayer, ReluLayer
from cosim.network.types import DelayedSignal, InputEncoding, Network, Readout, check_network

ENCODING = InputEncoding(np.zeros(1), np.ones(1), levels=1)


def cells(name, *sources, weight, bias=0.0):
    weight = np.array(weight, dtype=float)
    width = len(weight)
    return FirstQuadrantLayer(
        name, sources, weight, np.full(width, bias), np.full(width, 0.35), np.full(width, 0.55), np.ones(width)
    )


def network_of(*layers, read=None, late=None, encoding=ENCODING):
    late = late or {}
    read = read or (layers[-1].name,)
    widths = {"input": encoding.width, **{layer.name: layer.width for layer in layers}}
    widths |= {name: widths[one.signal] for name, one in late.items()}
    columns = sum(widths[name] for name in read)
    readout = Readout(read, np.eye(columns), np.zeros(columns), "last")
    return check_network(Network(encoding, layers, readout, late=late, weight_grid=1 / 8))


def counter(modulo):
    """One-hot: state j follows j - 1 where the input is 1, and itself where it is 0; products by rectifiers, the
    complement of state 0 in its place, so that the reset is a count of 0."""
    n = modulo - 1  # states 1 to n; 0 is none of them
    step, stay = np.zeros((n + 1, 1 + n)), np.zeros((n, 1 + n))
    bias = np.zeros(2 * n + 1)
    for j in range(n):  # moves into j + 1: from j, where the input is 1
        step[j, 0] = 1.0
        if j:
            step[j, 1 + j - 1], bias[j] = 1.0, -1.0
        else:
            step[j, 1:] = -1.0
        stay[j, 0], stay[j, 1 + j] = -1.0, 1.0
    products = ReluLayer(
        "products", ("input", "count_1"), np.concatenate([step[:n], stay]), np.concatenate([bias[:n], np.zeros(n)])
    )
    weight = np.concatenate([np.eye(n), np.eye(n)], axis=1)
    return network_of(products, cells("count", "products", weight=weight), late={"count_1": DelayedSignal("count")})


def bits(seed, frames=50, n=4):
    return np.random.default_rng(seed).integers(0, 2, (n, frames, 1)).astype(float)


def register(length):
    """A chain of shift cells behind the input: the readout has the bits of the last frames, cell by cell."""
    follow = cells("bit", "input", weight=[[1.0]])
    late = {f"bit_{k}": DelayedSignal("bit", k) for k in range(1, length)}
    return network_of(follow, read=("bit", *late), late=late)
