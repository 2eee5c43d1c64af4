"""The settings of a run, read: what `cosim.base.settings` wrote, what someone changed in it, or wrote by hand."""

from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.read import is_file
from cosim.base.settings import SETTINGS_FILE, RunSettings, Scalar, settings_beside
from cosim.base.text import check_known, read_toml, shown, shown_name, shown_path, typed

_REPAIR = "correct it, or let the verb that made it write it again"


def read_settings(place: Path) -> RunSettings | None:
    """Read the settings of the run in a folder, or of the one that wrote a file; None where none are kept.

    Raises InputError that names file and field where they are damaged or of a wrong type.
    """
    path = place / SETTINGS_FILE if place.is_dir() else settings_beside(place)
    return load_settings(path) if is_file(path) else None


def is_settings(path: Path) -> bool:
    """Return whether a file holds the settings of a run."""
    try:
        load_settings(path)
    except InputError:
        return False
    return True


def load_settings(path: Path) -> RunSettings:
    """Read the settings in a file. Raises InputError that names file and field where it is missing or holds others."""
    where, content = shown_path(path), read_toml(path, _REPAIR)
    check_known(content, RunSettings, where, _REPAIR)
    for table in ("arguments", "options"):
        if isinstance(values := content.get(table), dict):
            _check_values(values, f"{where}: {table}")
    return typed(content, RunSettings, where, _REPAIR)


def _check_values(values: dict[str, object], where: str) -> None:
    """Raise InputError for a value that is no text, number, boolean or list of these, which `typed` could not name."""
    for name, value in values.items():
        parts: list[object] = value if isinstance(value, list) else [value]
        if not all(isinstance(part, Scalar) for part in parts):
            raise InputError(
                f"{where}.{shown_name(name)} must be text, a number, true or false, or a list of these, not "
                f"{shown(value)}; {_REPAIR}"
            )
