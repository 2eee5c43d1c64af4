"""Worker processes that die with their parent, however it dies."""

import os
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

from pebble import ProcessPool

_LOOK = 1.0  # s between looks for the parent


def worker_pool(jobs: int, prepare: Callable[..., None] | None = None, arguments: tuple[Any, ...] = ()) -> ProcessPool:
    """A pool of `jobs` processes, each of which begins with `prepare(*arguments)`.

    Spawned: a forked child would share the parent's library state, and ngspice allows one instance per process. A
    parent that is killed cannot stop its workers; a worker in a long simulation would go on for minutes.
    """
    return ProcessPool(
        max_workers=jobs, context=get_context("spawn"), initializer=_begin, initargs=(os.getpid(), prepare, arguments)
    )


def _begin(parent: int, prepare: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if prepare is not None:
        prepare(*arguments)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)
