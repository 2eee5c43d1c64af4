"""What the operating system is asked to do, in order; and a user who may not do everything."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def calls(monkeypatch):
    """A list that fills with ("fsync" or "replace", inode) of what happens to files and folders, in order."""
    found: list[tuple[str, int]] = []
    fsync, replace = os.fsync, os.replace

    def logged_fsync(handle):
        found.append(("fsync", os.fstat(handle).st_ino))
        fsync(handle)

    def logged_replace(source, target):
        found.append(("replace", os.stat(source).st_ino))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "replace", logged_replace)
    return found


@pytest.fixture
def ordinary():
    """A folder of a user whom permissions stop: as root, who passes everywhere, this process becomes one."""
    root = os.geteuid() == 0
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # the folders of pytest are closed to others
    if root:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        shutil.rmtree(folder)
