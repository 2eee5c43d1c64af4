"""The files that come with the package: device models and trained networks.

They are in `models/` of a checkout and in `cosim/_data/models/` of a wheel. A checkout has precedence, so that an
editable install always reads the files that are being edited.
"""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from cosim.base.errors import InputError

_PACKAGE = Path(__file__).resolve().parent.parent
_DEVICE_SUFFIXES = (".lib", ".spice", ".ngspice")
_NETWORK_SUFFIXES = (".npz", ".json", ".pt")


def install_command(extra: str) -> str:
    """Return the command that installs an extra of this package, from the checkout if it runs from one."""
    root = _PACKAGE.parent
    if not (root / "pyproject.toml").is_file():
        return f"python -m pip install 'cosim-analog[{extra}]'"
    place = "." if Path().samefile(root) else str(root)
    return f"python -m pip install -e {quote(f'{place}[{extra}]')}"


def models_path() -> Path:
    """Return the folder of the files that come with the package, which holds `devices/` and `trained/`.

    Raises InputError if the installation has lost it.
    """
    candidates = (_PACKAGE.parent / "models", _PACKAGE / "_data" / "models")
    for folder in candidates:
        if (folder / "devices").is_dir() or (folder / "trained").is_dir():
            return folder
    tried = " or ".join(str(folder) for folder in candidates)
    raise InputError(f"the models that come with cosim must be in {tried}, found neither; install cosim again")


def device_model_path(name: str) -> Path:
    """Return the path of a file in the package's folder `devices/`, by name.

    A name is `generic180`, `generic180.lib` or `folder/name.json`; one without suffix means the device card. Raises
    InputError that lists the existing names.
    """
    return _find("device model", "devices", name, _DEVICE_SUFFIXES)


def trained_network_path(name: str) -> Path:
    """Return the path of a resource that comes with the package, in its folder `trained/`, by name.

    name: with or without the suffix. Raises InputError that lists the existing names.
    """
    return _find("trained network", "trained", name, _NETWORK_SUFFIXES)


def _find(kind: str, folder_name: str, name: str, suffixes: Sequence[str]) -> Path:
    folder = models_path() / folder_name
    relative = Path(name)
    if not name or relative.is_absolute() or ".." in relative.parts:
        raise InputError(f"a {kind} that comes with cosim must be a plain name, not {name!r}; give other files by path")
    for candidate in (folder / name, *(folder / f"{name}{suffix}" for suffix in suffixes)):
        if candidate.exists():
            return candidate
    known = sorted(entry.name for entry in folder.glob("[!.]*"))
    raise InputError(f"{kind} {name!r} does not come with cosim; there are: {', '.join(known) or 'none'}")
