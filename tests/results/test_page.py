"""The one form of a page: what is text stays text, what several verbs share stands once, and units are units."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from cosim.base.errors import InputError
from cosim.base.seal import seal_json
from cosim.base.settings import RunSettings, write_settings
from cosim.compiler.passes import compile_network
from cosim.results.html import Picture, escape, link_names
from cosim.results.kept_page import check_same, has_page, read_page, write_page
from cosim.results.page import (
    PROVENANCE,
    REPEAT,
    Facts,
    Fold,
    Grid,
    Page,
    PageSubject,
    Section,
    Table,
    format_pages,
    format_text,
    link_page,
)
from cosim.verbs.compile.outputs import summarize
from cosim.verbs.montecarlo.spec import format_spec
from cosim.verbs.words import WORDS, network_name, worded

HOSTILE = '<script>alert("x")</script>'
PICTURE = Picture("png", b"\x89PNG", HOSTILE, HOSTILE, 300)
TABLE = Table((HOSTILE, "n"), ((HOSTILE, "1"),), (1,))
BLOCKS = (HOSTILE, PICTURE, TABLE, Facts(((HOSTILE, HOSTILE),)), Grid((PICTURE, TABLE)), Fold(HOSTILE, TABLE))


@pytest.fixture
def page():
    return Page(
        HOSTILE, PageSubject(HOSTILE, "0123456789abcdef"), HOSTILE, HOSTILE, ((HOSTILE, HOSTILE),),
        (Section(HOSTILE, BLOCKS), Section("nothing", ())), {"network": "0123456789abcdef", HOSTILE: HOSTILE}, HOSTILE,
        (HOSTILE,), RunSettings(HOSTILE, command=HOSTILE),
    )  # fmt: skip


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("count", [1, 2])
def test_everything_is_text(page, count):
    text = format_pages(count * [page])
    parser = Tags(text)
    assert parser.open == [] and "script" not in parser.tags
    assert 'alert("x")' not in text
    # title twice (tab and heading), lead, answer, note, card twice, link, heading of the section; then the blocks:
    # paragraph, picture's alt and caption twice, table's head and row three times, facts twice, the fold's line;
    # provenance twice, the command
    assert text.count("&lt;script&gt;") >= 9 + 1 + 4 + 6 + 2 + 1 + 2 + 1
    assert not re.search(r"(src|href)=\"(?!data:|#)", text) and "http" not in text
    assert "nothing" not in parser.text


def test_what_two_pages_share_stands_once(page):
    first = replace(page, verb="compare", provenance={"network": "0123456789abcdef", "ngspice": "39"})
    text = Tags(format_pages([first, replace(first, verb="power", provenance={**first.provenance, "ngspice": "42"})]))
    assert text.text.count("0123456789abcdef") == 1
    assert text.text.count(PROVENANCE) == 1
    assert text.text.count(REPEAT) == 2
    assert "39 (compare); 42 (power)" in text.text
    assert text.tags.count("h1") == 1 and text.tags.count("article") == 2


def test_a_page_is_kept_as_it_is(page, tmp_path):
    assert not has_page(tmp_path)
    write_settings(tmp_path, RunSettings("compare", command="cosim compare net.npz"))
    write_page(tmp_path, page)
    assert has_page(tmp_path)
    assert read_page(tmp_path) == replace(page, repeat=RunSettings("compare", command="cosim compare net.npz"))
    assert (tmp_path / "report.html").read_text() == format_pages([read_page(tmp_path)])


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"text": 3}, r"sections\[0\].blocks\[0\].text must be text or null, not a whole number"),
        ({}, "a part must be a text, picture, table, facts, grid, fold or links"),
        ({"table": {"head": ["a"], "rows": [["1", "2"]]}}, "a row must have as many cells as its table has columns"),
        (
            {"picture": {"kind": "png", "content": "?", "alt": "", "caption": "", "least": 0}},
            "the content of a picture must be base64",
        ),
    ],
)
def test_what_is_no_page_is_refused(page, tmp_path, block, words):
    write_page(tmp_path, page)
    kept = json.loads((tmp_path / "page.json").read_text())
    del kept["sha256"]
    kept["sections"] = [{"name": "one", "blocks": [block], "sheet": False}]
    (tmp_path / "page.json").write_bytes(seal_json(kept))
    with pytest.raises(InputError, match=rf"page.json: .*{words}; the command that made it writes it again"):
        read_page(tmp_path)


def test_a_damaged_page_is_said(page, tmp_path):
    write_page(tmp_path, page)
    content = (tmp_path / "page.json").read_bytes()
    (tmp_path / "page.json").write_bytes(content.replace(base64.b64encode(PICTURE.content), b"AAAA"))
    with pytest.raises(InputError, match=r"page.json: damaged, or of a cosim without checksums: its"):
        read_page(tmp_path)


def test_two_networks_are_not_on_one_page(page, tmp_path):
    other = replace(page, subject=PageSubject("digits_d4", "fedcba9876543210"))
    check_same([(tmp_path / "a", page), (tmp_path / "b", page)])
    with pytest.raises(InputError, match=r"a is about .*\(0123456789abcdef\), and .*b is about digits_d4 \(fedcba"):
        check_same([(tmp_path / "a", page), (tmp_path / "b", other)])


def test_every_figure_of_a_design_has_words(make_network, technology, calibration):
    design = compile_network(make_network(5), technology, calibration)
    found = summarize(design)
    assert {*found} <= {*WORDS}
    rows = dict(worded(found))
    assert rows["current of software 1.0"] == "1 nA" and rows["supply"] == "1.8 V" and rows["temperature"] == "27 °C"
    assert rows["gates' area"].endswith(" um2") and network_name(design.network) == "made up_d5-2"


def test_units_are_not_exponents():
    given = {"nfet": {"a_vt": 5e-9, "a_beta": 2e-8, "response": [[1e-11, 1.282]]}, "tau": None, "t_step_s": 1e-2}
    assert dict(worded(given)) == {
        "n transistors: mismatch of the threshold voltage, one device": "5 mV um",  # 5e-9 V m
        "n transistors: mismatch of the current factor, one device": "2 % um",  # 2e-8 m
        "n transistors: slope factor by current density": "1.282 at 10 pA",
        "time constant of the ladders": "none",
        "frame": "10 ms",
    }
    assert dict(worded({"statuses": {"exact": 3, "cut": 1}, "unheard_of": 1.5})) == {
        "parameters, by how they were built": "3 exact, 1 cut",
        "unheard of": "1.5",
    }


def test_limits_in_words():
    found = format_spec(["accuracy>=0.8", "state_agreement>=99%", "power<=400nW"])
    assert found == "accuracy ≥ 80 % and state agreement ≥ 99 % and power ≤ 400 nW"


def test_verdicts_have_their_colours_and_their_words():
    """In a title and in a table, as whole words; text of a user stays text."""
    table = Table(("check", "verdict"), (("corners", "PASS"), ("PASSAGE <b>", "FAIL, unsure")))
    page = Page("signoff", PageSubject("net", "1"), "net: FAIL in 1 of 2 checks", "lead", (), (Section("s", (table,)),))
    found = format_pages([page])
    assert 'net: <b class="fail">FAIL</b> in 1 of 2' in found and '<td><b class="pass">PASS</b></td>' in found
    assert "PASSAGE &lt;b&gt;" in found and '<b class="fail">FAIL</b>, unsure' in found


def test_the_sections_of_all_pages_but_the_first_are_folded(page):
    two = format_pages([page, replace(page, verb="power")])
    first, second = re.findall(r"<article.*?</article>", two, re.DOTALL)
    assert "<summary>Show " not in first
    head, folded = second.split("<details>", 1)
    assert escape(page.title) in head and "<section" not in head
    assert folded.startswith("<summary>Show ") and "<section" in folded
    assert '<b class="fail">FAIL</b>' in format_pages([replace(page, sections=(Section("Corners: FAIL", ("no",)),))])


LISTING = Table(
    ("line", "file", "see"), (("1", ".subckt a_b x", "L2"), ("2", f"xc {HOSTILE} a_b", "L1")), listing="net"
)
PLACES = {"a_b": "net-1", "L1": "net-1", "L2": "net-2", "layer1.0": "net-2", "w.a[0,1]": "net-2", "nine T": "cell-1"}


@pytest.fixture
def probed(page):
    """A page whose names lead to a listing and to a picture."""
    said = Table(("name", "n"), (("layer1.0", "1"), ("nine T", "2"), ("unknown.0", "3")), (1,))
    places = Section("Places", (Fold("lines", LISTING), Grid((replace(PICTURE, place="cell-1"),))), detail=True)
    return link_page(
        replace(page, sections=(Section("Said", (said, "Of w.a[0,1], a_b.")), places)), PLACES | {"no": "x"}
    )


def links(text):
    return re.findall(r'<a href="#([^"]+)">([^<]*)</a>', text.partition("<main>")[2])


def test_names_lead_to_lines_and_pictures(probed, tmp_path):
    text = format_pages([probed])
    assert links(text) == [
        ("net-2", "layer1.0"), ("cell-1", "nine T"), ("net-2", "w.a[0,1]"), ("net-1", "a_b"), ("net-2", "L2"),
        ("net-1", "L1"),
    ]  # fmt: skip
    assert text.count('<tr id="net-') == 2 and text.count('<figure id="cell-1">') == 1
    assert probed.places == PLACES  # and not "no", which the page does not say
    write_page(tmp_path, probed)
    assert format_pages([read_page(tmp_path)]) == format_pages([replace(probed, repeat=None)])
    assert not any("net-" in line for line in format_text(probed))


def test_names_without_a_place_are_text(probed):
    """Where the section of details is not on a page, as in a notebook, nothing leads to it."""
    said, _ = probed.sections
    assert links(format_pages([replace(probed, sections=(said,))])) == []
    assert "href" not in probed._repr_html_()


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("layer1.0", ["layer1.0"]),
        ("layer1.0 45 %", ["layer1.0"]),
        ("(layer1.0 in 4, unit)", ["layer1.0"]),
        ("xlayer1.0", []),
        ("layer1.01", []),
        ("a unit of it", []),
        ("unit", ["unit"]),
        ("one, unit", ["unit"]),
        ("&#x27;x27&amp;amp", ["x27"]),
        ("layer1.0.", ["layer1.0"]),
    ],
)
def test_what_is_a_name_in_a_text(text, linked):
    """A word of prose leads only where it is alone; the escape of a quotation mark is no name."""
    places = {"layer1.0": "a", "unit": "b", "x27": "c", "amp": "d"}
    found = link_names(f"<td>{text}</td>", places)
    assert [name for _, name in re.findall(r'<a href="#(.)">(.*?)</a>', found)] == linked
    assert re.sub(r"</?a\b[^>]*>", "", found) == f"<td>{text}</td>"
    assert link_names(f"<pre>{text}</pre><td class='code'>{text}</td>", places).count("<a") == 0


def test_a_name_cannot_break_out(page):
    """Names, places and lines of a page may come from a file."""
    hostile = {HOSTILE: '"><script>', "a.1": '"onclick="alert(1)'}
    said = Table(("a", "b"), ((HOSTILE, "a.1"),))
    listing = Table(("line", "file"), (('"><script>', HOSTILE), ('"onclick="alert(1)', HOSTILE)), listing='"><')
    text = format_pages([replace(page, sections=(Section("s", (said, listing)),), places=hostile)])
    assert Tags(text).open == [] and text.count("<script>") == 1 and 'onclick="alert' not in text
    listing = replace(listing, listing="net")
    leads = {name: f"net-{place}" for name, place in hostile.items()}
    text = format_pages([replace(page, sections=(Section("s", (said, listing)),), places=leads)])
    assert Tags(text).open == [] and text.count("<script>") == 1 and 'onclick="alert' not in text
    assert len(links(text)) == 2


def test_details_that_two_pages_share_stand_once(probed):
    """And the names of both lead to them; another netlist has ids of its own."""
    said, details = probed.sections
    other = replace(details, blocks=(Fold("lines", replace(LISTING, rows=LISTING.rows[:1])), *details.blocks[1:]))
    text = format_pages([probed, replace(probed, verb="power"), replace(probed, verb="trim", sections=(said, other))])
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len({*ids}) and {place for place, _ in links(text)} <= {*ids}
    assert text.count('<tr id="net-') == 2 and text.count('<tr id="p2-net-') == 1
    named = [place for place, name in links(text) if name == "a_b"]
    assert named == ["net-1", "net-1", "p2-net-1"]
    assert [place for place, name in links(text) if name == "layer1.0"] == ["net-2", "net-2"]


def test_a_listing_has_numbers_and_lines(page, tmp_path):
    write_page(tmp_path, page)
    kept = json.loads((tmp_path / "page.json").read_text())
    del kept["sha256"]
    table = {"head": ["a"], "rows": [["1"]], "listing": "net"}
    kept["sections"] = [{"name": "one", "blocks": [{"table": table}], "sheet": False}]
    (tmp_path / "page.json").write_bytes(seal_json(kept))
    with pytest.raises(InputError, match=r"a listing must have columns of numbers and of lines; the command that made"):
        read_page(tmp_path)
