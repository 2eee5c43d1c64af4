"""Inputs of a Monte Carlo run, kept in its folder, from which its trial can be built again on another machine.

    network.npz       the network's checkpoint, with its labels, epsilons and state ranges
    samples.npz       x, y, lengths and indices of the test samples that every chip saw
    calibration.json  calibration of the technology that the network was compiled with
    trial.json        technology, conditions, compile options, what varies

Nothing in these files is executed. trial.json has a checksum of each of the four files, itself included. A trial that
is built from them is compared with run.json; where the two differ, it is refused.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.arrays import memory_limit, memory_of, read_arrays
from cosim.base.bounds import AREA, COMPARATOR_DEVICES, I_UNIT, TAU
from cosim.base.errors import InputError
from cosim.base.seal import checksum, seal_json
from cosim.base.store import check_settings, find_difference
from cosim.base.text import JSON_LIMIT, check_known, check_plain, is_file, open_file, read_bytes, shown_path, typed
from cosim.base.version import __version__
from cosim.base.write import write_together
from cosim.circuit.elements import Mos
from cosim.circuit.waveforms import Timing
from cosim.compiler.design import Condition, Design
from cosim.compiler.edited import EditedNetlist
from cosim.compiler.overrides import Overrides
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings, parse_around
from cosim.engines.table import BEHAVIORAL, engines
from cosim.exchange.checkpoint import checkpoint_bytes, load_network
from cosim.network.types import Network
from cosim.tasks.target import check_tolerance
from cosim.tasks.testset import TestSet, check_test_set
from cosim.technology.calibration import format_calibration, parse_calibration
from cosim.technology.catalog import load_technology
from cosim.technology.conditions import at
from cosim.technology.types import Technology
from cosim.units.epsilon import Circuit as Cell
from cosim.variation.draws import Gradient, VariationPlan
from cosim.variation.noise import NoiseSimulation
from cosim.verbs.calibrate.chip import find_chip
from cosim.verbs.calibrate.fingerprint import calibration_fingerprint
from cosim.verbs.calibrate.noise import find_noise
from cosim.verbs.montecarlo.run import run_settings
from cosim.verbs.montecarlo.store import RUN_FILE, check_run, open_store, read_sealed, read_store
from cosim.verbs.montecarlo.trial import Trial

TRIAL_FILE, NETWORK_FILE, SAMPLES_FILE = "trial.json", "network.npz", "samples.npz"
CALIBRATION_FILE = "calibration.json"
FORMAT = 2
_MOST_UNITS = 1000  # of a pedestal, and rungs of headroom: far beyond what any cell holds
_REPAIR = "the command that made the run writes it again"
_ARRAYS = ("x", "y", "lengths", "indices")
_TOLERANCE = "tolerance"  # of real-valued targets
_FREE = ("cosim", "made_with", "engine", "simulator")  # of run.json: what may differ, or what the trial is given


@dataclass(frozen=True)
class _Conditions:
    corner: str
    celsius: float
    supply: float


@dataclass(frozen=True)
class _Compile:
    i_unit: float
    pedestal: float
    saturate: bool
    cell: Cell
    headroom: int
    tau: float | None
    comparator_devices: int = 1
    overrides: Overrides = Overrides()
    netlist: EditedNetlist | None = None


@dataclass(frozen=True)
class KeptTrial:
    """The content of trial.json: everything of a Monte Carlo run's trial but network, samples and calibration.

    sums: name of each of these files -> checksum; noise: seed of the noise, None without noise; gradient: across the
    die; around: blocks of the chip, as given to --with; name: of the network, shown on pages.
    """

    format: int
    technology: str
    pdk_root: str | None
    conditions: _Conditions
    t_step_s: float
    compile: _Compile
    engine: str
    plan: VariationPlan
    sums: dict[str, str]
    noise: int | None = None  # its seed
    gradient: Gradient | None = None
    around: str | None = None  # blocks of the chip, as --with has them
    name: str = ""  # of the network, on pages


def pack_samples(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a trial's samples as the bytes of an .npz file, compressed unless a reader would refuse the result.

    A reader refuses a file whose arrays take far more memory than the file's size suggests (`memory_limit`).
    """
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # pyright: ignore[reportArgumentType] - its stub knows keywords of its own
    if sum(memory_of(one.itemsize, one.size) for one in arrays.values()) > memory_limit(content.tell()):
        content = io.BytesIO()
        np.savez(content, **arrays)  # pyright: ignore[reportArgumentType]
    return content.getvalue()


def keep_trial(folder: Path, trial: Trial, technology: str, pdk_root: Path | None = None) -> None:
    """Write the files that `load_trial` needs into the folder of a run; the same trial gives the same bytes.

    technology, pdk_root: name or file, and folder of the kits, from which the trial's technology was loaded. Raises
    InputError when the folder cannot be written.
    """
    design, settings = trial.design, trial.design.settings
    found = {name: getattr(trial.test_set, name) for name in (*_ARRAYS, _TOLERANCE)}
    samples = pack_samples({name: np.asarray(value) for name, value in found.items() if value is not None})
    files = {
        NETWORK_FILE: checkpoint_bytes(design.network, ".npz", str(folder / NETWORK_FILE)),
        SAMPLES_FILE: samples,
        CALIBRATION_FILE: format_calibration(design.calibration).encode(),
    }
    sums = {name: checksum(file) for name, file in files.items()}
    kept = KeptTrial(
        format=FORMAT,
        technology=str(Path(technology).resolve()) if technology.endswith(".toml") else technology,
        pdk_root=None if pdk_root is None else str(pdk_root.resolve()),
        conditions=_Conditions(trial.technology.corner, trial.technology.celsius, trial.technology.supply),
        t_step_s=trial.timing.t_step,
        compile=_Compile(
            settings.i_unit,
            settings.pedestal,
            settings.saturate,
            settings.cell,
            settings.headroom,
            settings.tau,
            settings.comparator_devices,
            settings.overrides,
            settings.netlist,
        ),
        engine=trial.engine,
        plan=trial.plan,
        sums=sums,
        noise=None if trial.noise is None else trial.noise.seed,
        gradient=trial.gradient,
        around=",".join(settings.around) or None,
        name=design.network.name,
    )
    files[TRIAL_FILE] = seal_json(kept)
    write_together({folder / name: file for name, file in files.items()})


@dataclass(frozen=True)
class Places:
    """Current places of the foundry kits and of the run's technology file (.toml), None for those in trial.json."""

    pdk_root: Path | None = None
    technology: Path | None = None


def load_trial(folder: Path, places: Places = Places()) -> Trial:
    """Build the trial of a Monte Carlo run again, from the files in its folder, without a simulator.

    Raises InputError where a file is missing or damaged, and where the result is not the trial of run.json.
    """
    settings, _ = read_store(folder)
    check_run(folder, settings)
    kept = read_kept(folder)
    process = _technology(folder, kept, places)
    design = _design(folder, kept, process)
    condition = Condition(at(process, **vars(kept.conditions)))
    samples, timing = _samples(folder, design.network), Timing(t_step=kept.t_step_s)
    noise = None if kept.noise is None else NoiseSimulation(find_noise(process), kept.noise)
    _check_places(folder, kept, design)
    trial = Trial(design, samples, kept.plan, kept.engine, timing, condition, noise, kept.gradient)
    rebuilt = run_settings(replace(trial, engine=BEHAVIORAL))
    known, again = ({key: value for key, value in one.items() if key not in _FREE} for one in (settings, rebuilt))
    if (found := find_difference(known, again)) is not None:
        where, wanted, got = found
        raise InputError(
            f"{folder}: what is kept there gives another {where} than {wanted}, that of its run: {got}; it was run by "
            f"cosim {settings.get('cosim')}, this is {__version__}: use that, or run the chips again"
        )
    return trial


def read_kept(folder: Path) -> KeptTrial:
    """Read trial.json of a Monte Carlo run, and verify the checksums of the files next to it.

    Raises InputError where one of these files is missing or damaged, or trial.json is of another format.
    """
    kept = read_trial_file(folder)
    if damaged := damaged_files(folder, kept.sums):
        raise InputError(
            f"{folder / damaged[0]}: missing or damaged, its checksum is not the one in {TRIAL_FILE}; {_REPAIR}"
        )
    return kept


def read_trial_file(folder: Path) -> KeptTrial:
    """Read trial.json of a Monte Carlo run, without a look at the files next to it.

    Raises InputError where trial.json is missing, damaged or of another format.
    """
    path = folder / TRIAL_FILE
    try:
        content = read_sealed(path)
    except FileNotFoundError:
        raise InputError(
            f"{folder}: {TRIAL_FILE} is missing; the command that made the run adds it, without running a chip again"
        ) from None
    if content.get("format") != FORMAT:
        raise InputError(f"{path}: must be of format {FORMAT}; use the cosim that wrote it")
    check_known(check_plain(content, str(path), _REPAIR), KeptTrial, str(path), _REPAIR)
    kept = typed(content, KeptTrial, str(path), _REPAIR)
    _check_values(kept, str(path))
    return kept


def _check_values(kept: KeptTrial, where: str) -> None:
    plan, made = kept.plan, kept.compile
    rules = {
        "technology must be printable text": f"{kept.technology}{kept.pdk_root}".isprintable(),
        "name must be printable text": kept.name.isprintable(),
        f"sums must name {NETWORK_FILE}, {SAMPLES_FILE} and {CALIBRATION_FILE}": set(kept.sums)
        == {NETWORK_FILE, SAMPLES_FILE, CALIBRATION_FILE},
        f"engine must be one of {', '.join(entry.name for entry in engines())}": any(
            kept.engine == entry.name for entry in engines()
        ),
        "plan must draw 1 chip or more, in at most as many replicates": 1 <= plan.replicates <= plan.chips,
        f"plan.area must lie in {AREA}": plan.area in AREA,
        f"compile.i_unit must lie in {I_UNIT}": made.i_unit in I_UNIT,
        "compile.pedestal must be 0 or more": 0 <= made.pedestal < _MOST_UNITS,
        f"compile.tau must lie in {TAU}": made.tau is None or made.tau in TAU,
        "compile.headroom must be 0 or more": 0 <= made.headroom < _MOST_UNITS,
        f"compile.comparator_devices must lie in {COMPARATOR_DEVICES}": made.comparator_devices in COMPARATOR_DEVICES,
    }
    if fault := next((text for text, holds in rules.items() if not holds), None):
        raise InputError(f"{where}: {fault}; {_REPAIR}")


def _check_places(folder: Path, kept: KeptTrial, design: Design) -> None:
    names = {element.name for element in design.flat.elements if isinstance(element, Mos)}
    if kept.gradient is not None and (lacking := sorted(names - kept.gradient.places.keys())):
        raise InputError(f"{folder / TRIAL_FILE}: gradient.places must have {lacking[0]}; {_REPAIR}")


def damaged_files(folder: Path, sums: Mapping[str, str]) -> list[str]:
    """Return the names of the files in a run's folder that are missing, or whose checksum differs from `sums`."""
    return [name for name, wanted in sums.items() if _sum_of(folder / name) != wanted]


def _sum_of(path: Path) -> str | None:
    if not is_file(path):
        return None
    with open_file(path, "choose another run") as file:
        return checksum(file.read())


def _technology(folder: Path, kept: KeptTrial, places: Places) -> Technology:
    name, pdk_root, own = kept.technology, places.pdk_root, places.technology
    if own is None and name.endswith(".toml") and not is_file(Path(name)):
        raise InputError(f"{folder}: its technology {name} is not there any more; say where it is with --technology")
    if pdk_root is None and kept.pdk_root is not None and Path(kept.pdk_root).is_dir():
        pdk_root = Path(kept.pdk_root)
    return load_technology(str(own or name), pdk_root)


def _design(folder: Path, kept: KeptTrial, process: Technology) -> Design:
    network = replace(load_network(folder / NETWORK_FILE), name=kept.name)
    kept_at = folder / CALIBRATION_FILE
    calibration = parse_calibration(read_bytes(kept_at, JSON_LIMIT, _REPAIR), str(kept_at))  # trial.json has its sum
    if calibration_fingerprint(process, calibration.units) != calibration.fingerprint:
        raise InputError(
            f"{folder}: {process.name} has other devices or cells than those that its run was calibrated with; give "
            "the technology's files of that time, or run the chips again"
        )
    origin = str(folder / NETWORK_FILE)
    around = parse_around(kept.around)
    fit = find_chip(process) if around else None
    settings = CompilerSettings(**vars(kept.compile), t_step=kept.t_step_s, around=around, fit=fit)
    return compile_network(network, process, calibration, settings, origin)


def _samples(folder: Path, network: Network) -> TestSet:
    path = folder / SAMPLES_FILE
    arrays = read_arrays(path, "run the chips again", (*_ARRAYS, _TOLERANCE))
    real = arrays.pop(_TOLERANCE, None)
    wanted = dict.fromkeys(_ARRAYS, (1, np.int64)) | {"x": (3, np.float64)}
    if real is not None:
        wanted["y"] = (2, np.float64)
    forms = {name: (array.ndim, array.dtype) for name, array in arrays.items()}
    if forms != wanted or (real is not None and real.shape != ()):
        raise InputError(f"{path}: must hold x (samples, time, features), y, lengths and indices; run the chips again")
    if len({len(array) for array in arrays.values()}) > 1:
        raise InputError(f"{path}: must hold one of each of {', '.join(_ARRAYS)} per sample; run the chips again")
    samples = TestSet(arrays["x"], arrays["y"], arrays["lengths"], arrays["indices"])
    samples = replace(samples, tolerance=None if real is None else check_tolerance(float(real), f"{path}: tolerance"))
    check_test_set(samples, network, str(path))
    return samples


_SHOWN = 6


def merge_stores(folders: Sequence[Path], output: Path) -> int:
    """Join the chips of all folders (shards of one Monte Carlo run) in the folder `output`; return their number.

    Raises InputError where folders are of different runs or have different records of one chip, or where a chip is
    missing.
    """
    first, *others = folders
    settings, records = read_store(first)
    chips = read_kept(first).plan.chips
    for folder in others:
        known, more = read_store(folder)
        check_settings(folder, known, settings)
        if twice := [number for number in records.keys() & more.keys() if records[number] != more[number]]:
            raise InputError(
                f"{shown_path(folder / RUN_FILE)}: chip {min(twice)} is another one than in the folders before it; "
                "leave one of them out"
            )
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
