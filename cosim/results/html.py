"""HTML of reports: self-contained pages, readable on a phone and on paper, complete without their script.

All text that comes from files or users goes through `escape`.
"""

import base64
import hashlib
import html
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

NO_BREAK = "\N{NO-BREAK SPACE}"
_SEARCHED = '<div class="search">'
_BOX = '<input type="search" hidden placeholder="filter: layer1 rounded" aria-label="filter"/> <output></output>'
_SIZES = {"fit": "whole", "1": "1:1", "2": "2:1", "4": "4:1"}
_LED = re.compile(r'(<(?:td|p|figcaption)(?: class="(?:n|answer)")?>)([^<]+)')  # a text that names may lead from
_NAME = re.compile(r"(?<![&#\w.])\w[\w.]*\w(?:\[[\d,]+\])?")  # no name, and no part of one, is an escape
_MARK = re.compile(r"[\d._]")  # that words of prose have not
_PLACE = re.compile(r'(<(?:tr|figure) id=")')
_COLUMN = 608  # pixels that a picture takes at most where it need not be wider: 38rem


@dataclass(frozen=True)
class Picture:
    """An image of a page, with its description.

    content: bytes of an SVG or PNG file; alt: description for readers who cannot see it; least: smallest width on a
    screen, pixels, below which it scrolls; zoom: it has buttons for its size, and `least` is its width at 1:1; place:
    id on its page, to which names may lead, "" for none.
    """

    kind: Literal["svg+xml", "png"]
    content: bytes
    alt: str
    caption: str
    least: int = 0
    zoom: bool = False
    place: str = ""


def format_page(title: str, body: str) -> str:
    """Return a complete HTML page; title: text, which is escaped; body: HTML, which is not."""
    script = f"<script>{SCRIPT}</script>" if _SEARCHED in body else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}{script}</body></html>\n"
    )


def format_figure(picture: Picture) -> str:
    """Return the HTML of a picture with its caption below."""
    if picture.zoom:
        return _zoomed(picture)
    source = f"data:image/{picture.kind};base64,{base64.b64encode(picture.content).decode()}"
    style = f' style="min-width: {picture.least}px"' if picture.least else ""
    fit = "" if picture.kind == "png" else f' class="{"full" if picture.least > _COLUMN else "fit"}"'
    image = f'<img{fit} alt="{escape(picture.alt)}"{style} src="{source}">'
    if picture.least:
        image = f'<div class="wide">{image}</div>'
    place = f' id="{escape(picture.place)}"' if picture.place else ""
    return f"<figure{place}>{image}<figcaption>{hold(picture.caption)}</figcaption></figure>"


def _zoomed(picture: Picture) -> str:
    """Return the HTML of a picture in a box that scrolls, with buttons that choose the picture's size."""
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
    """Return the HTML of the large figures at the top of a page; cards: (figure, label)."""
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
    """Return the HTML of a table that scrolls sideways if it is wider than the page.

    head: names of columns; numbers: indices of columns aligned to the right; tall: limit the height, too; search: let
    the page's script filter and sort the rows.
    """
    marks = [' class="n"' if column in numbers else "" for column in range(len(head))]
    cells = "".join(f"<th{mark}>{escape(name)}</th>" for mark, name in zip(marks, head, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{_cell(value)}</td>" for mark, value in zip(marks, row, strict=True)) + "</tr>"
        for row in rows
    )
    place = "tall" if tall else "wide"
    table = f'<div class="{place}"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'
    return f"{_SEARCHED}{_BOX}{table}</div>" if search else table


def format_listing(name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the HTML of lines of a file, which the page's script filters.

    name: what the ids of the lines begin with; head: names of the columns; rows: number of a line, its text, and more.
    """
    cells = "".join(f"<th>{escape(one)}</th>" for one in head)
    body = "".join(
        f'<tr id="{escape(name)}-{escape(number)}"><td>{escape(number)}</td><td class="code">{escape(text)}</td>'
        f"{''.join(f'<td>{escape(other)}</td>' for other in others)}</tr>"
        for number, text, *others in rows
    )
    table = f'<table class="listing"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
    return f'{_SEARCHED}{_BOX}<div class="tall">{table}</div></div>'


def link_names(content: str, places: Mapping[str, str]) -> str:
    """Return HTML in which names lead to their places; places: name -> id of an element of the page.

    A cell of a table that is a name, or a part of one between commas, leads to its place. In cells, paragraphs and
    captions so does each word with a digit, a point or an underscore: words of prose have none.
    """

    def lead(text: str, name: str) -> str:
        return f'<a href="#{escape(places[name])}">{text}</a>' if name in places else text

    def part(text: str) -> str:
        if (whole := html.unescape(text)) in places:
            return lead(text, whole)
        return _NAME.sub(lambda found: lead(found[0], found[0]) if _MARK.search(found[0]) else found[0], text)

    def led(found: re.Match[str]) -> str:
        return found[1] + ", ".join(map(part, found[2].split(", ")))

    return _LED.sub(led, content) if places else content


def names_in(text: str) -> set[str]:
    """Return what `link_names` looks up in a text: its parts between commas, and its words that are not prose."""
    return {*text.split(", "), *filter(_MARK.search, _NAME.findall(text))}


def move_places(content: str, prefix: str) -> str:
    """Return HTML in which the id of each place, a line of a listing or a picture, has a prefix."""
    return _PLACE.sub(rf"\1{prefix}", content) if prefix else content


def _cell(value: object) -> str:
    return color_verdicts(escape(show(value)))


def format_facts(rows: Sequence[tuple[str, str]]) -> str:
    """Return the HTML of a table of (name, value), one row for each; long values wrap."""
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in rows)
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def format_fold(summary: str, content: str, *, unfolded: bool = False) -> str:
    """Return the HTML of content that is shown on paper, and on a screen when its summary is clicked.

    summary: text; content: HTML; unfolded: show the content on a screen from the beginning.
    """
    return f"<details{' open' * unfolded}><summary>{escape(summary)}</summary>{content}</details>"


def format_links(rows: Sequence[tuple[str, str]]) -> str:
    """Return the HTML of a list of links; rows: (text, address relative to this page)."""
    found = (f'<li><a href="{escape(quote(address))}">{escape(text)}</a></li>' for text, address in rows)
    return f"<ul>{''.join(found)}</ul>"


def show(value: object) -> str:
    """Return a JSON value as text for readers: None and [] as "none", booleans as yes or no, floats with 6 digits."""
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
    """Return a value as text escaped for HTML, also inside an attribute."""
    return html.escape(str(value))


def color_verdicts(escaped: str) -> str:
    """Return escaped text with each word PASS or FAIL marked up in its colour."""
    return re.sub(r"\b(PASS|FAIL)\b", lambda found: f'<b class="{found[0].lower()}">{found[0]}</b>', escaped)


def hold(text: str) -> str:
    """Return text escaped for HTML, with a no-break space between each number and its percent sign."""
    return escape(text.replace(" %", f"{NO_BREAK}%"))


# The style of every page, for any screen, light or dark, and for paper. Pictures are drawn on white: on a dark page
# light and dark change places in them, and colours stay.
STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1c1c1c; --soft: #5f6368; --line: #dcdfe3;
  --accent: #0b5394; --card: #f7f8fa; --pass: #1b6e2c; --fail: #b3261e; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ground: #15181c; --ink: #e6e8eb; --soft: #aab0b8; --line: #3a4047; --accent: #8ab8f5; --card: #1e2227;
    --pass: #7fd18b; --fail: #ff8a80; }
  img { filter: invert(.91) hue-rotate(180deg); } }
.zoom label { margin-right: .9rem; font-size: .9rem; white-space: nowrap; }
.zoom .view { overflow: auto; max-height: 85vh; border: 1px solid var(--line); margin-top: .4rem; }
.zoom .view img { display: block; max-width: none; width: min(100%, 1.3 * var(--natural)); height: auto; }
.zoom:has([value="1"]:checked) img { width: var(--natural); }
.zoom:has([value="2"]:checked) img { width: calc(2 * var(--natural)); }
.zoom:has([value="4"]:checked) img { width: calc(4 * var(--natural)); }
.search input { font: inherit; width: 100%; max-width: 28rem; padding: .3rem .5rem; margin-bottom: .4rem; }
.search th[aria-sort] { cursor: pointer; } .search th[aria-sort="ascending"]::after { content: " \\2191"; }
.search th[aria-sort="descending"]::after { content: " \\2193"; } .search td { white-space: nowrap; }
.search td:last-child { white-space: normal; min-width: 14rem; }
@media print { :root { color-scheme: light; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 0 auto;
  max-width: 62rem; padding: 1.5rem 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; } a { color: var(--accent); }
article > h2 { font-size: 1.35rem; line-height: 1.3; margin-top: 3.5rem; padding-top: 1.5rem;
  border-top: 1px solid var(--line); }
b.pass { color: var(--pass); } b.fail { color: var(--fail); }
p.lead, figcaption { color: var(--soft); } figcaption { font-size: .9rem; }
p.answer { font-size: 1.25rem; line-height: 1.4; border-left: 4px solid var(--accent); padding-left: .8rem; }
nav { font-size: .9rem; } nav a { margin-right: .9rem; display: inline-block; }
figure { margin: 1rem 0; }
img { display: block; max-width: 100%; height: auto; background: white; border-radius: 4px; }
figcaption { margin-top: .4rem; }
.wide { overflow-x: auto; } .tall { max-height: 26rem; overflow: auto; border: 1px solid var(--line); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0 2rem; }
.grid > * { min-width: 0; } img.fit { width: 100%; max-width: min(100%, 38rem); } img.full { width: 100%; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; margin: .5rem 0; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } th { white-space: nowrap; }
table.facts { overflow-wrap: anywhere; }
table.facts th { font-weight: normal; color: var(--soft); white-space: normal; width: 40%; }
.tall table { font-size: .85rem; margin: 0; }
.tall th { position: sticky; top: 0; background: var(--ground); }
.tall th:first-child, .tall td:first-child { padding-left: .6rem; }
summary { cursor: pointer; margin: .5rem 0; color: var(--accent); }
pre { white-space: pre-wrap; background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem .8rem; font-size: .85rem; }
td a { text-decoration: none; } td a:hover { text-decoration: underline; }
tr:target { background: var(--card); box-shadow: inset 3px 0 var(--accent); }
figure:target { outline: 2px solid var(--accent); outline-offset: .4rem; }
tr[id] { scroll-margin: 8rem 0; } figure[id] { scroll-margin: 2rem 0; }
.listing td.code { font-family: ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; min-width: 13rem;
  overflow-wrap: anywhere; }
.listing td { border: 0; padding: 0 .7rem 0 0; } .listing td:first-child { color: var(--soft); text-align: right; }
.search .listing td:last-child { min-width: 7rem; max-width: 14rem; }
.cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.2rem 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .6rem 1rem;
  flex: 1 1 10rem; }
.card b { display: block; font-size: 1.35rem; line-height: 1.3; color: var(--accent); overflow-wrap: break-word; }
.card span { color: var(--soft); font-size: .85rem; }
@media print {
  .zoom label, .search input, .search output { display: none; }
  .zoom .view { max-height: none; overflow: visible; } .zoom .view img { width: 100% !important; }
  .search td { white-space: normal; } .search:has(.listing) { display: none; }
  @page { size: A4; margin: 15mm; } body { font-size: 10pt; max-width: none; padding: 0; } nav { display: none; }
  figure, .card, tr { break-inside: avoid; } h1, h2, h3 { break-after: avoid; }
  thead { display: table-header-group; } .cards { gap: .5rem; }
  section.sheet, article { break-before: page; } article > h2 { border-top: 0; margin-top: 0; padding-top: 0; }
  .tall { max-height: none; border: 0; } .tall th { position: static; }
  .wide, .tall { overflow: visible; } img, img.fit, img.full { width: auto; max-height: 18cm; min-width: 0 !important; }
  table, .tall table { font-size: 7pt; } table.facts { font-size: 8.5pt; }
  th, td { padding: .15rem .35rem .15rem 0; } td { overflow-wrap: break-word; }
  .facts td { overflow-wrap: anywhere; }
  th { white-space: normal; } td.n { overflow-wrap: normal; }
  details::details-content { content-visibility: visible; block-size: auto; } summary { list-style: none; }
}
"""


SCRIPT = """
const scale = {p: 1e-12, n: 1e-9, u: 1e-6, m: 1e-3};
const size = text => { const [, number, prefix] = text.match(/^([-+.0-9e]+) ?([pnum]?)/) ?? [];
  return number === undefined ? -1 : Math.abs(number) * (scale[prefix] ?? 1); };
for (const part of document.querySelectorAll(".search")) {
  const box = part.querySelector("input"), body = part.querySelector("tbody"), count = part.querySelector("output");
  const rows = [...body.rows].map(row => [row, row.textContent.toLowerCase()]);
  const filter = () => {
    const words = box.value.toLowerCase().split(/\\s+/);
    let shown = 0;
    for (const [row, text] of rows) shown += !(row.hidden = !words.every(word => text.includes(word)));
    count.textContent = `${shown} of ${rows.length}`;
  };
  box.hidden = false;
  box.addEventListener("input", filter);
  filter();
  const heads = [...part.querySelectorAll("th")], order = new Intl.Collator("en", {numeric: true});
  heads.forEach((head, column) => {
    head.setAttribute("aria-sort", "none");
    head.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending", sign = down ? -1 : 1;
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const text = row => row.cells[column].textContent, numbers = head.classList.contains("n");
      rows.sort(([a], [b]) => sign * (numbers ? size(text(a)) - size(text(b)) : order.compare(text(a), text(b))));
      body.append(...rows.map(([row]) => row));
    });
  });
}
const reveal = () => {
  const place = document.getElementById(location.hash.slice(1));
  if (!place?.matches("tr, figure")) return;
  for (let part = place; part; part = part.parentElement) {
    const box = part.matches(".search") && place.hidden && part.querySelector("input");
    if (box) { box.value = ""; box.dispatchEvent(new Event("input")); }
    if (part.matches("details")) part.open = true;
  }
  place.scrollIntoView();
};
addEventListener("hashchange", reveal);
addEventListener("click", click => click.target.closest("a")?.hash === location.hash && reveal());
reveal();
"""
