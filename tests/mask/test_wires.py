"""Wires of a layout in a circuit: they are those of its nets, and the page of a comparison says that they are there."""

import re
from xml.etree import ElementTree

import pytest

from cosim.base.errors import InputError
from cosim.base.resources import trained_network_path
from cosim.base.seal import _seal, seal_text
from cosim.circuit.elements import Capacitor
from cosim.compiler.passes import compile_network
from cosim.exchange.checkpoint import load_network
from cosim.mask.extract import Parasitic
from cosim.mask.produce import cell_pictures
from cosim.mask.record import POSITIONS, WIRES, extracted, format_wires, nets_of, read_positions
from cosim.verbs.compare.page import wire_facts


@pytest.fixture(scope="module")
def design(make_network, gf180mcu, gf180mcu_calibration):
    return compile_network(make_network(3, hidden=2, outputs=2), gf180mcu, gf180mcu_calibration)


def with_these(design, folder, *found):
    (folder / WIRES).write_bytes(format_wires(found, design))
    return extracted(design, folder)


def test_wires_are_added_and_told(design, tmp_path):
    """A wire to the supply counts as one to ground, where nothing moves either."""
    label, net = next((label, net) for label, net in nets_of(design.flat).items() if net not in ("0", "vdd"))
    found = with_these(design, tmp_path, Parasitic("vdd", "vss", "over", 1e-15), Parasitic(label, "vdd", "over", 3e-15))
    added = found.flat.elements[len(design.flat.elements) :]
    assert [(one.a, one.b, one.value) for one in added if isinstance(one, Capacitor)] == [(net, "0", 3e-15)]
    assert wire_facts(found) == (("wires", "1 capacitors of the layout, 3 fF"),)
    assert wire_facts(design) == ()


def test_a_junction_may_be_less_than_the_models_have(design, tmp_path):
    """Transistors share a diffusion: what the models count twice is taken from the net's wires."""
    label, net = next((label, net) for label, net in nets_of(design.flat).items() if net not in ("0", "vdd"))
    wires = Parasitic(label, "vss", "ground", 3e-15), Parasitic(label, "vss", "junction", -1e-15)
    added = with_these(design, tmp_path, *wires).flat.elements[len(design.flat.elements) :]
    assert [(one.a, one.b) for one in added] == [(net, "0")]
    assert added[0].value == pytest.approx(2e-15)


def test_wires_of_another_circuit_are_refused(design, tmp_path):
    """The network is the same and the circuit another, such as with --cell."""
    with pytest.raises(InputError, match="must be of nets of this circuit, not of elsewhere; draw it again"):
        with_these(design, tmp_path, Parasitic("vss", "elsewhere", "ground", 1e-15))


def test_wires_of_another_network_are_refused(design, tmp_path, make_network, gf180mcu, gf180mcu_calibration):
    other = compile_network(make_network(3, hidden=3, outputs=2), gf180mcu, gf180mcu_calibration)
    (tmp_path / WIRES).write_bytes(format_wires([], other))
    with pytest.raises(InputError, match="its wires must be those of .* not of .*; draw this network again"):
        extracted(design, tmp_path)


def test_a_folder_without_wires_is_refused(design, tmp_path):
    with pytest.raises(InputError, match=r"there is no wires\.csv in it; make it with cosim layout"):
        extracted(design, tmp_path)


def test_places_of_all_transistors_are_asked_for(design, tmp_path):
    head = format_wires([], design).decode().splitlines()[0]
    (tmp_path / POSITIONS).write_bytes(seal_text(f"{head}\ndevice,x_um,y_um\nelsewhere,1,2\n"))
    with pytest.raises(InputError, match=r"positions\.csv: must have the place of \S+ and of \d+ more transistors"):
        read_positions(tmp_path, design)
    with pytest.raises(InputError, match=r"--gradient .*: there is no positions\.csv in it; make it with cosim layout"):
        read_positions(tmp_path / "none", design)


def test_a_picture_of_each_cell(design):
    """Of every block of the network, drawn alone, and not of the network; every path lies in its view."""
    found, left_out = cell_pictures(design)
    assert not left_out
    blocks = {block.name for block in design.assembly.circuit.subcircuits}
    assert blocks - found.keys() == {"network"}
    for name, text in found.items():
        picture = ElementTree.fromstring(text)
        _, _, wide, high = map(float, picture.attrib["viewBox"].split())
        assert picture.attrib["aria-label"] == f"layout of {name}" and len(picture) > 3
        starts = [at for path in picture for at in re.findall(r"M(\S+) (-?[\d.]+)h", path.attrib["d"])]
        assert starts and all(0 <= float(x) <= wide and 0 <= float(y) <= high for x, y in starts)


def test_a_cell_without_room_for_its_wires_has_no_picture(gf180mcu, gf180mcu_calibration):
    """In the one step of a memory of two cells, the sampler is too narrow for a clock beside its net, and is named."""
    design = compile_network(load_network(trained_network_path("parity_d2")), gf180mcu, gf180mcu_calibration)
    found, left_out = cell_pictures(design)
    assert set(left_out) == {"sampler", "comparator"}
    assert left_out["sampler"].startswith("net hold: there is no room for its wire from y = ")
    assert "toggle" in " ".join(found) and not found.keys() & left_out.keys()


def test_a_damaged_table_is_refused(design, tmp_path):
    """One changed byte, a byte that is no UTF-8 and a table without a checksum."""
    whole = format_wires([Parasitic("vdd", "vss", "over", 1e-15)], design)
    changed = whole.replace(b"over", b"ovar"), whole.replace(b"vdd", b"v\xffd"), whole.rpartition(b"# sha256")[0]
    for content in changed:
        (tmp_path / WIRES).write_bytes(content)
        with pytest.raises(InputError, match=r"wires\.csv: damaged, or of a cosim without .*; draw this network again"):
            extracted(design, tmp_path)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("vdd,vss,over", "a row has other columns"),
        ("vdd,vss,over,one", "could not convert string to float"),
        ("vdd,vss,over,nan", "a number is not finite"),
        ("x" * 200_000 + ",vss,over,1e-15", "field larger than field limit"),
    ],
)
def test_rows_under_a_checksum_are_checked(design, tmp_path, row, said):
    head = format_wires([], design).decode().splitlines()[:2]
    (tmp_path / WIRES).write_bytes(seal_text("\n".join([*head, row, ""])))
    with pytest.raises(InputError, match=rf"wires\.csv: must be a table of the columns net, .*{said}.*; draw this"):
        extracted(design, tmp_path)
    (tmp_path / WIRES).write_bytes(seal_text("\n".join([*head, "vdd,vss,over,-1e-15", ""])))
    with pytest.raises(InputError, match=r"wires\.csv: farad must be 0 or more in every row; draw this network again"):
        extracted(design, tmp_path)


def test_text_under_a_checksum_is_utf8(design, tmp_path):
    (tmp_path / WIRES).write_bytes(_seal(b"\xff\n", ("# sha256 ", "\n"), ""))
    with pytest.raises(InputError, match=r"wires\.csv: must be text in UTF-8, but is cut off or something else"):
        extracted(design, tmp_path)
