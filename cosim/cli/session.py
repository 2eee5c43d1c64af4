"""The run of a verb: its folder, the settings that it writes there, its output, and signals that stop it."""

import signal
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING

from cosim.base.errors import CosimError
from cosim.cli.progress import say

if TYPE_CHECKING:
    from pathlib import Path

    from cosim.base.settings import RunSettings


class VerbSession:
    """One run of a verb, as a context manager that holds the verb's folder until the run ends.

    settings: written beside the results as run.toml, None for a verb that writes none; fresh: whether to remove the
    results that an earlier run has kept; echo: function that prints a line of results while the verb runs.
    """

    def __init__(
        self,
        settings: "RunSettings | None" = None,
        *,
        fresh: bool = False,
        echo: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings, self.fresh, self.echo = settings, fresh, echo
        self._held = ExitStack()

    def __enter__(self) -> "VerbSession":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.__exit__(kind, error, trace)

    def keep_settings(self, place: "Path") -> None:
        """Write run.toml into the folder `place`, or beside a file `place`; print differences from earlier settings.

        Raises InputError when it cannot be written.
        """
        from cosim.cli.settings import keeping_settings  # what a help text need not wait for

        if self.settings is not None:
            self._held.enter_context(keeping_settings(place, self.settings))

    def take_folder(self, verb: str, folder: "Path") -> None:
        """Make a verb's folder, hold it until the verb ends (see `own_folder`), and write run.toml into it.

        Results that an earlier run kept there are removed if the session is fresh; damaged ones are named on stderr.
        """
        from cosim.base.claim import own_folder
        from cosim.base.store import clear_kept, describe_damaged_results

        self._held.enter_context(own_folder(folder, verb))
        if self.fresh:
            clear_kept(folder)
        self.keep_settings(folder)
        for text in describe_damaged_results(folder):
            say(text)


_CONTINUES = "the same command continues where it stopped"
_ANEW = "the same command begins anew"
_DEAF = "/torch/"  # torch aborts while it is imported
_LOCKING = ("/threading.py", "/concurrent/futures/_base.py")  # files of what takes a lock, or gives it for a wait
_TAKING = ("__enter__", "__exit__", "_release_save", "_acquire_restore")
_LATER = 1e-3  # s
GO_ON = {
    "demo": _CONTINUES,
    "train": _CONTINUES,
    "backbone": _CONTINUES,
    "reproduce": _CONTINUES,
    "simulate": _CONTINUES,
    "compare": _CONTINUES,
    "power": _CONTINUES,
    "montecarlo": _CONTINUES,
    "datasheet": _CONTINUES,
    "sweep": _CONTINUES,
    "explore": _CONTINUES,
    "harden": _CONTINUES,
    "signoff": _CONTINUES,
    "trim": _CONTINUES,
    "characterize": f"{_ANEW}, that of a ladder continues",
}


class Stop(KeyboardInterrupt):
    """A signal that asks a verb to stop; as a KeyboardInterrupt it triggers the cleaning up that Ctrl-C does."""

    def __init__(self, number: int) -> None:
        self.number = number


class StoppedError(CosimError):
    """An error that says that a signal stopped a verb; exit_code: 128 + the signal's number, as in shells."""

    def __init__(self, stop: KeyboardInterrupt, verb: str | None) -> None:
        number = stop.number if isinstance(stop, Stop) else signal.SIGINT
        self.exit_code = 128 + number
        said = "terminated" if number == signal.SIGTERM else "interrupted"
        super().__init__(f"{said}; {GO_ON.get(verb or '', _ANEW)}")


@contextmanager
def stopping_on_signals() -> Generator[None, None, None]:
    """Make SIGINT and SIGTERM raise Stop in the context; a second signal ends the process at once.

    A signal that is ignored already, as under nohup, stays ignored. A Stop that had to wait is dropped if the work ends
    first.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heard = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def stop(number: int, frame: FrameType | None) -> None:
        for each in heard:
            signal.signal(each, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, lambda _, there: _raise_where_it_is_heard(number, there))
        _raise_where_it_is_heard(number, frame)

    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    finally:
        if any(signal.getsignal(number) is not stop for number in heard):
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number in heard:
            signal.signal(number, before[number])


def _raise_where_it_is_heard(number: int, frame: FrameType | None) -> None:
    """Raise Stop, or try again in 1 ms by SIGALRM where an exception would do harm.

    It would do harm in torch, whose import would abort, and while a lock is being taken or released.
    """
    frames = list[CodeType]()
    while frame is not None:
        frames.append(frame.f_code)
        frame = frame.f_back
    locking = frames and frames[0].co_name in _TAKING and frames[0].co_filename.endswith(_LOCKING)
    if locking or any(_DEAF in code.co_filename for code in frames):
        signal.setitimer(signal.ITIMER_REAL, _LATER)
        return
    raise Stop(number)
