"""A dask cluster as an executor of chips; the only importer of `distributed`."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cosim.base.errors import InputError, MissingToolError, SimulationError
from cosim.base.resources import install_command

if TYPE_CHECKING:
    from distributed import Client

P = ParamSpec("P")
Result = TypeVar("Result")
CONNECT = 10.0  # s


@contextmanager
def dask_cluster(address: str) -> Iterator["Cluster"]:
    """Connect `cosim montecarlo` to the dask scheduler at tcp://host:port, and yield its workers as a `Cluster`.

    Raises MissingToolError without dask, InputError when no scheduler answers or it has no workers.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise MissingToolError(f"--dask needs dask.distributed; {install_command('dask')}") from None
    _mute()
    try:
        client = Client(address, timeout=CONNECT)
    except (OSError, ValueError, TypeError, RuntimeError) as error:  # the last two by its TLS settings
        raise InputError(
            f"--dask {address}: no scheduler answers there ({error}); start one with 'dask scheduler', and workers "
            "with 'dask worker ADDRESS --nthreads 1'"
        ) from None
    with client:
        slots = sum(dict(client.nthreads()).values())  # pyright: ignore - a dict, in a client that is not asynchronous
        if not slots:
            raise InputError(
                f"--dask {address}: the scheduler has no workers; start some with 'dask worker {address} --nthreads 1'"
            )
        yield Cluster(address, client, slots)


class Cluster(Executor):
    """An executor on a connected dask client, with `slots` tasks at a time."""

    def __init__(self, address: str, client: "Client", slots: int) -> None:
        self.slots = slots
        self._address, self._client = address, client
        self._executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[P, Result], /, *args: P.args, **kwargs: P.kwargs) -> Future[Result]:
        """Submit a call to one of the workers. Raises SimulationError when the scheduler is gone; what ran there is
        lost."""
        if self._client.status != "running":
            raise SimulationError(
                f"--dask {self._address}: the scheduler does not answer any more; every chip that was finished is "
                "kept: start a scheduler and workers again, then the same command goes on"
            )
        return self._executor.submit(fn, *args, **kwargs)


def _mute() -> None:
    """Silence the loggers of distributed: our one line says what happened and what to do, and theirs would bury it."""
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
