"""A page in the terminal: what it shows of each kind of block, and how wide it gets."""

from cosim.results.html import Picture
from cosim.results.page import (
    SHOWN,
    WIDTH,
    Facts,
    Fold,
    Grid,
    Links,
    Page,
    PageSubject,
    Section,
    Table,
    format_columns,
    format_text,
)

PICTURE = Picture("svg+xml", b"<svg/>", "a picture", "a picture")
SHORT = Table(("cell", "power"), (("a", "1 nW"), ("bb", "12 nW")), (1,))


def page(*sections, **more):
    return Page(
        "compare", PageSubject("net"), "net: all as software", "Two samples.", more.pop("cards", ()), sections, **more
    )


def test_a_page_is_its_verdict_its_sections_and_its_notes():
    found = page(
        Section("Blocks", (PICTURE, SHORT, "A paragraph at 27 °C ± 1.")),
        Section("Facts", (Facts((("frame", "10 ms"), ("bias pins", "18"))), Grid((SHORT, PICTURE)))),
        notes=("Inputs were clipped.",),
        answer="Nothing differs.",
        cards=(("1 nW", "mean power"), ("99.9 %", "states")),
    )
    assert format_text(found) == [
        "net: all as software", "", "Two samples. Nothing differs.", "", "1 nW    mean power", "99.9 %  states", "",
        "Blocks", "cell  power", "a      1 nW", "bb    12 nW", "", "A paragraph at 27 C +- 1.", "",
        "Facts", "frame      10 ms", "bias pins  18", "", "cell  power", "a      1 nW", "bb    12 nW", "",
        "Inputs were clipped.",
    ]  # fmt: skip


def test_what_is_for_the_file_alone_is_left_out():
    searched = Table(("cell", "power"), SHORT.rows, search=True)
    found = page(
        Section("Pictures", (PICTURE,)),
        Section("Details", (SHORT,), detail=True),
        Section("Links", (Links((("a", "a.html"),)), searched, Fold("more", SHORT))),
        Section("Open", (Fold("more", SHORT, unfolded=True),)),
    )
    assert format_text(found)[3:] == ["", "Open", "cell  power", "a      1 nW", "bb    12 nW"]


def test_what_a_terminal_cannot_print_is_escaped():
    assert format_text(page(Section("Labels", (Facts((("a\x1b[31m", "b\u202ec"),)),))))[-1] == r"a\x1b[31m  b\u202ec"


def test_an_answer_that_the_title_has_is_not_repeated():
    assert format_text(page(answer="All as software."))[2] == "Two samples."


def test_a_long_table_shows_its_first_rows():
    rows = tuple((str(k),) for k in range(SHOWN + 5))
    lines = format_text(page(Section("Rows", (Table(("row",), rows, tall=True),))))
    assert lines[-2:] == [str(SHOWN - 1), "and 5 more, in the page's file"]


def test_a_table_that_is_too_wide_has_its_last_column_broken():
    reason = "a reason that is long " * 8
    lines = format_columns(("points", "why"), [("1", reason), ("2", "")], (0,))
    assert lines[0] == "points  why" and lines[-1] == "     2"
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(" ".join(lines).split()).count("a reason that is long") == 8


def test_a_table_of_numbers_that_is_too_wide_has_its_head_broken():
    names = ("a", "a name that is long enough", "another name that is as long", "and a third that is no shorter either")
    assert format_columns(names * 2, [tuple("12345678")], range(8)) == [
        "                     another name     and a third                       another name     and a third",
        "   a name that is      that is as      that is no     a name that is      that is as      that is no",
        "a     long enough            long  shorter either  a     long enough            long  shorter either",
        "1               2               3               4  5               6               7               8",
    ]


def test_a_table_without_rows_is_its_head():
    assert format_columns(("a", "b"), []) == ["a  b"]
