"""Delayed memory units on the delayed product: with a line and without, and with few gates; the one-bit form.

    python benchmarks/bench_dmu.py [product]

product: accuracy of RNN, GRU and LSTM without a line and with n = 20, all gates and the 4, 2 and 1 largest of them at
inference; three seeds each, 800 iterations.
"""

import sys
import time

from cosim.software.delayed_product import train_delayed_product
from cosim.software.dmu import Cut, Inner

SEEDS, DELAYS = range(3), 20
CELLS: tuple[Inner, ...] = ("rnn", "gru", "lstm")
KEPT = (None, 8, 4, 3, 2, 1)


def product() -> None:
    """A line for each training."""
    for cell in CELLS:
        for delays in (0, DELAYS):
            for seed in SEEDS:
                begin = time.perf_counter()
                found = train_delayed_product(cell, delays, seed)
                seconds = time.perf_counter() - begin
                kept = KEPT if delays else KEPT[:1]
                shares = "  ".join(f"{k or 'all':>3} {found.accuracy(Cut(kept=k)):6.1%}" for k in kept)
                print(f"{cell:4} n {delays:2}  seed {seed}  {found.parameters:4} parameters  {shares}  {seconds:.0f} s")
                sys.stdout.flush()


def main() -> None:
    """The parts that are named, or all."""
    parts = sys.argv[1:] or ["product"]
    if "product" in parts:
        product()


if __name__ == "__main__":
    main()
