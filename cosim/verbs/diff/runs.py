"""Finished runs as `cosim diff` reads them from their folders; nothing is run again.

    compare, demo    simulation.npz, beside comparison.json; with --pvt pvt.npz, beside pvt.json
    simulate         simulation.npz
    power            power.npz, beside power.json
    montecarlo       run.json, chips.jsonl, summary.json and the samples

Everything has a checksum, which must fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.arrays import check_forms, read_arrays
from cosim.base.claim import owner_of
from cosim.base.errors import InputError
from cosim.base.seal import read_sealed, read_sealed_arrays
from cosim.base.settings import RunSettings, read_settings
from cosim.base.text import is_file, shown_path
from cosim.verbs.montecarlo.chips import ChipRecord, ChipSummary
from cosim.verbs.montecarlo.keep import SAMPLES_FILE, read_kept
from cosim.verbs.montecarlo.store import CHIPS_FILE, RUN_FILE, check_run, read_store
from cosim.verbs.montecarlo.store import VERB as MONTECARLO
from cosim.verbs.montecarlo.write import read_summary
from cosim.verbs.simulate.samples import STACKED, UNDECIDED, SampleTable

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
VERBS = ("compare", "demo", "simulate", "power", MONTECARLO)
_AGAIN = "the same command writes it again"
_SAMPLES = {
    "indices": "whole n", "sums": "text n", "y": "real n *", "lengths": "whole n", "software": "whole n",
    "decisions": "whole n", "wrong": "whole n cells", "power_w": "real n", "cells": "text cells",
    "tolerances": "real cells", "engine": "text", "states": "real n time cells",
}  # fmt: skip
_CONDITIONS = {name: form for name, form in _SAMPLES.items() if name != "states"} | {
    "decisions": "whole conditions n", "wrong": "whole conditions n cells", "power_w": "real conditions n",
    "conditions": "text conditions",
}  # fmt: skip
_POWER = {"indices": "whole n", "sums": "text n", "figures": "text figures", "power_w": "real figures n"}
_DRAWN_SAMPLES = {"indices": "whole n", "y": "real n *"}
_HASHES = ("network", "technology", "calibration")  # in what a run was made from
_RESULT = {"compare": "comparison.json", "demo": "comparison.json", "simulate": "simulation.npz", "power": "power.json"}


@dataclass(frozen=True)
class RunFacts:
    """Facts of any run. name: its folder as given; settings: run.toml, None without; made: what its results say."""

    folder: Path
    name: str
    verb: str
    settings: RunSettings | None
    made: Mapping[str, object]


@dataclass(frozen=True)
class Sampled:
    """Samples that were decided, by condition; the one of a run without --pvt is ""."""

    facts: RunFacts
    tables: Mapping[str, SampleTable]


@dataclass(frozen=True)
class Metered:
    """Samples whose power was metered. figures: such as `ngspice power cells` -> (n,) watt; see `tabulate_power`."""

    facts: RunFacts
    indices: NDArray[np.int64]
    sums: NDArray[np.str_]
    figures: Mapping[str, Array]


@dataclass(frozen=True)
class ChipRun:
    """Chips that were drawn, in the order of their numbers, and the samples that each of them saw (index, class)."""

    facts: RunFacts
    summary: ChipSummary
    records: tuple[ChipRecord, ...]
    indices: NDArray[np.int64]
    y: NDArray[np.int64]


Run = Sampled | Metered | ChipRun


def read_run(folder: Path) -> Run:
    """Read the run in a folder. Raises InputError where it has none, or one that is not finished, is damaged, or of
    another verb."""
    name = shown_path(folder)
    if not folder.is_dir():
        raise InputError(f"{name}: no such folder; give the folder of a finished run")
    verb = owner_of(folder)
    if verb is None:
        raise InputError(f"{name}: holds no run; give a folder that cosim {', '.join(VERBS[:-1])} or {VERBS[-1]} wrote")
    if verb not in VERBS:
        raise InputError(f"{name}: belongs to cosim {verb}; diff is for runs of {', '.join(VERBS)} and sweep")
    if verb == MONTECARLO:
        return _drawn(folder, name)
    pvt = folder / "pvt.json"
    result = pvt if verb == "compare" and is_file(pvt) else folder / _RESULT[verb]
    if not is_file(result):
        raise InputError(
            f"{name}: this run of {verb} is not finished, {result.name} is missing; the same command goes on"
        )
    parts = [folder / "design.json", *([result] if result.suffix == ".json" else [])]
    made = [(path, read_sealed(path, _AGAIN, finite=False)) for path in parts]
    facts = RunFacts(folder, name, "compare" if verb == "demo" else verb, read_settings(folder), _made(made))
    if verb == "power":
        rows = read_sealed_arrays(folder / "power.npz", _POWER, _AGAIN)
        return Metered(
            facts, rows["indices"], rows["sums"], dict(zip(rows["figures"].tolist(), rows["power_w"], strict=True))
        )
    tables = _conditions(folder / "pvt.npz") if result == pvt else {"": _table(folder / "simulation.npz")}
    return Sampled(facts, tables)


def _drawn(folder: Path, name: str) -> ChipRun:
    settings, records = read_store(folder)
    check_run(folder, settings)
    summary = read_summary(folder)
    if missing := [number for number in range(summary.chips) if number not in records]:
        raise InputError(f"{name}: chip {missing[0]} of {summary.chips} is not there; the same command goes on")
    read_kept(folder)  # its checksums
    samples = read_arrays(folder / SAMPLES_FILE, _AGAIN, _DRAWN_SAMPLES)
    check_forms(samples, _DRAWN_SAMPLES, shown_path(folder / SAMPLES_FILE), _AGAIN)
    _check_classes(folder / SAMPLES_FILE, samples["y"])
    made = {key: value for key, value in settings.items() if key not in ("devices", "design")}
    made = {**settings["design"], **made, "chips": summary.chips}
    _check_named(folder / RUN_FILE, made)
    facts = RunFacts(folder, name, MONTECARLO, read_settings(folder), made)
    chosen = tuple(records[number] for number in range(summary.chips))
    for record in chosen:
        figures = [found for found in (record.behavioral, record.simulated) if found is not None]
        if any(len(found.decisions) != len(samples["y"]) for found in figures):
            raise InputError(
                f"{shown_path(folder / CHIPS_FILE)}: chip {record.chip} must have {len(samples['y'])} decisions, one "
                f"for each sample; {_AGAIN}"
            )
    return ChipRun(facts, summary, chosen, samples["indices"], samples["y"])


_MADE = (
    "network", "task", "technology", "calibration", "simulator_of_calibration", "i_unit_a", "units_per_weight_1",
    "corner", "celsius", "supply_v", "transistors", "unit_devices", "gate_area_um2", "capacitor_area_um2", "bias_pins",
    "parameters", "largest_rounding", "simulator", "bias", "bias_scale", "input_scale", "made_with", "t_step_s",
)  # fmt: skip


def _made(parts: Sequence[tuple[Path, Mapping[str, object]]]) -> dict[str, object]:
    """Return the inputs of a run, without its results. Raises InputError where its files do not name the network."""
    content = {name: value for _, part in parts for name, value in part.items()}
    _check_named(parts[0][0], content)
    return {name: content[name] for name in _MADE if name in content}


def _check_named(path: Path, made: Mapping[str, object]) -> None:
    if missing := [name for name in _HASHES if not isinstance(made.get(name), str)]:
        raise InputError(f"{shown_path(path)}: must have the field {missing[0]}, a text; {_AGAIN}")


def _table(path: Path) -> SampleTable:
    rows = _rows(path, _SAMPLES)
    return _sample_table(rows, {name: rows[name] for name in STACKED}, rows["states"])


def _conditions(path: Path) -> dict[str, SampleTable]:
    rows = _rows(path, _CONDITIONS)
    names = rows["conditions"].tolist()
    return {name: _sample_table(rows, {key: rows[key][k] for key in STACKED}) for k, name in enumerate(names)}


def _rows(path: Path, forms: Mapping[str, str]) -> Arrays:
    """Read the arrays of a run's table of samples, of these forms, to be compared by `cosim diff`.

    Raises InputError for values that samples cannot have.
    """
    rows = read_sealed_arrays(path, forms, _AGAIN)
    _check_classes(path, rows["y"])
    steps = rows["states"].shape[1] if "states" in rows else np.iinfo(np.int64).max
    bounds = {"lengths": (1, steps), "wrong": (0, rows["lengths"][:, None]), "decisions": (UNDECIDED, 2**31)}
    for name, (least, most) in bounds.items():
        if not np.all((rows[name] >= least) & (rows[name] <= most)):
            raise InputError(
                f"{shown_path(path)}: {name} must be {least} or more, and of the frames there are; {_AGAIN}"
            )
    return rows


def _check_classes(path: Path, y: NDArray[Any]) -> None:
    """Raise InputError for targets (n, outputs) that are real numbers: their errors are not paired yet."""
    if y.ndim != 1 or y.dtype.kind == "f":
        raise InputError(
            f"{shown_path(path)}: y must be classes, one for each sample, not real numbers; diff pairs "
            "decisions, so compare rmse in the comparison.json or summary.json of both runs"
        )


def _sample_table(rows: Arrays, stacked: Arrays, states: NDArray[Any] | None = None) -> SampleTable:
    plain = {name: rows[name] for name in ("indices", "sums", "y", "lengths", "software", "tolerances")}
    return SampleTable(
        **plain, **stacked, cells=tuple(rows["cells"].tolist()), engine=str(rows["engine"]), states=states
    )
