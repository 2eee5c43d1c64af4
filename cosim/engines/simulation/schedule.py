"""Many tasks on an executor: the one place where tasks are submitted, watched, tried again and given up.

A limit counts the processor's time where an executor tells it, as `WorkerPool` does, and else the monotonic clock's: a
loaded machine, a wall clock that is set, or a laptop that wakes up, ends nothing. Who waits WAIT times as long without
using the processor is ended, too.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from cosim.base.errors import CosimError
from cosim.engines.engine import FailureKind
from cosim.engines.processor import WAIT
from cosim.engines.simulation.workers import PoolFuture, WorkerDied

TRIES = 2
_log = logging.getLogger("cosim")
_POLL = 0.5  # s at most between looks for tasks that take too long

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Lost:
    """Reason why a simulation's task has no result: TIMEOUT or CRASH, and what was seen."""

    kind: FailureKind
    detail: str


@dataclass
class _Flight(Generic[Task]):
    """A submitted task: its try, and since when it runs."""

    task: Task
    tries: int
    since: float | None = None


def run_tasks(
    submit: Callable[[Task], Future[Result]],
    tasks: Iterable[Task],
    slots: int,
    limit: Callable[[Task], float],
    started: Callable[[Future[Result]], bool] = Future.running,
) -> Iterator[tuple[Task, Result | Lost]]:
    """Run tasks in worker processes and yield each with its result as it finishes, `slots` of them submitted at a time.

    A task that runs for more than `limit(task)` seconds is cancelled; one whose worker died is tried TRIES times.
    A line on stderr says so, with the text of the task. `started` says whether a future's task runs; where nothing
    tells, time counts from the submission. Raises a CosimError that a task raised.
    """
    waiting = deque(_Flight(task, 1) for task in tasks)
    flying: dict[Future[Result], _Flight[Task]] = {}
    while waiting or flying:
        while waiting and len(flying) < slots:
            flight = waiting.popleft()
            flying[submit(flight.task)] = flight
        look = min(_POLL, *(limit(flight.task) for flight in flying.values()))
        done, _ = wait(flying, timeout=look, return_when=FIRST_COMPLETED)
        for future in done:
            flight = flying.pop(future)
            outcome = _outcome(future)
            if isinstance(outcome, Lost) and flight.tries < TRIES:
                _log.warning("a worker process ended (%s) with %s; another runs it again", outcome.detail, flight.task)
                waiting.appendleft(_Flight(flight.task, flight.tries + 1))
            else:
                yield flight.task, outcome
        for future in [future for future, flight in flying.items() if _is_late(future, flight, limit, started)]:
            future.cancel()
            task = flying.pop(future).task
            yield task, Lost(FailureKind.TIMEOUT, f"after {limit(task):g} s")


def _is_late(
    future: Future[Result],
    flight: _Flight[Task],
    limit: Callable[[Task], float],
    started: Callable[[Future[Result]], bool],
) -> bool:
    if flight.since is None and started(future):
        flight.since = monotonic()
    if flight.since is None or future.done():
        return False
    waited, longest = monotonic() - flight.since, limit(flight.task)
    if waited <= longest or waited > WAIT * longest:
        return waited > longest
    used = future.processor_time() if isinstance(future, PoolFuture) else None
    return used is None or used > longest


def _outcome(future: Future[Result]) -> Result | Lost:
    try:
        return future.result()
    except CosimError:
        raise
    except WorkerDied as error:
        return Lost(FailureKind.CRASH, str(error))
    except Exception as error:  # whatever another executor raises when it lost a worker
        return Lost(FailureKind.CRASH, f"{type(error).__name__}: {error}")
