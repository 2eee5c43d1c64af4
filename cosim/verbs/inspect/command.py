"""Command `cosim inspect`: print the content of a checkpoint."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from cosim.base.errors import MappingError
from cosim.base.text import shown_path
from cosim.cli.session import VerbSession
from cosim.cli.verb import FILE, Result, argument, switch, verb


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """Options of `cosim inspect`: the checkpoint, and whether to print JSON."""

    checkpoint: Path = argument(None, FILE)
    as_json: bool = switch("Print JSON instead of tables.", flags=("--json",))


def run(options: InspectOptions, _session: VerbSession) -> Result:
    """Print task, encoding, layers, value ranges and training figures of a CHECKPOINT (.pt or .npz)."""
    from cosim.exchange.checkpoint import load_network
    from cosim.verbs.inspect.page import describe_network, network_page, software_page

    checkpoint, as_json = options.checkpoint, options.as_json
    try:
        network = load_network(checkpoint)
    except MappingError:  # as only a model that stays software makes it
        described = describe_software(checkpoint)
        page = software_page(described)
    else:
        described = {"file": str(checkpoint), **describe_network(network)}
        page = network_page(network, str(checkpoint))
    if as_json:
        return Result(described, lines=[json.dumps(described, indent=2, sort_keys=True)])
    return Result(described, page)


def describe_software(path: Path) -> dict[str, object]:
    """Return a description of a backbone's model, and of its parts that have no circuit, ready for JSON."""
    from cosim.network.software_only import unmapped_parts
    from cosim.papers.file import load_model
    from cosim.papers.shape import count_parameters

    model = load_model(path)
    shape = model.backbone.shape
    parts = unmapped_parts(shape.cell, shape.width, positions=shape.positions, levels=shape.levels)
    return {
        "file": shown_path(path),
        "task": model.task,
        "shape": asdict(shape),
        "epsilon": model.epsilon,
        "parameters": count_parameters(shape),
        "figures": model.history.get("figures", {}),
        "stays software": "; ".join(map(str, parts)),
    }


command = verb(InspectOptions, run)
