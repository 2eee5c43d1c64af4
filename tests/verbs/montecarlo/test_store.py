"""The store: what is in it survives, and nothing foreign gets in."""

import errno
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from cosim.base.errors import InputError
from cosim.base.seal import seal_line
from cosim.base.store import settings_key
from cosim.base.text import json_object
from cosim.verbs.montecarlo.chips import ChipRecord, Figures
from cosim.verbs.montecarlo.store import CHIPS_FILE, RUN_FILE, open_store, read_store

SETTINGS = {
    "cosim": "1",
    "engine": "behavioral",
    "samples": 7,
    "devices": [],
    "variation": {"kind": "local", "area": 1.0},
}


def record(number):
    return ChipRecord(number, "ok", 1.8, 27.0, "", behavioral=Figures(number / 7, 1.0, 1.0, 1e-9, (1,), ()))


def filled(folder, numbers):
    with open_store(folder, SETTINGS) as store:
        for number in numbers:
            store.append(record(number))


def append(folder, content):
    """A line with a checksum that fits, whatever it holds."""
    with (folder / CHIPS_FILE).open("ab") as file:
        file.write(seal_line(content, settings_key(SETTINGS)))


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
        with open_store(tmp_path, SETTINGS) as store:
            assert set(store.records) == {0}
            store.append(record(1))
        assert path.read_bytes() == whole


def test_a_damaged_line_is_named(tmp_path):
    filled(tmp_path, [0, 1, 2])
    path = tmp_path / CHIPS_FILE
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:-3], lines[2]]) + "\n")
    with pytest.raises(InputError, match=r"chips\.jsonl: line 2 is damaged, its .*; the same command measures it anew"):
        read_store(tmp_path)
    with open_store(tmp_path, SETTINGS) as store:
        assert list(store.damaged) == [2] and list(store.records) == [0, 2]
    assert list(read_store(tmp_path)[1]) == [0, 2]


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
    with pytest.raises(InputError, match=text), open_store(tmp_path, SETTINGS | change):
        pass
    assert (tmp_path / CHIPS_FILE).read_bytes() == before
    assert read_store(tmp_path)[0] == SETTINGS


def test_a_fresh_run_begins_without_the_chips_of_the_one_before(tmp_path):
    """Whatever its settings; what a user has put there stays."""
    filled(tmp_path, [0, 1])
    (tmp_path / "notes.txt").write_text("mine")
    with open_store(tmp_path, SETTINGS | {"samples": 8}, fresh=True) as store:
        assert store.records == {}
        store.append(record(2))
    assert list(read_store(tmp_path)[1]) == [2] and (tmp_path / "notes.txt").read_text() == "mine"


def test_two_processes_on_one_store(tmp_path):
    """The second is refused; when the first dies, its lock dies with it."""
    holder = (
        "import sys, pathlib\nfrom cosim.verbs.montecarlo.store import open_store\n"
        f"with open_store(pathlib.Path({str(tmp_path)!r}), {SETTINGS!r}):\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", holder], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(
            InputError, match="another process writes there; wait for it, or choose another folder with -o"
        ):
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

    with open_store(tmp_path, SETTINGS) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with pytest.raises(InputError, match="No space left on device; 1 chips are kept: make room, then the same"):
                store.append(record(1))
        assert (tmp_path / CHIPS_FILE).read_bytes() == before
        store.append(record(1))
    assert set(read_store(tmp_path)[1]) == {0, 1}


def test_folders_that_are_no_run(tmp_path):
    with pytest.raises(InputError, match="no Monte Carlo run there"):
        read_store(tmp_path)
    for content in ("", "[]", '{"cosim": "1"}'):
        (tmp_path / RUN_FILE).write_text(content)
        with pytest.raises(
            InputError, match=r"run\.json: damaged, or of a cosim without checksums: .*; the command that"
        ):
            read_store(tmp_path)


def finish(folder, count=3):
    """Go on after whatever happened, as run_montecarlo does."""
    with open_store(folder, SETTINGS) as store:
        for number in range(count):
            if number not in store.records:
                store.append(record(number))
        store.tidy()


def contents(folder):
    return {name: (folder / name).read_bytes() for name in (RUN_FILE, CHIPS_FILE)}


def test_lines_of_a_finished_run_are_in_order(tmp_path):
    """Whatever finished first, with how many workers or in how many sittings: the same bytes."""
    filled(tmp_path / "a", [0, 1, 2])
    filled(tmp_path / "b", [2, 0])
    early = (tmp_path / "b" / CHIPS_FILE).read_bytes().splitlines(keepends=True)
    assert early == [(tmp_path / "a" / CHIPS_FILE).read_bytes().splitlines(keepends=True)[k] for k in (2, 0)]
    finish(tmp_path / "b")
    assert contents(tmp_path / "b") == contents(tmp_path / "a")


def test_a_chip_that_runs_again_has_one_line(tmp_path):
    filled(tmp_path / "a", [0, 1, 2])
    filled(tmp_path / "b", [0, 1, 2])
    with open_store(tmp_path / "b", SETTINGS) as store:
        store.append(replace(record(1), status="failed", reason="timeout"))
        store.append(record(1))
        store.tidy()
    assert contents(tmp_path / "b") == contents(tmp_path / "a")


def test_a_power_cut_at_any_byte_of_the_last_line(tmp_path):
    """A crash may leave any part of what was being written, or blocks of nothing in its place."""
    filled(tmp_path / "whole", [0, 1, 2])
    whole = contents(tmp_path / "whole")
    begin = whole[CHIPS_FILE].rstrip(b"\n").rfind(b"\n") + 1
    length = len(whole[CHIPS_FILE]) - begin
    for cut in range(length):
        for tail in (b"", bytes(length - cut))[: 1 + (cut % 10 == 0)]:
            folder = tmp_path / f"{cut} {len(tail)}"
            filled(folder, [])
            (folder / CHIPS_FILE).write_bytes(whole[CHIPS_FILE][: begin + cut] + tail)
            finish(folder)
            assert contents(folder) == whole


@pytest.mark.parametrize("left", [None, b"", b"{", b"\0" * 200])
def test_a_power_cut_that_took_run_json(tmp_path, left):
    """Its lines say themselves that they are of these settings."""
    filled(tmp_path, [0, 1, 2])
    whole = contents(tmp_path)
    (tmp_path / RUN_FILE).unlink()
    if left is not None:
        (tmp_path / RUN_FILE).write_bytes(left)
    finish(tmp_path)
    assert contents(tmp_path) == whole


@pytest.mark.parametrize("left", [None, b"", b"{"])
def test_run_json_gone_and_chips_of_other_settings(tmp_path, left):
    filled(tmp_path, [0, 1, 2])
    before = (tmp_path / CHIPS_FILE).read_bytes()
    (tmp_path / RUN_FILE).unlink()
    if left is not None:
        (tmp_path / RUN_FILE).write_bytes(left)
    with (
        pytest.raises(InputError, match=r"run\.json is missing, damaged .*, and no line of chips\.jsonl is of these"),
        open_store(tmp_path, SETTINGS | {"samples": 8}),
    ):
        pass
    assert (tmp_path / CHIPS_FILE).read_bytes() == before


def test_a_power_cut_before_anything_was_written(tmp_path):
    for name in (RUN_FILE, CHIPS_FILE, ".cosim"):
        (tmp_path / name).touch()
    filled(tmp_path, [0, 1, 2])
    assert list(read_store(tmp_path)[1]) == [0, 1, 2]


def test_a_line_of_another_run_is_no_record_of_this_one(tmp_path):
    filled(tmp_path / "a", [0, 1])
    with open_store(tmp_path / "b", SETTINGS | {"samples": 8}) as store:
        store.append(record(0))
    (tmp_path / "a" / CHIPS_FILE).write_bytes((tmp_path / "b" / CHIPS_FILE).read_bytes())
    with pytest.raises(InputError, match="line 1 is damaged"):
        read_store(tmp_path / "a")


def test_what_is_on_the_disk_when(tmp_path, calls):
    """run.json before the first chip, its folder's name, too; every chip before the next."""

    def inode(path):
        return path.stat().st_ino

    with open_store(tmp_path / "run", SETTINGS) as store:
        run, folder = inode(tmp_path / "run" / RUN_FILE), inode(tmp_path / "run")
        assert ("fsync", inode(tmp_path)) in calls  # the name of the new folder
        assert calls.index(("fsync", run)) < calls.index(("replace", run))
        assert calls[calls.index(("replace", run)) + 1 :] == [("fsync", folder)]
        for number in (1, 0):
            calls.clear()
            store.append(record(number))
            new = [("fsync", folder)] if number == 1 else []
            assert calls == [("fsync", inode(tmp_path / "run" / CHIPS_FILE)), *new]
        calls.clear()
        store.tidy()
        chips = inode(tmp_path / "run" / CHIPS_FILE)
        assert calls == [("fsync", chips), ("replace", chips), ("fsync", folder)]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"status": None}, "status must be text, not null"),
        ({"status": "well"}, "status must be a known value, not 'well'"),
        ({"chip": -1}, "chip must be 0 or more"),
        ({"behavioral": {}}, "behavioral must have the field accuracy"),
        ({"behavioral": None}, "must have the field behavioral"),
        (
            {"behavioral": json_object(record(1).behavioral) | {"power": 1e300}},
            "figures must be shares of 1, and power below 1 W",
        ),
        (
            {"behavioral": json_object(record(1).behavioral) | {"accuracy": 1.5}},
            "figures must be shares of 1, .* below 1 W",
        ),
        ({"celsius": float("nan")}, "celsius: must be a finite number, not nan"),
        ({"status": "failed"}, "must have the field reason"),
        ({"draws": "AAAA"}, "draws must be those of 0 devices"),
        ({"draws": "A"}, "draws must be those of 0 devices"),
    ],
)
def test_a_record_that_is_none_is_named(tmp_path, change, text):
    """Under a checksum that fits: by hand, or by another program."""
    filled(tmp_path, [0])
    append(tmp_path, json_object(record(1)) | change)
    with pytest.raises(InputError, match=rf"chips.jsonl: line 2: {text}; choose another run"):
        read_store(tmp_path)


def test_a_record_without_status_is_named(tmp_path):
    filled(tmp_path, [])
    append(tmp_path, {key: value for key, value in json_object(record(0)).items() if key != "status"})
    with pytest.raises(InputError, match="chips.jsonl: line 1: must have the field status; choose another run"):
        read_store(tmp_path)
