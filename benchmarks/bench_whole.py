"""Whole test sets on transistors, in the batched engine: a row of docs/papers/engine.md for each network.

    python benchmarks/bench_whole.py [--jobs N] NETWORK@TECHNOLOGY[:DATA] ...

NETWORK: one that the package carries. DATA: a folder or a file, as `--data`; without it the task's own test set, or the
clips that come with the network. Columns: states equal to software's, and to the behavioral model's; equal decisions;
accuracy of software and of the engine; samples that ngspice ran in its place. The foundry kits: PDK_ROOT.
"""

import argparse
from pathlib import Path

from smoke import shrink

import cosim
from cosim.base.resources import trained_network_path
from cosim.results.metrics import percent, within

SAMPLES = None  # all


def row(text: str, jobs: int) -> str:
    """A network in a technology."""
    named, _, data = text.partition(":")
    name, _, technology = named.partition("@")
    path = trained_network_path(name)
    beside = [one for one in path.parent.glob(f"{name}_*.npz") if not data]
    source = Path(data) if data else next(iter(beside), None)
    chip = cosim.load(path).compile(technology or "generic180")
    found = chip.compare(source, SAMPLES, engine="batch", jobs=jobs).summary
    elsewhere = sum(found.elsewhere.values())
    states = f"{percent(found.state_agreement, 2)} of {found.state_bits:,}"
    decisions = f"{percent(found.task_agreement)} {within(found.task_agreement_interval)}"
    accuracy = f"{percent(found.accuracy['batch'])} {within(found.accuracy_interval['batch'])}"
    behavioral, software = percent(found.state_agreement_behavioral, 2), percent(found.accuracy["software"])
    place = f"`{name}`", chip.design.technology.name, found.samples
    return f"| {' | '.join(map(str, (*place, states, behavioral, decisions, software, accuracy, elsewhere)))} |"


def main() -> None:
    """A row for each that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("what", nargs="+")
    asked = parser.parse_args()
    for text in asked.what:
        print(row(text, asked.jobs), flush=True)


if __name__ == "__main__":
    shrink(globals(), "digits_d4", SAMPLES=2)
    main()
