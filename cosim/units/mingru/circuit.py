"""The minGRU in a network: its instance, its lines, and its rows in the mapping report."""

from cosim.cells.assembly import Carried
from cosim.cells.blocks import CELLS
from cosim.cells.builder import NETWORK, Builder, net
from cosim.cells.ratio_gate import ratio_gate
from cosim.cells.tau_cell import tau_cell_gated
from cosim.units.mingru.lower import capacitance
from cosim.units.mingru.node import MinGru, MinGruPins, fit_of
from cosim.units.report import LearnedParameters, PinRow


def build_mingru(builder: Builder, node: MinGru, pins: MinGruPins) -> None:
    """Candidate, tau-cell, and the lines of its state."""
    calibration, graph, stem = builder.calibration, builder.graph, net(node.name)
    builder.cell_bias[node.name] = ()
    candidate, ((gate, _),) = builder.add_candidate(node), graph.into(node.name, "rate")
    farad = capacitance(calibration, graph.i_unit, builder.tau)
    cell = tau_cell_gated(builder.technology, builder.units, farad, fit_of(calibration).trim)
    rate = f"{net(gate)}_p"
    if pins.i_top is not None:
        rate = _add_ratio_gate(builder, node, rate, pins.i_top)
    nets = (candidate, rate, f"{stem}_p", f"pulseb{node.stage}", "resetb", "vdd")
    builder.add(cell, f"cell_{stem}", nets, CELLS, f"{node.name}: gate {gate}")
    copy = f"cell_{stem}.mtau2" if node.top is None else f"gate_{stem}.mcopy"
    builder.weights[gate, node.name] = f"x{NETWORK}.x{copy}"
    builder.decisions[node.name] = Carried(f"{NETWORK}.cell_{stem}.diode", graph.i_pedestal, node.level * graph.i_unit)
    builder.add_state_line(node)


def _add_ratio_gate(builder: Builder, node: MinGru, line: str, i_top: float) -> str:
    """Between the gate line of a and the tau-cell, whose own gate line it returns; I_b comes once for all."""
    stem, bias = net(node.name), builder.bias_line("top", i_top)
    half, found = builder.pushed(bias), f"{stem}_rate_p"
    builder.add(ratio_gate(builder.technology), f"gate_{stem}", (line, half, bias, found, "vdd"), CELLS, node.name)
    builder.cell_bias[node.name] = (bias,)
    return found


def report_mingru(node: MinGru, pins: MinGruPins, learned: LearnedParameters) -> list[PinRow]:
    """The largest rate of a ratio gate."""
    if node.top is None or pins.i_top is None:
        return []
    (pin,) = learned.pins
    return [
        PinRow(
            f"{node.layer}.top[{node.index}]", pin, pins.i_top, pins.i_top, f"r = {node.top:g} a / ({node.top:g} + a)"
        )
    ]
