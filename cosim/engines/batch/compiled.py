# pyright: basic
# numba compiles what these are given: that has no type that pyright knows.
"""Compile kernels with numba, and keep the compiled code in the cache, sealed with checksums.

With COSIM_CHECKED=1 each access of a kernel to an array, also by `lanes`, is compared with the array's bounds; an
access beyond them is an IndexError. `make test-checked` runs the tests so. Checked kernels are slower and have a cache
of their own.
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config
from numba.core.caching import IndexDataCacheFile

from cosim.base.errors import InputError
from cosim.base.seal import seal_bytes, unseal_bytes
from cosim.base.store import cache_folder

T = TypeVar("T")
_CONFIG = cast(Any, config)
CHECKED = os.environ.get("COSIM_CHECKED") == "1"


@cache
def _kernel_folder() -> str:
    """Return the cache's folder for kernels of exactly these source files; raises InputError where there is none.

    numba itself looks only at the file of a function, not at the files that the function calls or reads.
    """
    digest = sha256(f"{numba.__version__} {CHECKED}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return str(cache_folder() / "kernels" / digest.hexdigest()[:16])


class _SealedFile(IndexDataCacheFile):
    """The files of a function that numba compiled, each with a checksum.

    Machine code that changed on the disk is not run.
    """

    def _load_index(self) -> Any:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        if not _is_whole(path := self._data_path(name)):
            raise OSError(f"{path} is damaged")  # numba takes what cannot be read as not there
        return super()._load_data(name)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Generator[BytesIO, None, None]:
        content = BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(seal_bytes(content.getvalue()))  # unpickling stops before the checksum


def _is_whole(path: str) -> bool:
    try:
        unseal_bytes(Path(path).read_bytes())
    except (OSError, ValueError):
        return False
    return True


_OPTIONS: dict[str, Any] = {"_nrt": False, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}
_OPTIONS["boundscheck"] = CHECKED
inlined_jit: Any = numba.njit(
    inline="always", **_OPTIONS
)  # for what a loop calls: passing arrays costs more than most of it


jit: Any = numba.njit(**_OPTIONS)


def cached_jit(function: Callable[..., T]) -> Callable[..., T]:
    """Compile a kernel of the batched engine that Python calls, and keep it in the cache if that can be written."""
    before = _CONFIG.CACHE_DIR
    try:
        _CONFIG.CACHE_DIR = _kernel_folder()
        kernel: Any = numba.njit(cache=True, **_OPTIONS)(function)
        kernel._cache._cache_file.__class__ = _SealedFile
        return kernel
    except (RuntimeError, InputError):  # no place for it
        return numba.njit(**_OPTIONS)(function)
    finally:
        _CONFIG.CACHE_DIR = before
