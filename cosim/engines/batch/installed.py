"""Whether what the batch engine is compiled with is installed, found out without loading it."""

import importlib.util

from cosim.errors import MissingToolError

INSTALL_NUMBA = "python -m pip install 'cosim-analog[batch]'"


def check_numba() -> None:
    """Raises MissingToolError without numba."""
    if importlib.util.find_spec("numba") is None:
        raise MissingToolError(
            f"numba is missing: --engine batch needs it, nothing else does. Install it ({INSTALL_NUMBA}), or choose "
            "--engine ngspice"
        )
