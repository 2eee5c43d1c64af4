"""Tasks on an executor: deadlines by the monotonic clock, one more try for a dead worker, the rest unharmed."""

from concurrent.futures import Future

import pytest

from cosim.base.errors import InputError
from cosim.engines.engine import Failure, FailureKind
from cosim.engines.processor import WAIT, ProcessDied
from cosim.engines.simulation import workers
from cosim.engines.simulation.workers import PoolFuture, run_tasks


class Scripted:
    """An executor that gives each task, a name, the next of its outcomes; None: it runs and never ends."""

    def __init__(self, **outcomes):
        self.outcomes = {name: iter(found) for name, found in outcomes.items()}
        self.submitted = []

    def submit(self, task):
        self.submitted.append(task)
        future = Future()
        outcome = next(self.outcomes[task])
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        elif outcome is not None:
            future.set_result(outcome)
        else:
            future.set_running_or_notify_cancel()
        return future


@pytest.fixture
def clock(monkeypatch):
    """A monotonic clock that moves on by a second with each look."""
    seconds = iter(range(1000))
    monkeypatch.setattr(workers, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(workers, "_POLL", 0.0)
    return seconds


def test_a_dead_worker_is_named_a_second_try_and_then_a_loss(caplog):
    died = ProcessDied(-9)
    executor = Scripted(a=["A"], b=[died, "B"], c=[died, died, "never"])
    found = dict(run_tasks(executor.submit, ["a", "b", "c"], 1, lambda task: 60.0))
    assert found == {"a": "A", "b": "B", "c": Failure(FailureKind.CRASH, "SIGKILL")}
    assert executor.submitted == ["a", "b", "b", "c", "c"]
    said = "a worker process ended (SIGKILL) with {}; another runs it again"
    assert [record.message for record in caplog.records] == [said.format("b"), said.format("c")]


def test_another_executors_own_words_are_kept():
    executor = Scripted(a=[ConnectionError("gone"), ConnectionError("gone again")])
    assert dict(run_tasks(executor.submit, ["a"], 1, lambda task: 60.0)) == {
        "a": Failure(FailureKind.CRASH, "ConnectionError: gone again")
    }


def test_a_mistake_of_the_user_is_no_loss():
    with pytest.raises(InputError, match="wrong"):
        list(run_tasks(Scripted(a=[InputError("wrong")]).submit, ["a"], 1, lambda task: 60.0))


def test_a_task_that_takes_too_long_is_given_up_and_not_tried_again(clock):
    executor = Scripted(slow=[None], quick=["Q"])
    found = list(run_tasks(executor.submit, ["slow", "quick"], 1, lambda task: 5.0))
    assert found == [("slow", Failure(FailureKind.TIMEOUT, "after 5 s")), ("quick", "Q")]


class Busy(PoolFuture):
    """A call whose worker has used a second of the processor in three looks at the clock."""

    def __init__(self, share):
        super().__init__((abs, (1,)))
        self.looks, self.share = 0, share

    def processor_time(self):
        self.looks += 1
        return self.looks * self.share


def submit_busy(share):
    def submit(task):
        future = Busy(share)
        future.set_running_or_notify_cancel()
        return future

    return submit


def test_a_limit_counts_what_a_worker_has_used(clock):
    """The clock moves on a second with each look; behind 5 s it takes 15 looks until 5 s were used."""
    ((_, lost),) = run_tasks(submit_busy(1 / 3), ["a"], 1, lambda task: 5.0)
    assert lost == Failure(FailureKind.TIMEOUT, "after 5 s")
    assert next(clock) > 5 + 15


def test_one_that_waits_for_ever_is_given_up(clock):
    ((_, lost),) = run_tasks(submit_busy(0.0), ["a"], 1, lambda task: 5.0)
    assert lost.kind is FailureKind.TIMEOUT
    assert WAIT * 5.0 < next(clock) < WAIT * 5.0 + 5


def test_time_counts_once_a_task_runs(clock):
    """A future that only waits is not late, until `started` says otherwise."""
    executor = Scripted(a=[None])
    looks = iter([False] * 20 + [True] * 20)
    seen = []

    def started(future):
        seen.append(next(looks))
        return seen[-1]

    ((task, lost),) = run_tasks(executor.submit, ["a"], 1, lambda task: 5.0, started)
    assert (task, lost.kind) == ("a", FailureKind.TIMEOUT)
    assert seen.count(False) == 20


def test_no_more_tasks_than_slots(clock):
    flying, counts = set(), []

    def submit(task):
        future = Future()
        flying.add(future)
        counts.append(len(flying))
        return future

    def started(future):
        flying.discard(future)
        future.set_result("done")
        return True

    found = run_tasks(submit, "abcde", 2, lambda task: 60.0, started)
    assert sorted(task for task, _ in found) == ["a", "b", "c", "d", "e"]
    assert max(counts) == 2
