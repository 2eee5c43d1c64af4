"""Search for an earlier training in its file, where it is what the same training would give again."""

import json
from collections.abc import Sequence
from pathlib import Path

from cosim.exchange.checkpoint import is_written_here, load_network, stays_software
from cosim.network.types import Network
from cosim.tasks.task import Task
from cosim.training.config import TrainingConfig, describe_config
from cosim.training.state import data_fingerprint


def find_finished(config: TrainingConfig, task: Task, path: Path, seeds: Sequence[int] = ()) -> Network | None:
    """Return the network of a whole training with these settings and data; None where the file has none of it.

    seeds: of all networks that this one was chosen from, where there were several.
    """
    if not path.is_file() or not is_written_here(path) or stays_software(path):
        return None
    network = load_network(path)
    if set(network.history.get("seeds", ())) != set(map(str, seeds)):
        return None
    wanted = json.loads(json.dumps({"settings": describe_config(config), "data": data_fingerprint(task)}))
    same = all(network.history.get(part) == value for part, value in wanted.items())
    return network if same and "figures" in network.history else None
