"""The minGRU in a network: its instance, its lines, and its rows in the mapping report."""

from cosim.cells.assembly import Carried
from cosim.cells.blocks import CELLS
from cosim.cells.builder import NETWORK, Builder, net
from cosim.cells.tau_cell import tau_cell_gated
from cosim.units.mingru.lower import capacitance
from cosim.units.mingru.node import MinGru, MinGruPins, fit_of
from cosim.units.report import Learned, PinRow


def build_mingru(builder: Builder, node: MinGru, pins: MinGruPins) -> None:
    """Candidate, tau-cell, and the lines of its state."""
    calibration, graph, stem = builder.calibration, builder.graph, net(node.name)
    candidate, ((gate, _),) = builder.add_candidate(node), graph.into(node.name, "rate")
    farad = capacitance(calibration, graph.i_unit, builder.tau)
    cell = tau_cell_gated(builder.technology, builder.units, farad, fit_of(calibration).trim)
    nets = (candidate, f"{net(gate)}_p", f"{stem}_p", f"pulseb{node.stage}", "resetb", "vdd")
    builder.add(cell, f"cell_{stem}", nets, CELLS, f"{node.name}: gate {gate}")
    builder.weights[gate, node.name] = f"x{NETWORK}.xcell_{stem}.mtau2"
    builder.cell_bias[node.name] = ()
    builder.decisions[node.name] = Carried(f"{NETWORK}.cell_{stem}.diode", graph.i_pedestal, node.level * graph.i_unit)
    builder.add_state_line(node)


def report_mingru(node: MinGru, pins: MinGruPins, learned: Learned) -> list[PinRow]:
    """It has no pins."""
    return []
