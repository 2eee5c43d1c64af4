"""A browser without a window, for what pages look like."""

import os
import shutil
import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0",
)  # fmt: skip


@pytest.fixture
def browse(tmp_path):
    """(arguments) -> the finished process of a browser in a profile of its own; skips where none is installed."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium is installed")

    def run(*arguments):
        command = [browser, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *map(str, arguments)]
        environment = {**os.environ, "TZ": "UTC"}
        return subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment, check=True)

    return run


@pytest.fixture(scope="session")
def every_page():
    """The module of every_page.py."""
    spec = spec_from_file_location("every_page", Path(__file__).parent / "every_page.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
