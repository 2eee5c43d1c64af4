"""Claims on files and folders: one process at a time writes, and a folder belongs to the verb (command) that made it.

A lock ends with its process. Files of a user stay as they are: a verb takes a folder that no verb has made only if the
folder has no file of a name that the verb writes. While a file is not yet complete, data for it are kept beside it, in
a hidden folder with our mark.
"""

import fcntl
import os
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.write import check_folder, check_writable, is_replaced, make_folder, sync_folder, writing_into

MARKER = ".cosim"  # in a folder: says which verb made it, and is locked while that writes
_MARK = re.compile(r"([a-z]{1,20})\n")
_BESIDE_FILE = "train"  # marks the hidden folder beside a file, in which its training keeps what it has
_KNOWN_BY = {  # without a marker, as older versions left it: a folder that holds all of these is this verb's
    "montecarlo": ("chips.jsonl",),
    "demo": ("model.pt", "netlist", "comparison.json"),
    "compare": ("comparison.json",),
    "simulate": ("simulation.npz", "inferences"),
    "power": ("power.json",),
    "trim": ("trim.json",),
    "compile": ("mapping.csv", "design.json"),
}
# names of the files and folders that each verb writes into its folder, so that no other file is replaced; folders of
# runs within a run, such as the points of a sweep, belong to the verb that runs there
_PAGE = "run.toml page.json report.html"
_SAMPLES = "design.json inferences failed simulation.npz waveforms.png"
_COMPARED = f"{_SAMPLES} comparison.json confusion.png values.png"
_NETLIST = (
    "network.sp network.scs network.inc devices.lib devices.scs devices.inc testbench.sp testbench.scs testbench.sim "
    "start.sp expected.csv mapping.csv mapping.json design.json network.svg margins.json partitions.json "
    "xschem"
)
_RESULTS = {
    "characterize": "inferences failed *_*C_*V.png",
    "compare": f"{_COMPARED} pvt.json pvt.npz pvt.png partitions.json",
    "compile": _NETLIST,
    "datasheet": "run.json chips.jsonl datasheet_chips.csv datasheet_conditions.csv datasheet_worst.sp datasheet.md",
    "demo": f"{_COMPARED} model.pt netlist .model.cosim",
    "diff": "diff.html diff.json",
    "explore": "explore.json explore.csv explore.png explore.svg search.json trials.jsonl transistors.jsonl "
    "technologies",
    "harden": "run.json harden.json harden.png harden.svg network.pt overrides.toml overrides trained.pt "
    "trained.run.toml trained_curve.csv trained_curve.svg .trained.cosim",
    "layout": "layout.gds layout.gds.gz layout.json layout.png layout.svg lvs.sp hierarchy.sp wires.csv positions.csv "
    "couplings.csv pins.csv area.csv resistance.csv violations.csv checks.json checks cells",
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


@contextmanager
def own_folder(folder: Path, verb: str) -> Generator[None, None, None]:
    """Claim a run's folder for a verb while a `with` block runs: make it if need be, and keep other processes out.

    If the folder is empty at the end, the mark is removed, and so are the folders that were made for it.

    Raises InputError if the folder cannot be written, if another verb made it, if it has a user's file of a name that
    the verb writes, or if another process writes there.
    """
    check_owner(folder, verb)
    mine, made = (folder / MARKER).exists(), make_folder(folder)
    marker = _claim(
        folder, verb, f"{folder}: another process writes there; wait for it, or choose another folder with -o"
    )
    try:
        yield
    finally:
        if not mine and os.listdir(folder) == [MARKER]:
            _remove(folder / MARKER, made)
        os.close(marker)


def _remove(marker: Path, folders: list[Path]) -> None:
    """Remove the mark of a run's folder, then the folders made for it, inner first, as long as they are empty."""
    with suppress(OSError):
        marker.unlink()
        for folder in folders:
            folder.rmdir()


def work_folder(path: Path) -> Path:
    """Return the hidden folder beside the file `path` in which a run keeps data until that file is complete."""
    return path.with_name(f".{path.stem}.cosim")


@contextmanager
def own_file(path: Path) -> Generator[None, None, None]:
    """Lock the file `path`, and files of its name with another suffix, against writing by other cosim processes.

    The lock lasts while a `with` block runs. The file's `work_folder` exists meanwhile, and is removed at the end if it
    is empty. Raises InputError if the file cannot be written, another process holds the lock, or that folder is not
    ours.
    """
    check_writable(path)
    if _is_kept(path):
        yield
        return
    folder = work_folder(path)
    if (mark := _mark_of(folder)) not in (None, _BESIDE_FILE) or (mark is None and set(_holds(folder)) - {MARKER}):
        raise InputError(f"{folder}: must be free for the training of {path.name}; move it away, or choose another -o")
    marker = _claim(
        folder, _BESIDE_FILE, f"{path}: another process writes it; wait for it, or choose another file with -o"
    )
    try:
        yield
    finally:
        if _holds(folder) == [MARKER]:
            _remove(folder / MARKER, [folder])
        os.close(marker)


def work_path(path: Path, name: str) -> Path:
    """Return where data named `name` are kept until the file `path` is complete: in the `work_folder` of that file.

    If `path` is itself in a work folder, the data are kept beside it.
    """
    return path.with_name(f"{path.stem}.{name}") if _is_kept(path) else work_folder(path) / name


def clear_work(path: Path) -> None:
    """Remove the .pt files that a run kept in the `work_folder` of the file `path` until that file was complete.

    If `path` is itself in a work folder, only those that were kept for it are removed.
    """
    if _is_kept(path):
        found = path.parent.glob(f"{path.stem}.*.pt")
    else:
        found = work_folder(path).glob("*.pt") if _mark_of(work_folder(path)) == _BESIDE_FILE else ()
    for one in found:
        one.unlink()


def _is_kept(path: Path) -> bool:
    """Tell whether a file is in the `work_folder` of another file, which the other file's process holds."""
    return path.parent.name.startswith(".") and path.parent.name.endswith(".cosim")


def check_replaceable(files: Mapping[Path, Callable[[Path], bool]], option: str = "-o") -> None:
    """Raise InputError if a file cannot be written, or exists and was not written by cosim.

    files: path -> function that tells whether cosim wrote that file; option: names the files in the message.
    """
    for path, is_own in files.items():
        check_writable(path)
        if is_replaced(path) and not is_own(path):
            raise InputError(
                f"{path}: cosim has not written it and would replace it; move it away, or choose another place with "
                f"{option}"
            )


def starts_with(*starts: bytes) -> Callable[[Path], bool]:
    """Return a function that tells whether a file is empty or begins with one of these bytes.

    It recognises kinds of file in which cosim leaves no mark, for `check_replaceable`.
    """

    def is_of_kind(path: Path) -> bool:
        try:
            with path.open("rb") as file:
                content = file.read(max(map(len, starts)))
        except OSError:
            return False
        return not content or content.startswith(starts)

    return is_of_kind


def check_owner(folder: Path, verb: str) -> None:
    """Raise InputError if a run's folder cannot be written, is another verb's, or has files of a user to be replaced.

    Nothing is written or made.
    """
    check_folder(folder)
    owner = owner_of(folder)
    if owner not in (None, verb):
        raise InputError(f"{folder}: belongs to cosim {owner}; choose another folder with -o")
    if owner is None and (theirs := next((name for name in _holds(folder) if is_result(name, verb)), None)):
        raise InputError(
            f"{folder / theirs}: no verb of cosim wrote it, and cosim {verb} may replace it; move it away, or choose "
            "another folder with -o"
        )


def is_result(name: str, verb: str) -> bool:
    """Tell whether a verb writes a file or folder of this name into a run's folder."""
    known = f"{_PAGE} {_RESULTS.get(verb, '')}".split()
    return any(fnmatchcase(name, pattern) for pattern in known)


def owner_of(folder: Path) -> str | None:
    """Return the verb that made a run's folder, by its mark or its files; None if no verb did.

    Raises InputError if the mark is damaged and the files are no verb's.
    """
    known = next((verb for verb, names in _KNOWN_BY.items() if all((folder / name).exists() for name in names)), None)
    try:
        return _mark_of(folder) or known
    except InputError:
        if known is None:
            raise
        return known  # a damaged mark costs no results


def _mark_of(folder: Path) -> str | None:
    """Return the verb that the mark in a run's folder names; None without a mark, or if a crash left the mark empty.

    Raises InputError for a mark with any other content.
    """
    marker = folder / MARKER
    try:
        content = marker.read_bytes()[:100]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (OSError, ValueError):
        content = b"?"
    found = _MARK.fullmatch(content.decode("ascii", "replace"))
    if content and found is None:
        raise InputError(f"{marker}: must hold the name of the verb that made the folder; choose another folder")
    return found[1] if found else None


def _holds(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none if the folder does not exist."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def _claim(folder: Path, owner: str, refusal: str) -> int:
    """Make a folder and mark it as `owner`'s; return an open descriptor that holds the lock of the mark.

    Raises InputError, with the text `refusal`, if another process holds the lock.
    """
    while True:
        make_folder(folder)
        with writing_into(folder), suppress(FileNotFoundError):  # its holder has removed the folder meanwhile
            marker = _lock(folder / MARKER, refusal)
            try:
                text = f"{owner}\n".encode()
                if os.pread(marker, len(text) + 1, 0) != text:  # none yet, or damaged
                    os.ftruncate(marker, os.pwrite(marker, text, 0))
                    os.fsync(marker)
                    sync_folder(folder)
            except BaseException:
                os.close(marker)
                raise
            return marker


def _lock(path: Path, refusal: str) -> int:
    """Return an open descriptor that holds a file's lock. Raises InputError(refusal) if another process holds it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(handle)):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise InputError(refusal) from None
        os.close(handle)  # its holder has removed it meanwhile
