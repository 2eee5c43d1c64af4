"""The one family of errors that a user may see.

Each message says what must hold, what was found, where, and how to repair it. The command line prints the message
without a traceback and exits with the class's `exit_code`: 2 for usage and input, 1 for a run that failed.
"""


class CosimError(Exception):
    """Base of every error raised on purpose by this package."""

    exit_code = 2


class InputError(CosimError):
    """A file, field or option that the user gave cannot be used."""


class NetworkError(InputError):
    """A network is inconsistent: a shape, a value or a cell that does not exist."""


class MappingError(InputError):
    """A network is sound but cannot be put on the chosen technology."""


class MissingToolError(CosimError):
    """Something must be installed first; the message says what and how."""

    exit_code = 1


class SimulationError(CosimError):
    """The simulator ran and failed; the message names the deck that was kept."""

    exit_code = 1
