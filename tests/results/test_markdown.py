"""A page as markdown: its tables are read back cell by cell, and no text of it is taken for markup."""

import re

from cosim.results.html import Picture
from cosim.results.markdown import format_markdown
from cosim.results.page import Facts, Fold, Grid, Links, Page, PageSubject, Section, Table


def tables_of(text):
    """(head, rows) of each table of a markdown text, with escapes undone."""
    found, lines = [], text.splitlines()
    for number, line in enumerate(lines):
        if re.fullmatch(r"\|( -+:? \|)+", line):
            rows = []
            for row in (lines[number - 1], *lines[number + 1 :]):
                if not row.startswith("|"):
                    break
                cells = re.split(r"(?<!\\)\|", row)[1:-1]
                rows.append(tuple(re.sub(r"\\(.)", r"\1", cell.strip()) for cell in cells))
            found.append((rows[0], tuple(rows[1:])))
    return found


PICTURE = Picture("png", b"", "", "")
ODD = Table(("a|b", "n"), (("_x_", "1"), ("i_rise", "-2"), ("<b>[*]`", ""), ("3. of", "\\")), (1,))


def page(*blocks):
    sections = (Section("All", blocks), Section("Pictures", (PICTURE, Links((("a", "b"),)))))
    return Page("datasheet", PageSubject("x"), "x: 1. *of* 2", "lead", (("5 V", "u"),), sections, {"cosim": "1"}, "yes")


def test_every_table_is_read_back():
    plain = Table(("k",), (("v",),))
    text = format_markdown(page(ODD, Grid((plain, PICTURE)), Fold("more", plain), Facts((("f", "1 V"),))))
    figures, *tables, provenance = tables_of(text)
    assert figures == (("figure", "value"), (("u", "5 V"),)) and provenance == (("what", "which"), (("cosim", "1"),))
    assert tables == [
        (ODD.head, ODD.rows),
        (("k",), (("v",),)),
        (("k",), (("v",),)),
        (("what", "which"), (("f", "1 V"),)),
    ]
    assert "| --- | ---: |" in text and "\n\nmore\n\n" in text and "## Pictures" not in text
    assert text.startswith("# x: 1\\. \\*of\\* 2\n\nlead\n\nyes\n\n") and text.endswith("|\n")


def test_names_with_underscores_stay_readable():
    text = format_markdown(page(ODD, "# of chips", "- 3 V"))
    assert "| i_rise |" in text and "| \\_x\\_ |" in text
    assert "\n\\# of chips\n" in text and "\n\\- 3 V\n" in text
