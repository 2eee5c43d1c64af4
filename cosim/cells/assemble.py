"""Assemble: the sized graph becomes a circuit. The only place that sees both.

Every node of the graph becomes a few instances named after it (dots become underscores): its row of weights, its
rectifier, and for a recurrent unit the clocked 9T cell, the ladder or the toggle. A signal `s` has gate lines `s_p`
and, where a positive weight reads it, `s_n`.
"""

from dataclasses import dataclass

from cosim.cells.bias import STRENGTH, bias_diode, pedestal_sink, strong_diode
from cosim.cells.clocked import LATCH_NODE, clocked_schmitt
from cosim.cells.dpi import dpi_capacitance
from cosim.cells.ladder import ladder, ladder_blocks
from cosim.cells.linear import Term, linear_row
from cosim.cells.mirror import input_diode, signal_rails
from cosim.cells.quantiser import QUANTISER, quantiser, quantiser_blocks
from cosim.cells.rectifier import candidate_diode, relu_diode
from cosim.cells.schmitt import DECISION_NODE
from cosim.cells.toggle import toggle
from cosim.circuit.elements import Circuit, Element, Instance, Subcircuit
from cosim.ir.graph import Sized
from cosim.ir.nodes import (
    UNIT_CURRENT,
    InputCurrent,
    Ladder,
    LadderPins,
    Memory,
    Output,
    Pedestal,
    Rectifier,
    Schmitt,
    SchmittBias,
    Toggle,
    TogglePins,
    UnitCurrent,
)
from cosim.technology.calibration import Calibration
from cosim.technology.types import Technology

NETWORK = "network"
PEDESTAL_STRENGTH = 8  # its rail loads every row and carries little: built so much stronger, it settles in time
_SAME_CURRENT = 1e-15  # A; bias pins closer than this are one pin


@dataclass(frozen=True)
class Assembly:
    """The circuit and what a testbench must drive and may watch.

    bias_pins: pin -> current in ampere into it; input_pins: pins in order of the input index; unit_pin carries i_unit,
    pedestal_pin (None without pedestal) i_pedestal, which rides on every input, too;
    outputs: pins in order of the readout; clocks: (clk, clkb) pins per stage; pulses: stage -> (pulse, pulseb) pins,
        for stages with ladders or toggles
    decisions: memory node -> nets of which as many are high as its state says
    candidates: memory node -> net of its candidate
    weights: (source, target) of an edge -> its transistor, absent for a weight of 0, `a and b` for a beta (two lines)
    cell_bias: memory node -> its bias pins, see `_cell_rows` in cosim.ir.mapping; rails: signals with a gate line n
    preset: nets held at V_DD until time 0: memories that are on before the reset, where a chip's
        cell may have two states even then
    """

    circuit: Circuit
    ports: tuple[str, ...]
    bias_pins: dict[str, float]
    input_pins: tuple[str, ...]
    unit_pin: str
    pedestal_pin: str | None
    outputs: tuple[str, ...]
    clocks: tuple[tuple[str, str], ...]
    pulses: dict[int, tuple[str, str]]
    decisions: dict[str, tuple[str, ...]]
    candidates: dict[str, str]
    weights: dict[tuple[str, str], str]
    cell_bias: dict[str, tuple[str, ...]]
    rails: frozenset[str]
    preset: tuple[str, ...] = ()

    @property
    def transistors(self) -> int:
        """Transistors as drawn in the netlist; one of m units counts once."""
        return sum(1 for _ in self.circuit.flatten())


def net(name: str) -> str:
    """A node's name as a net stem: `layer0.3` -> `layer0_3`."""
    return name.replace(".", "_")


class _Builder:
    """Collects elements of the network's subcircuit; blocks are deduplicated by name."""

    def __init__(self, graph: Sized, technology: Technology, calibration: Calibration, tau: float) -> None:
        self.graph, self.technology, self.calibration, self.tau = graph, technology, calibration, tau
        self.units = calibration.units
        self.blocks: dict[str, Subcircuit] = {}
        self.elements: list[Element] = []
        self.bias_lines: dict[tuple[str, int], str] = {}
        self.bias_pins: dict[str, float] = {}
        self.weights: dict[tuple[str, str], str] = {}
        self.cell_bias: dict[str, tuple[str, ...]] = {}
        self.decisions: dict[str, tuple[str, ...]] = {}
        self.rails: set[str] = set()

    def add(self, block: Subcircuit, name: str, nets: tuple[str, ...], origin: str = "") -> None:
        self.blocks.setdefault(block.name, block)
        self.elements.append(Instance(name, nets, block.name, origin))

    def add_row(self, name: str, node_net: str) -> None:
        """The weights that drive a node, as a linear row that loads `node_net`."""
        terms, instance = [], f"row_{net(name)}"
        for index, (source, weight) in enumerate(self.graph.into(name)):
            mirror = self.graph.mirrors[source, name]
            text = f"{weight.origin} target {weight.target:.6g} realised {mirror.realised:.6g}"
            terms.append(Term(net(source), mirror.count, text))
            if mirror.count:
                self.weights[source, name] = f"x{NETWORK}.x{instance}.mw{index}"
        row = linear_row(instance, terms, self.technology, f"linear row of {name}")
        if row.elements:
            self.add(row, instance, (node_net, "vdd", *row.ports[2:]))

    def add_rails(self, name: str) -> None:
        """Gate line n of a signal, if any positive weight reads it."""
        graph = self.graph
        if any(graph.mirrors[edge].count > 0 and graph.weights[edge].role == "drive" for edge in graph.out_of(name)):
            stem = net(name)
            self.rails.add(name)
            block = signal_rails(self.technology, self.units_of(name), self.calibration.mirror.trim)
            self.add(block, f"rails_{stem}", (f"{stem}_p", f"{stem}_n", "vdd"))

    def units_of(self, name: str) -> int:
        """Unit devices of a signal's diodes."""
        strong = isinstance(self.graph.nodes[name], Pedestal)
        return self.units * (PEDESTAL_STRENGTH if strong else 1)

    def bias_line(self, purpose: str, current: float, strong: bool = False) -> str:
        """The shared gate line of a set-point: cells with the same current hang on one diode and one pin.

        A `strong` line has a strong diode, and its pin carries STRENGTH times the current.
        """
        key = (purpose, round(current / _SAME_CURRENT))
        if key not in self.bias_lines:
            pin = f"bias_{purpose}_{sum(kind == purpose for kind, _ in self.bias_lines)}"
            self.bias_lines[key] = pin
            self.bias_pins[pin] = STRENGTH * current if strong else current
            self.add(strong_diode(self.technology) if strong else bias_diode(self.technology), pin, (pin,))
        return self.bias_lines[key]

    def own_line(self, name: str, purpose: str, current: float, trim: float) -> str:
        """A gate line of one cell's own, because an input-dependent beta flows into it too."""
        pin = f"bias_{purpose}_{net(name)}"
        self.bias_pins[pin] = current
        block = bias_diode(self.technology, trim, f"bias_diode_{purpose}_{net(name)}")
        self.add(block, pin, (pin,))
        return pin


def assemble(graph: Sized, technology: Technology, calibration: Calibration, tau: float) -> Assembly:
    """The whole network as one subcircuit `network`, deterministic in names and order. `tau`: of the DPIs, second."""
    builder = _Builder(graph, technology, calibration, tau)
    inputs = [net(node.name) for node in graph.of(InputCurrent)]
    for node in graph.of(InputCurrent, UnitCurrent, Pedestal):
        stem = net(node.name)
        builder.add(input_diode(technology, builder.units_of(node.name)), f"diode_{stem}", (f"{stem}_p", "vdd"))
        builder.add_rails(node.name)
    cells = list(graph.memories)
    for node in graph.of(Rectifier, Memory, Output):
        match node:
            case Rectifier(name):
                builder.add_row(name, f"{net(name)}_p")
                builder.add(relu_diode(technology, builder.units), f"relu_{net(name)}", (f"{net(name)}_p", "vdd"))
                builder.add_rails(name)
            case Schmitt():
                _add_schmitt(builder, node)
            case Ladder():
                _add_ladder(builder, node)
            case Toggle():
                _add_toggle(builder, node)
            case Output(name):
                builder.add_row(name, net(name))

    stages = sorted({node.stage for node in cells})
    clocks = tuple((f"clk{stage}", f"clkb{stage}") for stage in stages)
    pulsed = sorted({node.stage for node in cells if not isinstance(node, Schmitt)})
    pulses = {stage: (f"pulse{stage}", f"pulseb{stage}") for stage in pulsed}
    input_pins, outputs = tuple(f"{stem}_p" for stem in inputs), tuple(net(n.name) for n in graph.of(Output))
    unit_pin = f"{UNIT_CURRENT}_p"
    pedestal_pin = next((f"{node.name}_p" for node in graph.of(Pedestal)), None)
    pins = (*input_pins, unit_pin, *((pedestal_pin,) if pedestal_pin else ()), *builder.bias_pins, *outputs)
    ports = ("vdd", "resetb", *(pin for pair in (*clocks, *pulses.values()) for pin in pair), *pins)
    top = Subcircuit(NETWORK, ports, tuple(builder.elements), "the whole network")
    circuit = Circuit(
        f"network compiled by cosim for {technology.name}",
        (*builder.blocks.values(), top),
        (Instance(NETWORK, ports, NETWORK),),
    )
    prefix = f"x{NETWORK}"
    return Assembly(
        circuit, ports, builder.bias_pins, input_pins, unit_pin, pedestal_pin, outputs, clocks, pulses,
        builder.decisions,
        {node.name: f"{prefix}.{net(node.name)}_cand" for node in cells},
        builder.weights, builder.cell_bias, frozenset(builder.rails),
    )  # fmt: skip


def _add_schmitt(builder: _Builder, node: Schmitt) -> None:
    technology, stem = builder.technology, net(node.name)
    bias = builder.graph.bias(node.name, SchmittBias)
    candidate = _add_candidate(builder, node)
    betas = [source for source, _ in builder.graph.into(node.name, "beta")]
    if betas:
        thresh, width = _add_beta_lines(builder, node, bias, betas)
    else:
        thresh, width = builder.bias_line("thresh", bias.i_thresh), builder.bias_line("width", bias.i_width)
    gain = builder.bias_line("gain", bias.i_gain)
    builder.cell_bias[node.name] = (thresh, width, gain)
    origin = f"{node.name}: rise {node.rise:.6g} fall {node.fall:.6g} level {node.level:.6g}"
    clocks = (f"clk{node.stage}", f"clkb{node.stage}", "resetb")
    nets = (candidate, thresh, width, gain, f"{stem}_p", *clocks, "vdd")
    builder.add(clocked_schmitt(technology, builder.units), f"cell_{stem}", nets, origin)
    builder.decisions[node.name] = (f"x{NETWORK}.xcell_{stem}.{LATCH_NODE}",)
    _add_state_line(builder, node)


def _add_candidate(builder: _Builder, node: Memory) -> str:
    """The row of a memory and its rectifier; returns the candidate's net."""
    stem = net(node.name)
    builder.add_row(node.name, f"{stem}_cand")
    builder.add(candidate_diode(builder.technology), f"cand_{stem}", (f"{stem}_cand", "vdd"))
    return f"{stem}_cand"


def _add_state_line(builder: _Builder, node: Memory) -> None:
    """What a state's gate line p carries besides the state: its pedestal, and the line n that it drives."""
    stem = net(node.name)
    if i_pedestal := builder.graph.i_pedestal:
        line = builder.bias_line("pedestal", i_pedestal / builder.calibration.mirror.sink)
        builder.add(pedestal_sink(builder.technology), f"pedestal_{stem}", (f"{stem}_p", line))
    builder.add_rails(node.name)


def _add_ladder(builder: _Builder, node: Ladder) -> None:
    technology, stem, units = builder.technology, net(node.name), builder.units
    pins = builder.graph.bias(node.name, LadderPins)
    candidate = _add_candidate(builder, node)
    for block in quantiser_blocks(technology):
        builder.blocks.setdefault(block.name, block)
    upper, lower = (builder.bias_line("thresh", current) for current in (pins.i_upper, pins.i_lower))
    base, delta = builder.bias_line("base", pins.i_base), builder.bias_line("delta", pins.i_delta)
    clocks = tuple(f"{name}{node.stage}" for name in ("clk", "clkb", "pulse", "pulseb"))
    origin = f"{node.name}: rise {node.rise:.6g} fall {node.fall:.6g}"
    nets = (candidate, upper, lower, base, delta, f"{stem}_in", *clocks, "resetb", "vdd")
    builder.add(quantiser(), f"{QUANTISER}_{stem}", nets, origin)

    bias = pins.ladder
    for block in ladder_blocks(technology, units, dpi_capacitance(technology, builder.tau, bias.i_tau)):
        builder.blocks.setdefault(block.name, block)
    lines = (
        builder.bias_line("thresh", bias.i_thresh_1), builder.bias_line("width", bias.i_width_1),
        builder.bias_line("thresh", bias.i_thresh), builder.bias_line("width", bias.i_width),
        builder.bias_line("gain", bias.i_gain), builder.bias_line("vg", bias.i_g, strong=True),
        builder.bias_line("tau", bias.i_tau, strong=True),
    )  # fmt: skip
    builder.cell_bias[node.name] = (upper, lower, lines[4])
    origin = f"{node.name}: {node.rungs} rungs of {node.level:.6g}, starts on {node.start}"
    nets = (f"{stem}_in", *lines, f"{stem}_p", "resetb", "vdd")
    builder.add(ladder(technology, units, node.rungs, node.start), f"cell_{stem}", nets, origin)
    builder.decisions[node.name] = tuple(
        f"x{NETWORK}.xcell_{stem}.xrung{k}.{DECISION_NODE}" for k in range(1, node.rungs + 1)
    )
    _add_state_line(builder, node)


def _add_toggle(builder: _Builder, node: Toggle) -> None:
    technology, stem = builder.technology, net(node.name)
    pins = builder.graph.bias(node.name, TogglePins)
    candidate = _add_candidate(builder, node)
    for block in (*quantiser_blocks(technology)[:2], clocked_schmitt(technology, builder.units, tap=True)):
        builder.blocks.setdefault(block.name, block)
    lines = tuple(
        builder.bias_line(purpose, current)
        for purpose, current in (
            ("thresh", pins.i_upper), ("base", pins.i_base), ("delta", pins.i_delta), ("thresh", pins.i_thresh),
            ("width", pins.i_width), ("gain", pins.i_gain),
        )
    )  # fmt: skip
    builder.cell_bias[node.name] = (lines[0], lines[5])
    clocks = tuple(f"{name}{node.stage}" for name in ("clk", "clkb", "pulse", "pulseb"))
    origin = f"{node.name}: rise {node.rise:.6g} level {node.level:.6g}"
    nets = (candidate, *lines, f"{stem}_p", *clocks, "resetb", "vdd")
    builder.add(toggle(technology), f"cell_{stem}", nets, origin)
    builder.decisions[node.name] = (
        f"x{NETWORK}.xcell_{stem}.q",
    )  # the latch node of its slave, as the port that it is
    _add_state_line(builder, node)


def _add_beta_lines(builder: _Builder, node: Schmitt, bias: SchmittBias, betas: list[str]) -> tuple[str, str]:
    """Threshold and width lines of an input-dependent unit: pin current plus beta. Both stand still in a decision."""
    technology, stem, units = builder.technology, net(node.name), builder.units
    lines = []
    for purpose, current, trim, copies in (
        ("thresh", bias.i_thresh, bias.trim_thresh, 1),
        ("width", bias.i_width, bias.trim_width, 2),
    ):
        line = builder.own_line(node.name, purpose, current, trim)
        terms = [Term(net(source), -copies * units, f"{node.layer}.beta[{node.index}] x {copies}") for source in betas]
        row = linear_row(f"{purpose}_row_{stem}", terms, technology, f"beta into the {purpose} line of {node.name}")
        builder.add(row, row.name, (line, "vdd", *row.ports[2:]))
        for index, source in enumerate(betas):
            device = f"x{NETWORK}.x{row.name}.mw{index}"
            earlier = builder.weights.get((source, node.name))
            builder.weights[source, node.name] = f"{earlier} and {device}" if earlier else device
        lines.append(line)
    return lines[0], lines[1]
