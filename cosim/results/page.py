"""Result pages as data, and their common form: verdict in the title, figures, sections, provenance, how to repeat.

A verb returns a `Page`. `format_pages` formats one page, or several verbs' pages about one network, as an HTML file.
`format_text` formats a page for the terminal: the verdict, its figures, then sections with tables whose columns are
aligned. Pictures, links, searchable tables and sections of details are in the file only; the terminal shows the first
rows of a long table. All texts of a page are plain; `format_pages` escapes them.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap

from cosim.base.settings import SETTINGS_FILE, RunSettings, describe_version, format_settings
from cosim.results.html import (
    Picture,
    color_verdicts,
    escape,
    format_cards,
    format_facts,
    format_figure,
    format_fold,
    format_links,
    format_listing,
    format_page,
    format_table,
    hold,
    link_names,
    move_places,
    names_in,
)

REPEAT = "Repeat this run"
PROVENANCE = "Where it comes from"
WIDTH = 100  # columns of a terminal that a page may take
SHOWN = 20  # rows of a long table
_GAP, _LEAST = "  ", 30  # between columns; columns of a text that is broken
_ASCII = str.maketrans({"±": "+-", "≥": ">=", "≤": "<=", "×": "x", "°": "", "−": "-", "µ": "u"})


def format_repeat(settings: RunSettings | None) -> str:
    """Return the HTML of a folded section that says how to repeat a run; empty if `settings` is None."""
    if settings is None:
        return ""
    other = f"<p>This run was {escape(text)}.</p>" if (text := describe_version(settings)) else ""
    again = shlex.join(["cosim", *settings.verb.split(), "--config", SETTINGS_FILE, "-o"]) + " FOLDER"
    return format_fold(
        f"{REPEAT} of cosim {settings.verb}, version {settings.version or 'not known'}",
        f"{other}<pre>{escape(settings.command)}</pre>"
        f"<p>Or, with every option as it was in effect, by {SETTINGS_FILE} of its folder:</p>"
        f"<pre>{escape(again)}</pre><pre>{escape(format_settings(settings))}</pre>",
    )


@dataclass(frozen=True)
class Table:
    """A table of a page.

    head: names of columns; numbers: indices of columns aligned to the right; tall: scrolls in a box of limited height;
    search: readers can filter rows by words and sort them by a column, where scripts run; listing: of lines of a file,
    each with its number, its text, and more; line 67 has the id `net-67` on the page if listing is "net". It is always
    tall and searched.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
    tall: bool = False
    search: bool = False
    listing: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """Return the ids of the lines of a listing, and of another table none."""
        return tuple(f"{self.listing}-{row[0]}" for row in self.rows) if self.listing else ()


@dataclass(frozen=True)
class Facts:
    """A block of a page: rows of (name in words, value with its unit)."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Grid:
    """A block of a page: pictures and tables, side by side where the screen is wide enough."""

    blocks: "tuple[Picture | Table, ...]"


@dataclass(frozen=True)
class Fold:
    """A block of a page: a table that a click on its summary shows or hides; paper always shows it.

    unfolded: whether the table is shown on a screen at first.
    """

    summary: str
    table: Table
    unfolded: bool = False


@dataclass(frozen=True)
class Links:
    """A block of a page: (text, relative address) of other pages."""

    rows: tuple[tuple[str, str], ...]


Block = str | Picture | Table | Facts | Grid | Fold | Links
Blocks = tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    """A section of a page: a heading with paragraphs (str), pictures and tables.

    sheet: begins a new sheet of paper; detail: shown in the HTML file only, not on the terminal.
    """

    name: str
    blocks: Blocks
    sheet: bool = False
    detail: bool = False


@dataclass(frozen=True)
class PageSubject:
    """The subject of a page: a network with its hash, or a cell, whose hash is ''."""

    name: str
    hash: str = ""


@dataclass(frozen=True)
class Page:
    """The result page of a verb; it prints as lines of text, and a notebook shows it as HTML.

    title: contains the verdict; lead: says what was done; answer: the verdict as a sentence; cards: (figure with its
    unit, label); notes: limits of the figures; provenance: name -> hash or version; repeat: settings of the run, None
    if not kept; places: name in its texts -> id of the line or picture to which it leads in the file.
    """

    verb: str
    subject: PageSubject
    title: str
    lead: str
    cards: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    provenance: Mapping[str, str] = field(default_factory=dict[str, str])
    answer: str = ""
    notes: tuple[str, ...] = ()
    repeat: RunSettings | None = None
    places: Mapping[str, str] = field(default_factory=dict[str, str])

    def __str__(self) -> str:
        return "\n".join(format_text(self))

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Return the pictures that stand in the page's sections, in their order; those of a grid or a fold are not."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Picture))

    def _repr_html_(self) -> str:
        """Return the page as HTML for a notebook, in the notebook's style, without sections of details."""
        shown = (_section("", section, 4) for section in self.sections if section.blocks and not section.detail)
        return f"{_head(self, 'h3')}{''.join(shown)}"


def format_pages(pages: Sequence[Page], title: str = "") -> str:
    """Return one HTML file that joins pages about one subject; provenance that they share is given once.

    Of every page but the first, sections are folded until a reader opens them; details that an earlier page has are
    left out. title: of the file, by default the title of a single page, or the subject with the verbs of several.
    """
    first, *others = pages
    title = title or (f"{first.subject.name}: {', '.join(page.verb for page in pages)}" if others else first.title)
    numbers = iter(range(10_000))
    bodies, links = "", ""
    heads, prefixes = list[str](), dict[Section, str]()  # prefixes: of the ids in sections of details
    for place, page in enumerate(pages):
        prefix = f"p{place}-" if place else ""
        there = [section for section in page.sections if section.blocks and section not in prefixes]
        prefixes |= {section: prefix for section in there if section.detail}
        shown = [(f"s{next(numbers)}", section) for section in there]
        body = "".join(_section(anchor, section, 3 if others else 2) for anchor, section in shown)
        found = {one: prefixes.get(section, prefix) + one for section in page.sections for one in _places(section)}
        leads = {name: found[one] for name, one in page.places.items() if one in found}
        body = link_names(move_places(body, prefix), leads)
        heads.append(link_names(_head(page, "h2" if others else "h1"), leads))
        listed = [(anchor, section.name) for anchor, section in shown]
        if others:
            anchor = f"s{next(numbers)}"
            if place and body:
                body = format_fold(f"Show {', '.join(name for _, name in listed)}", body)
            bodies += f'<article id="{anchor}">{heads[-1]}{body}</article>'
            listed = [(anchor, page.title)]
        else:
            bodies += body
        links += "".join(f'<a href="#{anchor}">{escape(name)}</a> ' for anchor, name in listed)
    opening = f"<h1>{escape(title)}</h1>" if others else heads[0]
    end = _provenance(pages) + "".join(format_repeat(page.repeat) for page in pages)
    return format_page(title, f"<header>{opening}</header><nav>{links}</nav><main>{bodies}{end}</main>")


def link_page(page: Page, places: Mapping[str, str]) -> Page:
    """Return a page on which names link to their places; places: name -> id, of which the page keeps those it says.

    Names in the lines of a listing do not link, those beside them do.
    """
    blocks = (block for section in page.sections for block in section.blocks)
    texts = [page.answer, *page.notes, *(text for block in blocks for text in _texts(block))]
    found = set[str]().union(*map(names_in, texts))
    return replace(page, places={name: places[name] for name in sorted(found & places.keys())})


def _texts(block: Block) -> Iterator[str]:
    """Yield the texts of a block from which names may lead."""
    match block:
        case str():
            yield block
        case Picture():
            yield block.caption
        case Table():
            for row in block.rows:
                yield from row[2:] if block.listing else row
        case Facts():
            yield from (value for _, value in block.rows)
        case Grid():
            for one in block.blocks:
                yield from _texts(one)
        case Fold():
            yield from _texts(block.table)
        case Links():
            pass


def _places(section: Section) -> Iterator[str]:
    """Yield the ids in a section: those of pictures and of lines of listings."""
    for block in section.blocks:
        for one in block.blocks if isinstance(block, Grid) else (block,):
            match one:
                case Picture() if one.place:
                    yield one.place
                case Table():
                    yield from one.places
                case Fold():
                    yield from one.table.places
                case _:
                    pass


def _head(page: Page, level: str) -> str:
    answer = f'<p class="answer">{hold(page.answer)}</p>' if page.answer else ""
    notes = "".join(f"<p>{hold(note)}</p>" for note in page.notes)
    title, lead = color_verdicts(hold(page.title)), f'<p class="lead">{hold(page.lead)}</p>'
    return f"<{level}>{title}</{level}>{lead}{answer}{notes}{format_cards(page.cards) if page.cards else ''}"


def _section(anchor: str, section: Section, level: int) -> str:
    sheet = ' class="sheet"' if section.sheet else ""
    named = f' id="{anchor}"' if anchor else ""
    content = "".join(map(format_block, section.blocks))
    return f"<section{named}{sheet}><h{level}>{color_verdicts(escape(section.name))}</h{level}>{content}</section>"


def format_block(block: Block) -> str:
    """Return the HTML of one block of a section."""
    match block:
        case str():
            return f"<p>{hold(block)}</p>"
        case Picture():
            return format_figure(block)
        case Table():
            if block.listing:
                return format_listing(block.listing, block.head, block.rows)
            return format_table(block.head, block.rows, block.numbers, tall=block.tall, search=block.search)
        case Facts():
            return format_facts(block.rows)
        case Links():
            return format_links(block.rows)
        case Grid():
            return f'<div class="grid">{"".join(map(format_block, block.blocks))}</div>'
        case Fold():
            return format_fold(block.summary, format_block(block.table), unfolded=block.unfolded)


def _provenance(pages: Sequence[Page]) -> str:
    """Return the HTML of the provenance of several pages: each value once, with its verbs if other pages differ."""
    found: dict[str, dict[str, list[str]]] = {}
    for page in pages:
        for name, value in page.provenance.items():
            found.setdefault(name, {}).setdefault(value, []).append(page.verb)
    rows = [
        (name, "; ".join(value if len(verbs) == len(pages) else f"{value} ({', '.join(verbs)})" for value, verbs in
                         values.items()))
        for name, values in found.items()
    ]  # fmt: skip
    return f"<section><h2>{PROVENANCE}</h2>{format_facts(rows)}</section>" if rows else ""


def format_text(page: Page) -> list[str]:
    """Return the lines of a page for the terminal, at most WIDTH characters long wherever words can be wrapped."""
    answer = "" if page.answer.rstrip(".").casefold() in page.title.casefold() else page.answer
    lines = [*_wrapped(page.title), "", *_wrapped(" ".join(filter(None, (page.lead, answer))))]
    if page.cards:
        lines += ["", *_fact_lines(page.cards)]
    for section in page.sections:
        lines += _section_lines(section)
    lines += [""] * bool(page.notes)
    for note in page.notes:
        lines += _wrapped(note)
    plain = [line.translate(_ASCII).rstrip() for line in lines]
    # the name of a task or a history may be any text
    return [line if line.isprintable() else ascii(line)[1:-1] for line in plain]


def _section_lines(section: Section) -> Iterator[str]:
    """Yield a section's lines for the terminal; none if the section is a detail, or has only pictures."""
    shown = [] if section.detail else [lines for block in section.blocks if (lines := list(_block_lines(block)))]
    if shown:
        yield from ("", section.name)
        for k, lines in enumerate(shown):
            yield from ([""] if k else [])
            yield from lines


def _block_lines(block: Block) -> Iterator[str]:
    match block:
        case str():
            yield from _wrapped(block)
        case Table() if not block.search:
            rows = block.rows[:SHOWN] if block.tall else block.rows
            yield from format_columns(block.head, rows, block.numbers)
            if len(rows) < len(block.rows):
                yield f"and {len(block.rows) - len(rows)} more, in the page's file"
        case Facts():
            yield from _fact_lines(block.rows)
        case Grid():
            for one in block.blocks:
                yield from _block_lines(one)
        case Fold() if block.unfolded:
            yield from _block_lines(block.table)
        case _:
            pass


def _fact_lines(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield lines of names and values side by side; long values wrap, a cosim command has an unbroken line."""
    widest = max(len(name) for name, _ in rows)
    for name, value in rows:
        if value.startswith("cosim "):
            yield from (name, f"{2 * _GAP}{value}")
            continue
        first, *others = wrap(value, WIDTH - widest - len(_GAP)) or [""]
        yield f"{name:{widest}}{_GAP}{first}"
        yield from (f"{'':{widest}}{_GAP}{other}" for other in others)


def format_columns(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table for the terminal; numbers: indices of columns aligned to the right.

    If the table would be wider than WIDTH, text of its last column is broken at spaces; if that is not enough, names of
    columns are as well.
    """
    widest = [max((len(row[k]) for row in rows), default=0) for k in range(len(head))]
    widths = [max(width, len(name)) for width, name in zip(widest, head, strict=True)]
    gaps = len(_GAP) * (len(head) - 1)
    if len(head) - 1 not in numbers:
        widths[-1] = min(widths[-1], max(WIDTH - sum(widths[:-1]) - gaps, _LEAST))
    least = [max(width, *map(len, name.split()), 0) for width, name in zip(widest, head, strict=True)]
    least[-1] = min(least[-1], widths[-1])
    while sum(widths) + gaps > WIDTH and widths != least:
        _, column = max((width, k) for k, width in enumerate(widths) if width > least[k])
        widths[column] -= 1
    sides = [">" if k in numbers else "<" for k in range(len(head))]
    lines: list[str] = []
    for number, row in enumerate((head, *rows)):
        cells = [wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        high = max(map(len, cells))
        for cell in cells:
            empty = [""] * (high - len(cell))
            cell[:] = empty + cell if number == 0 else cell + empty  # a head ends where the text below begins
        lines += [
            _GAP.join(
                f"{cell[k]:{side}{width}}" for cell, side, width in zip(cells, sides, widths, strict=True)
            ).rstrip()
            for k in range(high)
        ]
    return lines


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH)
