"""Settings of a run as TOML: run.toml in the run's folder, or NAME.run.toml beside its file.

    verb = "compare"
    version = "0.2.0"
    command = "cosim compare digits.npz --samples 5"

    [arguments]
    network = "digits.npz"

    [options]
    engine = "batch"
    samples = 5

    [inputs]
    "digits.npz" = "7b52009b64fd0a2a"

The options are all that were in effect, defaults included, by their long names; an option that is absent was not set.
Options that change no result are left out: the output place, the number of processes, time limits. A file may also be
written or changed by hand: reading it checks every field.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.text import check_known, is_file, read_toml, shown, shown_name, shown_path, typed
from cosim.base.version import __version__
from cosim.base.write import write_atomically

SETTINGS_FILE = "run.toml"
DIGITS = 16  # of SHA-256, hexadecimal
_LONG, _PIECE = 900, 80  # characters: no line may have 1000, and each takes at most 10 when it is escaped
_REPAIR = "correct it, or let the verb that made it write it again"

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run.

    verb: command with its subcommand, such as "characterize dpi"; version: of the cosim that ran, "" for a file made by
    hand; command: the shortest command line that repeats the run in that version; arguments, options: by name; inputs:
    name of a file -> its checksum.
    """

    verb: str
    version: str = ""
    command: str = ""
    arguments: dict[str, Value] = field(default_factory=dict)
    options: dict[str, Value] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)


def describe_version(settings: RunSettings) -> str:
    """Return a warning if another version of cosim wrote these settings; "" if it was this version."""
    if settings.version in ("", __version__):
        return ""
    return f"made by cosim {shown_name(settings.version)}; with {__version__} the same command may give other results"


def settings_beside(path: Path) -> Path:
    """Return the path of the settings file, NAME.run.toml, of a run whose result is the one file `path`."""
    return path.with_suffix(f".{SETTINGS_FILE}")


def write_settings(place: Path, settings: RunSettings) -> None:
    """Write a run's settings as run.toml into its folder, or beside its file; equal settings give equal bytes.

    place: the folder or file. Raises InputError if the settings cannot be written.
    """
    path = place / SETTINGS_FILE if place.is_dir() else settings_beside(place)
    write_atomically(path, format_settings(settings).encode())


def format_settings(settings: RunSettings) -> str:
    """Format a run's settings as the TOML of its run.toml.

    Bytes that are no text, as in some file names, become backslash escapes.
    """
    lines = [f"{name} = {_format(getattr(settings, name))}" for name in ("verb", "version", "command")]
    for name in ("arguments", "options", "inputs"):
        table: Mapping[str, Value] = getattr(settings, name)
        if table:
            lines += ["", f"[{name}]", *(f"{_format_key(key)} = {_format(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def file_checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, as DIGITS digits. Raises OSError if the file cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]


def read_settings(place: Path) -> RunSettings | None:
    """Read the settings of the run in a folder, or of the run that wrote a file; None if it has no run.toml.

    Raises InputError that names file and field if they are damaged or of a wrong type.
    """
    path = place / SETTINGS_FILE if place.is_dir() else settings_beside(place)
    return load_settings(path) if is_file(path) else None


def is_settings(path: Path) -> bool:
    """Tell whether a file is a run.toml, that is, has the settings of a run."""
    try:
        load_settings(path)
    except InputError:
        return False
    return True


def load_settings(path: Path) -> RunSettings:
    """Read the settings of a run from a run.toml.

    Raises InputError that names file and field if the file is missing or has other content.
    """
    where, content = shown_path(path), read_toml(path, _REPAIR)
    check_known(content, RunSettings, where, _REPAIR)
    for table in ("arguments", "options"):
        if isinstance(values := content.get(table), dict):
            _check_values(values, f"{where}: {table}")
    return typed(content, RunSettings, where, _REPAIR)


def _check_values(values: dict[str, object], where: str) -> None:
    """Raise InputError for a value that is no text, number, boolean or list of these."""
    for name, value in values.items():
        parts: list[object] = value if isinstance(value, list) else [value]
        if not all(isinstance(part, Scalar) for part in parts):
            raise InputError(
                f"{where}.{shown_name(name)} must be text, a number, true or false, or a list of these, not "
                f"{shown(value)}; {_REPAIR}"
            )


def _format(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _format_text(value)
    if isinstance(value, list):
        one_a_line = "".join(f"    {_format(item)},\n" for item in value)
        return f"[\n{one_a_line}]" if len(value) > 1 else f"[{''.join(map(_format, value))}]"
    return repr(value)  # of a float: what reads back as the same one; inf and nan as in TOML


def _format_text(text: str) -> str:
    if len(whole := _escape(text)) < _LONG:
        return f'"{whole}"'
    pieces = [_escape(text[start : start + _PIECE]) for start in range(0, len(text), _PIECE)]
    held = [rf"\u0020{piece[1:]}" if piece.startswith(" ") else piece for piece in pieces]
    return '"""\\\n' + "\\\n".join(held) + '"""'


def _format_key(key: str) -> str:
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else f'"{_escape(key)}"'


def _escape(text: str) -> str:
    """Escape a text for the inside of a quoted string in TOML; invisible characters are escaped too."""
    return "".join(_escape_character(one) for one in text.encode(errors="backslashreplace").decode())


def _escape_character(one: str) -> str:
    if one in '"\\':
        return f"\\{one}"
    if one.isprintable():
        return one
    return f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"
