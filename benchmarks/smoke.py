"""`--smoke`: the smallest run of a benchmark, a few seconds long, which shows that the script works.

Its figures say nothing. `tests/benchmarks/test_smoke.py` runs every script so.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np


def shrink(script: dict[str, Any], *arguments: str, **constants: object) -> None:
    """With `--smoke` on the command line, put `arguments` in its place and small `constants` into the script."""
    if "--smoke" in sys.argv[1:]:
        unknown = constants.keys() - script.keys()
        assert not unknown, f"the script has no {', '.join(sorted(unknown))}"
        sys.argv[1:] = arguments
        script.update(constants)


def few(load: Callable[..., Any], samples: int = 2, frames: int = 2) -> Callable[..., Any]:
    """Return a function that loads a test set as `load` does and leaves its first samples and frames."""

    def loaded(*given: Any) -> Any:
        found = load(*given).take(samples, 0)
        return replace(found, x=found.x[:, :frames], lengths=np.minimum(found.lengths, frames))

    return loaded
