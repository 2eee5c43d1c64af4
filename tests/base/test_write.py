"""A file is whole or as it was, on the disk, and what stood there keeps its nature."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from cosim.base.errors import InputError
from cosim.base.write import (
    check_writable,
    find_rests,
    make_folder,
    partial_path,
    write_atomically,
    write_together,
)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_mode_of_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "x", b"1")
    finally:
        os.umask(before)
    assert mode(tmp_path / "x") == 0o666 & ~mask
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("kept", [0o600, 0o664, 0o755])
def test_an_old_file_keeps_its_mode(tmp_path, kept):
    (tmp_path / "x").write_bytes(b"old")
    (tmp_path / "x").chmod(kept)
    write_atomically(tmp_path / "x", b"new")
    assert (mode(tmp_path / "x"), (tmp_path / "x").read_bytes()) == (kept, b"new")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_old_file_keeps_its_owner(tmp_path):
    (tmp_path / "x").write_bytes(b"old")
    os.chown(tmp_path / "x", 1234, 4321)
    write_atomically(tmp_path / "x", b"new")
    assert ((tmp_path / "x").stat().st_uid, (tmp_path / "x").stat().st_gid) == (1234, 4321)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, there):
    (tmp_path / "far").mkdir()
    if there:
        (tmp_path / "far" / "target").write_bytes(b"old")
    (tmp_path / "near").symlink_to("far/target")
    (tmp_path / "link").symlink_to(tmp_path / "near")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "near").is_symlink()
    assert (tmp_path / "far" / "target").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["target"]


def test_a_fifo_is_written_into(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "fifo").read_bytes()))
    reader.start()
    check_writable(tmp_path / "fifo")
    write_atomically(tmp_path / "fifo", b"through")
    reader.join()
    assert found == [b"through"]
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_a_full_device_gives_a_message_and_stays(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"cannot write .*full: No space left on device; make room there, or choose"):
        write_atomically(tmp_path / "full", b"new")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.parametrize("target", ["/dev/stdout", "the file"])
def test_own_output_goes_on_where_it_stands(tmp_path, target):
    """Where stdout is a file that is written by name, too, nothing is lost, neither before nor after."""
    path = tmp_path / "out"
    name = str(path) if target == "the file" else target
    code = (
        "from pathlib import Path\nfrom cosim.base.write import write_atomically\n"
        f"print('before')\nwrite_atomically(Path({name!r}), b'json\\n')\nprint('after')\n"
    )
    with path.open("wb") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert path.read_text() == "before\njson\nafter\n"


def test_all_or_none(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot write .*folder: Is a directory; choose another place"):
        write_together({tmp_path / "a": b"new", tmp_path / "folder": b"new"})
    assert (tmp_path / "a").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "folder"]


KILLED = """
import os, pathlib, signal, sys
from cosim.base import write
at, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
if at == "wait":
    def die(*_): print("staged", flush=True); sys.stdin.read()
write.os.replace = die
write.write_together({folder / name: name.encode() for name in names})
"""


def killed_while_writing(folder, *names):
    done = subprocess.run([sys.executable, "-c", KILLED, "die", str(folder), *names])
    assert done.returncode == -signal.SIGKILL


def test_what_a_killed_process_left_is_named_and_goes_when_its_target_is_written_next(tmp_path):
    """A file of a user with a similar name stays, and so does what was left of another target."""
    (tmp_path / ".mine.partial").write_text("mine")
    killed_while_writing(tmp_path, "a", "b")
    killed_while_writing(tmp_path, "c")
    assert [one.read_text() for one in find_rests(tmp_path)] == [
        one.read_text() for one in sorted(map(partial_path, (tmp_path / "a", tmp_path / "b", tmp_path / "c")))
    ]
    write_together({tmp_path / "a": b"1", tmp_path / "b": b"2"})
    assert find_rests(tmp_path) == [partial_path(tmp_path / "c")]
    check_writable(tmp_path / "c")
    assert sorted(one.name for one in tmp_path.iterdir()) == [".mine.partial", "a", "b"]


def test_what_a_living_process_writes_is_no_rest(tmp_path):
    """Two write one file at once: each has a name of its own, and nobody removes that of the other."""
    (tmp_path / "a").write_bytes(b"old")
    arguments = [sys.executable, "-c", KILLED, "wait", str(tmp_path), "a"]
    with subprocess.Popen(arguments, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline() == "staged\n"
        assert find_rests(tmp_path) == []
        write_atomically(tmp_path / "a", b"new")
        assert partial_path(tmp_path / "a").read_text() == "a" and (tmp_path / "a").read_bytes() == b"new"
        process.kill()
    write_atomically(tmp_path / "a", b"newer")
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_somebody_else_has_locked_is_written_all_the_same(tmp_path):
    """As under flock(1); what a killed process left there stays then."""
    killed_while_writing(tmp_path, "a")
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        write_atomically(tmp_path / "a", b"new")
        assert find_rests(tmp_path) == []
    finally:
        os.close(handle)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert find_rests(tmp_path) == [partial_path(tmp_path / "a")]


def test_a_disk_that_fills(tmp_path, file_size_limit):
    (tmp_path / "a").write_bytes(b"old")
    with file_size_limit(1000):
        with pytest.raises(InputError, match="cannot write .*/a: File too large"):
            check_writable(tmp_path / "a", 1001)
        with pytest.raises(InputError, match="cannot write .*/a: File too large"):
            write_atomically(tmp_path / "a", bytes(1001))
        check_writable(tmp_path / "a", 1000)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("write", [lambda path: write_atomically(path, b"new"), check_writable])
def test_what_cannot_be_written(ordinary, write):
    (ordinary / "kept").write_bytes(b"old")
    (ordinary / "kept").chmod(0o444)
    (ordinary / "closed").mkdir(mode=0o500)
    (ordinary / "loop").symlink_to("loop")
    for name, text in {
        "kept": "cannot write .*/kept: Permission denied; choose another place, or change its permissions",
        "closed/x": "cannot write .*/closed/x: Permission denied",
        "no/where/x": "cannot write .*: the folder .*/no/where must exist; create it, or choose another place",
        "loop": "cannot write .*/loop: Too many levels of symbolic links",
        "closed": "cannot write .*/closed: Is a directory",
        "nul\0": "nul.*' cannot be the name of a file: embedded null",
    }.items():
        with pytest.raises(InputError, match=text):
            write(ordinary / name)
    assert (ordinary / "kept").read_bytes() == b"old"
    assert sorted(path.name for path in ordinary.iterdir()) == ["closed", "kept", "loop"]


def test_content_is_on_the_disk_before_its_name_and_the_name_before_the_return(tmp_path, calls):
    """What a power cut may undo: content before its fsync, a name before the fsync of its folder."""
    write_together({tmp_path / "a": b"1", tmp_path / "b": b"2"})
    a, b = ((tmp_path / name).stat().st_ino for name in "ab")
    assert calls == [
        ("fsync", a), ("fsync", b), ("replace", a), ("replace", b), ("fsync", tmp_path.stat().st_ino)
    ]  # fmt: skip


def test_a_new_folder_is_on_the_disk(tmp_path, calls):
    make_folder(tmp_path / "a" / "b")
    assert calls == [("fsync", (tmp_path / "a").stat().st_ino), ("fsync", tmp_path.stat().st_ino)]
