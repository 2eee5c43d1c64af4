"""The page of a compiled network: complete without its script; with it the table filters and sorts."""

import csv
import json
import re
from base64 import b64encode

import pytest

from cosim.compiler.mapping import map_parameters
from cosim.compiler.passes import compile_network
from cosim.results.html import escape
from cosim.results.kept_page import read_page, write_page
from cosim.results.page import format_block, format_pages
from cosim.verbs.compile import page as compile_page
from cosim.verbs.compile.page import design_page, picture_network, write_design

PROBE = """<script>
const input = document.querySelector(".search input");
const rows = () => [...input.closest(".search").querySelectorAll("tbody tr")];  // of the first table: the mapping
input.value = "LAYER0.WEIGHT exact"; input.dispatchEvent(new Event("input"));
const shown = rows().filter(row => !row.hidden).map(row => row.cells[0].textContent);
input.value = ""; input.dispatchEvent(new Event("input"));
[...document.querySelectorAll(".search th")].find(head => head.textContent == "error").click();
const errors = rows().map(row => Math.abs(Number(row.cells[4].textContent)));
[...document.querySelectorAll(".search th")].find(head => head.textContent == "built").click();
const built = rows().map(row => row.cells[3].textContent);
document.querySelector('.zoom input[value="2"]').click();
const wide = document.querySelector(".zoom img").getBoundingClientRect().width;
document.body.dataset.found = JSON.stringify({shown, errors, built, wide});
</script>"""


@pytest.fixture(scope="module")
def design(make_network, technology, calibration):
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    network.layers[0].weight[1, 2] += 0.07  # off the grid: this one is rounded
    return compile_network(network, technology, calibration)


def test_page_has_picture_mapping_areas_and_cells(design, tmp_path):
    write_design(design, tmp_path)
    write_page(tmp_path, design_page(design))
    page = (tmp_path / "report.html").read_text()
    table = re.sub(r"</?a\b[^>]*>", "", page)  # names lead to the netlist
    for row in csv.DictReader((tmp_path / "mapping.csv").read_text().splitlines()):
        assert f"<td>{escape(row['parameter'])}</td><td>{escape(row['element'])}</td>" in table
    assert b64encode((tmp_path / "network.svg").read_bytes()).decode() in page
    figures = json.loads((tmp_path / "design.json").read_text())
    assert f"<b>{figures['transistors']}</b>" in page
    for heading in ("Area by block", "What was lost", "Cells", "The network"):
        assert f"<h2>{heading}</h2>" in page
    assert page == format_pages([read_page(tmp_path)]) == format_pages([design_page(design)])
    assert page.count("<script>") == 1


def test_without_a_script_the_table_is_whole_and_the_filter_hidden(design):
    _, fold = compile_page.format_mapping(map_parameters(design))
    table = format_block(fold)
    assert table.count("<tr>") == len(map_parameters(design)) + 1
    assert 'type="search" hidden' in table and "<tr hidden" not in table


def test_large_tables_keep_the_largest_errors(design, monkeypatch):
    monkeypatch.setattr(compile_page, "MOST", 5)
    rows = map_parameters(design)
    _, fold = compile_page.format_mapping(rows)
    (rounded,) = [row for row in rows if row.status == "rounded"]
    assert len(fold.table.rows) == 5 and fold.summary == f"the 5 of {len(rows)} with the largest errors"
    assert rounded.parameter in [row[0] for row in fold.table.rows]


def test_filter_sort_and_zoom_in_a_browser(design, browse, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(format_pages([design_page(design)]).replace("</body>", f"{PROBE}</body>"))
    done = browse("--window-size=1300,900", "--dump-dom", path.as_uri())
    assert ":CONSOLE" not in done.stderr
    (found,) = re.findall(r'data-found="([^"]+)"', done.stdout)
    found = json.loads(found.replace("&quot;", '"'))
    rows = map_parameters(design)
    assert found["shown"] == [
        row.parameter for row in rows if row.parameter.startswith("layer0.weight") and row.status == "exact"
    ]
    assert len(found["shown"]) == 8  # of 9, one is rounded
    assert found["errors"] == sorted(found["errors"], reverse=True) and found["errors"][0] > 0.0
    units = [number for text in found["built"] if (number := amount(text)) is not None]
    assert len(units) == len(rows) and units == sorted(units, reverse=True)  # 1 is more than 500 pA
    natural = picture_network(design).least
    assert found["wide"] == pytest.approx(2 * natural, abs=1)  # pixels are whole


def amount(text):
    """The size of a number with the prefix of its unit, None without one."""
    found = re.match(r"([-+.0-9e]+) ?([pnum]?)", text)
    return found and abs(float(found[1])) * {"p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0}[found[2]]
