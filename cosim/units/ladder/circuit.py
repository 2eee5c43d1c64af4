"""Quantiser and ladder in a network: their instances, their lines, and their rows in the mapping report."""

from cosim.cells.assembly import Carried
from cosim.cells.blocks import CELLS, QUANTISERS
from cosim.cells.builder import NETWORK, Builder, net
from cosim.cells.dpi import dpi_capacitance
from cosim.cells.ladder import ladder, ladder_blocks
from cosim.cells.quantiser import QUANTISER, quantiser, quantiser_blocks
from cosim.cells.schmitt import DECISION_NODE
from cosim.units.ladder.node import Ladder, LadderPins
from cosim.units.native import add_line_pair, clock_pins
from cosim.units.report import LearnedParameters, PinRow


def build_ladder(builder: Builder, node: Ladder, pins: LadderPins) -> None:
    """Candidate, quantiser, ladder, and the lines of its state."""
    technology, stem, units = builder.technology, net(node.name), builder.units
    candidate = builder.add_candidate(node)
    builder.define(*quantiser_blocks(technology))
    upper, lower = (builder.bias_line("thresh", current) for current in (pins.i_upper, pins.i_lower))
    base, delta = add_line_pair(builder, pins.i_base, pins.i_delta)
    origin = f"{node.name}: rise {node.rise:.6g} fall {node.fall:.6g}"
    nets = (candidate, upper, lower, base, delta, f"{stem}_in", *clock_pins(node), "resetb", "vdd")
    builder.add(quantiser(), f"{QUANTISER}_{stem}", nets, QUANTISERS, origin)
    builder.drives[node.name] = Carried(f"{NETWORK}.{QUANTISER}_{stem}.driver.diode_n", pins.i_base, pins.i_delta)

    bias = pins.ladder
    builder.define(*ladder_blocks(technology, units, dpi_capacitance(technology, builder.tau, bias.i_tau)))
    lines = (
        builder.bias_line("thresh", bias.i_thresh_1), builder.bias_line("width", bias.i_width_1),
        builder.bias_line("thresh", bias.i_thresh), builder.bias_line("width", bias.i_width),
        builder.bias_line("gain", bias.i_gain), builder.strong_line("vg", bias.i_g),
        builder.strong_line("tau", bias.i_tau),
    )  # fmt: skip
    builder.cell_bias[node.name] = (upper, lower, lines[4])
    origin = f"{node.name}: {node.rungs} rungs of {node.level:.6g}, starts on {node.start}"
    nets = (f"{stem}_in", *lines, f"{stem}_p", "resetb", "vdd")
    builder.add(ladder(technology, units, node.rungs, node.start), f"cell_{stem}", nets, CELLS, origin)
    builder.decisions[node.name] = tuple(
        f"x{NETWORK}.xcell_{stem}.xrung{k}.{DECISION_NODE}" for k in range(1, node.rungs + 1)
    )
    builder.add_state_line(node)


def report_ladder(node: Ladder, pins: LadderPins, learned: LearnedParameters) -> list[PinRow]:
    """Return the report's rows for both thresholds of the quantiser and the level of a rung."""
    asked, (upper, lower, gain) = learned.asked, learned.pins
    rungs = f"{node.rungs} rungs, starts on {node.start}; readers' weights times {node.step / node.level:g}"
    return [
        PinRow(learned.upper, upper, asked.i_rise, pins.i_upper, learned.above),
        PinRow(learned.lower, lower, asked.i_fall, pins.i_lower, learned.below),
        PinRow(learned.alpha, gain, asked.i_high, pins.ladder.i_gain, rungs),
    ]
