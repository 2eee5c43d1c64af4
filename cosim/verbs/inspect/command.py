"""`cosim inspect`: what is in a checkpoint."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from cosim.base.errors import MappingError
from cosim.base.text import shown_path
from cosim.cli.options import FILE
from cosim.exchange.checkpoint import load_network
from cosim.verbs.inspect.table import describe_network, format_network


@click.command(name="inspect")
@click.argument("checkpoint", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(*, checkpoint: Path, as_json: bool) -> None:
    """Print task, encoding, layers, value ranges and training figures of a CHECKPOINT (.pt or .npz)."""
    try:
        network = load_network(checkpoint)
    except MappingError:  # as only a model that stays software makes it
        described = describe_software(checkpoint)
        lines = [f"{name}: {value}" for name, value in described.items()]
    else:
        described = {"file": str(checkpoint), **describe_network(network)}
        lines = [shown_path(checkpoint), *([] if as_json else format_network(network))]
    click.echo(json.dumps(described, indent=2, sort_keys=True) if as_json else "\n".join(lines))


def describe_software(path: Path) -> dict[str, object]:
    """Return the description of a model of `cosim backbone`, with its parts that have no circuit, as JSON-able data."""
    from cosim.exchange.software_only import unmapped_parts
    from cosim.papers.file import load_model
    from cosim.papers.shape import count_parameters

    model = load_model(path)
    shape = model.backbone.shape
    parts = unmapped_parts(shape.cell, shape.width, positions=shape.positions)
    return {
        "file": shown_path(path),
        "task": model.task,
        "shape": asdict(shape),
        "epsilon": model.epsilon,
        "parameters": count_parameters(shape),
        "figures": model.history.get("figures", {}),
        "stays software": "; ".join(map(str, parts)),
    }
