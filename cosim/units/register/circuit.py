"""The register in a network: its instance, its lines, and its rows in the mapping report."""

from cosim.cells.blocks import CELLS
from cosim.cells.builder import NETWORK, Builder, net
from cosim.cells.quantiser import sampler
from cosim.cells.register import register, register_blocks
from cosim.units.native import clock_pins
from cosim.units.register.node import Register, RegisterPins
from cosim.units.report import LearnedParameters, PinRow


def build_register(builder: Builder, node: Register, pins: RegisterPins) -> None:
    """Candidate, register, and the lines of its state; its values are the lines p of two rectifiers."""
    technology, stem, units = builder.technology, net(node.name), builder.units
    candidate = builder.add_candidate(node)
    builder.define(sampler(technology), *register_blocks(technology, units))
    upper, lower = (builder.bias_line("thresh", current) for current in (pins.i_upper, pins.i_lower))
    keep, gain = builder.bias_line("keep", pins.i_keep), builder.bias_line("gain", pins.i_gain)
    release = builder.bias_line("release", pins.i_release)
    turns = tuple(builder.bias_line("turn", current) for current in pins.i_turns)
    builder.cell_bias[node.name] = (upper, lower, gain, keep, release, *turns)
    values = [source for source, _ in builder.graph.into(node.name, "value")]
    for source, device in zip(values, ("pos", "neg"), strict=True):
        builder.weights[source, node.name] = f"x{NETWORK}.xcell_{stem}.m{device}"
    clk, clkb, _, pulseb = clock_pins(node)
    nets = (
        candidate, *(f"{net(source)}_p" for source in values), upper, lower, keep, release, gain, *turns, f"{stem}_p",
        clk, clkb, pulseb, "resetb", builder.reset_line(), "vdd",
    )  # fmt: skip
    origin = f"{node.name}: rise {node.rise:.6g} fall {node.fall:.6g} {node.most} levels of {node.level:.6g}"
    builder.add(register(technology, units, node.most, node.start), f"cell_{stem}", nets, CELLS, origin)
    builder.decisions[node.name] = tuple(f"x{NETWORK}.xcell_{stem}.xlevel{k}.q" for k in range(1, node.most + 1))
    builder.add_state_line(node)


def report_register(node: Register, pins: RegisterPins, learned: LearnedParameters) -> list[PinRow]:
    """Return the report's rows for both thresholds of the candidate, the current of a level, and the turn of each."""
    asked, (upper, lower, gain, _, _, *turns) = learned.asked, learned.pins
    i_unit = asked.i_high / node.level
    levels = f"{node.most} levels, {node.step:g} apart; level 0 stands for {node.zero:g}; starts on {node.start}"
    return [
        PinRow(learned.upper, upper, asked.i_rise, pins.i_upper, learned.above),
        PinRow(learned.lower, lower, asked.i_fall, pins.i_lower, learned.below),
        PinRow(learned.alpha, gain, asked.i_high, pins.i_gain, levels),
        *(
            PinRow(
                f"{learned.alpha} (turn {k})", pin, turn * i_unit, current,
                f"{-node.zero:g} included",
            )
            for k, (pin, turn, current) in enumerate(zip(turns, node.turns, pins.i_turns, strict=True), start=1)
        ),
    ]  # fmt: skip
