"""Check that the packages of the batched engine are installed, and for `cuda` a device."""

import importlib.util

from cosim.base.errors import MissingToolError
from cosim.base.resources import install_command

INSTALL_NUMBA = install_command("batch")
INSTALL_CUDA = install_command("cuda")


def check_numba() -> None:
    """Raise MissingToolError where numba, which the batched engine needs, is missing."""
    if importlib.util.find_spec("numba") is None:
        raise MissingToolError(
            "numba is missing: the engines batch and cuda need it, nothing else does. Install it "
            f"({INSTALL_NUMBA}), or choose --engine ngspice"
        )


def check_cuda() -> None:
    """Raise MissingToolError where the batched engine lacks numba, or a GPU that numba can compile for."""
    check_numba()
    from numba import cuda

    if not cuda.is_available():
        raise MissingToolError(
            "no CUDA device was found: --engine cuda needs one, its driver (530 or newer), and numba's compiler for it "
            f"({INSTALL_CUDA}); choose --engine batch, which runs the same on the processor"
        )
