"""Worker processes behind `submit`: a call that takes too long can be ended, and no worker outlives its parent.

A worker is a plain interpreter with a socket to its parent. It imports what a call names, and nothing else: not the
caller's `__main__`, which `multiprocessing` would run a second time in a script without a guard and cannot find in one
from standard input, and no module of the current folder. A thread here waits for each worker.

Many tasks on an executor: the one place where tasks are submitted, watched, tried again and given up.

A limit counts the processor's time where an executor tells it, as `WorkerPool` does, and else the monotonic clock's: a
loaded machine, a wall clock that is set, or a laptop that wakes up, ends nothing. Who waits WAIT times as long without
using the processor is ended, too.
"""

import logging
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from time import monotonic
from typing import Any, Generic, Self, TypeVar

from cosim.base.errors import CosimError
from cosim.engines.engine import Failure, FailureKind
from cosim.engines.processor import WAIT, Interpreter, ProcessDied, end_with_parent, processor_time

Call = tuple[Callable[..., Any], tuple[Any, ...]]


class WorkerPool:
    """A pool of at most `jobs` worker processes for simulations, each of which first calls `prepare(*arguments)`.

    Use it in a `with` statement. Calls and their results are pickled. A process starts only when there is a call for
    it.
    """

    def __init__(self, jobs: int, prepare: Callable[..., None] | None = None, *arguments: object) -> None:
        self._calls: SimpleQueue[PoolFuture | None] = SimpleQueue()
        self._jobs, self._prepare = jobs, (prepare or _nothing, arguments)
        self._workers: list[_Worker] = []

    def submit(self, function: Callable[..., Any], /, *arguments: object) -> Future[Any]:
        """Submit a call to a worker process and return its future, whose `cancel` ends the call even while it runs.

        The future's exception is ProcessDied where the worker ended, else what the function raised.
        """
        pending = PoolFuture((function, arguments))
        self._calls.put(pending)
        if len(self._workers) < self._jobs:
            self._workers.append(_Worker(self._calls, self._prepare))
            self._workers[-1].start()
        return pending

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            with suppress(RuntimeError):  # a signal came before it was started: it has been told to end
                worker.join()


class PoolFuture(Future[Any]):
    """The future of a call that waits for a worker process, or runs in one."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call
        self._lock = threading.Lock()
        self._process: _Process | None = None  # in which it runs
        self._before = 0.0  # s that the process had used when it began

    def run_in(self, process: "_Process") -> None:
        """Run the call in a worker process, wait for its result, and set it."""
        with self._lock:
            if not self.set_running_or_notify_cancel():
                return
            self._process, self._before = process, processor_time(process.pid) or 0.0
        try:
            result = process.call(self._call)
        except Exception as error:
            self._leave()
            self.set_exception(error)
        else:
            self._leave()
            self.set_result(result)

    def fail(self, error: Exception) -> None:
        """Set an error as the outcome of the call, for which there is no worker process."""
        if self.set_running_or_notify_cancel():
            self.set_exception(error)

    def cancel(self) -> bool:
        """Cancel the call; if it runs already, its worker process is killed."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
        return super().cancel()

    def processor_time(self) -> float | None:
        """Return the processor time of the running call in its worker process, s; None where it is not known."""
        with self._lock:
            used = None if self._process is None else processor_time(self._process.pid)
            return None if used is None else used - self._before

    def _leave(self) -> None:
        with self._lock:
            self._process = None


class _Worker(threading.Thread):
    """The thread that feeds one worker process; a process that has ended is replaced at the next call."""

    def __init__(self, calls: "SimpleQueue[PoolFuture | None]", prepare: Call) -> None:
        super().__init__(daemon=True)
        self._calls, self._prepare = calls, prepare
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._stopped = False

    def run(self) -> None:
        while (pending := self._calls.get()) is not None:
            try:
                process = self._ready()
            except Exception as error:
                pending.fail(error)
            else:
                pending.run_in(process)
        if self._process is not None:
            self._process.close()

    def stop(self) -> None:
        """Kill the process, start no other, and end."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
        self._calls.put(None)

    def _ready(self) -> "_Process":
        with self._lock:
            if self._stopped:
                raise ProcessDied(-signal.SIGKILL)
            if self._process is not None and self._process.alive:
                return self._process
            process = self._process = _Process()
        process.call(self._prepare)
        return process


class _Process(Interpreter):
    """An interpreter that answers one call after the other."""

    def __init__(self) -> None:
        super().__init__("cosim.engines.simulation.workers")

    def call(self, call: Call) -> object:
        """Run a call in the process and return its value.

        Raises what the call raises, and ProcessDied where the process ended.
        """
        self.send(pickle.dumps(call))
        good, value = pickle.loads(self.receive())
        if not good:
            raise value
        return value


def serve(connection: Connection, parent: int) -> None:
    """Answer the parent's calls in a worker process for simulations, until the connection ends."""
    end_with_parent(connection, parent)
    while True:
        try:
            content = connection.recv_bytes()
        except EOFError:
            return
        try:
            function, arguments = pickle.loads(content)
            answer = True, function(*arguments)
        except Exception as error:
            answer = False, error
        connection.send(answer)


def _nothing() -> None:
    pass


TRIES = 2
_log = logging.getLogger("cosim")
_POLL = 0.5  # s at most between looks for tasks that take too long

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass
class _RunningTask(Generic[Task]):
    """A submitted task, the number of its try, and the time since which it runs, None before that."""

    task: Task
    tries: int
    since: float | None = None


def run_tasks(
    submit: Callable[[Task], Future[Result]],
    tasks: Iterable[Task],
    slots: int,
    limit: Callable[[Task], float],
    started: Callable[[Future[Result]], bool] = lambda future: future.running(),
) -> Iterator[tuple[Task, Result | Failure]]:
    """Run tasks in worker processes, at most `slots` at a time, and yield each with its result as it finishes.

    A task that runs for more than `limit(task)` seconds is cancelled: a Failure of kind TIMEOUT. A task whose worker
    dies runs again, TRIES times in all, and a line on stderr names it; after that it is a Failure of kind CRASH.
    started: tells whether a future's task runs; its time counts from then on. Raises a CosimError that a task raised.
    """
    waiting = deque(_RunningTask(task, 1) for task in tasks)
    flying: dict[Future[Result], _RunningTask[Task]] = {}
    while waiting or flying:
        while waiting and len(flying) < slots:
            flight = waiting.popleft()
            flying[submit(flight.task)] = flight
        look = min(_POLL, *(limit(flight.task) for flight in flying.values()))
        done, _ = wait(flying, timeout=look, return_when=FIRST_COMPLETED)
        for future in done:
            flight = flying.pop(future)
            outcome = _outcome(future)
            if isinstance(outcome, Failure) and flight.tries < TRIES:
                _log.warning("a worker process ended (%s) with %s; another runs it again", outcome.detail, flight.task)
                waiting.appendleft(_RunningTask(flight.task, flight.tries + 1))
            else:
                yield flight.task, outcome
        for future in [future for future, flight in flying.items() if _is_late(future, flight, limit, started)]:
            future.cancel()
            task = flying.pop(future).task
            yield task, Failure(FailureKind.TIMEOUT, f"after {limit(task):g} s")


def _is_late(
    future: Future[Result],
    flight: _RunningTask[Task],
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


def _outcome(future: Future[Result]) -> Result | Failure:
    try:
        return future.result()
    except CosimError:
        raise
    except ProcessDied as error:
        return Failure(FailureKind.CRASH, str(error))
    except Exception as error:  # whatever another executor raises when it lost a worker
        return Failure(FailureKind.CRASH, f"{type(error).__name__}: {error}")
