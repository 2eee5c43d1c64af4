"""A task by its name on the command line."""

from pathlib import Path

from cosim.errors import InputError
from cosim.tasks.copy_first import generate_copy_first_task, generate_copy_item_task
from cosim.tasks.digits import load_digits_task
from cosim.tasks.flip_flop import generate_flip_flop_task
from cosim.tasks.from_npz import load_npz_task
from cosim.tasks.fsdd import load_fsdd_task
from cosim.tasks.mnist import load_mnist_task
from cosim.tasks.parity import generate_parity_task
from cosim.tasks.speech_commands import load_speech_commands_task
from cosim.tasks.task import Task

WITHOUT_DATA = {
    "digits": load_digits_task,
    "copy-first": generate_copy_first_task,
    "copy-first-300": lambda: generate_copy_first_task(steps=300),
    "copy-first-1000": lambda: generate_copy_first_task(steps=1000),
    "copy-first-quiet": lambda: generate_copy_first_task(noise=False),
    "copy-item": generate_copy_item_task,
    "flip-flop": generate_flip_flop_task,
    "parity": generate_parity_task,
}
WITH_FOLDER = {
    "speech-commands": load_speech_commands_task,
    "fsdd": load_fsdd_task,
    "mnist": load_mnist_task,
    "mnist-pixels": lambda folder: load_mnist_task(folder, by_pixel=True),
}
TASKS = (*WITHOUT_DATA, *WITH_FOLDER, "npz")


def check_task(name: str | None) -> str:
    """The name itself if there is such a task; else, or for None, InputError with the names of all."""
    if name not in TASKS:
        found = "none was given" if name is None else f"not {name!r}"
        raise InputError(f"TASK must be one of {', '.join(TASKS)}, {found}; for data of your own use npz with --data")
    return name


def load_task(name: str, data: Path | None = None) -> Task:
    """The task called `name`; `data` is its folder, or the file for `npz`.

    Raises InputError for an unknown name, and for data that is missing or not asked for.
    """
    check_task(name)
    if name in WITHOUT_DATA:
        if data is not None:
            raise InputError(f"task {name} brings its own data; leave --data out, or use the task npz")
        return WITHOUT_DATA[name]()
    if data is None:
        wanted = "an .npz file" if name == "npz" else "the folder of the data set"
        raise InputError(f"task {name} needs its data; give {wanted} with --data")
    return load_npz_task(data) if name == "npz" else WITH_FOLDER[name](data)
