"""Dataclasses as JSON: the one place where a record's fields become the keys of an object."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any


def json_object(record: object) -> dict[str, Any]:
    """Return a dataclass or a mapping as a JSON object, its fields in order.

    What it holds is converted likewise, tuples to lists. A field whose default is None is left out where it is None. An
    underscore at the end of a name keeps that from being a word of Python, and is no part of the key.
    """
    found = _plain(record)
    assert isinstance(found, dict)
    return found


def round_numbers(value: object, digits: int) -> object:
    """Return a JSON value whose real numbers have so many significant digits; tuples become lists."""
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
