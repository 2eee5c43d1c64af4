"""Finished runs as `cosim diff` reads them from their folders; nothing is simulated.

    compare, demo    simulation.npz, beside comparison.json; with --pvt pvt.npz, beside pvt.json
    simulate         simulation.npz
    power            power.npz, beside power.json
    montecarlo       run.json, chips.jsonl, summary.json and the samples

Every file has a checksum, which must fit.
"""

from collections.abc import Mapping
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
from cosim.network.ir.states import States
from cosim.verbs.montecarlo.chip_study import read_summary
from cosim.verbs.montecarlo.chips import ChipRecord, ChipSummary, Figures
from cosim.verbs.montecarlo.keep import SAMPLES_FILE, read_kept
from cosim.verbs.montecarlo.spec import Spec, passes_specs
from cosim.verbs.montecarlo.store import CHIPS_FILE, RUN_FILE, check_run, read_store
from cosim.verbs.montecarlo.store import VERB as MONTECARLO
from cosim.verbs.simulate.samples import STACKED, UNDECIDED, SampleTable

Array = NDArray[np.float64]
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
    """The facts of a run: its folder, its verb and its settings.
    name: the folder as typed; settings: run.toml, None if missing; made: what the run's results say about its
    inputs."""

    folder: Path
    name: str
    verb: str
    settings: RunSettings | None
    made: Mapping[str, object]


@dataclass(frozen=True)
class DecisionRun:
    """A run of samples with decisions; tables: condition -> samples, "" being the condition of a run without --pvt."""

    facts: RunFacts
    tables: Mapping[str, SampleTable]


@dataclass(frozen=True)
class PowerRun:
    """A run of samples whose power was metered; figures: name such as `ngspice power cells` -> (n,), W.
    sums: checksums of the samples. See `tabulate_power` for the names."""

    facts: RunFacts
    indices: NDArray[np.int64]
    sums: NDArray[np.str_]
    figures: Mapping[str, Array]


@dataclass(frozen=True)
class ChipRun:
    """A Monte Carlo run: chips in the order of their numbers, and the samples that each chip saw.

    indices, y: of the samples in the test set, and their classes; specs: what a chip must do to count.
    """

    facts: RunFacts
    summary: ChipSummary
    records: tuple[ChipRecord, ...]
    indices: NDArray[np.int64]
    y: NDArray[np.int64]
    specs: tuple[Spec, ...] = ()

    @property
    def figures(self) -> list[Figures | None]:
        """Return the figures of every chip by the run's engine; None where the simulation failed."""
        return [record.outcome(self.summary.engine) for record in self.records]

    @property
    def passes(self) -> NDArray[np.bool_]:
        """Tell for each chip whether it counts by the run's specs, (chips,) bool."""
        return np.array([passes_specs(found, self.specs) for found in self.figures])


Run = DecisionRun | PowerRun | ChipRun


def read_run(folder: Path) -> Run:
    """Read the finished run in a folder.
    Raises InputError where the folder has none, or where it is unfinished, damaged, or of a verb that diff cannot
    compare."""
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
    content = read_sealed(folder / "design.json", _AGAIN, finite=False)
    if result.suffix == ".json":
        content |= read_sealed(result, _AGAIN, finite=False)
    _check_named(folder / "design.json", content)
    made = {key: content[key] for key in _MADE if key in content}
    facts = RunFacts(folder, name, "compare" if verb == "demo" else verb, read_settings(folder), made)
    if verb == "power":
        rows = read_sealed_arrays(folder / "power.npz", _POWER, _AGAIN)
        return PowerRun(
            facts, rows["indices"], rows["sums"], dict(zip(rows["figures"].tolist(), rows["power_w"], strict=True))
        )
    if result == pvt:
        return DecisionRun(facts, _tables(folder / "pvt.npz", _CONDITIONS))
    return DecisionRun(facts, _tables(folder / "simulation.npz", _SAMPLES))


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
    asked = {key: value for key, value in settings.items() if key not in ("devices", "design")}
    made = {**settings["design"], **asked, "chips": summary.chips}
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


def _check_named(path: Path, made: Mapping[str, object]) -> None:
    """Check that a run's files name its network, technology and calibration; raises InputError."""
    if missing := [name for name in _HASHES if not isinstance(made.get(name), str)]:
        raise InputError(f"{shown_path(path)}: must have the field {missing[0]}, a text; {_AGAIN}")


def _tables(path: Path, forms: Mapping[str, str]) -> dict[str, SampleTable]:
    """Read a run's samples from an .npz file: condition -> table; forms: name -> type and shape of each array.

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
    plain = {name: rows[name] for name in ("indices", "sums", "y", "lengths", "software", "tolerances")}

    def table(states: States | None = None, **stacked: NDArray[Any]) -> SampleTable:
        return SampleTable(
            **plain, **stacked, cells=tuple(rows["cells"].tolist()), engine=str(rows["engine"]), states=states
        )

    if "conditions" not in rows:
        return {"": table(rows["states"], **{key: rows[key] for key in STACKED})}
    names = enumerate(rows["conditions"].tolist())
    return {name: table(**{key: rows[key][k] for key in STACKED}) for k, name in names}


def _check_classes(path: Path, y: NDArray[Any]) -> None:
    """Check that a run's targets are classes. Raises InputError for real-valued targets, (n, outputs)."""
    if y.ndim != 1 or y.dtype.kind == "f":
        raise InputError(
            f"{shown_path(path)}: y must be classes, one for each sample, not real numbers; diff pairs "
            "decisions, so compare rmse in the comparison.json or summary.json of both runs"
        )
