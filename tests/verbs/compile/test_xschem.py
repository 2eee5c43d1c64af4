"""Schematics for xschem: their files are sound, and the netlist that xschem makes of them is the compiled circuit."""

import math
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import combinations, pairwise

import pytest

from cosim.base.errors import MissingToolError
from cosim.base.resources import trained_network_path
from cosim.circuit.dialects.ngspice import NGSPICE
from cosim.circuit.elements import GROUND, Capacitor, Circuit, Instance, Mos, Resistor, Source, Subcircuit
from cosim.circuit.spice import read_netlist
from cosim.compiler.edited import EditedNetlist
from cosim.compiler.passes import compile_network
from cosim.compiler.settings import CompilerSettings
from cosim.exchange.checkpoint import load_network
from cosim.technology.catalog import load_technology
from cosim.verbs.common import Compiling, load_design
from cosim.verbs.compile.outputs import format_netlist
from cosim.verbs.compile.xschem.directions import port_directions
from cosim.verbs.compile.xschem.files import FOLDER, format_xschem, write_xschem
from cosim.verbs.compile.xschem.groups import arrange, find_groups
from cosim.verbs.compile.xschem.sheet import GRID, escape

XSCHEM = shutil.which("xschem")
needs_xschem = pytest.mark.skipif(XSCHEM is None, reason="xschem is not installed")
SHIPPED = ("digits_d4", "digits_native_d8", "flip_flop_d2")
COMPONENT = re.compile(r"^C \{(.+?)\} (\S+) (\S+) (\d) (\d) \{(.*)\}$", re.MULTILINE)
PIN = re.compile(r"^B 5 (\S+) (\S+) (\S+) (\S+) \{name=(\S+) ", re.MULTILINE)
WIRE = re.compile(r"^N (\S+) (\S+) (\S+) (\S+) \{lab=(\S+)\}$", re.MULTILINE)
LINE = re.compile(r"^L 4 (\S+) (\S+) (\S+) (\S+) \{\}$", re.MULTILINE)


@pytest.fixture(scope="module", params=SHIPPED)
def design(request, technology, calibration):
    return compile_network(load_network(trained_network_path(request.param)), technology, calibration)


@pytest.fixture(scope="module")
def files(design):
    return format_xschem(design.assembly.circuit, design.technology, design.assembly.bias_pins)


def components(text):
    """(symbol, x, y, turns, flip, fields) of every component of a schematic."""
    for name, x, y, turns, flip, fields in COMPONENT.findall(text):
        yield name, int(x), int(y), int(turns), int(flip), dict(re.findall(r'(\w+)=("[^"]*"|\S+)', fields))


def moved(at, turns, flip, x, y):
    """The place of a symbol's point on the sheet; components are turned by 0 or 180 degrees."""
    sign = -1 if turns == 2 else 1
    return at[0] + sign * (-x if flip else x), at[1] + sign * y


def schematics(files):
    return {name: text for name, text in files.items() if name.endswith(".sch")}


def test_equal_calls_give_equal_files(design, files):
    again = format_xschem(design.assembly.circuit, design.technology, design.assembly.bias_pins)
    assert list(again.items()) == list(files.items())


def test_each_subcircuit_has_a_schematic_and_a_symbol_with_its_ports_in_order(design, files):
    for block in design.assembly.circuit.subcircuits:
        symbol, sheet = files[f"{block.name}.sym"], files[f"{block.name}.sch"]
        assert tuple(pin[-1] for pin in PIN.findall(symbol)) == block.ports
        ports = [fields["lab"] for name, *_, fields in components(sheet) if re.search(r"/(i|o|io)pin\.sym", name)]
        assert tuple(ports) == block.ports


def test_every_symbol_exists_and_everything_is_on_the_grid(files):
    for name, text in schematics(files).items():
        for symbol, x, y, turns, _, _ in components(text):
            assert symbol in files, f"{name}: {symbol}"
            assert x % GRID == 0 and y % GRID == 0 and turns in (0, 2), f"{name}: {symbol} at {x} {y}"
        for *ends, _ in WIRE.findall(text):
            x1, y1, x2, y2 = map(int, ends)
            assert not any(end % GRID for end in (x1, y1, x2, y2)) and (x1 == x2 or y1 == y2), name
    for name, text in files.items():
        for x1, y1, x2, y2, pin in PIN.findall(text):
            middle = (float(x1) + float(x2)) / 2, (float(y1) + float(y2)) / 2
            assert not any(one % GRID for one in middle), f"{name}: {pin}"


def test_no_two_components_overlap(files):
    for name, text in schematics(files).items():
        boxes = []
        for symbol, x, y, turns, flip, fields in components(text):
            lines = [tuple(map(float, line)) for line in LINE.findall(files[symbol])]
            if "lab" in fields or not lines:
                continue
            ends = [moved((x, y), turns, flip, *end) for a, b, c, d in lines for end in ((a, b), (c, d))]
            xs, ys = zip(*ends, strict=True)
            boxes.append((fields["name"], min(xs), min(ys), max(xs), max(ys)))
        for (one, *a), (other, *b) in combinations(boxes, 2):
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], f"{name}: {one} and {other}"


def nets_of(text, files):
    """Each component's pins by name -> net, where wires connect as in xschem: at their ends, not where they cross."""
    pins = []  # (place, component, pin, name that it gives the net)
    for symbol, x, y, turns, flip, fields in components(text):
        for x1, y1, x2, y2, pin in PIN.findall(files[symbol]):
            place = moved((x, y), turns, flip, (float(x1) + float(x2)) / 2, (float(y1) + float(y2)) / 2)
            pins.append((place, fields["name"], pin, fields.get("lab")))
    wires = [tuple(map(int, ends)) for *ends, _ in WIRE.findall(text)]
    parent = {}

    def root(one):
        while parent.setdefault(one, one) != one:
            one = parent[one]
        return one

    def on(wire, place):
        return wire[0] <= place[0] <= wire[2] and wire[1] <= place[1] <= wire[3]

    for k, wire in enumerate(wires):
        for other, (x1, y1, x2, y2) in enumerate(wires):
            if on(wire, (x1, y1)) or on(wire, (x2, y2)):
                parent[root(other)] = root(k)
        for place, *_ in pins:
            if on(wire, place):
                parent[root(place)] = root(k)
    names = {}
    for place, _, _, lab in pins:
        if lab is not None:
            assert names.setdefault(root(place), lab) == lab, f"{names[root(place)]} and {lab} are connected at {place}"
    return {(component, pin): names.get(root(place)) for place, component, pin, lab in pins if lab is None}


def test_wires_and_labels_connect_what_the_circuit_connects(design, files):
    ports_of = {block.name: block.ports for block in design.assembly.circuit.subcircuits}
    for block in design.assembly.circuit.subcircuits:
        found = nets_of(files[f"{block.name}.sch"], files)
        wanted = {}
        for element in block.elements:
            match element:
                case Mos(name, drain, gate, source, bulk):
                    ends = zip("dgsb", (drain, gate, source, bulk), strict=True)
                    wanted |= {(f"m{name}", pin): net for pin, net in ends}
                case Instance(name, nets, subcircuit):
                    ports = ports_of[subcircuit]
                    wanted |= {(f"x{name}", port): net for port, net in zip(ports, nets, strict=True)}
                case Capacitor(name, a, b):
                    wanted |= {(f"c{name}", "p"): a, (f"c{name}", "m"): b}
        assert found == wanted, block.name


def test_the_9t_cell_reads_from_left_to_right(technology, calibration):
    design = compile_network(load_network(trained_network_path("digits_d4")), technology, calibration)
    circuit = design.assembly.circuit
    sheet = format_xschem(circuit, technology, design.assembly.bias_pins)["schmitt_clocked.sch"]
    at = {fields["name"]: (x, y) for _, x, y, _, _, fields in components(sheet)}
    order = ["msn", "m1", "m9", "mdn", "m7", "m4"]  # sample, compare, feedback, latch, width, level
    assert [at[name][0] for name in order] == sorted(at[name][0] for name in order)
    for upper, lower in (("m1", "m2"), ("m7", "m6"), ("m6", "m8"), ("m4", "m3"), ("m3", "m5"), ("msp", "msn")):
        assert at[upper][0] == at[lower][0] and at[upper][1] < at[lower][1]
    assert {at[name][1] for name in ("m1", "m9", "m7", "m4", "mreset")} == {at["m1"][1]}, "a row below vdd"
    assert {at[name][1] for name in ("m2", "m8", "m5")} == {at["m2"][1]}, "a row above ground"


def test_weights_say_where_they_come_from_and_pins_their_current(technology, calibration):
    design = compile_network(load_network(trained_network_path("digits_d4")), technology, calibration)
    files = format_xschem(design.assembly.circuit, technology, {"bias_gain_0": 2.5e-9})
    assert all(f"T {{{text}}}" in files["row_layer1_0.sch"] for text in ("layer1.weight[0,1]", "target -0.125"))
    assert "T {2.5 nA}" in files["network.sch"] and files["network.sch"].count("A} ") == 1


def test_inputs_layers_and_readout_are_columns_and_bias_pins_are_below(technology, calibration):
    design = compile_network(load_network(trained_network_path("digits_d4")), technology, calibration)
    sheet = format_xschem(design.assembly.circuit, technology, {})["network.sch"]
    at = {fields["name"]: (x, y) for _, x, y, _, _, fields in components(sheet)}
    columns = [
        [x for name, (x, _) in at.items() if re.search(pattern, name)]
        for pattern in (r"^x.*_in_\d|^x.*_(one|zero)$", "^x.*_layer1_", "^x.*_layer2_", "^x.*_readout_")
    ]
    assert all(max(left) < min(right) for left, right in pairwise(columns))
    lowest = max(y for name, (_, y) in at.items() if name.startswith("xrow"))
    assert all(y > lowest for name, (_, y) in at.items() if name.startswith("xbias_"))
    assert len({at[f"{kind}_layer1_2"][1] for kind in ("xrow", "xcell", "xrails")}) == 1


def test_ports_have_directions(design):
    directions = port_directions(design.assembly.circuit)
    assert directions["candidate_diode"] == {"node": "in", "vdd": "inout"}
    assert directions["pedestal_sink"] == {"out": "out", "line": "in"}
    if (cell := directions.get("schmitt_clocked")) is not None:
        assert [port for port in cell if cell[port] == "out"] == ["out"] and cell["cand"] == "in"


def test_transistors_that_loop_and_elements_of_two_nets():
    """Stacks end although currents run in a circle, and every kind of element gets a group of its own."""
    ring = [Mos(str(k), f"n{(k + 1) % 3}", "g", f"n{k}", GROUND, "n", 1e-6, 1e-6) for k in range(3)]
    others = (Resistor("r", "n0", "vdd", 1e3), Source("s", "i", "vdd", "n1", 1e-9), Capacitor("c", GROUND, "n2", 1e-15))
    block = Subcircuit("ring", ("g", "vdd"), (*ring, *others))
    groups = arrange(find_groups(block, {GROUND, "vdd"}), {"g": "in", "vdd": "inout"})
    assert sorted(one.letter + one.name for group in groups for one in group.elements) == sorted(
        one.letter + one.name for one in block.elements
    )


def test_properties_are_escaped():
    assert escape("{a} \\ [0,1]") == "\\{a\\} \\\\ [0,1]"


def test_the_option_writes_a_folder(cosim_main, tiny, tmp_path):
    code, out, _ = cosim_main("compile", tiny / "net.npz", "--to", "xschem", "-o", tmp_path / "out")
    assert code == 0 and "xschem/network.sch" in " ".join(out.split())
    names = {path.name for path in (tmp_path / "out" / FOLDER).iterdir()}
    assert {"xschemrc", "network.sch", "network.sym", "top.sch", "parts"} <= names
    assert (tmp_path / "out" / "network.sp").exists()
    assert all(str(tmp_path) not in path.read_text() for path in (tmp_path / "out" / FOLDER).glob("*.*"))


def test_a_backbone_is_refused(cosim_main, tmp_path):
    network = trained_network_path("backbone_pixels_d16")
    code, _, err = cosim_main("compile", network, "--to", "xschem", "-o", tmp_path / "out")
    assert code == 2 and "--to xschem is for a network that compiles whole; leave it out for a backbone" in err


def run_xschem(folder, name="top"):
    """The SPICE netlist that xschem makes of a schematic."""
    asked = [XSCHEM, "-x", "-q", "-r", "-s", "-n", f"{name}.sch"]
    done = subprocess.run(asked, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "simulation" / f"{name}.spice").read_text()


def flat_elements(circuit, technology):
    """Every element of a flat circuit, with its name, its nets and what it is, sizes to 11 digits.

    A netlist has 12 digits of each number, so a size that was rounded there differs in the last of them; in 11 it could
    do so only next to a boundary of rounding, which no size on a layout grid of 5 nm is.
    """
    found = []
    for one in circuit.flat().elements:
        match one:
            case Mos(name, drain, gate, source, bulk, polarity, w, l, m):
                found.append((name, (drain, gate, source, bulk), polarity, f"{w:.10e}", f"{l:.10e}", m))
            case Capacitor(name, a, b, value) | Resistor(name, a, b, value):
                found.append((name, (a, b), one.letter, f"{value:.10e}"))
            case _:
                raise AssertionError(one)
    return sorted(found)


def check_equal(design, folder, dialect=NGSPICE):
    write_xschem(design, folder, dialect)
    text = run_xschem(folder / FOLDER)
    circuit = read_netlist(text, "top.spice", design.technology).circuit
    ours = flat_elements(design.assembly.circuit, design.technology)
    assert flat_elements(circuit, design.technology) == ours and len(ours) > 200
    return text


@needs_xschem
def test_xschem_makes_the_compiled_circuit(design, tmp_path):
    check_equal(design, tmp_path)


@needs_xschem
@pytest.mark.parametrize("models", ["cards", "foundry"])
@pytest.mark.parametrize("kit", ["gf180mcu", "sky130"])
def test_xschem_makes_the_circuit_of_a_kit(kit, models, tmp_path):
    """Self-cascodes, diffusions, and devices of the foundry in the unit of its library."""
    try:
        load_technology(kit)
    except MissingToolError as error:
        pytest.skip(str(error))
    name = "speech_yes_d16" if kit == "gf180mcu" else "digits_d4"
    design, _ = load_design(trained_network_path(name), Compiling(technology=kit))
    dialect = NGSPICE if models == "cards" else replace(NGSPICE, language=replace(NGSPICE.language, foundry=True))
    text = check_equal(design, tmp_path, dialect)
    assert ("ad=" in text) == bool(design.technology.library.diffusion)


@needs_xschem
def test_xschem_makes_a_chip_with_all_its_blocks(tmp_path):
    compiling = Compiling(around="inputs,decision,clock,bias")
    design, _ = load_design(trained_network_path("digits_d4"), compiling)
    check_equal(design, tmp_path)


@needs_xschem
def test_what_is_edited_in_xschem_comes_back_as_an_edited_netlist(technology, calibration, tmp_path):
    """A designer makes M5 of the cell longer; xschem's netlist of the top is what --netlist takes."""
    network = load_network(trained_network_path("digits_d4"))
    write_xschem(compile_network(network, technology, calibration), tmp_path, NGSPICE)
    cell = tmp_path / FOLDER / "schmitt_clocked.sch"

    def compiled():
        edited = EditedNetlist("top.spice", run_xschem(tmp_path / FOLDER))
        return compile_network(network, technology, calibration, CompilerSettings(netlist=edited), "net.pt")

    assert compiled().edits == ()
    cell.write_text(re.sub(r"(name=m5 model=\S+ w=5u l=)5u", r"\g<1>6u", cell.read_text()))
    (edit,) = compiled().edits
    assert (edit.block, edit.element, edit.what) == ("schmitt_clocked", "m5", "size")


@needs_xschem
def test_an_edited_netlist_is_drawn_as_edited(technology, calibration, tmp_path):
    network = load_network(trained_network_path("digits_d4"))
    text = format_netlist(compile_network(network, technology, calibration))
    text = text.replace(".ends schmitt_clocked", "rbleed hold vdd 1e9\n.ends schmitt_clocked")
    own = "rown layer1_0_cand vdd 1e9\nm1 one_p one_p vdd vdd generic180_p w=1u l=1u"
    text = text.replace(".ends network", f"{own}\n.ends network")
    settings = CompilerSettings(netlist=EditedNetlist("own.sp", text))
    design = compile_network(network, technology, calibration, settings, "net.pt")
    check_equal(design, tmp_path)
    resistors = [one for one in design.assembly.circuit.flat().elements if isinstance(one, Resistor)]
    assert len(resistors) == 9 and math.isclose(resistors[0].value, 1e9)


@pytest.mark.parametrize("names", [("1", "2"), ("2", "1")])
@pytest.mark.parametrize("polarity", ["n", "p"])
def test_antiparallel_transistors_are_drawn(technology, names, polarity):
    """A pseudo-resistor: neither stands on the other, whatever the order in the netlist."""
    first, second = names
    pair = {"1": ("a", "b"), "2": ("b", "a")}
    elements = tuple(
        Mos(name, *pair[name][:1], "g", *pair[name][1:], "vdd", polarity, 1e-6, 1e-6) for name in (first, second)
    )
    chain = tuple(Mos(f"s{k}", f"c{k}", "g", f"c{k + 1}", "0", "n", 1e-6, 1e-6) for k in range(300))
    circuit = Circuit(
        "own",
        (Subcircuit("pair", ("a", "b", "g", "vdd"), elements), Subcircuit("chain", ("c0", "g", "vdd"), chain)),
        (Instance("one", ("a", "b", "g", "vdd"), "pair"), Instance("two", ("a", "g", "vdd"), "chain")),
    )
    files = format_xschem(circuit, technology, {})
    assert files["pair.sch"].count("name=m") == 2 and files["chain.sch"].count("name=m") == 300


def test_a_subcircuit_called_top_keeps_its_schematic(technology):
    inner = Subcircuit("top", ("a", "vdd"), (Mos("1", "a", "a", "vdd", "vdd", "p", 1e-6, 1e-6),))
    circuit = Circuit("own", (inner,), (Instance("one", ("a", "vdd"), "top"),))
    files = format_xschem(circuit, technology, {})
    assert "name=m1" in files["top.sch"] and "name=xone" in files["top_.sch"]
