"""`cosim inspect`: what is in a checkpoint."""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from cosim.checkpoint.file import load_network
from cosim.cli.common import FILE
from cosim.network.layers import EpsilonLayer, Layer, SignedLayer
from cosim.network.types import Network, Readout
from cosim.reading.text import shown_path


@click.command(name="inspect")
@click.argument("checkpoint", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(*, checkpoint: Path, as_json: bool) -> None:
    """Print task, encoding, layers, value ranges and training figures of a CHECKPOINT (.pt or .npz)."""
    summary = summarise(load_network(checkpoint))
    if as_json:
        click.echo(json.dumps({"file": str(checkpoint), **summary}, indent=2, sort_keys=True))
        return
    click.echo(shown_path(checkpoint))
    for line in format_summary(summary):
        click.echo(line)


def summarise(network: Network) -> dict[str, Any]:
    """JSON-able description of a network."""
    encoding = network.encoding
    return {
        "task": network.task,
        "labels": list(network.labels),
        "weight_grid": network.weight_grid,
        "encoding": {
            "features": encoding.features,
            "ramp_steps": encoding.ramp_steps,
            "levels": encoding.levels,
            "offset": _span(encoding.offset),
            "scale": _span(encoding.scale),
        },
        "layers": [_summarise_layer(layer, layer.name, network.weight_grid) for layer in network.layers],
        "readout": {
            **_summarise_layer(network.readout, "readout", network.weight_grid),
            "pooling": network.readout.pooling,
        },
        "history": dict(network.history),
    }


def _summarise_layer(layer: Layer | Readout, name: str, grid: float | None) -> dict[str, Any]:
    arrays = layer.arrays()
    weights = np.concatenate([array.ravel() for key, array in arrays.items() if key.startswith("weight")])
    summary: dict[str, Any] = {
        "name": name,
        "kind": _kind(layer),
        "shape": list(layer.weight.shape),
        "sources": list(layer.sources),
        "weights": weights.size,
        "nonzero_weights": int(np.count_nonzero(weights)),
        "ranges": {key: _span(array) for key, array in arrays.items()},
    }
    if grid is not None:
        on_grid = np.concatenate([weights, layer.bias])
        summary["off_grid"] = int(np.count_nonzero(np.abs(on_grid / grid - np.round(on_grid / grid)) > 1e-9))
        summary["unit_devices"] = round(float(np.abs(weights).sum() / grid))
    if isinstance(layer, EpsilonLayer):
        summary["epsilon"] = layer.epsilon
        summary["smallest_width"] = layer.smallest_width
    return summary


def _kind(layer: Layer | Readout) -> str:
    if isinstance(layer, SignedLayer):
        beta = ", beta by input" if layer.weight_beta is not None else ""
        return "signed" + beta + (", alpha by input" if layer.weight_alpha is not None else "")
    return "linear" if isinstance(layer, Readout) else layer.kind


def _span(array: np.ndarray) -> list[float]:
    return [float(array.min()), float(array.max())]


def format_summary(summary: dict[str, Any]) -> list[str]:
    """The description as lines of text."""
    encoding = summary["encoding"]
    ramp = f", time ramp over {encoding['ramp_steps']} steps" if encoding["ramp_steps"] else ""
    levels = f"in steps of 1/{encoding['levels']}" if encoding["levels"] else "continuous"
    low, high = encoding["offset"]
    scales = encoding["scale"]
    lines = [
        f"task     {summary['task'] or 'not named'}",
        f"labels   {', '.join(summary['labels']) or 'none'}",
        f"input    {encoding['features']} features{ramp}, {levels}; offset {low:.4g} to {high:.4g}, "
        f"scale {scales[0]:.4g} to {scales[1]:.4g}",
        f"grid     {summary['weight_grid'] or 'continuous weights'}",
        f"pooling  {summary['readout']['pooling']}",
        "",
    ]
    lines += _table(summary)
    figures = summary["history"].get("figures", {})
    if figures:
        lines += ["", *(f"{name:26s}{_figure(value)}" for name, value in figures.items())]
    return [line if line.isprintable() else ascii(line)[1:-1] for line in lines]  # a history may hold any text


def _table(summary: dict[str, Any]) -> list[str]:
    rows = [("layer", "kind", "shape", "reads", "epsilon", "weight", "bias", "nonzero", "off grid", "width >=")]
    for layer in (*summary["layers"], summary["readout"]):
        low, high = layer["ranges"]["weight"]
        bias = layer["ranges"]["bias"]
        width = layer.get("smallest_width")
        rows.append(
            (
                layer["name"],
                layer["kind"],
                " x ".join(map(str, layer["shape"])),
                " + ".join(layer["sources"]),
                f"{layer['epsilon']:g}" if "epsilon" in layer else "",
                f"{low:.3g} to {high:.3g}",
                f"{bias[0]:.3g} to {bias[1]:.3g}",
                f"{layer['nonzero_weights']} of {layer['weights']}",
                str(layer.get("off_grid", "")),
                "" if width is None else f"{width:.3g}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _figure(value: object) -> str:
    if isinstance(value, dict):  # shares by their limit, or figures by their name
        parts = ((key, part, key[:1].isdigit() and isinstance(part, float)) for key, part in value.items())
        return "  ".join(f"{key}: {f'{part:.2%}' if share else _figure(part)}" for key, part, share in parts)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
