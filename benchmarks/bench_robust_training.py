"""Yield of trained networks under local mismatch, in software units: chips as cosim.training.chips states them, written
a second time in numpy, with thresholds where the compiler puts them. No calibration, no pedestal, no transient.

    python benchmarks/bench_robust_training.py 0.82 1,0.5 digits_d8 digits_robust_d8

draws 1000 chips at each area and prints the fraction whose accuracy on the whole test set is at least 0.82.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from cosim.analysis.agreement import interval
from cosim.ir.centre import centre
from cosim.ir.lower import lower
from cosim.network.checkpoint import load_network
from cosim.network.reference import encode_inputs, pool_readout, run_reference
from cosim.network.testset import load_test_set
from cosim.network.types import INPUT, Array, FirstQuadrantLayer, Layer, Network, Readout
from cosim.resources import trained_network_path
from cosim.technology.catalog import load_technology
from cosim.training.mismatch import MismatchModel, derive_mismatch

CHIPS, SEED = 1000, 12345


def centred(network: Network) -> Network:
    """The network with its thresholds in the middle of the gaps between candidates, as they are compiled."""
    graph = centre(lower(network))
    layers = []
    for layer in network.layers:
        if isinstance(layer, FirstQuadrantLayer):
            nodes = [graph.nodes[f"{layer.name}.{i}"]["node"] for i in range(layer.width)]
            rise, fall = np.array([node.rise for node in nodes]), np.array([node.fall for node in nodes])
            layer = replace(layer, beta_hi=rise, beta_lo=fall)
        layers.append(layer)
    return replace(network, layers=tuple(layers))


class Chip:
    """One chip of a network of first-quadrant units."""

    def __init__(self, network: Network, model: MismatchModel, rng: np.random.Generator) -> None:
        self.network, self.model, self.rng = network, model, rng
        self.lines = {INPUT: self.draw_lines(network.encoding.width)}
        self.one = self.draw_lines(1)
        self.gain_diode = self.draw(model.cell_n, 1)

    def draw(self, sigma: float, width: int) -> Array:
        return sigma * self.rng.standard_normal(width)

    def draw_lines(self, width: int) -> tuple[Array, Array]:
        """ln of the factors of lines p and n."""
        root = np.sqrt(self.model.units)
        diode, copy = self.draw(self.model.mirror_p / root, width), self.draw(self.model.mirror_p / root, width)
        return -diode, copy - diode - self.draw(self.model.mirror_n / root, width)

    def drive(self, layer: Layer | Readout, signals: dict[str, Array]) -> Array:
        """W x + b of one layer, (n, time, width)."""
        model = self.model
        w = np.concatenate([layer.weight, layer.bias[:, None]], axis=1)
        line_p, line_n = (
            np.concatenate([*(self.lines[source][kind] for source in layer.sources), self.one[kind]]) for kind in (0, 1)
        )
        counts = np.maximum(np.rint(np.abs(w) * model.units), 1)
        devices = np.where(w > 0, model.mirror_n, model.mirror_p) / np.sqrt(counts)
        w = w * np.exp(np.where(w > 0, line_n, line_p) + devices * self.rng.standard_normal(w.shape))
        return np.concatenate([signals[source] for source in layer.sources], axis=2) @ w[:, :-1].T + w[:, -1]

    def remember(self, layer: FirstQuadrantLayer, u: Array) -> Array:
        """States 0 and 1 of the cells, (n, time, width)."""
        model, width = self.model, layer.width
        p, n = ([self.draw(sigma, width) for _ in range(4)] for sigma in (model.cell_p, model.cell_n))
        compared = u * np.exp(p[0] - p[1])
        upper = layer.beta_hi * np.exp(n[0] - n[1])
        lower_ = upper - (layer.beta_hi - layer.beta_lo) * np.exp(n[2] - n[3] + p[2] - p[3])
        # The reset before the first step is a candidate of 0, which does not switch such a cell off.
        states, state = np.empty_like(u), np.broadcast_to(np.where(lower_ < 0, 1.0, 0.0), (len(u), width))
        for t in range(u.shape[1]):
            state = np.where(compared[:, t] >= upper, 1.0, np.where(compared[:, t] <= lower_, 0.0, state))
            states[:, t] = state
        return states

    def scores(self, inputs: Array, lengths: np.ndarray) -> Array:
        """Pooled readout, (n, outputs)."""
        signals = {INPUT: inputs}
        for layer in self.network.layers:
            signals[layer.name] = np.maximum(self.drive(layer, signals), 0.0)
            self.lines[layer.name] = self.draw_lines(layer.width)
            if isinstance(layer, FirstQuadrantLayer):
                signals[layer.name] = self.remember(layer, signals[layer.name])
                level = self.draw(self.model.cell_n, layer.width) - self.gain_diode
                line_p, line_n = self.lines[layer.name]
                self.lines[layer.name] = line_p + level, line_n + level
        readout = self.network.readout
        return pool_readout(self.drive(readout, signals), lengths, readout.pooling)


def main(spec: str, areas: str, *names: str) -> None:
    technology = load_technology("generic180")
    print(f"accuracy on the test set, {CHIPS} chips; yield: accuracy at least {spec}, Clopper-Pearson at 95 %")
    print(f"{'network':20} {'units':>6} {'nominal':>8} {'area':>5} {'mean':>7} {'5 %':>7} {'worst':>7}  yield")
    for name in names:
        path = Path(name) if Path(name).is_file() else trained_network_path(name)
        network = centred(load_network(path))
        test = load_test_set(network, None)
        inputs = encode_inputs(network.encoding, test.x)
        nominal = (run_reference(network, test.x, test.lengths).decisions == test.y).mean()
        weights = [array for layer in (*network.layers, network.readout) for array in (layer.weight, layer.bias)]
        for area in map(float, areas.split(",")):
            model = derive_mismatch(technology, network.weight_grid, area)
            rng = np.random.default_rng(SEED)
            units = sum(int(np.rint(np.abs(w) * model.units).sum()) for w in weights)
            chips = (Chip(network, model, rng).scores(inputs, test.lengths) for _ in range(CHIPS))
            accuracy = np.array([(scores.argmax(axis=1) == test.y).mean() for scores in chips])
            fraction, low, high = interval(int((accuracy >= float(spec)).sum()), CHIPS)
            print(
                f"{name:20} {units:6} {nominal:8.1%} {area:5g} {accuracy.mean():7.1%} "
                f"{np.quantile(accuracy, 0.05):7.1%} {accuracy.min():7.1%}  {fraction:.1%} [{low:.1%}, {high:.1%}]",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
