"""A task by its name on the command line."""

import re
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from cosim.base.errors import InputError
from cosim.base.text import shown_name
from cosim.tasks.from_npz import load_npz_task
from cosim.tasks.images import (
    load_cifar_task,
    load_digits_task,
    load_mnist_task,
    load_pathfinder_task,
    load_permuted_mnist_task,
)
from cosim.tasks.lorenz import generate_lorenz_task
from cosim.tasks.memory import (
    COPY_STEPS,
    ITEMS,
    copy_sets,
    generate_copy_first_task,
    generate_copy_item_task,
    generate_copy_value_task,
    generate_delayed_product_task,
    generate_flip_flop_reads_task,
    generate_flip_flop_task,
    generate_parity_task,
    generate_published_parity_task,
)
from cosim.tasks.spoken import load_fsdd_task, load_keywords_task, load_speech_commands_task
from cosim.tasks.task import StepTask, Task
from cosim.tasks.tokens import generate_listops_task, load_characters_task, load_reviews_task

WITHOUT_DATA: dict[str, Callable[[], Task]] = {
    "digits": load_digits_task,
    "pixel-digits": lambda: load_digits_task(by_pixel=True),
    "flip-flop": generate_flip_flop_task,
    "parity": generate_parity_task,
    "parity-published": generate_published_parity_task,
    "listops": generate_listops_task,
}
WITH_FOLDER: dict[str, Callable[[Path], Task]] = {
    "speech-commands": load_speech_commands_task,
    "kws-yes": lambda folder: load_keywords_task(folder, "yes"),
    "kws-yes-all": lambda folder: load_keywords_task(folder, "yes-all"),
    "kws-words-all": lambda folder: load_keywords_task(folder, "words-all"),
    "kws-digits": lambda folder: load_keywords_task(folder, "digits"),
    "kws-all": lambda folder: load_keywords_task(folder, "all"),
    "fsdd": load_fsdd_task,
    "cifar10": load_cifar_task,
    "cifar10-grey": lambda folder: load_cifar_task(folder, grey=True),
    "imdb": load_reviews_task,
    "mnist": load_mnist_task,
    "mnist-pixels": lambda folder: load_mnist_task(folder, by_pixel=True),
}
WITH_FILE: dict[str, Callable[[Path], Task]] = {"pathfinder": load_pathfinder_task, "npz": load_npz_task}
STEP_TASKS: dict[str, Callable[[], StepTask]] = {
    "lorenz": generate_lorenz_task,
    "delayed-product": generate_delayed_product_task,
    "flip-flop-reads": generate_flip_flop_reads_task,
    "characters": load_characters_task,
}
# of any length, and with the published sets; of any seed
FAMILIES = (
    "copy-item[-STEPS], copy-first[-quiet][-STEPS], copy-value[-quiet][-STEPS], listops-TOKENS, mnist-permuted-SEED"
)
_COPY = re.compile(r"(copy-item|copy-first|copy-value)((?<!item)-quiet)?(?:-([1-9]\d{0,8}))?(-published)?")
_LISTOPS = re.compile(r"listops-([1-9]\d{0,8})")
_PERMUTED = re.compile(r"mnist-permuted-(0|[1-9]\d{0,8})")


def brings_data(name: str) -> bool:
    """Tell whether a task of this name needs no files."""
    return _generator(name) is not None


def is_task(name: str) -> bool:
    """Tell whether there is a task of this name that has one target a sequence."""
    return brings_data(name) or _loader(name) is not None


def is_published_copy(name: str) -> bool:
    """Tell whether a task of this name has the seed paper's 12,000 training samples, of which 2,000 validate."""
    match = _COPY.fullmatch(name)
    return match is not None and match[4] is not None


def check_task(name: str | None, *, steps: bool = False) -> str:
    """Return a task's name unchanged if there is such a task.

    steps: tasks with a target at each step are allowed as well. Raises InputError for another name and for None; it
    lists all names.
    """
    if name is not None and (is_task(name) or (steps and name in STEP_TASKS)):
        return name
    if name in STEP_TASKS:
        raise InputError(
            f"task {name} has a target at each step, and a hardware network is trained with one target a sequence; "
            "take a model that stays software for it"
        )
    if name is not None and (name.endswith(".npz") or Path(name).exists()):
        _refuse_path(Path(name))
    found = "none was given" if name is None else f"not {shown_name(name)!r}"
    names = ", ".join((*WITHOUT_DATA, FAMILIES, *WITH_FOLDER, *WITH_FILE, *(STEP_TASKS if steps else ())))
    near = get_close_matches(name or "", (*WITHOUT_DATA, *WITH_FOLDER, *WITH_FILE), n=1)
    meant = "".join(f" (did you mean {one}?)" for one in near)
    raise InputError(f"TASK must be one of {names}, {found}{meant}; for data of your own use npz with --data")


def _refuse_path(path: Path) -> NoReturn:
    """Raise InputError for a path in place of the name of a task: it says how to load such data."""
    shown = shown_name(str(path))
    if path.is_dir():
        repair = f"give the folder of a data set with --data: cosim train speech-commands --data {shown}"
    elif path.suffix == ".npz":
        repair = f"for data of your own the task is npz: cosim train npz --data {shown}"
    else:
        repair = "for data of your own write an .npz (docs/how-to/train-on-my-data.md): cosim train npz --data FILE.npz"
    raise InputError(f"TASK must be the name of a task, not a path, {shown!r}; {repair}")


def load_task(name: str, data: Path | None = None) -> Task:
    """Load the task of this name; data: the data set's folder, or the file of `npz` and `pathfinder`, else None.

    Raises InputError for an unknown name, and for data that are missing or not wanted.
    """
    check_task(name)
    generate, load = _generator(name), _loader(name)
    if generate is not None:
        if data is not None:
            raise InputError(f"task {name} brings its own data; leave --data out, or use the task npz")
        return generate()
    if data is None:
        wanted = "an .npz file" if name in WITH_FILE else "the folder of the data set"
        raise InputError(f"task {name} needs its data; give {wanted} with --data")
    assert load is not None
    return load(data)


def load_step_task(name: str, data: Path | None = None) -> StepTask:
    """Load the task of this name, with a target at each step; data: a text file for `characters`, else None.

    Raises InputError for an unknown name, and for data that are not wanted.
    """
    if name not in STEP_TASKS:
        raise InputError(f"the task must be one of {', '.join(STEP_TASKS)}, not {shown_name(name)!r}")
    if data is None:
        return STEP_TASKS[name]()
    if name != "characters":
        raise InputError(f"task {name} brings its own data; leave --data out")
    return load_characters_task(data)


def _generator(name: str) -> Callable[[], Task] | None:
    if match := _COPY.fullmatch(name):
        kind, quiet, steps, _ = match.groups()
        return lambda: _copy_task(name, kind, int(steps or COPY_STEPS), noise=quiet is None)
    if match := _LISTOPS.fullmatch(name):
        longest = int(match[1])
        return lambda: replace(generate_listops_task(longest), name=name)
    return WITHOUT_DATA.get(name)


def _loader(name: str) -> Callable[[Path], Task] | None:
    if match := _PERMUTED.fullmatch(name):
        seed = int(match[1])
        return lambda folder: load_permuted_mnist_task(folder, seed)
    return WITH_FOLDER.get(name) or WITH_FILE.get(name)


def _copy_task(name: str, kind: str, steps: int, *, noise: bool) -> Task:
    features = {"copy-item": ITEMS, "copy-first": 2}.get(kind, 1)
    sets = copy_sets(steps, features, published=is_published_copy(name))
    if kind == "copy-item":
        return replace(generate_copy_item_task(steps, *sets), name=name)
    generate = generate_copy_first_task if kind == "copy-first" else generate_copy_value_task
    return replace(generate(steps, *sets, noise=noise), name=name)
