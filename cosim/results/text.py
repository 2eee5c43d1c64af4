"""A page as text for the terminal: the verdict, its figures, then sections with tables whose columns are aligned.

Pictures, links, tables to search and sections of details are for the file alone; of a long table the first rows are
shown.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from cosim.results.page import Block, Facts, Fold, Grid, Page, Section, Table

WIDTH = 100  # columns of a terminal that a page may take
SHOWN = 20  # rows of a long table
_GAP, _LEAST = "  ", 30  # between columns; columns of a text that is broken
_ASCII = str.maketrans({"±": "+-", "≥": ">=", "≤": "<=", "×": "x", "°": "", "−": "-", "µ": "u"})


def format_text(page: Page) -> list[str]:
    """Return the lines of a page for the terminal, at most WIDTH columns wherever words can be wrapped."""
    answer = "" if page.answer.rstrip(".").casefold() in page.title.casefold() else page.answer
    lines = [*_wrapped(page.title), "", *_wrapped(" ".join(filter(None, (page.lead, answer))))]
    if page.cards:
        lines += ["", *_facts(page.cards)]
    for section in page.sections:
        lines += _section(section)
    lines += [""] * bool(page.notes)
    for note in page.notes:
        lines += _wrapped(note)
    plain = [line.translate(_ASCII).rstrip() for line in lines]
    # the name of a task or a history may be any text
    return [line if line.isprintable() else ascii(line)[1:-1] for line in plain]


def _section(section: Section) -> Iterator[str]:
    """Yield a heading and what is below it; nothing of a section that has only pictures, or is a detail."""
    shown = [] if section.detail else [lines for block in section.blocks if (lines := list(_block(block)))]
    if shown:
        yield from ("", section.name)
        for k, lines in enumerate(shown):
            yield from ([""] if k else [])
            yield from lines


def _block(block: Block) -> Iterator[str]:
    match block:
        case str():
            yield from _wrapped(block)
        case Table() if not block.search:
            rows = block.rows[:SHOWN] if block.tall else block.rows
            yield from format_columns(block.head, rows, block.numbers)
            if len(rows) < len(block.rows):
                yield f"and {len(block.rows) - len(rows)} more, in the page's file"
        case Facts():
            yield from _facts(block.rows)
        case Grid():
            for one in block.blocks:
                yield from _block(one)
        case Fold() if block.unfolded:
            yield from _block(block.table)
        case _:
            pass


def _facts(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield pairs of texts side by side, the second wrapped; a command has a line of its own, to be copied from."""
    widest = max(len(name) for name, _ in rows)
    for name, value in rows:
        if value.startswith("cosim "):
            yield from (name, f"{2 * _GAP}{value}")
            continue
        first, *others = wrap(value, WIDTH - widest - len(_GAP)) or [""]
        yield f"{name:{widest}}{_GAP}{first}"
        yield from (f"{'':{widest}}{_GAP}{other}" for other in others)


def format_columns(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> list[str]:
    """Return the lines of a page's table for the terminal. numbers: columns aligned to the right.

    A table that would be wider than WIDTH has the text of its last column broken at spaces, and then its head.
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
