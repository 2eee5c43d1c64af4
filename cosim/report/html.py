"""HTML that reports share: one self-contained page, readable on a phone and on paper, without scripts.

Everything that comes from files or people goes through `escape`.
"""

import base64
import html
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

_STYLE = """
:root { color-scheme: light; --ink: #1c1c1c; --soft: #5f6368; --line: #dcdfe3; --accent: #0b5394; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: white; margin: 0 auto; max-width: 62rem;
  padding: 1.5rem 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; } a { color: var(--accent); }
p.lead, figcaption { color: var(--soft); } figcaption { font-size: .9rem; }
p.answer { font-size: 1.25rem; line-height: 1.4; border-left: 4px solid var(--accent); padding-left: .8rem; }
p.answer b { color: var(--accent); } nav { font-size: .9rem; } nav a { margin-right: .9rem; white-space: nowrap; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } .tall { max-height: 26rem; overflow: auto; border: 1px solid var(--line); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0 2rem; }
.grid figure { min-width: 0; } img.fit { width: 100%; max-width: 38rem; display: block; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } th { white-space: nowrap; }
.tall table { font-size: .85rem; }
.tall th { position: sticky; top: 0; background: white; }
.tall th:first-child, .tall td:first-child { padding-left: .6rem; }
summary { cursor: pointer; margin: .5rem 0; color: var(--accent); }
.cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.2rem 0; }
.card { border: 1px solid var(--line); border-radius: 6px; padding: .6rem 1rem; flex: 1 1 9rem; }
.card b { display: block; font-size: 1.5rem; color: var(--accent); }
.card span { color: var(--soft); font-size: .85rem; }
@media print {
  @page { margin: 15mm; } body { font-size: 10pt; max-width: none; padding: 0; } nav { display: none; }
  figure, .card, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } thead { display: table-header-group; }
  section.sheet { break-before: page; } .tall { max-height: none; border: 0; } .tall th { position: static; }
  .wide, .tall { overflow: visible; } img, img.fit { width: auto; max-height: 18cm; min-width: 0 !important; }
  table, .tall table { font-size: 7pt; } th, td { padding: .15rem .35rem .15rem 0; } td { overflow-wrap: anywhere; }
  td.n { overflow-wrap: normal; } details::details-content { content-visibility: visible; block-size: auto; }
  summary { list-style: none; }
}
"""


@dataclass(frozen=True)
class Picture:
    """An image with what it shows in words. least: pixels under which it is not narrowed but scrolled."""

    kind: Literal["svg+xml", "png"]
    content: bytes
    alt: str
    caption: str
    least: int = 0


def format_page(title: str, body: str) -> str:
    """A whole page around `body`, which is HTML already; the title is text."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def format_figure(picture: Picture) -> str:
    """The image inside the page, its caption under it."""
    source = f"data:image/{picture.kind};base64,{base64.b64encode(picture.content).decode()}"
    style = f' style="min-width: {picture.least}px"' if picture.least else ""
    fit = "" if picture.kind == "png" and not picture.least else ' class="fit"'
    image = f'<img{fit} alt="{escape(picture.alt)}"{style} src="{source}">'
    if picture.least:
        image = f'<div class="wide">{image}</div>'
    return f"<figure>{image}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def format_grid(pictures: Sequence[Picture]) -> str:
    """Images beside each other where the screen is wide enough."""
    return f'<div class="grid">{"".join(map(format_figure, pictures))}</div>'


def format_cards(cards: Sequence[tuple[str, str]]) -> str:
    """Large figures, each with what it is."""
    found = (f'<div class="card"><b>{escape(value)}</b><span>{escape(label)}</span></div>' for value, label in cards)
    return f'<div class="cards">{"".join(found)}</div>'


def format_table(
    head: Sequence[str], rows: Sequence[Sequence[object]], numbers: Collection[int] = (), *, tall: bool = False
) -> str:
    """A table that scrolls inside the page. numbers: columns aligned to the right; tall: of limited height, too."""
    marks = [' class="n"' if column in numbers else "" for column in range(len(head))]
    cells = "".join(f"<th{mark}>{escape(name)}</th>" for mark, name in zip(marks, head, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{mark}>{escape(show(value))}</td>" for mark, value in zip(marks, row, strict=True))
        + "</tr>"
        for row in rows
    )
    place = "tall" if tall else "wide"
    return f'<div class="{place}"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def flat_rows(values: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """(name, value) of a nested object, its keys as words."""
    for name, value in values.items():
        words = above + name.replace("_", " ")
        if isinstance(value, Mapping) and value:
            yield from flat_rows(value, f"{words}: ")
        else:
            yield words, value


def show(value: object) -> str:
    """A value of JSON as people read it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {show(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(show, value)) or "none"
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def escape(value: object) -> str:
    """Text as HTML text or as the value of an attribute."""
    return html.escape(str(value))
