"""The clocked 9T cell in a network: its instance, its lines, and its rows in the mapping report."""

from cosim.cells.blocks import BETAS, CELLS
from cosim.cells.builder import NETWORK, Builder, net
from cosim.cells.clocked import LATCH_NODE, clocked_schmitt
from cosim.cells.linear import Term, linear_row
from cosim.cells.schmitt import DECISION_NODE
from cosim.units.report import LearnedParameters, PinRow
from cosim.units.schmitt.node import Schmitt, SchmittBias

WIDTH_PIN = "pin carries the width, upper - lower"


def build_schmitt(builder: Builder, node: Schmitt, bias: SchmittBias) -> None:
    """Candidate, bias lines, cell, and the lines of its state."""
    stem = net(node.name)
    candidate = builder.add_candidate(node)
    betas = [source for source, _ in builder.graph.into(node.name, "beta")]
    if betas:
        thresh, width = _add_beta_lines(builder, node, bias, betas)
    else:
        thresh, width = builder.bias_line("thresh", bias.i_thresh), builder.bias_line("width", bias.i_width)
    gain = builder.bias_line("gain", bias.i_gain)
    builder.cell_bias[node.name] = (thresh, width, gain)
    origin = f"{node.name}: rise {node.rise:.6g} fall {node.fall:.6g} level {node.level:.6g}"
    reset = builder.reset_line() if node.on else "resetb"
    apart, stage = node.stage in builder.apart, node.stage
    clocks = (f"clk{stage}", f"clkb{stage}", *((f"dec{stage}", f"decb{stage}") if apart else ()))
    cell = clocked_schmitt(builder.technology, builder.units, on=node.on, apart=apart)
    nets = (candidate, thresh, width, gain, f"{stem}_p", *clocks, reset, "vdd")
    builder.add(cell, f"cell_{stem}", nets, CELLS, origin)
    latch = f"x{NETWORK}.xcell_{stem}.{LATCH_NODE}"
    builder.decisions[node.name] = (latch,)
    if not node.on:
        builder.held[node.name] = (latch, f"x{NETWORK}.xcell_{stem}.{DECISION_NODE}")
    builder.add_state_line(node)


def _add_beta_lines(builder: Builder, node: Schmitt, bias: SchmittBias, betas: list[str]) -> tuple[str, str]:
    """Threshold and width lines of an input-dependent unit: pin current plus beta. Both stand still in a decision."""
    stem, lines = net(node.name), list[str]()
    for purpose, current, trim, copies in (
        ("thresh", bias.i_thresh, bias.trim_thresh, 1),
        ("width", bias.i_width, bias.trim_width, 2),
    ):
        line = builder.own_line(node.name, purpose, current, trim)
        origin = f"{node.layer}.beta[{node.index}] x {copies}"
        terms = [Term(net(source), -copies * builder.units, origin) for source in betas]
        summary = f"beta into the {purpose} line of {node.name}"
        row = linear_row(f"{purpose}_row_{stem}", terms, builder.technology, summary)
        builder.add(row, row.name, (line, "vdd", *row.ports[2:]), BETAS)
        for index, source in enumerate(betas):
            device = f"x{NETWORK}.x{row.name}.mw{index}"
            earlier = builder.weights.get((source, node.name))
            builder.weights[source, node.name] = f"{earlier} and {device}" if earlier else device
        lines.append(line)
    return lines[0], lines[1]


def report_schmitt(node: Schmitt, bias: SchmittBias, learned: LearnedParameters) -> list[PinRow]:
    """Return the report's rows for both thresholds and the level."""
    asked, (thresh, width, gain) = learned.asked, learned.pins
    below = "; ".join(filter(None, (WIDTH_PIN, learned.below)))
    level = "" if abs(node.zero) < 1e-12 else f"two levels, {node.step:g} apart; level 0 stands for {node.zero:g}"
    return [
        PinRow(learned.upper, thresh, asked.i_rise, bias.i_thresh, learned.above),
        PinRow(learned.lower, width, asked.i_fall, bias.i_width, below),
        PinRow(learned.alpha, gain, asked.i_high, bias.i_gain, level),
    ]
