"""From a trained recurrent network to transistors, and back to its accuracy: `cosim.load(path)` is the way in."""

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
    """The public names, each imported when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'cosim' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOMES.get(name, "cosim.verbs.python")), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
