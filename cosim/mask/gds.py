"""GDS of a drawn chip, with klayout's Python package: without timestamps, the same bytes each time."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cosim.base.errors import MissingToolError
from cosim.base.resources import install_command
from cosim.mask.blocks import Box
from cosim.mask.chip import DrawnChip
from cosim.technology.types import CONDUCTORS, DrawingRules


def geometry() -> Any:  # noqa: ANN401 - klayout has no types of its own
    """Return the module klayout.db. Raises MissingToolError where it is not installed."""
    try:
        import klayout.db
    except ImportError:
        raise MissingToolError(
            f"the Python package klayout is missing; install it with: {install_command('layout')}"
        ) from None
    return klayout.db


def label_of(net: str) -> str:
    """Return the name of a net in the layout and in the LVS netlist: "vss" for ground (0 in SPICE), else the net's
    own name."""
    return "vss" if net == "0" else net.replace(".", "_")


def layout_of(chip: DrawnChip, drawing: DrawingRules) -> Any:  # noqa: ANN401 - klayout has no types of its own
    """Return the klayout layout of a drawn chip, with one cell."""
    db = geometry()
    layout = db.Layout()
    layout.dbu = 0.001
    cell = layout.create_cell(chip.name)
    layers = {name: layout.layer(*number) for name, number in drawing.layers.items()}
    for layer, (x1, y1, x2, y2) in chip.shapes:
        cell.shapes(layers[layer]).insert(db.Box(x1, y1, x2, y2))
    for label in chip.labels:
        x1, y1, x2, y2 = label.box
        text = db.Text(label_of(label.net), (x1 + x2) // 2, (y1 + y2) // 2)
        cell.shapes(layers[label.layer]).insert(text)
    return layout


def gds_bytes(layout: Any) -> bytes:  # noqa: ANN401 - klayout has no types of its own
    """Return the GDS file of a klayout layout."""
    options = geometry().SaveLayoutOptions()
    options.format = "GDS2"
    options.gds2_write_timestamps = False
    with TemporaryDirectory() as folder:
        path = Path(folder) / "layout.gds"
        layout.write(str(path), options)
        return path.read_bytes()


_PINS = ("metal2", "metal4")  # whose pins have a layer of labels; names of other nets are on the metal itself


@dataclass(frozen=True)
class ExtractedTransistor:
    """A transistor traced in the layout.

    It holds the model name in the LVS deck, nets of drain, gate, source and bulk, width and length, nm, and area, m2,
    and perimeter, m, of drain and source diffusion. Diffusions that two units share count half for each.
    """

    model: str
    nets: tuple[str, str, str, str]
    w: int
    l: int  # noqa: E741 - the field's own letter
    areas: tuple[float, float]
    rims: tuple[float, float]


@dataclass(frozen=True)
class ExtractedLayout:
    """The content traced in a layout: net -> layer -> boxes, nm, and its unit transistors.

    Layers are CONDUCTORS (poly without gates), `gate` and nwell. A net without a label is named by a number with $.
    """

    boxes: Mapping[str, Mapping[str, tuple[Box, ...]]]
    units: tuple[ExtractedTransistor, ...]


def read_layout(layout: Any, drawing: DrawingRules) -> ExtractedLayout:  # noqa: ANN401 - klayout has no types of its own
    """Trace nets and transistors in the only cell of a klayout layout."""
    db = geometry()
    netlist = db.LayoutToNetlist(db.RecursiveShapeIterator(layout, layout.top_cell(), []))
    netlist.threads = 1
    layers = {name: netlist.make_layer(layout.layer(*number), name) for name, number in drawing.layers.items()}
    _connect(netlist, layers, drawing)
    netlist.extract_netlist()
    circuit = netlist.netlist().circuit_by_name(layout.top_cell().name)
    boxes: dict[str, dict[str, tuple[Box, ...]]] = {}
    for net in circuit.each_net():
        found = {name: _boxes(netlist.shapes_of_net(net, layers[name])) for name in CONDUCTORS[1:]}
        poly = netlist.shapes_of_net(net, layers["poly"])
        found["nwell"] = _boxes(netlist.shapes_of_net(net, layers["nwell"]))
        found |= {"poly": _boxes(poly - layers["comp"]), "gate": _boxes(poly & layers["comp"])}
        boxes[net.expanded_name()] = {name: each for name, each in found.items() if each}
    return ExtractedLayout(boxes, tuple(_unit(device) for device in circuit.each_device()))


def _connect(netlist: Any, layers: Mapping[str, Any], drawing: DrawingRules) -> None:  # noqa: ANN401 - klayout has no types of its own
    db = geometry()
    comp, poly, nwell = layers["comp"], layers["poly"], layers["nwell"]
    nactive, pactive = comp & layers["nplus"], comp & layers["pplus"]
    made = {
        "ngate": (comp & poly) - nwell,
        "pgate": comp & poly & nwell,
        "nsd": nactive - nwell - poly,
        "psd": (pactive & nwell) - poly,
        "ptap": pactive - nwell,
        "ntap": nactive & nwell,
        "bulk": db.Region(),
        "plate_via": layers["via4"] & layers["plate"],
        "free_via": layers["via4"] - layers["plate"],
    }
    for name, region in made.items():
        netlist.register(region, name)
    for polarity in ("n", "p"):
        extractor = db.DeviceExtractorMOS4Transistor(drawing.mos[polarity])
        well = made["bulk"] if polarity == "n" else nwell
        parts = {"SD": made[f"{polarity}sd"], "G": made[f"{polarity}gate"], "P": poly, "W": well}
        netlist.extract_devices(extractor, parts)
    contact, taps = layers["contact"], (made["nsd"], made["psd"], made["ptap"], made["ntap"], poly)
    stack = [contact, *(layers[name] for k in (1, 2, 3) for name in (f"metal{k}", f"via{k}")), layers["metal4"]]
    for one in (*taps, *stack, nwell, made["plate_via"], made["free_via"], layers["metal5"]):
        netlist.connect(one)
    for one in (*taps, layers["metal1"]):
        netlist.connect(contact, one)
    netlist.connect(nwell, made["ntap"])
    for below, above in pairwise(stack[1:]):
        netlist.connect(below, above)
    netlist.connect(layers["metal4"], made["free_via"])
    for via in (made["free_via"], made["plate_via"]):
        netlist.connect(via, layers["metal5"])
    netlist.connect_global(made["ptap"], "vss")
    netlist.connect_global(made["bulk"], "vss")
    for name in _PINS:
        netlist.connect(layers[name], layers[f"{name}_label"])


def _boxes(region: Any) -> tuple[Box, ...]:  # noqa: ANN401 - klayout has no types of its own
    """Return a region as boxes that do not overlap."""
    parts = region.merged().decompose_trapezoids_to_region()
    return tuple(sorted((b.left, b.bottom, b.right, b.top) for b in (one.bbox() for one in parts.each())))


def _unit(device: Any) -> ExtractedTransistor:  # noqa: ANN401 - klayout has no types of its own
    def net(name: str) -> str:
        found = device.net_for_terminal(name)
        return found.expanded_name() if found else ""

    def value(name: str) -> float:
        return device.parameter(name)

    nets = net("D"), net("G"), net("S"), net("B")
    w, l = round(value("W") * 1000), round(value("L") * 1000)  # noqa: E741 - a length
    areas, rims = (value("AD") * 1e-12, value("AS") * 1e-12), (value("PD") * 1e-6, value("PS") * 1e-6)
    return ExtractedTransistor(device.device_class().name, nets, w, l, areas, rims)
