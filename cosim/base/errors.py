"""The errors of the package that a user may see, all of one family.

Each message says what must hold, what was found, where, and how to repair it. The command line prints the message
without a traceback and exits with the class's `exit_code`: 2 for usage and input, 1 for a run that failed.
"""

import warnings
from collections.abc import Generator
from contextlib import contextmanager


def printable(text: str) -> str:
    """Return a text on one line, with escapes for line breaks and for other characters that a terminal cannot print."""
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


class CosimError(Exception):
    """Base of every error that this package raises on purpose; its message is one line.

    If a number was compared with a limit, a program finds both in the attributes where (name of the number), value,
    limit and unit (an SI symbol). Errors of units and compiler name settings as Python does, between backticks:
    `i_unit`, `cell=auto`, `train(epsilon=1)`; the command line spells their options, see cosim.cli.option_names.
    """

    exit_code = 2

    def __init__(
        self, text: str = "", *, where: str = "", value: float | None = None, limit: float | None = None, unit: str = ""
    ) -> None:
        super().__init__(text)
        self.where, self.value, self.limit, self.unit = where, value, limit, unit

    def reworded(self, text: str, kind: "type[CosimError] | None" = None) -> "CosimError":
        """Return an error with another text, and another class if `kind` is given, about the same number."""
        return (kind or type(self))(text, where=self.where, value=self.value, limit=self.limit, unit=self.unit)

    def __str__(self) -> str:
        return printable(super().__str__())


class CosimWarning(UserWarning):
    """Something that a user may not have meant, though the work can be done; the command line prints it on stderr."""


def warn(text: str) -> None:
    """Issue a `CosimWarning`, about something that a user may not have meant."""
    warnings.warn(text, CosimWarning, stacklevel=3)


class InputError(CosimError):
    """A file, field or option that the user gave cannot be used."""


class NetworkError(InputError):
    """A network is inconsistent: a shape, a value or a cell that does not exist."""


class MappingError(InputError):
    """A network is sound but cannot be put on the chosen technology."""


class UnitCurrentError(MappingError):
    """A current of a circuit cannot be made at this unit current, though another one may make it possible."""


class MissingToolError(CosimError):
    """Something must be installed first; the message says what and how."""

    exit_code = 1


class SimulationError(CosimError):
    """The simulator ran and failed; the message names the deck that was kept."""

    exit_code = 1


class TrainingError(CosimError):
    """A training ran and failed; it leaves no checkpoint."""

    exit_code = 1


class OutOfMemoryError(CosimError):
    """The work that was asked for needs more memory than there is."""

    exit_code = 1


@contextmanager
def naming_memory(work: str, repair: str) -> Generator[None, None, None]:
    """Raise OutOfMemoryError if a `with` block runs out of memory, whatever error a library raises for that.

    work: what the block does, repair: what to do about it, both for the message.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # torch has no class of its own for it: "DefaultCPUAllocator: can't allocate memory: you tried to allocate ..."
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        raise OutOfMemoryError(f"{work} needs more memory than there is; {repair}") from error


@contextmanager
def importing(work: str, repair: str) -> Generator[None, None, None]:
    """Raise MissingToolError, with a package's name and how to install it, if a `with` block imports an absent package.

    A package that is installed but fails to load raises OutOfMemoryError, or MissingToolError with the reason.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingToolError(f"{work} needs {error.name}; {repair}") from error
    except MemoryError as error:
        raise OutOfMemoryError(f"{work} needs more memory than there is, to load its libraries; free some") from error
    except (ImportError, OSError) as error:
        raise MissingToolError(
            f"{work} needs a library that is there but does not load: {error}; a segment that cannot be mapped is too "
            f"little memory (ulimit -v), otherwise {repair}"
        ) from error
