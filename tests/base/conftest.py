"""A user who may not do everything."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest


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
