"""Claims on files: one process at a time, and a folder by the verb that made it. A lock dies with its process.

What a user has put somewhere stays as it is: a folder that no verb has made is taken only where none of the names that
verbs write is there yet, and what is kept beside a file until it is whole goes into a hidden folder with our mark.
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


@contextmanager
def own_folder(folder: Path, verb: str) -> Generator[None, None, None]:
    """Make a run's own folder, or take one that is its verb's or nobody's, and keep other processes out.

    Where nothing is in it at the end, the mark goes, and so do the folders that were made for it.

    Raises InputError when it cannot be written, when another verb made it, when it holds files of such names that no
    verb wrote, or when a process writes there.
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
    """Remove the mark of a run's own folder, and folders made for it, inner first, as far as they are empty."""
    with suppress(OSError):
        marker.unlink()
        for folder in folders:
            folder.rmdir()


def work_folder(path: Path) -> Path:
    """Return the hidden folder beside a file, where what a run keeps for it stays until it is written whole."""
    return path.with_name(f".{path.stem}.cosim")


@contextmanager
def own_file(path: Path) -> Generator[None, None, None]:
    """Lock a file, and those of its name with another suffix, against other cosim processes that would write it.

    The file's `work_folder` is there meanwhile, and goes at the end where nothing is left in it. Raises InputError when
    the file cannot be written, when a process that asked before still runs, or when that folder is not ours.
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
    """Return where something is kept until a file is whole; of a file that is kept so itself, beside that."""
    return path.with_name(f"{path.stem}.{name}") if _is_kept(path) else work_folder(path) / name


def clear_work(path: Path) -> None:
    """Remove from the hidden folder beside the file `path` the .pt that a run kept there until that was written whole.

    Where `path` is itself in the work folder of another file, only what was kept for it is removed.
    """
    if _is_kept(path):
        found = path.parent.glob(f"{path.stem}.*.pt")
    else:
        found = work_folder(path).glob("*.pt") if _mark_of(work_folder(path)) == _BESIDE_FILE else ()
    for one in found:
        one.unlink()


def _is_kept(path: Path) -> bool:
    """Tell whether a file is in the `work_folder` of another, which its process holds."""
    return path.parent.name.startswith(".") and path.parent.name.endswith(".cosim")


def check_replaceable(files: Mapping[Path, Callable[[Path], bool]], option: str = "-o") -> None:
    """Check that files can be written, and that cosim has written those that are there, which each function says.

    Raises InputError; option: names the files in its message."""
    for path, is_own in files.items():
        check_writable(path)
        if is_replaced(path) and not is_own(path):
            raise InputError(
                f"{path}: cosim has not written it and would replace it; move it away, or choose another place with "
                f"{option}"
            )


def starts_with(*starts: bytes) -> Callable[[Path], bool]:
    """Return a function that says whether a file is empty or starts as one of a kind does that has no mark of ours."""

    def is_of_kind(path: Path) -> bool:
        try:
            with path.open("rb") as file:
                content = file.read(max(map(len, starts)))
        except OSError:
            return False
        return not content or content.startswith(starts)

    return is_of_kind


def check_owner(folder: Path, verb: str) -> None:
    """Check that a run's own folder can be written, is of no other verb, and has no files of a user to be replaced.

    Makes nothing. Raises InputError.
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
    """Tell whether a file or folder of this name is one that a verb writes into a run's own folder."""
    known = f"{_PAGE} {_RESULTS.get(verb, '')}".split()
    return any(fnmatchcase(name, pattern) for pattern in known)


def owner_of(folder: Path) -> str | None:
    """Return the verb that made a folder as its run's own; None where none did.

    Raises InputError where its mark is none of ours, and its files are no verb's.
    """
    known = next((verb for verb, names in _KNOWN_BY.items() if all((folder / name).exists() for name in names)), None)
    try:
        return _mark_of(folder) or known
    except InputError:
        if known is None:
            raise
        return known  # a damaged mark costs no results


def _mark_of(folder: Path) -> str | None:
    """Return the verb in the mark of a run's own folder; None without a mark, or where a crash left it empty.

    Raises InputError for a marker that holds anything else.
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
    """Return the names in a folder that a run would take as its own; none where it does not exist."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def _claim(folder: Path, owner: str, refusal: str) -> int:
    """Make and mark a folder and return an open descriptor that holds it.

    Raises InputError, with `refusal` where another process holds it.
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
    """Return an open descriptor that holds the lock. Raises InputError with `refusal` where another process has it."""
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
