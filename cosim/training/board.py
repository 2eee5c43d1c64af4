"""The points of a training for TensorBoard, while it runs."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from cosim.base.errors import importing
from cosim.base.resources import install_command
from cosim.base.write import writing_into
from cosim.training.history import Passing, Point

EXTRA = install_command("tensorboard")


@contextmanager
def writing_board(folder: Path | None) -> Generator[Passing | None, None, None]:
    """Yield a function that writes the points of training curves for TensorBoard, a subfolder per seed; None for None.

    A training that is resumed adds the points from there on. The files hold times and are no results. Raises
    MissingToolError where tensorboard is not installed, InputError where the folder cannot be written.
    """
    if folder is None:
        yield None
        return
    with importing("--tensorboard", EXTRA):
        from torch.utils.tensorboard import SummaryWriter
    with writing_into(folder):
        writers: dict[int, SummaryWriter] = {}

        def write(seed: int, point: Point) -> None:
            if seed not in writers:
                writers[seed] = SummaryWriter(str(folder / f"seed{seed}"))
            for name, value in point._asdict().items():
                if name != "iteration":
                    writers[seed].add_scalar(name, value, int(point.iteration))

        try:
            yield write
        finally:
            for writer in writers.values():
                writer.close()
