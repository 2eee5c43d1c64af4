"""Capacitances of small structures of gf180mcu: the extraction of `cosim layout` beside FastCap2, a field solver.

pip install fastcap2
python benchmarks/bench_extraction.py [file that tests read]     structures, at two meshes
python benchmarks/bench_extraction.py beside                     neighbours of one layer, and the coefficients they give

FastCap2 is MIT's FastCap (K. Nabors, J. White, IEEE Trans. CAD 10 (1991) 1447): boundary elements in three dimensions.
Ground is a mirror below the wires. The stack is that of the kit's magic file (`height`), all oxide of permittivity 4.0;
metal5 stands on 0.9 um over metal4 and is 1.1925 um thick, as in klayout-pex 0.6.12, and as the kit's 39.351 aF/um2
between both say. Passivation and nitride are left out.
"""

import json
import sys
from collections.abc import Iterator
from itertools import combinations_with_replacement, islice
from pathlib import Path

import fastcap2
import numpy as np
from numpy.typing import NDArray
from smoke import shrink

from cosim.mask.blocks import Box
from cosim.mask.chip import drawing_of
from cosim.mask.extract import extract
from cosim.mask.gds import ExtractedLayout
from cosim.technology.catalog import load_technology

PERMITTIVITY = 4.0
STACK = {  # um over the substrate, and thickness
    "poly": (0.32, 0.20), "metal1": (1.23, 0.55), "metal2": (2.38, 0.55), "metal3": (3.53, 0.55),
    "metal4": (4.68, 0.55), "metal5": (6.13, 1.1925),
}  # fmt: skip
MESHES = ((0.14, 0.7), (0.07, 0.4))  # um: panels across and along
Piece = tuple[str, str, Box]  # layer, net, nm


def _rows(layer: str, net: str, others: str, *, up: bool) -> list[Piece]:
    """Nine wires of 0.28 um at 0.56 um, 8 um long; the middle one is `net`."""
    found: list[Piece] = []
    for k in range(9):
        at = -2380 + 560 * k
        box = (at, -4000, at + 280, 4000) if up else (-4000, at, 4000, at + 280)
        found.append((layer, net if k == 4 else others, box))
    return found


STRUCTURES: dict[str, list[Piece]] = {
    "wire": [("metal3", "a", (0, 0, 20000, 280))],
    "near": [("metal3", "a", (0, 0, 20000, 280)), ("metal3", "b", (0, 560, 20000, 840))],
    "far": [("metal3", "a", (0, 0, 20000, 280)), ("metal3", "b", (0, 1400, 20000, 1680))],
    "cross": [("metal2", "a", (9860, -9860, 10140, 10140)), ("metal3", "b", (0, 0, 20000, 280))],
    "line": [("metal2", "a", (-5000, -5000, 25000, 5000)), ("metal3", "b", (0, 0, 20000, 280))],
    "plate": [("metal4", "a", (0, 0, 20000, 20000)), ("metal5", "b", (-5000, 9750, 15000, 10250))],
    "stub": [("metal2", "a", (-140, -4000, 140, 4000)), *_rows("metal3", "b", "c", up=False)],
    "grid": [*_rows("metal2", "a", "c", up=True), *_rows("metal3", "b", "d", up=False)],
}


def solve(pieces: list[Piece], mesh: tuple[float, float]) -> dict[str, float]:
    """`net other` or `net ground` -> attofarad."""
    problem = fastcap2.Problem()
    problem.verbose = False
    nets = sorted({net for _, net, _ in pieces})
    for net in nets:
        for side in (1, -1):
            surface = fastcap2.Surface(name=net if side > 0 else f"{net}-")
            for layer, _, box in (piece for piece in pieces if piece[1] == net):
                low, thick = STACK[layer]
                z = (low, low + thick) if side > 0 else (-low - thick, -low)
                for corners in _panels([value / 1000 for value in box], z, mesh):
                    surface.add_quad(*(tuple(1e-6 * value for value in corner) for corner in corners))
            problem.add(surface, outside_perm=PERMITTIVITY)
    matrix = np.array(problem.solve())
    names = [name.split("%")[0] for name in problem.conductors()]
    at, below = [names.index(net) for net in nets], [names.index(f"{net}-") for net in nets]
    charges = matrix[np.ix_(at, at)] - matrix[np.ix_(at, below)]
    found = {f"{net} ground": float(row.sum() * 1e18) for net, row in zip(nets, charges, strict=True)}
    for one, other in combinations_with_replacement(range(len(nets)), 2):
        if one != other:
            found[f"{nets[one]} {nets[other]}"] = float(-(charges[one, other] + charges[other, one]) / 2 * 1e18)
    return found


def _panels(box: list[float], z: tuple[float, float], mesh: tuple[float, float]) -> Iterator[list[NDArray[np.float64]]]:
    """The faces of a bar in panels, smaller at its edges."""
    cuts = [_cuts(box[0], box[2], mesh), _cuts(box[1], box[3], mesh), _cuts(*z, mesh)]
    for axis in range(3):
        u, v = (k for k in range(3) if k != axis)
        for end in (cuts[axis][0], cuts[axis][-1]):
            for a, b in zip(cuts[u], cuts[u][1:], strict=False):
                for c, d in zip(cuts[v], cuts[v][1:], strict=False):
                    corners = np.zeros((4, 3))
                    corners[:, axis], corners[:, u], corners[:, v] = end, (a, b, b, a), (c, c, d, d)
                    yield list(corners)


def _cuts(low: float, high: float, mesh: tuple[float, float]) -> NDArray[np.float64]:
    step = mesh[0] if high - low < 3 else mesh[1]
    inner = np.linspace(low, high, max(int(np.ceil((high - low) / step)), 3) + 1)[1:-1]
    edge = min(step / 3, (high - low) / 8)
    return np.unique([low, low + edge, *inner, high - edge, high])


def ours(pieces: list[Piece]) -> dict[str, float]:
    """The same by the extraction of `cosim layout`."""
    boxes: dict[str, dict[str, list[Box]]] = {}
    for layer, net, box in pieces:
        boxes.setdefault(net, {}).setdefault(layer, []).append(box)
    found: dict[str, float] = {}
    for one in extract(ExtractedLayout(boxes, ()), drawing_of(load_technology("gf180mcu"))):
        name = f"{one.a} {'ground' if one.b == 'vss' else one.b}"
        found[name] = found.get(name, 0.0) + one.farad * 1e18
    return found


def beside() -> None:
    """aF/um between two neighbours 20 um long, bare and over a plane of the layer below; p / (s + o) of the mean."""
    layers = list(STACK)
    for k, layer in enumerate(layers[1:], start=1):
        wide = 440 if layer == "metal5" else 280
        means: list[float] = []
        spaces = [460 if layer == "metal5" else 280, 560, 1120, 2240]
        for space in spaces:
            pair: list[Piece] = [(layer, "a", (0, 0, 20000, wide)),
                                 (layer, "b", (0, wide + space, 20000, 2 * wide + space))]  # fmt: skip
            plane = (layers[k - 1], "c", (-2000, -4000, 22000, 2 * wide + space + 4000))
            found = [solve(each, MESHES[0])["a b"] / 20 for each in (pair, [*pair, plane])[: 1 if k == 1 else 2]]
            means.append(float(np.mean(found)))
            print(f"{layer} {space / 1000:5.2f} um", *(f"{value:7.1f}" for value in found))
        # 1 / C = (s + o) / p; weights make its errors relative
        slope, offset = np.polyfit(np.array(spaces) / 1000, 1 / np.array(means), 1, w=means)
        print(f"{layer} = [{1 / slope:.1f}, {offset / slope:.3f}]")


def main(path: str = "") -> None:
    kept = {}
    for name, pieces in STRUCTURES.items():
        coarse, fine = (solve(pieces, mesh) for mesh in MESHES)
        mine = ours(pieces)
        for pair, value in fine.items():
            print(f"{name:6} {pair:9} {value:7.0f} aF, {coarse[pair] / value - 1:+.1%} at the wider mesh; "
                  f"cosim {mine.get(pair, 0.0):7.0f}, {mine.get(pair, 0.0) / value - 1:+.0%}")  # fmt: skip
        kept[name] = {"pieces": pieces, "aF": {pair: round(value, 1) for pair, value in fine.items()}}
    if path:
        text = {"made by": "benchmarks/bench_extraction.py", "solver": "FastCap2 2.1", "structures": kept}
        Path(path).write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    shrink(globals(), STRUCTURES=dict(islice(STRUCTURES.items(), 1)), MESHES=((0.7, 2.8), (0.35, 1.4)))
    beside() if sys.argv[1:] == ["beside"] else main(*sys.argv[1:])
