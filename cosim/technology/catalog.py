"""Technologies by name."""

from collections.abc import Callable

from cosim.errors import InputError
from cosim.technology.generic180 import generic180
from cosim.technology.types import Technology

TECHNOLOGIES: dict[str, Callable[[], Technology]] = {"generic180": generic180}
DEFAULT_TECHNOLOGY = "generic180"


def load_technology(name: str) -> Technology:
    """The technology of a name. Raises InputError that lists the names there are."""
    if name not in TECHNOLOGIES:
        raise InputError(f"technology must be one of {', '.join(TECHNOLOGIES)}, not {name!r}")
    return TECHNOLOGIES[name]()
