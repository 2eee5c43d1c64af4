"""Progress of a long run on stderr: a bar on a terminal, else a line now and then."""

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
    """Print a line on stderr, above the progress bar if there is one; stdout is for results."""
    from tqdm import tqdm

    tqdm.write(f"  {printable(text)}", file=sys.stderr)


@contextmanager
def printing_warnings() -> Generator[None, None, None]:
    """Print each `CosimWarning` in the context as a line on stderr, repeated ones as well."""
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
    """A function that a long run calls to report progress: `done` of `total` parts, and figures by name so far."""

    def __call__(self, done: int, total: int, values: Mapping[str, float] = ..., /) -> None: ...


@contextmanager
def progress_bar(label: str) -> Generator[Progress, None, None]:
    """Yield a function for reports of progress, which are shown on stderr: on a terminal as a bar, else as lines.

    A line is printed for the first report, at every tenth of the total, for a report after half a minute without a
    line, and for the last report. While no report comes, the last line is repeated with the minutes since the
    beginning, so that no silence lasts a minute.
    """
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
