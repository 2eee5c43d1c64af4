"""Execution of a Monte Carlo run's chips: in local worker processes, or on an executor such as a dask cluster's.

Records come as the chips finish. A record depends only on the trial (design, samples, plan) and the chip's number, not
on the place or order of execution. The trial's engine is looked up in the parent process and sent to the workers.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cosim.base.errors import InputError, MissingToolError, SimulationError
from cosim.base.resources import install_command
from cosim.engines.engine import Failure
from cosim.engines.simulation.simulated import engine_named
from cosim.engines.simulation.workers import WorkerPool, run_tasks
from cosim.engines.table import BEHAVIORAL
from cosim.verbs.montecarlo.chips import ChipRecord
from cosim.verbs.montecarlo.trial import Trial, behavioral_record, drawn_record, run_chip, run_chips

if TYPE_CHECKING:
    from distributed import Client

BEHAVIORAL_CHUNK = 8  # chips of a task: 0.1 s of work
Result = TypeVar("Result")
_trial: Trial | None = None  # of a local worker process; its first call sets it
P = ParamSpec("P")
CONNECT = 10.0  # s


class Chunk(tuple[int, ...]):
    """The numbers of the chips that one task of a Monte Carlo run evaluates, one after the other."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"chip{'s' if len(self) > 1 else ''} {', '.join(map(str, self))}"


Finished = Iterator[tuple[Chunk, list[ChipRecord] | Failure]]  # tasks as they finish


def run_local(trial: Trial, numbers: Sequence[int], jobs: int, timeout: float) -> Iterator[ChipRecord]:
    """Run chips of a Monte Carlo run in `jobs` local processes; yield their records as they finish.
    timeout: seconds per chip, after which its process is killed and the record says `failed`."""
    work = partial(run_chip, engine=engine_named(trial.engine))
    with WorkerPool(jobs, _set_trial, trial) as pool:

        def run(chunks: Sequence[Chunk]) -> Finished:
            submit = partial(pool.submit, _work_here, work)
            return run_tasks(submit, chunks, 2 * jobs, lambda chunk: timeout * len(chunk))

        yield from _records(run, trial, _chunks(trial, numbers))


def run_on(
    executor: Executor, trial: Trial, numbers: Sequence[int], slots: int, timeout: float
) -> Iterator[ChipRecord]:
    """Run chips of a Monte Carlo run on an executor, at most `slots` tasks at a time; yield records as they finish.

    A task that takes longer than `timeout` second per chip is abandoned, not stopped; the record of its chip says
    `failed`.
    """
    engine = engine_named(trial.engine)

    def submit(chunk: Chunk) -> Future[list[ChipRecord]]:
        return executor.submit(run_chips, trial, chunk, engine)

    def run(chunks: Sequence[Chunk]) -> Finished:
        return run_tasks(submit, chunks, slots, lambda chunk: timeout * len(chunk), lambda future: True)

    yield from _records(run, trial, _chunks(trial, numbers))


def map_chips(
    work: Callable[[Trial, int], Result], trial: Trial, numbers: Sequence[int], jobs: int
) -> Iterator[Result]:
    """Call `work(trial, number)` for each chip in `jobs` processes; yield its results in the order of `numbers`.

    Raises SimulationError when a worker process died twice on the same chips.
    """
    found: dict[int, Result] = {}
    due = iter(numbers)
    with WorkerPool(jobs, _set_trial, trial) as pool:
        chunks = _chunks(trial, numbers)
        tasks = run_tasks(lambda chunk: pool.submit(_work_here, work, chunk), chunks, 2 * jobs, lambda _: inf)
        number = next(due, None)
        for chunk, results in tasks:
            if isinstance(results, Failure):
                raise SimulationError(
                    f"a worker process ended twice ({results.detail}) with {chunk}, by memory perhaps; try fewer --jobs"
                )
            found.update(zip(chunk, results, strict=True))
            while number in found:
                yield found.pop(number)
                number = next(due, None)


def _records(run: Callable[[Sequence[Chunk]], Finished], trial: Trial, chunks: Sequence[Chunk]) -> Iterator[ChipRecord]:
    """Yield records as they finish. If a task with several chips is lost, each of them runs again alone at the end."""
    alone: list[Chunk] = []
    for chunk, found in run(chunks):
        if not isinstance(found, Failure):
            yield from found
        elif len(chunk) == 1:
            yield _failed(trial, chunk[0], found)
        else:
            alone += [Chunk([number]) for number in chunk]
    if alone:
        yield from _records(run, trial, alone)


def _failed(trial: Trial, number: int, lost: Failure) -> ChipRecord:
    """Return the record of a chip whose task was lost, without figures of the engine that was running.

    The lost engine must not run in this process, because the chip may have killed its worker.
    """
    chip = trial.chip(number)
    record = behavioral_record(trial, chip) if trial.engine != BEHAVIORAL else drawn_record(chip)
    return replace(record, status="failed", reason=lost.kind.value, detail=lost.detail)


def _set_trial(trial: Trial) -> None:
    global _trial
    _trial = trial


def _work_here(work: Callable[[Trial, int], Result], numbers: Chunk) -> list[Result]:
    assert _trial is not None
    return [work(_trial, number) for number in numbers]


def _chunks(trial: Trial, numbers: Sequence[int]) -> list[Chunk]:
    size = BEHAVIORAL_CHUNK if trial.engine == BEHAVIORAL else 1
    return [Chunk(numbers[k : k + size]) for k in range(0, len(numbers), size)]


@contextmanager
def dask_cluster(address: str) -> Iterator["Cluster"]:
    """Connect to the dask scheduler at `address`, tcp://host:port, and yield its workers as one `Cluster`.

    Raises MissingToolError without dask, InputError when no scheduler answers or the scheduler has no workers.
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
    """An executor on the workers of a connected dask client; slots: how many tasks may run at a time."""

    def __init__(self, address: str, client: "Client", slots: int) -> None:
        self.slots = slots
        self._address, self._client = address, client
        self._executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[P, Result], /, *args: P.args, **kwargs: P.kwargs) -> Future[Result]:
        """Submit a function call, which runs chips, to one of the dask workers.

        Raises SimulationError when the scheduler is gone; tasks that were running are then lost.
        """
        if self._client.status != "running":
            raise SimulationError(
                f"--dask {self._address}: the scheduler does not answer any more; every chip that was finished is "
                "kept: start a scheduler and workers again, then the same command goes on"
            )
        return self._executor.submit(fn, *args, **kwargs)


def _mute() -> None:
    """Silence the loggers of dask.distributed, because they would bury cosim's one-line message."""
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
