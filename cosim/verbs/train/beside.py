"""Files beside a checkpoint that `cosim train` and `cosim backbone` write, and the message when training is stopped.

The curve of a training is in model_curve.csv and model_curve.svg, both made from the history in the checkpoint.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from cosim.base.claim import check_replaceable
from cosim.base.settings import settings_beside
from cosim.base.text import format_csv
from cosim.base.write import write_together
from cosim.cli.progress import Progress
from cosim.cli.session import StoppedError, VerbSession
from cosim.results.figures import BLUE, GREY, RED, Figure, figure_bytes, plain

Columns = Mapping[str, Sequence[float]]
_WHOLE = ("seed", "iteration")
_ORDER = (*_WHOLE, "loss", "validation_loss", "validation_accuracy", "validation_mae", "epsilon", "learning_rate")
_NAMES = {"validation_accuracy": "held-out accuracy", "validation_mae": "held-out mean\nabsolute error"}


def curve_paths(checkpoint: Path) -> tuple[Path, Path]:
    """Return the paths of the table and the picture of a checkpoint's training curve."""
    beside = checkpoint.with_name(f"{checkpoint.stem}_curve")
    return beside.with_suffix(".csv"), beside.with_suffix(".svg")


def is_curve(table: Path) -> bool:
    """Tell whether a file is the table of a training curve, from its first line."""
    try:
        with table.open("rb") as file:
            return file.readline(1000).startswith(",".join(_ORDER[:3]).encode())
    except OSError:
        return False


def write_curve(checkpoint: Path, columns: Columns) -> None:
    """Write the table and the picture of a training curve, or neither.
    columns: as in `cosim.training.history.Recorder`. Raises InputError when a file cannot be written."""
    table, picture = curve_paths(checkpoint)
    write_together({table: _format_csv(columns), picture: figure_bytes(draw_curve(columns), "svg")})


def _format_csv(columns: Columns) -> bytes:
    names = [name for name in _ORDER if name in columns]
    rows = zip(*(map(int, columns[name]) if name in _WHOLE else columns[name] for name in names), strict=True)
    return format_csv(names, rows).encode()


def draw_curve(columns: Columns) -> Figure:
    """Draw loss, score, epsilon and learning rate over the iterations; the first seed is dark, others are pale."""
    figure = Figure(figsize=(7.0, 6.4), layout="constrained")
    loss, scored, annealed, rated = axes = figure.subplots(4, 1, sharex=True, height_ratios=(2, 2, 1, 1))
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}
    score = next(name for name in columns if name in _NAMES)
    for place, seed in enumerate(dict.fromkeys(columns["seed"])):
        own = {name: values[arrays["seed"] == seed] for name, values in arrays.items()}
        pale = {"alpha": 1.0 if place == 0 else 0.35, "lw": 1.0}
        labels = ("training", "held out") if place == 0 else (None, None)
        loss.plot(own["iteration"], own["loss"], color=GREY, label=labels[0], **pale)
        loss.plot(own["iteration"], own["validation_loss"], color=BLUE, label=labels[1], **pale)
        for axis, name, color in ((scored, score, BLUE), (annealed, "epsilon", RED), (rated, "learning_rate", RED)):
            axis.plot(own["iteration"], own[name], color=color, **pale)
    if score == "validation_accuracy":
        scored.set_ylim(0, 1.02)
    for axis, text in zip(axes, ("loss", _NAMES[score], "epsilon", "learning rate"), strict=True):
        axis.set_ylabel(text, fontsize=8)
        axis.set_xlim(0, arrays["iteration"].max())
    loss.legend(fontsize=7, frameon=False)
    rated.set_xlabel("iteration")
    plain(*axes)
    return figure


class CalledProgress:
    """A progress callback that remembers whether it was called, that is, whether there was work to do."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self.something = progress, False

    def __call__(self, done: int, total: int, values: Mapping[str, float]) -> None:
        self.something = True
        self._progress(done, total, values)


def check_output(output: Path) -> None:
    """Check that a checkpoint and the files beside it can be written.

    Raises InputError where one cannot, or would replace a file that cosim has not written.
    """
    from cosim.base.settings import is_settings
    from cosim.exchange.checkpoint import is_written_here

    table, picture = curve_paths(output)
    settings = settings_beside(output)
    check_replaceable(
        {output: is_written_here, table: is_curve, picture: lambda _: is_curve(table), settings: is_settings}
    )


def write_beside(output: Path, history: Mapping[str, object], session: VerbSession, *, trained: bool) -> None:
    """Write a training's curve and settings beside its checkpoint.

    trained: False if the checkpoint was complete before; a message then says so, and only missing files are written.
    """
    from cosim.base.text import shown_path, typed

    if not trained:
        session.echo(f"{shown_path(output)} is there, trained so on this data; --fresh trains it again")
    if trained or not all(path.exists() for path in curve_paths(output)):
        curve = typed(history.get("curve"), dict[str, list[float]], "history", "train it again", "curve")
        write_curve(output, curve)
    if trained or not settings_beside(output).exists():
        session.keep_settings(output)


@contextmanager
def stopping_truthfully(*kept: Path) -> Generator[None, None, None]:
    """Raise StoppedError without a promise to continue if training is stopped and none of the kept files exists."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if any(path.is_file() for path in kept):
            raise
        raise StoppedError(stop, None) from None
