"""The network's subcircuit while it is built: blocks, instances, gate lines of signals and of bias currents."""

from collections import Counter

from cosim.cells.assembly import Shown, StateCurrent
from cosim.cells.bias import BIAS_DIODE, STRENGTH, bias_diode, pedestal_sink, strong_diode
from cosim.cells.blocks import BIAS_DIODES, CANDIDATES, CELLS, COMPARATORS, LINE_COPIES, PEDESTALS
from cosim.cells.clocked import RESET_INVERTER, reset_inverter
from cosim.cells.linear import Term, linear_row
from cosim.cells.mirror import signal_rails
from cosim.cells.rectifier import candidate_diode
from cosim.cells.steering import steering_and, symbol_comparator
from cosim.cells.tau_cell import tau_line
from cosim.circuit.elements import Attribution, Element, Instance, Subcircuit
from cosim.network.ir.graph import Edge, SizedGraph
from cosim.network.ir.nodes import PEDESTAL_STRENGTH, Memory, Node, Output, Pedestal
from cosim.technology.calibration import Calibration
from cosim.technology.types import Technology

NETWORK = "network"
_SAME_CURRENT = 1e-15  # A; bias pins closer than this are one pin


def net(name: str) -> str:
    """Return the stem of a node's nets in the network's subcircuit: node `layer0.3` has the stem `layer0_3`."""
    return name.replace(".", "_")


def instance(name: str) -> str:
    """Return the path of an instance in the network's subcircuit, with which the names of its transistors begin."""
    return f"{NETWORK}.{name}"


def weight_device(row: str, index: int) -> str:
    """Return the name that a unit's subcircuit gives to the transistor that is weight number `index` of a row."""
    return f"{instance(row)}.w{index}"


def steering_instance(target: str, index: int) -> str:
    """Return the instance name of the steering AND cell that is term number `index` in the row of node `target`."""
    return f"and_{net(target)}_{index}"


def symbol_instance(name: str) -> str:
    """Return the instance name of the symbol comparator cell that makes a node's one-bit signal a voltage."""
    return f"bit_{net(name)}"


class Builder:
    """A builder that collects the cells of a network's subcircuit; a cell's subcircuit is kept once, by its name.

    tau: time constant of slow units, second; comparator_devices: devices in parallel in each comparator.
    """

    def __init__(
        self, graph: SizedGraph, technology: Technology, calibration: Calibration, tau: float, comparator_devices: int
    ) -> None:
        self.graph, self.technology, self.calibration, self.tau = graph, technology, calibration, tau
        self.units, self.comparator_devices = calibration.units, comparator_devices
        self.blocks: dict[str, Subcircuit] = {}
        self.elements: list[Element] = []
        self.bias_lines: dict[tuple[str, str, int], str] = {}
        self.counted = Counter[str]()
        self.bias_pins: dict[str, float] = {}
        self.weights: dict[tuple[str, str], str] = {}
        self.cell_bias: dict[str, tuple[str, ...]] = {}
        self.decisions: dict[str, Shown] = {}
        self.held: dict[str, tuple[str, ...]] = {}
        self.drives: dict[str, StateCurrent] = {}
        self.steering: dict[Edge, str] = {}
        self.apart = graph.read_late
        self.symbols: dict[str, str] = {}
        self.rails: set[str] = set()
        self.pushing: set[str] = set()

    def define(self, *blocks: Subcircuit) -> None:
        """Add subcircuits that cells of the network instantiate; a name that is there already is kept."""
        for block in blocks:
            self.blocks.setdefault(block.name, block)

    def add(self, block: Subcircuit, name: str, nets: tuple[str, ...], part: Attribution, origin: str = "") -> None:
        """Add an instance of a cell, and its subcircuit `block`, to the network's subcircuit.

        nets: one a port; part: block in which power counts the cell; origin: comment in the deck.
        """
        self.define(block)
        self.elements.append(Instance(name, nets, block.name, origin, part))

    def add_row(self, name: str, node_net: str) -> None:
        """Add the row of a node's weights to the network's subcircuit, one transistor a weight, all on `node_net`."""
        terms, row_name = list[Term](), f"row_{net(name)}"
        power = "readout" if isinstance(self.graph.nodes[name], Output) else "rows"
        part = Attribution(f"weights of {net(name.rpartition('.')[0])}", power)
        for index, (source, weight) in enumerate(self.graph.into(name)):
            mirror = self.graph.mirrors[source, name]
            if (source, name) in self.graph.steered:
                self.add_steering((source, name), steering_instance(name, index), node_net, part)
            text = f"{weight.origin} target {weight.target:.6g} realised {mirror.realised:.6g}"
            terms.append(Term(net(source), mirror.count, text))
            if mirror.count:
                self.weights[source, name] = f"x{NETWORK}.x{row_name}.mw{index}"
        row = linear_row(row_name, terms, self.technology, f"linear row of {name}")
        if row.elements:
            self.add(row, row_name, (node_net, "vdd", *row.ports[2:]), part)

    def add_steering(self, edge: Edge, name: str, node_net: str, part: Attribution) -> None:
        """Add the steering AND cell of a weight on an And node: a current source and one switch a bit of the And."""
        (source, _), weight = edge, self.graph.weights[edge]
        bits = self.graph.into(source, "gate")
        gain = self.steering[edge] = self.bias_line("gain", self.graph.steered[edge])
        nets = (node_net, gain, *(f"{net(bit)}_bit" for bit, _ in bits))
        self.add(steering_and(self.technology, len(bits)), name, nets, part, f"{weight.origin} on {source}")
        self.weights[edge] = f"x{NETWORK}.x{name}.msource"
        for k, (bit, _) in enumerate(bits):
            device, earlier = f"x{NETWORK}.x{name}.mbit{k}", self.weights.get((bit, source))
            self.weights[bit, source] = f"{earlier} and {device}" if earlier else device

    def add_symbol(self, node: Node) -> None:
        """Add the symbol comparator that makes an input or a one-bit memory a voltage, if any And node reads it."""
        if (half := self.graph.half(node.name)) is not None:
            line = self.symbols[node.name] = self.bias_line("symbol", half)
            nets = (f"{net(node.name)}_p", line, f"{net(node.name)}_bit", "vdd")
            self.add(symbol_comparator(self.technology, self.units), symbol_instance(node.name), nets, COMPARATORS)

    def reset_line(self) -> str:
        """Return the net that is high during the reset, for cells that the reset leaves on; add its inverter once."""
        if RESET_INVERTER not in self.blocks:
            self.add(reset_inverter(self.technology), RESET_INVERTER, ("resetb", "reset", "vdd"), CELLS)
        return "reset"

    def add_rails(self, name: str) -> None:
        """Add the cell that makes gate line n of a signal from gate line p, if a positive weight reads the signal."""
        graph = self.graph
        if any(graph.mirrors[edge].count > 0 and graph.weights[edge].role == "drive" for edge in graph.out_of(name)):
            stem = net(name)
            self.rails.add(name)
            block = signal_rails(self.technology, self.units_of(name), self.calibration.mirror.trim)
            self.add(block, f"rails_{stem}", (f"{stem}_p", f"{stem}_n", "vdd"), LINE_COPIES)

    def units_of(self, name: str) -> int:
        """Return how many unit devices the diodes of a signal's gate lines have in the network's subcircuit."""
        return self.units * (PEDESTAL_STRENGTH if isinstance(self.graph.nodes[name], Pedestal) else 1)

    def add_candidate(self, node: Memory, devices: int = 1) -> str:
        """Add the row of a memory's weights and the diode of its candidate; return the candidate's net.

        devices: how many devices the diode has in parallel.
        """
        stem = net(node.name)
        self.add_row(node.name, f"{stem}_cand")
        self.add(candidate_diode(self.technology, devices), f"cand_{stem}", (f"{stem}_cand", "vdd"), CANDIDATES)
        return f"{stem}_cand"

    def add_state_line(self, node: Memory) -> None:
        """Add the cells on gate line p of a memory's state: pedestal sink, copy to gate line n, symbol comparator."""
        stem = net(node.name)
        if i_pedestal := self.graph.i_pedestal:
            line = self.bias_line("pedestal", self.calibration.mirror.sink_bias(i_pedestal))
            self.add(pedestal_sink(self.technology), f"pedestal_{stem}", (f"{stem}_p", line), PEDESTALS)
        self.add_rails(node.name)
        self.add_symbol(node)

    def bias_line(self, purpose: str, current: float) -> str:
        """Return the gate line of a bias current, ampere, and add its diode and pin at the first call.

        Cells that ask for the same purpose and current share one line.
        """
        return self._line(purpose, current, bias_diode(self.technology), 1)

    def comparator_line(self, current: float) -> str:
        """Return the shared gate line of a comparator's threshold current, ampere.

        The line's diode has as many devices as the comparator.
        """
        m = self.comparator_devices
        diode = bias_diode(self.technology) if m == 1 else bias_diode(self.technology, name=f"{BIAS_DIODE}_{m}", m=m)
        return self._line("thresh", current, diode, 1)

    def strong_line(self, purpose: str, current: float) -> str:
        """Return the shared gate line of a bias current, ampere, on a strong diode.

        The pin of the line carries STRENGTH times the current.
        """
        return self._line(purpose, current, strong_diode(self.technology), STRENGTH)

    def _line(self, purpose: str, current: float, diode: Subcircuit, strength: int) -> str:
        key = (purpose, diode.name, round(current / _SAME_CURRENT))
        if key not in self.bias_lines:
            pin = f"bias_{purpose}_{self.counted[purpose]}"
            self.counted[purpose] += 1
            self.bias_lines[key] = pin
            self.bias_pins[pin] = strength * current
            self.add(diode, pin, (pin,), BIAS_DIODES)
        return self.bias_lines[key]

    def pushed(self, line: str, *, rest: bool = False) -> str:
        """Return a gate line p that carries the current of bias line `line`, shared by all cells that push it.

        rest: whether the line is one for the reset of delay lines, see `tau_line`.
        """
        if line not in self.pushing:
            self.pushing.add(line)
            self.add(tau_line(self.technology, rest=rest), f"push_{line}", (line, f"{line}_p", "vdd"), BIAS_DIODES)
        return f"{line}_p"

    def own_line(self, name: str, purpose: str, current: float, trim: float, *, m: int = 1) -> str:
        """Return a gate line that one cell alone has, because its input-dependent beta flows into that line as well.

        trim: current of the line's diode over that of its gates; m: devices of the diode in parallel; current: ampere.
        """
        pin = f"bias_{purpose}_{net(name)}"
        self.bias_pins[pin] = current
        stretch = self.calibration.mirror.stretch(1 / trim)
        block = bias_diode(self.technology, stretch, f"bias_diode_{purpose}_{net(name)}", m)
        self.add(block, pin, (pin,), BIAS_DIODES)
        return pin
