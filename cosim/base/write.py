"""Safe writing: a file is either complete or as it was before, and is on the disk when the function returns.

A link stays, and the file that it names is replaced; a file keeps owner and mode; a device, FIFO or terminal is written
into. New content is first written beside its target under a name of `partial_path`. A writer holds a shared lock on the
folder meanwhile. So partial files in a folder that nobody has locked are left by a killed process, and are removed when
their target is next written.
"""

import errno
import fcntl
import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from cosim.base.errors import InputError

_REPAIRS = {
    errno.ENOSPC: "make room there, or choose another place",
    errno.EDQUOT: "make room there, or choose another place",
    errno.EACCES: "choose another place, or change its permissions",
    errno.EPERM: "choose another place, or change its permissions",
}
_PARTIAL = re.compile(r"\.(cosim-)?[0-9a-f]{16}(-[0-9]+)?\.partial")  # without cosim: of earlier versions
_ATTEMPTS, _PAUSE = 10, 1e-3  # s, for the lock of a folder, which whoever removes rests holds for less than that
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF)  # of a folder: its file system or mode has none


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step, so that a reader sees the old or the new content, never a part.

    Raises InputError if it cannot be written.
    """
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write all of these files or none: all are complete on the disk before the first gets its name.

    Raises InputError that names the file that cannot be written.
    """
    targets: dict[Path, Path] = {}
    through: list[Path] = []
    staged: dict[Path, Path] = {}
    for path in contents:
        with _naming(path):
            if (target := _replaceable(path)) is None:
                through.append(path)
            else:
                targets[path] = target
    with _staging(targets.values()):
        try:
            for path, target in targets.items():
                with _naming(path):
                    staged[target] = _stage(target, contents[path])
            for target, temporary in staged.items():
                with _naming(target):
                    os.replace(temporary, target)
            for folder in {target.parent for target in staged}:
                with _naming(folder):
                    sync_folder(folder)
        except BaseException:
            for temporary in staged.values():
                temporary.unlink(missing_ok=True)
            raise
    for path in through:
        with _naming(path):
            _write_into(path, contents[path])


def is_replaced(path: Path) -> bool:
    """Tell whether writing to a path would replace an existing file; False for a device, which is written into."""
    with _naming(path):
        return path.exists() and _replaceable(path) is not None


def check_writable(path: Path, size: int = 1) -> None:
    """Raise InputError if a file of `size` bytes cannot be written at `path`; nothing remains of the attempt."""
    with _naming(path):
        if (target := _replaceable(path)) is not None:
            with _staging([target]):
                _stage(target, bytes(size)).unlink()
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and its parents, on the disk when this returns; return those that are new, inner first.

    Raises InputError if one cannot be made.
    """
    with writing_into(folder):
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for one in missing:
            sync_folder(one.parent)
    return missing


def check_folder(folder: Path) -> None:
    """Raise InputError if a folder cannot be made or written into; nothing remains of the attempt."""
    with writing_into(folder):
        with suppress(FileNotFoundError, NotADirectoryError):
            folder.stat()
        there = next(one for one in (folder, *folder.parents) if one.exists())
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        with _staging([there / "probe"]):
            _stage(there / "probe", b"0").unlink()


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk; before that a power cut may undo a creation or renaming."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def partial_path(target: Path, number: int = 0) -> Path:
    """Return the path at which a file's content waits until it is complete; number: of concurrent writers."""
    name = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    return target.with_name(f".cosim-{name}{f'-{number}' if number else ''}.partial")


def find_rests(folder: Path) -> list[Path]:
    """Return the partial files that killed processes left in a folder; none while another process writes there."""
    if not (found := sorted(one for one in folder.iterdir() if _PARTIAL.fullmatch(one.name) and _is_plain(one))):
        return []
    with _locked(folder, fcntl.LOCK_EX) as alone:
        return found if alone else []


@contextmanager
def writing_into(folder: Path) -> Generator[None, None, None]:
    """Raise InputError with the system's reason if a `with` block fails to write into the folder of a run."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write into {folder}: {error.strerror}; choose another folder with -o") from None
    except ValueError as error:  # a null byte
        raise InputError(f"{str(folder)!r} cannot be the name of a folder: {error}") from None


@contextmanager
def _naming(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        repair = _REPAIRS.get(error.errno or 0, "choose another place")
        raise InputError(f"cannot write {path}: {error.strerror or error}; {repair}") from None
    except ValueError as error:  # a null byte
        raise InputError(f"{str(path)!r} cannot be the name of a file: {error}") from None


def _replaceable(path: Path) -> Path | None:
    """Return the file that writing to `path` replaces, behind all links; None for a device or pipe.

    Raises InputError if its folder is missing, OSError if it is a folder or read-only.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise InputError(
                f"cannot write {path}: the folder {target.parent if path.is_symlink() else path.parent} must exist; "
                "create it, or choose another place"
            ) from None
        return target
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode) or _own_output(found) is not None:
        return None
    os.close(os.open(path, os.O_WRONLY))  # who made a file read-only wants to keep it
    return Path(os.path.realpath(path))


@contextmanager
def _staging(targets: Iterable[Path]) -> Generator[None, None, None]:
    """Lock the folders of target files while a `with` block stages new ones, after removing leftovers.

    Leftovers are the partial files of killed processes.
    """
    folders: dict[Path, list[Path]] = {}
    for target in targets:
        folders.setdefault(target.parent, []).append(target)
    with ExitStack() as held:
        for folder, own in folders.items():
            rests = [one for target in own for one in (partial_path(target), partial_path(target, 1)) if _is_plain(one)]
            if rests:
                with _locked(folder, fcntl.LOCK_EX) as alone:
                    for one in rests if alone else ():
                        with suppress(OSError):
                            one.unlink(missing_ok=True)
            held.enter_context(_locked(folder, fcntl.LOCK_SH))
        yield


@contextmanager
def _locked(folder: Path, kind: int) -> Generator[bool, None, None]:
    """Lock a folder while a `with` block runs, and yield whether that worked; wait only briefly for the lock.

    A lock that cannot be had is no error, because anybody may hold a flock(1) on the folder.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        yield _lock(handle, kind)
    finally:
        os.close(handle)


def _lock(handle: int, kind: int) -> bool:
    for attempt in range(_ATTEMPTS):
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_PAUSE)
        except OSError:  # a file system without locks
            return False
        else:
            return True
    return False


def _is_plain(path: Path) -> bool:
    """Tell whether the path is a regular file and no link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _stage(target: Path, content: bytes) -> Path:
    """Write content to the disk under a partial name beside its target, and return that path.

    The file has the target's owner and mode if the target exists.
    """
    temporary, handle = _open_new(target)
    try:
        with os.fdopen(handle, "wb") as file:
            if target.exists():
                there = target.stat()
                with suppress(PermissionError):  # only root may give a file away
                    os.fchown(handle, there.st_uid, there.st_gid)
                os.fchmod(handle, stat.S_IMODE(there.st_mode))
            file.write(content)
            file.flush()
            os.fsync(handle)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _open_new(target: Path) -> tuple[Path, int]:
    """Open a new file for a target's content; return its path and handle.

    Names that exist are skipped, because other processes or users may own them.
    """
    number = 0
    while True:
        path = partial_path(target, number)
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            number += 1


def _write_into(path: Path, content: bytes) -> None:
    own = _own_output(path.stat())
    if own is not None:
        sys.stdout.flush()
    with os.fdopen(os.dup(own) if own is not None else os.open(path, os.O_WRONLY), "wb") as file:
        file.write(content)


def _own_output(found: os.stat_result) -> int | None:
    """Return the handle of this process's stdout or stderr if the file is one of these, as with --json /dev/stdout."""
    for handle in (1, 2):
        try:
            if os.path.samestat(found, os.fstat(handle)):
                return handle
        except OSError:  # closed
            continue
    return None
