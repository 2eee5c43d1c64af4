"""Kept files, read back: the checksum that `cosim.base.seal` put into one must fit before its content is looked at.

What has a checksum that fits may still be of another cosim, or of someone's own script: its fields are checked, too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from cosim.base.arrays import check_forms, is_whole, read_arrays
from cosim.base.errors import InputError
from cosim.base.read import is_file
from cosim.base.seal import unseal_json, unseal_text
from cosim.base.text import JSON_LIMIT, check_known, parse_json, parsing, read_bytes, shown_path, typed

TEXT_LIMIT = 256 << 20  # bytes of a table: the wires of 20,000 nets take 10 MB
T = TypeVar("T")


def read_sealed(path: Path, repair: str, *, finite: bool = True) -> dict[str, object]:
    """Return the JSON object of a file that ends with its checksum, without that; with `finite` no nan or infinity.

    Raises InputError that names the file and `repair` where it is missing, damaged, or has no checksum.
    """
    where = shown_path(path)
    try:
        text = unseal_json(read_bytes(path, JSON_LIMIT, repair))
    except ValueError as error:
        raise _damaged(where, error, repair) from None
    found = parse_json(text, where, repair, finite=finite)
    assert isinstance(found, dict)  # what is left of a checksum ends as an object does
    return found


def read_sealed_record(path: Path, cls: type[T], form: int, what: str, repair: str) -> T:
    """Return the dataclass in a sealed JSON file, whose entry `format` must be `form`; `what` names it in messages.

    Raises InputError that names the file, the field and `repair`.
    """
    where = shown_path(path)
    if not is_file(path):
        raise InputError(f"{where}: no {what} there; {repair}")
    return record_of(read_sealed(path, repair), where, cls, form, what, repair)


def record_of(content: object, where: str, cls: type[T], form: int, what: str, repair: str) -> T:
    """Return the dataclass in a JSON object, see `read_sealed_record`."""
    if not isinstance(content, dict) or content.pop("format", None) != form:
        raise InputError(f"{where}: holds no {what} of format {form}; {repair}")
    check_known(content, cls, where, repair)
    return typed(content, cls, where, repair)


def read_sealed_text(path: Path, repair: str) -> str:
    """Return the text of a table that ends with its checksum, without that.

    Raises InputError that names the file and `repair` where it is missing, damaged, has no checksum, or is no UTF-8.
    """
    where = shown_path(path)
    try:
        content = unseal_text(read_bytes(path, TEXT_LIMIT, repair))
    except ValueError as error:
        raise _damaged(where, error, repair) from None
    with parsing(where, "text in UTF-8", repair):
        return content.decode()


def read_sealed_arrays(path: Path, forms: Mapping[str, str], repair: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a sealed .npz that `forms` names, see `check_forms`.

    Raises InputError that names the file, the array and `repair` where one is missing, damaged, or of another form.
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
