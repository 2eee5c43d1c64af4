"""Where chips run: local worker processes, or any executor such as that of a dask cluster. Records come as they finish.

Nothing depends on where or in which order: a record is a function of trial and chip.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, TimeoutError, wait
from functools import partial
from time import monotonic
from typing import TypeVar

from pebble import ProcessExpired

from cosim.errors import CosimError, SimulationError
from cosim.montecarlo.trial import Record, Trial, behavioral_record, drawn_record, failed, run_chips
from cosim.simulation.failures import FailureKind
from cosim.simulation.workers import worker_pool

BEHAVIORAL_CHUNK = 8  # chips of a task: 0.1 s of work

_POLL = 1.0  # s between looks for tasks that take too long
_TRIES = 2

Result = TypeVar("Result")

_trial: Trial | None = None  # of a local worker process; its initializer sets it


def run_local(trial: Trial, numbers: Sequence[int], jobs: int, timeout: float) -> Iterator[Record]:
    """Run chips in `jobs` processes; a chip that takes longer than `timeout` second is killed."""
    with worker_pool(jobs, _set_trial, (trial,)) as pool:
        try:
            # The pool's own time-out kills the process; the one of `_collect` is only for executors that cannot.
            yield from _collect(
                lambda chunk: pool.schedule(_run_here, args=(chunk,), timeout=timeout * len(chunk)),
                trial, numbers, 2 * jobs, timeout, patience=float("inf"),
            )  # fmt: skip
        except BaseException:
            pool.stop()
            raise


def run_on(executor: Executor, trial: Trial, numbers: Sequence[int], slots: int, timeout: float) -> Iterator[Record]:
    """Run chips on an executor with `submit`, as many tasks at a time as it has `slots`.

    A task that takes longer is given up; it may go on where it is, but its record says that it failed.
    """
    yield from _collect(
        lambda chunk: executor.submit(run_chips, trial, chunk), trial, numbers, slots, timeout, patience=timeout
    )


def map_chips(
    work: Callable[[Trial, int], Result], trial: Trial, numbers: Sequence[int], jobs: int
) -> Iterator[Result]:
    """`work` on each chip in `jobs` processes, in order of the numbers. Raises SimulationError when a worker died."""
    size = 1 if trial.engine == "ngspice" else BEHAVIORAL_CHUNK
    with worker_pool(jobs, _set_trial, (trial,)) as pool:
        try:
            yield from pool.map(partial(_work_here, work), numbers, chunksize=size).result()
        except ProcessExpired as error:
            raise SimulationError(
                f"a worker process ended with exit code {error.exitcode}, by memory perhaps; try fewer --jobs"
            ) from None
        except BaseException:
            pool.stop()
            raise


def _collect(
    submit: Callable[[tuple[int, ...]], Future[list[Record]]],
    trial: Trial,
    numbers: Sequence[int],
    slots: int,
    timeout: float,
    patience: float,
) -> Iterator[Record]:
    """Keep `slots` tasks in flight.

    A task whose worker died is tried once more, then each of its chips alone; one that took too long goes on as its
    single chips.
    """
    waiting = [(chunk, 0) for chunk in reversed(_chunks(trial, numbers))]
    flying: dict[Future[list[Record]], tuple[tuple[int, ...], int, float]] = {}
    while waiting or flying:
        while waiting and len(flying) < slots:
            chunk, tries = waiting.pop()
            flying[submit(chunk)] = chunk, tries, monotonic()
        done, _ = wait(flying, timeout=_POLL, return_when=FIRST_COMPLETED)
        for future in done:
            chunk, tries, _ = flying.pop(future)
            try:
                yield from future.result()
            except TimeoutError:
                if len(chunk) > 1:
                    waiting.extend(((number,), 0) for number in reversed(chunk))
                else:
                    yield from _failed(trial, chunk, FailureKind.TIMEOUT, f"after {timeout:g} s")
            except CosimError:
                raise
            except Exception as error:  # whatever an executor raises when it lost a worker
                if tries < _TRIES - 1:
                    waiting.append((chunk, tries + 1))
                elif len(chunk) > 1:
                    waiting.extend(((number,), 0) for number in reversed(chunk))
                else:
                    yield from _failed(trial, chunk, FailureKind.CRASH, f"{type(error).__name__}: {error}")
        for future, (chunk, _, since) in list(flying.items()):
            if monotonic() - since > patience * len(chunk) and not future.done():
                future.cancel()
                del flying[future]
                yield from _failed(trial, chunk, FailureKind.TIMEOUT, f"after {timeout:g} s")


def _failed(trial: Trial, numbers: tuple[int, ...], kind: FailureKind, detail: str) -> Iterator[Record]:
    """Without the figures of the engine that failed: what killed a worker must not run here."""
    record = behavioral_record if trial.engine == "ngspice" else drawn_record
    for number in numbers:
        yield failed(record(trial, trial.chip(number)), kind.value, detail)


def _set_trial(trial: Trial) -> None:
    global _trial
    _trial = trial


def _run_here(numbers: tuple[int, ...]) -> list[Record]:
    assert _trial is not None
    return run_chips(_trial, numbers)


def _work_here(work: Callable[[Trial, int], Result], number: int) -> Result:
    assert _trial is not None
    return work(_trial, number)


def _chunks(trial: Trial, numbers: Sequence[int]) -> list[tuple[int, ...]]:
    size = 1 if trial.engine == "ngspice" else BEHAVIORAL_CHUNK
    return [tuple(numbers[k : k + size]) for k in range(0, len(numbers), size)]
