"""mGRADE at reduced size: flip-flop strings, the Lorenz system, delayed products; footprints beside the paper's.

    python benchmarks/bench_mgrade.py [PART ...]

Parts: footprints, flipflop, lorenz, product, which is all when none is named. Three seeds each. Flip-flop: 600
iterations of 32 strings of 64 tokens at p_i 0.8, AdamW 5e-3, H 16; accuracy of the value after every r, over 512 test
strings.
Lorenz: 200 trajectories of 200 steps, 600 iterations of 32, AdamW 1e-2, H 10, taps narrow from the start; 100 test
trajectories, their first 24 steps left out. Product: x[t-9] x[t-17], 800 iterations of 64, AdamW 1e-2, H 16.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from cosim.software.footprint import memory_footprint, silicon_footprint
from cosim.software.gamma import GammaDelays
from cosim.software.mgrade import Convolving, Mgrade, Shape
from cosim.software.mgrade_training import Fit, accuracy_of, reconstruct, train_mgrade
from cosim.tasks.delayed_product import generate_delayed_product
from cosim.tasks.flip_flop import DENSE, SPARSE, generate_flip_flop_steps
from cosim.tasks.lorenz import Lorenz, generate_lorenz
from cosim.tasks.steps import Steps

SEEDS = 3
STRINGS = 512
TWO_TAPS = Convolving("learned", 2, reach=2)
FLIP_FLOP = {
    "mGRADE-L": Shape(5, 2, 16, 1, TWO_TAPS, deep=False),
    "minGRU": Shape(5, 2, 16, 1, deep=False),
    "taps + BMRU": Shape(5, 2, 16, 1, TWO_TAPS, "bmru", deep=False),
    "taps + BMRU, grid 1/8": Shape(5, 2, 16, 1, TWO_TAPS, "bmru", deep=False, grid=0.125),
    "TCN-EID": Shape(5, 2, 16, 5, Convolving("exponential", 4), "none"),
}
LORENZ = {
    "mGRADE-L, one layer": Shape(1, 1, 10, 1, Convolving("learned", 1, reach=12, start="uniform"), deep=False),
    "mGRADE-G, n 4": Shape(1, 1, 10, 1, Convolving("gamma", 1, reach=24, order=4), deep=False),
    "mGRADE-G, n 16": Shape(1, 1, 10, 1, Convolving("gamma", 1, reach=24, order=16), deep=False),
    "minGRU, two layers": Shape(1, 1, 10, 2, deep=False),
}
PRODUCT = {
    "mGRADE-L": Shape(1, 2, 16, 1, Convolving("learned", 2, reach=24, start="uniform"), "none"),
    "mGRADE-G": Shape(1, 2, 16, 1, Convolving("gamma", 2, reach=60, order=64), "none"),
}
SKIP = 24  # steps: all kernels reach no further
PAPER = {
    "minGRU": (Convolving(), "mingru", 39, 39),
    "TCN-CD": (Convolving("constant", 64), "none", 39, 51),
    "mGRADE-CD": (Convolving("constant", 8, dilation=32), "mingru", 41, 84),
    "TCN-EID": (Convolving("exponential", 64, reach=512), "none", 39, 101),
    "mGRADE-EID": (Convolving("exponential", 16, reach=512, dilation=2), "mingru", 42, 87),
    "mGRADE-L, K 16, G 128": (Convolving("learned", 16, reach=128), "mingru", 48, 71),
    "mGRADE-L, K 8, G 256": (Convolving("learned", 8, reach=256), "mingru", 44, 86),
}


def footprints() -> None:
    for name, (convolving, cell, parameters, total) in PAPER.items():
        model = Mgrade(Shape(1, 10, 32, 6, convolving, cell))
        found, bare = memory_footprint(model, widths=True), memory_footprint(model)
        print(
            f"{name:22} parameters {found.parameters:6} (paper {parameters}k)  buffer {found.buffer:6}  total "
            f"{found.total:6} (paper {total}k)  without widths {bare.total:6}, {bare.parameter_bits // 8} + "
            f"{bare.buffer_bits // 8} bytes"
        )


def flip_flop_tests() -> list[Steps]:
    """Dense and sparse strings of 64 and of 512 tokens."""
    kinds = ((DENSE, 64), (DENSE, 512), (SPARSE, 64), (SPARSE, 512))
    return [generate_flip_flop_steps(STRINGS, tokens, ignored, seed=99) for ignored, tokens in kinds]


def flip_flop_model(shape: Shape, seed: int) -> Mgrade:
    return train_mgrade(shape, lambda rng: generate_flip_flop_steps(32, 64, DENSE, rng), Fit(seed=seed))


def flipflop() -> None:
    tests = flip_flop_tests()
    print(f"reads: {[int(one.mask.sum()) for one in tests]}")
    for name, shape in FLIP_FLOP.items():
        for seed in range(SEEDS):
            began = time.perf_counter()
            model = flip_flop_model(shape, seed)
            took = time.perf_counter() - began
            found = "  ".join(f"{100 * accuracy_of(model, one):6.2f}" for one in tests)
            size = memory_footprint(model, 1)
            delays = silicon_footprint(model, 1e-9)
            print(
                f"{name:22} seed {seed}  {sum(p.numel() for p in model.parameters()):5} parameters  buffer "
                f"{size.buffer:4}  {delays.cells:4} cells  0.8, 64 and 512; 0.98, 64 and 512: {found} %  {took:.0f} s",
                flush=True,
            )


def lorenz_model(shape: Shape, seed: int) -> tuple[Mgrade, Lorenz, Lorenz]:
    """Trained, with the trajectories of training and of the test."""
    train, test = generate_lorenz(200, seed=2 * seed), generate_lorenz(100, seed=1000 + seed)

    def draw(rng: np.random.Generator) -> Steps:
        chosen = rng.choice(200, 32, replace=False)
        return Steps(train.steps.x[chosen], train.steps.y[chosen], train.steps.mask[chosen])

    return train_mgrade(shape, draw, Fit(600, 1e-2, seed, sigma=0.5)), train, test


def lorenz() -> None:
    for name, shape in LORENZ.items():
        for seed in range(SEEDS):
            began = time.perf_counter()
            model, train, test = lorenz_model(shape, seed)
            found = reconstruct(model, train, test, SKIP, 2000)
            print(
                f"{name:20} seed {seed}  {sum(p.numel() for p in model.parameters()):4} parameters  MASE x "
                f"{found.x:.2f}  y {found.y:.2f}  z {found.z:.2f}  overlap {found.overlap:.1%}  "
                f"{time.perf_counter() - began:.0f} s  {positions_of(model)}",
                flush=True,
            )


def product() -> None:
    for name, shape in PRODUCT.items():
        for seed in range(SEEDS):
            began = time.perf_counter()
            model = train_mgrade(shape, lambda rng: generate_delayed_product(64, seed=rng), Fit(800, 1e-2, seed))
            accuracy = accuracy_of(model, generate_delayed_product(1024, seed=99))
            took = time.perf_counter() - began
            print(f"{name:10} seed {seed}  {100 * accuracy:6.2f} %  {took:.0f} s  {positions_of(model)}", flush=True)


def positions_of(model: Mgrade) -> str:
    one = model.convolutions[0]
    if one is None:
        return ""
    found = one.positions.detach().numpy().ravel() if isinstance(one, GammaDelays) else one.used().numpy()
    return f"at {np.array2string(np.sort(np.round(found, 1)), max_line_width=200)}"


PARTS: dict[str, Callable[[], None]] = {one.__name__: one for one in (footprints, flipflop, lorenz, product)}


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
