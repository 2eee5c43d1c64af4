"""From a name on a page to its line in the netlist: against the text of the netlist, and in a browser."""

import json
import re
from dataclasses import replace
from html import unescape
from urllib.parse import quote

import numpy as np
import pytest

from cosim.base.errors import MissingToolError
from cosim.base.resources import trained_network_path
from cosim.circuit.elements import Capacitor
from cosim.compiler.edited import EditedNetlist, netlist_path
from cosim.compiler.mapping import map_parameters
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.exchange.checkpoint import load_network
from cosim.results.page import format_pages
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import load_technology
from cosim.units.builder import net
from cosim.verbs.calibrate.find import shipped_path
from cosim.verbs.compile import cross_probing
from cosim.verbs.compile.cross_probing import lines_of, places_of, schematics_by_block
from cosim.verbs.compile.outputs import format_netlist
from cosim.verbs.compile.page import design_page
from cosim.verbs.compile.schematics import drawn_schematics
from cosim.verbs.power.study import power_page, study_power, summarize_power
from cosim.verbs.sensitivity.study import Decision, Sensitivities, Sensitivity, sensitivity_page

CELL = re.compile(r"<td[^>]*>(.*?)</td>")
LINK = re.compile(r'<a href="#([^"]+)">([^<]*)</a>')
PROBE = """<script>
const at = () => document.querySelector(":target"), box = document.querySelectorAll(".search input");
const fold = document.querySelector(".listing").closest("details"), found = {folded: !fold.open};
const click = link => new Promise(done => { link.click(); setTimeout(() => done({
  id: at().id, open: fold.open, hidden: at().hidden, top: at().getBoundingClientRect().top,
  bottom: at().getBoundingClientRect().bottom, filter: box[box.length - 1].value }), 100); });
const link = text => [...document.querySelectorAll("td a")].find(one => one.textContent == text);
onload = async () => {
  found.first = await click(link("layer0.weight[0,0]"));
  box[box.length - 1].value = "nothing like it";
  box[box.length - 1].dispatchEvent(new Event("input"));
  found.again = await click(link("layer0.weight[0,0]"));
  found.wide = document.scrollingElement.scrollWidth - innerWidth;
  document.body.dataset.found = JSON.stringify(found);
};
</script>"""


def of_kit(make_network):
    try:
        technology = load_technology("gf180mcu")
    except MissingToolError as error:
        pytest.skip(str(error))
    network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
    return compile_network(network, technology, load_calibration(shipped_path("gf180mcu", 8)))


@pytest.fixture(scope="module", params=["schmitt", "ladder", "toggle", "kit"])
def design(request, make_network, technology, calibration):
    match request.param:
        case "schmitt":
            network = make_network(26, widths=(3,), outputs=2, alphas=(1.0,))
        case "ladder":
            network = make_network(3, "signed", widths=(2,), outputs=2)
        case "toggle":
            network = load_network(trained_network_path("parity_d2"))
        case _:
            return of_kit(make_network)
    return compile_network(network, technology, calibration)


@pytest.fixture(scope="module")
def schmitt(make_network, technology, calibration):
    return compile_network(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), technology, calibration)


def place_in(text, path):
    """The number of the line where a simulator's name, xnetwork.xcell.m2, is in a netlist, by looking at each line."""
    block, number = "network", 0
    for element in path.split(".")[1:]:
        lines = text.splitlines()
        start = lines.index(next(line for line in lines if line.split()[:2] == [".subckt", block]))
        end = lines.index(f".ends {block}")
        number = next(k for k in range(start, end) if lines[k].split()[:1] == [element])
        whole = lines[number]
        for more in lines[number + 1 : end]:
            if not more.startswith("+ "):
                break
            whole += more[1:]
        block = whole.split()[-1]
    return number + 1


def test_each_transistor_has_its_line(design):
    """Under its three names."""
    text, places = format_netlist(design), places_of(design)
    names = [mos.name for mos in design.assembly.circuit.flatten()]
    assert len(names) > 30
    for name in names:
        place = f"net-{place_in(text, netlist_path(name))}"
        assert places[name] == places[name.removeprefix("network.")] == places[netlist_path(name)] == place, name


def test_cells_pins_and_parameters_have_their_lines(design):
    text, places = format_netlist(design), places_of(design)
    for node in design.graph.memories:
        assert places[node.name] == f"net-{place_in(text, f'xnetwork.xcell_{net(node.name)}')}"
    for pin in design.assembly.bias_pins:
        assert places[pin] == f"net-{place_in(text, f'xnetwork.x{pin}')}"
    for row in map_parameters(design):
        element = row.element.partition(" ")[0]
        path = element if "." in element else f"xnetwork.x{element}"
        assert places.get(row.parameter) == (None if element == "none" else f"net-{place_in(text, path)}")


def test_every_link_of_a_page_leads_somewhere(design):
    page = design_page(design)
    text, lines = format_pages([page]), format_netlist(design).splitlines()
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len({*ids})
    assert {place for place, _ in LINK.findall(text)} <= {*ids}
    for number, line in enumerate(lines, 1):
        (cell,) = re.findall(rf'<tr id="net-{number}"><td>{number}</td><td class="code">(.*?)</td>', text)
        assert unescape(cell) == line
    rows = [CELL.findall(row) for row in re.findall(r"<tr><td>.*?</tr>", text)]
    mapped = [row for row in rows if len(row) == 7 and "mw" in row[1]]
    assert len(mapped) > 5
    for parameter, element, *_ in mapped:
        (place, name), *_ = LINK.findall(element)
        assert lines[int(place.removeprefix("net-")) - 1].split()[0] == name.rpartition(".")[2]
        assert LINK.findall(parameter)[0][0] == place
    devices = [row for row in rows if len(row) == 8]
    assert len(devices) > 10
    for block, name, line, *_ in devices:
        (first,), (place,) = LINK.findall(block), LINK.findall(line)
        assert lines[int(first[0].removeprefix("net-")) - 1].split()[:2] == [".subckt", first[1]]
        assert lines[int(place[0].removeprefix("net-")) - 1].split()[0] == name and place[1] == f"L{place[0][4:]}"


def test_instances_and_subcircuits_name_each_other(design):
    text = format_pages([design_page(design)])
    lines = format_netlist(design).splitlines()
    beside = {
        int(number): [place for place, _ in LINK.findall(cell)]
        for number, cell in re.findall(r'<tr id="net-(\d+)"><td>\d+</td><td class="code">.*?</td><td>(.*?)</td>', text)
    }
    starts = {line.split()[1]: k for k, line in enumerate(lines, 1) if line.startswith(".subckt")}
    uses = {name: [] for name in starts}
    for number, line in enumerate(lines, 1):
        if line.startswith("x"):
            whole = line
            for more in lines[number:]:
                if not more.startswith("+ "):
                    break
                whole += more[1:]
            block = whole.split()[-1]
            assert f"net-{starts[block]}" in beside[number]
            uses[block].append(f"net-{number}")
    schematics = {f"cell-{name.replace(' ', '-')}" for name in drawn_schematics(design.graph)}
    for name, start in starts.items():
        assert [one for one in beside[start] if one not in schematics] == uses[name]
        assert uses[name] or name == "network"
    assert all(one in text for one in (f'<figure id="{place}">' for place in schematics))
    assert {*schematics_by_block(design).values()} <= {*drawn_schematics(design.graph)}


def test_a_long_netlist_is_left_out(schmitt, monkeypatch, make_network, technology, calibration):
    monkeypatch.setattr(cross_probing, "MOST_LINES", 100)
    monkeypatch.delattr(cross_probing, "read_netlist")  # which has limits of its own
    design = compile_network(schmitt.network, technology, calibration)
    text, count = format_pages([design_page(design)]), len(format_netlist(design).splitlines())
    assert f"network.sp of cosim compile has {count} lines, more than the 100 that a page shows" in text
    found = LINK.findall(text)
    assert found and {place for place, _ in found} <= {*re.findall(r' id="([^"]+)"', text)}
    assert not any(place.startswith("net-") for place, _ in found)
    assert dict.fromkeys(schmitt.assembly.bias_pins, "cell-bias").items() <= places_of(design).items()


def test_a_number_is_no_name(schmitt, technology, calibration):
    """A transistor `m1` of the network itself is called 1, as are numbers in tables."""
    text = format_netlist(schmitt).replace(
        ".ends network", "m1 one_p one_p vdd vdd generic180_p w=1u l=1u\n.ends network"
    )
    settings = CompilerSettings(netlist=EditedNetlist("own.sp", text))
    places = places_of(compile_network(schmitt.network, technology, calibration, settings))
    assert "network.1" in places and not any(name[0].isdigit() for name in places)


def test_a_flat_circuit_has_no_lines(schmitt):
    """As with the wires of a layout."""
    wire = Capacitor("wire0", "one_p", "0", 1e-15)
    circuit = replace(schmitt.flat, elements=(*schmitt.flat.elements, wire))
    flat = replace(schmitt, assembly=replace(schmitt.assembly, circuit=circuit))
    page = format_pages([design_page(flat)])
    assert lines_of(flat).numbers == {} and "The netlist" not in page
    assert {place for place, _ in LINK.findall(page)} <= {*re.findall(r' id="([^"]+)"', page)}


def test_sensitivity_leads_to_transistors(schmitt):
    names = [mos.name for mos in schmitt.assembly.circuit.flatten()][:4]
    devices = tuple(Sensitivity(name, "cells", "level", 1e-9, 1e-9, 1e-12, 0.25) for name in names)
    found = Sensitivities(
        (0, 1), 1e-9, 1e-12, devices, {"bias_gain_0": 1.0, "unit": 2.0},
        (Decision("layer0.2", 1, 1e-12, 1e-12, 0.1, devices[1:]),),
    )  # fmt: skip
    text, netlist = format_pages([sensitivity_page(schmitt, 0, found, 4)]), format_netlist(schmitt)
    for name in names:
        place = place_in(netlist, netlist_path(name))
        assert f'<td><a href="#net-{place}">{name.removeprefix("network.")}</a></td>' in text
    place = place_in(netlist, netlist_path(names[1]))
    assert f'<a href="#net-{place}">{names[1].removeprefix("network.")}</a> 25 %</td>' in text
    for name, instance in (("layer0.2", "cell_layer0_2"), ("bias_gain_0", "bias_gain_0"), ("unit", "diode_one")):
        place = place_in(netlist, f"xnetwork.x{instance}")
        assert f'<td><a href="#net-{place}">{name}</a></td>' in text
    assert '<td><a href="#cell-9T-cell">cells</a></td>' in text and '<figure id="cell-9T-cell">' in text


def test_power_leads_from_blocks_to_schematics(schmitt, two_samples):
    summary = summarize_power(schmitt, study_power(schmitt, two_samples, None))
    text = format_pages([power_page(schmitt, summary, {})])
    for block, schematic in (("rows", "row"), ("rails", "mirror"), ("cells", "9T-cell"), ("bias", "bias")):
        assert f'<td><a href="#cell-{schematic}">{block}</a></td>' in text


@pytest.fixture
def two_samples():
    from cosim.tasks.testset import TestSet

    x = np.random.default_rng(3).uniform(size=(2, 3, 3))
    return TestSet(x, np.zeros(2, dtype=np.int64), np.full(2, 3), np.arange(2))


@pytest.mark.parametrize("width", [420, 1300])
def test_links_open_what_is_folded_or_filtered(schmitt, browse, tmp_path, width):
    """A click opens the netlist, and shows a line that the filter hides, in the view and in its box."""
    path = tmp_path / "page.html"
    path.write_text(format_pages([design_page(schmitt)]).replace("</body>", f"{PROBE}</body>"))
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe width="{width}" height="900" style="border: 0" src="{quote(path.name)}"></iframe><script>'
        "onload = () => setTimeout(() => document.body.dataset.found = "
        "document.querySelector('iframe').contentDocument.body.dataset.found, 1000)</script>"
    )
    done = browse(
        "--window-size=1400,1000", "--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom",
        frame.as_uri(),
    )  # fmt: skip
    assert ":CONSOLE" not in done.stderr
    (found,) = re.findall(r'data-found="([^"]+)"', done.stdout)
    found = json.loads(unescape(found))
    place = places_of(schmitt)["layer0.weight[0,0]"]
    assert found["folded"] and found["wide"] <= 0
    for step in ("first", "again"):
        assert (found[step]["id"], found[step]["open"], found[step]["hidden"]) == (place, True, False)
        assert found[step]["filter"] == "" and 0 <= found[step]["top"] < found[step]["bottom"] <= 900
