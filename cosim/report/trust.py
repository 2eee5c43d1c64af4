"""How far a run can be trusted, as text: what another simulator ran."""

from collections.abc import Mapping
from textwrap import wrap

_NAME, _WIDTH = 18, 79  # columns


def format_elsewhere(elsewhere: Mapping[str, int], what: str = "samples") -> list[str]:
    """How many samples another simulator ran, and why, by `Inference.elsewhere`; nothing where there are none."""
    lines: list[str] = []
    for text, count in elsewhere.items():
        other, _, reason = text.partition(": ")
        if count:
            lines += _lines(f"by {other}", f"{count} {what}{f' ({reason})' if reason else ''}")
    return lines


def _lines(name: str, text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=f"{name:{_NAME}}", subsequent_indent=" " * _NAME)
