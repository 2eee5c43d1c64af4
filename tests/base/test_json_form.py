"""Records as JSON objects: names, order, what is left out."""

import json
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from cosim.base.text import json_object


class Ends(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Inner:
    value: float | None
    ends: Ends


@dataclass(frozen=True, kw_only=True)
class Outer:
    yield_: Inner
    absent: Inner | None = None
    none: int | None
    counts: tuple[int, ...] = ()
    by: dict[str, Inner]


def test_fields_are_keys_in_order():
    inner = Inner(None, Ends(1.0, 2.0))
    found = json_object(Outer(yield_=inner, none=None, by={"a_": inner}))
    shape = '{"value": null, "ends": [1.0, 2.0]}'
    assert json.dumps(found) == f'{{"yield": {shape}, "none": null, "counts": [], "by": {{"a_": {shape}}}}}'
    there = json_object(Outer(yield_=inner, absent=inner, none=3, by={}))
    assert list(there) == ["yield", "absent", "none", "counts", "by"] and there["none"] == 3


def test_what_is_no_record_is_refused():
    with pytest.raises(AssertionError):
        json_object([1, 2])
