"""Logical lines of a SPICE library: files, sections and what they include, within limits."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cosim.base.errors import InputError
from cosim.base.text import is_file, listed, read_bytes, shown

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\S+")  # words; what stands in quotes is one
_DEPTH, _FILES = 20, 2000  # how deep files include each other, and how often in all; the open kits open 10
_FILE_LIMIT = 16 << 20  # bytes; the largest file of the open kits has 2 MB
_CHARACTERS = 40_000_000  # in all files of a section, as often as each is included; the open kits have 6 million
_LINE = 100  # characters that a line counts for beside its own, as it takes time, too


@dataclass
class Taken:
    """Count of the files and characters that a section has read so far; files that include others several times
    multiply."""

    files: int = 0
    characters: int = 0

    def add(self, path: Path, lines: tuple[str, ...]) -> None:
        """Count a file's lines. Raises InputError for the file that exceeds a limit."""
        self.files += 1
        self.characters += sum(map(len, lines)) + _LINE * len(lines)
        if self.files > _FILES or self.characters > _CHARACTERS:
            raise InputError(
                f"{path}: a section must include at most {_FILES} files with {_CHARACTERS // 10**6} million "
                "characters; do files include each other many times?"
            )


def read_lines(path: Path, section: str | None, taken: Taken, depth: int = 0) -> Iterator[str]:
    """Yield the logical lines of a file, or of one of its sections, in lower case, with what they include.

    Raises InputError that names the file and what it lacks, or which limit it exceeds.
    """
    if depth > _DEPTH:
        raise InputError(f"{path}: files include each other more than {_DEPTH} deep")
    inside, seen = section is None, False
    lines = read_file(path)
    taken.add(path, lines)
    for line in lines:
        word, *rest = _QUOTED.findall(line) if line.lower().startswith((".lib ", ".inc")) else line.split()
        match word.lower(), rest:
            case ".lib", [name]:
                if section is not None and _plain(name).lower() == section:
                    inside = seen = True
                elif section is None:
                    inside = False
            case ".endl", _:
                inside = section is None
            case ".lib", [file, name] if inside:
                yield from read_lines(_beside(path, file), _plain(name).lower(), taken, depth + 1)
            case ".include" | ".inc", [file, *_] if inside:
                yield from read_lines(_beside(path, file), None, taken, depth + 1)
            case ".include" | ".inc" | ".subckt", [] if inside:
                raise InputError(f"{path}: {word} must be followed by a name")
            case ".lib", [] | [_, _, _, *_] if inside:
                raise InputError(
                    f"{path}: .lib must be followed by a section, or by a file and a section: {line[:60]!r}"
                )
            case _ if inside:
                yield line.lower()
            case _:
                pass
    if section is not None and not seen:
        words = (line.lower().split() for line in lines)
        known = [_plain(found[1]) for found in words if found[0] == ".lib" and len(found) == 2]
        raise InputError(f"{path} must have the section {section!r}; it has {listed(known)}")


@lru_cache(maxsize=32)
def read_file(path: Path) -> tuple[str, ...]:
    """Read the lines of a file, joined at `+`, without comments."""
    text = read_bytes(path, _FILE_LIMIT, "repair the device library").decode(errors="replace")
    joined: list[list[str]] = []
    for raw in text.splitlines():
        line = " ".join(raw.partition(";")[0].partition("$")[0].split())
        if not line or line.startswith("*"):
            continue
        if line.startswith("+") and joined:
            joined[-1].append(line[1:])
        else:
            joined.append([line])
    return tuple(" ".join(parts) for parts in joined)


def _plain(word: str) -> str:
    return word.strip("'\"")


def _beside(path: Path, word: str) -> Path:
    """Return the path of a file that a library includes; the file's name is found without regard to case.

    Simulators ignore case there, too. Raises InputError for what cannot be the name of a file.
    """
    try:
        wanted = (path.parent / _plain(word)).resolve()
    except (ValueError, OSError, RuntimeError) as error:  # a null byte, links in a circle
        raise InputError(f"{path}: {shown(word)} cannot be the name of a file: {error}") from None
    if is_file(wanted) or not wanted.parent.is_dir():
        return wanted
    try:
        entries = sorted(wanted.parent.iterdir())
    except OSError as error:
        raise InputError(f"{wanted.parent}: cannot be read: {error.strerror}") from None
    return next((entry for entry in entries if entry.name.lower() == wanted.name.lower()), wanted)
