"""Shared by `cosim train` and `cosim backbone`: the files beside a checkpoint, and the message after a stop."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cosim.base.claim import check_replaceable
from cosim.base.settings import settings_beside
from cosim.cli.progress import Progress
from cosim.cli.session import VerbSession
from cosim.cli.stopping import StoppedError


class Heard:
    """A progress that knows whether there was something to do."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self.something = progress, False

    def __call__(self, done: int, total: int, values: Mapping[str, float]) -> None:
        self.something = True
        self._progress(done, total, values)


def check_output(output: Path) -> None:
    """Raise InputError where a checkpoint, or a file beside it, could not be written, or where such a file is
    there that cosim has not written."""
    from cosim.base.settings import is_settings
    from cosim.exchange.checkpoint import is_written_here
    from cosim.verbs.train.curve import curve_paths, is_curve

    table, picture = curve_paths(output)
    settings = settings_beside(output)
    check_replaceable(
        {output: is_written_here, table: is_curve, picture: lambda _: is_curve(table), settings: is_settings}
    )


def write_beside(output: Path, history: Mapping[str, object], session: VerbSession, *, trained: bool) -> None:
    """Write the curve and the settings of a training beside its checkpoint; says so where it was whole before, and
    writes what is missing then."""
    from cosim.base.text import shown_path, typed
    from cosim.verbs.train.curve import TrainingCurve, curve_paths, write_curve

    if not trained:
        session.echo(f"{shown_path(output)} is there, trained so on this data; --fresh trains it again")
    if trained or not all(path.exists() for path in curve_paths(output)):
        write_curve(output, typed(history, TrainingCurve, "history", "train it again").curve)
    if trained or not settings_beside(output).exists():
        session.keep_settings(output)


@contextmanager
def stopping_truthfully(*kept: Path) -> Generator[None, None, None]:
    """Raise StoppedError without a promise to go on, for a stop that leaves none of the files that a training goes on
    with."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if any(path.is_file() for path in kept):
            raise
        raise StoppedError(stop, None) from None
