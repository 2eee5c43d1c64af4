"""Description of a network without its arrays: as JSON, and as a page for the terminal."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from cosim.compiler.passes import constant_cells
from cosim.network.layers import EpsilonLayer, FirstQuadrantLayer, Layer, SignedLayer, format_range
from cosim.network.types import Network, Readout
from cosim.results.page import Facts, Page, PageSubject, Section, Table
from cosim.verbs.words import network_name, say_constant


def describe_network(network: Network) -> dict[str, object]:
    """Return a description of a network without its arrays, ready for JSON."""
    encoding, grid = network.encoding, network.weight_grid
    return {
        "task": network.task,
        "labels": list(network.labels),
        "regression": network.regression,
        "weight_grid": grid,
        "encoding": {
            "features": encoding.features,
            "ramp_steps": encoding.ramp_steps,
            "levels": encoding.levels,
            "offset": _span(encoding.offset),
            "scale": _span(encoding.scale),
        },
        "layers": [_describe_layer(layer, layer.name, grid) for layer in network.layers],
        "readout": {**_describe_layer(network.readout, "readout", grid), "pooling": network.readout.pooling},
        "visited": [dict(zip(("unit", "lowest", "highest", "levels"), row, strict=True)) for row in _visited(network)],
        "constant_cells": constant_cells(network),
        "late": {name: asdict(late) for name, late in network.late.items()},
        "history": dict(network.history),
    }


def _describe_layer(layer: Layer | Readout, name: str, grid: float | None) -> dict[str, object]:
    weights = _weights(layer)
    found: dict[str, object] = {
        "name": name,
        "kind": _kind(layer),
        "shape": list(layer.weight.shape),
        "sources": list(layer.sources),
        "weights": weights.size,
        "nonzero_weights": int(np.count_nonzero(weights)),
        "ranges": {key: _span(array) for key, array in layer.arrays().items()},
    }
    if grid is not None:
        found["off_grid"] = _off_grid(layer, grid)
        found["unit_devices"] = round(float(np.abs(weights).sum() / grid))
    if isinstance(layer, EpsilonLayer):
        found |= {"epsilon": layer.epsilon, "smallest_width": layer.smallest_width}
    return found


def _visited(network: Network) -> list[tuple[str, float, float, int]]:
    """Return (name, lowest h, highest h, number of levels) of each unit with epsilon 1, over the training data.
    The range includes the state at the start."""
    found: list[tuple[str, float, float, int]] = []
    for layer in network.recurrent_layers:
        ranges = network.state_ranges.get(layer.name)
        if ranges is not None and isinstance(layer, FirstQuadrantLayer | SignedLayer) and layer.epsilon == 1:
            for k, (low, high) in enumerate(ranges[:2].T.tolist()):
                low, high = min(low, float(layer.start[k])), max(high, float(layer.start[k]))
                if (step := float(layer.increment[k])) > 0:
                    found.append((f"{layer.name}[{k}]", low, high, round((high - low) / step) + 1))
    return found


def _weights(layer: Layer | Readout) -> np.ndarray:
    return np.concatenate([array.ravel() for key, array in layer.arrays().items() if key.startswith("weight")])


def _off_grid(layer: Layer | Readout, grid: float) -> int:
    """Count the weights and biases of a layer that are no multiples of the grid."""
    steps = np.concatenate([_weights(layer), layer.bias]) / grid
    return int(np.count_nonzero(np.abs(steps - np.round(steps)) > 1e-9))


def _kind(layer: Layer | Readout) -> str:
    if isinstance(layer, SignedLayer):
        beta = ", beta by input" if layer.weight_beta is not None else ""
        alpha = ", alpha by input" if layer.weight_alpha is not None else ""
        ends = "" if layer.ends is None else f", {layer.ends[0]} to {layer.ends[1]:+d} steps from its start at most"
        return "signed" + beta + alpha + (f" on {layer.levels} levels" if layer.levels is not None else "") + ends
    return "linear" if isinstance(layer, Readout) else layer.kind


def _span(array: np.ndarray) -> list[float]:
    return [float(array.min()), float(array.max())]


def network_page(network: Network, origin: str) -> Page:
    """Return the page of a network: inputs and outputs, layers, and figures of its training; origin: its file."""
    name, width = network_name(network), sum(layer.width for layer in network.recurrent_layers)
    parameters = sum(_weights(layer).size + layer.bias.size for layer in (*network.layers, network.readout))
    layers = f"{len(network.layers)} layer{'s' * (len(network.layers) != 1)}"
    return Page(
        verb="inspect",
        subject=PageSubject(name),
        title=f"{name}: {width} recurrent units in {layers}, {parameters} weights and biases",
        lead=f"From {origin}. Nothing was compiled.",
        cards=(),
        sections=(
            Section("What it reads and answers", (Facts(_encoding(network)),)),
            Section("Layers", (_layers(network), *_remarks(network))),
            Section("Levels that the training data visit", tuple(_levels(network))),
            _training(network.history.get("figures", {})),
        ),
    )


def software_page(described: Mapping[str, Any]) -> Page:
    """Return the page of a backbone's model from its description, with the parts that have no circuit."""
    name = f"{described['task']} backbone"
    shape = {"epsilon": described["epsilon"], **described["shape"]}
    return Page(
        verb="inspect",
        subject=PageSubject(name),
        title=f"{name}: {described['parameters']} parameters, stays software",
        lead=f"From {described['file']}. Nothing was compiled.",
        cards=(),
        sections=(
            Section("Its shape", (_facts(shape),)),
            _training(described["figures"]),
            Section("Why it stays software", (described["stays software"],)),
        ),
    )


def _training(figures: Mapping[str, object]) -> Section:
    return Section("Figures of its training", (_facts(figures),) if figures else ())


def _facts(values: Mapping[str, object]) -> Facts:
    return Facts(tuple((name, _figure(value)) for name, value in values.items()))


def _encoding(network: Network) -> tuple[tuple[str, str], ...]:
    encoding = network.encoding
    ramp = f", time ramp over {encoding.ramp_steps} steps" if encoding.ramp_steps else ""
    levels = f"in steps of 1/{encoding.levels}" if encoding.levels else "continuous"
    offset, scale = (f"{low:.4g} to {high:.4g}" for low, high in map(_span, (encoding.offset, encoding.scale)))
    labels = "none, answers are real numbers" if network.regression else ", ".join(network.labels) or "none"
    return (
        ("task", network.task or "not named"),
        ("labels", labels),
        ("input", f"{encoding.features} features{ramp}, {levels}; offset {offset}, scale {scale}"),
        ("grid", f"{network.weight_grid or 'continuous weights'}"),
        ("pooling", network.readout.pooling),
    )


def _remarks(network: Network) -> Iterator[str]:
    """Yield sentences on what the table of layers leaves out.

    These are analog parameters, signals of an earlier frame, and cells that no input changes.
    """
    for layer in network.recurrent_layers:
        if layer.analog_parameters:
            yield f"{layer.name}: {layer.analog_parameters}"
    for name, late in network.late.items():
        yield f"{name} is {late.signal} {late.frames} frame{'s' if late.frames > 1 else ''} before"
    if said := say_constant(constant_cells(network)):
        yield f"{said}; cosim compile leaves them out"


def _layers(network: Network) -> Table:
    head = ("layer", "kind", "shape", "reads", "epsilon", "weight", "bias", "nonzero", "off grid", "width >=")
    grid, rows = network.weight_grid, list[tuple[str, ...]]()
    for layer in (*network.layers, network.readout):
        held = layer if isinstance(layer, EpsilonLayer) else None
        width, weights = held and held.smallest_width, _weights(layer)
        rows.append(
            (
                "readout" if isinstance(layer, Readout) else layer.name,
                _kind(layer),
                " x ".join(map(str, layer.weight.shape)),
                " + ".join(layer.sources),
                f"{held.epsilon:g}" if held else "",
                format_range(layer.weight),
                format_range(layer.bias),
                f"{np.count_nonzero(weights)} of {weights.size}",
                "" if grid is None else str(_off_grid(layer, grid)),
                "" if width is None else f"{width:.3g}",
            )
        )
    return Table(head, tuple(rows))


def _levels(network: Network) -> Iterator[Table]:
    rows = [(unit, f"{low:.4g}", f"{high:.4g}", str(levels)) for unit, low, high, levels in _visited(network)]
    if rows:
        yield Table(("unit", "lowest", "highest", "levels"), tuple(rows), numbers=(1, 2, 3))


def _figure(value: object) -> str:
    if isinstance(value, dict):  # shares by their limit, or figures by their name
        parts = ((key, part, key[:1].isdigit() and isinstance(part, float)) for key, part in value.items())
        return "  ".join(f"{key}: {f'{part:.2%}' if share else _figure(part)}" for key, part, share in parts)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
