"""Counters or reflectors of eight bits against software, through the batched engine: random steps over all 256 states.

    python benchmarks/bench_counter.py [reflector] [TECHNOLOGY ...]

Eight units, which begin at either end and where many bits change at once, take 1,250 random updates each, 0.3 to 0.5
units from a threshold: 10,000 at each condition. Reflectors (epsilon -1) in place of counters if the word is given.
"""

import sys

import numpy as np
from numpy.typing import NDArray
from smoke import shrink

from cosim.base.errors import MissingToolError
from cosim.compiler.settings import CompilerSettings
from cosim.network.layers import SignedLayer
from cosim.network.types import InputEncoding, Network, Readout, check_network
from cosim.tasks.testset import TestSet
from cosim.verbs.loading import TargetTechnology
from cosim.verbs.python import TrainedNetwork

UNITS, SAMPLES, FRAMES, STATES = 8, 25, 50, 256
CONDITIONS = (("", 27.0, 1.0), ("ss", -20.0, 0.9), ("ff", 85.0, 1.1))  # corner, C, of the supply
TECHNOLOGIES = ("generic180", "gf180mcu", "sky130")
SEED = 20261128


def units_of(epsilon: int, starts: list[int], states: int) -> Network:
    """Units that update up at x > 0.7 and down at x < 0.3 of their own input; from these starts on."""
    width, counts = len(starts), np.array(starts) - states // 2
    layer = SignedLayer(
        "layer0", ("input",), 2 * np.eye(width), -np.ones(width), np.full(width, 0.4), np.full(width, 0.05),
        epsilon=float(epsilon), initial=0.05 * counts,
    )  # fmt: skip
    ends = 0.05 * np.array([np.full(width, -(states // 2)), np.full(width, states // 2 - 1)])
    readout = Readout(("layer0",), np.vstack([np.eye(width)[0], np.eye(width)[-1]]), np.zeros(2), "last")
    return check_network(
        Network(InputEncoding(np.zeros(width), np.ones(width)), (layer,), readout, state_ranges={"layer0": ends})
    )


def random_steps(width: int, samples: int, frames: int, seed: int) -> tuple[TestSet, NDArray[np.int64]]:
    """Samples whose units step up, down or not with equal chances, and these steps (samples, frames, units)."""
    rng = np.random.default_rng(seed)
    moves = rng.integers(-1, 2, (samples, frames, width))
    x = 0.5 + 0.4 * moves + rng.uniform(-0.05, 0.05, moves.shape)
    return TestSet(x, np.zeros(samples, dtype=np.int64), np.full(samples, frames), np.arange(samples)), moves


def follow(epsilon: int, starts: list[int], moves: NDArray[np.int64]) -> NDArray[np.int64]:
    """The states after each of these steps: counters that stay at either end, or reflectors."""
    states, state = np.empty_like(moves), np.tile(starts, (len(moves), 1))
    for t in range(moves.shape[1]):
        if epsilon == 1:
            state = np.clip(state + moves[:, t], 0, STATES - 1)
        else:  # STATES - 1 - u stands for -1 - m, and 1 - m is 2 more, if there is such a state
            turned = STATES - 1 - state
            state = np.where(moves[:, t] == 0, state, turned + 2 * ((moves[:, t] > 0) & (turned + 2 < STATES)))
        states[:, t] = state
    return states


def main(*words: str) -> None:
    epsilon, technologies = (-1, words[1:]) if words[:1] == ("reflector",) else (1, words)
    starts = [*range(0, STATES - STATES // UNITS, STATES // UNITS), STATES - 1]  # at either end and at every long carry
    network = TrainedNetwork(units_of(epsilon, starts, STATES), "counters" if epsilon == 1 else "reflectors")
    steps, moves = random_steps(UNITS, SAMPLES, FRAMES, SEED)
    wanted = follow(epsilon, starts, moves)
    print("technology  corner     C     V   transistors   steps   wrong   levels   power nW a unit")
    for name in technologies or TECHNOLOGIES:
        try:
            compiled = network.compile(
                name, TargetTechnology(), CompilerSettings(cell="counter" if epsilon == 1 else "auto", headroom=0)
            )
        except MissingToolError as error:
            print(f"{name:10}  {error}")
            continue
        for corner, celsius, share in CONDITIONS:
            nominal = compiled.condition.technology
            here = compiled.at(corner or None, celsius, min(share * nominal.supply, nominal.supply_max))
            found = here.compare(steps, None, engine="batch", jobs=1).comparison
            states = found.engines["batch"].states
            there = here.condition.technology
            condition = f"{there.corner:6} {there.celsius:5g}  {there.supply:5.3g}"
            wrong, seen = int((states != wanted).sum()), len(np.unique(wanted))
            power = 1e9 * found.cost["power"].value / UNITS
            transistors = compiled.design.assembly.transistors
            print(
                f"{name:10}  {condition}  {transistors:12d}{states.size:8d}{wrong:8d}{seen:9d}  {power:8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    shrink(globals(), "generic180", SAMPLES=2, FRAMES=3, CONDITIONS=CONDITIONS[:1])
    main(*sys.argv[1:])
