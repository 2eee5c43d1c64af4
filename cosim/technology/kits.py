"""Where a foundry kit stands on this machine."""

import importlib.util
import os
from pathlib import Path

from cosim.errors import InputError, MissingToolError
from cosim.files.read import is_file


def find_kit(file: str, package: str, install: str, pdk_root: Path | None) -> Path:
    """A kit's main file: under --pdk-root, under $PDK_ROOT, or in an installed Python package.

    Raises InputError for a wrong --pdk-root, MissingToolError with `install`, what to type, when it is nowhere.
    """
    if pdk_root is not None:
        if not is_file(pdk_root / file):
            raise InputError(f"--pdk-root {pdk_root}: there is no {file} under it; name the folder above, or {install}")
        return pdk_root / file
    root = os.environ.get("PDK_ROOT", "")
    if root and is_file(Path(root) / file):
        return Path(root) / file
    if package:
        try:
            found = importlib.util.find_spec(Path(package).parts[0])
        except ValueError:  # __main__ has none
            found = None
        for location in (found and found.submodule_search_locations) or ():
            if is_file(Path(location).parent / package):
                return Path(location).parent / package
    tried = f"PDK_ROOT is {root}, without {file}" if root else "neither --pdk-root nor PDK_ROOT is given"
    raise MissingToolError(f"foundry kit not found: {tried}; {install}")
