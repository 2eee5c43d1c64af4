"""Signals that wait until a training has saved its state."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_signals() -> Iterator[Callable[[], bool]]:
    """Note a first SIGINT or SIGTERM within the context instead of acting on it; yields whether one has come.

    Afterwards it reaches the handler from before. A second one does so at once, and so does one that is ignored, or any
    outside the main thread, where Python handles no signals.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if threading.current_thread() is not threading.main_thread():
        before = {}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    noted: list[int] = []

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(noted)
    finally:
        restore()
    if noted:
        signal.raise_signal(noted[0])
