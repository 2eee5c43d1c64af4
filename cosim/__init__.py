"""From a trained recurrent network to transistors, and back to its accuracy: `cosim.load(path)` is the way in.

Each verb of the command line is a function with the same options: `cosim.train("digits", cells=8, output="model.pt")`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from cosim.base.version import __version__ as __version__

if TYPE_CHECKING:
    from cosim.base.errors import CosimError as CosimError
    from cosim.compiler.settings import CompilerSettings as CompilerSettings
    from cosim.verbs.loading import TargetTechnology as TargetTechnology
    from cosim.verbs.python import ChipsResult as ChipsResult
    from cosim.verbs.python import ComparisonResult as ComparisonResult
    from cosim.verbs.python import Compiled as Compiled
    from cosim.verbs.python import TrainedNetwork as TrainedNetwork
    from cosim.verbs.python import load as load
    from cosim.verbs.python import run as run

__all__ = [
    "ChipsResult",
    "ComparisonResult",
    "Compiled",
    "CompilerSettings",
    "CosimError",
    "TargetTechnology",
    "TrainedNetwork",
    "load",
    "run",
]

_HOMES = {
    "TargetTechnology": "cosim.verbs.loading",
    "CompilerSettings": "cosim.compiler.settings",
    "CosimError": "cosim.base.errors",
}


def __getattr__(name: str) -> object:
    """Return a public name or a verb's function of the package, imported when it is first asked for."""
    home = import_module(_HOMES.get(name, "cosim.verbs.python")) if name in __all__ else None
    if home is not None:
        return getattr(home, name)
    if name in _verbs():
        return import_module("cosim.verbs.python").verb_function(name)
    raise AttributeError(f"module 'cosim' has no attribute {name!r}; it has {', '.join([*__all__, *_verbs()])}")


def _verbs() -> list[str]:
    from cosim.cli import VERBS

    return list(VERBS)


def __dir__() -> list[str]:
    return [*__all__, *_verbs(), "__version__"]
