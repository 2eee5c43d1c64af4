"""Assemble: a sized graph becomes one subcircuit `network`, deterministic in names and order."""

from cosim.cells.assembly import Assembly
from cosim.cells.blocks import INPUT_DIODES, RECTIFIERS
from cosim.cells.builder import NETWORK, Builder, net
from cosim.cells.mirror import input_diode
from cosim.cells.rectifier import relu_diode
from cosim.circuit.elements import Circuit, Instance, Subcircuit
from cosim.network.ir.graph import Sized
from cosim.network.ir.nodes import UNIT_CURRENT, InputCurrent, Memory, Output, Pedestal, Rectifier, UnitCurrent
from cosim.technology.calibration import Calibration
from cosim.technology.types import Technology
from cosim.units.table import unit_of


def assemble(graph: Sized, technology: Technology, calibration: Calibration, tau: float) -> Assembly:
    """Return the whole network as one circuit; tau: time constant of slow units, second."""
    builder = Builder(graph, technology, calibration, tau)
    _add_sources(builder)
    for node in graph.of(Rectifier, Memory, Output):
        match node:
            case Rectifier(name):
                builder.add_row(name, f"{net(name)}_p")
                builder.add(
                    relu_diode(technology, builder.units), f"relu_{net(name)}", (f"{net(name)}_p", "vdd"), RECTIFIERS
                )
                builder.add_rails(name)
            case Memory():
                unit_of(node).build_circuit(builder, node, graph.biases[node.name])
            case Output(name):
                builder.add_row(name, net(name))
    return _finish(builder)


def _add_sources(builder: Builder) -> None:
    """Add the diodes of inputs, of the unit current and of the pedestal, each with the line n that it drives."""
    for node in builder.graph.of(InputCurrent, UnitCurrent, Pedestal):
        stem = net(node.name)
        diode = input_diode(builder.technology, builder.units_of(node.name))
        builder.add(diode, f"diode_{stem}", (f"{stem}_p", "vdd"), INPUT_DIODES)
        builder.add_rails(node.name)
        builder.add_symbol(node)


def _finish(builder: Builder) -> Assembly:
    """Return the assembly: the subcircuit of what was built, with its pins."""
    graph, technology = builder.graph, builder.technology
    cells = list(graph.memories)
    stages = sorted({node.stage for node in cells})
    clocks = tuple((f"clk{stage}", f"clkb{stage}") for stage in stages)
    pulsed = sorted({node.stage for node in cells if unit_of(node).updates_in_pulse})
    pulses = {stage: (f"pulse{stage}", f"pulseb{stage}") for stage in pulsed}
    replaced = {node.stage for node in cells if not unit_of(node).updates_in_pulse}  # others turn later
    decides = {stage: (f"dec{stage}", f"decb{stage}") for stage in sorted(builder.apart & replaced)}
    input_pins = tuple(f"{net(node.name)}_p" for node in graph.of(InputCurrent))
    outputs = tuple(net(node.name) for node in graph.of(Output))
    unit_pin = f"{UNIT_CURRENT}_p"
    pedestal_pin = next((f"{node.name}_p" for node in graph.of(Pedestal)), None)
    pins = (*input_pins, unit_pin, *((pedestal_pin,) if pedestal_pin else ()), *builder.bias_pins, *outputs)
    ports = ("vdd", "resetb", *(pin for pair in (*clocks, *decides.values(), *pulses.values()) for pin in pair), *pins)
    top = Subcircuit(NETWORK, ports, tuple(builder.elements), "the whole network")
    title = f"network compiled by cosim for {technology.name}"
    circuit = Circuit(title, (*builder.blocks.values(), top), (Instance(NETWORK, ports, NETWORK),))
    candidates = {node.name: f"x{NETWORK}.{net(node.name)}_cand" for node in cells}
    return Assembly(
        circuit, ports, builder.bias_pins, input_pins, unit_pin, pedestal_pin, outputs, clocks, decides, pulses,
        builder.decisions, candidates, builder.weights, builder.cell_bias, frozenset(builder.rails),
        builder.steering, builder.symbols, builder.held, frozenset(builder.pushing),
        builder.drives,
    )  # fmt: skip
