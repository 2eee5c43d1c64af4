# pyright: basic
# numba compiles what these are given: that has no type that pyright knows.
"""How kernels are compiled."""

import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config

T = TypeVar("T")
_CONFIG = cast(Any, config)


@cache
def _kept() -> str:
    """The folder of what is compiled: numba looks at the file of a function, not at those that it calls or reads."""
    digest = sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return str(root / "cosim" / "kernels" / digest.hexdigest()[:16])


_OPTIONS: dict[str, Any] = {"_nrt": False, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}
inner: Any = numba.njit(inline="always", **_OPTIONS)  # for what a loop calls: passing arrays costs more than most of it


jit: Any = numba.njit(**_OPTIONS)


def kept_jit(function: Callable[..., T]) -> Callable[..., T]:
    """A function that Python calls, with all that it calls: compiled once where the user's cache can be written."""
    before, _CONFIG.CACHE_DIR = _CONFIG.CACHE_DIR, _kept()
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # no place for it
        return numba.njit(**_OPTIONS)(function)
    finally:
        _CONFIG.CACHE_DIR = before
