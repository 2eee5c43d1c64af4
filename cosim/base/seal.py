"""Checksums inside kept files, by which a reader notices what a disk, a copy or an editor changed before trusting it.

The checksum of all bytes before it is the last entry of a JSON object, the comment of a zip archive, the last line of a
table or the last bytes of any other file. A `key` is part of the checksum but is not kept in the file, so content with
another key does not pass. A file whose checksum fits may still come from another version of cosim or from someone's own
script, so readers check its fields as well.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.base.arrays import check_forms, read_arrays
from cosim.base.errors import InputError
from cosim.base.text import (
    JSON_LIMIT,
    is_file,
    json_object,
    open_file,
    parse_json,
    parsing,
    read_bytes,
    shown_path,
)

DIGITS = 16  # of SHA-256, hexadecimal: of 1.8e19 damaged files one passes
_FILE = ',\n  "sha256": "', '"\n}\n'
_LINE = ',"sha256":"', '"}\n'
_COMMENT = b"sha256 "
_TRAILER = "# sha256 ", "\n"
_MISFIT = "its checksum does not fit"


def checksum(*parts: bytes) -> str:
    """Return the hash of these bytes, one part after the other, as DIGITS hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:DIGITS]


def seal_json(content: object) -> bytes:
    """Return an object as the bytes of a JSON file whose last entry is the checksum of the rest.

    content: what `json_object` takes, with one entry or more.
    """
    return _seal(json.dumps(json_object(content), indent=2).removesuffix("\n}").encode(), _FILE, "")


def unseal_json(content: bytes) -> bytes:
    """Return a JSON file's bytes without the checksum entry. Raises ValueError if the checksum does not fit."""
    return _unseal(content, _FILE, "") + b"}"


def seal_line(content: object, key: str) -> bytes:
    """Return an object as one line of JSON, with its end, whose last entry is the checksum.

    content: what `json_object` takes; key: part of the checksum that the line does not contain.
    """
    return _seal(json.dumps(json_object(content), separators=(",", ":")).removesuffix("}").encode(), _LINE, key)


def unseal_line(line: bytes, key: str) -> bytes:
    """Return a line of JSON, with its end, without its checksum. Raises ValueError if the checksum does not fit."""
    return _unseal(line, _LINE, key) + b"}"


def seal_text(text: str) -> bytes:
    """Return a text as the bytes of a file, with its checksum as a comment in a last line."""
    return _seal(text.encode(), _TRAILER, "")


def unseal_text(content: bytes) -> bytes:
    """Return a text file's bytes without the checksum line. Raises ValueError if the checksum does not fit."""
    return _unseal(content, _TRAILER, "")


def seal_bytes(content: bytes) -> bytes:
    """Return bytes of a file followed by their checksum."""
    return content + checksum(content).encode()


def unseal_bytes(content: bytes) -> bytes:
    """Return a file's bytes without the checksum at their end. Raises ValueError if the checksum does not fit."""
    body = content[:-DIGITS]
    if seal_bytes(body) != content:
        raise ValueError(_MISFIT)
    return body


def seal_npz(arrays: Mapping[str, NDArray[Any]], key: str = "") -> bytes:
    """Return arrays as the content of an .npz file that ends with the checksum; equal arrays give equal bytes."""
    content = io.BytesIO()
    np.savez(content, **arrays)  # pyright: ignore[reportArgumentType] - its stub knows keywords of its own
    return seal_zip(content.getvalue(), key)


def seal_zip(archive: bytes, key: str = "") -> bytes:
    """Return a zip archive's bytes with the checksum as the archive's comment. key: part of the checksum, not kept."""
    content = io.BytesIO(archive)
    with zipfile.ZipFile(content, "a") as file:
        file.comment = _COMMENT + DIGITS * b"0"
    body = content.getvalue()[:-DIGITS]
    return body + checksum(key.encode(), body).encode()


def check_zip(content: bytes, key: str = "") -> None:
    """Raise ValueError if the checksum of a zip archive, sealed with `key`, does not fit."""
    body = content[:-DIGITS]
    if not body.endswith(_COMMENT) or content[-DIGITS:] != checksum(key.encode(), body).encode():
        raise ValueError(_MISFIT)


def _seal(body: bytes, ends: tuple[str, str], key: str) -> bytes:
    return body + f"{ends[0]}{checksum(key.encode(), body)}{ends[1]}".encode()


def _unseal(content: bytes, ends: tuple[str, str], key: str) -> bytes:
    body = content.rpartition(ends[0].encode())[0]
    if not body or content != _seal(body, ends, key):
        raise ValueError(_MISFIT)
    return body


def is_whole(path: Path, key: str = "") -> bool:
    """Tell whether an .npz or zip file ends with a fitting checksum. key: the one with which the file was sealed."""
    try:
        with open_file(path, "") as file:
            check_zip(file.read(), key)
    except (OSError, ValueError, InputError):
        return False
    return True


TEXT_LIMIT = 256 << 20  # bytes of a table: the wires of 20,000 nets take 10 MB


def read_sealed(path: Path, repair: str, *, finite: bool = True) -> dict[str, object]:
    """Read the JSON object of a file that ends with its checksum, and return it without the checksum.

    finite: whether nan and infinity are refused. Raises InputError that names the file and `repair` if the file is
    missing, damaged, or has no checksum.
    """
    where = shown_path(path)
    try:
        text = unseal_json(read_bytes(path, JSON_LIMIT, repair))
    except ValueError as error:
        raise _damaged(where, error, repair) from None
    found: Any = parse_json(text, where, repair, finite=finite)
    return found  # an object: what is left of a checksum ends as one does


def read_sealed_text(path: Path, repair: str) -> str:
    """Read the text of a table that ends with its checksum, and return it without the checksum.

    Raises InputError that names the file and `repair` if the file is missing, damaged, has no checksum, or is no UTF-8.
    """
    where = shown_path(path)
    try:
        content = unseal_text(read_bytes(path, TEXT_LIMIT, repair))
    except ValueError as error:
        raise _damaged(where, error, repair) from None
    with parsing(where, "text in UTF-8", repair):
        return content.decode()


def read_sealed_arrays(path: Path, forms: Mapping[str, str], repair: str) -> dict[str, NDArray[Any]]:
    """Read those arrays of a sealed .npz that `forms` names, and check their forms, see `check_forms`.

    Raises InputError that names the file, the array and `repair` if one is missing, damaged, or of another form.
    """
    where = shown_path(path)
    if not is_file(path):
        raise InputError(f"{where}: missing; {repair}")
    if not is_whole(path):
        raise _damaged(where, ValueError("its checksum does not fit"), repair)
    found = read_arrays(path, repair, forms)
    check_forms(found, forms, where, repair)
    return found


def _damaged(where: str, error: ValueError, repair: str) -> InputError:
    return InputError(f"{where}: damaged, or of a cosim without checksums: {error}; {repair}")
