"""Strict readers of text from outside, and dataclasses as JSON objects.

Files must be regular and of limited size, JSON and TOML of limited depth, fields of the right type. Readers raise
InputError that names the file, the field, the limit, and `repair`: what to do about it.
"""

import csv
import io
import json
import os
import re
import reprlib
import stat
import tomllib
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from cosim.base.errors import CosimError, InputError

JSON_LIMIT = 8 << 20  # bytes; a run.json of 100,000 transistors has 4 MB
TOML_LIMIT, TOML_LINE = 64 << 10, 1000  # bytes, characters: tomllib takes quadratic time for a dotted key
DEPTH, NODES = 40, 300_000  # of nested values, and how many values there may be: what is shared counts each time
_LARGEST_INT = 2**63 - 1
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 60
_FAULT = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<field>.*)`)?", re.DOTALL)
_WORDS = {
    "float": "a number", "int": "a whole number", "str": "text", "array": "a list", "object": "a table",
    "bool": "true or false",
}  # fmt: skip

T = TypeVar("T")


def format_csv(fields: Sequence[str], rows: Iterable[Iterable[object]], digits: int | None = None) -> str:
    """Format rows as the text of a .csv file, below a line with the names `fields`.

    digits: significant digits of numbers, None for all.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(fields)
    for row in rows:
        writer.writerow([f"{one:.{digits}g}" if digits and isinstance(one, float) else one for one in row])
    return text.getvalue()


def open_file(path: Path, repair: str) -> BinaryIO:
    """Open a regular file for reading. Raises InputError for anything else, such as a pipe, which may have no end."""
    if not is_file(path):
        found = "a folder" if path.is_dir() else "a device or a pipe" if path.exists() else "missing"
        raise InputError(f"{shown_path(path)}: must be a file, but is {found}; {repair}")
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{shown_path(path)}: cannot be read ({error.strerror}); {repair}") from None


def read_bytes(path: Path, limit: int, repair: str) -> bytes:
    """Read a regular file of at most `limit` bytes. Raises InputError for a larger one or no regular file."""
    try:
        with open_file(path, repair) as file:
            content = file.read(limit + 1)  # what the system calls a regular file may still be endless
    except OSError as error:
        raise InputError(f"{shown_path(path)}: cannot be read ({error.strerror}); {repair}") from None
    if len(content) > limit:
        raise InputError(f"{shown_path(path)}: must have at most {limit / 1e6:.3g} MB, but has more; {repair}")
    return content


def read_json(path: Path, repair: str) -> object:
    """Return the content of a JSON file, checked as by `parse_json`."""
    return parse_json(read_bytes(path, JSON_LIMIT, repair), shown_path(path), repair)


def parse_json(text: str | bytes, where: str, repair: str, *, finite: bool = True) -> object:
    """Return the content of a JSON text, checked by `check_plain`."""
    if len(text) > JSON_LIMIT:
        raise InputError(f"{where}: must have at most {JSON_LIMIT / 1e6:.3g} MB of JSON, but has more; {repair}")
    with parsing(where, "JSON", repair):
        content: object = json.loads(text.decode() if isinstance(text, bytes) else text)
    return check_plain(content, where, repair, finite=finite)


def read_toml(path: Path, repair: str) -> dict[str, Any]:
    """Return the content of a TOML file, checked by `check_plain`."""
    where = shown_path(path)
    content = read_bytes(path, TOML_LIMIT, repair)
    with parsing(where, "a TOML file", repair):
        text = content.decode()
        number = next((i for i, line in enumerate(text.split("\n"), start=1) if len(line) > TOML_LINE), None)
        if number is not None:
            raise InputError(f"{where}: line {number} must have at most {TOML_LINE} characters; break it up")
        found = tomllib.loads(text)
    return check_plain(found, where, repair, finite=False)


def check_plain(content: T, where: str, repair: str, *, finite: bool = True) -> T:
    """Return the content itself if it is made of text, numbers, lists and tables, of limited number and depth.

    Whole numbers must fit 64 bits, text must be writable as UTF-8, and with `finite` no number may be nan or infinite.
    Raises InputError that names the field.
    """
    waiting: list[tuple[str, object, int]] = [("", content, 0)]
    seen = 0
    while waiting:
        name, value, depth = waiting.pop()
        fault = _fault(value, finite=finite)
        seen += len(value) if isinstance(value, dict | list | tuple) else 0
        if depth > DEPTH or seen > NODES:  # before their names are made
            fault = f"must be nested at most {DEPTH} deep" if depth > DEPTH else f"must hold at most {NODES} values"
        if fault:
            raise InputError(f"{where}: {f'{name}: ' if name else ''}{fault}; {repair}")
        if isinstance(value, dict):
            for key, inner in value.items():
                if not isinstance(key, str) or _fault(key, finite=finite):
                    raise InputError(f"{where}: {name or 'it'} has the key {shown(key)}, which is no text; {repair}")
                waiting.append((f"{name}.{key}" if name else key, inner, depth + 1))
        elif isinstance(value, list | tuple):
            waiting += [(f"{name}[{i}]", inner, depth + 1) for i, inner in enumerate(value)]
    return content


def _fault(value: object, *, finite: bool) -> str:
    if isinstance(value, str):
        return "" if value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value) else "must be text in UTF-8"
    if value is None or isinstance(value, bool | dict | list | tuple):
        return ""
    if isinstance(value, int):
        return "" if abs(value) <= _LARGEST_INT else "must be a whole number of at most 64 bits"
    if isinstance(value, float):
        return "" if not finite or abs(value) < float("inf") else f"must be a finite number, not {value}"
    return f"must be text, a number, a list or a table, not of type {type(value).__name__}"


def typed(content: object, cls: type[T], where: str, repair: str, inside: str = "") -> T:
    """Convert plain values of a file to a dataclass of type `cls`, if each has its field's type.

    Only whole numbers may become real ones. inside: the field of the file that has the values, if any. Raises
    InputError that names the wrong field.
    """
    import msgspec  # 20 to 30 ms, spent only where such a file is read

    try:
        return msgspec.convert(content, cls)
    except InputError as error:  # of the class itself
        raise error.reworded(f"{where}: {error}; {repair}") from None
    except msgspec.ValidationError as error:
        found = _FAULT.fullmatch(str(error))
        assert found is not None  # it matches any text
        name = ".".join(filter(None, (inside, found["field"])))
        raise InputError(f"{where}: {name}{' ' if name else ''}{_in_our_words(found['what'])}; {repair}") from None


def check_known(content: Mapping[str, object], cls: type[Any], where: str, repair: str, inside: str = "") -> None:
    """Raise InputError for a name that is no field of a dataclass, or of a dataclass in it, such as a misspelt one."""
    types = {field.name: field.type for field in fields(cls)}
    for name, value in content.items():
        if name not in types:
            raise InputError(f"{where}: {inside}{shown_name(name)} is no field; known are {listed(types)}; {repair}")
        if isinstance(inner := types[name], type) and is_dataclass(inner) and isinstance(value, dict):
            check_known(value, inner, where, repair, f"{inside}{name}.")


def _in_our_words(fault: str) -> str:
    fault = fault.replace("`", "")
    if match := re.fullmatch("Expected (.*), got (.*)", fault):
        wanted, found = (re.sub(r"\w+", lambda word: _WORDS.get(word[0], word[0]), text) for text in match.groups())
        return f"must be {wanted.replace(' | ', ' or ')}, not {found}"
    if match := re.fullmatch("Object missing required field (.*)", fault):
        return f"must have the field {match[1]}"
    if match := re.fullmatch("Invalid enum value (.*)", fault, re.DOTALL):
        return f"must be a known value, not {match[1][:60]}"
    return fault[:1].lower() + fault[1:]


@contextmanager
def parsing(where: str, wanted: str, repair: str) -> Generator[None, None, None]:
    """Raise InputError for any error of a parser of foreign bytes in a `with` block, and silence its warnings.

    Parsers raise more kinds than they document: struct.error, RecursionError, NotImplementedError, TokenError.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except CosimError:
        raise
    except RecursionError as error:
        raise InputError(f"{where}: must be {wanted}, but is nested too deeply; {repair}") from error
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")[:200] or type(error).__name__
        raise InputError(f"{where}: must be {wanted}, but is cut off or something else ({reason}); {repair}") from error


def shown(value: object) -> str:
    """Format a value from outside for a message, shortened if it is large or deep."""
    return _SHOWN.repr(value)


def listed(names: Iterable[object]) -> str:
    """Format names from a file or user for a message: the first dozen, in order."""
    texts = sorted(shown_name(name) for name in names)
    return ", ".join(texts[:12]) + (f" and {len(texts) - 12} more" if len(texts) > 12 else "") or "nothing"


def shown_name(name: object) -> str:
    """Format a name from outside for a message: as it is if short and printable, else as `shown` does."""
    return name if isinstance(name, str) and name.isprintable() and len(name) <= 60 else shown(name)


def shown_path(path: Path) -> str:
    """Format a path for a message, with escapes for characters that a terminal cannot print."""
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)[1:-1]


def is_file(path: Path) -> bool:
    """Tell whether a file exists. Raises InputError with the system's reason if that cannot be found out."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a null byte
        raise InputError(f"{str(path)!r} cannot be the name of a file: {error}") from None


def json_object(record: object) -> dict[str, Any]:
    """Convert a dataclass or a mapping to a JSON object, with its fields in order.

    Values inside are converted in the same way, tuples to lists. A field whose value and default are None is left out.
    An underscore at the end of a field's name, which avoids a Python keyword, is not part of the key.
    """
    found = _plain(record)
    assert isinstance(found, dict)
    return found


def round_numbers(value: object, digits: int) -> object:
    """Round all real numbers in a JSON value to `digits` significant digits; tuples become lists."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {key: round_numbers(item, digits) for key, item in value.items()}
    return [round_numbers(item, digits) for item in value] if isinstance(value, list | tuple) else value


def _plain(value: object) -> object:
    if is_dataclass(value):
        items = ((one, getattr(value, one.name)) for one in fields(value))
        kept = ((one.name, item) for one, item in items if item is not None or one.default is not None)
        return {name.removesuffix("_"): _plain(item) for name, item in kept}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
