"""Command `cosim verify`: check the files that a folder keeps against their checksums."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.settings import SETTINGS_FILE
from cosim.cli.session import VerbSession
from cosim.cli.settings import say_version
from cosim.cli.verb import FILE, Result, argument, verb

KEPT = (
    "comparison.json", "pvt.json", "power.json", "trim.json", "design.json", "sweep.json", "explore.json",
    "harden.json", "signoff.json", "page.json", "diff.json", "search.json", "simulation.npz", "pvt.npz", "power.npz",
    "wires.csv", "positions.csv",
)  # fmt: skip
_WITHIN = ("sweep", "explore", "harden", "signoff")  # have runs in folders of their own
AGAIN = "the same command writes it again"


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """Options of `cosim verify`: the folder of a verb."""

    folder: Path = argument("FOLDER", FILE)


def run(options: VerifyOptions, session: VerbSession) -> Result:
    """Check the files that a verb keeps in FOLDER against their checksums; nothing is changed or run.

    FOLDER is the store of montecarlo or datasheet, or a folder of compile, layout, simulate, compare, power, trim,
    characterize or demo, or that of sweep, explore, harden or signoff with all that is in it. The exit status is 1 if
    anything is damaged.
    """
    from cosim.base.settings import read_settings

    folder = options.folder
    rows = list(check_kept(folder))
    if not rows:
        raise InputError(f"{folder}: holds nothing with a checksum; give a folder that a verb has written")
    width = max(len(name) for name, _ in rows)
    for name, fault in rows:
        session.echo(f"{name:{width}}  {f'damaged  {fault}' if fault else 'whole'}")
    with suppress(InputError):  # it stands in the rows
        say_version(folder, read_settings(folder))
    rests = [
        f"{rest.relative_to(folder)}: {rest.stat().st_size} bytes left by a killed process; may be deleted"
        for rest in rests_in(folder)
    ]
    return Result(lines=rests, fault="" if any(fault for _, fault in rows) else None)


def rests_in(folder: Path) -> Iterator[Path]:
    """Yield the unfinished files that killed processes left in a folder and its direct subfolders."""
    from cosim.base.write import find_rests

    for place in (folder, *sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())):
        yield from find_rests(place)


def check_kept(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (file, fault) for each file that a folder keeps; the fault is '' for a whole file.

    Else it says what is wrong, and what a verb will do about it.
    """
    from cosim.base.claim import owner_of
    from cosim.base.settings import read_settings
    from cosim.base.store import INFERENCES, damaged_results
    from cosim.base.text import is_file

    owner = owner_of(folder)
    if owner == "montecarlo":
        yield from check_store(folder)
    if owner == "datasheet":
        yield from check_chips(folder)
    for point in sorted(one for one in folder.iterdir() if one.is_dir()) if owner in _WITHIN else ():
        if point.name in (INFERENCES, "failed"):
            continue
        yield from ((f"{point.name}/{name}", fault) for name, fault in check_kept(point))
    for name in KEPT:
        if is_file(folder / name):
            yield name, _fault_of(folder / name)
    try:
        read_settings(folder)
    except InputError as error:
        yield SETTINGS_FILE, str(error)
    count, damaged = damaged_results(folder / INFERENCES)
    if count:
        fault = f"{len(damaged)} of {count}, {_some(damaged)}: the same command measures them anew" if damaged else ""
        yield INFERENCES, fault


def check_chips(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (file, fault) for the files from which a datasheet's run continues. The fault is '' for a whole file."""
    from cosim.base.store import RecordStore, settings_key
    from cosim.verbs.datasheet.command import CHIPS_FILE, RUN_FILE
    from cosim.verbs.datasheet.study import chip_records
    from cosim.verbs.montecarlo.store import read_sealed

    fault = _fault_of(folder / RUN_FILE)
    yield RUN_FILE, fault
    if fault:
        yield CHIPS_FILE, f"not to be told without {RUN_FILE}"
        return
    settings = read_sealed(folder / RUN_FILE)
    kept = RecordStore(folder / CHIPS_FILE, settings_key(settings), chip_records(len(settings.get("measures", ()))))
    fault = f"{len(kept.damaged)} of {kept.lines} records: the same command measures them anew"
    yield CHIPS_FILE, fault if kept.damaged else ""


def check_store(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (file, fault) for the files that a Monte Carlo run needs to continue, replay or make its page.
    The fault is '' for a whole file."""
    from cosim.base.text import is_file
    from cosim.verbs.montecarlo.keep import (
        CALIBRATION_FILE,
        NETWORK_FILE,
        SAMPLES_FILE,
        TRIAL_FILE,
        damaged_files,
        read_trial_file,
    )
    from cosim.verbs.montecarlo.run import CONTRIBUTIONS_FILE, SUMMARY_FILE
    from cosim.verbs.montecarlo.store import CHIPS_FILE, RUN_FILE, read_chips, read_sealed

    fault = _fault_of(folder / RUN_FILE)
    yield RUN_FILE, fault
    if fault:
        yield CHIPS_FILE, f"not to be told without {RUN_FILE}"
    else:
        kept = read_chips(folder, read_sealed(folder / RUN_FILE))
        lines = _some([f"line {number}" for number in kept.damaged])
        fault = f"{len(kept.damaged)} of {kept.lines} records, {lines}: the same command measures them anew"
        yield CHIPS_FILE, fault if kept.damaged else ""
    damaged: list[str] = []
    try:
        damaged, fault = damaged_files(folder, read_trial_file(folder).sums), ""
    except InputError as error:
        fault = str(error)
    yield TRIAL_FILE, fault and AGAIN
    for name in (NETWORK_FILE, SAMPLES_FILE, CALIBRATION_FILE):
        yield name, f"not to be told without {TRIAL_FILE}" if fault else AGAIN if name in damaged else ""
    for name in (SUMMARY_FILE, CONTRIBUTIONS_FILE):
        if is_file(folder / name):
            yield name, _fault_of(folder / name)


def _fault_of(path: Path) -> str:
    """Return what will happen to a damaged or missing file; '' for a whole one."""
    from cosim.base.seal import is_whole, read_sealed, read_sealed_text

    try:
        match path.suffix:
            case ".npz":
                return "" if is_whole(path) else AGAIN
            case ".csv":
                read_sealed_text(path, AGAIN)
            case _:
                read_sealed(path, AGAIN, finite=False)
    except InputError:
        return AGAIN
    return ""


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


command = verb(VerifyOptions, run)
