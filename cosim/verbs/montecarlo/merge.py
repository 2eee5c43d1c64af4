"""Parts of a run that were made apart, as one store: array jobs on a cluster, machines that do not know each other."""

from collections.abc import Sequence
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.store import check_settings
from cosim.base.text import shown_path
from cosim.verbs.montecarlo.chips import ChipRecord
from cosim.verbs.montecarlo.keep import read_kept
from cosim.verbs.montecarlo.store import RUN_FILE, open_store, read_store

_SHOWN = 6


def merge_stores(folders: Sequence[Path], output: Path) -> int:
    """Put the chips of all folders into the store `output`; returns how many there are. Nothing is run.

    Raises InputError where they are of different runs, hold different records of one chip, or lack a chip.
    """
    first, *others = folders
    settings, records = read_store(first)
    chips = read_kept(first).plan.chips
    for folder in others:
        known, more = read_store(folder)
        check_settings(folder, known, settings)
        _check_same(folder, records, more)
        records |= more
        chips = max(chips, read_kept(folder).plan.chips)
    if missing := [number for number in range(chips) if number not in records]:
        some = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
        raise InputError(
            f"{len(missing)} of {chips} chips are in none of the folders: {some}; run their --shard to its end, or "
            "name its folder, too"
        )
    with open_store(output, settings) as store:
        for number in sorted(records.keys() - store.records.keys()):
            store.append(records[number])
        store.tidy()
    return chips


def _check_same(folder: Path, records: dict[int, ChipRecord], more: dict[int, ChipRecord]) -> None:
    """Raise InputError where a chip of a folder is another one in those before it."""
    twice = [number for number in records.keys() & more.keys() if records[number] != more[number]]
    if twice:
        raise InputError(
            f"{shown_path(folder / RUN_FILE)}: chip {min(twice)} is another one than in the folders before it; leave "
            "one of them out"
        )
