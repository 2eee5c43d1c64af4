"""A result page as markdown: the verdict, its figures and every table, to keep beside a design or in its documents.

    # ota: 96 of 100 chips keep all limits
    ## Over the conditions
    | measure | min | typ | max | least | nominal | greatest | verdict |

The dialect is GitHub's (github.github.com/gfm), whose tables have a colon below a column that is aligned to the right.
Pictures stay in the page's HTML file, where links lead from as well. Texts are plain: what markdown would read as its
own is escaped.
"""

import re
from collections.abc import Iterator, Sequence

from cosim.results.page import PROVENANCE, Block, Facts, Fold, Grid, Page, Section, Table

_OWN = re.compile(r"[\\`*|<\[\]]|(?<![^\W_])_|_(?![^\W_])|^[#>+-](?=\s)|(?<=\d)\.(?=\s)")


def format_markdown(page: Page) -> str:
    """Return a page as the text of a markdown file, with its details and its provenance, without its pictures."""
    lines = [f"# {_plain(page.title)}", "", *(f"{_plain(text)}\n" for text in (page.lead, page.answer) if text)]
    if page.cards:
        lines += [*_table(("figure", "value"), [(label, value) for value, label in page.cards], (1,)), ""]
    for section in page.sections:
        lines += _section(section)
    lines += [f"{_plain(note)}\n" for note in page.notes]
    if page.provenance:
        lines += [f"## {PROVENANCE}", "", *_table(("what", "which"), list(page.provenance.items())), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(section: Section) -> list[str]:
    """Return a section's lines, none for a section that has pictures and links alone."""
    blocks = [lines for block in section.blocks for lines in _blocks(block)]
    lines = [f"## {_plain(section.name)}", ""]
    for block in blocks:
        lines += [*block, ""]
    return lines if blocks else []


def _blocks(block: Block) -> Iterator[list[str]]:
    match block:
        case str():
            yield [_plain(block)]
        case Table():
            yield _table(block.head, block.rows, block.numbers)
        case Facts():
            yield _table(("what", "which"), block.rows)
        case Grid():
            for one in block.blocks:
                yield from _blocks(one)
        case Fold():
            yield [_plain(block.summary)]
            yield from _blocks(block.table)
        case _:
            pass


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table; numbers: indices of columns aligned to the right."""
    rule = ("---:" if k in numbers else "---" for k in range(len(head)))
    return [f"| {' | '.join(cells)} |" for cells in (map(_plain, head), rule, *(map(_plain, row) for row in rows))]


def _plain(text: str) -> str:
    """Return a text on one line, in which no character has a meaning of markdown's."""
    return _OWN.sub(r"\\\g<0>", " ".join(text.split()))
