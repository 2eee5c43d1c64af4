"""Names of the files and folders that each verb writes into its folder, so that no other file is replaced.

Folders of runs within a run, such as the points of a sweep, belong to the verb that runs there.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from cosim.base.seal import seal_json
from cosim.base.write import make_folder, write_together, writing_into

_PAGE = "run.toml page.json report.html"
_SAMPLES = "design.json inferences failed simulation.npz waveforms.png"
_COMPARED = f"{_SAMPLES} comparison.json confusion.png values.png"
_NETLIST = (
    "network.sp network.scs network.inc devices.lib devices.scs devices.inc testbench.sp testbench.scs testbench.sim "
    "start.sp expected.csv mapping.csv mapping.json design.json network.svg margins.json partitions.json"
)
_RESULTS = {
    "characterize": "inferences failed *_*C_*V.png",
    "compare": f"{_COMPARED} pvt.json pvt.npz pvt.png partitions.json",
    "compile": _NETLIST,
    "demo": f"{_COMPARED} model.pt netlist .model.cosim",
    "diff": "diff.html diff.json",
    "explore": "explore.json explore.csv explore.png explore.svg search.json trials.jsonl transistors.jsonl "
    "technologies",
    "layout": "layout.gds layout.gds.gz layout.json layout.png layout.svg lvs.sp wires.csv positions.csv couplings.csv "
    "pins.csv area.csv resistance.csv violations.csv checks.json checks cells",
    "montecarlo": "run.json chips.jsonl trial.json network.npz samples.npz calibration.json summary.json "
    "contributions.json inferences chip_*",
    "power": "design.json power.json power.npz power.png inferences failed",
    "reproduce": "kept copies*.[jm]* pixels*.[jm]* parity*.[jm]* keywords*.[jm]* flip-flop*.[jm]* lorenz*.[jm]* "
    "footprint.[jm]* delayed-product.[jm]*",
    "signoff": "signoff.json plan.toml inferences failed nominal corners chips",
    "simulate": f"{_SAMPLES} waveforms.npz waveforms.raw waveforms.vcd decks",
    "sweep": "sweep.json sweep.csv sweep.png sweep.svg",
    "trim": "trim.json trim.png run.json chips.jsonl",
}

_KEPT = (  # what the same command goes on with
    "run.json chips.jsonl search.json trials.jsonl transistors.jsonl inferences/*.npz kept/*/*.json "
    "kept/*/.*.cosim/*.pt nominal/inferences/*.npz corners/inferences/*.npz chips/run.json chips/chips.jsonl "
    "model.pt .model.cosim/*.pt"
)


def clear_kept(folder: Path) -> None:
    """Remove what an earlier run has left in a verb's own folder to go on with; its results stay until new ones come.

    Raises InputError where that cannot be done.
    """
    with writing_into(folder):
        for pattern in _KEPT.split():
            for path in folder.glob(pattern):
                path.unlink()


def is_result(name: str, verb: str) -> bool:
    """Return whether a verb may write a file or folder of this name into its folder."""
    known = f"{_PAGE} {_RESULTS.get(verb, '')}".split()
    return any(fnmatchcase(name, pattern) for pattern in known)


def write_texts(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Write named texts into a folder, which is made if need be, each by an atomic rename, after all are on disk."""
    make_folder(folder)
    write_together({folder / name: text.encode() for name, text in texts.items()})
    return [folder / name for name in texts]


def write_results(folder: Path, results: Mapping[str, object]) -> None:
    """Write JSON objects into a folder as `write_texts` does, each with its checksum as its last entry."""
    make_folder(folder)
    write_together({folder / name: seal_json(content) for name, content in results.items()})
