"""The dispersive delay line in a network: its cells, their one bias line, and its row in the mapping report."""

from cosim.cells.assembly import Carried
from cosim.cells.blocks import CELLS
from cosim.cells.builder import NETWORK, Builder, net
from cosim.cells.tau_cell import tau_cell_gated
from cosim.units.gamma.node import Gamma, GammaPins
from cosim.units.mingru.lower import capacitance
from cosim.units.mingru.node import fit_of
from cosim.units.report import LearnedParameters, PinRow


def cell_name(stem: str, place: int, order: int) -> str:
    """The instance of a cell; the last one carries the state."""
    return f"cell_{stem}" if place == order - 1 else f"cell{place}_{stem}"


def build_gamma(builder: Builder, node: Gamma, pins: GammaPins) -> None:
    """Candidate, n tau-cells in a row, and the lines of the last one's state."""
    calibration, graph, stem = builder.calibration, builder.graph, net(node.name)
    line, farad = builder.add_candidate(node), capacitance(calibration, graph.i_unit, builder.tau)
    bias = builder.bias_line("delay", pins.i_tau)
    floor = builder.bias_line("floor", pins.i_rest)
    builder.cell_bias[node.name] = (bias, floor)
    tau, rest, trim = builder.pushed(bias), builder.pushed(floor, rest=True), fit_of(calibration).trim
    for k in range(node.order):
        cell = tau_cell_gated(builder.technology, builder.units, farad, trim, place="next" if k else "first")
        out = f"{stem}_p" if k == node.order - 1 else f"{stem}_p{k}"
        nets = (line, tau, out, f"pulseb{node.stage}", "resetb", rest, "vdd")
        builder.add(cell, cell_name(stem, k, node.order), nets, CELLS, f"{node.name}: {k + 1} of {node.order}")
        line = out
    rest = (1 + node.floor) * graph.i_pedestal
    builder.decisions[node.name] = Carried(f"{NETWORK}.cell_{stem}.diode", rest, node.level * graph.i_unit)
    builder.add_state_line(node)


def report_gamma(node: Gamma, pins: GammaPins, learned: LearnedParameters) -> list[PinRow]:
    """The position, which is a current."""
    pin, _ = learned.pins
    words = f"a delay of {node.position:.4g} frames by {node.order} cells"
    return [PinRow(f"{node.layer}.position[{node.index}]", pin, pins.i_tau, pins.i_tau, words)]
