"""HTML that reports share: one self-contained page, readable on a phone and on paper, whole without its script.

Everything that comes from files or people goes through `escape`.
"""

import base64
import hashlib
import html
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from cosim.results.style import SCRIPT, STYLE

NO_BREAK = "\N{NO-BREAK SPACE}"
_SEARCHED = '<div class="search">'
_BOX = '<input type="search" hidden placeholder="filter: layer1 rounded" aria-label="filter"/> <output></output>'
_SIZES = {"fit": "whole", "1": "1:1", "2": "2:1", "4": "4:1"}
_COLUMN = 608  # pixels that a picture takes at most where it need not be wider: 38rem


@dataclass(frozen=True)
class Picture:
    """An image with what it shows in words. least: pixels under which it is not narrowed but scrolled; zoom: it has
    buttons for its size, `least` is that of 1:1."""

    kind: Literal["svg+xml", "png"]
    content: bytes
    alt: str
    caption: str
    least: int = 0
    zoom: bool = False


def format_page(title: str, body: str) -> str:
    """Return a whole page around `body`, which is HTML already; the title is text."""
    script = f"<script>{SCRIPT}</script>" if _SEARCHED in body else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}{script}</body></html>\n"
    )


def format_figure(picture: Picture) -> str:
    """Return HTML of a picture inside a page, its caption under it."""
    if picture.zoom:
        return _zoomed(picture)
    source = f"data:image/{picture.kind};base64,{base64.b64encode(picture.content).decode()}"
    style = f' style="min-width: {picture.least}px"' if picture.least else ""
    fit = "" if picture.kind == "png" else f' class="{"full" if picture.least > _COLUMN else "fit"}"'
    image = f'<img{fit} alt="{escape(picture.alt)}"{style} src="{source}">'
    if picture.least:
        image = f'<div class="wide">{image}</div>'
    return f"<figure>{image}<figcaption>{hold(picture.caption)}</figcaption></figure>"


def _zoomed(picture: Picture) -> str:
    """Return HTML of a picture in a box that scrolls, in the size of the button that is on."""
    source = f"data:image/{picture.kind};base64,{base64.b64encode(picture.content).decode()}"
    group = f"size-{hashlib.sha256(picture.content).hexdigest()[:8]}"
    buttons = "".join(
        f'<label><input type="radio" name="{group}" value="{size}"{" checked" * (size == "fit")}/>{words}</label>'
        for size, words in _SIZES.items()
    )
    image = f'<img alt="{escape(picture.alt)}" style="--natural: {picture.least}px" src="{source}">'
    return (
        f'<figure><div class="zoom">{buttons}<div class="view">{image}</div></div>'
        f"<figcaption>{hold(picture.caption)}</figcaption></figure>"
    )


def format_cards(cards: Sequence[tuple[str, str]]) -> str:
    """Return HTML of the large numbers at the top of a page, each with what it is."""
    found = (f'<div class="card"><b>{hold(value)}</b><span>{hold(label)}</span></div>' for value, label in cards)
    return f'<div class="cards">{"".join(found)}</div>'


def format_table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Collection[int] = (),
    *,
    tall: bool = False,
    search: bool = False,
) -> str:
    """Return HTML of a table that scrolls inside the page. numbers: columns aligned to the right; tall: of limited
    height, too; search: the page's script filters and sorts it."""
    marks = [' class="n"' if column in numbers else "" for column in range(len(head))]
    cells = "".join(f"<th{mark}>{escape(name)}</th>" for mark, name in zip(marks, head, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{_cell(value)}</td>" for mark, value in zip(marks, row, strict=True)) + "</tr>"
        for row in rows
    )
    place = "tall" if tall else "wide"
    table = f'<div class="{place}"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'
    return f"{_SEARCHED}{_BOX}{table}</div>" if search else table


def _cell(value: object) -> str:
    return color_verdicts(escape(show(value)))


def format_facts(rows: Sequence[tuple[str, str]]) -> str:
    """Return HTML of names and what they are, one under the other; long ones wrap."""
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in rows)
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def format_fold(summary: str, content: str, *, unfolded: bool = False) -> str:
    """Return HTML of content, HTML already, that is shown when its summary is clicked, and on paper."""
    return f"<details{' open' * unfolded}><summary>{escape(summary)}</summary>{content}</details>"


def format_links(rows: Sequence[tuple[str, str]]) -> str:
    """Return HTML of a list of other pages: what each is called, and its address relative to this one."""
    found = (f'<li><a href="{escape(quote(address))}">{escape(text)}</a></li>' for text, address in rows)
    return f"<ul>{''.join(found)}</ul>"


def show(value: object) -> str:
    """Return a JSON value as text for a reader of a page."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {show(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(show, value)) or "none"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def escape(value: object) -> str:
    """Return text as the HTML of a page, or as the value of an attribute."""
    return html.escape(str(value))


def color_verdicts(escaped: str) -> str:
    """Return text that is escaped already with each word PASS and FAIL in its colour, on light and dark pages."""
    return re.sub(r"\b(PASS|FAIL)\b", lambda found: f'<b class="{found[0].lower()}">{found[0]}</b>', escaped)


def hold(text: str) -> str:
    """Return text escaped for a page, with a no-break space between each percent sign and its number."""
    return escape(text.replace(" %", f"{NO_BREAK}%"))
