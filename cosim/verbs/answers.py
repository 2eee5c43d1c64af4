"""Answers and targets in words: the name of a class, or real numbers."""

import numpy as np
from numpy.typing import ArrayLike

from cosim.network.types import Network


def say_answer(network: Network, answer: ArrayLike) -> str:
    """Return the network's answer to one sample as text for a verb: the name of a class, or numbers (outputs,)."""
    found = np.asarray(answer)
    if found.ndim:
        return ", ".join(f"{value:.4g}" for value in found)
    return network.labels[int(found)] if network.labels else str(int(found))


def say_target(network: Network, target: ArrayLike) -> str:
    """Return one sample's target as text for a verb, with what it is."""
    return f"{'target' if np.ndim(target) else 'class'} {say_answer(network, target)}"
