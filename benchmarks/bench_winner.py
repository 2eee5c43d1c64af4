"""Winner-take-all of currents: how small a difference decides, and how soon.

    python benchmarks/bench_winner.py

Of n inputs all but one are equal, and one is larger by a difference; then the next one is, and so on. Won: the bias
that the largest pulls at the end of its time, and the most that another pulls. Nominal devices of generic180, ngspice.
"""

import numpy as np
from smoke import shrink

from cosim.cells.benches import winner_bench
from cosim.engines.simulation.inference import run_bench
from cosim.technology.catalog import load_technology

BIAS = 1e-9
LEVELS, INPUTS, TIMES = (0.1e-9, 1e-9, 4e-9), (2, 8), (0.5e-3, 2e-3)
DIFFERENCES = (0.02e-9, 0.125e-9, 0.5e-9)
TURNS = 4


def won(inputs: int, level: float, difference: float, t_step: float) -> tuple[float, float]:
    """The least that the largest pulls, the most that any other pulls, of the bias, over TURNS turns."""
    turns = np.arange(TURNS) % inputs
    currents = level + difference * np.eye(inputs)[turns]
    waves = run_bench(winner_bench(load_technology("generic180"), BIAS, currents, t_step), "winner")
    at = np.searchsorted(waves.time, t_step * (np.arange(TURNS) + 0.99))
    out = np.abs(np.array([waves.through(f"out{k}")[at] for k in range(inputs)])) / BIAS
    largest = np.arange(inputs)[:, None] == turns
    return float(out[largest].min()), float(out[~largest].max())


def main() -> None:
    for inputs in INPUTS:
        for level in LEVELS:
            for difference in DIFFERENCES:
                found = [won(inputs, level, difference, t_step) for t_step in TIMES]
                shares = "  ".join(
                    f"{t_step * 1e3:g} ms: {most:5.3f}, others {rest:.1e}"
                    for t_step, (most, rest) in zip(TIMES, found, strict=True)
                )
                print(f"n {inputs:2}  level {level * 1e9:g} nA  + {difference * 1e9:g} nA  {shares}", flush=True)


if __name__ == "__main__":
    shrink(globals(), INPUTS=(2,), LEVELS=(1e-9,), DIFFERENCES=(0.5e-9,))
    main()
