"""Where what was measured on this machine is kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """cosim's folder under $XDG_CACHE_HOME, or ~/.cache without it; whether it exists or not."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "cosim"
