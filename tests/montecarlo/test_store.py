"""The store: what is in it survives, and nothing foreign gets in."""

import errno
import json
import os
import subprocess
import sys

import pytest

from cosim.errors import InputError
from cosim.montecarlo.store import CHIPS_FILE, RUN_FILE, open_store, read_store

SETTINGS = {"cosim": "1", "engine": "behavioral", "samples": 7, "variation": {"kind": "local", "area": 1.0}}


def record(number):
    return {"chip": number, "status": "ok", "behavioral": {"accuracy": number / 7}}


def filled(folder, numbers):
    with open_store(folder, SETTINGS, resume=False) as store:
        for number in numbers:
            store.append(record(number))


def test_records_come_back_by_chip(tmp_path):
    filled(tmp_path, [4, 0, 2])
    settings, records = read_store(tmp_path)
    assert settings == SETTINGS
    assert list(records) == [0, 2, 4] and records[4] == record(4)


def test_a_torn_line_is_cut_off_and_the_rest_goes_on(tmp_path):
    filled(tmp_path, [0, 1])
    path = tmp_path / CHIPS_FILE
    whole = path.read_bytes()
    for cut in range(1, len(whole) // 2):
        path.write_bytes(whole[:-cut])
        with open_store(tmp_path, SETTINGS, resume=True) as store:
            assert set(store.records) == {0}
            store.append(record(1))
        assert path.read_bytes() == whole


def test_a_damaged_line_is_named(tmp_path):
    filled(tmp_path, [0, 1, 2])
    path = tmp_path / CHIPS_FILE
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:-3], lines[2]]) + "\n")
    with pytest.raises(InputError, match=r"chips\.jsonl: line 2 is damaged; delete that line, then .*--resume"):
        read_store(tmp_path)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"samples": 8}, "holds a run with another samples: 7, not 8; choose another folder with -o"),
        ({"cosim": "2"}, "another cosim: \"1\", not \"2\""),
        ({"new": True}, "another new: null, not true"),
        ({"variation": {"kind": "local", "area": 2.0}}, "another variation.area: 1.0, not 2.0"),
    ],
)  # fmt: skip
def test_another_run_is_refused(tmp_path, change, text):
    filled(tmp_path, [0])
    before = (tmp_path / CHIPS_FILE).read_bytes()
    with pytest.raises(InputError, match=text), open_store(tmp_path, SETTINGS | change, resume=True):
        pass
    assert (tmp_path / CHIPS_FILE).read_bytes() == before
    assert json.loads((tmp_path / RUN_FILE).read_text()) == SETTINGS


def test_chips_without_resume_are_refused(tmp_path):
    filled(tmp_path, [0, 1])
    with pytest.raises(InputError, match="holds 2 chips of this run already; go on with --resume"):
        filled(tmp_path, [2])


def test_two_processes_on_one_store(tmp_path):
    """The second is refused; when the first dies, its lock dies with it."""
    holder = (
        "import sys, pathlib\nfrom cosim.montecarlo.store import open_store\n"
        f"with open_store(pathlib.Path({str(tmp_path)!r}), {SETTINGS!r}, True):\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", holder], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process is running chips into this store"):
            filled(tmp_path, [0])
        process.kill()
        process.wait()
    filled(tmp_path, [0])


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    """A write that stops half way is taken back; what was there stays, and the next one works."""
    filled(tmp_path, [0])
    before = (tmp_path / CHIPS_FILE).read_bytes()
    write = os.write

    def half(handle, line):
        write(handle, line[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with open_store(tmp_path, SETTINGS, resume=True) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with pytest.raises(InputError, match="No space left on device; 1 chips are kept: make room, then go on"):
                store.append(record(1))
        assert (tmp_path / CHIPS_FILE).read_bytes() == before
        store.append(record(1))
    assert set(read_store(tmp_path)[1]) == {0, 1}


def test_folders_that_are_no_run(tmp_path):
    with pytest.raises(InputError, match="no Monte Carlo run there"):
        read_store(tmp_path)
    (tmp_path / RUN_FILE).write_text("[]")
    with pytest.raises(InputError, match=r"run\.json: cannot be read"):
        read_store(tmp_path)
