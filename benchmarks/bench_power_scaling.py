"""Supply power against cells, inputs and layers, by block, from the behavioral equations; exponents of the fits.

    python benchmarks/bench_power_scaling.py [figure.png]

Networks of random weights: every weight, bias and pair of thresholds is drawn with replacement from those of
models/trained/digits_d16.pt in the same place (input to cell, state to cell, readout), inputs are columns of its test
data, layers read the input and the layer before, ten outputs read all layers. `dense`: weights from states as often
non-zero as there. `sparse`: as many of them non-zero a row as there, whatever the width. `trained`: the digits networks
in models/trained. Blocks: cosim.cells.blocks.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from smoke import shrink

from cosim.base.resources import trained_network_path
from cosim.cells.blocks import BLOCKS
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.engines.behavioral.model import behavioral_power, run_behavioral
from cosim.exchange.checkpoint import load_network
from cosim.network.ir.nodes import Memory
from cosim.network.layers import FirstQuadrantLayer
from cosim.network.reference import encode_inputs
from cosim.network.types import InputEncoding, Network, Readout
from cosim.results.figures import COLORS, Figure, save_figure
from cosim.tasks.testset import load_test_set
from cosim.technology.catalog import load_technology
from cosim.verbs.calibrate.find import find_calibration

SEEDS, SAMPLES, OUTPUTS, UNITS = 5, 40, 10, 8
CELLS, INPUTS, LAYERS = (8, 16, 32, 64, 128), (4, 8, 16, 32, 64, 128), (1, 2, 3, 4, 6, 8)
BASE_CELLS, BASE_INPUTS, BASE_LAYERS = 16, 9, 2
FIT_FROM = 16  # of cells and inputs: below, what does not grow at all weighs as much
FROM_STATES = "state rows"  # the part of `rows` that weights from cell to cell draw
PARTS = {
    FROM_STATES: (FROM_STATES,),
    "recurrence": ("cells", "bias"),
    "feed-forward": ("inputs", "rails", "rows", "readout"),
    "total": BLOCKS,
}
TRAINED = (4, 8, 16, 32)
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """A network: cells of each layer, inputs, layers; sparse: non-zero weights from states a row as at BASE_CELLS."""

    cells: int = BASE_CELLS
    inputs: int = BASE_INPUTS
    layers: int = BASE_LAYERS
    sparse: bool = False


def main() -> None:
    source = load_network(trained_network_path("digits_d16"))
    x = encode_inputs(source.encoding, load_test_set(source, None).take(SAMPLES, 0).x).units
    sweeps = {
        "cells, dense": {cells: Shape(cells) for cells in CELLS},
        "cells, sparse": {cells: Shape(cells, sparse=True) for cells in CELLS},
        "inputs": {inputs: Shape(inputs=inputs) for inputs in INPUTS},
        "layers": {layers: Shape(layers=layers) for layers in LAYERS},
    }
    found = {}
    for name, shapes in sweeps.items():
        found[name] = {
            size: [measure(*draw(source, x, shape, seed)) for seed in range(SEEDS)] for size, shape in shapes.items()
        }
        report(name, found[name])
    found["cells, trained"] = {cells: [measure_trained(cells)] for cells in TRAINED}
    report("cells, trained", found["cells, trained"])
    if len(sys.argv) > 1:
        save_figure(draw_figure(found), Path(sys.argv[1]))


def draw(source: Network, x: Array, shape: Shape, seed: int) -> tuple[Network, Array]:
    """A random network of a shape with its inputs (n, time, inputs)."""
    rng = np.random.default_rng(seed)
    first, second = (layer for layer in source.layers if isinstance(layer, FirstQuadrantLayer))
    from_input = (first.weight, second.weight[:, :BASE_INPUTS])
    from_state = second.weight[:, BASE_INPUTS:]
    layers = []
    for k in range(shape.layers):
        like = (first, second)[k > 0]
        blocks = [rng.choice(from_input[k > 0].ravel(), (shape.cells, shape.inputs))]
        if k > 0:
            weights = rng.choice(from_state.ravel(), (shape.cells, shape.cells))
            blocks.append(thinned(rng, weights, shape))
        chosen = rng.integers(0, len(like.bias), shape.cells)
        arrays = np.concatenate(blocks, axis=1), rng.choice(like.bias, shape.cells)
        sources = ("input", f"layer{k - 1}") if k > 0 else ("input",)
        thresholds = like.beta_lo[chosen], like.beta_hi[chosen]
        layers.append(FirstQuadrantLayer(f"layer{k}", sources, *arrays, *thresholds, np.ones(shape.cells)))
    states = shape.cells * shape.layers
    weights = thinned(rng, rng.choice(source.readout.weight.ravel(), (OUTPUTS, states)), shape)
    readout = Readout(tuple(layer.name for layer in layers), weights, rng.choice(source.readout.bias, OUTPUTS))
    columns = rng.integers(0, x.shape[2], shape.inputs)
    encoding = InputEncoding(np.zeros(shape.inputs), np.ones(shape.inputs), levels=source.encoding.levels)
    return Network(encoding, tuple(layers), readout, "random weights"), x[:, :, columns]


def thinned(rng: np.random.Generator, weights: Array, shape: Shape) -> Array:
    """Weights from states, of which a sparse network keeps BASE_CELLS of shape.cells."""
    keep = min(1.0, BASE_CELLS / shape.cells) if shape.sparse else 1.0
    return weights * (rng.random(weights.shape) < keep)


def measure(network: Network, x: Array) -> dict[str, float]:
    """Mean power by block, and of FROM_STATES, watt."""
    technology = load_technology("generic180")
    design = compile_network(network, technology, find_calibration(technology, UNITS), CompilerSettings(saturate=True))
    trace, graph = run_behavioral(design, x), design.graph
    blocks = behavioral_power(design, trace)
    between = [
        mirror.realised * trace.currents[origin].mean()
        for (origin, target), mirror in graph.mirrors.items()
        if all(isinstance(graph.nodes[name], Memory) for name in (origin, target)) and mirror.count > 0
    ]
    return {
        **{block: float(power.mean()) for block, power in blocks.items()},
        FROM_STATES: technology.supply * float(np.sum(between)),
    }


def measure_trained(cells: int) -> dict[str, float]:
    """Mean power by block of a trained network on its whole test set, watt."""
    network = load_network(trained_network_path(f"digits_d{cells}"))
    return measure(network, load_test_set(network, None).x)


def exponent(sizes: Array, powers: Array) -> tuple[float, float]:
    """Slope of log power over log size and the half of its 95 % interval, by Student's t over the points."""
    if np.ptp(powers) < 1e-6 * powers.max() or powers.min() <= 0:
        return 0.0, 0.0
    fit = stats.linregress(np.log(sizes), np.log(powers))
    return float(fit.slope), float(stats.t.ppf(0.975, len(sizes) - 2) * fit.stderr)


def report(name: str, found: dict[int, list[dict[str, float]]]) -> None:
    """A line for each size, in nW, and one of exponents."""
    columns = {**{block: (block,) for block in BLOCKS}, **PARTS}
    print(f"\n{name:15}" + "".join(f"{column:>14}" for column in columns))
    for size, networks in found.items():
        cells = [
            np.mean([sum(network[block] for block in blocks) for network in networks]) for blocks in columns.values()
        ]
        print(f"{size:>15}" + "".join(f"{1e9 * cell:>11.1f} nW" for cell in cells))
    low = FIT_FROM if max(found) > 32 else min(found)
    points = [(size, network) for size, networks in found.items() for network in networks if size >= low]
    sizes = np.array([size for size, _ in points], dtype=float)
    slopes = [
        exponent(sizes, np.array([sum(network[block] for block in blocks) for _, network in points]))
        for blocks in columns.values()
    ]
    print(
        f"{f'exponent from {low}':>15}" + "".join(f"{f'{slope:.2f} +- {half:.2f}':>14}" for slope, half in slopes),
        flush=True,
    )


def draw_figure(found: dict[str, dict[int, list[dict[str, float]]]]) -> Figure:
    """Power by block over the size, both axes logarithmic; trained networks as circles on the sparse ones.

    Dashed: of the rows, what weights from cell to cell draw.
    """
    figure = Figure(figsize=(7.4, 5.6), layout="constrained")
    names = ("cells, dense", "cells, sparse", "inputs", "layers")
    for axis, name in zip(figure.subplots(2, 2, sharey=True).ravel(), names, strict=True):
        parts = {**{block: (block,) for block in BLOCKS}, FROM_STATES: (FROM_STATES,), "total": BLOCKS}
        for part, blocks in parts.items():
            style = (
                {"color": COLORS["rows"], "ls": "--"} if part == FROM_STATES else {"color": COLORS.get(part, "black")}
            )
            shown = {size: networks for size, networks in found[name].items() if mean_of({size: networks}, blocks) > 0}
            width = 1.6 if part == "total" else 1.1
            axis.plot(list(shown), 1e9 * mean_of(shown, blocks), **style, lw=width, marker=".", ms=4, label=part)
            if name == "cells, sparse":
                trained = found["cells, trained"]
                mark = {"mfc": "white", "mec": style["color"], "ms": 5}
                axis.plot(list(trained), 1e9 * mean_of(trained, blocks), "o", **mark)
        sizes = list(found["cells, trained" if name == "cells, sparse" else name]) + list(found[name])
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks(sorted(set(sizes)), [f"{size:g}" for size in sorted(set(sizes))])
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_xlabel({"inputs": "inputs", "layers": "layers"}.get(name, f"cells a layer, {name.split(', ')[-1]}"))
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(lw=0.3)
    for axis in figure.axes[::2]:
        axis.set_ylabel("supply power (nW)")
    figure.axes[0].legend(fontsize=7, frameon=False, ncols=2)
    return figure


def mean_of(found: dict[int, list[dict[str, float]]], blocks: tuple[str, ...]) -> Array:
    """Mean over networks of the sum of blocks, for each size, watt."""
    return np.array([np.mean([sum(network[b] for b in blocks) for network in found[size]]) for size in found])


if __name__ == "__main__":
    shrink(globals(), "power.png", SEEDS=2, SAMPLES=2, CELLS=(8, 16), INPUTS=(4, 8), LAYERS=(1, 2), TRAINED=(4, 8))
    main()
