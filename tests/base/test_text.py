"""JSON and TOML from outside: bounded, and every refusal says where and what to do."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from cosim.base.errors import InputError
from cosim.base.text import (
    DEPTH,
    JSON_LIMIT,
    NODES,
    TOML_LINE,
    check_plain,
    parse_json,
    read_bytes,
    read_json,
    read_toml,
    shown,
    typed,
)

REPAIR = "write it again"


@dataclass(frozen=True)
class Inner:
    gains: tuple[float, float]
    count: int


@dataclass(frozen=True)
class Outer:
    supply: float
    kind: Literal["n", "p"]
    inner: Inner
    limit: float | None = None


GOOD = {"supply": 1, "kind": "n", "inner": {"gains": [1.5, 2], "count": 3}}


def refuses(match, function, *args):
    with pytest.raises(InputError, match=match) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[" * 100_000, "x: must be JSON, but is nested too deeply; write it again"),
        ("[" * (DEPTH + 2) + "]" * (DEPTH + 2), f"must be nested at most {DEPTH} deep"),
        ("1" * 5000, "must be JSON, but is cut off or something else .*digits"),
        ('{"a": [0, {"b": 9223372036854775808}]}', r"x: a\[1\].b: must be a whole number of at most 64 bits"),
        ('{"a": [0, NaN]}', r"x: a\[1\]: must be a finite number, not nan"),
        ('{"a": -1e999}', "x: a: must be a finite number, not -inf"),
        ('{"a": "\\ud800"}', "x: a: must be text in UTF-8"),
        ('{"\\ud800": 1}', "it has the key .*, which is no text"),
        ("{", "must be JSON, but is cut off or something else"),
        (b"\xff", "must be JSON, but is cut off or something else"),
    ],
)
def test_json_of_no_use_is_refused(text, match):
    assert REPAIR in refuses(match, parse_json, text, "x", REPAIR)


def test_a_json_text_has_a_limit():
    refuses("x: must have at most 8.39 MB of JSON, but has more", parse_json, " " * (JSON_LIMIT + 1), "x", REPAIR)


def test_infinity_is_read_where_it_is_asked_for():
    assert parse_json("[Infinity]", "x", REPAIR, finite=False) == [float("inf")]


def test_values_that_share_their_parts_are_counted_in_full():
    """A pickle of some hundred bytes makes 2^30 values of one list; to print or to copy it takes memory without end."""
    value = [1.0]
    for _ in range(30):
        value = [value, value]
    refuses(f"must hold at most {NODES} values", check_plain, value, "x", REPAIR)
    assert len(shown(value)) < 1000


@pytest.mark.parametrize("value", [{1, 2}, b"ab", object(), {1: 2}, 1j])
def test_only_plain_values(value):
    refuses("x: .*(must be text, a number, a list or a table|no text)", check_plain, value, "x", REPAIR)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a" + ".a" * TOML_LINE + " = 1", f"line 1 must have at most {TOML_LINE} characters"),
        ("x = [" + "\n[" * 3000, "must be a TOML file, but is nested too deeply"),
        ("x = " + "9" * 900, "x: must be a whole number of at most 64 bits"),
        ("# " + "\n# " * 30_000, "must have at most 0.0655 MB, but has more"),
        ("x = ", "must be a TOML file, but is cut off or something else"),
        ("x = \x00", "must be a TOML file, but is cut off or something else"),
    ],
)
def test_toml_of_no_use_is_refused(tmp_path, text, match):
    path = tmp_path / "own.toml"
    path.write_text(text)
    assert f"{path}: " in refuses(match, read_toml, path, REPAIR)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"supply": "1"}, "x: supply must be a number, not text; write it again"),
        ({"supply": True}, "x: supply must be a number, not true or false"),
        ({"kind": "q"}, "x: kind must be a known value, not 'q'"),
        ({"limit": []}, "x: limit must be a number or null, not a list"),
        ({"inner": 3}, "x: inner must be a table, not a whole number"),
        ({"inner": {"count": 1}}, "x: inner must have the field gains"),
        ({"inner": {"gains": [1], "count": 1}}, "x: inner.gains must be a list of length 2, not 1"),
        ({"inner": {"gains": [1, None], "count": 1}}, r"x: inner.gains\[1\] must be a number, not null"),
        ({"inner": {"gains": [1, 2], "count": 1.5}}, "x: inner.count must be a whole number, not a number"),
    ],
)
def test_fields_have_types(change, match):
    assert typed(GOOD, Outer, "x", REPAIR) == Outer(1.0, "n", Inner((1.5, 2.0), 3))
    refuses(match, typed, {**GOOD, **change}, Outer, "x", REPAIR)


def test_only_files_are_opened(tmp_path):
    """Reading a pipe waits, reading /dev/zero never ends."""
    os.mkfifo(tmp_path / "pipe")
    refuses("pipe: must be a file, but is a device or a pipe; write it again", read_bytes, tmp_path / "pipe", 9, REPAIR)
    refuses("/dev/zero: must be a file, but is a device or a pipe", read_json, Path("/dev/zero"), REPAIR)
    refuses("must be a file, but is a folder", read_json, tmp_path, REPAIR)
    refuses("must be a file, but is missing", read_json, tmp_path / "none", REPAIR)
    refuses("cannot be the name of a file", read_json, Path("a\0b"), REPAIR)
    (tmp_path / "big").write_bytes(b"0123456789")
    refuses("must have at most 9e-06 MB, but has more", read_bytes, tmp_path / "big", 9, REPAIR)
    assert read_bytes(tmp_path / "big", 10, REPAIR) == b"0123456789"


def test_a_path_that_no_terminal_prints_is_escaped(tmp_path):
    message = refuses("missing", read_json, tmp_path / "a\udc80\x1b[2Jb", REPAIR)
    assert message.isprintable() and "a\\udc80\\x1b[2Jb" in message
