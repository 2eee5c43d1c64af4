"""Answers and targets in words: the name of a class, or real numbers."""

import numpy as np
from numpy.typing import ArrayLike

from cosim.network.types import Network


def say_answer(network: Network, answer: ArrayLike) -> str:
    """Return one sample's answer as text: the name of a class index, or numbers (outputs,)."""
    found = np.asarray(answer)
    if found.ndim:
        return ", ".join(f"{value:.4g}" for value in found)
    return network.labels[int(found)] if network.labels else str(int(found))


def say_target(network: Network, target: ArrayLike) -> str:
    """Return one sample's target as text, with what it is."""
    return f"{'target' if np.ndim(target) else 'class'} {say_answer(network, target)}"
