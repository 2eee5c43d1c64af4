"""Small cells drawn, traced and held against their netlist; faults that must be seen. Needs klayout.

The decks of the foundry run on them where its kit and the klayout application are installed.
"""

import re
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import NamedTemporaryFile

import pytest

from cosim.base.errors import InputError, MissingToolError, SimulationError
from cosim.cells.dpi import dpi
from cosim.cells.mirror import signal_rails
from cosim.cells.quantiser import quantiser, quantiser_blocks
from cosim.cells.rectifier import candidate_diode
from cosim.cells.schmitt import schmitt
from cosim.circuit.elements import GROUND, Circuit, Instance, Mos
from cosim.compiler.passes import compile_network
from cosim.mask.checks import Checker, find_application, find_checker, read_violations, run_drc, run_lvs
from cosim.mask.chip import draw_chip, drawing_of
from cosim.mask.extract import by_net, extract
from cosim.mask.gds import _connect, gds_bytes, geometry, label_of, layout_of, read_layout
from cosim.mask.produce import format_schematic, make_layout
from cosim.mask.record import check_units
from cosim.technology.catalog import load_technology

pytest.importorskip("klayout.db")


def integrator(technology):
    """Of a ladder, with a well of its own; without its capacitor, which is no unit."""
    block = dpi(technology, 8, 2, 0.7e-12)
    return replace(block, elements=tuple(one for one in block.elements if isinstance(one, Mos)))


CELLS = {
    "mirror": lambda technology: signal_rails(technology, 8, 1.003),
    "schmitt": lambda technology: schmitt(technology, 8),
    "candidate": candidate_diode,
    "integrator": integrator,
}


def flat(block):
    return Circuit(block.name, (block,), (Instance("cell", block.ports, block.name),)).flat(), block.ports


def trace(circuit, ports, technology):
    chip = draw_chip(circuit, ports, technology, "cell")
    return chip, read_layout(layout_of(chip, drawing_of(technology)), drawing_of(technology))


def netlist(circuit, ports, technology, dummies=()):
    whole = replace(circuit, elements=(*circuit.elements, *dummies))
    return format_schematic(whole, (), ports, "cell", drawing_of(technology))


@pytest.mark.parametrize("name", CELLS)
def test_every_unit_is_that_of_the_netlist(name, gf180mcu):
    circuit, ports = flat(CELLS[name](gf180mcu))
    chip, drawn = trace(circuit, ports, gf180mcu)
    checked = check_units(drawn, netlist(circuit, ports, gf180mcu, chip.dummies))
    assert checked.passed, checked.summary
    assert len(drawn.units) == sum(mos.m for mos in (*circuit.elements, *chip.dummies))
    assert not [net for net in drawn.boxes if "$" in net]  # no wire that nobody named


def test_the_netlist_with_subcircuits_is_that_of_the_units(gf180mcu, gf180mcu_calibration, make_network, tmp_path):
    """klayout reads both, flat and with parallel devices combined; a width that differs in one cell is found."""
    db = pytest.importorskip("klayout.db")
    design = compile_network(make_network(26, widths=(3,), outputs=2, alphas=(1.0,)), gf180mcu, gf180mcu_calibration)
    make_layout(design, tmp_path, supply=1e-7)

    def read(text):
        (tmp_path / "read.sp").write_text(text)
        found = db.Netlist()
        found.read(str(tmp_path / "read.sp"), db.NetlistSpiceReader())
        found.flatten()
        found.combine_devices()
        return found

    units, nested = ((tmp_path / name).read_text() for name in ("lvs.sp", "hierarchy.sp"))
    assert nested.count(".subckt") > 5 and nested.count("m=") < units.count("\nm")
    assert db.NetlistComparer().compare(read(units), read(nested))
    wider = re.sub(r"(\.subckt schmitt_clocked(?:.*\n)*?m2 .*) w=\S+", r"\1 w=7u", nested, count=1)
    assert wider != nested and not db.NetlistComparer().compare(read(units), read(wider))


def test_two_switches_on_one_source_are_drawn(gf180mcu):
    """The quantiser's driver has them; its own capacitor is no unit."""
    block = quantiser()
    blocks = (block, *quantiser_blocks(gf180mcu))
    circuit = Circuit(block.name, blocks, (Instance("cell", block.ports, block.name),)).flat()
    circuit = replace(circuit, elements=tuple(one for one in circuit.elements if isinstance(one, Mos)))
    ports = [port for port in block.ports if "clk" not in port and "pulse" not in port]  # as pins they need more room
    chip, drawn = trace(circuit, ports, gf180mcu)
    assert [len(one.over) for one in chip.blocks if one.forked] == [2]
    checked = check_units(drawn, netlist(circuit, ports, gf180mcu, chip.dummies))
    assert checked.passed, checked.summary


def test_poly_of_a_gate_line_is_one_where_gates_end_short(gf180mcu):
    """0.13 um beyond a diffusion, as in sky130: less than half of what lies between two blocks."""
    rules = {**gf180mcu.drawing.rules, "poly_end": 130}
    short = replace(gf180mcu, drawing=replace(gf180mcu.drawing, rules=rules))
    circuit, ports = flat(CELLS["schmitt"](short))
    chip, drawn = trace(circuit, ports, short)
    assert check_units(drawn, netlist(circuit, ports, short, chip.dummies)).passed


def swapped(mos):
    return replace(mos, gate=mos.drain if mos.drain != mos.gate else mos.bulk)


FAULTS = {
    "swapped net": swapped,
    "wrong width": lambda mos: replace(mos, w=mos.w + 1e-7),
    "missing unit": lambda mos: replace(mos, m=mos.m - 1) if mos.m > 1 else None,
}


def with_fault(circuit, fault):
    """The circuit with its last transistor changed, or without it."""
    *others, last = circuit.elements
    wrong = fault(last)
    return replace(circuit, elements=(*others, *((wrong,) if wrong else ())))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", CELLS)
def test_faults_are_seen(name, fault, gf180mcu):
    circuit, ports = flat(CELLS[name](gf180mcu))
    chip, drawn = trace(with_fault(circuit, FAULTS[fault]), ports, gf180mcu)
    assert not check_units(drawn, netlist(circuit, ports, gf180mcu, chip.dummies)).passed


def test_the_same_bytes(gf180mcu):
    circuit, ports = flat(CELLS["schmitt"](gf180mcu))
    one, other = (
        gds_bytes(layout_of(draw_chip(circuit, ports, gf180mcu, "cell"), drawing_of(gf180mcu))) for _ in range(2)
    )
    assert one == other


def test_a_longer_wire_has_more(gf180mcu):
    """The gate line of the mirror's input has its poly over ground and more; no capacitance is negative."""
    circuit, ports = flat(CELLS["mirror"](gf180mcu))
    _, drawn = trace(circuit, ports, gf180mcu)
    found = by_net([one for one in extract(drawn, drawing_of(gf180mcu)) if one.kind != "junction"])
    assert all(farad > 0 for kinds in found.values() for farad in kinds.values())
    # 8 units 5 um long at 0.88 um: fields of 0.28 um between gates are 7 x 0.28 x 5 um2 of poly at 110 aF/um2, 1.1 fF
    assert sum(found["p"].values()) > 1.1e-15


def test_only_pins_are_labelled_as_pins(gf180mcu):
    """Every net has its name on its metal; the layers that a foundry's tools take pins from have those of ports."""
    circuit, ports = flat(CELLS["schmitt"](gf180mcu))
    chip, drawn = trace(circuit, ports, gf180mcu)
    pins = {label.net for label in chip.labels if label.layer.endswith("_label")}
    inner = {label.net for label in chip.labels if label.layer in ("metal1", "metal3")}
    assert pins == {pin.net for pin in chip.pins} == {*ports, GROUND}
    assert inner and not pins & inner and len(chip.labels) == len(pins) + len(inner)
    assert not [net for net in drawn.boxes if "$" in net]


def match(circuit, ports, technology, drawn):
    """Whether klayout's comparer, which the foundry's LVS calls, finds the netlist of `circuit` in the drawing of
    `drawn`, where pins have names and no other net has one."""
    import klayout.db as db

    drawing = drawing_of(technology)
    chip = draw_chip(drawn, ports, technology, "cell")
    layout = layout_of(chip, drawing)
    traced = db.LayoutToNetlist(db.RecursiveShapeIterator(layout, layout.top_cell(), []))
    layers = {
        name: (traced.make_layer if name.endswith("_label") else traced.make_polygon_layer)(layout.layer(*number), name)
        for name, number in drawing.layers.items()
    }
    _connect(traced, layers, drawing)
    traced.extract_netlist()
    found = traced.netlist()
    assert {net.name for net in found.circuit_by_name("cell").each_net() if net.name} == {
        label_of(pin.net) for pin in chip.pins
    }
    wanted = db.Netlist()
    with NamedTemporaryFile("w", suffix=".sp") as file:
        file.write(netlist(circuit, ports, technology, chip.dummies))
        file.flush()
        wanted.read(file.name, db.NetlistSpiceReader())
    for one in (found, wanted):
        one.make_top_level_pins()
        one.combine_devices()
        one.purge()
    return db.NetlistComparer().compare(found, wanted)


@pytest.mark.parametrize("name", CELLS)
def test_netlists_match_without_names_of_inner_nets(name, gf180mcu):
    circuit, ports = flat(CELLS[name](gf180mcu))
    assert match(circuit, ports, gf180mcu, circuit)
    assert not match(circuit, ports, gf180mcu, with_fault(circuit, swapped))


def test_a_technology_without_rules_is_refused():
    with pytest.raises(InputError, match=r"generic180 has no table \[layout\]"):
        drawing_of(load_technology("generic180"))


def test_a_kit_without_decks_is_named(gf180mcu, monkeypatch):
    monkeypatch.setattr("cosim.mask.checks.find_application", lambda: "klayout")
    monkeypatch.setattr("cosim.mask.checks.shutil.which", lambda name: name)
    with pytest.raises(MissingToolError, match=r"has no gf180mcuD/libs\.tech/klayout beside it"):
        find_checker(gf180mcu, drawing_of(gf180mcu))


def test_reports_are_read_with_coordinates(tmp_path):
    report = tmp_path / "main.lyrdb"
    report.write_text(
        "<report-database><categories><category><name>M2.2a</name><description>too near</description></category>"
        "</categories><items><item><category>'M2.2a'</category><values><value>edge-pair: (1,2;1,4)/(3,4;3,2)</value>"
        "</values></item></items></report-database>"
    )
    (found,) = read_violations(report)
    assert (found.rule, found.text, found.x, found.y) == ("M2.2a", "too near", 2.0, 3.0)


@pytest.fixture(scope="module")
def kit():
    try:
        technology = load_technology("gf180mcu")
        return technology, find_checker(technology, drawing_of(technology))
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mirror", "schmitt", "integrator"])
def test_a_cell_passes_the_kits_rules_and_its_lvs_sees_faults(name, kit, tmp_path):
    """Each fault is drawn, and held against the netlist without it."""
    technology, checker = kit
    circuit, ports = flat(CELLS[name](technology))
    drawing = drawing_of(technology)

    def match(drawn):
        chip = draw_chip(drawn, ports, technology, "cell")
        (tmp_path / "cell.gds").write_bytes(gds_bytes(layout_of(chip, drawing)))
        (tmp_path / "cell.sp").write_text(netlist(circuit, ports, technology, chip.dummies))
        return run_lvs(checker, tmp_path / "cell.gds", tmp_path / "cell.sp", tmp_path).passed

    assert match(circuit)
    found = run_drc(checker, tmp_path / "cell.gds", tmp_path, "main")
    assert found.passed, found.summary
    seen = {fault: not match(with_fault(circuit, wrong)) for fault, wrong in FAULTS.items()}
    assert all(seen.values()), seen


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "klayout.db", None)
    with pytest.raises(MissingToolError, match=r"package klayout is missing; .*pip install .*\[layout\]'"):
        geometry()


def test_a_missing_application_is_named(monkeypatch):
    monkeypatch.setattr("cosim.mask.checks.shutil.which", lambda name: None)
    with pytest.raises(MissingToolError, match=r"application klayout is missing; .*apt-get install klayout"):
        find_application()


def test_an_old_application_is_named(monkeypatch):
    monkeypatch.setattr("cosim.mask.checks.shutil.which", lambda name: name)
    monkeypatch.setattr(
        "cosim.mask.checks.subprocess.run", lambda *_, **__: CompletedProcess([], 0, "KLayout 0.27.9\n", "")
    )
    with pytest.raises(MissingToolError, match=r"must be 0\.28\.4 or newer, not KLayout 0\.27\.9"):
        find_application()


def test_decks_get_absolute_paths(gf180mcu, monkeypatch, tmp_path):
    """klayout takes relative ones from the deck's folder, and would write its report elsewhere than it is read."""
    monkeypatch.chdir(tmp_path)
    folder, rules = Path("it's a layout"), Path("kit", "drc", "rule_decks")
    folder.mkdir()
    rules.mkdir(parents=True)
    for name in ("layers_def.drc", "antenna.drc"):
        (rules / name).touch()
    words = []

    def run(command, **_):
        words.extend(command)
        options = dict(word.split("=", 1) for word in command if "=" in word)
        Path(options["report"]).write_text("<report-database/>")
        return CompletedProcess(command, 0, "Congratulations! Netlists match", "")

    monkeypatch.setattr("cosim.mask.checks.subprocess.run", run)
    checker = Checker("klayout", Path("kit"), drawing_of(gf180mcu))
    assert run_drc(checker, folder / "layout.gds", folder, "antenna").passed
    assert run_lvs(checker, folder / "layout.gds", folder / "lvs.sp", folder).passed
    named = [word.partition("=")[2] or word for word in words if "/" in word]
    assert named and all(Path(one).is_absolute() for one in named)
    assert (folder / "antenna.lyrdb").exists()


def test_a_deck_that_fails_is_named_with_its_log(gf180mcu, monkeypatch, tmp_path):
    monkeypatch.setattr(
        "cosim.mask.checks.subprocess.run", lambda *_, **__: CompletedProcess([], 1, "", "no such layer\n")
    )
    checker = Checker("klayout", tmp_path, drawing_of(gf180mcu))
    with pytest.raises(SimulationError, match=r"klayout failed on gf180mcu\.lvs: no such layer; the log is .*lvs\.log"):
        run_lvs(checker, tmp_path / "layout.gds", tmp_path / "lvs.sp", tmp_path)
