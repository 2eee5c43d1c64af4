"""`cosim inspect`: what is in a checkpoint."""

import json
from pathlib import Path

import click

from cosim.checkpoint.file import load_network
from cosim.cli.common import FILE
from cosim.reading.text import shown_path
from cosim.report.network_table import describe_network, format_network


@click.command(name="inspect")
@click.argument("checkpoint", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(*, checkpoint: Path, as_json: bool) -> None:
    """Print task, encoding, layers, value ranges and training figures of a CHECKPOINT (.pt or .npz)."""
    network = load_network(checkpoint)
    if as_json:
        click.echo(json.dumps({"file": str(checkpoint), **describe_network(network)}, indent=2, sort_keys=True))
    else:
        click.echo("\n".join([shown_path(checkpoint), *format_network(network)]))
