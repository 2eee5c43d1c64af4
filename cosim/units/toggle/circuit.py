"""The toggle in a network: its instance, its lines, and its rows in the mapping report."""

from cosim.cells.blocks import CELLS
from cosim.cells.builder import NETWORK, Builder, net
from cosim.cells.clocked import clocked_schmitt
from cosim.cells.quantiser import quantiser_blocks
from cosim.cells.toggle import toggle
from cosim.units.native import add_line_pair, clock_pins
from cosim.units.report import LearnedParameters, PinRow
from cosim.units.toggle.node import Toggle, TogglePins


def build_toggle(builder: Builder, node: Toggle, pins: TogglePins) -> None:
    """Candidate, toggle, and the lines of its state."""
    technology, stem = builder.technology, net(node.name)
    candidate = builder.add_candidate(node)
    builder.define(*quantiser_blocks(technology)[:2], clocked_schmitt(technology, builder.units, tap=True))
    upper = builder.bias_line("thresh", pins.i_upper)
    lines = (
        upper, *add_line_pair(builder, pins.i_base, pins.i_delta), builder.bias_line("thresh", pins.i_thresh),
        builder.bias_line("width", pins.i_width), builder.bias_line("gain", pins.i_gain),
    )  # fmt: skip
    builder.cell_bias[node.name] = (upper, lines[-1])
    origin = f"{node.name}: rise {node.rise:.6g} level {node.level:.6g}"
    nets = (candidate, *lines, f"{stem}_p", *clock_pins(node), "resetb", "vdd")
    builder.add(toggle(technology), f"cell_{stem}", nets, CELLS, origin)
    builder.decisions[node.name] = (f"x{NETWORK}.xcell_{stem}.q",)  # the slave's latch node, as the port that it is
    builder.add_state_line(node)


def report_toggle(node: Toggle, pins: TogglePins, learned: LearnedParameters) -> list[PinRow]:
    """The threshold and the level."""
    asked, (upper, gain) = learned.asked, learned.pins
    return [
        PinRow(learned.upper, upper, asked.i_rise, pins.i_upper, learned.above),
        PinRow(learned.alpha, gain, asked.i_high, pins.i_gain, f"two levels, {node.step:g} apart"),
    ]
