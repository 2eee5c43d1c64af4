"""Progress of a long run: a bar on a terminal, elsewhere now and then a line."""

import sys
import threading
import time
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import click

from cosim.base.errors import CosimWarning, printable

_Place = Any  # file and line of a warning, as the library of warnings has them
LONG = 90.0  # s that a run has to go on from where the time left is said
SILENCE = 30.0  # s without a line after which the next report is one; without a report the last one is said again


def say(text: str) -> None:
    """Print a line of a verb's progress on stderr, so that stdout stays for results; above a bar where there is one."""
    from tqdm import tqdm

    tqdm.write(f"  {printable(text)}", file=sys.stderr)


@contextmanager
def printing_warnings() -> Generator[None, None, None]:
    """Print each `CosimWarning` as a line on stderr, however often it comes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", CosimWarning)
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: _Place) -> None:
            if issubclass(category, CosimWarning):
                click.echo(f"warning: {printable(str(message))}", err=True)
            else:
                others(message, category, *where)

        warnings.showwarning = show
        yield


class Progress(Protocol):
    """Interface of a function that hears how far a verb's run is; `values` are its figures at this point."""

    def __call__(self, done: int, total: int, values: Mapping[str, float] = ..., /) -> None: ...


@contextmanager
def progress_bar(label: str) -> Generator[Progress, None, None]:
    """Show progress on stderr: on a terminal a bar, elsewhere a line at the first report, at every tenth, after half a
    minute without one, and at the last; where nothing is reported, the last line again with the minutes since the
    beginning, so that no silence lasts a minute."""
    with _bar(label) if sys.stderr.isatty() else _lines(label) as progress:
        yield progress


@contextmanager
def _bar(label: str) -> Generator[Progress, None, None]:
    from tqdm import tqdm

    with tqdm(desc=label, unit="run", leave=False) as bar:

        def progress(done: int, total: int, values: Mapping[str, float] = {}, /) -> None:
            bar.total = total
            bar.set_postfix(values, refresh=False)
            bar.update(done - bar.n)

        yield progress


@contextmanager
def _lines(label: str) -> Generator[Progress, None, None]:
    tenth, line, said, last = -1, "", "", time.monotonic()
    opened = last
    began, first = 0.0, -1  # the first report: what an earlier run had done says nothing of this one's pace
    ended, silent = threading.Event(), True

    def remind() -> None:
        nonlocal silent
        while not ended.wait(SILENCE):
            if silent:
                minutes = (time.monotonic() - opened) / 60
                say(f"{line or f'{label}: begun'}, at work for {minutes:.0f} min")
            silent = True

    def progress(done: int, total: int, values: Mapping[str, float] = {}, /) -> None:
        nonlocal tenth, line, said, last, silent, began, first
        now = time.monotonic()
        if first < 0:
            began, first = now, done
        left = (now - began) / (done - first) * (total - done) if done > first else 0.0
        figures = [f"{name} {value:.3g}" for name, value in values.items()]
        figures += [f"about {left / 60:.0f} min left"] if left > LONG else []
        line = ", ".join([f"{label}: {done} of {total}", *figures])
        if (reached := 10 * done // max(total, 1)) > tenth or now - last > SILENCE:
            tenth, said, last, silent = reached, line, now, False
            say(line)

    reminder = threading.Thread(target=remind, daemon=True)
    reminder.start()
    try:
        yield progress
    finally:
        ended.set()
        reminder.join()
    if line != said:  # a run that stopped early
        say(line)
