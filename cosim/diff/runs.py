"""Finished runs as `cosim diff` reads them from their folders; nothing is run again.

    compare, demo    simulation.npz, beside comparison.json; with --pvt pvt.npz, beside pvt.json
    simulate         simulation.npz
    power            power.npz, beside power.json
    montecarlo       run.json, chips.jsonl, summary.json and the samples

Everything has a checksum, which must fit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError
from cosim.files.claim import owner_of
from cosim.files.read import is_file
from cosim.files.seal import unseal_json
from cosim.files.settings import Settings
from cosim.montecarlo.keep import SAMPLES_FILE, read_kept
from cosim.montecarlo.page import read_summary
from cosim.montecarlo.store import VERB as MONTECARLO
from cosim.montecarlo.store import read_store
from cosim.reading.arrays import is_whole, read_arrays
from cosim.reading.settings import read_settings
from cosim.reading.text import JSON_LIMIT, parse_json, read_bytes, shown_path
from cosim.study.chips import ChipRecord, ChipSummary
from cosim.study.sample_table import ROWS, STACKED, SampleTable

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
VERBS = ("compare", "demo", "simulate", "power", MONTECARLO)
_AGAIN = "the same command writes it again"
_RESULT = {"compare": "comparison.json", "demo": "comparison.json", "simulate": "simulation.npz", "power": "power.json"}


@dataclass(frozen=True)
class Facts:
    """Of any run. name: its folder as it was given; settings: run.toml, None without; made: what its results say."""

    folder: Path
    name: str
    verb: str
    settings: Settings | None
    made: Mapping[str, object]


@dataclass(frozen=True)
class Sampled:
    """Samples that were decided, by condition; the one of a run without --pvt is ""."""

    facts: Facts
    tables: Mapping[str, SampleTable]


@dataclass(frozen=True)
class Metered:
    """Samples whose power was metered. figures: such as `ngspice power cells` -> (n,) watt; see `tabulate_power`."""

    facts: Facts
    indices: NDArray[np.int64]
    sums: NDArray[np.str_]
    figures: Mapping[str, Array]


@dataclass(frozen=True)
class Drawn:
    """Chips that were drawn, in the order of their numbers, and the samples that each of them saw (index, class)."""

    facts: Facts
    summary: ChipSummary
    records: tuple[ChipRecord, ...]
    indices: NDArray[np.int64]
    y: NDArray[np.int64]


Run = Sampled | Metered | Drawn


def read_run(folder: Path) -> Run:
    """The run in a folder. Raises InputError for one that is none, is not finished, is damaged, or of another verb."""
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
    made = {**_sealed(folder / "design.json"), **(_sealed(result) if result.suffix == ".json" else {})}
    facts = Facts(folder, name, "compare" if verb == "demo" else verb, read_settings(folder), _made(made))
    if verb == "power":
        rows = _arrays(folder / "power.npz", ("indices", "sums", "figures", "power_w"))
        return Metered(
            facts, rows["indices"], rows["sums"], dict(zip(rows["figures"].tolist(), rows["power_w"], strict=True))
        )
    tables = _conditions(folder / "pvt.npz") if result == pvt else {"": _table(folder / "simulation.npz")}
    return Sampled(facts, tables)


def _drawn(folder: Path, name: str) -> Drawn:
    settings, records = read_store(folder)
    summary = read_summary(folder)
    if missing := [number for number in range(summary.chips) if number not in records]:
        raise InputError(f"{name}: chip {missing[0]} of {summary.chips} is not there; go on with --resume")
    read_kept(folder)  # its checksums
    samples = read_arrays(folder / SAMPLES_FILE, _AGAIN, ("indices", "y"))
    _check_classes(folder / SAMPLES_FILE, samples["y"])
    made = {key: value for key, value in settings.items() if key not in ("devices", "design")}
    facts = Facts(
        folder, name, MONTECARLO, read_settings(folder), {**settings["design"], **made, "chips": summary.chips}
    )
    chosen = tuple(records[number] for number in range(summary.chips))
    return Drawn(facts, summary, chosen, samples["indices"], samples["y"])


_MADE = (
    "network", "task", "technology", "calibration", "simulator_of_calibration", "i_unit_a", "units_per_weight_1",
    "corner", "celsius", "supply_v", "transistors", "unit_devices", "gate_area_um2", "capacitor_area_um2", "bias_pins",
    "parameters", "largest_rounding", "simulator", "bias", "bias_scale", "input_scale", "made_with", "t_step_s",
)  # fmt: skip


def _made(content: Mapping[str, object]) -> dict[str, object]:
    """What a run was made from, without what it found."""
    return {name: content[name] for name in _MADE if name in content}


def _table(path: Path) -> SampleTable:
    rows = _arrays(path, (*ROWS, "states"))
    _check_classes(path, rows["y"])
    return _sample_table(rows, {name: rows[name] for name in STACKED}, rows["states"])


def _conditions(path: Path) -> dict[str, SampleTable]:
    rows = _arrays(path, (*ROWS, "conditions"))
    _check_classes(path, rows["y"])
    names = rows["conditions"].tolist()
    return {name: _sample_table(rows, {key: rows[key][k] for key in STACKED}) for k, name in enumerate(names)}


def _check_classes(path: Path, y: NDArray[Any]) -> None:
    """Raises InputError for targets (n, outputs) that are real numbers: their errors are not paired yet."""
    if y.ndim != 1:
        raise InputError(
            f"{shown_path(path)}: y must be classes, one for each sample, not {y.shape[1]} real numbers; diff pairs "
            "decisions, so compare rmse in the comparison.json or summary.json of both runs"
        )


def _sample_table(rows: Arrays, stacked: Arrays, states: NDArray[Any] | None = None) -> SampleTable:
    plain = {name: rows[name] for name in ("indices", "sums", "y", "lengths", "software", "tolerances")}
    return SampleTable(
        **plain, **stacked, cells=tuple(rows["cells"].tolist()), engine=str(rows["engine"]), states=states
    )


def _arrays(path: Path, names: tuple[str, ...]) -> Arrays:
    """Those of a sealed file. Raises InputError where it is missing, damaged, or of a cosim that kept less."""
    where = shown_path(path)
    if not is_file(path):
        raise InputError(f"{where}: missing, so its samples cannot be paired; {_AGAIN}")
    if not is_whole(path):
        raise InputError(f"{where}: damaged, its checksum does not fit; {_AGAIN}")
    found = read_arrays(path, _AGAIN, names)
    if missing := [name for name in names if name not in found]:
        raise InputError(f"{where}: {missing[0]} missing, it is of an earlier cosim; {_AGAIN}")
    return found


def _sealed(path: Path) -> dict[str, object]:
    """A JSON object that ends with its checksum. Raises InputError where it is missing or that does not fit."""
    where = shown_path(path)
    if not is_file(path):
        raise InputError(f"{where}: missing; {_AGAIN}")
    try:
        text = unseal_json(read_bytes(path, JSON_LIMIT, _AGAIN))
    except ValueError as error:
        raise InputError(f"{where}: damaged: {error}; {_AGAIN}") from None
    found = parse_json(text, where, _AGAIN, finite=False)
    assert isinstance(found, dict)  # what is left of a checksum ends as an object does
    return found
