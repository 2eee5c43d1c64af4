"""The result page in a verb's folder: report.html for readers, page.json to join pages of several verbs later."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cosim.base.errors import InputError
from cosim.base.seal import read_sealed
from cosim.base.settings import read_settings
from cosim.base.store import write_results, write_texts
from cosim.base.text import is_file, shown_path, typed
from cosim.results.html import Picture
from cosim.results.page import Block, Facts, Fold, Grid, Links, Page, PageSubject, Section, Table, format_pages

REPORT_FILE, PAGE_FILE = "report.html", "page.json"
_AGAIN = "the command that made it writes it again"


@dataclass(frozen=True)
class _Picture:
    """A picture whose content is base64."""

    kind: Literal["svg+xml", "png"]
    content: str
    alt: str
    caption: str
    least: int
    zoom: bool = False
    place: str = ""


@dataclass(frozen=True)
class _Block:
    """A block of a section as JSON holds it: exactly one field is not None."""

    text: str | None = None
    picture: _Picture | None = None
    table: Table | None = None
    facts: Facts | None = None
    grid: "list[_Block] | None" = None
    fold: Fold | None = None
    links: Links | None = None


@dataclass(frozen=True)
class _Section:
    name: str
    blocks: list[_Block]
    sheet: bool
    detail: bool = False


@dataclass(frozen=True)
class _Page:
    """A result page as page.json holds it."""

    verb: str
    subject: PageSubject
    title: str
    lead: str
    cards: tuple[tuple[str, str], ...]
    sections: list[_Section]
    provenance: dict[str, str]
    answer: str
    notes: tuple[str, ...]
    places: dict[str, str] = field(default_factory=dict[str, str])


def write_page(folder: Path, page: Page, others: Sequence[Page] = ()) -> None:
    """Write a page into its folder: as report.html, with the pages in `others` below it, and alone as page.json.

    report.html says how to repeat the run, from the folder's run.toml. Raises InputError if a file cannot be written.
    """
    write_results(folder, {PAGE_FILE: _keep(page)})
    write_texts(
        folder,
        {
            REPORT_FILE: format_pages(
                [repeatable(folder, page), *others], f"{page.subject.name}: {page.verb}" if others else ""
            )
        },
    )


def repeatable(folder: Path, page: Page) -> Page:
    """Return a copy of a page with the settings of its folder's run.toml, so that it shows how to repeat the run."""
    return replace(page, repeat=read_settings(folder))


def has_page(folder: Path) -> bool:
    """Tell whether a folder contains page.json, which `read_page` reads."""
    return is_file(folder / PAGE_FILE)


def read_page(folder: Path) -> Page:
    """Read the page in a verb's folder, page.json, and its settings.

    Raises InputError if there is no page, or if it is damaged.
    """
    path = folder / PAGE_FILE
    where = shown_path(path)
    kept = typed(read_sealed(path, _AGAIN), _Page, where, _AGAIN)
    sections = tuple(
        Section(one.name, tuple(_block(part, where) for part in one.blocks), one.sheet, one.detail)
        for one in kept.sections
    )
    page = Page(
        kept.verb, kept.subject, kept.title, kept.lead, kept.cards, sections, kept.provenance, kept.answer, kept.notes,
        places=kept.places,
    )  # fmt: skip
    return repeatable(folder, page)


def check_same(pages: Sequence[tuple[Path, Page]]) -> None:
    """Check that all pages have one subject, a network or a cell, so that they can be joined; pages: (folder, page).

    Raises InputError, which names two folders, if their pages have different subjects.
    """
    (first, wanted), *others = pages
    for folder, page in others:
        if page.subject != wanted.subject:
            named = (f"{shown_path(place)} is about {_named(one)}" for place, one in ((first, wanted), (folder, page)))
            raise InputError(f"one page is about one network, but {', and '.join(named)}; give the folders of one")


def _named(page: Page) -> str:
    found = page.subject
    return f"{found.name} ({found.hash})" if found.hash else found.name


def _keep(page: Page) -> _Page:
    sections = [
        _Section(one.name, [_kept(block) for block in one.blocks], one.sheet, one.detail) for one in page.sections
    ]
    return _Page(
        page.verb, page.subject, page.title, page.lead, page.cards, sections, dict(page.provenance), page.answer,
        page.notes, dict(page.places),
    )  # fmt: skip


def _kept(block: Block) -> _Block:
    match block:
        case str():
            return _Block(text=block)
        case Picture():
            content = base64.b64encode(block.content).decode()
            return _Block(
                picture=_Picture(block.kind, content, block.alt, block.caption, block.least, block.zoom, block.place)
            )
        case Table():
            return _Block(table=block)
        case Facts():
            return _Block(facts=block)
        case Grid():
            return _Block(grid=[_kept(one) for one in block.blocks])
        case Fold():
            return _Block(fold=block)
        case Links():
            return _Block(links=block)


def _block(kept: _Block, where: str) -> Block:
    """Return a block from its form in JSON; where: the file, for errors.

    Raises InputError if no field is set, or a row of a table has not as many cells as the table has columns.
    """
    if kept.picture is not None:
        one = kept.picture
        return Picture(one.kind, _content(one.content, where), one.alt, one.caption, one.least, one.zoom, one.place)
    if kept.grid is not None:
        found = tuple(_block(one, where) for one in kept.grid)
        return Grid(tuple(one for one in found if isinstance(one, Picture | Table)))
    whole = next(
        (part for part in (kept.text, kept.table, kept.facts, kept.fold, kept.links) if part is not None), None
    )
    if whole is None:
        raise InputError(
            f"{where}: sections: a part must be a text, picture, table, facts, grid, fold or links; {_AGAIN}"
        )
    for table in (whole, getattr(whole, "table", None)):
        if isinstance(table, Table) and any(len(row) != len(table.head) for row in table.rows):
            raise InputError(f"{where}: sections: a row must have as many cells as its table has columns; {_AGAIN}")
        if isinstance(table, Table) and table.listing and len(table.head) < 2:
            raise InputError(f"{where}: sections: a listing must have columns of numbers and of lines; {_AGAIN}")
    return whole


def _content(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise InputError(f"{where}: sections: the content of a picture must be base64; {_AGAIN}") from None
