"""Around: blocks of the chip beside its network, each added if the user asks for it.

    inputs     converters, from codes to the currents into the input pins
    decision   averages of the outputs over time, and a winner-take-all: one line a class
    clock      generator of all phases of a frame, from one clock
    bias       reference and tree, which make the currents of all pins, those of the other blocks included

They are instances next to the instance `network`, connected to its pins, so the network's subcircuit does not change.
"""

from dataclasses import replace

from cosim.base.errors import MappingError
from cosim.cells.assembly import Assembly
from cosim.cells.average import RATIO, average, average_bias
from cosim.cells.bias import BIAS_DIODE, PEDESTAL_SINK, bias_diode, pedestal_sink
from cosim.cells.blocks import BIAS_TREE, CLOCK_GENERATOR, CONVERTERS, DECISION
from cosim.cells.clock import CLOCK, DRIVER, SAMPLE_NETS, Phase, clock, flip_flops, ticks_of
from cosim.cells.converter import converter, level_diode
from cosim.cells.decision import DECIDE_PIN, IDLE_PIN, decision
from cosim.cells.logic import flip_flop, inverter, nand
from cosim.cells.reference import REFERENCE, reference
from cosim.cells.tree import BRANCHES, REFERENCE_UNITS, TREE, source_name, tree, tree_source, trim_nets
from cosim.cells.winner import winner
from cosim.circuit.elements import Attribution, Instance, Subcircuit
from cosim.circuit.waveforms import Timing, sampled_time
from cosim.compiler.settings import Target
from cosim.network.ir.graph import SizedGraph
from cosim.network.ir.nodes import PEDESTAL_STRENGTH, InputCurrent, Memory, Output

SWING = 4 / 3  # of V_DD, what the mean of an output moves by that is the sum of its weights' sizes
IDLE = 0.1e-9  # A
BIAS = 2e-9  # A, of the followers and of the winner-take-all
UNIT_LINE, PEDESTAL_LINE = "tree_unit", "tree_pedestal"
LEVEL_PIN, REST_PIN = "level", "level_rest"


def surround(assembly: Assembly, graph: SizedGraph, job: Target) -> Assembly:
    """Add the chip's blocks that `job.settings.around` names to the assembly of a compiled network.

    Raises MappingError for a block that this network cannot use.
    """
    wanted = job.settings.around
    if "inputs" in wanted:
        assembly = _with_converters(assembly, graph, job)
    if "decision" in wanted:
        assembly = _with_decision(assembly, graph, job)
    if "clock" in wanted:
        assembly = _with_clock(assembly, job)
    if "bias" in wanted:
        assembly = _with_tree(assembly, graph, job)
    return assembly


def _with_converters(assembly: Assembly, graph: SizedGraph, job: Target) -> Assembly:
    """Add a converter on each input pin; all converters share one line of the level and one of the pedestal.

    Raises MappingError for a network whose inputs have no levels.
    """
    levels, inputs = job.network.encoding.levels, list(graph.of(InputCurrent))
    if levels is None:
        raise MappingError(
            f"{job.origin}: `around=inputs` takes codes, so meta.input_levels must say how many levels an input has; "
            "train with `input_levels=16`, or leave inputs out"
        )
    bits, rest_bias = levels.bit_length(), job.calibration.mirror.sink_bias(graph.i_pedestal)
    assert job.settings.fit is not None, "blocks around a network need what was measured of them"
    codes = tuple(tuple(f"code_{node.index}_{k}" for k in range(bits)) for node in inputs)
    cell, diode, rest = converter(job.technology, bits), level_diode(job.technology, levels), bias_diode(job.technology)
    pins = {LEVEL_PIN: graph.i_unit / job.settings.fit.converter, REST_PIN: rest_bias}
    instances = [
        Instance(LEVEL_PIN, (LEVEL_PIN,), diode.name, part=CONVERTERS),
        Instance(REST_PIN, (REST_PIN,), BIAS_DIODE, part=CONVERTERS),
        *(
            Instance(f"converter_{node.index}", (pin, LEVEL_PIN, REST_PIN, *code), cell.name, part=CONVERTERS)
            for node, pin, code in zip(inputs, assembly.input_pins, codes, strict=True)
        ),
    ]
    around = replace(assembly.around, codes=codes)
    return _add_blocks(replace(assembly, around=around), (rest, diode, cell), instances, pins, CONVERTERS)


def _with_decision(assembly: Assembly, graph: SizedGraph, job: Target) -> Assembly:
    """Add averages of the outputs and a winner-take-all, which decides for a class.

    Raises MappingError if the class is not the largest of two or more pooled outputs, or no time is left for sampling.
    """
    pooling, outputs = job.network.readout.pooling, len(assembly.outputs)
    if job.network.regression:
        raise MappingError(
            f"{job.origin}: `around=decision` takes the largest output as a class, and this network was trained for "
            "real numbers; leave decision out"
        )
    if pooling == "vote" or outputs < 2:
        what = f"readout.pooling {pooling}" if pooling == "vote" else f"{outputs} output"
        raise MappingError(
            f"{job.origin}: `around=decision` takes the largest of two or more outputs, pooled by mean or last, not "
            f"{what}; train with `pooling=mean`, or leave decision out"
        )
    if sampled_time(stages := len(assembly.clocks), Timing()) <= 0:
        raise MappingError(
            f"{job.origin}: `around=decision` samples outputs before the first of the network's {stages} stages "
            "decides, which leaves no time in a frame; leave decision out"
        )
    lines = tuple(f"class_{k}" for k in range(outputs))
    blocks = (
        bias_diode(job.technology), average(job.technology, _capacitance(assembly, graph, job)),
        average_bias(job.technology), winner(job.technology, outputs), decision(job.technology, outputs),
    )  # fmt: skip
    ys = tuple(f"{pin}_y" for pin in assembly.outputs)
    instances = [
        Instance(IDLE_PIN, (IDLE_PIN,), BIAS_DIODE, part=DECISION),
        Instance(DECIDE_PIN, (DECIDE_PIN,), BIAS_DIODE, part=DECISION),
        Instance(
            "decision",
            (IDLE_PIN, DECIDE_PIN, *SAMPLE_NETS, "resetb", *ys, *lines, "vdd"),
            blocks[-1].name,
            part=DECISION,
        ),
    ]
    around = replace(
        assembly.around,
        lines=lines,
        drivers=SAMPLE_NETS,
        constant={**assembly.around.constant, DECISION.block: (1 + outputs) * IDLE + 4 * BIAS},
    )
    pins = {IDLE_PIN: IDLE, DECIDE_PIN: BIAS}
    return _add_blocks(replace(assembly, around=around), blocks, instances, pins, DECISION)


def _with_clock(assembly: Assembly, job: Target) -> Assembly:
    """Add the clock generator, which drives the pins of all phases and the network's reset."""
    stages, fit = len(assembly.clocks), job.settings.fit
    assert fit is not None, "blocks around a network need what was measured of them"
    ticks = ticks_of(stages)
    tenth = ticks // 10
    closes = [7 * tenth * (stage + 1) // stages for stage in range(stages)]
    phases = [
        *(
            Phase(clkb, clk, close, close + 3 * tenth, 4)
            for (clk, clkb), close in zip(assembly.clocks, closes, strict=True)
        ),
        *(
            Phase(dec, decb, closes[stage] + 1, closes[stage] + 3 * tenth, 3, early=True)
            for stage, (dec, decb) in assembly.decides.items()
        ),
        *(
            Phase(pulse, pulseb, closes[stage] + tenth, closes[stage] + tenth * 5 // 2, 1)
            for stage, (pulse, pulseb) in assembly.pulses.items()
        ),
    ]
    begin = tenth // 2
    sampled = min(5 * begin, closes[0] - tenth) if assembly.around.lines else 0
    cell = clock(ticks, phases, (begin, begin + sampled) if sampled else None)
    drawn = flip_flops(ticks) * (fit.leakage + fit.tick * ticks / job.settings.t_step)
    around = replace(
        assembly.around,
        ticks=ticks,
        sampled=sampled,
        constant={**assembly.around.constant, CLOCK_GENERATOR.block: drawn},
    )
    gates = [
        inverter(job.technology), inverter(job.technology, DRIVER), flip_flop(job.technology),
        *(nand(job.technology, inputs) for inputs in ((2, 4) if sampled else (2,))),
    ]  # fmt: skip
    instance = Instance(CLOCK, cell.ports, CLOCK, part=CLOCK_GENERATOR)
    return _add_blocks(replace(assembly, around=around), (*gates, cell), [instance], {}, CLOCK_GENERATOR)


def _with_tree(assembly: Assembly, graph: SizedGraph, job: Target) -> Assembly:
    """Add the reference, the bias tree, a source on each bias pin, and sinks for unit current and pedestal."""
    technology, fit, sink = job.technology, job.settings.fit, job.calibration.mirror.sink
    assert fit is not None, "blocks around a network need what was measured of them"
    drawn = {UNIT_LINE: (assembly.unit_pin, graph.i_unit)}
    if assembly.pedestal_pin is not None:
        drawn[PEDESTAL_LINE] = assembly.pedestal_pin, PEDESTAL_STRENGTH * graph.i_pedestal
    pins = {line: current / sink for line, (_, current) in drawn.items()}
    blocks = [bias_diode(technology), pedestal_sink(technology), reference(technology), tree(technology)]
    instances = [
        Instance("reference", ("reference", "vdd"), REFERENCE, part=BIAS_TREE),
        Instance("tree", ("reference", "coarse", "fine", "vdd"), TREE, part=BIAS_TREE),
        *(Instance(line, (line,), BIAS_DIODE, part=BIAS_TREE) for line in drawn),
        *(Instance(f"{line}_sink", (pin, line), PEDESTAL_SINK, part=BIAS_TREE) for line, (pin, _) in drawn.items()),
    ]
    for pin, current in {**assembly.bias_pins, **pins}.items():
        coarse, fine = fit.units(current)
        blocks.append(tree_source(technology, coarse))
        nets = pin, "coarse", "fine", *trim_nets(fine), "vdd"
        instances.append(Instance(f"feed_{pin}", nets, source_name(coarse), f"{current:.6g} A", BIAS_TREE))
    high = technology.supply
    start = ("xreference.n", 0.55), ("xreference.p", high - 0.6), ("xreference.b", 0.95)
    around = replace(
        assembly.around, feeds=True, start=start,
        constant={**assembly.around.constant, BIAS_TREE.block: BRANCHES * fit.coarse[-1] * REFERENCE_UNITS},
    )  # fmt: skip
    fed = _add_blocks(replace(assembly, around=around), tuple(blocks), instances, pins, BIAS_TREE)
    return replace(fed, around=replace(fed.around, pins=dict.fromkeys(fed.bias_pins, BIAS_TREE.block)))


def _capacitance(assembly: Assembly, graph: SizedGraph, job: Target) -> float:
    """Return the capacitance with which an output's average stays in the swing, F.

    A mean equal to the sum of the output's largest weighted currents moves it by SWING V_DD.
    """
    most = max(
        sum(abs(weight.target) * _level(graph, source) for source, weight in graph.into(node.name))
        for node in graph.of(Output)
    )
    sampled = sampled_time(len(assembly.clocks), Timing(t_step=job.settings.t_step))
    return most * graph.i_unit * sampled / (RATIO * SWING * job.technology.supply)


def _level(graph: SizedGraph, source: str) -> float:
    """Return the largest current of a signal, in software units."""
    node = graph.nodes[source]
    return node.level * node.most if isinstance(node, Memory) else 1.0


def _add_blocks(
    assembly: Assembly,
    blocks: tuple[Subcircuit, ...],
    instances: list[Instance],
    pins: dict[str, float],
    part: Attribution,
) -> Assembly:
    """Return the assembly with these blocks of the chip added beside the network, at the circuit's top level.

    pins: new bias pin -> its current in A; part: the power block that instances and pins are counted to.
    """
    circuit, around = assembly.circuit, assembly.around
    there = {block.name for block in circuit.subcircuits}
    new = tuple({block.name: block for block in blocks if block.name not in there}.values())
    network = circuit.subcircuits[-1]
    return replace(
        assembly,
        circuit=replace(
            circuit,
            subcircuits=(*circuit.subcircuits[:-1], *new, network),
            elements=(*circuit.elements, *instances),
        ),
        bias_pins={**assembly.bias_pins, **pins},
        around=replace(
            around, blocks=(*around.blocks, part.block), pins={**around.pins, **dict.fromkeys(pins, part.block)}
        ),
    )
